//! Somebody else acts on the same group.

use anyhow::{Result, ensure};
use serde_json::json;
use zone_lab::kinds::ROLLOUT;
use zone_lab::{Lab, Namespace, Running};

use crate::support::{
    LONG, Layout, PROMOTE, RING, SOAKS, ask_all, ensure_code, ensure_says, group, until_rollout,
    zone,
};

/// A run in the middle of zone a.
async fn midway(lab: &Lab, stem: &str) -> Result<(Namespace, Running)> {
    let namespace = group(lab, stem, Layout { pause: "10s", ..RING }).await?;
    ask_all(&namespace, "myapp:v2").await?;
    let running = namespace.plugin(PROMOTE.into_iter().chain(SOAKS)).deadline(LONG).start()?;
    until_rollout(&namespace, zone("a"), "paused at 10 %", |rollout| {
        rollout["status"]["currentStepIndex"] == 2
    })
    .await?;
    Ok((namespace, running))
}

async fn ensure_others_wait(namespace: &Namespace) -> Result<()> {
    for name in ["test-b", "test-c"] {
        let waiting = namespace.get(ROLLOUT, name).await?;
        ensure!(waiting["status"]["currentStepIndex"] == 0, "{name} has moved");
    }
    Ok(())
}

#[tokio::test]
async fn somebody_elses_abort_stops_the_run() -> Result<()> {
    let lab = Lab::connect().await?;
    let (namespace, running) = midway(&lab, "theirs").await?;
    namespace.patch_status(ROLLOUT, "test-a", &json!({"abort": true})).await?;
    let stopped = running.finish().await?;
    ensure_code(&stopped, 8)?;
    ensure_says(&stopped, "somebody else aborted zone a")?;
    ensure_others_wait(&namespace).await
}

#[tokio::test]
async fn our_abort_in_another_terminal_stops_the_run() -> Result<()> {
    let lab = Lab::connect().await?;
    let (namespace, running) = midway(&lab, "ours").await?;
    let aborted = namespace.plugin(["abort"]).run().await?;
    ensure_code(&aborted, 0)?;
    ensure_says(&aborted, "zone a: aborted; the VirtualService gives the new version 0 %")?;
    let stopped = running.finish().await?;
    ensure_code(&stopped, 8)?;
    ensure_says(&stopped, "somebody else aborted zone a")?;
    ensure_others_wait(&namespace).await
}

#[tokio::test]
async fn a_full_promotion_elsewhere_stops_the_run() -> Result<()> {
    let lab = Lab::connect().await?;
    let (namespace, running) = midway(&lab, "full").await?;
    namespace.patch_status(ROLLOUT, "test-a", &json!({"promoteFull": true})).await?;
    let stopped = running.finish().await?;
    ensure_code(&stopped, 8)?;
    ensure_says(&stopped, "zone a was promoted by somebody else")?;
    ensure_others_wait(&namespace).await
}

#[tokio::test]
async fn another_gate_opened_elsewhere_stops_the_run() -> Result<()> {
    let lab = Lab::connect().await?;
    let (namespace, running) = midway(&lab, "gate").await?;
    namespace.patch_status(ROLLOUT, "test-c", &json!({"pauseConditions": null})).await?;
    let stopped = running.finish().await?;
    ensure_code(&stopped, 8)?;
    ensure_says(&stopped, "zone c was promoted by somebody else, or went on by itself")?;
    Ok(())
}

#[tokio::test]
async fn another_version_stops_the_run() -> Result<()> {
    let lab = Lab::connect().await?;
    let (namespace, running) = midway(&lab, "moved").await?;
    namespace.set_image("test-b", "myapp:v3").await?;
    let stopped = running.finish().await?;
    ensure_code(&stopped, 8)?;
    ensure_says(&stopped, "zone b is asked for another version now (myapp:v3)")?;
    Ok(())
}

/// The second driver is refused while the first renews its lease, and says whose it is.
#[tokio::test]
async fn two_drivers_do_not_drive() -> Result<()> {
    let lab = Lab::connect().await?;
    let (namespace, running) = midway(&lab, "two").await?;
    let refused = namespace.plugin(PROMOTE.into_iter().chain(SOAKS)).deadline(LONG).run().await?;
    ensure_code(&refused, 5)?;
    ensure_says(&refused, "the group is being driven by another run")?;
    ensure_says(&refused, "process")?;
    ensure_code(&running.finish().await?, 0)
}
