//! What happened in a run, for people and for programs. Nothing here was inferred from an accepted
//! request: a zone's change is reported when it was seen.

use crate::group::ZoneId;
use crate::promote::{Awaited, Outcome};
use crate::proof::Unmet;
use crate::write::{Action, Written};
use crate::zone::ZoneState;

/// One thing that happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A zone looks different from before.
    Zone(ZoneGlimpse),
    /// A write was sent and answered.
    Wrote {
        /// What was to be done.
        action: Action,
        /// What became of it.
        written: Written,
    },
    /// A zone's soak took a turn.
    Soak {
        /// The zone.
        zone: ZoneId,
        /// The turn.
        change: SoakChange,
    },
    /// The fresh reading that a write needs failed; it is tried again.
    NotRead(String),
    /// The cluster cannot be seen any more, with what and why; or nothing: it can again.
    Sight(Option<String>),
    /// Something else is awaited than before.
    Waiting(Vec<Awaited>),
    /// The run is over.
    Ended(Outcome),
}

/// A turn of a soak.
#[derive(Debug, Clone, PartialEq)]
pub enum SoakChange {
    /// The clock runs.
    Counting,
    /// The clock stands.
    Halted(Unmet),
    /// The clock starts again.
    Broken(Unmet),
    /// The zone is verified.
    Over,
}

/// What a zone looks like from a distance.
#[derive(Debug, Clone, PartialEq)]
pub struct ZoneGlimpse {
    /// The zone.
    pub zone: ZoneId,
    /// Its state.
    pub state: ZoneState,
    /// Index of the current step; the number of steps when done.
    pub step: usize,
    /// Number of steps.
    pub steps: usize,
    /// What the current step does.
    pub label: Option<String>,
    /// Share of traffic the new version should have, in percent.
    pub wanted: u32,
    /// Share of traffic the VirtualService gives it, in percent.
    pub in_force: Option<u32>,
    /// Ready pods of the version the zone is leaving, or is at rest on.
    pub stable_ready: u32,
    /// Ready pods of the new version while it is in flight.
    pub canary_ready: u32,
}
