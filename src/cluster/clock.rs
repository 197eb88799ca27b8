//! Clocks: this machine's, and those of simulated clusters.

use std::sync::LazyLock;
use std::time::Instant;

use futures::future::BoxFuture;
use jiff::Timestamp;
use zone_rollout_core::time::Moment;

/// A clock that a run goes by.
pub trait Clock: Send + Sync {
    /// This moment.
    fn now(&self) -> Moment;
    /// Waits until then; not at all if that is past. One wait at a time: simulated time passes only in
    /// a wait.
    fn until(&self, at: Moment) -> BoxFuture<'_, ()>;
    /// Seconds that pass on it in one second of a person's.
    fn pace(&self) -> u32;
}

/// The clocks of this machine.
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Moment {
        now()
    }

    fn until(&self, at: Moment) -> BoxFuture<'_, ()> {
        Box::pin(tokio::time::sleep_until((*START + at.mono).into()))
    }

    fn pace(&self) -> u32 {
        1
    }
}

static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// This moment on both clocks.
pub(super) fn now() -> Moment {
    Moment { wall: Timestamp::now(), mono: START.elapsed() }
}
