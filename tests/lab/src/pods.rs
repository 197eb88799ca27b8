//! What can happen to a single pod.

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;
use kube::api::{EvictParams, ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::kinds::POD;
use crate::kwok::HOLD_UNREADY;
use crate::namespace::Namespace;
use crate::zones::Zone;

impl Namespace {
    /// The pods of a zone, but for those on their way out.
    ///
    /// # Errors
    ///
    /// When they cannot be listed.
    pub async fn pods(&self, zone: Zone) -> Result<Vec<Pod>> {
        let of_zone = ListParams::default().labels(&format!("zone={}", zone.short));
        let mut pods = self.api::<Pod>().list(&of_zone).await.context("cannot list pods")?.items;
        pods.retain(|pod| pod.metadata.deletion_timestamp.is_none());
        Ok(pods)
    }

    /// Makes a pod fail its readiness probe until [`Namespace::release_ready`].
    ///
    /// # Errors
    ///
    /// When the pod cannot be changed.
    pub async fn hold_unready(&self, pod: &str) -> Result<()> {
        self.annotate(pod, &json!("test")).await?;
        self.change_containers(pod, false, |container| container["ready"] = json!(false)).await
    }

    /// Makes a pod Ready again.
    ///
    /// # Errors
    ///
    /// When the pod cannot be changed.
    pub async fn release_ready(&self, pod: &str) -> Result<()> {
        self.change_containers(pod, true, |container| container["ready"] = json!(true)).await?;
        self.annotate(pod, &Value::Null).await
    }

    /// Ends every container of a pod with exit code 137 and starts it again. The pod loses Ready
    /// and gets it back after a second.
    ///
    /// # Errors
    ///
    /// When the pod cannot be changed.
    pub async fn restart(&self, pod: &str) -> Result<()> {
        let now = Timestamp::now();
        self.change_containers(pod, false, |container| {
            let count = container["restartCount"].as_i64().unwrap_or_default() + 1;
            container["lastState"] = json!({"terminated": {
                "exitCode": 137,
                "reason": "Error",
                "startedAt": container["state"]["running"]["startedAt"],
                "finishedAt": now,
                "containerID": container["containerID"],
            }});
            container["state"] = json!({"running": {"startedAt": now}});
            container["restartCount"] = json!(count);
            container["ready"] = json!(false);
        })
        .await
    }

    /// Asks for a pod's eviction, as `kubectl drain` does.
    ///
    /// # Errors
    ///
    /// When it is refused, by a disruption budget for example.
    pub async fn evict(&self, pod: &str) -> Result<()> {
        let evicted = self.api::<Pod>().evict(pod, &EvictParams::default()).await;
        evicted.with_context(|| format!("cannot evict pod {pod}"))?;
        Ok(())
    }

    async fn annotate(&self, pod: &str, value: &Value) -> Result<()> {
        self.patch(POD, pod, &json!({"metadata": {"annotations": {HOLD_UNREADY: value}}})).await
    }

    /// Changes the status of every container of a pod, and the pod's conditions with them.
    async fn change_containers(
        &self,
        name: &str,
        ready: bool,
        change: impl Fn(&mut Value),
    ) -> Result<()> {
        let pods = self.api::<Pod>();
        let pod = pods.get(name).await.with_context(|| format!("cannot read pod {name}"))?;
        let statuses = pod.status.as_ref().and_then(|status| status.container_statuses.as_ref());
        let mut containers = serde_json::from_value::<Vec<Value>>(serde_json::to_value(statuses)?)
            .with_context(|| format!("pod {name} has not started"))?;
        containers.iter_mut().for_each(change);
        let conditions = conditions(&pod, ready);
        let status = json!({"conditions": conditions, "containerStatuses": containers});
        // The API server merges conditions by their type, and replaces containers.
        let patch = Patch::Strategic(json!({"status": status}));
        pods.patch_status(name, &PatchParams::default(), &patch)
            .await
            .with_context(|| format!("cannot change the status of pod {name}"))?;
        Ok(())
    }
}

/// The conditions of a pod whose containers are Ready, or are not.
fn conditions(pod: &Pod, ready: bool) -> Value {
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let names: Vec<&str> = containers.map(|container| &*container.name).collect();
    let (status, reason, message) = if ready {
        ("True", None, None)
    } else {
        let message = format!("containers with unready status: [{}]", names.join(" "));
        ("False", Some("ContainersNotReady"), Some(message))
    };
    let condition = |kind: &str| {
        json!({
            "type": kind, "status": status, "reason": reason, "message": message,
            "lastTransitionTime": Timestamp::now(),
        })
    };
    json!([condition("Ready"), condition("ContainersReady")])
}
