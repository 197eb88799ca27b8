//! The traffic core: from which route a client takes to which pods answer it. It computes from
//! objects alone what istiod and Envoy make of them: route, merged DestinationRule, endpoints,
//! locality priorities, shares. Proofs, exposure and abort use the same computation.
//!
//! Pods that are not Ready count as absent. That is what istiod before 1.31 does; newer versions
//! already send a part of the traffic away while some of a zone's pods are not Ready.

mod dead;
mod flow;
mod host;
mod locality;
mod merge;
mod route;

pub use dead::{DeadRoute, dead_routes};
pub use flow::{Client, Flow, Loss, flow, pod_zone};
pub use merge::{EffectiveSubset, MergedRule, merged_rule};
pub use route::{
    InForce, RolloutRoute, RouteGap, host_of, rollout_routes, stable_destination, weight_in_force,
};
