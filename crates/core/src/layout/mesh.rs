//! DestinationRules and the VirtualService of a layout.

use serde_json::{Value, json};

use super::{RING_LABEL_PREFIX, Spec, SpecZone};

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

    fn istio_object(&self, kind: &str, name: &str, spec: &Value) -> Value {
        let api_version = format!("networking.istio.io/{}", self.istio_api_version);
        self.object(&api_version, kind, name, spec)
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
            &self.rollout_name(zone),
            &json!({"host": self.host(), "subsets": [subset("stable"), subset("canary")]}),
        )
    }

    /// A route for each zone's clients and one for everybody else.
    pub(super) fn virtual_service(&self, catch_all: &Value) -> Value {
        let zone_route = |zone: &SpecZone| {
            json!({
                "name": route_name(zone),
                "match": [{"sourceLabels": {"topology.kubernetes.io/zone": zone.topology}}],
                "route": [
                    self.destination("stable", zone, 100),
                    self.destination("canary", zone, 0),
                ],
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
        let zones = self.zones.iter().enumerate();
        zones.map(|(index, zone)| self.destination("stable", zone, weight(index))).collect()
    }

    fn destination(&self, role: &str, zone: &SpecZone, weight: usize) -> Value {
        json!({
            "destination": {"host": self.host(), "subset": format!("{role}-{}", zone.short)},
            "weight": weight,
        })
    }
}

pub(super) fn route_name(zone: &SpecZone) -> String {
    format!("zone-{}-route", zone.short)
}
