//! Layouts that hold on a real mesh, as plain objects in the order in which to apply them.
//!
//! [`ring`] keeps each zone's clients in their zone and fails over to the next zone and then to
//! all others. [`zone_local`] keeps them in their zone without any failover. In both, every Rollout
//! has a DestinationRule of its own: the Rollouts controller drops all subsets that are not its own
//! (`UpdateHash` in `rollout/trafficrouting/istio/istio.go`), so a shared one ends up empty.
//! [`plain`] splits no traffic: a canary gets its share by its number of pods.

mod gitops;
mod mesh;
mod metrics;
mod spec;
#[cfg(test)]
mod tests;
mod workload;

use serde_json::{Value, json};

pub use gitops::{GitOps, argo_cd_patch, for_gitops};
pub use metrics::with_metrics;
pub use spec::{Spec, SpecError, SpecZone, in_order, zones};

/// Label that tells stable pods from canary pods; the Rollouts controller sets it
/// (`stableMetadata`, `canaryMetadata`) and takes it away at promotion.
pub const ROLE_LABEL: &str = "zone-rollout.io/role";
/// Start of the labels that name a zone and the one it fails over to: `ring-a-b`.
pub const RING_LABEL_PREFIX: &str = "zone-rollout.io/ring-";

/// How a group's traffic is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// [`ring`].
    Ring,
    /// [`zone_local`].
    ZoneLocal,
    /// [`plain`].
    Plain,
}

impl Layout {
    /// The objects, in the order in which to apply them.
    pub fn objects(self, spec: &Spec) -> Vec<Value> {
        match self {
            Self::Ring => ring(spec),
            Self::ZoneLocal => zone_local(spec),
            Self::Plain => plain(spec),
        }
    }

    /// The first minor version of Istio 1 in which it works. The ring needs changed pod labels to
    /// reach the clients at once (istio#50432), the others node labels in `sourceLabels`.
    pub fn first_istio(self) -> u32 {
        match self {
            Self::Ring => 22,
            Self::ZoneLocal | Self::Plain => 18,
        }
    }
}

/// Own zone first, then the next, then all the rest. Needs Istio 1.22 or newer.
///
/// The stable subsets are defined across zones in a base DestinationRule that no Rollout refers to.
/// It has to be the oldest rule of the host, since the oldest definition of a subset wins; it comes
/// before the others in the returned list. The Rollouts name no stable and canary Services: with
/// them, an abort while a stable pod is not Ready keeps the controller writing Services without rest.
pub fn ring(spec: &Spec) -> Vec<Value> {
    let subset =
        |name: &str| json!({"name": name, "labels": {"app": spec.name, ROLE_LABEL: "stable"}});
    let of_zone = |(index, zone): (usize, &SpecZone)| {
        let mut subset = subset(&format!("stable-{}", zone.short));
        subset["trafficPolicy"] = json!({"loadBalancer": {"localityLbSetting": {
            "enabled": true,
            "failoverPriority": [
                format!("{}=true", spec.ring_label(index)),
                format!("topology.kubernetes.io/zone={}", zone.topology),
            ],
        }}});
        subset
    };
    let zones = spec.zones.iter().enumerate();
    let subsets = zones.map(of_zone).chain([subset("stable-any")]).collect();
    let catch_all = json!([{"destination": {"host": spec.host(), "subset": "stable-any"}}]);
    let mut all = spec.services();
    all.push(spec.base_rule(Some(subsets)));
    all.extend(spec.zones.iter().map(|zone| spec.zone_rule(zone, &json!({"app": spec.name}))));
    all.push(spec.virtual_service(&catch_all));
    for (index, zone) in spec.zones.iter().enumerate() {
        let mut rollout = spec.routed_rollout(zone);
        let labels = &mut rollout["spec"]["template"]["metadata"]["labels"];
        labels[spec.ring_label(index)] = json!("true");
        labels[spec.ring_label((index + spec.zones.len() - 1) % spec.zones.len())] = json!("true");
        all.push(rollout);
        all.push(spec.disruption_budget(zone));
    }
    all
}

/// Own zone only, from Istio 1.18. A lost zone answers 503 until its clients are sent elsewhere.
pub fn zone_local(spec: &Spec) -> Vec<Value> {
    let labels = |zone: &SpecZone| json!({"app": spec.name, "zone": zone.short});
    let mut all = spec.services();
    all.push(spec.base_rule(None));
    all.extend(spec.zones.iter().map(|zone| spec.zone_rule(zone, &labels(zone))));
    all.push(spec.virtual_service(&spec.even_catch_all()));
    for zone in &spec.zones {
        all.push(spec.routed_rollout(zone));
        all.push(spec.disruption_budget(zone));
    }
    all
}

/// No traffic routing, from Istio 1.18: Istio prefers each client's own zone and goes to all others
/// if that has no healthy pod. A canary's share is the share of its pods in its zone.
pub fn plain(spec: &Spec) -> Vec<Value> {
    let mut all = spec.services();
    all.push(spec.base_rule(None));
    for zone in &spec.zones {
        all.push(spec.rollout(zone));
        all.push(spec.disruption_budget(zone));
    }
    all
}
