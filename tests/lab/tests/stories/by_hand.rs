//! `retry`, `undo`, `hold` and `release`: what people do to single zones, seen in the cluster.

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use zone_lab::kinds::ROLLOUT;
use zone_lab::{Lab, Namespace, ZONES};

use crate::schemas::ensure_fits;
use crate::support::{
    History, LONG, Layout, PROMOTE, RING, SOAKS, ask_all, at_gate, ensure_all_on, ensure_code,
    ensure_says, group, open_gate, stable_image, until_rollout, weight, zone,
};

/// A group with zone a at 20 % for as long as anybody looks.
async fn at_twenty(lab: &Lab, stem: &str) -> Result<Namespace> {
    let namespace = group(lab, stem, Layout { pause: "10m", weights: &[20], ..RING }).await?;
    ask_all(&namespace, "myapp:v2").await?;
    open_gate(&namespace, zone("a"), 20).await?;
    Ok(namespace)
}

/// The zones and results of a JSON document.
fn results(stdout: &str) -> Result<Vec<(String, String)>> {
    let document: Value = serde_json::from_str(stdout)?;
    ensure_fits("by-hand", &document)?;
    let zones = document["zones"].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Ok(zones.iter().map(|zone| (text(&zone["zone"]), text(&zone["result"]))).collect())
}

/// A zone is aborted, started again, waits at its gate, and is promoted as if nothing had been.
#[tokio::test]
async fn an_aborted_zone_starts_again_at_its_gate() -> Result<()> {
    let lab = Lab::connect().await?;
    let namespace = group(&lab, "retry", RING).await?;
    ask_all(&namespace, "myapp:v2").await?;
    open_gate(&namespace, zone("a"), 10).await?;
    ensure_code(&namespace.plugin(["abort", "a"]).run().await?, 0)?;
    let retried = namespace.plugin(["retry"]).run().await?;
    ensure_code(&retried, 0)?;
    ensure_says(&retried, "zone a: waits at its gate again")?;
    ensure!(at_gate(&namespace.get(ROLLOUT, "test-a").await?), "it is not at its gate");
    let again = namespace.plugin(["retry", "a", "-o", "json"]).run().await?;
    ensure_code(&again, 0)?;
    ensure!(results(&again.stdout)? == [("a".to_owned(), "Already".to_owned())], "{again}");
    let arguments = PROMOTE.into_iter().chain(SOAKS);
    let promoted = namespace.plugin(arguments).deadline(LONG).run().await?;
    ensure_code(&promoted, 0)?;
    ensure_all_on(&namespace, "myapp:v2").await
}

/// A zone is held by hand where it is, and goes on when it is released.
#[tokio::test]
async fn a_zone_is_held_midway_and_released() -> Result<()> {
    let lab = Lab::connect().await?;
    let namespace = group(&lab, "held", Layout { pause: "8s", weights: &[20, 50], ..RING }).await?;
    ask_all(&namespace, "myapp:v2").await?;
    open_gate(&namespace, zone("a"), 20).await?;
    let held = namespace.plugin(["hold"]).run().await?;
    ensure_code(&held, 0)?;
    ensure_says(&held, "zone a: held (spec.paused): it goes on only when released")?;
    ensure_says(&held, "kubectl zone-rollout release test/a")?;
    let refused = namespace.plugin(PROMOTE).run().await?;
    ensure_code(&refused, 5)?;
    ensure_says(&refused, "zone a was held in the middle of its update")?;
    let released = namespace.plugin(["release", "-o", "json"]).run().await?;
    ensure_code(&released, 0)?;
    ensure!(results(&released.stdout)? == [("a".to_owned(), "Done".to_owned())], "{released}");
    until_rollout(&namespace, zone("a"), "on the new version", |rollout| {
        let status = &rollout["status"];
        status["stableRS"] == status["currentPodHash"]
    })
    .await?;
    // What somebody else has paused is theirs to release.
    let pause = json!({"spec": {"paused": true}});
    namespace.patch(ROLLOUT, "test-b", &pause).await?;
    let refused = namespace.plugin(["release", "b"]).run().await?;
    ensure_code(&refused, 5)?;
    ensure_says(&refused, "it is paused by spec.paused, not by this tool")
}

/// In mid-canary, the stable version comes back at once, without a canary of its own and without an
/// error: the labels that the controller adds to its pods are no part of it.
#[tokio::test]
async fn an_undo_midway_brings_the_stable_version_back_at_once() -> Result<()> {
    let lab = Lab::connect().await?;
    let namespace = at_twenty(&lab, "midway").await?;
    let before = namespace.get(ROLLOUT, "test-a").await?["status"]["stableRS"].clone();
    let load = namespace.load(&[zone("a")], 50)?;
    let undone = namespace.plugin(["undo", "a"]).run().await?;
    ensure_code(&undone, 0)?;
    ensure_says(&undone, "zone a: asks for its stable version again")?;
    ensure!(weight(&namespace, zone("a")).await? == 0, "the canary has traffic");
    let rollout = namespace.get(ROLLOUT, "test-a").await?;
    ensure!(rollout["status"]["currentPodHash"] == before, "a new template: {rollout}");
    ensure!(rollout["status"]["stableRS"] == before, "another stable version: {rollout}");
    let tally = load.stop().await?;
    ensure!(tally.errors() == 0, "clients saw errors: {tally}");
    // At its gate, another zone is taken back in the same way, and nothing is left to promote.
    ensure_code(&namespace.plugin(["undo", "--all"]).run().await?, 0)?;
    ensure_all_on(&namespace, "myapp:v1").await?;
    let nothing = namespace.plugin(PROMOTE).run().await?;
    ensure_code(&nothing, 0)?;
    ensure_says(&nothing, "nothing to do: no zone is being updated")
}

/// A finished release goes back zone by zone, the newest first, one at a time, without an error.
#[tokio::test]
async fn an_undo_of_a_finished_release_goes_back_zone_by_zone() -> Result<()> {
    let lab = Lab::connect().await?;
    let namespace = group(&lab, "undone", RING).await?;
    ask_all(&namespace, "myapp:v2").await?;
    let arguments = PROMOTE.into_iter().chain(SOAKS);
    ensure_code(&namespace.plugin(arguments).deadline(LONG).run().await?, 0)?;
    let many = namespace.plugin(["undo"]).run().await?;
    ensure_code(&many, 2)?;
    ensure_says(&many, "several zones are on the newest version")?;
    let load = namespace.load(&ZONES, 50)?;
    let history = History::record(&namespace);
    let undone = namespace.plugin(["undo", "--all", "--yes"]).deadline(LONG).run().await?;
    ensure_code(&undone, 0)?;
    ensure_says(&undone, "set what it ran before, follow its steps")?;
    ensure_says(&undone, "Done at +")?;
    history.ensure_one_at_a_time()?;
    ensure!(history.order() == ["c", "b", "a"], "order: {:?}", history.order());
    ensure_all_on(&namespace, "myapp:v1").await?;
    let tally = load.stop().await?;
    ensure!(tally.errors() == 0, "clients saw errors: {tally}");
    Ok(())
}

/// With a rollback window the controller takes the earlier version without any step.
#[tokio::test]
async fn a_rollback_window_makes_the_way_back_short() -> Result<()> {
    let lab = Lab::connect().await?;
    let namespace = group(&lab, "window", RING).await?;
    let window = json!({"spec": {"rollbackWindow": {"revisions": 3}}});
    for name in ["test-a", "test-b", "test-c"] {
        namespace.patch(ROLLOUT, name, &window).await?;
    }
    ask_all(&namespace, "myapp:v2").await?;
    let arguments = PROMOTE.into_iter().chain(SOAKS);
    ensure_code(&namespace.plugin(arguments).deadline(LONG).run().await?, 0)?;
    let load = namespace.load(&[zone("c")], 50)?;
    let undone = namespace.plugin(["undo", "c", "--yes"]).deadline(LONG).run().await?;
    ensure_code(&undone, 0)?;
    ensure_says(&undone, "How long it takes is not known")?;
    ensure!(stable_image(&namespace, zone("c")).await? == "myapp:v1");
    ensure!(stable_image(&namespace, zone("b")).await? == "myapp:v2");
    let tally = load.stop().await?;
    ensure!(tally.errors() == 0, "clients saw errors: {tally}");
    Ok(())
}
