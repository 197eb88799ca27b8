//! The Rollouts controller: one reconcile of one Rollout after another, each a function of what the
//! API server has, in the order of the original (`rollout/controller.go`, `rollout/canary.go`).

mod analysis;
mod conditions;
mod metadata;
mod pauses;
mod replica_sets;
mod status;
mod template;
mod traffic;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use self::pauses::Pauses;
pub(super) use self::template::{encoded, template_hash_removed, without_additions};
use crate::scene::{Key, ReplicaSet, Rollout, RolloutStatus};
use crate::sim::World;
use crate::sim::timers::Timer;
use crate::time::Moment;
use crate::traffic::rollout_routes;

/// Longest wait after an error (`DefaultArgoRolloutsRateLimiter` in `utils/queue`).
const LONGEST_BACK_OFF: Duration = Duration::from_secs(10);
/// How soon an invalid spec is looked at again.
const INVALID: Duration = Duration::from_secs(20);

/// What the controller knows beyond what the API server has.
#[derive(Debug, Clone, Default)]
pub(super) struct Controller {
    down: bool,
    /// Rollouts in the queue.
    pub(super) woken: BTreeSet<Key>,
    /// When it comes back to a Rollout of its own accord, at the latest.
    again: BTreeMap<Key, Duration>,
    /// Errors in a row.
    errors: BTreeMap<Key, u32>,
    /// Writes of mesh objects that were refused as conflicts.
    pub(super) conflicts: u32,
    /// When each mesh object changed last.
    changed: BTreeMap<Key, Moment>,
}

impl Controller {
    pub(super) fn mesh_changed(&mut self, object: &Key, at: Moment) {
        self.changed.insert(object.clone(), at);
    }
}

/// Why a reconcile ends before its end; it is tried again after a while.
struct Halt;

/// One reconcile (`rolloutContext`).
struct Sync<'w> {
    world: &'w mut World,
    /// As it was read; conditions are patched on the way.
    rollout: Rollout,
    /// The status to be written.
    next: RolloutStatus,
    /// The ReplicaSet of the wanted template.
    target: Key,
    /// The stable ReplicaSet, once there is one.
    stable: Option<Key>,
    pauses: Pauses,
}

impl World {
    pub(super) fn set_controller(&mut self, up: bool) {
        self.controller.down = !up;
        if up {
            let all: Vec<Key> = self.scene.rollouts.items.keys().cloned().collect();
            for rollout in all {
                self.wake(&rollout);
            }
        }
    }

    pub(super) fn reconcile(&mut self, key: &Key) {
        let Some(rollout) = self.rollout(key).filter(|_| !self.controller.down) else { return };
        if let Err(Halt) = Sync::run(self, Arc::unwrap_or_clone(rollout)) {
            let errors = self.controller.errors.entry(key.clone()).or_default();
            *errors = (*errors + 1).min(14);
            let wait = Duration::from_millis(1 << *errors).min(LONGEST_BACK_OFF);
            self.again(key, wait);
        } else {
            self.controller.errors.remove(key);
        }
    }

    /// Looks at a Rollout after this long, if not before: every look says when the next one is due.
    fn again(&mut self, key: &Key, after: Duration) {
        let at = self.now.mono + after;
        let sooner = |known: &Duration| *known > self.now.mono && *known <= at;
        if !self.controller.again.get(key).is_some_and(sooner) {
            self.controller.again.insert(key.clone(), at);
            self.timers.set(at, Timer::Again(key.clone()));
        }
    }

    /// Time stamps of the API have no fractions of a second.
    pub(super) fn stamp(&self) -> Timestamp {
        Timestamp::from_second(self.now.wall.as_second()).unwrap_or(self.now.wall)
    }
}

impl<'w> Sync<'w> {
    fn run(world: &'w mut World, rollout: Rollout) -> Result<(), Halt> {
        let key = rollout.meta.key();
        if let Err(gap) = rollout_routes(&world.scene, &rollout) {
            world.again(&key, INVALID);
            world.invalid_spec(rollout, &gap.to_string());
            return Ok(());
        }
        let (target, made) = world.desired_replica_set(&rollout);
        let stable = world.stable_replica_set(&rollout);
        let mut pauses = Pauses::default();
        if rollout.is_fully_promoted() && rollout.status.abort {
            // "Removing abort condition from fully promoted rollout"
            pauses.unabort = true;
        }
        let next = RolloutStatus::default();
        let mut sync = Self { world, rollout, next, target, stable, pauses };
        sync.next.canary.weights.clone_from(&sync.rollout.status.canary.weights);
        sync.reconcile(made)
    }

    /// `rolloutContext.reconcile` and `rolloutCanary`.
    fn reconcile(&mut self, made: bool) -> Result<(), Halt> {
        if made {
            self.progressing("NewReplicaSetCreated");
        }
        self.check_paused_conditions();
        if self.is_scaling_event() {
            self.sync_replicas_only();
            return Ok(());
        }
        if self.template_changed() {
            self.sync_status();
            return Ok(());
        }
        self.reconcile_ephemeral_metadata();
        self.reconcile_traffic()?;
        self.reconcile_analyses();
        if !self.pauses.adds_pause() && !self.reconcile_replica_sets() {
            self.reconcile_pause();
        }
        self.sync_status();
        Ok(())
    }

    /// `CheckPodSpecChange` (`utils/replicaset/replicaset.go`). Changed steps are not played.
    fn template_changed(&self) -> bool {
        let current = &self.rollout.status.current_pod_hash;
        !current.is_empty() && current != self.target().hash()
    }

    fn target(&self) -> Arc<ReplicaSet> {
        self.world.replica_set(&self.target).unwrap_or_default()
    }

    fn stable(&self) -> Option<Arc<ReplicaSet>> {
        self.world.replica_set(self.stable.as_ref()?)
    }

    /// ReplicaSets that are neither new nor stable.
    fn others(&self) -> Vec<Key> {
        let mut all = self.world.replica_sets_of(&self.rollout);
        all.retain(|key| *key != self.target && Some(key) != self.stable.as_ref());
        all
    }

    fn is_aborted(&self) -> bool {
        self.pauses.is_aborted(&self.rollout.status)
    }

    /// Looks at this Rollout again after this long.
    fn again(&mut self, after: Duration) {
        self.world.again(&self.rollout.meta.key(), after);
    }
}
