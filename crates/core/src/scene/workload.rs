//! ReplicaSets, pods, nodes and autoscalers, as far as the domain reads them.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::Meta;

/// Label that the Rollouts controller puts on ReplicaSets and pods.
pub(crate) const POD_HASH_LABEL: &str = "rollouts-pod-template-hash";
/// Label of a node's zone, which istiod also sees on proxies and endpoints.
pub(crate) const ZONE_LABEL: &str = "topology.kubernetes.io/zone";
/// Label of a node's region.
pub(crate) const REGION_LABEL: &str = "topology.kubernetes.io/region";

/// A ReplicaSet (`apps/v1`).
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ReplicaSet {
    /// Metadata.
    #[serde(rename = "metadata")]
    pub meta: Meta,
    /// What is wanted.
    pub spec: ReplicaSetSpec,
    /// What there is.
    pub status: ReplicaSetStatus,
}

/// `spec` of a ReplicaSet.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ReplicaSetSpec {
    /// Wanted pods; the API server defaults to 1.
    pub replicas: Option<u32>,
    /// The pod template.
    pub template: Value,
}

/// `status` of a ReplicaSet.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReplicaSetStatus {
    /// Pods; absent if the controller has written no status.
    pub replicas: Option<u32>,
    /// Available pods.
    pub available_replicas: u32,
}

impl ReplicaSet {
    /// The template hash that names this ReplicaSet.
    pub fn hash(&self) -> &str {
        self.meta.labels.get(POD_HASH_LABEL).map_or("", String::as_str)
    }
}

/// A pod (`v1`).
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Pod {
    /// Metadata.
    #[serde(rename = "metadata")]
    pub meta: Meta,
    /// Where it runs.
    pub spec: PodSpec,
    /// What kubelet reports.
    pub status: PodStatus,
}

/// `spec` of a pod.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodSpec {
    /// The node it is bound to; empty while it is not scheduled.
    pub node_name: String,
}

/// `status` of a pod.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodStatus {
    /// Phase.
    pub phase: PodPhase,
    /// One word, such as `Evicted`.
    pub reason: String,
    /// A sentence.
    pub message: String,
    /// Conditions.
    pub conditions: Vec<Condition>,
    /// Containers.
    pub container_statuses: Vec<ContainerStatus>,
    /// Init containers, sidecars among them.
    pub init_container_statuses: Vec<ContainerStatus>,
}

/// `status.phase` of a pod.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub enum PodPhase {
    /// Not all containers have been started.
    Pending,
    /// Bound to a node, containers started.
    Running,
    /// All containers ended well.
    Succeeded,
    /// A container ended badly.
    Failed,
    /// Its node cannot be reached, or nothing was written yet.
    #[default]
    #[serde(other)]
    Unknown,
}

/// A condition of a pod or node.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Condition {
    /// Such as `Ready`.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False`, `Unknown`.
    pub status: String,
    /// One word.
    pub reason: String,
    /// A sentence.
    pub message: String,
    /// Last time its status changed.
    pub last_transition_time: Option<Timestamp>,
}

/// Status of one container.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerStatus {
    /// Name of the container.
    pub name: String,
    /// How often it was started again.
    pub restart_count: u32,
    /// What it does now.
    pub state: ContainerState,
    /// What it did before.
    pub last_state: ContainerState,
}

/// State of a container.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ContainerState {
    /// It waits to be started.
    pub waiting: Option<Waiting>,
    /// It has ended.
    pub terminated: Option<Terminated>,
}

/// Why a container waits.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Waiting {
    /// Such as `CrashLoopBackOff`, `ImagePullBackOff`.
    pub reason: String,
    /// A sentence.
    pub message: String,
}

/// How a container ended.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Terminated {
    /// Such as `Error`, `OOMKilled`.
    pub reason: String,
    /// Exit code.
    pub exit_code: i32,
}

impl Pod {
    /// The template hash of the ReplicaSet it belongs to.
    pub fn hash(&self) -> &str {
        self.meta.labels.get(POD_HASH_LABEL).map_or("", String::as_str)
    }

    /// The condition of this type, if it is there.
    pub fn condition(&self, kind: &str) -> Option<&Condition> {
        self.status.conditions.iter().find(|condition| condition.kind == kind)
    }

    /// True if the pod serves: condition Ready is True and it is not being deleted.
    ///
    /// This is what the endpoint controllers use. `READY 1/1` in `kubectl get` may lie: it counts
    /// containers, and keeps saying 1/1 after the node was lost.
    pub fn is_ready(&self) -> bool {
        self.meta.deletion_timestamp.is_none()
            && self.condition("Ready").is_some_and(|ready| ready.status == "True")
    }

    /// Since when condition Ready has been what it is.
    pub fn ready_since(&self) -> Option<Timestamp> {
        self.condition("Ready").and_then(|ready| ready.last_transition_time)
    }

    /// True if the pod still counts: neither ended nor being deleted.
    pub fn is_active(&self) -> bool {
        self.meta.deletion_timestamp.is_none()
            && !matches!(self.status.phase, PodPhase::Succeeded | PodPhase::Failed)
    }

    /// Restarts of all its containers.
    pub fn restarts(&self) -> u32 {
        self.containers().map(|container| container.restart_count).sum()
    }

    /// All containers, init containers first.
    pub fn containers(&self) -> impl Iterator<Item = &ContainerStatus> {
        self.status.init_container_statuses.iter().chain(&self.status.container_statuses)
    }
}

/// A node (`v1`).
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Node {
    /// Metadata.
    #[serde(rename = "metadata")]
    pub meta: Meta,
    /// Whether pods may be scheduled on it.
    pub spec: NodeSpec,
    /// What kubelet and the node controller report.
    pub status: NodeStatus,
}

/// `spec` of a node.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct NodeSpec {
    /// True if it is cordoned.
    pub unschedulable: bool,
}

/// `status` of a node.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct NodeStatus {
    /// Conditions.
    pub conditions: Vec<Condition>,
}

impl Node {
    /// True if condition Ready is True.
    pub fn is_ready(&self) -> bool {
        self.status
            .conditions
            .iter()
            .any(|condition| condition.kind == "Ready" && condition.status == "True")
    }

    /// The zone it lies in.
    pub fn zone(&self) -> Option<&str> {
        self.meta.labels.get(ZONE_LABEL).map(String::as_str)
    }
}

/// A HorizontalPodAutoscaler (`autoscaling/v2`).
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Autoscaler {
    /// Metadata.
    #[serde(rename = "metadata")]
    pub meta: Meta,
    /// What it scales.
    pub spec: AutoscalerSpec,
}

/// `spec` of an autoscaler.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AutoscalerSpec {
    /// The object it scales.
    pub scale_target_ref: ScaleTarget,
}

/// `spec.scaleTargetRef` of an autoscaler.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ScaleTarget {
    /// Kind.
    pub kind: String,
    /// Name.
    pub name: String,
}
