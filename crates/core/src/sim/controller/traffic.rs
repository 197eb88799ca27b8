//! Traffic: the weight that is wanted, the gates in front of it, and the mesh objects it is written
//! into.

use std::time::Duration;

use super::{Halt, Sync};
use crate::scene::{
    DestinationRule, Key, POD_HASH_LABEL, ReplicaSet, TrafficWeights, VirtualService,
    WeightDestination,
};
use crate::sim::By;
use crate::sim::objects::MANAGED_BY;
use crate::traffic::rollout_routes;

/// How far the controller's cache may be behind: a mesh object that changed within this span is
/// refused as a conflict (409), since mesh objects are replaced as a whole.
const BEHIND: Duration = Duration::from_millis(8);

impl Sync<'_> {
    /// `reconcileTrafficRouting` (`rollout/trafficrouting.go`).
    pub(super) fn reconcile_traffic(&mut self) -> Result<(), Halt> {
        let (new, weight) = (self.target(), self.wanted_weight());
        let Some(stable) = self.stable() else {
            // `checkReplicasAvailable` without a stable ReplicaSet.
            return Ok(());
        };
        if stable.status.available_replicas < (100 - weight) * self.rollout.replicas() / 100 {
            return Ok(());
        }
        let weights = self.rollout.status.canary.weights.as_ref();
        if new.status.available_replicas == 0
            && weights.is_some_and(|weights| weights.canary.weight > 0)
        {
            self.write_weight(weight)?;
        }
        if self.delays_rule(&new, &stable) {
            return Err(Halt);
        }
        self.write_rule(new.hash(), stable.hash())?;
        self.write_weight(weight)?;
        let side = |weight: u32, hash: &str| WeightDestination {
            weight,
            pod_template_hash: hash.to_owned(),
        };
        self.next.canary.weights = Some(TrafficWeights {
            canary: side(weight, new.hash()),
            stable: side(100 - weight, stable.hash()),
        });
        Ok(())
    }

    /// The weight of the canary: none at rest, aborted or without pods; the one before while pods are
    /// missing; else the one of the step.
    fn wanted_weight(&self) -> u32 {
        let (rollout, status) = (&self.rollout, &self.rollout.status);
        let no_pods = self.target().status.available_replicas == 0;
        if rollout.is_fully_promoted() || self.is_aborted() || no_pods || rollout.steps().is_empty()
        {
            return 0;
        }
        if status.promote_full {
            return status.canary.weights.as_ref().map_or(0, |weights| weights.canary.weight);
        }
        let index = rollout.step_index();
        if self.at_desired_counts() {
            return rollout.weight_at(index);
        }
        // The weight that belongs to the steps before this one.
        if index == 0 { 0 } else { rollout.weight_at(index.min(rollout.steps().len()) - 1) }
    }

    /// `shouldDelayDestinationRuleUpdate`: without stable and canary Services, the rule is not touched
    /// while a ReplicaSet lacks pods, and nothing after that is done either.
    fn delays_rule(&self, new: &ReplicaSet, stable: &ReplicaSet) -> bool {
        let canary = self.rollout.spec.strategy.canary.as_ref();
        if canary.is_some_and(|canary| {
            canary.canary_service.is_some() || canary.stable_service.is_some()
        }) {
            return false;
        }
        let short =
            |replica_set: &ReplicaSet| replica_set.wanted() > replica_set.status.available_replicas;
        short(stable) || (short(new) && !self.rollout.status.abort)
    }

    /// `UpdateHash` (`rollout/trafficrouting/istio/istio.go`): all subsets that are not its own go.
    fn write_rule(&mut self, canary_hash: &str, stable_hash: &str) -> Result<(), Halt> {
        let Some(own) = self.rollout.destination_rule() else { return Ok(()) };
        let key = Key::new(&self.rollout.meta.namespace, &own.name);
        let Some(before) = self.world.scene.rules.get(&key) else { return Err(Halt) };
        let mut rule: DestinationRule = before.clone();
        rule.meta.annotations.insert(MANAGED_BY.to_owned(), self.rollout.meta.name.clone());
        rule.spec.subsets.retain_mut(|subset| {
            let hash = if subset.name == own.canary_subset_name {
                canary_hash
            } else if subset.name == own.stable_subset_name {
                stable_hash
            } else {
                return false;
            };
            subset.labels.insert(POD_HASH_LABEL.to_owned(), hash.to_owned());
            true
        });
        if rule != *before {
            self.fresh(&key)?;
            self.world.put_rule(By::Controller, rule);
        }
        Ok(())
    }

    /// `SetWeight`: the two destinations of each of its routes.
    fn write_weight(&mut self, weight: u32) -> Result<(), Halt> {
        let routes = rollout_routes(&self.world.scene, &self.rollout).map_err(|_| Halt)?;
        let places: Vec<(Key, usize, usize, usize)> = routes
            .into_iter()
            .map(|route| (route.virtual_service, route.index, route.stable, route.canary))
            .collect();
        for (key, index, stable, canary) in places {
            let Some(before) = self.world.scene.routes.get(&key) else { return Err(Halt) };
            let mut after: VirtualService = before.clone();
            let route = &mut after.spec.http[index];
            route.weigh(stable, 100 - weight);
            route.weigh(canary, weight);
            if route.destinations != before.spec.http[index].destinations {
                self.fresh(&key)?;
                self.world.put_route(By::Controller, after);
            }
        }
        Ok(())
    }

    /// Fails if somebody else has just changed this object.
    fn fresh(&mut self, mesh_object: &Key) -> Result<(), Halt> {
        let now = self.world.now.mono;
        let controller = &mut self.world.controller;
        let changed = controller.changed.get(mesh_object);
        if changed.is_some_and(|at| at.mono < now && now < at.mono + BEHIND) {
            controller.conflicts += 1;
            return Err(Halt);
        }
        Ok(())
    }
}
