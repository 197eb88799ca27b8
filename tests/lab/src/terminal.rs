//! The one place that prints. What a person reads goes to standard error, so that the standard
//! output of a command that runs in the lab stays its own.

use std::fmt::Display;
use std::io::{Write, stderr, stdout};

/// Tells a person what the lab does. A closed terminal is no reason to stop.
pub(crate) fn say(message: impl Display) {
    let _ = writeln!(stderr(), "lab: {message}");
}

/// Prints a result that another program may read.
pub(crate) fn print(line: impl Display) {
    let _ = writeln!(stdout(), "{line}");
}
