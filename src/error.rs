//! Errors for people: what failed, why, and a command that helps.

use std::fmt;

use crate::exit::Exit;

/// An error that ends an invocation.
#[derive(Debug, Clone)]
pub struct Error {
    exit: Exit,
    what: String,
    causes: Vec<String>,
    hint: Option<String>,
}

impl Error {
    /// An error with this exit code. `what` is a fragment: lower case, no full stop.
    pub fn new(exit: Exit, what: impl Into<String>) -> Self {
        Self { exit, what: what.into(), causes: Vec::new(), hint: None }
    }

    /// Something unexpected, or a cluster that cannot be reached.
    pub fn unexpected(what: impl Into<String>) -> Self {
        Self::new(Exit::Unexpected, what)
    }

    /// A command line that makes no sense.
    pub fn usage(what: impl Into<String>) -> Self {
        Self::new(Exit::Usage, what)
    }

    /// A refusal; nothing was written.
    pub fn refused(what: impl Into<String>) -> Self {
        Self::new(Exit::Refused, what)
    }

    /// Adds the reason for the last thing said.
    #[must_use]
    pub fn because(mut self, cause: impl Into<String>) -> Self {
        self.causes.push(cause.into());
        self
    }

    /// Adds what to do about it; a hint ends in a command where there is one.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The exit code.
    pub fn exit(&self) -> Exit {
        self.exit
    }

    /// The hint, if there is one.
    pub fn hint_text(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// What failed and why, in one line, for programs.
    pub fn one_line(&self) -> String {
        let mut line = self.what.clone();
        for cause in &self.causes {
            line.push_str(": ");
            line.push_str(cause);
        }
        line
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.what)?;
        for cause in &self.causes {
            write!(f, "\n  caused by: {cause}")?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "\n\nhint: {hint}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}
