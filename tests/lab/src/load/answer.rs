//! What a client gets for a request.

use std::fmt;

/// An answer, or what came instead.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Answer {
    /// A pod answered; written `zone/version`.
    Pod {
        /// The pod's zone.
        zone: String,
        /// The tag of its image.
        version: String,
    },
    /// An HTTP status other than 200; written as its number.
    Status(u16),
    /// No answer in time; written `timeout`.
    Timeout,
    /// The sidecar closed the connection or could not be reached; written `no connection`.
    NoConnection,
}

impl Answer {
    /// Whether a pod answered.
    pub fn is_pod(&self) -> bool {
        matches!(self, Self::Pod { .. })
    }
}

impl From<&str> for Answer {
    /// A pod's answer, written `zone/version`.
    fn from(body: &str) -> Self {
        let (zone, version) = body.split_once('/').unwrap_or((body, ""));
        Self::Pod { zone: zone.to_owned(), version: version.to_owned() }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pod { zone, version } => write!(f, "{zone}/{version}"),
            Self::Status(status) => write!(f, "{status}"),
            Self::Timeout => f.write_str("timeout"),
            Self::NoConnection => f.write_str("no connection"),
        }
    }
}
