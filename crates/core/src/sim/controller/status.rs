//! The status at the end of a reconcile: progress of the steps, promotion, phase.

use super::Sync;
use crate::scene::{ReplicaSet, Rollout, RolloutStatus, Step, StepKind};
use crate::sim::{By, World};

impl Sync<'_> {
    /// `syncRolloutStatusCanary` (`rollout/canary.go`).
    pub(super) fn sync_status(&mut self) {
        self.base_status();
        let steps = self.rollout.steps().len();
        if self.template_changed() {
            return self.reset(steps);
        }
        let mut index = self.rollout.step_index();
        if self.rollout.status.promote_full {
            self.pauses.clear = true;
            self.pauses.unabort = true;
            index = steps;
        }
        if self.promotes(index) {
            self.promote(steps);
        } else if self.is_aborted() {
            self.next.current_step_index =
                (steps > 0).then_some(if self.next.stable_rs == self.next.current_pod_hash {
                    steps
                } else {
                    0
                });
        } else {
            if self.step_is_done() {
                index += 1;
                self.next.canary.current_step_analysis_run_status = None;
                self.pauses.step_done = true;
            }
            self.next.current_step_index = (steps > 0).then_some(index);
        }
        self.persist();
    }

    /// `calculateBaseStatus`, and what every status begins with.
    fn base_status(&mut self) {
        let all: Vec<_> = self
            .world
            .replica_sets_of(&self.rollout)
            .iter()
            .filter_map(|key| self.world.replica_set(key))
            .collect();
        let new = self.target();
        let available = all.iter().map(|one| one.status.available_replicas).sum();
        let before = &self.rollout.status;
        let next = &mut self.next;
        new.hash().clone_into(&mut next.current_pod_hash);
        next.stable_rs.clone_from(&before.stable_rs);
        next.replicas = all.iter().filter_map(|one| one.status.replicas).sum();
        next.updated_replicas = new.status.replicas.unwrap_or(0);
        next.ready_replicas = available;
        next.available_replicas = available;
        next.promote_full = before.promote_full && next.current_pod_hash != next.stable_rs;
        next.conditions = before.conditions.clone();
        next.conditions.retain(|condition| condition.kind != "InvalidSpec");
    }

    /// `resetRolloutStatus`: a new template begins at the first step; the stable one needs none.
    fn reset(&mut self, steps: usize) {
        self.pauses.clear = true;
        self.pauses.unabort = true;
        self.next.promote_full = false;
        self.next.canary.current_step_analysis_run_status = None;
        self.next.canary.current_background_analysis_run_status = None;
        let back = self.next.stable_rs == self.next.current_pod_hash;
        self.next.current_step_index = (steps > 0).then_some(if back { steps } else { 0 });
        self.persist();
    }

    /// `shouldFullPromote` (`rollout/sync.go`).
    fn promotes(&self, index: usize) -> bool {
        if self.stable.is_none() {
            return true;
        }
        let enough = self.target().status.available_replicas >= self.rollout.replicas();
        !self.is_aborted() && enough && index >= self.rollout.steps().len()
    }

    /// `promoteStable`
    fn promote(&mut self, steps: usize) {
        self.pauses.clear = true;
        self.pauses.unabort = true;
        self.next.promote_full = false;
        self.next.current_step_index = (steps > 0).then_some(steps);
        self.next.stable_rs.clone_from(&self.next.current_pod_hash);
    }

    /// `completedCurrentCanaryStep`
    fn step_is_done(&self) -> bool {
        if self.rollout.spec.paused {
            return false;
        }
        match self.rollout.current_step() {
            None => false,
            Some(Step::Pause(duration)) => self.pause_is_over(*duration),
            Some(Step::Other(StepKind::Analysis, _)) => {
                let run = self.next.canary.current_step_analysis_run_status.as_ref();
                run.is_some_and(|run| run.status == "Successful")
            }
            Some(Step::SetWeight(_) | Step::Other(..)) => self.at_desired_counts(),
        }
    }

    /// `syncReplicasOnly`: pods first, everything else later.
    pub(super) fn sync_replicas_only(&mut self) {
        self.reconcile_replica_sets();
        let weights = self.next.canary.weights.take();
        self.next = self.rollout.status.clone();
        self.next.canary.weights = weights;
        let all = self.world.replica_sets_of(&self.rollout);
        let available = |one: std::sync::Arc<ReplicaSet>| one.status.available_replicas;
        self.next.available_replicas =
            all.iter().filter_map(|key| self.world.replica_set(key)).map(available).sum();
        self.write();
    }

    fn persist(&mut self) {
        self.conditions();
        self.write();
    }

    /// `persistRolloutStatus`: only if something has changed.
    fn write(&mut self) {
        let now = self.world.stamp();
        self.pauses.write(&self.rollout.status, &mut self.next, now);
        let mut rollout = self.rollout.clone();
        rollout.status = self.next.clone();
        self.world.put_status(rollout);
    }
}

impl World {
    /// Writes a status with the generation that it is about and the phase that follows from it.
    pub(super) fn put_status(&mut self, mut rollout: Rollout) {
        rollout.status.observed_generation = rollout.meta.generation.to_string();
        let (phase, message) = phase(&rollout);
        phase.clone_into(&mut rollout.status.phase);
        rollout.status.message = message;
        let before = self.rollout(&rollout.meta.key());
        if before.is_none_or(|before| before.status != rollout.status) {
            self.put_rollout(By::Controller, rollout);
        }
    }
}

/// `CalculateRolloutPhase` (`utils/rollout/rolloututil.go`).
fn phase(rollout: &Rollout) -> (&'static str, String) {
    let status: &RolloutStatus = &rollout.status;
    let degraded = status.conditions.iter().find_map(|condition| {
        let name = match condition.reason.as_str() {
            _ if condition.kind == "InvalidSpec" => "InvalidSpec",
            "RolloutAborted" => "RolloutAborted",
            "ProgressDeadlineExceeded" => "ProgressDeadlineExceeded",
            _ => return None,
        };
        Some(format!("{name}: {}", condition.message))
    });
    let said = |text: &str| text.to_owned();
    if let Some(message) = degraded {
        ("Degraded", message)
    } else if rollout.spec.paused {
        ("Paused", said("manually paused"))
    } else if let Some(pause) = status.pause_conditions.first() {
        ("Paused", pause.reason.clone())
    } else if status.updated_replicas < rollout.replicas() {
        ("Progressing", said("more replicas need to be updated"))
    } else if status.available_replicas < status.updated_replicas {
        ("Progressing", said("updated replicas are still becoming available"))
    } else if !rollout.is_fully_promoted() {
        ("Progressing", said("waiting for all steps to complete"))
    } else {
        ("Healthy", String::new())
    }
}
