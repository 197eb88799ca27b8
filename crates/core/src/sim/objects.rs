//! Reading and replacing the objects of a world, with what the API server does on the way, and with
//! the wake-up calls that a change means to the controller.

use std::sync::Arc;

use crate::scene::{
    DestinationRule, Key, Kind, Meta, Origin, Pod, ReplicaSet, Rollout, VirtualService,
};
use crate::sim::timers::Timer;
use crate::sim::{By, Face, World};

/// Annotation that names the Rollout which wrote a DestinationRule last.
pub(super) const MANAGED_BY: &str = "argo-rollouts.argoproj.io/managed-by-rollouts";

impl World {
    pub(super) fn rollout(&self, key: &Key) -> Option<Arc<Rollout>> {
        shared(&self.scene.rollouts, key)
    }

    pub(super) fn replica_set(&self, key: &Key) -> Option<Arc<ReplicaSet>> {
        shared(&self.scene.replica_sets, key)
    }

    pub(super) fn pod(&self, key: &Key) -> Option<Arc<Pod>> {
        shared(&self.scene.pods, key)
    }

    /// ReplicaSets of a Rollout, by name.
    pub(super) fn replica_sets_of(&self, rollout: &Rollout) -> Vec<Key> {
        let owned = self.scene.replica_sets.iter().filter(|(_, replica_set)| {
            replica_set.meta.namespace == rollout.meta.namespace
                && replica_set.meta.is_owned_by(&rollout.meta.uid)
        });
        owned.map(|(key, _)| key.clone()).collect()
    }

    /// The Rollout that a ReplicaSet belongs to.
    pub(super) fn owner_of(&self, replica_set: &ReplicaSet) -> Option<Key> {
        let owner = |(_, rollout): &(&Key, &Rollout)| {
            replica_set.meta.namespace == rollout.meta.namespace
                && replica_set.meta.is_owned_by(&rollout.meta.uid)
        };
        self.scene.rollouts.iter().find(owner).map(|(key, _)| key.clone())
    }

    /// A new resource version for an object that is about to be written.
    fn versioned(&mut self, meta: &mut Meta) {
        self.version += 1;
        meta.resource_version = self.version.to_string();
    }

    pub(super) fn put_rollout(&mut self, by: By, mut rollout: Rollout) {
        let key = rollout.meta.key();
        let before = self.rollout(&key);
        if before.is_some_and(|before| before.spec != rollout.spec) {
            rollout.meta.generation += 1;
        }
        self.versioned(&mut rollout.meta);
        self.history.record(self.now, by, &key, Face::from(&rollout));
        self.scene.rollouts.insert(key.clone(), rollout, Origin::Model);
        self.wake(&key);
    }

    pub(super) fn put_replica_set(&mut self, by: By, mut replica_set: ReplicaSet) {
        let key = replica_set.meta.key();
        self.versioned(&mut replica_set.meta);
        self.history.record(self.now, by, &key, Face::from(&replica_set));
        let owner = self.owner_of(&replica_set);
        self.scene.replica_sets.insert(key, replica_set, Origin::Model);
        if let Some(owner) = owner {
            self.wake(&owner);
        }
    }

    pub(super) fn put_pod(&mut self, mut pod: Pod) {
        self.versioned(&mut pod.meta);
        self.scene.pods.insert(pod.meta.key(), pod, Origin::Model);
    }

    /// Every Rollout that refers to a VirtualService looks at it when it changes.
    pub(super) fn put_route(&mut self, by: By, mut route: VirtualService) {
        let key = route.meta.key();
        self.versioned(&mut route.meta);
        self.history.record(self.now, by, &key, Face::from(&route));
        self.controller.mesh_changed(&key, self.now);
        self.scene.routes.insert(key.clone(), route, Origin::Model);
        let concerned: Vec<Key> =
            self.scene
                .rollouts
                .iter()
                .filter(|(_, rollout)| {
                    rollout.virtual_services().iter().any(|reference| {
                        reference.name.split('.').next() == Some(key.name.as_str())
                    })
                })
                .map(|(key, _)| key.clone())
                .collect();
        for rollout in concerned {
            self.wake(&rollout);
        }
    }

    /// Only the Rollout named in its annotation looks at a DestinationRule when it changes
    /// (`syncDestinationRule` in `rollout/trafficrouting/istio/controller.go`).
    pub(super) fn put_rule(&mut self, by: By, mut rule: DestinationRule) {
        let key = rule.meta.key();
        self.versioned(&mut rule.meta);
        self.history.record(self.now, by, &key, Face::from(&rule));
        self.controller.mesh_changed(&key, self.now);
        let manager = rule.meta.annotations.get(MANAGED_BY).cloned();
        self.scene.rules.insert(key.clone(), rule, Origin::Model);
        if let Some(manager) = manager {
            self.wake(&Key::new(key.namespace, manager));
        }
    }

    /// Tells the controller that a Rollout, or something of it, has changed.
    pub(super) fn wake(&mut self, rollout: &Key) {
        if self.scene.rollouts.items.contains_key(rollout)
            && self.controller.woken.insert(rollout.clone())
        {
            let at = self.now.mono + self.random.span(10, 60);
            self.timers.set(at, Timer::Reconcile(rollout.clone()));
        }
    }
}

fn shared<T>(kind: &Kind<T>, key: &Key) -> Option<Arc<T>> {
    kind.items.get(key).map(|seen| Arc::clone(&seen.value))
}

impl ReplicaSet {
    /// Wanted pods, with the API server's default of 1.
    pub(super) fn wanted(&self) -> u32 {
        self.spec.replicas.unwrap_or(1)
    }
}
