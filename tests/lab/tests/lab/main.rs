//! Every ability of the lab, shown to work.

mod access;
mod disturbance;
mod pods;
mod traffic;

use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use serde_json::{Value, json};
use zone_lab::{Namespace, Zone};

pub(crate) const SOON: Duration = Duration::from_secs(30);

pub(crate) fn a() -> Zone {
    Zone::named("a")
}

/// One Rollout in zone a, without mesh and steps.
pub(crate) fn single(image: &str, replicas: u32) -> Value {
    let labels = json!({"app": "single", "zone": "a"});
    json!({
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Rollout",
        "metadata": {"name": "single"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "strategy": {"canary": {}},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "nodeSelector": {"topology.kubernetes.io/zone": "us-east-1a"},
                    "containers": [{"name": "app", "image": image}],
                },
            },
        },
    })
}

/// The only pod of [`single`] as soon as `is` holds for its status.
pub(crate) async fn pod_that(
    namespace: &Namespace,
    what: &str,
    is: impl Fn(&Value) -> bool,
) -> Result<(String, Value)> {
    namespace
        .until(what, SOON, async || {
            let pods = namespace.pods(a()).await?;
            let pod = pods.first().context("no pod yet")?;
            let status = serde_json::to_value(&pod.status)?;
            Ok(is(&status).then(|| (pod.name_any(), status)))
        })
        .await
}

pub(crate) async fn status(namespace: &Namespace, pod: &str) -> Result<Value> {
    Ok(serde_json::to_value(namespace.api::<Pod>().get(pod).await?.status)?)
}

pub(crate) fn condition<'a>(status: &'a Value, kind: &str) -> &'a Value {
    let conditions = status["conditions"].as_array().expect("a pod has conditions");
    conditions.iter().find(|it| it["type"] == kind).expect("the condition is there")
}

pub(crate) fn is_ready(status: &Value) -> bool {
    status["conditions"].is_array() && condition(status, "Ready")["status"] == "True"
}

pub(crate) fn container(status: &Value) -> &Value {
    &status["containerStatuses"][0]
}
