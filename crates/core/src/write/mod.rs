//! Everything this tool writes to a cluster's objects, as one type. A [`Write`] is a JSON patch that
//! carries at least one test, so that it applies to what was judged or not at all. The real cluster
//! and the simulated one carry out the same value.

mod action;
mod compile;
mod divert;
mod patch;

pub use action::Action;
pub use compile::{Drift, compile};
pub use patch::{Guards, Op, Subresource, TargetKind, Write, Written};

/// Field manager of everything that this tool writes.
pub const FIELD_MANAGER: &str = "kubectl-zone-rollout";
