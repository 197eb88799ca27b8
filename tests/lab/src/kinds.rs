//! The kinds of objects that tests handle as plain JSON.

use kube::api::ApiResource;

use crate::object;

/// A kind and the API version in which tests see it.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    api_version: &'static str,
    name: &'static str,
}

/// Argo's Rollout.
pub const ROLLOUT: Kind = Kind { api_version: "argoproj.io/v1alpha1", name: "Rollout" };
/// Istio's `VirtualService`.
pub const VIRTUAL_SERVICE: Kind =
    Kind { api_version: "networking.istio.io/v1", name: "VirtualService" };
/// Istio's `DestinationRule`.
pub const DESTINATION_RULE: Kind =
    Kind { api_version: "networking.istio.io/v1", name: "DestinationRule" };
/// A `ReplicaSet`.
pub const REPLICA_SET: Kind = Kind { api_version: "apps/v1", name: "ReplicaSet" };
/// A `HorizontalPodAutoscaler`.
pub const AUTOSCALER: Kind =
    Kind { api_version: "autoscaling/v2", name: "HorizontalPodAutoscaler" };
/// A `Lease`.
pub const LEASE: Kind = Kind { api_version: "coordination.k8s.io/v1", name: "Lease" };
/// A pod.
pub const POD: Kind = Kind { api_version: "v1", name: "Pod" };

impl Kind {
    pub(crate) fn resource(self) -> ApiResource {
        object::resource(self.api_version, self.name)
    }

    pub(crate) fn name(self) -> &'static str {
        self.name
    }
}
