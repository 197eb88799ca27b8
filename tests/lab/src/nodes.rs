//! The nodes of a zone: there, gone, or out of contact.

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::Node;
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::object;
use crate::wait;
use crate::zones::{REGION, Zone};

const WITHIN: Duration = Duration::from_mins(1);

/// Registers the nodes of a zone as their kubelets would.
pub(crate) async fn register(client: &Client, zone: Zone) -> Result<()> {
    for name in zone.nodes() {
        object::apply(client, &node(zone, &name), object::MANAGER).await?;
    }
    Ok(())
}

/// Waits until the condition `Ready` of a zone's nodes has a status.
pub(crate) async fn await_status(client: &Client, zone: Zone, status: &str) -> Result<()> {
    let what = format!("nodes of zone {} to have Ready={status}", zone.short);
    wait::until(what, WITHIN, async || Ok(all_have(client, zone, status).await?.then_some(())))
        .await
}

/// Whether a zone's nodes are all there and Ready.
pub(crate) async fn all_ready(client: &Client, zone: Zone) -> Result<bool> {
    all_have(client, zone, "True").await
}

async fn all_have(client: &Client, zone: Zone, status: &str) -> Result<bool> {
    let nodes: Api<Node> = Api::all(client.clone());
    for name in zone.nodes() {
        let node = nodes.get_opt(&name).await?;
        if node.as_ref().and_then(ready) != Some(status) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Status of a node's `Ready` condition.
fn ready(node: &Node) -> Option<&str> {
    let conditions = node.status.as_ref()?.conditions.as_ref()?;
    let ready = conditions.iter().find(|condition| condition.type_ == "Ready")?;
    Some(&ready.status)
}

fn node(zone: Zone, name: &str) -> Value {
    let room = json!({"cpu": "32", "memory": "256Gi", "pods": "500"});
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                "topology.kubernetes.io/region": REGION,
                "topology.kubernetes.io/zone": zone.topology,
            },
        },
        "status": {"allocatable": room, "capacity": room},
    })
}
