//! Time as the core sees it: given from outside, never read. A [`Moment`] carries both clocks:
//! the wall clock, which the API's time stamps use, and a monotonic one, which counts soaks.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// One instant on both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// Wall clock, comparable with time stamps written by the API server. It may jump.
    pub wall: Timestamp,
    /// Time since an arbitrary start, which never runs backwards. Soaks are counted on it.
    pub mono: Duration,
}

impl Moment {
    /// How long ago `earlier` was on the wall clock; zero if it lies in the future.
    pub fn since(&self, earlier: Timestamp) -> Duration {
        Duration::try_from(self.wall.duration_since(earlier)).unwrap_or_default()
    }

    /// The moment `span` later on both clocks.
    #[must_use]
    pub fn after(&self, span: Duration) -> Self {
        let wall = SignedDuration::try_from(span)
            .ok()
            .and_then(|span| self.wall.checked_add(span).ok())
            .unwrap_or(Timestamp::MAX);
        Self { wall, mono: self.mono.saturating_add(span) }
    }
}

/// Reads a duration as Kubernetes and Go write it: `90s`, `5m`, `1h30m`, or bare seconds (`300`).
///
/// Argo Rollouts accepts both forms in `pause.duration` (its `DurationSeconds`).
pub fn parse_duration(text: &str) -> Option<Duration> {
    if let Ok(seconds) = text.parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    let span: SignedDuration = text.parse().ok()?;
    Duration::try_from(span).ok()
}

/// Writes a duration for people, in at most two units: `45s`, `1m30s`, `2h5m`.
pub fn format_duration(span: Duration) -> String {
    let seconds = span.as_secs();
    let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match (hours, minutes, rest) {
        (0, 0, rest) => format!("{rest}s"),
        (0, minutes, 0) => format!("{minutes}m"),
        (0, minutes, rest) => format!("{minutes}m{rest}s"),
        (hours, 0, _) => format!("{hours}h"),
        (hours, minutes, _) => format!("{hours}h{minutes}m"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_argo_reads_them() {
        for (text, seconds) in [("300", 300), ("5m", 300), ("1h30m", 5400), ("0", 0), ("2m0s", 120)]
        {
            assert_eq!(parse_duration(text), Some(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["", "five", "-5s", "1w"] {
            assert_eq!(parse_duration(text), None, "{text}");
        }
    }

    #[test]
    fn durations_are_written_in_two_units() {
        for (seconds, text) in
            [(0, "0s"), (59, "59s"), (60, "1m"), (90, "1m30s"), (3600, "1h"), (7512, "2h5m")]
        {
            assert_eq!(format_duration(Duration::from_secs(seconds)), text);
        }
    }

    #[test]
    fn a_time_stamp_in_the_future_is_zero_ago() {
        let now = Moment { wall: Timestamp::UNIX_EPOCH, mono: Duration::ZERO };
        assert_eq!(now.since(now.after(Duration::from_secs(5)).wall), Duration::ZERO);
        assert_eq!(now.after(Duration::from_secs(5)).since(now.wall), Duration::from_secs(5));
    }
}
