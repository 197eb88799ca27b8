//! The kinds of objects that are read, and how they are asked for.

use kube::core::ApiResource;

/// Rollouts and pods that belong to them carry this label, as do their ReplicaSets.
const OF_ROLLOUTS: &str = "rollouts-pod-template-hash";

/// One kind of object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KindInfo {
    pub(super) group: &'static str,
    pub(super) version: &'static str,
    pub(super) kind: &'static str,
    pub(super) plural: &'static str,
    pub(super) namespaced: bool,
    /// Labels that narrow the list on the server.
    pub(super) selector: Option<&'static str>,
}

pub(super) const ROLLOUTS: KindInfo = KindInfo {
    group: "argoproj.io",
    version: "v1alpha1",
    kind: "Rollout",
    plural: "rollouts",
    namespaced: true,
    selector: None,
};
pub(super) const REPLICA_SETS: KindInfo = KindInfo {
    group: "apps",
    version: "v1",
    kind: "ReplicaSet",
    plural: "replicasets",
    namespaced: true,
    selector: Some(OF_ROLLOUTS),
};
pub(super) const PODS: KindInfo = KindInfo {
    group: "",
    version: "v1",
    kind: "Pod",
    plural: "pods",
    namespaced: true,
    selector: Some(OF_ROLLOUTS),
};
pub(super) const NODES: KindInfo = KindInfo {
    group: "",
    version: "v1",
    kind: "Node",
    plural: "nodes",
    namespaced: false,
    selector: None,
};
pub(super) const SERVICES: KindInfo = KindInfo {
    group: "",
    version: "v1",
    kind: "Service",
    plural: "services",
    namespaced: true,
    selector: None,
};
/// Served as `v1` from Istio 1.22; older versions are looked up.
pub(super) const VIRTUAL_SERVICES: KindInfo = KindInfo {
    group: "networking.istio.io",
    version: "v1",
    kind: "VirtualService",
    plural: "virtualservices",
    namespaced: true,
    selector: None,
};
pub(super) const DESTINATION_RULES: KindInfo = KindInfo {
    group: "networking.istio.io",
    version: "v1",
    kind: "DestinationRule",
    plural: "destinationrules",
    namespaced: true,
    selector: None,
};
pub(super) const AUTOSCALERS: KindInfo = KindInfo {
    group: "autoscaling",
    version: "v2",
    kind: "HorizontalPodAutoscaler",
    plural: "horizontalpodautoscalers",
    namespaced: true,
    selector: None,
};
pub(super) const DEPLOYMENTS: KindInfo = KindInfo {
    group: "apps",
    version: "v1",
    kind: "Deployment",
    plural: "deployments",
    namespaced: true,
    selector: None,
};

/// The kinds that only a diagnosis looks at.
pub(super) const ANALYSIS_TEMPLATES: KindInfo = KindInfo {
    group: "argoproj.io",
    version: "v1alpha1",
    kind: "AnalysisTemplate",
    plural: "analysistemplates",
    namespaced: true,
    selector: None,
};
pub(super) const CLUSTER_ANALYSIS_TEMPLATES: KindInfo = KindInfo {
    kind: "ClusterAnalysisTemplate",
    plural: "clusteranalysistemplates",
    namespaced: false,
    ..ANALYSIS_TEMPLATES
};
pub(super) const BUDGETS: KindInfo = KindInfo {
    group: "policy",
    version: "v1",
    kind: "PodDisruptionBudget",
    plural: "poddisruptionbudgets",
    namespaced: true,
    selector: None,
};
pub(super) const NAMESPACES: KindInfo = KindInfo {
    group: "",
    version: "v1",
    kind: "Namespace",
    plural: "namespaces",
    namespaced: false,
    selector: None,
};
pub(super) const TELEMETRIES: KindInfo = KindInfo {
    group: "telemetry.istio.io",
    version: "v1",
    kind: "Telemetry",
    plural: "telemetries",
    namespaced: true,
    selector: None,
};
pub(super) const ALERTS: KindInfo = KindInfo {
    group: "monitoring.coreos.com",
    version: "v1",
    kind: "PrometheusRule",
    plural: "prometheusrules",
    namespaced: true,
    selector: None,
};

impl KindInfo {
    /// The resource in this version of its group.
    pub(super) fn resource(&self, version: &str) -> ApiResource {
        let api_version = if self.group.is_empty() {
            version.to_owned()
        } else {
            format!("{}/{version}", self.group)
        };
        ApiResource {
            group: self.group.to_owned(),
            version: version.to_owned(),
            api_version,
            kind: self.kind.to_owned(),
            plural: self.plural.to_owned(),
        }
    }
}
