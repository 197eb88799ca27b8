//! How many clients are on the new version: now, and if a zone is lost. Every zone's clients count
//! the same.

use std::collections::BTreeMap;

use crate::group::{Group, ZoneId};
use crate::scene::{Key, Scene};
use crate::traffic::{Client, Loss, flow, host_of};

/// Shares of all clients, from 0 to 1.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Share {
    /// Served by pods on the new version.
    pub new: f64,
    /// Not served at all.
    pub unserved: f64,
}

/// The exposure of a group.
#[derive(Debug, Clone, PartialEq)]
pub struct Exposure {
    /// As things are.
    pub now: Share,
    /// If all pods of this zone were lost and its clients stayed.
    pub if_lost: BTreeMap<ZoneId, Share>,
}

/// Computes the exposure. `targets` is the template hash of the new version in each zone; a zone
/// that is left out runs no pod of it.
///
/// Returns nothing if some zone's topology or host is unknown.
pub fn exposure(
    scene: &Scene,
    group: &Group,
    targets: &BTreeMap<ZoneId, String>,
) -> Option<Exposure> {
    let new_pods = new_pods(scene, group, targets);
    let now = share(scene, group, &new_pods, None)?;
    let if_lost = group
        .zones
        .iter()
        .map(|zone| {
            let lost = Loss::Zone(zone.topology.as_deref()?);
            Some((zone.id.clone(), share(scene, group, &new_pods, Some(lost))?))
        })
        .collect::<Option<_>>()?;
    Some(Exposure { now, if_lost })
}

fn share(scene: &Scene, group: &Group, new_pods: &[Key], loss: Option<Loss<'_>>) -> Option<Share> {
    let mut total = Share::default();
    #[expect(clippy::cast_precision_loss, reason = "no group has 2^52 zones")]
    let weight = 1.0 / group.zones.len() as f64;
    for zone in &group.zones {
        let host = host_of(scene, zone.rollout(scene)?)?;
        let client = Client::in_zone(scene, zone.topology.as_deref()?);
        let flow = flow(scene, &host, &client, loss);
        total.new += weight * flow.share_of(|key| new_pods.contains(key));
        total.unserved += weight * flow.unserved;
    }
    Some(total)
}

fn new_pods(scene: &Scene, group: &Group, targets: &BTreeMap<ZoneId, String>) -> Vec<Key> {
    group
        .zones
        .iter()
        .filter_map(|zone| {
            let hash = targets.get(&zone.id)?;
            let facts = crate::zone::ZoneFacts::gather(scene, zone)?;
            [facts.stable, facts.canary]
                .into_iter()
                .flatten()
                .find(|workload| workload.hash == hash)
        })
        .flat_map(|workload| workload.pods.into_iter().map(|pod| pod.meta.key()))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::group::find_groups;
    use crate::layout::{ring, zone_local};
    use crate::testing::{canary, object, running, scene_of, spec};

    fn told(scene: &Scene) -> String {
        let targets = BTreeMap::from([(ZoneId("a".to_owned()), "v2".to_owned())]);
        let exposure = exposure(scene, &find_groups(scene)[0], &targets).unwrap();
        let percent =
            |share: &Share| format!("{:.1}/{:.1}", share.new * 100.0, share.unserved * 100.0);
        let lost: Vec<String> = exposure
            .if_lost
            .iter()
            .map(|(zone, share)| format!("{zone} {}", percent(share)))
            .collect();
        format!("now {}; lost {}", percent(&exposure.now), lost.join(", "))
    }

    #[test]
    fn a_canary_in_one_zone_exposes_its_weight_there() {
        let mut ring = running(ring(&spec()));
        canary(&mut ring, "a", 20, 1);
        // If zone a is lost, its canary share has nowhere to go.
        assert_eq!(told(&scene_of(&ring)), "now 6.7/0.0; lost a 0.0/6.7, b 6.7/0.0, c 6.7/0.0");
        let mut local = running(zone_local(&spec()));
        canary(&mut local, "a", 20, 1);
        assert_eq!(told(&scene_of(&local)), "now 6.7/0.0; lost a 0.0/33.3, b 6.7/33.3, c 6.7/33.3");
    }

    #[test]
    fn in_the_ring_a_promoted_zone_takes_its_neighbours_clients() {
        let mut ring = running(ring(&spec()));
        let rollout = object(&mut ring, "Rollout", "test-a");
        rollout["status"]["stableRS"] = json!("v1");
        let targets = BTreeMap::from([(ZoneId("a".to_owned()), "v1".to_owned())]);
        let scene = scene_of(&ring);
        let exposure = exposure(&scene, &find_groups(&scene)[0], &targets).unwrap();
        let lost = |zone: &str| exposure.if_lost[&ZoneId(zone.to_owned())].new * 100.0;
        let told = format!(
            "{:.0} {:.0} {:.0} {:.0}",
            exposure.now.new * 100.0,
            lost("a"),
            lost("b"),
            lost("c")
        );
        assert_eq!(told, "33 0 33 67");
    }
}
