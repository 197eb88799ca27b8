//! The traffic core: from which route a client takes to which pods answer it. It computes from
//! objects alone what istiod and Envoy make of them: route, merged DestinationRule, endpoints,
//! locality priorities, shares. Proofs, exposure and abort use the same computation.
//!
//! Pods that are not Ready count as absent. That is what istiod before 1.31 does; newer versions
//! already send a part of the traffic away while some of a zone's pods are not Ready.

mod client;
mod dead;
mod flow;
mod host;
mod locality;
mod merge;
mod mesh;
mod route;

pub use client::Client;
pub use dead::{DeadRoute, dead_routes};
pub use flow::{Flow, Loss, flow};
pub(crate) use host::{fully_qualified, service_of};
pub use merge::{EffectiveSubset, MergedRule, merged_rule};
pub(crate) use mesh::leads_to;
pub use mesh::{Cluster, Endpoint, Mesh, pod_zone};
pub(crate) use route::virtual_service_key;
pub use route::{
    InForce, RolloutRoute, RouteGap, host_of, rollout_routes, stable_destination, weight_in_force,
};
