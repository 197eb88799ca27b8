//! Three zones in order, without an error for any client.

use anyhow::{Result, ensure};
use zone_lab::{Lab, ZONES};

use crate::support::{
    History, LONG, Layout, PROMOTE, RING, ask_all, ensure_code, ensure_says, group, stable_image,
    told_to_move, writes,
};

/// The main job, through kubectl, under load: order, one guarded patch a zone, no error.
#[tokio::test]
async fn three_zones_one_after_another_without_an_error() -> Result<()> {
    let lab = Lab::connect().await?;
    let namespace = group(&lab, "order", Layout { pause: "5s", ..RING }).await?;
    ask_all(&namespace, "myapp:v2").await?;
    let mark = lab.audit_mark()?;
    let history = History::record(&namespace);
    let load = namespace.load(&ZONES, 50)?;

    let looked = namespace.kubectl_plugin(["status"]).run().await?;
    ensure_code(&looked, 0)?;
    ensure_says(&looked, "at its gate")?;
    ensure_code(
        &namespace.kubectl_plugin(["promote", "--sequential", "--dry-run"]).run().await?,
        0,
    )?;
    ensure!(writes(&lab, &namespace, mark).await?.is_empty(), "verbs that only read have written");

    let arguments = PROMOTE.into_iter().chain(["--soak", "5s", "--first-soak", "10s"]);
    let promoted = namespace.kubectl_plugin(arguments).deadline(LONG).run().await?;
    let tally = load.stop().await?;
    ensure_code(&promoted, 0)?;
    ensure_says(&promoted, "done: zones a, b, c on myapp:v2, verified")?;

    for zone in ZONES {
        ensure!(stable_image(&namespace, zone).await? == "myapp:v2", "zone {}", zone.short);
        ensure!(
            history.steps(zone) == (0..=9).collect::<Vec<_>>(),
            "zone {} skipped a step",
            zone.short
        );
    }
    history.ensure_one_at_a_time()?;
    ensure!(history.order() == ["a", "b", "c"], "order was {:?}", history.order());
    ensure!(tally.errors() == 0, "clients saw errors: {tally}");
    ensure!(tally.total() >= 10_000, "too few requests to tell: {tally}");

    let opened = told_to_move(&lab, &namespace, mark).await?;
    ensure!(opened == ["test-a", "test-b", "test-c"], "gates opened: {opened:?}");
    Ok(())
}

/// Zones can be named in another order, and started somewhere else.
#[tokio::test]
async fn the_order_can_be_chosen() -> Result<()> {
    let lab = Lab::connect().await?;
    let namespace = group(&lab, "chosen", RING).await?;
    ask_all(&namespace, "myapp:v2").await?;
    let history = History::record(&namespace);
    let arguments = [
        "promote",
        "--sequential",
        "--yes",
        "--order",
        "c,us-east-1a,test-b",
        "--soak",
        "1s",
        "--first-soak",
        "1s",
    ];
    let promoted = namespace.plugin(arguments).deadline(LONG).run().await?;
    ensure_code(&promoted, 0)?;
    ensure!(history.order() == ["c", "a", "b"], "order was {:?}", history.order());
    Ok(())
}

/// Several zones need `--sequential`; a single zone does not.
#[tokio::test]
async fn one_zone_alone_or_all_in_sequence() -> Result<()> {
    let lab = Lab::connect().await?;
    let namespace = group(&lab, "alone", RING).await?;
    ask_all(&namespace, "myapp:v2").await?;
    let refused = namespace.plugin(["promote", "--yes"]).run().await?;
    ensure_code(&refused, 2)?;
    ensure_says(&refused, "--sequential")?;
    let promoted = namespace
        .plugin(["promote", "b", "--yes", "--soak", "1s", "--first-soak", "1s"])
        .deadline(LONG)
        .run()
        .await?;
    ensure_code(&promoted, 0)?;
    for (zone, image) in ZONES.into_iter().zip(["myapp:v1", "myapp:v2", "myapp:v1"]) {
        ensure!(stable_image(&namespace, zone).await? == image, "zone {}", zone.short);
    }
    Ok(())
}

/// Killed at ten moments and started again with the same words: the same end, no step skipped.
#[tokio::test]
async fn killed_at_any_moment_it_comes_to_the_same_end() -> Result<()> {
    let lab = Lab::connect().await?;
    let namespace = group(&lab, "killed", RING).await?;
    ask_all(&namespace, "myapp:v2").await?;
    let mark = lab.audit_mark()?;
    let history = History::record(&namespace);
    let arguments = ["promote", "--sequential", "--yes", "--soak", "1s", "--first-soak", "1s"];
    let moments = [
        "zone a  at its gate",
        "zone a  opened its gate",
        "zone a  step 4/9",
        "zone a  promoted and verified",
        "zone b  opened its gate",
        "zone b  step 2/9",
        "zone b  promoted and verified",
        "zone c  opened its gate",
        "zone c  step 6/9",
        "zone c  promoted and verified",
    ];
    for moment in moments {
        let mut running = namespace.plugin(arguments).deadline(LONG).start()?;
        running.line(moment).await?;
        running.kill().await?;
    }
    let last = namespace.plugin(arguments).deadline(LONG).run().await?;
    ensure_code(&last, 0)?;
    history.ensure_one_at_a_time()?;
    ensure!(history.order() == ["a", "b", "c"], "order was {:?}", history.order());
    for zone in ZONES {
        ensure!(stable_image(&namespace, zone).await? == "myapp:v2", "zone {}", zone.short);
        ensure!(
            history.steps(zone) == (0..=9).collect::<Vec<_>>(),
            "zone {} skipped a step",
            zone.short
        );
    }
    let opened = told_to_move(&lab, &namespace, mark).await?;
    ensure!(opened == ["test-a", "test-b", "test-c"], "gates opened: {opened:?}");
    Ok(())
}

/// A run stopped by a signal leaves everything as it is, and says how to go on.
#[tokio::test]
async fn a_signal_neither_aborts_nor_promotes() -> Result<()> {
    let lab = Lab::connect().await?;
    let namespace = group(&lab, "signal", Layout { pause: "4s", ..RING }).await?;
    ask_all(&namespace, "myapp:v2").await?;
    for (signal, code) in
        [(zone_lab::Signal::INT, 130), (zone_lab::Signal::TERM, 143), (zone_lab::Signal::HUP, 129)]
    {
        let mark = lab.audit_mark()?;
        let arguments = PROMOTE.into_iter().chain(["--soak", "60s", "--first-soak", "60s"]);
        let mut running = namespace.plugin(arguments).deadline(LONG).start()?;
        running.line("zone a  ").await?;
        running.line("zone a  step").await?;
        running.signal(signal)?;
        let finished = running.finish().await?;
        ensure_code(&finished, code)?;
        ensure_says(&finished, "interrupted: nothing was aborted or promoted")?;
        ensure_says(&finished, "kubectl zone-rollout promote --sequential --yes")?;
        let opened = told_to_move(&lab, &namespace, mark).await?;
        ensure!(opened.len() <= 1, "gates opened: {opened:?}");
    }
    Ok(())
}

/// Waiting in CI: `--expect` waits for Git, then drives; without it in time, exit 7.
#[tokio::test]
async fn expected_versions_are_awaited() -> Result<()> {
    let lab = Lab::connect().await?;
    let namespace = group(&lab, "expect", RING).await?;
    let arguments = PROMOTE.into_iter().chain(["--expect", "myapp:v2", "--wait-sync", "2s"]);
    let late = namespace.plugin(arguments).run().await?;
    ensure_code(&late, 7)?;
    ensure_says(&late, "the expected version has not arrived")?;
    let arguments = PROMOTE.into_iter().chain([
        "--expect",
        "myapp:v2",
        "--wait-sync",
        "60s",
        "--soak",
        "1s",
        "--first-soak",
        "1s",
    ]);
    let mut running = namespace.plugin(arguments).deadline(LONG).start()?;
    running.line("waiting for myapp:v2 to arrive").await?;
    let history = History::record(&namespace);
    ask_all(&namespace, "myapp:v2").await?;
    ensure_code(&running.finish().await?, 0)?;
    history.ensure_one_at_a_time()?;
    let again = namespace.plugin(PROMOTE.into_iter().chain(["--expect", "myapp:v2"])).run().await?;
    ensure_code(&again, 0)?;
    ensure_says(&again, "every zone is there already")?;
    ensure_code(&namespace.plugin(["status", "--exit-code"]).run().await?, 0)?;
    Ok(())
}
