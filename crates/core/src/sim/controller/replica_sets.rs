//! ReplicaSets of a Rollout: finding and making them, and how many pods each gets.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::Sync;
use super::pauses::INCONCLUSIVE;
use super::template::template_hash;
use crate::scene::{Key, Meta, OwnerReference, POD_HASH_LABEL, ReplicaSet, Rollout};
use crate::sim::{By, World};

const REVISION: &str = "rollout.argoproj.io/revision";
const DESIRED: &str = "rollout.argoproj.io/desired-replicas";
const DEADLINE: &str = "scale-down-deadline";
/// How long pods stay after a promotion or an abort, unless the Rollout says otherwise.
const SCALE_DOWN_DELAY: u32 = 30;

impl World {
    /// The ReplicaSet of the wanted template, and whether it had to be made: without pods
    /// (`FindNewReplicaSet`, `createDesiredReplicaSet`). It gets the highest revision.
    pub(super) fn desired_replica_set(&mut self, rollout: &Rollout) -> (Key, bool) {
        let all = self.replica_sets_of(rollout);
        let wanted = &rollout.spec.template;
        let known = all.iter().find(|key| self.templates.get(*key) == Some(wanted)).cloned();
        let others = all.iter().filter(|key| Some(*key) != known.as_ref());
        let revisions =
            others.filter_map(|key| self.replica_set(key)).map(|other| other.revision());
        let revision = revisions.max().unwrap_or(0) + 1;
        if let Some(key) = known {
            self.revise(&key, revision);
            return (key, false);
        }
        let replica_set = self.new_replica_set(rollout, revision);
        let key = replica_set.meta.key();
        self.templates.insert(key.clone(), wanted.clone());
        self.put_replica_set(By::Controller, replica_set);
        (key, true)
    }

    /// `syncReplicaSetRevision`
    fn revise(&mut self, key: &Key, revision: u64) {
        let Some(replica_set) = self.replica_set(key) else { return };
        if replica_set.revision() < revision {
            let mut replica_set = Arc::unwrap_or_clone(replica_set);
            replica_set.meta.annotations.insert(REVISION.to_owned(), revision.to_string());
            self.put_replica_set(By::Controller, replica_set);
        }
    }

    fn new_replica_set(&self, rollout: &Rollout, revision: u64) -> ReplicaSet {
        let hash = template_hash(&rollout.spec.template);
        let name = format!("{}-{hash}", rollout.meta.name);
        let mut replica_set = ReplicaSet::default();
        replica_set.spec.template = rollout.spec.template.clone();
        replica_set.spec.template["metadata"]["labels"][POD_HASH_LABEL] = json!(hash);
        replica_set.spec.replicas = Some(0);
        let owner = OwnerReference {
            kind: "Rollout".to_owned(),
            name: rollout.meta.name.clone(),
            uid: rollout.meta.uid.clone(),
        };
        replica_set.meta = Meta {
            uid: name.clone(),
            name,
            namespace: rollout.meta.namespace.clone(),
            creation_timestamp: Some(self.stamp()),
            labels: [(POD_HASH_LABEL.to_owned(), hash)].into(),
            annotations: [
                (REVISION.to_owned(), revision.to_string()),
                (DESIRED.to_owned(), rollout.replicas().to_string()),
            ]
            .into(),
            owner_references: vec![owner],
            ..Meta::default()
        };
        replica_set
    }

    /// `GetStableRS` (`utils/replicaset/canary.go`).
    pub(in crate::sim) fn stable_replica_set(&self, rollout: &Rollout) -> Option<Key> {
        let hash = &rollout.status.stable_rs;
        let of = |key: &Key| self.replica_set(key).is_some_and(|found| found.hash() == hash);
        self.replica_sets_of(rollout).into_iter().find(|key| !hash.is_empty() && of(key))
    }
}

impl ReplicaSet {
    /// Its revision; 0 without one.
    pub(in crate::sim) fn revision(&self) -> u64 {
        self.meta.annotations.get(REVISION).and_then(|text| text.parse().ok()).unwrap_or(0)
    }

    fn deadline(&self) -> Option<Timestamp> {
        self.meta.annotations.get(DEADLINE)?.parse().ok()
    }

    pub(super) fn has_deadline(&self) -> bool {
        self.meta.annotations.contains_key(DEADLINE)
    }
}

impl Sync<'_> {
    /// Pods for the canary at this step (`CalculateReplicaCountsForTrafficRoutedCanary`,
    /// `GetCanaryReplicasOrWeight`): the share of traffic, rounded up.
    pub(super) fn canary_count(&self) -> u32 {
        let (rollout, status) = (&self.rollout, &self.rollout.status);
        let replicas = rollout.replicas();
        if status.promote_full || status.stable_rs.is_empty() || rollout.is_fully_promoted() {
            return replicas;
        }
        let number = |field: &str| {
            let value = rollout.canary_scale()?.get(field)?.as_u64()?;
            u32::try_from(value).ok()
        };
        number("replicas").unwrap_or_else(|| {
            let weight = number("weight").unwrap_or_else(|| rollout.desired_weight());
            (weight * replicas).div_ceil(100)
        })
    }

    /// `AtDesiredReplicaCountsForCanary`: the canary has all its pods, available; stable has all its
    /// pods, available or not.
    pub(super) fn at_desired_counts(&self) -> bool {
        let (new, canary) = (self.target(), self.canary_count());
        let replicas = self.rollout.replicas();
        new.wanted() == canary
            && new.status.available_replicas == canary
            && self.stable().is_some_and(|stable| {
                stable.wanted() == replicas && stable.status.replicas == Some(replicas)
            })
    }

    /// `isScalingEvent` (`rollout/sync.go`).
    pub(super) fn is_scaling_event(&self) -> bool {
        let wanted = self.rollout.replicas().to_string();
        [Some(self.target()), self.stable()].into_iter().flatten().any(|replica_set| {
            replica_set.wanted() > 0
                && replica_set.meta.annotations.get(DESIRED).is_some_and(|known| *known != wanted)
        })
    }

    /// `reconcileCanaryReplicaSets`; true if something was scaled. A manual pause and an analysis
    /// without a verdict freeze all of it (`haltProgress`).
    pub(super) fn reconcile_replica_sets(&mut self) -> bool {
        let inconclusive =
            self.rollout.status.pause_conditions.iter().any(|pause| pause.reason == INCONCLUSIVE);
        if self.rollout.spec.paused || inconclusive {
            return false;
        }
        self.remove_deadlines();
        self.reconcile_stable() || self.reconcile_new() || self.reconcile_others()
    }

    fn reconcile_stable(&mut self) -> bool {
        let replicas = self.rollout.replicas();
        match self.stable.clone().filter(|stable| *stable != self.target) {
            Some(stable) => self.scale(&stable, replicas),
            None => false,
        }
    }

    /// `reconcileNewReplicaSet`: an aborted canary keeps its pods for a while, counted from the moment
    /// at which stable has all of its own.
    fn reconcile_new(&mut self) -> bool {
        let (new, mut wanted) = (self.target(), self.canary_count());
        if self.delays_scale_down() {
            if let Some(deadline) = new.deadline() {
                if let Some(left) = self.until(deadline) {
                    self.again(left);
                    return false;
                }
                wanted = 0;
            } else {
                let all = self.rollout.replicas();
                if self.stable().is_some_and(|stable| stable.status.available_replicas == all) {
                    let delay = self.canary_delay();
                    self.add_deadline(&self.target.clone(), delay);
                }
                return false;
            }
        }
        self.scale(&self.target.clone(), wanted)
    }

    /// `shouldDelayScaleDownOnAbort`
    fn delays_scale_down(&self) -> bool {
        self.is_aborted() && self.stable.is_some() && self.canary_delay() > 0
    }

    fn canary_delay(&self) -> u32 {
        let canary = self.rollout.spec.strategy.canary.as_ref();
        canary.and_then(|canary| canary.abort_scale_down_delay_seconds).unwrap_or(SCALE_DOWN_DELAY)
    }

    fn stable_delay(&self) -> u32 {
        let canary = self.rollout.spec.strategy.canary.as_ref();
        canary.and_then(|canary| canary.scale_down_delay_seconds).unwrap_or(SCALE_DOWN_DELAY)
    }

    /// `scaleDownOldReplicaSetsForCanary`: the stable ReplicaSet of before goes after its delay, one
    /// in between at once, one that traffic still refers to not at all.
    fn reconcile_others(&mut self) -> bool {
        let mut scaled = false;
        for key in self.others() {
            let Some(other) = self.world.replica_set(&key) else { continue };
            if other.wanted() == 0 || self.is_referenced(&other) {
                continue;
            }
            let waits = self.rollout.is_fully_promoted() || other.has_deadline();
            let delay = self.stable_delay();
            if waits && delay > 0 {
                match other.deadline() {
                    None => {
                        self.add_deadline(&key, delay);
                        continue;
                    }
                    Some(deadline) => {
                        if let Some(left) = self.until(deadline) {
                            self.again(left);
                            continue;
                        }
                    }
                }
            }
            scaled |= self.scale(&key, 0);
        }
        scaled
    }

    /// `isReplicaSetReferenced`
    fn is_referenced(&self, replica_set: &ReplicaSet) -> bool {
        let hash = replica_set.hash();
        let status = &self.rollout.status;
        let by_weights = status.canary.weights.as_ref().is_some_and(|weights| {
            [&weights.canary, &weights.stable].iter().any(|side| side.pod_template_hash == hash)
        });
        let rule = self.rollout.destination_rule().and_then(|rule| {
            self.world.scene.rules.get(&Key::new(&self.rollout.meta.namespace, &rule.name))
        });
        let by_rule = rule.is_some_and(|rule| {
            let mut subsets = rule.spec.subsets.iter();
            subsets.any(|subset| subset.labels.get(POD_HASH_LABEL).is_some_and(|own| own == hash))
        });
        status.stable_rs == hash || status.current_pod_hash == hash || by_weights || by_rule
    }

    /// `removeScaleDownDeadlines`
    fn remove_deadlines(&mut self) {
        let new = (!self.delays_scale_down()).then(|| self.target.clone());
        for key in new.into_iter().chain(self.stable.clone()) {
            let Some(replica_set) = self.world.replica_set(&key) else { continue };
            if replica_set.has_deadline() {
                let mut replica_set = Arc::unwrap_or_clone(replica_set);
                replica_set.meta.annotations.remove(DEADLINE);
                self.world.put_replica_set(By::Controller, replica_set);
            }
        }
    }

    fn add_deadline(&mut self, key: &Key, seconds: u32) {
        let Some(replica_set) = self.world.replica_set(key) else { return };
        let mut replica_set = Arc::unwrap_or_clone(replica_set);
        let deadline = self.world.stamp() + SignedDuration::from_secs(seconds.into());
        replica_set.meta.annotations.insert(DEADLINE.to_owned(), deadline.to_string());
        self.world.put_replica_set(By::Controller, replica_set);
        self.again(Duration::from_secs(seconds.into()));
    }

    fn until(&self, deadline: Timestamp) -> Option<Duration> {
        let left = Duration::try_from(deadline.duration_since(self.world.now.wall)).ok()?;
        (!left.is_zero()).then_some(left)
    }

    /// `scaleReplicaSetAndRecordEvent`
    fn scale(&mut self, key: &Key, wanted: u32) -> bool {
        let Some(replica_set) = self.world.replica_set(key) else { return false };
        let desired = self.rollout.replicas().to_string();
        let resized = replica_set.wanted() != wanted;
        if !resized && replica_set.meta.annotations.get(DESIRED) == Some(&desired) {
            return false;
        }
        let mut replica_set = Arc::unwrap_or_clone(replica_set);
        replica_set.meta.annotations.insert(DESIRED.to_owned(), desired);
        if wanted == 0 {
            replica_set.meta.annotations.remove(DEADLINE);
        }
        self.world.scale(key, replica_set, wanted);
        resized
    }
}
