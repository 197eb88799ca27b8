//! How a run ends.

use crate::group::ZoneId;
use crate::promote::Blocker;
use crate::proof::Unmet;
use crate::write::Drift;
use crate::zone::{Outage, Trouble};

/// The end of a run.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// Every zone that was to be driven is verified on the new version.
    Done,
    /// Nothing is in flight and nothing was asked for.
    NothingToDo,
    /// Refused before anything was written.
    Refused(Vec<Blocker>),
    /// A zone failed; later zones were not touched.
    ZoneFailed {
        /// The zone.
        zone: ZoneId,
        /// Why.
        why: Failure,
        /// Share of the zone's traffic on the new version now, in percent, if it is known.
        weight: Option<u32>,
        /// Whether the zone was taken back to its stable version, and this was seen.
        taken_back: bool,
    },
    /// Something took too long; production was left as it is.
    Stuck {
        /// The zone that is waited for.
        zone: Option<ZoneId>,
        /// What was waited for.
        what: String,
        /// Share of the zone's traffic on the new version now, in percent, if it is known.
        weight: Option<u32>,
    },
    /// It goes on when a person or Git has done their part.
    Outstanding {
        /// The zone that waits.
        zone: ZoneId,
        /// For what.
        what: String,
    },
    /// A person said no.
    Declined,
    /// Somebody else changed what this run was about.
    LostControl(LostControl),
    /// A write was answered in a way that waiting does not mend.
    WriteFailed {
        /// The zone.
        zone: ZoneId,
        /// What the server said.
        what: String,
        /// Whether anything had been written before.
        first: bool,
    },
    /// A signal stopped the run. Nothing was undone.
    Interrupted {
        /// The zone whose last write had no answer yet, if there was one.
        writing: Option<ZoneId>,
    },
}

impl Outcome {
    /// True of what is said about the state of production: it is said only of what was read for the
    /// purpose. What somebody did is believed as soon as a watch has shown it.
    pub(super) fn is_judgement(&self) -> bool {
        matches!(
            self,
            Self::Done | Self::ZoneFailed { .. } | Self::Stuck { .. } | Self::Outstanding { .. }
        )
    }
}

/// Why a zone counts as failed.
#[derive(Debug, Clone, PartialEq)]
pub enum Failure {
    /// The controller gave the update up.
    Aborted(String),
    /// The controller refuses the spec.
    InvalidSpec(String),
    /// The controller's deadline for progress has passed.
    Deadline {
        /// The controller's message.
        message: String,
        /// What ails the worst pod.
        trouble: Option<Trouble>,
    },
    /// A new pod will not come up.
    Pod(Trouble),
    /// The zone was lost, whatever version it runs.
    Outage(Outage),
    /// The steps went on without the traffic.
    Unproven {
        /// Weight that should have been in force.
        wanted: u32,
        /// Weight that was.
        in_force: u32,
    },
    /// After the promotion, something that does not mend by waiting.
    Unverified(Unmet),
    /// After the promotion, its pods failed again and again.
    Unsteady {
        /// How often its watch was broken.
        breaks: u32,
        /// By what the last time.
        last: Unmet,
    },
    /// The check command said no.
    Check(String),
}

/// How control was lost.
#[derive(Debug, Clone, PartialEq)]
pub enum LostControl {
    /// A zone's template is not the one this run is about any more.
    TargetChanged {
        /// The zone.
        zone: ZoneId,
        /// Its version now.
        version: String,
    },
    /// Somebody else aborted a zone.
    AbortedElsewhere(ZoneId),
    /// Somebody else promoted a zone, or it went on by itself.
    PromotedElsewhere(ZoneId),
    /// Somebody took our hold back.
    ReleasedElsewhere {
        /// The zone.
        zone: ZoneId,
        /// Who probably did, if it is known.
        by: Option<String>,
    },
    /// A change of ours was reverted.
    Reverted {
        /// The zone.
        zone: ZoneId,
        /// Who probably did, if it is known.
        by: Option<String>,
    },
    /// A zone's Rollout was deleted.
    Deleted(ZoneId),
    /// Another driver took the lease.
    Lease(String),
    /// The permission to write was taken away.
    Permission(String),
    /// The same write was refused again although its guards hold.
    Refused(ZoneId, Drift),
}
