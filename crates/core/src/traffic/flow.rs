//! Where the requests of one client go: shares by pod, and the share that nobody serves.

use std::collections::BTreeMap;

use super::host::{fully_qualified, service_of};
use super::locality::{self, Labels};
use super::merge::merged_rule;
use crate::group::topology_of;
use crate::scene::{
    HttpMatch, HttpRoute, Key, Pod, REGION_LABEL, Scene, VirtualService, ZONE_LABEL,
};

/// A caller inside the mesh, known by the labels that istiod gives its proxy.
#[derive(Debug, Clone)]
pub struct Client {
    labels: Labels,
}

impl Client {
    /// A client on a node of this zone.
    pub fn in_zone(scene: &Scene, zone: &str) -> Self {
        let mut labels = Labels::from([(ZONE_LABEL.to_owned(), zone.to_owned())]);
        let region = scene
            .nodes
            .iter()
            .filter(|(_, node)| node.zone() == Some(zone))
            .find_map(|(_, node)| node.meta.labels.get(REGION_LABEL));
        labels.extend(region.map(|region| (REGION_LABEL.to_owned(), region.clone())));
        Self { labels }
    }
}

/// What is imagined to be gone.
#[derive(Debug, Clone, Copy)]
pub enum Loss<'a> {
    /// All pods in this zone (a value of `topology.kubernetes.io/zone`). Its clients stay.
    Zone(&'a str),
}

/// Where a client's requests go. The shares and `unserved` add up to 1.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Flow {
    /// Share by pod; pods without a share are left out.
    pub shares: BTreeMap<Key, f64>,
    /// Share that is answered with an error because no endpoint is left.
    pub unserved: f64,
}

/// Computes where the requests of a client to a fully qualified host go.
///
/// If several routes could match, only those count that do not depend on the request.
pub fn flow(scene: &Scene, host: &str, client: &Client, loss: Option<Loss<'_>>) -> Flow {
    let endpoints = Endpoints::of(scene, loss);
    let mut flow = Flow::default();
    for (destination, weight) in destinations(scene, host, client) {
        flow.send(scene, &endpoints, client, &destination, weight);
    }
    flow
}

/// One cluster in Envoy's sense.
struct Cluster {
    host: String,
    /// Empty for the plain host.
    subset: String,
}

/// The clusters a client's requests go to, with weights that add up to 1.
///
/// A client that no route matches is not refused: istiod then installs the plain route of the
/// Service (`BuildSidecarOutboundVirtualHosts`).
fn destinations(scene: &Scene, host: &str, client: &Client) -> Vec<(Cluster, f64)> {
    let plain = || vec![(Cluster { host: host.to_owned(), subset: String::new() }, 1.0)];
    let Some(virtual_service) = virtual_service_for(scene, host) else { return plain() };
    let Some(route) = client_route(virtual_service, client) else { return plain() };
    let weight = |weight: Option<f64>| match route.destinations.len() {
        1 => 1.0,
        _ => weight.unwrap_or(0.0),
    };
    let total: f64 = route.destinations.iter().map(|to| weight(to.weight)).sum();
    route
        .destinations
        .iter()
        .filter(|to| weight(to.weight) > 0.0)
        .map(|to| {
            let host = fully_qualified(&to.destination.host, &virtual_service.meta.namespace);
            let cluster = Cluster { host, subset: to.destination.subset.clone() };
            (cluster, weight(to.weight) / total)
        })
        .collect()
}

/// The VirtualService that sidecars use for a host: the oldest, since sidecars do not merge them.
fn virtual_service_for<'a>(scene: &'a Scene, host: &str) -> Option<&'a VirtualService> {
    scene
        .routes
        .iter()
        .map(|(_, virtual_service)| virtual_service)
        .filter(|virtual_service| {
            let gateways = &virtual_service.spec.gateways;
            let in_mesh = gateways.is_empty() || gateways.iter().any(|name| name == "mesh");
            let namespace = &virtual_service.meta.namespace;
            in_mesh
                && virtual_service
                    .spec
                    .hosts
                    .iter()
                    .any(|name| fully_qualified(name, namespace) == host)
        })
        .min_by_key(|virtual_service| {
            (virtual_service.meta.creation_timestamp, &virtual_service.meta.name)
        })
}

fn client_route<'a>(virtual_service: &'a VirtualService, client: &Client) -> Option<&'a HttpRoute> {
    virtual_service.spec.http.iter().find(|route| {
        route.matches.is_empty() || route.matches.iter().any(|entry| applies(entry, client))
    })
}

/// Mirrors `sourceMatchHTTP` (istio `pilot/pkg/networking/core/route`): with gateways set, source
/// labels are not looked at.
fn applies(entry: &HttpMatch, client: &Client) -> bool {
    if !entry.request.is_empty() {
        return false;
    }
    if !entry.gateways.is_empty() {
        return entry.gateways.iter().any(|name| name == "mesh");
    }
    entry.source_labels.iter().all(|(label, value)| client.labels.get(label) == Some(value))
}

/// The Ready pods of a scene with the labels that istiod sees on them.
struct Endpoints<'a> {
    pods: Vec<(&'a Key, Labels)>,
}

impl<'a> Endpoints<'a> {
    fn of(scene: &'a Scene, loss: Option<Loss<'_>>) -> Self {
        let pods = scene
            .pods
            .iter()
            .filter(|(_, pod)| pod.is_ready())
            .filter_map(|(key, pod)| {
                let zone = pod_zone(scene, pod);
                let gone = loss.is_some_and(|Loss::Zone(lost)| zone.as_deref() == Some(lost));
                (!gone).then(|| (key, augmented(scene, pod, zone)))
            })
            .collect();
        Self { pods }
    }
}

fn augmented(scene: &Scene, pod: &Pod, zone: Option<String>) -> Labels {
    let mut labels = pod.meta.labels.clone();
    if let Some(zone) = zone {
        labels.extend(Client::in_zone(scene, &zone).labels);
    }
    labels
}

/// The zone a pod runs in: its node's, or the one its Rollout is bound to if the node is unknown.
pub fn pod_zone(scene: &Scene, pod: &Pod) -> Option<String> {
    let node = scene.nodes.get(&Key::new("", &pod.spec.node_name));
    node.and_then(|node| node.zone().map(str::to_owned)).or_else(|| {
        let replica_set = scene
            .replica_sets
            .iter()
            .map(|(_, replica_set)| replica_set)
            .find(|replica_set| pod.meta.is_owned_by(&replica_set.meta.uid))?;
        let rollout = scene
            .rollouts
            .iter()
            .map(|(_, rollout)| rollout)
            .find(|rollout| replica_set.meta.is_owned_by(&rollout.meta.uid))?;
        topology_of(rollout)
    })
}

impl Flow {
    fn send(
        &mut self,
        scene: &Scene,
        endpoints: &Endpoints<'_>,
        client: &Client,
        cluster: &Cluster,
        weight: f64,
    ) {
        let merged = merged_rule(scene, &cluster.host);
        let subset = merged.subset(&cluster.subset).map(|effective| effective.subset);
        if subset.is_none() && !cluster.subset.is_empty() {
            // Envoy has no such cluster and answers 503 (NC).
            self.unserved += weight;
            return;
        }
        let selector = service_of(&cluster.host).and_then(|key| scene.services.get(&key));
        let selected = |labels: &Labels| {
            let wanted = subset.map(|subset| &subset.labels).into_iter().flatten();
            let wanted =
                wanted.chain(selector.map(|service| &service.spec.selector).into_iter().flatten());
            wanted.into_iter().all(|(label, value)| labels.get(label) == Some(value))
        };
        let members: Vec<&(&Key, Labels)> =
            endpoints.pods.iter().filter(|(_, labels)| selected(labels)).collect();
        let labels: Vec<&Labels> = members.iter().map(|(_, labels)| labels).collect();
        let shares = locality::shares(&merged.policy(subset), &client.labels, &labels);
        self.unserved += weight * (1.0 - shares.iter().sum::<f64>()).max(0.0);
        for ((key, _), share) in members.iter().zip(shares) {
            if share > 0.0 {
                *self.shares.entry((*key).clone()).or_default() += weight * share;
            }
        }
    }

    /// The share that goes to pods for which `wanted` is true.
    pub fn share_of(&self, wanted: impl Fn(&Key) -> bool) -> f64 {
        self.shares.iter().filter(|(key, _)| wanted(key)).map(|(_, share)| share).sum()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::layout::{ring, zone_local};
    use crate::testing::{object, running, scene_of, spec};

    const HOST: &str = "test.default.svc.cluster.local";

    /// Shares of a zone-a client, in percent: by zone and version, errors last.
    fn summary(scene: &Scene, loss: Option<Loss<'_>>) -> String {
        let flow = flow(scene, HOST, &Client::in_zone(scene, "us-east-1a"), loss);
        let mut by_name: BTreeMap<String, f64> = BTreeMap::new();
        for (key, share) in &flow.shares {
            let name = key.name.rsplit_once('-').unwrap().0.to_owned();
            *by_name.entry(name).or_default() += share * 100.0;
        }
        let mut parts: Vec<String> =
            by_name.iter().map(|(name, share)| format!("{name} {share:.0}")).collect();
        if flow.unserved > 0.0 {
            parts.push(format!("unserved {:.0}", flow.unserved * 100.0));
        }
        parts.join(", ")
    }

    #[test]
    fn the_ring_serves_its_own_zone_and_then_the_next() {
        let scene = scene_of(&running(ring(&spec())));
        assert_eq!(summary(&scene, None), "test-a-v1 100");
        assert_eq!(summary(&scene, Some(Loss::Zone("us-east-1a"))), "test-b-v1 100");
    }

    #[test]
    fn zone_local_does_not_fail_over() {
        let scene = scene_of(&running(zone_local(&spec())));
        assert_eq!(summary(&scene, None), "test-a-v1 100");
        assert_eq!(summary(&scene, Some(Loss::Zone("us-east-1a"))), "unserved 100");
    }

    #[test]
    fn an_emptied_rule_serves_nobody() {
        let mut objects = running(zone_local(&spec()));
        object(&mut objects, "DestinationRule", "test-a")["spec"]["subsets"] = json!([]);
        assert_eq!(summary(&scene_of(&objects), None), "unserved 100");
    }

    #[test]
    fn without_a_matching_route_all_pods_answer() {
        let mut objects = running(ring(&spec()));
        let http = &mut object(&mut objects, "VirtualService", "test")["spec"]["http"];
        *http = json!([http[1].clone()]);
        object(&mut objects, "DestinationRule", "test")["spec"]["trafficPolicy"] = json!({});
        assert_eq!(summary(&scene_of(&objects), None), "test-a-v1 33, test-b-v1 33, test-c-v1 33");
    }

    #[test]
    fn a_pod_that_is_not_ready_gets_nothing() {
        let mut objects = running(ring(&spec()));
        for pod in 0..3 {
            let pod = object(&mut objects, "Pod", &format!("test-a-v1-{pod}"));
            pod["status"]["conditions"] = json!([{"type": "Ready", "status": "False"}]);
        }
        assert_eq!(summary(&scene_of(&objects), None), "test-b-v1 100");
    }
}
