//! The conditions of a Rollout (`calculateRolloutConditions` and `checkPausedConditions` in
//! `rollout/sync.go`), as far as the phase and the domain read them.

use std::time::Duration;

use super::Sync;
use crate::scene::{Rollout, RolloutCondition, RolloutStatus, Step, StepKind};
use crate::sim::World;

/// Seconds without progress, unless the Rollout says otherwise.
const PROGRESS_DEADLINE: u32 = 600;

impl World {
    /// `createInvalidRolloutCondition`
    pub(super) fn invalid_spec(&mut self, mut rollout: Rollout, why: &str) {
        let message = format!("The Rollout \"{}\" is invalid: {why}", rollout.meta.name);
        if rollout.condition("InvalidSpec").is_none_or(|known| known.message != message) {
            rollout.status.conditions.retain(|condition| condition.kind != "InvalidSpec");
            let condition = self.condition("InvalidSpec", "True", "InvalidSpec", message);
            rollout.status.conditions.push(condition);
        }
        self.put_status(rollout);
    }

    fn condition(
        &self,
        kind: &str,
        status: &str,
        reason: &str,
        message: String,
    ) -> RolloutCondition {
        RolloutCondition {
            kind: kind.to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message,
            last_update_time: Some(self.stamp()),
            last_transition_time: Some(self.stamp()),
        }
    }

    /// `SetRolloutCondition`: nothing if status and reason are the same. True if it has changed.
    fn set(
        &self,
        status: &mut RolloutStatus,
        kind: &str,
        value: &str,
        reason: &str,
        message: String,
    ) -> bool {
        let known = status.conditions.iter().position(|condition| condition.kind == kind);
        let mut condition = self.condition(kind, value, reason, message);
        if let Some(before) = known.map(|index| &status.conditions[index]) {
            if before.status == value && before.reason == reason {
                return false;
            }
            if before.status == value {
                condition.last_transition_time = before.last_transition_time;
            }
        }
        status.conditions.retain(|condition| condition.kind != kind);
        status.conditions.push(condition);
        true
    }
}

impl Sync<'_> {
    pub(super) fn progressing(&mut self, reason: &str) {
        let message = format!("ReplicaSet \"{}\" is progressing.", self.target.name);
        let mut status = std::mem::take(&mut self.rollout.status);
        self.world.set(&mut status, "Progressing", "True", reason, message);
        self.rollout.status = status;
    }

    /// `checkPausedConditions`: a write of its own, before everything else.
    pub(super) fn check_paused_conditions(&mut self) {
        let mut status = self.rollout.status.clone();
        let reason = |kind: &str| {
            self.rollout.condition(kind).map_or("", |condition| condition.reason.as_str())
        };
        let paused = !status.pause_conditions.is_empty() || self.rollout.spec.paused;
        let aborted = reason("Progressing") == "RolloutAborted";
        let was_paused = reason("Progressing") == "RolloutPaused";
        let world = &self.world;
        if paused != was_paused && !aborted && !self.rollout.is_fully_promoted() {
            let (reason, message) = if paused {
                ("RolloutPaused", "Rollout is paused")
            } else {
                ("RolloutResumed", "Rollout is resumed")
            };
            world.set(&mut status, "Progressing", "Unknown", reason, message.to_owned());
        }
        if aborted && !status.abort {
            let message = "Retrying Rollout after abort".to_owned();
            world.set(&mut status, "Progressing", "Unknown", "RolloutRetry", message);
        }
        let known = self.rollout.condition("Paused").is_some_and(|known| known.status == "True");
        if paused != known && !aborted {
            let value = if paused { "True" } else { "False" };
            world.set(
                &mut status,
                "Paused",
                value,
                "RolloutPaused",
                "Rollout is paused".to_owned(),
            );
        }
        if status != self.rollout.status {
            self.rollout.status = status;
            self.world.put_status(self.rollout.clone());
            if let Some(written) = self.world.rollout(&self.rollout.meta.key()) {
                self.rollout = (*written).clone();
            }
        }
    }

    /// `calculateRolloutConditions`
    pub(super) fn conditions(&mut self) {
        let mut next = std::mem::take(&mut self.next);
        let healthy = self.is_healthy(&next);
        let became_unhealthy = self.health(&mut next, healthy) && !healthy;
        if self.is_aborted() {
            let mut message =
                format!("Rollout aborted update to revision {}", self.target().revision());
            if let Some(why) = &self.pauses.abort {
                message = format!("{message}: {why}");
            }
            self.world.set(&mut next, "Progressing", "False", "RolloutAborted", message);
        } else if healthy {
            let message =
                format!("ReplicaSet \"{}\" has successfully progressed.", self.target.name);
            self.world.set(&mut next, "Progressing", "True", "NewReplicaSetAvailable", message);
        } else if became_unhealthy || self.has_progressed(&next) {
            // Progress counts even if nothing else has changed.
            next.conditions.retain(|condition| condition.kind != "Progressing");
            let message = format!("ReplicaSet \"{}\" is progressing.", self.target.name);
            self.world.set(&mut next, "Progressing", "True", "ReplicaSetUpdated", message);
        } else if self.is_late(&next) {
            let message = format!("ReplicaSet \"{}\" has timed out progressing.", self.target.name);
            self.world.set(&mut next, "Progressing", "False", "ProgressDeadlineExceeded", message);
        }
        let enough = next.available_replicas >= self.rollout.replicas();
        let available = if enough { "True" } else { "False" };
        self.world.set(&mut next, "Available", available, "AvailableReason", String::new());
        let completed = next.stable_rs == next.current_pod_hash && !next.stable_rs.is_empty();
        let completed = if completed { "True" } else { "False" };
        self.world.set(&mut next, "Completed", completed, "RolloutCompleted", String::new());
        self.next = next;
    }

    /// True if the condition has changed.
    fn health(&self, next: &mut RolloutStatus, healthy: bool) -> bool {
        let paused = !self.rollout.status.pause_conditions.is_empty() || self.rollout.spec.paused;
        let value = if healthy && !paused { "True" } else { "False" };
        (value == "True" || self.rollout.condition("Healthy").is_some())
            && self.world.set(next, "Healthy", value, "RolloutHealthy", String::new())
    }

    /// `RolloutHealthy` (`utils/conditions/conditions.go`): no old pod is left either.
    fn is_healthy(&self, next: &RolloutStatus) -> bool {
        let replicas = self.rollout.replicas();
        let steps = self.rollout.steps().len();
        let counts = [next.updated_replicas, next.available_replicas, next.replicas];
        counts.iter().all(|count| *count == replicas)
            && next.current_step_index.is_none_or(|index| index == steps)
            && next.stable_rs == next.current_pod_hash
            && self.rollout.status.observed_generation == self.rollout.meta.generation.to_string()
    }

    /// `RolloutProgressing`
    fn has_progressed(&self, next: &RolloutStatus) -> bool {
        let before = &self.rollout.status;
        let old = |status: &RolloutStatus| status.replicas.saturating_sub(status.updated_replicas);
        next.updated_replicas != before.updated_replicas
            || old(next) < old(before)
            || next.ready_replicas > before.ready_replicas
            || next.available_replicas > before.available_replicas
            || next.stable_rs != before.stable_rs
            || next.current_step_index != before.current_step_index
    }

    /// `RolloutTimedOut`, which pauses and analyses are spared (`isIndefiniteStep`).
    fn is_late(&mut self, next: &RolloutStatus) -> bool {
        let open_ended = matches!(
            self.rollout.current_step(),
            Some(Step::Pause(_) | Step::Other(StepKind::Analysis, _))
        );
        let paused = self.rollout.condition("Paused").is_some_and(|known| known.status == "True");
        let scaling_down = self
            .others()
            .iter()
            .any(|key| self.world.replica_set(key).is_some_and(|other| other.has_deadline()));
        let known = next.conditions.iter().find(|condition| condition.kind == "Progressing");
        let Some(known) = known.filter(|_| !open_ended && !paused && !scaling_down) else {
            return false;
        };
        let (reason, since) = (known.reason.as_str(), known.last_update_time);
        if ["RolloutAborted", "RolloutPaused"].contains(&reason) {
            return false;
        }
        let limit = self.rollout.spec.progress_deadline_seconds.unwrap_or(PROGRESS_DEADLINE);
        let limit = Duration::from_secs(limit.into());
        let waited = since.map_or(Duration::ZERO, |since| self.world.now.since(since));
        if reason != "ProgressDeadlineExceeded" && waited <= limit {
            // `checkEnqueueRolloutDuringProgress`: the controller comes back when it is time.
            self.again(limit.saturating_sub(waited) + Duration::from_secs(1));
            return false;
        }
        true
    }
}
