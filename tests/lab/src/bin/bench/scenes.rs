//! What is measured on: groups of some size, and pods that are none of theirs.

use std::path::PathBuf;

use anyhow::Result;
use futures::{StreamExt, TryStreamExt};
use serde_json::json;
use zone_lab::{Lab, Namespace, ZONES};
use zone_rollout_core::layout::{self, Spec, SpecZone};

/// How many objects are made at the same time.
const AT_ONCE: usize = 50;

/// A group of this many zones at rest on `myapp:v1`. The lab has three zones of nodes; more Rollouts
/// than that share them.
pub(crate) async fn group(lab: &Lab, stem: &str, zones: usize) -> Result<Namespace> {
    let namespace = lab.namespace(stem).await?;
    let share = zones > ZONES.len();
    let zones = ('a'..='z').take(zones).enumerate().map(|(index, short)| SpecZone {
        short: short.to_string(),
        topology: ZONES[index % ZONES.len()].topology.to_owned(),
    });
    let spec = Spec {
        zones: zones.collect(),
        weights: vec![50],
        pause: "1s".to_owned(),
        ..namespace.spec("myapp:v1")
    };
    let mut objects = layout::zone_local(&spec);
    for object in objects.iter_mut().filter(|object| share && object["kind"] == "Rollout") {
        let short = object["spec"]["template"]["metadata"]["labels"]["zone"].clone();
        object["metadata"]["labels"] = json!({"zone-rollout.io/zone": short});
    }
    namespace.deploy(&objects).await?;
    Ok(namespace)
}

/// A user who may read everything in a namespace; the kubeconfig names it.
pub(crate) async fn user(namespace: &Namespace) -> Result<PathBuf> {
    let read = json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]});
    namespace.user("bench", std::slice::from_ref(&read), std::slice::from_ref(&read)).await
}

/// Fills a namespace with pods of other workloads, which run nowhere.
pub(crate) async fn crowd(namespace: &Namespace, count: usize) -> Result<()> {
    let pod = |index: usize| {
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": format!("other-{index}"), "labels": {"app": "other"}},
            "spec": {
                "schedulerName": "nobody",
                "containers": [{"name": "app", "image": "other:v1"}],
            },
        })
    };
    futures::stream::iter((0..count).map(pod))
        .map(|pod| async move { namespace.apply(&[pod]).await })
        .buffer_unordered(AT_ONCE)
        .try_collect()
        .await
}
