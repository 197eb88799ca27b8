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

mod boot;
mod build;
pub mod cli;
mod client;
mod command;
mod confine;
mod control;
mod dump;
mod environment;
mod inner;
pub mod kinds;
mod kwok;
mod lab;
mod namespace;
mod nodes;
mod object;
mod paths;
mod plain_http;
mod plugin;
mod rundir;
mod terminal;
mod verb;
mod wait;
mod zones;

pub use lab::Lab;
pub use namespace::Namespace;
pub use plugin::{Finished, Plugin, Running, Signal};
pub use wait::until;
pub use zones::{ZONES, Zone};
