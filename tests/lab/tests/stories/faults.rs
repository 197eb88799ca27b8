//! Faults between the plugin and the API server: each write lands once, nothing is skipped, and what
//! is not seen is said.

use std::time::Duration;

use anyhow::{Result, ensure};
use zone_lab::{Fault, Faults, Lab, Namespace, Running, Signal, When, ZONES, Zone};

use crate::support::{
    History, LONG, Layout, PROMOTE, RING, ask_all, ensure_code, ensure_says, group, open_gate,
    stable_image, told_to_move, weight, zone,
};

/// A layout whose zones are promoted in a few seconds.
const QUICK: Layout = Layout { pause: "1s", weights: &[50], ..RING };
/// Soaks as short as they can be.
const BRIEF: [&str; 4] = ["--soak", "1s", "--first-soak", "1s"];

/// A group at its gates, and a proxy in front of its API server.
async fn at_the_gates(lab: &Lab, stem: &str, layout: Layout) -> Result<(Namespace, Faults)> {
    let namespace = group(lab, stem, layout).await?;
    ask_all(&namespace, "myapp:v2").await?;
    let faults = namespace.faults().await?;
    Ok((namespace, faults))
}

/// Promotes one zone through the proxy.
async fn promote(namespace: &Namespace, faults: &Faults, zone: Zone) -> Result<()> {
    let arguments = ["promote", zone.short, "--yes"].into_iter().chain(BRIEF);
    let run = namespace.plugin(arguments).kubeconfig(faults.kubeconfig()).deadline(LONG);
    ensure_code(&run.run().await?, 0)
}

/// One zone after another is promoted, each with another fault; every gate is opened once.
async fn each_zone_with_a_fault(stem: &str, when: When, faults: [Fault; 3]) -> Result<()> {
    let lab = Lab::connect().await?;
    let (namespace, proxy) = at_the_gates(&lab, stem, QUICK).await?;
    let history = History::record(&namespace);
    let mark = lab.audit_mark()?;
    for (zone, fault) in ZONES.into_iter().zip(faults) {
        let before = proxy.met();
        proxy.add(when.clone(), fault, 2);
        promote(&namespace, &proxy, zone).await?;
        ensure!(proxy.met() > before, "{fault:?} was never met");
        ensure!(stable_image(&namespace, zone).await? == "myapp:v2", "{fault:?}");
        ensure!(
            history.steps(zone) == (0..=3).collect::<Vec<_>>(),
            "{fault:?}: a step was skipped"
        );
        proxy.clear();
    }
    let opened = told_to_move(&lab, &namespace, mark).await?;
    ensure!(opened == ["test-a", "test-b", "test-c"], "written: {opened:?}");
    history.ensure_one_at_a_time()
}

#[tokio::test]
async fn writes_that_the_server_turns_away() -> Result<()> {
    let faults =
        [Fault::Answer(503, None), Fault::Answer(503, Some(1)), Fault::Answer(429, Some(1))];
    each_zone_with_a_fault("turned", When::patch("/rollouts/"), faults).await
}

#[tokio::test]
async fn writes_whose_answer_is_lost_or_a_conflict() -> Result<()> {
    let faults = [Fault::LoseAnswer, Fault::Cut, Fault::Answer(409, None)];
    each_zone_with_a_fault("lost", When::patch("/rollouts/"), faults).await
}

#[tokio::test]
async fn writes_that_do_not_arrive_or_take_long() -> Result<()> {
    let faults = [Fault::Drop, Fault::Answer(500, None), Fault::Slow(Duration::from_secs(1))];
    each_zone_with_a_fault("dropped", When::patch("/rollouts/"), faults).await
}

#[tokio::test]
async fn reads_that_fail() -> Result<()> {
    let faults = [Fault::Answer(503, None), Fault::Answer(429, Some(1)), Fault::Answer(504, None)];
    each_zone_with_a_fault("unread", When::read("/rollouts"), faults).await
}

#[tokio::test]
async fn reads_that_break() -> Result<()> {
    let faults = [Fault::Drop, Fault::Cut, Fault::Slow(Duration::from_millis(300))];
    each_zone_with_a_fault("broken", When::read("/pods"), faults).await
}

/// A write that can never be right, or is forbidden, is not tried again.
#[tokio::test]
async fn writes_that_are_refused_for_good() -> Result<()> {
    let lab = Lab::connect().await?;
    let (namespace, proxy) = at_the_gates(&lab, "refused", QUICK).await?;
    for code in [403, 422] {
        let before = proxy.met();
        proxy.add(When::patch("/rollouts/"), Fault::Answer(code, None), 9);
        let arguments = ["promote", "a", "--yes"].into_iter().chain(BRIEF);
        let run = namespace.plugin(arguments).kubeconfig(proxy.kubeconfig());
        let finished = run.run().await?;
        ensure_code(&finished, 5)?;
        ensure_says(&finished, "on purpose")?;
        ensure!(proxy.met() == before + 1, "it tried {} times", proxy.met() - before);
        proxy.clear();
    }
    ensure!(stable_image(&namespace, zone("a")).await? == "myapp:v1", "it was promoted");
    Ok(())
}

/// Watches that end, or are too old, are begun again; no step is missed, and no weight unproven.
#[tokio::test]
async fn watches_that_end() -> Result<()> {
    let lab = Lab::connect().await?;
    let layout = Layout { pause: "3s", weights: &[20, 50], ..RING };
    let (namespace, proxy) = at_the_gates(&lab, "watches", layout).await?;
    let history = History::record(&namespace);
    let arguments = PROMOTE.into_iter().chain(BRIEF);
    let run = namespace.plugin(arguments).kubeconfig(proxy.kubeconfig()).deadline(LONG);
    let mut running = run.start()?;
    for (zone, fault) in [("a", Fault::EndWatch), ("b", Fault::Gone)] {
        for step in ["step 2/5", "step 4/5"] {
            running.line(&format!("zone {zone}  {step}")).await?;
            proxy.add(When::watch(""), fault, 7);
        }
    }
    ensure_code(&running.finish().await?, 0)?;
    ensure!(proxy.met() >= 20, "{} watches ended", proxy.met());
    history.ensure_one_at_a_time()
}

/// A watch without a word is noticed, and what went by meanwhile does not count for the soak.
#[tokio::test]
async fn silent_watches_are_noticed() -> Result<()> {
    let lab = Lab::connect().await?;
    let (namespace, proxy) = at_the_gates(&lab, "silent", QUICK).await?;
    let arguments = ["promote", "a", "--yes", "--first-soak", "20s"];
    let run = namespace.plugin(arguments).kubeconfig(proxy.kubeconfig()).deadline(LONG);
    let mut running = run.start()?;
    running.line("zone a  opened its gate").await?;
    proxy.add(When::watch(""), Fault::Silence, 7);
    ensure_code(&running.finish().await?, 0)?;
    ensure!(stable_image(&namespace, zone("a")).await? == "myapp:v2", "it was not promoted");
    Ok(())
}

/// `abort` through every fault of a write: the traffic is back in the end, by one patch that landed.
#[tokio::test]
async fn abort_through_faults() -> Result<()> {
    let lab = Lab::connect().await?;
    let layout = Layout { pause: "60s", weights: &[50], ..RING };
    let (namespace, proxy) = at_the_gates(&lab, "undone", layout).await?;
    for (zone, fault) in
        ZONES.into_iter().zip([Fault::Answer(503, Some(1)), Fault::LoseAnswer, Fault::Drop])
    {
        open_gate(&namespace, zone, 50).await?;
        let mark = lab.audit_mark()?;
        proxy.add(When::patch("/rollouts/"), fault, 2);
        let run = namespace.plugin(["abort", zone.short]).kubeconfig(proxy.kubeconfig());
        ensure_code(&run.deadline(LONG).run().await?, 0)?;
        proxy.clear();
        ensure!(weight(&namespace, zone).await? == 0, "{fault:?}");
        let aborted = told_to_move(&lab, &namespace, mark).await?;
        ensure!(aborted.len() == 1, "{fault:?}: it was aborted more than once");
    }
    Ok(())
}

/// `status -w` says what it cannot see, and goes on when it can again.
#[tokio::test]
async fn status_says_what_it_cannot_see() -> Result<()> {
    let lab = Lab::connect().await?;
    let (namespace, proxy) = at_the_gates(&lab, "unseen", QUICK).await?;
    let run = namespace.plugin(["status", "-w"]).kubeconfig(proxy.kubeconfig()).deadline(LONG);
    let mut running = run.start()?;
    running.line("at its gate").await?;
    proxy.add(When::any(), Fault::Answer(503, None), usize::MAX);
    proxy.add(When::watch(""), Fault::EndWatch, 7);
    running.line("Not seen: pods").await?;
    proxy.clear();
    open_gate(&namespace, zone("a"), 50).await?;
    running.line("setWeight 50").await?;
    running.kill().await?;
    Ok(())
}

/// A second signal ends a run whose write is never answered, and it says that it does not know.
#[tokio::test]
async fn a_second_signal_does_not_wait_for_an_answer() -> Result<()> {
    let lab = Lab::connect().await?;
    let (namespace, proxy) = at_the_gates(&lab, "twice", QUICK).await?;
    proxy.add(When::patch("/rollouts/"), Fault::Hang, 1);
    let running = writing(&namespace, &proxy).await?;
    running.signal(Signal::INT)?;
    running.signal(Signal::TERM)?;
    let finished = running.finish().await?;
    ensure_code(&finished, 130)?;
    ensure_says(&finished, "zone a was being written, and whether that arrived is not known")
}

/// The first signal waits for the answer, and nothing follows it.
#[tokio::test]
async fn a_signal_during_a_write_waits_for_its_answer() -> Result<()> {
    let lab = Lab::connect().await?;
    let (namespace, proxy) = at_the_gates(&lab, "once", Layout { pause: "60s", ..QUICK }).await?;
    proxy.add(When::patch("/rollouts/"), Fault::Slow(Duration::from_secs(2)), 1);
    let running = writing(&namespace, &proxy).await?;
    running.signal(Signal::TERM)?;
    let finished = running.finish().await?;
    ensure_code(&finished, 143)?;
    ensure_says(&finished, "zone a  opened its gate")?;
    ensure_says(&finished, "interrupted: nothing was aborted or promoted")
}

/// A promotion of zone a whose write has met its fault.
async fn writing(namespace: &Namespace, proxy: &Faults) -> Result<Running> {
    let arguments = ["promote", "a", "--yes"].into_iter().chain(BRIEF);
    let running = namespace.plugin(arguments).kubeconfig(proxy.kubeconfig()).start()?;
    let met = async || Ok((proxy.met() == 1).then_some(()));
    zone_lab::until("the write to meet its fault", LONG, met).await?;
    Ok(running)
}

/// Nobody reads its output any more: it stops, and leaves everything as it is.
#[tokio::test]
async fn a_closed_pipe_stops_a_run() -> Result<()> {
    let lab = Lab::connect().await?;
    let layout = Layout { pause: "4s", ..RING };
    let (namespace, _) = at_the_gates(&lab, "pipe", layout).await?;
    let command = format!(
        "kubectl-zone_rollout promote --sequential --yes -o events -n {} | head -n 3; \
         echo \"ended ${{PIPESTATUS[0]}}\"",
        namespace.name()
    );
    let finished = namespace.command("bash", ["-c", &command]).deadline(LONG).run().await?;
    ensure_says(&finished, "ended 1")?;
    let history = History::record(&namespace);
    ensure!(stable_image(&namespace, zone("b")).await? == "myapp:v1", "it went on");
    history.ensure_one_at_a_time()
}
