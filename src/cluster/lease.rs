//! The lease (`coordination.k8s.io/v1`) that keeps two drivers of one group apart.

use std::collections::BTreeMap;

use futures::future::BoxFuture;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::Api;
use kube::api::{ObjectMeta, PostParams};

use super::Leases;
use super::connect::KubeCluster;
use super::explain;
use crate::error::Error;

/// Seconds for which a lease that is not renewed counts.
pub(crate) const LEASE_SECONDS: u32 = 15;

const HOST: &str = "zone-rollout.io/host";
const BOOT: &str = "zone-rollout.io/boot";
const PID: &str = "zone-rollout.io/pid";

/// Who drives a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Name of the run.
    pub run: String,
    /// Host it runs on.
    pub host: String,
    /// Which start of that host; empty if it cannot be told.
    pub boot: String,
    /// Process.
    pub pid: u32,
}

/// A lease as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseState {
    /// Its holder; nothing if it was released.
    pub holder: Option<Holder>,
    /// When the holder renewed it, by the holder's clock.
    pub renewed: Option<Timestamp>,
    /// For how long a renewal counts, in seconds.
    pub seconds: u32,
    resource_version: String,
    transitions: i32,
}

impl LeaseState {
    /// A lease that exists nowhere else, written over this one.
    pub(super) fn simulated(
        over: Option<&Self>,
        holder: Option<Holder>,
        renewed: Timestamp,
    ) -> Self {
        let transitions = over.map_or(0, |over| over.transitions) + 1;
        Self {
            holder,
            renewed: Some(renewed),
            seconds: LEASE_SECONDS,
            resource_version: transitions.to_string(),
            transitions,
        }
    }
}

impl Leases for KubeCluster {
    fn lease<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<LeaseState>, Error>> {
        Box::pin(async move {
            self.limited(self.leases(namespace).get_opt(name))
                .await
                .map(|lease| lease.map(state_of))
                .map_err(|error| {
                    explain::request(&self.server, &format!("read lease `{name}`"), &error)
                })
        })
    }

    fn put_lease<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
        over: Option<&'a LeaseState>,
        holder: Option<&'a Holder>,
    ) -> BoxFuture<'a, Result<bool, Error>> {
        Box::pin(async move {
            let lease = lease_of(name, over, holder);
            let params = PostParams::default();
            let api = self.leases(namespace);
            let written = match over {
                None => self.limited(api.create(&params, &lease)).await,
                Some(_) => self.limited(api.replace(name, &params, &lease)).await,
            };
            match written {
                Ok(_) => Ok(true),
                Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(false),
                Err(error) => {
                    Err(explain::request(&self.server, &format!("write lease `{name}`"), &error))
                }
            }
        })
    }
}

impl KubeCluster {
    fn leases(&self, namespace: &str) -> Api<Lease> {
        Api::namespaced(self.client.clone(), namespace)
    }
}

fn state_of(lease: Lease) -> LeaseState {
    let annotations = lease.metadata.annotations.unwrap_or_default();
    let annotation = |key: &str| annotations.get(key).cloned().unwrap_or_default();
    let spec = lease.spec.unwrap_or_default();
    let holder = spec.holder_identity.filter(|run| !run.is_empty()).map(|run| Holder {
        run,
        host: annotation(HOST),
        boot: annotation(BOOT),
        pid: annotation(PID).parse().unwrap_or(0),
    });
    LeaseState {
        holder,
        renewed: spec.renew_time.map(|time| time.0),
        seconds: spec
            .lease_duration_seconds
            .and_then(|seconds| u32::try_from(seconds).ok())
            .unwrap_or(LEASE_SECONDS),
        resource_version: lease.metadata.resource_version.unwrap_or_default(),
        transitions: spec.lease_transitions.unwrap_or(0),
    }
}

/// The whole lease is ours, so that it may be replaced as a whole; the resource version keeps a
/// faster writer's.
fn lease_of(name: &str, over: Option<&LeaseState>, holder: Option<&Holder>) -> Lease {
    let now = MicroTime(Timestamp::now());
    let annotations = holder.map(|holder| {
        BTreeMap::from([
            (HOST.to_owned(), holder.host.clone()),
            (BOOT.to_owned(), holder.boot.clone()),
            (PID.to_owned(), holder.pid.to_string()),
        ])
    });
    let same = over.is_some_and(|state| state.holder.as_ref() == holder);
    let before = over.map_or(0, |state| state.transitions);
    Lease {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            annotations,
            resource_version: over.map(|state| state.resource_version.clone()),
            ..ObjectMeta::default()
        },
        spec: Some(LeaseSpec {
            holder_identity: Some(holder.map_or_else(String::new, |holder| holder.run.clone())),
            lease_duration_seconds: i32::try_from(LEASE_SECONDS).ok(),
            lease_transitions: Some(if same { before } else { before + 1 }),
            renew_time: Some(now),
            ..LeaseSpec::default()
        }),
    }
}
