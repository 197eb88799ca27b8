//! Tells how long each phase of a start took.

use std::time::{Duration, Instant};

use crate::terminal::say;

/// A stopwatch with laps.
pub(super) struct Phases {
    start: Instant,
    lap: Instant,
}

impl Phases {
    pub(super) fn begin() -> Self {
        let start = Instant::now();
        Self { start, lap: start }
    }

    /// Prints the time since the previous phase ended.
    pub(super) fn done(&mut self, name: &str) {
        print(name, self.lap.elapsed());
        self.lap = Instant::now();
    }

    pub(super) fn end(self) {
        print("ready", self.start.elapsed());
    }
}

fn print(name: &str, took: Duration) {
    say(format_args!("{:>6.1} s  {name}", took.as_secs_f32()));
}
