//! The lab: a real control plane on one machine, without containers, for the tests of
//! `kubectl zone-rollout`.
//!
//! The program `lab` builds it and runs commands in it. A test in a lab starts with
//! [`Lab::connect`] (or [`Lab::connect_alone`]) and works in a [`Namespace`] of its own:
//!
//! ```no_run
//! # async fn example() -> anyhow::Result<()> {
//! let lab = zone_lab::Lab::connect().await?;
//! let namespace = lab.namespace("promote").await?;
//! namespace.deploy(&namespace.ring("myapp:v1")).await?;
//! let status = namespace.plugin(["status"]).run().await?;
//! assert_eq!(status.code(), Some(0), "{status}");
//! # Ok(())
//! # }
//! ```

mod audit;
mod boot;
mod build;
pub mod cli;
mod client;
mod command;
mod confine;
mod control;
mod custom;
mod dump;
mod environment;
mod faults;
mod gitops;
mod inner;
mod invocation;
pub mod kinds;
mod kwok;
mod lab;
mod load;
mod namespace;
mod nodes;
mod object;
mod outage;
mod paths;
mod plain_http;
mod pods;
mod rollouts;
mod rundir;
mod terminal;
mod upstream;
mod user;
mod verb;
mod wait;
mod zones;

pub use audit::{AuditMark, AuditObject, AuditRecord, AuditResponse, AuditUser};
pub use faults::{Fault, Faults, When};
pub use gitops::{GITOPS_MANAGER, GitOps};
pub use invocation::{Finished, Invocation, Running, Signal};
pub use lab::Lab;
pub use load::{Answer, Bucket, Load, Sample, Tally};
pub use namespace::Namespace;
pub use upstream::Failure;
pub use wait::until;
pub use zones::{ZONES, Zone};
