//! What image tags ask for, and what can happen to a single pod.

use std::time::Instant;

use anyhow::{Result, ensure};
use kube::ResourceExt;
use serde_json::json;
use zone_lab::Lab;
use zone_lab::kinds::ROLLOUT;

use crate::{SOON, a, condition, container, is_ready, pod_that, single};

#[tokio::test]
async fn never_ready_runs_without_ready() -> Result<()> {
    let lab = Lab::connect().await?;
    let namespace = lab.namespace("never").await?;
    namespace.apply(&[single("myapp:v1-never-ready", 1)]).await?;
    let (_, status) =
        pod_that(&namespace, "a running pod", |status| status["phase"] == "Running").await?;
    for kind in ["Ready", "ContainersReady"] {
        let condition = condition(&status, kind);
        assert_eq!(condition["status"], "False");
        assert_eq!(condition["reason"], "ContainersNotReady");
        assert_eq!(condition["message"], "containers with unready status: [app]");
    }
    assert_eq!(condition(&status, "Initialized")["status"], "True");
    assert_eq!(container(&status)["started"], true);
    assert_eq!(container(&status)["ready"], false);
    Ok(())
}

#[tokio::test]
async fn slow_gets_ready_after_ten_seconds() -> Result<()> {
    let lab = Lab::connect().await?;
    let namespace = lab.namespace("slow").await?;
    namespace.apply(&[single("myapp:slow", 1)]).await?;
    pod_that(&namespace, "a running pod", |status| status["phase"] == "Running").await?;
    let start = Instant::now();
    pod_that(&namespace, "a Ready pod", is_ready).await?;
    let took = start.elapsed().as_secs_f32();
    ensure!((8.0..20.0).contains(&took), "Ready after {took} s");
    namespace.await_phase("single", "Healthy").await
}

#[tokio::test]
async fn crash_loop_restarts_and_backs_off() -> Result<()> {
    let lab = Lab::connect().await?;
    let namespace = lab.namespace("crash").await?;
    namespace.apply(&[single("myapp:crash-loop", 1)]).await?;
    let (_, status) = pod_that(&namespace, "three restarts and a pause", |status| {
        let container = container(status);
        container["restartCount"].as_i64() >= Some(3)
            && container["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    })
    .await?;
    let container = container(&status);
    assert_eq!(container["lastState"]["terminated"]["exitCode"], 1);
    assert_eq!(container["lastState"]["terminated"]["reason"], "Error");
    assert_eq!(container["ready"], false);
    assert_eq!(container["started"], false);
    let message = container["state"]["waiting"]["message"].as_str().unwrap_or_default();
    ensure!(message.contains("restarting failed container=app pod=single-"), "{message}");
    assert_eq!(condition(&status, "Ready")["status"], "False");
    assert_eq!(status["phase"], "Running");
    Ok(())
}

#[tokio::test]
async fn pull_fail_waits_for_its_image() -> Result<()> {
    let lab = Lab::connect().await?;
    let namespace = lab.namespace("pull").await?;
    namespace.apply(&[single("registry.example/myapp:pull-fail", 1)]).await?;
    let (_, status) = pod_that(&namespace, "a pod without image", |status| {
        container(status)["state"]["waiting"]["reason"] == "ImagePullBackOff"
    })
    .await?;
    assert_eq!(status["phase"], "Pending");
    assert_eq!(container(&status)["image"], "registry.example/myapp:pull-fail");
    assert_eq!(condition(&status, "Ready")["reason"], "ContainersNotReady");
    Ok(())
}

#[tokio::test]
async fn ready_is_held_and_given_back() -> Result<()> {
    let lab = Lab::connect().await?;
    let namespace = lab.namespace("hold").await?;
    namespace.deploy(&[single("myapp:v1", 2)]).await?;
    let pods = namespace.pods(a()).await?;
    let [held, restarted] = [pods[0].name_any(), pods[1].name_any()];
    namespace.hold_unready(&held).await?;
    namespace.restart(&restarted).await?;
    // Whatever gives Ready back to one pod had the same time for the other.
    let status = namespace
        .until("the restarted pod to be Ready again", SOON, async || {
            let status = crate::status(&namespace, &restarted).await?;
            Ok(is_ready(&status).then_some(status))
        })
        .await?;
    assert_eq!(container(&status)["restartCount"], 1);
    assert_eq!(container(&status)["lastState"]["terminated"]["exitCode"], 137);
    let now = crate::status(&namespace, &held).await?;
    assert_eq!(condition(&now, "Ready")["reason"], "ContainersNotReady");
    assert_eq!(container(&now)["ready"], false);
    namespace.release_ready(&held).await?;
    assert!(is_ready(&crate::status(&namespace, &held).await?));
    Ok(())
}

#[tokio::test]
async fn evictions_heed_disruption_budgets() -> Result<()> {
    let lab = Lab::connect().await?;
    let namespace = lab.namespace("evict").await?;
    let budget = json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "single"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "single"}}},
    });
    namespace.deploy(&[single("myapp:v1", 2), budget]).await?;
    let pods = namespace.pods(a()).await?;
    namespace
        .until("an eviction", SOON, async || namespace.evict(&pods[0].name_any()).await.map(Some))
        .await?;
    namespace.patch(ROLLOUT, "single", &json!({"spec": {"replicas": 1}})).await?;
    namespace
        .until("one pod", SOON, async || Ok((namespace.pods(a()).await?.len() == 1).then_some(())))
        .await?;
    let last = namespace.pods(a()).await?[0].name_any();
    let refused = namespace.evict(&last).await.expect_err("the budget forbids it");
    ensure!(format!("{refused:#}").contains("disruption budget"), "{refused:#}");
    Ok(())
}
