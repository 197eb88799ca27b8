//! `abort` where the controller leaves the traffic on the version that was given up.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use zone_lab::kinds::VIRTUAL_SERVICE;
use zone_lab::{Lab, Namespace};

use crate::schemas::ensure_fits;
use crate::support::{
    Layout, PROMOTE, RING, SOAKS, SOON, ZONE_LOCAL, ask_all, ensure_code, ensure_says, group,
    lose_ready, until_rollout, weight, zone,
};

/// A group with zone a at 20 %, left there by its driver, and so many of its three stable pods not
/// Ready.
async fn at_twenty(lab: &Lab, stem: &str, layout: Layout, unready: usize) -> Result<Namespace> {
    let layout = Layout { pause: "10m", weights: &[20], ..layout };
    let namespace = group(lab, stem, layout).await?;
    ask_all(&namespace, "myapp:v2").await?;
    let a = zone("a");
    let stable: Vec<String> =
        namespace.pods(a).await?.iter().filter_map(|pod| pod.metadata.name.clone()).collect();
    let mut running = namespace.plugin(PROMOTE.into_iter().chain(SOAKS)).start()?;
    running.line("zone a  step 2/3").await?;
    running.kill().await?;
    ensure!(weight(&namespace, a).await? == 20, "20 % is not in force");
    lose_ready(&namespace, a, &stable[..unready]).await?;
    Ok(namespace)
}

/// The clients of zone a leave the new version at once, although the controller would keep them.
/// Alone in the lab, since it is about time.
#[tokio::test]
async fn clients_leave_within_two_seconds_with_a_stable_pod_missing() -> Result<()> {
    let lab = Lab::connect_alone().await?;
    let namespace = at_twenty(&lab, "short", ZONE_LOCAL, 1).await?;
    let a = zone("a");
    let load = namespace.load(&[a], 100)?;
    namespace
        .until("clients on the new version", SOON, async || {
            Ok((load.so_far().count("a/v2") > 20).then_some(()))
        })
        .await?;
    let aborted_at = Instant::now();
    let aborted = namespace.plugin(["abort", "a"]).run().await?;
    namespace
        .until("a while without the new version", SOON, async || {
            Ok((load.so_far().since(aborted_at + Duration::from_secs(2)).total() > 300)
                .then_some(()))
        })
        .await?;
    let tally = load.stop().await?;
    ensure_code(&aborted, 0)?;
    ensure_says(&aborted, "zone a: aborted, but the controller left traffic on the new version")?;
    ensure_says(&aborted, "2 of 3 stable pods are Ready")?;
    ensure_says(&aborted, "the VirtualService gives the new version 0 %")?;
    let late = tally.since(aborted_at + Duration::from_secs(2));
    ensure!(late.count("a/v2") == 0, "clients were still on the new version: {late}");
    ensure!(tally.errors() == 0, "clients saw errors: {tally}");
    Ok(())
}

/// One pod of three cannot take what three carried: refused, with the load named, until forced.
#[tokio::test]
async fn too_few_stable_pods_are_not_overloaded_without_a_word() -> Result<()> {
    let lab = Lab::connect().await?;
    let namespace = at_twenty(&lab, "few", ZONE_LOCAL, 2).await?;
    let refused = namespace.plugin(["abort", "a"]).run().await?;
    ensure_code(&refused, 3)?;
    ensure_says(&refused, "aborted, but 20 % of its traffic stays on the new version")?;
    ensure_says(
        &refused,
        "1 of 3 stable pods are Ready and would carry 3.0 times their normal load",
    )?;
    ensure_says(&refused, "--force-weights")?;
    ensure!(weight(&namespace, zone("a")).await? == 20, "the route was written all the same");
    let forced = namespace.plugin(["abort", "a", "--force-weights"]).run().await?;
    ensure_code(&forced, 0)?;
    ensure!(weight(&namespace, zone("a")).await? == 0);
    Ok(())
}

/// In the ring, the next zone answers for what a zone cannot.
#[tokio::test]
async fn in_the_ring_the_next_zone_helps() -> Result<()> {
    let lab = Lab::connect().await?;
    let namespace = at_twenty(&lab, "helped", RING, 3).await?;
    let aborted = namespace.plugin(["abort"]).run().await?;
    ensure_code(&aborted, 0)?;
    ensure_says(&aborted, "with failover to other zones")?;
    ensure!(weight(&namespace, zone("a")).await? == 0);
    Ok(())
}

/// Nothing to take back is said, not done.
#[tokio::test]
async fn zones_at_rest_or_at_their_gate_are_told_apart() -> Result<()> {
    let lab = Lab::connect().await?;
    let namespace = group(&lab, "rest", RING).await?;
    namespace.set_image("test-b", "myapp:v2").await?;
    until_rollout(&namespace, zone("b"), "at its gate", |rollout| {
        rollout["status"]["pauseConditions"][0]["reason"] == "CanaryPauseStep"
    })
    .await?;
    let before = namespace.get(VIRTUAL_SERVICE, "test").await?;
    let told = namespace.plugin(["abort", "a", "b"]).run().await?;
    ensure_code(&told, 0)?;
    ensure_says(&told, "zone a: nothing to take back: it is at rest on myapp:v1")?;
    ensure_says(&told, "zone b: never started: it waits at its gate, untouched")?;
    let json = namespace.plugin(["abort", "a", "b", "-o", "json"]).run().await?;
    ensure_fits("abort", &serde_json::from_str(&json.stdout)?)?;
    let none = namespace.plugin(["abort"]).run().await?;
    ensure_code(&none, 0)?;
    ensure_says(&none, "no zone is in flight")?;
    let after = namespace.get(VIRTUAL_SERVICE, "test").await?;
    ensure!(before["metadata"]["generation"] == after["metadata"]["generation"]);
    Ok(())
}
