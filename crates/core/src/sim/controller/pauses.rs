//! Pauses and aborts: what a reconcile wants to change about them, and the pause step itself.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::Sync;
use crate::scene::{PauseCondition, RolloutStatus, Step};

/// Reason of the pause at a pause step.
pub(super) const PAUSE_STEP: &str = "CanaryPauseStep";
/// Reason of the pause after an analysis without a verdict.
pub(super) const INCONCLUSIVE: &str = "InconclusiveAnalysisRun";

/// Changes to be made (`pauseContext` in `rollout/pause.go`).
#[derive(Debug, Default)]
pub(super) struct Pauses {
    pub(super) add: Option<&'static str>,
    /// The pause at the pause step ends.
    pub(super) step_done: bool,
    pub(super) clear: bool,
    /// The update is given up, for this reason.
    pub(super) abort: Option<String>,
    pub(super) unabort: bool,
}

impl Pauses {
    pub(super) fn adds_pause(&self) -> bool {
        self.add.is_some()
    }

    /// `IsAborted`
    pub(super) fn is_aborted(&self, status: &RolloutStatus) -> bool {
        !self.unabort && (self.abort.is_some() || status.abort)
    }

    /// `CalculatePauseStatus`
    pub(super) fn write(&self, before: &RolloutStatus, next: &mut RolloutStatus, now: Timestamp) {
        if self.abort.is_some() || (!self.unabort && before.abort) {
            next.abort = true;
            next.aborted_at = before.aborted_at.or(Some(now));
            return;
        }
        if self.clear {
            return;
        }
        let ended = |pause: &&PauseCondition| self.step_done && pause.reason == PAUSE_STEP;
        next.pause_conditions =
            before.pause_conditions.iter().filter(|pause| !ended(pause)).cloned().collect();
        let known = |reason| before.pause_conditions.iter().any(|pause| pause.reason == reason);
        let added = self.add.filter(|reason| !known(*reason));
        if let Some(reason) = added {
            let pause = PauseCondition { reason: reason.to_owned(), start_time: Some(now) };
            next.pause_conditions.push(pause);
        }
        next.controller_pause =
            !next.pause_conditions.is_empty() && (before.controller_pause || added.is_some());
    }
}

impl Sync<'_> {
    fn pause_condition(&self) -> Option<&PauseCondition> {
        self.rollout.status.pause_conditions.iter().find(|pause| pause.reason == PAUSE_STEP)
    }

    /// `reconcileCanaryPause` (`rollout/canary.go`).
    pub(super) fn reconcile_pause(&mut self) {
        let status = &self.rollout.status;
        let Some(Step::Pause(duration)) = self.rollout.current_step().cloned() else { return };
        if self.rollout.spec.paused || status.promote_full {
            return;
        }
        let Some(pause) = self.pause_condition() else {
            if !status.controller_pause {
                self.pauses.add = Some(PAUSE_STEP);
            }
            return;
        };
        if let Some(left) = duration.and_then(|duration| self.left(pause, duration)) {
            self.again(left);
        }
    }

    /// What is left of a timed pause; nothing once it is over.
    fn left(&self, pause: &PauseCondition, duration: Duration) -> Option<Duration> {
        let end = pause.start_time? + SignedDuration::try_from(duration).ok()?;
        let left = end.duration_since(self.world.now.wall);
        Duration::try_from(left).ok().filter(|left| !left.is_zero())
    }

    /// Whether the pause step is over (`CompletedCanaryPauseStep`): a person has ended it, or its time
    /// is up.
    pub(super) fn pause_is_over(&self, duration: Option<Duration>) -> bool {
        match self.pause_condition() {
            None => self.rollout.status.controller_pause,
            Some(pause) => duration.is_some_and(|duration| self.left(pause, duration).is_none()),
        }
    }
}
