//! The objects that the layouts share.

use serde_json::{Value, json};

use super::{Spec, SpecZone};

/// Label that tells stable pods from canary pods; the Rollouts controller sets it
/// (`stableMetadata`, `canaryMetadata`) and takes it away at promotion.
pub const ROLE_LABEL: &str = "zone-rollout.io/role";
/// Start of the labels that name a zone and the one it fails over to: `ring-a-b`.
pub const RING_LABEL_PREFIX: &str = "zone-rollout.io/ring-";

impl Spec {
    /// The fully qualified host. Short names are resolved in each object's own namespace.
    pub(super) fn host(&self) -> String {
        format!("{}.{}.svc.cluster.local", self.name, self.namespace)
    }

    /// The label shared by the zone at `index` and the next one in the ring, and by no other.
    pub(super) fn ring_label(&self, index: usize) -> String {
        let next = &self.zones[(index + 1) % self.zones.len()];
        format!("{RING_LABEL_PREFIX}{}-{}", self.zones[index].short, next.short)
    }

    fn object(&self, api_version: &str, kind: &str, name: &str, spec: &Value) -> Value {
        json!({
            "apiVersion": api_version,
            "kind": kind,
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": spec,
        })
    }

    fn istio_object(&self, kind: &str, name: &str, spec: &Value) -> Value {
        let api_version = format!("networking.istio.io/{}", self.istio_api_version);
        self.object(&api_version, kind, name, spec)
    }

    pub(super) fn service(&self) -> Value {
        self.object(
            "v1",
            "Service",
            &self.name,
            &json!({
                "selector": {"app": self.name},
                "ports": [{"name": "http", "port": self.port, "targetPort": self.target_port}],
            }),
        )
    }

    /// The rule with the policy for all subsets; no Rollout refers to it, so none rewrites it.
    pub(super) fn base_rule(&self, subsets: Option<Vec<Value>>) -> Value {
        let mut spec = json!({
            "host": self.host(),
            "trafficPolicy": {
                // Without it an unreachable zone costs Istio's default of 10 s for each attempt.
                "connectionPool": {"tcp": {"connectTimeout": "1s"}},
                "outlierDetection": {
                    "consecutive5xxErrors": 3,
                    "interval": "2s",
                    "baseEjectionTime": "10s",
                    // Envoy's default of 10 % never ejects a whole zone.
                    "maxEjectionPercent": 100,
                },
            },
        });
        if let Some(subsets) = subsets {
            spec["subsets"] = Value::Array(subsets);
        }
        self.istio_object("DestinationRule", &self.name, &spec)
    }

    /// The rule whose two subsets belong to the zone's Rollout.
    pub(super) fn zone_rule(&self, zone: &SpecZone, labels: &Value) -> Value {
        let subset =
            |role: &str| json!({"name": format!("{role}-{}", zone.short), "labels": labels});
        self.istio_object(
            "DestinationRule",
            &format!("{}-{}", self.name, zone.short),
            &json!({"host": self.host(), "subsets": [subset("stable"), subset("canary")]}),
        )
    }

    /// A route for each zone's clients and one for everybody else.
    pub(super) fn virtual_service(&self, catch_all: &Value) -> Value {
        let destination = |role: &str, zone: &SpecZone, weight: u32| {
            json!({
                "destination": {"host": self.host(), "subset": format!("{role}-{}", zone.short)},
                "weight": weight,
            })
        };
        let zone_route = |zone: &SpecZone| {
            json!({
                "name": route_name(zone),
                "match": [{"sourceLabels": {"topology.kubernetes.io/zone": zone.topology}}],
                "route": [destination("stable", zone, 100), destination("canary", zone, 0)],
            })
        };
        let routes: Vec<Value> = self
            .zones
            .iter()
            .map(zone_route)
            .chain([json!({"name": "catch-all", "route": catch_all})])
            .collect();
        self.istio_object(
            "VirtualService",
            &self.name,
            &json!({"hosts": [self.host()], "http": routes}),
        )
    }

    /// Clients outside all zones, spread evenly over the zones' stable pods.
    pub(super) fn even_catch_all(&self) -> Value {
        let count = self.zones.len();
        let weight = |index: usize| 100 / count + usize::from(index < 100 % count);
        self.zones
            .iter()
            .enumerate()
            .map(|(index, zone)| {
                json!({
                    "destination": {
                        "host": self.host(),
                        "subset": format!("stable-{}", zone.short),
                    },
                    "weight": weight(index),
                })
            })
            .collect()
    }

    pub(super) fn rollout(&self, zone: &SpecZone) -> Value {
        let labels = json!({"app": self.name, "zone": zone.short});
        self.object(
            "argoproj.io/v1alpha1",
            "Rollout",
            &format!("{}-{}", self.name, zone.short),
            &json!({
                "replicas": self.replicas,
                "progressDeadlineSeconds": self.progress_deadline_seconds,
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {
                        "affinity": node_affinity(zone),
                        "containers": [{
                            "name": "app",
                            "image": self.image,
                            "ports": [{"containerPort": self.target_port}],
                            "env": [{"name": "ZONE", "value": zone.short}],
                        }],
                    },
                },
                "strategy": {"canary": {
                    "trafficRouting": {"istio": {
                        "virtualService": {"name": self.name, "routes": [route_name(zone)]},
                        "destinationRule": {
                            "name": format!("{}-{}", self.name, zone.short),
                            "stableSubsetName": format!("stable-{}", zone.short),
                            "canarySubsetName": format!("canary-{}", zone.short),
                        },
                    }},
                    "steps": self.steps(),
                }},
            }),
        )
    }

    fn steps(&self) -> Vec<Value> {
        let gate = self.gate.then(|| json!({"pause": {}}));
        let weights = self.weights.iter().flat_map(|weight| {
            [json!({"setWeight": weight}), json!({"pause": {"duration": self.pause}})]
        });
        gate.into_iter().chain(weights).collect()
    }

    pub(super) fn disruption_budget(&self, zone: &SpecZone) -> Value {
        self.object(
            "policy/v1",
            "PodDisruptionBudget",
            &format!("{}-{}", self.name, zone.short),
            &json!({
                "minAvailable": 1,
                "selector": {"matchLabels": {"app": self.name, "zone": zone.short}},
            }),
        )
    }
}

fn route_name(zone: &SpecZone) -> String {
    format!("zone-{}-route", zone.short)
}

fn node_affinity(zone: &SpecZone) -> Value {
    json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchExpressions": [{
            "key": "topology.kubernetes.io/zone",
            "operator": "In",
            "values": [zone.topology],
        }]}],
    }}})
}
