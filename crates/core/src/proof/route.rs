//! Whether a zone's route reaches its target pods, and no others of the zone.

use super::Unmet;
use crate::scene::{Key, Scene};
use crate::traffic::{Client, RolloutRoute, RouteGap, flow, host_of, merged_rule, rollout_routes};
use crate::zone::{Workload, ZoneFacts};

/// What the route of a zone on the new template lacks; empty if all is as it should be.
///
/// One rule for all layouts: every Ready target pod gets traffic of the zone's clients, and no other
/// pod of the zone does. With zone-local subsets that means the hashes are right, in the ring that
/// the role labels are, and without routing that no old pod is left.
pub(super) fn unmet_route(
    scene: &Scene,
    facts: &ZoneFacts<'_>,
    target: &Workload<'_>,
    all_of_zone: &[Key],
) -> Vec<Unmet> {
    let routes = match rollout_routes(scene, facts.rollout) {
        Ok(routes) => routes,
        // Without routing, traffic goes where the Service's selector points.
        Err(RouteGap::NotRouted) => {
            return host_of(scene, facts.rollout)
                .and_then(|host| reach(scene, facts, target, all_of_zone, &host))
                .into_iter()
                .collect();
        }
        Err(gap) => return vec![Unmet::Route(gap)],
    };
    let weight = routes.iter().map(RolloutRoute::canary_weight).max().unwrap_or(0);
    if weight > 0 {
        return vec![Unmet::Weight { in_force: weight }];
    }
    routes
        .iter()
        .flat_map(|route| {
            shadowed_base(scene, facts, route).into_iter().chain(reach(
                scene,
                facts,
                target,
                all_of_zone,
                &route.host,
            ))
        })
        .collect()
}

/// A stable subset that is defined twice is meant to be the shared one (the ring's base rule). If
/// the Rollout's own rule is the older one, it wins, and there is no failover any more.
fn shadowed_base(scene: &Scene, facts: &ZoneFacts<'_>, route: &RolloutRoute<'_>) -> Option<Unmet> {
    let own = facts.rollout.destination_rule()?;
    let effective = merged_rule(scene, &route.host).subset(&own.stable_subset_name)?;
    let base = effective.shadowed.first()?;
    (effective.rule.meta.name == own.name).then(|| Unmet::BaseRuleShadowed {
        subset: own.stable_subset_name.clone(),
        base: base.meta.name.clone(),
        winner: own.name.clone(),
    })
}

fn reach(
    scene: &Scene,
    facts: &ZoneFacts<'_>,
    target: &Workload<'_>,
    all_of_zone: &[Key],
    host: &str,
) -> Option<Unmet> {
    let topology = facts.zone.topology.as_deref()?;
    let flow = flow(scene, host, &Client::in_zone(scene, topology), None);
    let is_target = |key: &Key| target.pods.iter().any(|pod| pod.meta.key() == *key);
    let missed: Vec<Key> = target
        .pods
        .iter()
        .filter(|pod| pod.is_ready())
        .map(|pod| pod.meta.key())
        .filter(|key| !flow.shares.contains_key(key))
        .collect();
    let others: Vec<Key> = flow
        .shares
        .keys()
        .filter(|key| all_of_zone.contains(key) && !is_target(key))
        .cloned()
        .collect();
    if flow.unserved > 0.0 {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 100")]
        let percent = (flow.unserved * 100.0).round() as u32;
        Some(Unmet::Unserved { percent })
    } else if !others.is_empty() {
        Some(Unmet::ReachesOthers { pods: others })
    } else if missed.is_empty() {
        None
    } else {
        Some(Unmet::MissesPods { pods: missed })
    }
}
