//! Layouts that hold on a real mesh, as plain objects in the order in which to apply them.
//!
//! [`ring`] keeps each zone's clients in their zone and fails over to the next zone and then to
//! all others. [`zone_local`] keeps them in their zone without any failover. In both, every Rollout
//! has a DestinationRule of its own: the Rollouts controller drops all subsets that are not its own
//! (`UpdateHash` in `rollout/trafficrouting/istio/istio.go`), so a shared one ends up empty.

mod objects;

use serde_json::{Value, json};

pub use objects::{RING_LABEL_PREFIX, ROLE_LABEL};

/// What to generate a layout from.
#[derive(Debug, Clone)]
pub struct Spec {
    /// Name of the service; Rollouts are called `NAME-ZONE`.
    pub name: String,
    /// Namespace of all objects.
    pub namespace: String,
    /// Image of the one container.
    pub image: String,
    /// Zones in the order of the ring and of a promotion; at least two.
    pub zones: Vec<SpecZone>,
    /// Pods in each zone.
    pub replicas: u32,
    /// Port of the Service.
    pub port: u16,
    /// Port of the container.
    pub target_port: u16,
    /// Whether each zone waits at `pause: {}` before its first weight.
    pub gate: bool,
    /// Weights in percent, ascending.
    pub weights: Vec<u32>,
    /// Pause after each weight, as Argo Rollouts reads it: `5m`.
    pub pause: String,
    /// Seconds without progress until a Rollout counts as stuck.
    pub progress_deadline_seconds: u32,
    /// Version of `networking.istio.io` to write: `v1` from Istio 1.22, else `v1beta1`.
    pub istio_api_version: String,
}

/// A zone of a layout.
#[derive(Debug, Clone)]
pub struct SpecZone {
    /// Short name, part of object names: `a`.
    pub short: String,
    /// Value of `topology.kubernetes.io/zone` on its nodes: `us-east-1a`.
    pub topology: String,
}

/// Own zone first, then the next, then all the rest. Needs Istio 1.22 or newer.
///
/// The stable subsets are defined across zones in a base DestinationRule that no Rollout refers to.
/// It has to be the oldest rule of the host, since the oldest definition of a subset wins; it comes
/// first in the returned list. The Rollouts name no stable and canary Services: with them, an abort
/// while a stable pod is not Ready keeps the controller writing Services without rest.
pub fn ring(spec: &Spec) -> Vec<Value> {
    let base_subsets = spec
        .zones
        .iter()
        .enumerate()
        .map(|(index, zone)| {
            json!({
                "name": format!("stable-{}", zone.short),
                "labels": {"app": spec.name, ROLE_LABEL: "stable"},
                "trafficPolicy": {"loadBalancer": {"localityLbSetting": {
                    "enabled": true,
                    "failoverPriority": [
                        format!("{}=true", spec.ring_label(index)),
                        format!("topology.kubernetes.io/zone={}", zone.topology),
                    ],
                }}},
            })
        })
        .chain([json!({
            "name": "stable-any",
            "labels": {"app": spec.name, ROLE_LABEL: "stable"},
        })])
        .collect();
    let catch_all = json!([{"destination": {"host": spec.host(), "subset": "stable-any"}}]);
    let mut all = vec![spec.service(), spec.base_rule(Some(base_subsets))];
    all.extend(spec.zones.iter().map(|zone| spec.zone_rule(zone, &json!({"app": spec.name}))));
    all.push(spec.virtual_service(&catch_all));
    for (index, zone) in spec.zones.iter().enumerate() {
        let mut rollout = spec.rollout(zone);
        let labels = &mut rollout["spec"]["template"]["metadata"]["labels"];
        labels[spec.ring_label(index)] = json!("true");
        labels[spec.ring_label((index + spec.zones.len() - 1) % spec.zones.len())] = json!("true");
        let canary = &mut rollout["spec"]["strategy"]["canary"];
        canary["stableMetadata"] = json!({"labels": {ROLE_LABEL: "stable"}});
        canary["canaryMetadata"] = json!({"labels": {ROLE_LABEL: "canary"}});
        all.push(rollout);
        all.push(spec.disruption_budget(zone));
    }
    all
}

/// Own zone only, from Istio 1.18. A lost zone answers 503 until its clients are sent elsewhere.
pub fn zone_local(spec: &Spec) -> Vec<Value> {
    let mut all = vec![spec.service(), spec.base_rule(None)];
    all.extend(
        spec.zones
            .iter()
            .map(|zone| spec.zone_rule(zone, &json!({"app": spec.name, "zone": zone.short}))),
    );
    all.push(spec.virtual_service(&spec.even_catch_all()));
    for zone in &spec.zones {
        all.push(spec.rollout(zone));
        all.push(spec.disruption_budget(zone));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::spec;

    fn named<'a>(objects: &'a [Value], kind: &str, name: &str) -> &'a Value {
        objects
            .iter()
            .find(|object| object["kind"] == kind && object["metadata"]["name"] == name)
            .unwrap_or_else(|| panic!("{kind} {name}"))
    }

    #[test]
    fn a_pod_carries_the_ring_labels_of_its_own_and_the_previous_zone() {
        let objects = ring(&spec());
        let labels = |zone: &str| {
            let rollout = named(&objects, "Rollout", &format!("test-{zone}"));
            let labels = rollout["spec"]["template"]["metadata"]["labels"].as_object().unwrap();
            labels.keys().filter(|key| key.contains("ring-")).cloned().collect::<Vec<_>>()
        };
        assert_eq!(labels("a"), ["zone-rollout.io/ring-a-b", "zone-rollout.io/ring-c-a"]);
        assert_eq!(labels("b"), ["zone-rollout.io/ring-a-b", "zone-rollout.io/ring-b-c"]);
        assert_eq!(labels("c"), ["zone-rollout.io/ring-b-c", "zone-rollout.io/ring-c-a"]);
    }

    #[test]
    fn the_base_rule_comes_before_every_other_rule() {
        for objects in [ring(&spec()), zone_local(&spec())] {
            let rules: Vec<&str> = objects
                .iter()
                .filter(|object| object["kind"] == "DestinationRule")
                .map(|rule| rule["metadata"]["name"].as_str().unwrap())
                .collect();
            assert_eq!(rules, ["test", "test-a", "test-b", "test-c"]);
        }
    }

    #[test]
    fn weights_of_the_catch_all_add_up() {
        for zones in 2..=7 {
            let mut spec = spec();
            spec.zones = (0..zones)
                .map(|index| SpecZone {
                    short: format!("z{index}"),
                    topology: format!("region-z{index}"),
                })
                .collect();
            let objects = zone_local(&spec);
            let http = named(&objects, "VirtualService", "test")["spec"]["http"].clone();
            let last = http.as_array().unwrap().last().unwrap();
            let sum: u64 = last["route"]
                .as_array()
                .unwrap()
                .iter()
                .map(|to| to["weight"].as_u64().unwrap())
                .sum();
            assert_eq!(sum, 100);
        }
    }
}
