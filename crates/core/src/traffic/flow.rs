//! Where the requests of one client go: shares by pod, and the share that is answered with an error.

use std::collections::BTreeMap;

use super::client::Client;
use super::mesh::{Cluster, Mesh};
use crate::scene::{Key, Scene};

/// What is imagined to be lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss<'a> {
    /// All pods in this zone (a value of `topology.kubernetes.io/zone`). Its clients stay.
    Zone(&'a str),
    /// All pods in this zone answer with errors, and those that may be are ejected.
    Failing(&'a str),
}

/// Where a client's requests go. The shares and `unserved` add up to 1.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Flow {
    /// Share by pod that answers; pods without a share are left out.
    pub shares: BTreeMap<Key, f64>,
    /// Share that is answered with an error, by no endpoint or by one that fails.
    pub unserved: f64,
}

/// Computes where the requests of a client to a fully qualified host go.
///
/// If several routes could match, only those count that do not depend on the request.
pub fn flow(scene: &Scene, host: &str, client: &Client, loss: Option<Loss<'_>>) -> Flow {
    let mesh = Mesh::of(scene);
    Flow::over(&mesh.clusters(host, client), client, loss)
}

impl Flow {
    /// The flow over these clusters, whose weights add up to 1.
    pub fn over(clusters: &[(Cluster<'_>, f64)], client: &Client, loss: Option<Loss<'_>>) -> Self {
        let mut flow = Self::default();
        for (cluster, weight) in clusters {
            flow.send(cluster, client, loss, *weight);
        }
        flow
    }

    fn send(
        &mut self,
        cluster: &Cluster<'_>,
        client: &Client,
        loss: Option<Loss<'_>>,
        weight: f64,
    ) {
        let shares = cluster.shares(client, loss);
        let mut served = 0.0;
        for (endpoint, share) in shares {
            let fails = loss.is_some_and(|loss| match loss {
                Loss::Failing(zone) => endpoint.zone.as_deref() == Some(zone),
                Loss::Zone(_) => false,
            });
            if share > 0.0 && !fails {
                served += share;
                *self.shares.entry(endpoint.key.clone()).or_default() += weight * share;
            }
        }
        self.unserved += weight * (1.0 - served).max(0.0);
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
