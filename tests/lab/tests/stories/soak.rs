//! What happens to a zone while it is watched after its promotion.

use anyhow::{Result, ensure};
use serde_json::json;
use zone_lab::kinds::ROLLOUT;
use zone_lab::{Lab, Namespace, Running};

use crate::support::{LONG, PROMOTE, RING, ask_all, ensure_code, group, zone};

/// A run whose first zone is being watched.
async fn watching(lab: &Lab, stem: &str) -> Result<(Namespace, Running)> {
    let namespace = group(lab, stem, RING).await?;
    ask_all(&namespace, "myapp:v2").await?;
    let arguments = PROMOTE.into_iter().chain(["--only", "a", "--first-soak", "8s"]);
    let mut running = namespace.plugin(arguments).deadline(LONG).start()?;
    running.line("zone a  promoted and verified; watching it for 8s").await?;
    Ok((namespace, running))
}

async fn a_pod(namespace: &Namespace) -> Result<String> {
    let pods = namespace.pods(zone("a")).await?;
    let pod = pods.iter().find(|pod| {
        let labels = pod.metadata.labels.as_ref();
        labels.is_some_and(|labels| {
            labels.get("zone-rollout.io/role").is_some_and(|role| role == "stable")
        })
    });
    pod.and_then(|pod| pod.metadata.name.clone())
        .ok_or_else(|| anyhow::anyhow!("zone a has no stable pod"))
}

#[tokio::test]
async fn a_restart_starts_the_watch_again() -> Result<()> {
    let lab = Lab::connect().await?;
    let (namespace, mut running) = watching(&lab, "restart").await?;
    let pod = a_pod(&namespace).await?;
    namespace.restart(&pod).await?;
    running.line("zone a  watching starts again").await?;
    running.line("zone a  promoted and verified; watching it for 8s").await?;
    ensure_code(&running.finish().await?, 0)
}

#[tokio::test]
async fn an_eviction_halts_the_watch_until_the_pod_is_replaced() -> Result<()> {
    let lab = Lab::connect().await?;
    let (namespace, mut running) = watching(&lab, "evict").await?;
    let pod = a_pod(&namespace).await?;
    namespace.evict(&pod).await?;
    running.line("zone a  watching stands still: 2 of 3 pods are Ready").await?;
    let finished = running.finish().await?;
    ensure_code(&finished, 0)?;
    ensure!(!finished.stderr.contains("watching starts again"), "{finished}");
    Ok(())
}

#[tokio::test]
async fn growth_halts_the_watch_until_the_new_pods_are_ready() -> Result<()> {
    let lab = Lab::connect().await?;
    let (namespace, mut running) = watching(&lab, "growth").await?;
    namespace.patch(ROLLOUT, "test-a", &json!({"spec": {"replicas": 5}})).await?;
    running.line("zone a  watching stands still: 3 of 5 pods are Ready").await?;
    let finished = running.finish().await?;
    ensure_code(&finished, 0)?;
    ensure!(!finished.stderr.contains("watching starts again"), "{finished}");
    Ok(())
}
