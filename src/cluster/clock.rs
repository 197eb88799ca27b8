//! The clocks of this machine.

use std::sync::LazyLock;
use std::time::Instant;

use jiff::Timestamp;
use zone_rollout_core::time::Moment;

static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// This moment on both clocks.
pub fn now() -> Moment {
    Moment { wall: Timestamp::now(), mono: START.elapsed() }
}

/// The instant at which a moment of this process comes.
pub fn instant(moment: Moment) -> Instant {
    *START + moment.mono
}
