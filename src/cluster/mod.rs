//! What is behind the port: the real cluster – connecting, reading, watching, writing; only here is a
//! client – and the simulated one.

mod access;
mod clock;
mod connect;
mod explain;
mod item;
mod kinds;
mod lease;
mod read;
mod simulated;
mod versions;
mod watch;
mod write;

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use zone_rollout_core::scene::Scene;
use zone_rollout_core::write::{Write, Written};

pub use access::Permission;
pub use clock::{Clock, SystemClock};
pub use connect::{KubeCluster, KubeconfigNames, connect, kubeconfig_names};
pub(crate) use lease::LEASE_SECONDS;
pub use lease::{Holder, LeaseState};
pub(crate) use simulated::{Cue, SimulatedCluster};
pub use versions::{Found, Install, Sighting, Versions};

use crate::error::Error;

/// What a verb needs to know.
#[derive(Debug, Clone, Default)]
pub struct Want {
    /// Namespace of everything but nodes.
    pub namespace: String,
    /// Only Rollouts with these labels.
    pub selector: Option<String>,
    /// Whether autoscalers are needed as well.
    pub autoscalers: bool,
    /// Whether all kinds that a diagnosis looks at are needed. A watch does not follow them.
    pub everything: bool,
}

/// What a watch saw.
#[derive(Debug, Clone)]
pub struct Observation {
    /// Everything that is known now.
    pub scene: Arc<Scene>,
    /// For how long before this changes may have been missed, if any were.
    pub unwatched: Option<Duration>,
}

/// A cluster, real or simulated.
pub trait Cluster: Send + Sync {
    /// Reads everything anew; never from a cache.
    fn read<'a>(&'a self, want: &'a Want) -> BoxFuture<'a, Result<Scene, Error>>;
    /// Watches. The stream never ends; where something cannot be read any more, the scene says so.
    fn watch(&self, want: &Want) -> BoxStream<'static, Observation>;
    /// Sends a write once. It is never repeated by itself.
    fn write<'a>(&'a self, write: &'a Write) -> BoxFuture<'a, Written>;
    /// The permissions among these that the user lacks.
    fn lacks<'a>(
        &'a self,
        namespace: &'a str,
        permissions: &'a [Permission],
    ) -> BoxFuture<'a, Result<Vec<Permission>, Error>>;
}

/// The lease that keeps two drivers apart.
pub trait Leases: Send + Sync {
    /// Reads the lease of this name; nothing if there is none.
    fn lease<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<LeaseState>, Error>>;
    /// Takes, renews or releases the lease: writes this holder over that state. False if somebody
    /// else was faster.
    fn put_lease<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
        over: Option<&'a LeaseState>,
        holder: Option<&'a Holder>,
    ) -> BoxFuture<'a, Result<bool, Error>>;
}

/// All that a verb needs of a cluster.
pub trait Port: Cluster + Leases {}

impl<C: Cluster + Leases> Port for C {}

impl Cluster for KubeCluster {
    fn read<'a>(&'a self, want: &'a Want) -> BoxFuture<'a, Result<Scene, Error>> {
        self.read_scene(want)
    }

    fn watch(&self, want: &Want) -> BoxStream<'static, Observation> {
        self.watch_scene(want)
    }

    fn write<'a>(&'a self, write: &'a Write) -> BoxFuture<'a, Written> {
        self.send(write)
    }

    fn lacks<'a>(
        &'a self,
        namespace: &'a str,
        permissions: &'a [Permission],
    ) -> BoxFuture<'a, Result<Vec<Permission>, Error>> {
        self.missing(namespace, permissions)
    }
}
