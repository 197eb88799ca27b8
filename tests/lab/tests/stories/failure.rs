//! Releases that fail, and zones that are lost: the run stops, and says what and why.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use zone_lab::kinds::ROLLOUT;
use zone_lab::{Lab, ZONES};

use crate::support::{
    LONG, Layout, PROMOTE, RING, SOAKS, SOON, ask_all, ensure_code, ensure_says, group, rollout,
    stable_image, until_rollout, weight, zone,
};

/// A version that does not come up in zone b: a is on it, c is untouched at its gate.
async fn stops_at_zone_b(stem: &str, image: &str, reason: &str) -> Result<()> {
    let lab = Lab::connect().await?;
    let namespace = group(&lab, stem, Layout { deadline: 10, ..RING }).await?;
    ask_all(&namespace, image).await?;
    let stopped = namespace.plugin(PROMOTE.into_iter().chain(SOAKS)).deadline(LONG).run().await?;
    ensure_code(&stopped, 3)?;
    ensure_says(&stopped, "zone b failed: ")?;
    ensure_says(&stopped, reason)?;
    ensure_says(&stopped, "pod `test-b-")?;
    ensure_says(&stopped, "later zones were not touched")?;
    ensure_says(&stopped, "kubectl describe pod test-b-")?;
    ensure_says(&stopped, "kubectl zone-rollout abort test/b")?;
    for (zone, stable) in ZONES.into_iter().zip([image, "myapp:v1", "myapp:v1"]) {
        ensure!(stable_image(&namespace, zone).await? == stable, "zone {}", zone.short);
    }
    let untouched = namespace.get(ROLLOUT, "test-c").await?;
    ensure!(untouched["status"]["currentStepIndex"] == 0, "zone c has moved");
    ensure!(untouched["status"]["pauseConditions"][0]["reason"] == "CanaryPauseStep");
    let shown = namespace.plugin(["status", "--exit-code"]).run().await?;
    ensure!(matches!(shown.code(), Some(3 | 4 | 7)), "{shown}");
    Ok(())
}

#[tokio::test]
async fn a_version_that_never_gets_ready_stops_the_run() -> Result<()> {
    stops_at_zone_b("never", "myapp:v2-never-ready-in-b", "is not Ready").await
}

#[tokio::test]
async fn a_version_that_crashes_stops_the_run() -> Result<()> {
    stops_at_zone_b("crash", "myapp:v2-crash-loop-in-b", "crashes: container `app`").await
}

/// With `--on-failure abort-zone` the zone that failed is taken back as well.
#[tokio::test]
async fn a_failed_zone_is_taken_back_if_asked_to() -> Result<()> {
    let lab = Lab::connect().await?;
    let namespace = group(&lab, "takeback", Layout { deadline: 10, ..RING }).await?;
    ask_all(&namespace, "myapp:v2-crash-loop-in-a").await?;
    let arguments = PROMOTE.into_iter().chain(SOAKS).chain(["--on-failure", "abort-zone"]);
    let stopped = namespace.plugin(arguments).deadline(LONG).run().await?;
    ensure_code(&stopped, 3)?;
    ensure_says(&stopped, "zone a is taken back")?;
    let aborted = namespace.get(ROLLOUT, "test-a").await?;
    ensure!(aborted["status"]["abort"] == true, "zone a is not aborted");
    ensure!(weight(&namespace, zone("a")).await? == 0);
    Ok(())
}

/// All stable pods of a zone are lost in mid-canary. Left alone, the controller would march on
/// through its steps and promote; the run holds the zone, sends its clients away, and stops.
#[tokio::test]
async fn a_zone_lost_in_mid_canary_is_held() -> Result<()> {
    let lab = Lab::connect().await?;
    let namespace = group(&lab, "lost", Layout { pause: "20s", ..RING }).await?;
    ask_all(&namespace, "myapp:v2").await?;
    let a = zone("a");
    let old: Vec<String> =
        namespace.pods(a).await?.iter().filter_map(|pod| pod.metadata.name.clone()).collect();
    let running = namespace.plugin(PROMOTE.into_iter().chain(SOAKS)).deadline(LONG).start()?;
    until_rollout(&namespace, a, "paused at 10 %", |rollout| {
        rollout["status"]["currentStepIndex"] == 2
    })
    .await?;
    for pod in &old {
        namespace.hold_unready(pod).await?;
    }
    let stopped = running.finish().await?;
    ensure_code(&stopped, 3)?;
    ensure_says(
        &stopped,
        "the zone is lost, whatever it runs: none of the zone's 3 stable pods is Ready",
    )?;
    ensure_says(&stopped, "held")?;
    let held = namespace.get(ROLLOUT, &rollout(a)).await?;
    ensure!(held["spec"]["paused"] == true, "zone a is not held");
    ensure!(held["status"]["stableRS"] != held["status"]["currentPodHash"], "zone a was promoted");
    for zone in [zone("b"), zone("c")] {
        let untouched = namespace.get(ROLLOUT, &rollout(zone)).await?;
        ensure!(untouched["status"]["currentStepIndex"] == 0, "zone {} has moved", zone.short);
    }
    ensure!(weight(&namespace, a).await? == 0, "its clients are still on the new version");
    let settled = Instant::now() + Duration::from_secs(1);
    let load = namespace.load(&[a], 50)?;
    namespace
        .until("200 answers", SOON, async || {
            Ok((load.so_far().since(settled).total() >= 200).then_some(()))
        })
        .await?;
    let tally = load.stop().await?.since(settled);
    ensure!(tally.errors() == 0, "clients of zone a saw errors: {tally}");
    ensure!(tally.share("b/v1") > 0.99, "clients of zone a are not in zone b: {tally}");
    Ok(())
}

/// A zone whose nodes are gone before the start is not started, and named; it can be left out.
#[tokio::test]
async fn a_zone_without_nodes_is_refused_or_left_out() -> Result<()> {
    let lab = Lab::connect_alone().await?;
    let namespace = group(&lab, "nodes", RING).await?;
    ask_all(&namespace, "myapp:v2").await?;
    let c = zone("c");
    lab.nodes_not_ready(c).await?;
    let refused = namespace.plugin(PROMOTE.into_iter().chain(SOAKS)).run().await?;
    ensure_code(&refused, 5)?;
    ensure_says(&refused, "zone c is lost: none of the zone's 2 nodes is Ready")?;
    ensure_says(&refused, "--skip-zone c")?;
    let arguments = PROMOTE.into_iter().chain(SOAKS).chain(["--skip-zone", "c"]);
    let promoted = namespace.plugin(arguments).deadline(LONG).run().await?;
    lab.nodes_back(c).await?;
    ensure_code(&promoted, 0)?;
    ensure_says(&promoted, "done: zones a, b on myapp:v2")?;
    let untouched = namespace.get(ROLLOUT, "test-c").await?;
    ensure!(untouched["status"]["currentStepIndex"] == 0, "zone c has moved");
    Ok(())
}

/// A zone that wants no pods can prove nothing.
#[tokio::test]
async fn a_parked_zone_is_refused_or_left_out() -> Result<()> {
    let lab = Lab::connect().await?;
    let namespace = group(&lab, "parked", RING).await?;
    namespace.patch(ROLLOUT, "test-b", &serde_json::json!({"spec": {"replicas": 0}})).await?;
    ask_all(&namespace, "myapp:v2").await?;
    let refused = namespace.plugin(PROMOTE.into_iter().chain(SOAKS)).run().await?;
    ensure_code(&refused, 5)?;
    ensure_says(&refused, "zone b is parked at 0 replicas")?;
    let arguments = PROMOTE.into_iter().chain(SOAKS).chain(["--skip-zone", "b"]);
    let promoted = namespace.plugin(arguments).deadline(LONG).run().await?;
    ensure_code(&promoted, 0)?;
    ensure_says(&promoted, "done: zones a, c on myapp:v2")?;
    Ok(())
}
