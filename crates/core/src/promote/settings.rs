//! What a person asked for.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::group::ZoneId;

/// How to drive a promotion.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Name of this run, for annotations and records.
    pub run: String,
    /// The zones to drive, in order.
    pub order: Vec<ZoneId>,
    /// Zones that are left out and need not be well.
    pub skipped: BTreeSet<ZoneId>,
    /// How long each zone is watched after its promotion.
    pub soak: Duration,
    /// How long the first zone in the order is watched.
    pub first_soak: Duration,
    /// How long to wait for the expected image to arrive in a zone.
    pub wait_sync: Duration,
    /// Hold zones that would advance by themselves.
    pub hold: bool,
    /// Hold them although an autoscaler scales them.
    pub freeze_autoscaler: bool,
    /// Change specs that GitOps owns.
    pub force: bool,
    /// What to do at pauses for a person after the gate.
    pub pauses: Pauses,
    /// What to do with a zone that failed.
    pub on_failure: OnFailure,
    /// Limit for the whole run.
    pub timeout: Option<Duration>,
    /// Whether a check command has to agree.
    pub check: bool,
    /// Share of a zone's wanted pods, in percent, that suffices to take all its traffic back.
    pub stable_floor: u32,
}

/// What to do at a pause without a duration after the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pauses {
    /// Ask a person.
    Ask,
    /// End it, after a good check.
    Open,
    /// Stop the run.
    Stop,
}

/// What to do with a zone that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnFailure {
    /// Leave it as it is.
    Leave,
    /// Abort it and take its traffic back.
    AbortZone,
}
