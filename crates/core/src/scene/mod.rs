//! The scene: everything a verb may know about a namespace, and how well it knows it. Verbs, rules
//! and the traffic core read a scene and nothing else, whether it came from a cluster, from files
//! or from the simulated cluster. A kind that could not be read is never an empty one: its
//! [`Coverage`] says why.

mod assumed;
mod mesh;
mod meta;
mod objects;
mod policy;
mod rollout;
mod workload;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::Serialize;

pub use assumed::{allowed_zones, template_of};
pub use mesh::{
    Destination, DestinationRule, DestinationRuleSpec, HttpMatch, HttpRoute, LocalityDistribute,
    LocalityFailover, LocalityLbSetting, OutlierDetection, RouteDestination, Service, Subset,
    TrafficPolicy, VirtualService, VirtualServiceSpec,
};
pub use meta::{ManagedFields, Meta, OwnerReference};
pub use objects::{Found, Unreadable};
pub use policy::{AnalysisTemplate, DisruptionBudget, Metric, Plain, Workload, labels_of};
pub use rollout::{
    AnalysisRunStatus, Argument, BackgroundAnalysis, Canary, DestinationRuleReference,
    IstioRouting, LabelSelector, PauseCondition, PodMetadata, Rollout, RolloutCondition,
    RolloutSpec, RolloutStatus, Step, StepKind, TemplateReference, TrafficWeights,
    VirtualServiceReference, WeightDestination,
};
pub use workload::{
    Autoscaler, Condition, ContainerState, ContainerStatus, Node, NodeStatus, Pod, PodPhase,
    ReplicaSet, Terminated, Waiting,
};
pub(crate) use workload::{POD_HASH_LABEL, REGION_LABEL, ZONE_LABEL};

use crate::time::Moment;

/// Namespace and name of an object; the namespace is empty for cluster-scoped kinds.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Key {
    /// Namespace, or empty.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl Key {
    /// The key of `namespace/name`.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            f.write_str(&self.name)
        } else {
            write!(f, "{}/{}", self.namespace, self.name)
        }
    }
}

/// Where an object was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// A running cluster; uid and resource version are in the object's [`Meta`].
    Live,
    /// A document in a file.
    File {
        /// Path as given by the user.
        path: Arc<str>,
        /// 1-based line where the document starts.
        line: u32,
    },
    /// The simulated cluster.
    Model,
}

/// An object and where it was read.
#[derive(Debug, Clone)]
pub struct Seen<T> {
    /// The object. Shared, so that a scene is cheap to copy for each observation.
    pub value: Arc<T>,
    /// Where it was read.
    pub origin: Origin,
}

/// How well a kind of object is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Coverage {
    /// All objects as of this moment.
    Complete(Moment),
    /// They were known once; reading them has failed since.
    Stale {
        /// The last moment at which they were known.
        since: Moment,
        /// Why they cannot be read now.
        why: String,
    },
    /// The user may not read this kind.
    Forbidden,
    /// The cluster does not serve this kind (its CRD is absent).
    KindAbsent,
    /// Nobody asked for this kind.
    NotGiven,
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Complete(_) => f.write_str("complete"),
            Self::Stale { why, .. } => f.write_str(why),
            Self::Forbidden => f.write_str("not permitted"),
            Self::KindAbsent => f.write_str("not served by this cluster"),
            Self::NotGiven => f.write_str("not asked for"),
        }
    }
}

/// All known objects of one kind.
#[derive(Debug, Clone)]
pub struct Kind<T> {
    /// The objects. A [`Seen`] is small; the object behind it is shared.
    pub items: BTreeMap<Key, Seen<T>>,
    /// Objects that were sent but cannot be understood, and why.
    pub broken: BTreeMap<Key, String>,
    /// How well they are known.
    pub coverage: Coverage,
}

impl<T> Default for Kind<T> {
    fn default() -> Self {
        Self { items: BTreeMap::new(), broken: BTreeMap::new(), coverage: Coverage::NotGiven }
    }
}

impl<T> Kind<T> {
    /// The object with this key, if it is known.
    pub fn get(&self, key: &Key) -> Option<&T> {
        self.items.get(key).map(|seen| seen.value.as_ref())
    }

    /// All objects in the order of their keys.
    pub fn iter(&self) -> impl Iterator<Item = (&Key, &T)> {
        self.items.iter().map(|(key, seen)| (key, seen.value.as_ref()))
    }

    /// True if an object that is not here does not exist.
    pub fn is_complete(&self) -> bool {
        matches!(self.coverage, Coverage::Complete(_))
    }

    /// True if the objects are known, be it from earlier; false if they could never be read.
    pub fn is_known(&self) -> bool {
        matches!(self.coverage, Coverage::Complete(_) | Coverage::Stale { .. })
    }

    /// Adds or replaces an object.
    pub fn insert(&mut self, key: Key, value: T, origin: Origin) {
        self.items.insert(key, Seen { value: Arc::new(value), origin });
    }
}

/// What is known about one namespace and the nodes under it.
#[derive(Debug, Clone, Default)]
pub struct Scene {
    /// Argo Rollouts.
    pub rollouts: Kind<Rollout>,
    /// ReplicaSets that belong to Rollouts (label `rollouts-pod-template-hash`).
    pub replica_sets: Kind<ReplicaSet>,
    /// Pods that belong to Rollouts (label `rollouts-pod-template-hash`).
    pub pods: Kind<Pod>,
    /// Nodes of the whole cluster.
    pub nodes: Kind<Node>,
    /// Services.
    pub services: Kind<Service>,
    /// Istio VirtualServices.
    pub routes: Kind<VirtualService>,
    /// Istio DestinationRules.
    pub rules: Kind<DestinationRule>,
    /// Horizontal pod autoscalers.
    pub autoscalers: Kind<Autoscaler>,
    /// Analysis templates.
    pub analysis_templates: Kind<AnalysisTemplate>,
    /// Analysis templates of the whole cluster.
    pub cluster_analysis_templates: Kind<AnalysisTemplate>,
    /// Disruption budgets.
    pub budgets: Kind<DisruptionBudget>,
    /// Deployments.
    pub deployments: Kind<Workload>,
    /// StatefulSets.
    pub stateful_sets: Kind<Workload>,
    /// Namespaces, for their labels.
    pub namespaces: Kind<Plain>,
    /// Istio's Telemetry objects, which may add labels to metrics.
    pub telemetries: Kind<Plain>,
    /// Prometheus's rules.
    pub alerts: Kind<Plain>,
    /// Argo CD's Applications, which say what a sync leaves alone.
    pub applications: Kind<Plain>,
    /// Istio's Gateways, for the pods they select.
    pub gateways: Kind<Plain>,
}

impl Scene {
    /// The kinds that could not be read completely, with the reason: `pods: forbidden`.
    ///
    /// Kinds that nobody asked for are left out.
    pub fn gaps(&self) -> Vec<(&'static str, &Coverage)> {
        [
            ("rollouts", &self.rollouts.coverage),
            ("replicasets", &self.replica_sets.coverage),
            ("pods", &self.pods.coverage),
            ("nodes", &self.nodes.coverage),
            ("services", &self.services.coverage),
            ("virtualservices", &self.routes.coverage),
            ("destinationrules", &self.rules.coverage),
            ("horizontalpodautoscalers", &self.autoscalers.coverage),
            ("analysistemplates", &self.analysis_templates.coverage),
            ("clusteranalysistemplates", &self.cluster_analysis_templates.coverage),
            ("poddisruptionbudgets", &self.budgets.coverage),
            ("deployments", &self.deployments.coverage),
            ("statefulsets", &self.stateful_sets.coverage),
            ("namespaces", &self.namespaces.coverage),
            ("telemetries", &self.telemetries.coverage),
            ("prometheusrules", &self.alerts.coverage),
        ]
        .into_iter()
        .filter(|(_, coverage)| !matches!(coverage, Coverage::Complete(_) | Coverage::NotGiven))
        .collect()
    }

    /// The first kind that was known once and cannot be read now, with the reason.
    pub fn out_of_sight(&self) -> Option<String> {
        let gaps = self.gaps().into_iter();
        let mut stale = gaps.filter(|(_, coverage)| matches!(coverage, Coverage::Stale { .. }));
        stale.next().map(|(kind, why)| format!("{kind}: {why}"))
    }
}
