//! What may be done to a zone. Actions that start a zone carry the clearance of all other zones, so
//! that they cannot be made without having looked at them.

use serde_json::Value;

use crate::group::ZoneId;
use crate::promote::Clearance;
use crate::template::Images;

/// One thing done to one zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// End the pause at the zone's gate.
    Open {
        /// That every other zone allows it.
        clearance: Clearance,
    },
    /// End a pause without a duration after the gate.
    Continue {
        /// The zone.
        zone: ZoneId,
        /// Index of the step.
        step: usize,
    },
    /// Set images in the zone's template.
    SetImage {
        /// That every other zone allows it.
        clearance: Clearance,
        /// Images by container.
        images: Images,
    },
    /// Set `spec.paused`, marked as ours.
    Hold {
        /// The zone.
        zone: ZoneId,
        /// The run that holds it, for the annotation.
        run: String,
    },
    /// Take our own hold back.
    Release {
        /// That every other zone allows it.
        clearance: Clearance,
    },
    /// Set the zone's template to one that it had before.
    Restore {
        /// That every other zone allows it.
        clearance: Clearance,
        /// The template.
        template: Value,
    },
    /// Set the template of a zone in flight back to the stable one.
    RollBack {
        /// The zone.
        zone: ZoneId,
    },
    /// Start an update again that was given up.
    Retry {
        /// That every other zone allows it.
        clearance: Clearance,
    },
    /// Give the zone's update up.
    Abort {
        /// The zone.
        zone: ZoneId,
    },
    /// Write the zone's route so that the canary gets nothing.
    TrafficToStable {
        /// The zone.
        zone: ZoneId,
    },
    /// Send the zone's clients to another zone, by a route before the zone's own.
    Divert {
        /// The zone.
        zone: ZoneId,
        /// Where to.
        to: ZoneId,
    },
    /// Take that route out again.
    EndDiversion {
        /// The zone.
        zone: ZoneId,
    },
    /// Touch the Rollout, so that a controller that missed a change looks at it again.
    Nudge {
        /// The zone.
        zone: ZoneId,
    },
}

impl Action {
    /// The zone it is done to.
    pub fn zone(&self) -> &ZoneId {
        match self {
            Self::Open { clearance }
            | Self::SetImage { clearance, .. }
            | Self::Restore { clearance, .. }
            | Self::Retry { clearance }
            | Self::Release { clearance } => clearance.zone(),
            Self::Continue { zone, .. }
            | Self::Hold { zone, .. }
            | Self::RollBack { zone }
            | Self::Abort { zone }
            | Self::TrafficToStable { zone }
            | Self::Divert { zone, .. }
            | Self::EndDiversion { zone }
            | Self::Nudge { zone } => zone,
        }
    }

    /// Its name in machine-readable output.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Open { .. } => "Open",
            Self::Continue { .. } => "Continue",
            Self::SetImage { .. } => "SetImage",
            Self::Hold { .. } => "Hold",
            Self::Release { .. } => "Release",
            Self::Restore { .. } => "Restore",
            Self::RollBack { .. } => "RollBack",
            Self::Retry { .. } => "Retry",
            Self::Abort { .. } => "Abort",
            Self::TrafficToStable { .. } => "TrafficToStable",
            Self::Divert { .. } => "Divert",
            Self::EndDiversion { .. } => "EndDiversion",
            Self::Nudge { .. } => "Nudge",
        }
    }
}
