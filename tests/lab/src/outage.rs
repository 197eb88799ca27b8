//! Takes the nodes of a zone away, and brings them back.

use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};

use crate::boot::clients;
use crate::lab::Lab;
use crate::nodes;
use crate::wait;
use crate::zones::{ZONES, Zone};

const WITHIN: Duration = Duration::from_mins(1);
/// Where nodes renew their leases.
const LEASES: &str = "kube-node-lease";

impl Lab {
    /// Deletes a zone's nodes and, as the pod garbage collector would, the pods on them. Returns
    /// when both are gone. The clients of the zone live on.
    ///
    /// # Errors
    ///
    /// When something cannot be deleted.
    pub async fn nodes_gone(&self, zone: Zone) -> Result<()> {
        let nodes: Api<Node> = Api::all(self.client());
        for name in zone.nodes() {
            let deleted = nodes.delete(&name, &DeleteParams::default()).await;
            deleted.with_context(|| format!("cannot delete node {name}"))?;
        }
        let what = format!("the pods of zone {} to be gone", zone.short);
        wait::until(what, WITHIN, async || {
            let mut gone = true;
            for name in zone.nodes() {
                gone &= delete_pods(&self.client, &name).await? == 0;
            }
            Ok(gone.then_some(()))
        })
        .await
    }

    /// Cuts a zone's nodes off: their heartbeats stop, and after 16 s the node controller marks
    /// them as not Ready, and their pods with them. Returns when it has. The applications go on.
    ///
    /// # Errors
    ///
    /// When the nodes stay Ready.
    pub async fn nodes_not_ready(&self, zone: Zone) -> Result<()> {
        for name in zone.nodes() {
            // KWOK leaves a node and its pods alone while the node's lease is somebody else's.
            let taken = json!({"holderIdentity": "zone-lab", "leaseDurationSeconds": 86_400});
            patch_lease(&self.client, &name, &taken).await?;
        }
        nodes::await_status(&self.client, zone, "Unknown").await
    }

    /// Brings a zone's nodes back, whichever way they went. Returns when they are Ready.
    ///
    /// # Errors
    ///
    /// When they do not get Ready.
    pub async fn nodes_back(&self, zone: Zone) -> Result<()> {
        back(&self.client, zone).await
    }
}

/// Undoes what a failed test has left behind.
pub(crate) async fn repair(client: &Client) -> Result<()> {
    for zone in ZONES {
        if !nodes::all_ready(client, zone).await? {
            back(client, zone).await?;
        }
    }
    Ok(())
}

async fn back(client: &Client, zone: Zone) -> Result<()> {
    nodes::register(client, zone).await?;
    let leases: Api<Lease> = Api::namespaced(client.clone(), LEASES);
    for name in zone.nodes() {
        if leases.get_opt(&name).await?.is_some() {
            patch_lease(client, &name, &json!({"holderIdentity": null})).await?;
        }
    }
    nodes::await_status(client, zone, "True").await
}

async fn patch_lease(client: &Client, node: &str, spec: &Value) -> Result<()> {
    let leases: Api<Lease> = Api::namespaced(client.clone(), LEASES);
    leases
        .patch(node, &PatchParams::default(), &Patch::Merge(json!({"spec": spec})))
        .await
        .with_context(|| format!("cannot change the lease of node {node}"))?;
    Ok(())
}

/// Deletes the pods on a node at once and tells how many there were.
async fn delete_pods(client: &Client, node: &str) -> Result<usize> {
    let on_node = ListParams::default().fields(&format!("spec.nodeName={node}"));
    let pods: Api<Pod> = Api::all(client.clone());
    let mut found = pods.list(&on_node).await?.items;
    found.retain(|pod| pod.namespace().as_deref() != Some(clients::NAMESPACE));
    for pod in &found {
        let pods: Api<Pod> = Api::namespaced(client.clone(), &pod.namespace().unwrap_or_default());
        match pods.delete(&pod.name_any(), &DeleteParams::default().grace_period(0)).await {
            Err(kube::Error::Api(status)) if status.is_not_found() => {}
            deleted => drop(deleted?),
        }
    }
    Ok(found.len())
}
