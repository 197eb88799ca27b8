//! How a program connects to a cluster, told by the other end: a scripted TLS server, a proxy, and
//! the kubeconfigs, plugins and environments of a list of cases. The same cases are put to
//! `kubectl zone-rollout` and to kubectl, and what the server saw is compared.

mod authority;
mod bench;
mod cases;
mod observed;
mod proxy;
mod server;

pub use bench::{Bench, Invocation, Server, User};
pub use cases::{Case, cases};
pub use observed::Observed;

/// Part of every credential of the cases: no output may ever contain it.
pub const SECRET: &str = "SUPERSECRET";
