//! Exit codes, the same for every verb and every output format.

use std::process::ExitCode;

/// How an invocation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// 0: done, healthy, nothing to do.
    Done,
    /// 1: the cluster cannot be reached or read, or something unexpected happened.
    Unexpected,
    /// 2: the command line makes no sense.
    Usage,
    /// 3: a zone failed, or an abort is not fully in effect.
    Failed,
    /// 4: something took too long; production was left as it is.
    Stuck,
    /// 5: refused; this invocation wrote nothing.
    Refused,
    /// 6: a person said no.
    Declined,
    /// 7: it waits for a person or for Git.
    Outstanding,
    /// 8: control was lost after something had been written.
    LostControl,
    /// 128 and the number of the signal that stopped it.
    Signal(u8),
}

impl Exit {
    /// The number the process exits with.
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Unexpected => 1,
            Self::Usage => 2,
            Self::Failed => 3,
            Self::Stuck => 4,
            Self::Refused => 5,
            Self::Declined => 6,
            Self::Outstanding => 7,
            Self::LostControl => 8,
            Self::Signal(number) => 128 + number,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
