//! Services, Rollouts and disruption budgets of a layout.

use serde_json::{Value, json};

use super::mesh::route_name;
use super::{ROLE_LABEL, Spec, SpecZone};

impl Spec {
    pub(super) fn object(&self, api_version: &str, kind: &str, name: &str, spec: &Value) -> Value {
        json!({
            "apiVersion": api_version,
            "kind": kind,
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": spec,
        })
    }

    pub(super) fn rollout_name(&self, zone: &SpecZone) -> String {
        format!("{}-{}", self.name, zone.short)
    }

    pub(super) fn service_name(&self, role: &str, zone: &SpecZone) -> String {
        format!("{}-{role}-{}", self.name, zone.short)
    }

    /// Labels of all pods of a zone.
    pub(super) fn labels(&self, zone: &SpecZone) -> Value {
        json!({"app": self.name, "zone": zone.short})
    }

    /// The Service that clients call, and one for the stable and the canary pods of each zone. No
    /// Rollout refers to these, so the controller leaves their selectors alone.
    pub(super) fn services(&self) -> Vec<Value> {
        let mut all = vec![self.service(&self.name, &json!({"app": self.name}))];
        for zone in &self.zones {
            for role in ["stable", "canary"] {
                let mut selector = self.labels(zone);
                selector[ROLE_LABEL] = json!(role);
                all.push(self.service(&self.service_name(role, zone), &selector));
            }
        }
        all
    }

    fn service(&self, name: &str, selector: &Value) -> Value {
        let port = json!({"name": "http", "port": self.port, "targetPort": self.target_port});
        self.object("v1", "Service", name, &json!({"selector": selector, "ports": [port]}))
    }

    /// A zone's Rollout whose canary gets its share by a route.
    pub(super) fn routed_rollout(&self, zone: &SpecZone) -> Value {
        let mut rollout = self.rollout(zone);
        rollout["spec"]["strategy"]["canary"]["trafficRouting"] = json!({"istio": {
            "virtualService": {"name": self.name, "routes": [route_name(zone)]},
            "destinationRule": {
                "name": self.rollout_name(zone),
                "stableSubsetName": format!("stable-{}", zone.short),
                "canarySubsetName": format!("canary-{}", zone.short),
            },
        }});
        rollout
    }

    /// A zone's Rollout whose canary gets its share by its number of pods.
    pub(super) fn rollout(&self, zone: &SpecZone) -> Value {
        let role = |role: &str| json!({"labels": {ROLE_LABEL: role}});
        self.object(
            "argoproj.io/v1alpha1",
            "Rollout",
            &self.rollout_name(zone),
            &json!({
                "replicas": self.replicas,
                "progressDeadlineSeconds": self.progress_deadline_seconds,
                "selector": {"matchLabels": self.labels(zone)},
                "template": self.template(zone),
                "strategy": {"canary": {
                    "stableMetadata": role("stable"),
                    "canaryMetadata": role("canary"),
                    "steps": self.steps(),
                }},
            }),
        )
    }

    fn template(&self, zone: &SpecZone) -> Value {
        json!({
            "metadata": {"labels": self.labels(zone)},
            "spec": {
                "affinity": node_affinity(zone),
                "topologySpreadConstraints": [{
                    "maxSkew": 1,
                    "topologyKey": "kubernetes.io/hostname",
                    "whenUnsatisfiable": "ScheduleAnyway",
                    "labelSelector": {"matchLabels": self.labels(zone)},
                }],
                "containers": [{
                    "name": "app",
                    "image": self.image,
                    "ports": [{"containerPort": self.target_port}],
                    "env": [{"name": "ZONE", "value": zone.short}],
                }],
            },
        })
    }

    fn steps(&self) -> Vec<Value> {
        let gate = self.gate.then(|| json!({"pause": {}}));
        let weights = self.weights.iter().flat_map(|weight| {
            [json!({"setWeight": weight}), json!({"pause": {"duration": self.pause}})]
        });
        gate.into_iter().chain(weights).collect()
    }

    /// One pod at a time, which never blocks a node's drain for good, as `minAvailable` can.
    pub(super) fn disruption_budget(&self, zone: &SpecZone) -> Value {
        self.object(
            "policy/v1",
            "PodDisruptionBudget",
            &self.rollout_name(zone),
            &json!({
                "maxUnavailable": 1,
                "selector": {"matchLabels": self.labels(zone)},
            }),
        )
    }
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
