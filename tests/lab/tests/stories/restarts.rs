//! Parts of the control plane go away in the middle of a run, or the run itself stands still: what is
//! not seen is said, and it goes on to the same end. Each is alone in the lab.

use anyhow::{Context, Result, ensure};
use jiff::{SignedDuration, Timestamp};
use zone_lab::kinds::LEASE;
use zone_lab::{Lab, Namespace, Running, Signal};

use crate::support::{
    History, LONG, Layout, PROMOTE, RING, SOAKS, ask_all, ensure_all_on, ensure_code, group,
    stable_image, told_to_move, zone,
};

/// A lease that is older has expired.
const EXPIRY: SignedDuration = SignedDuration::from_secs(16);
const SLOW: Layout = Layout { pause: "4s", weights: &[20, 50], ..RING };

/// A run whose zone a is at its first weight.
async fn on_its_way(lab: &Lab, stem: &str) -> Result<(Namespace, Running)> {
    let namespace = group(lab, stem, SLOW).await?;
    ask_all(&namespace, "myapp:v2").await?;
    let mut running = namespace.plugin(PROMOTE.into_iter().chain(SOAKS)).deadline(LONG).start()?;
    running.line("zone a  step 2/5").await?;
    Ok((namespace, running))
}

/// How long ago the lease was renewed.
async fn lease_age(namespace: &Namespace) -> Result<SignedDuration> {
    let leases = namespace.list(LEASE).await?;
    let renewed = leases.iter().find_map(|lease| lease["spec"]["renewTime"].as_str());
    let renewed: Timestamp = renewed.context("there is no lease")?.parse()?;
    Ok(Timestamp::now().duration_since(renewed))
}

/// The component is stopped until its absence was told, and the run goes on when it is back.
async fn goes_on_without(component: &str, told: &str, back: &str) -> Result<()> {
    let lab = Lab::connect_alone().await?;
    let (namespace, mut running) = on_its_way(&lab, "restart").await?;
    let mark = lab.audit_mark()?;
    lab.stop(component).await?;
    let said = running.line(told).await;
    lab.start(component).await?;
    said?;
    running.line(back).await?;
    let history = History::record(&namespace);
    ensure_code(&running.finish().await?, 0)?;
    ensure_all_on(&namespace, "myapp:v2").await?;
    history.ensure_one_at_a_time()?;
    let opened = told_to_move(&lab, &namespace, mark).await?;
    ensure!(opened == ["test-b", "test-c"], "gates opened: {opened:?}");
    Ok(())
}

#[tokio::test]
async fn the_api_server_is_restarted() -> Result<()> {
    goes_on_without("kube-apiserver", "the cluster is out of sight", "seen again").await
}

#[tokio::test]
async fn etcd_is_restarted() -> Result<()> {
    let told = "the lease could not be renewed";
    goes_on_without("etcd", told, "zone a  step 4/5").await
}

/// Nothing moves, and the run says whom it waits for.
#[tokio::test]
async fn the_controller_is_restarted() -> Result<()> {
    let waits = "zone a  waiting: step 2/5";
    goes_on_without("rollouts-controller", waits, "zone a  step 4/5").await
}

/// Suspended for longer than its lease, it finds that another run has taken over, and writes nothing.
#[tokio::test]
async fn a_suspended_run_finds_another_one() -> Result<()> {
    let lab = Lab::connect_alone().await?;
    let (namespace, suspended) = on_its_way(&lab, "suspended").await?;
    suspended.signal(Signal::STOP)?;
    let history = History::record(&namespace);
    let other = namespace.plugin(PROMOTE.into_iter().chain(SOAKS)).deadline(LONG);
    let mut other = other.start()?;
    other.line("zone b  opened its gate").await?;
    suspended.signal(Signal::CONT)?;
    let stopped = suspended.finish().await?;
    ensure_code(&stopped, 8)?;
    let whose = ["the lease was taken by", "zone b was promoted by somebody else"];
    ensure!(whose.iter().any(|whose| stopped.stdout.contains(whose)), "{stopped}");
    ensure_code(&other.finish().await?, 0)?;
    ensure_all_on(&namespace, "myapp:v2").await?;
    history.ensure_one_at_a_time()
}

/// Suspended without another run, it goes on; what it slept through does not count for a soak.
#[tokio::test]
async fn a_suspended_run_goes_on() -> Result<()> {
    let lab = Lab::connect_alone().await?;
    let (namespace, mut running) = on_its_way(&lab, "asleep").await?;
    running.signal(Signal::STOP)?;
    namespace
        .until("zone a to arrive, and the lease to be old", LONG, async || {
            let arrived = stable_image(&namespace, zone("a")).await? == "myapp:v2";
            Ok((arrived && lease_age(&namespace).await? > EXPIRY).then_some(()))
        })
        .await?;
    let waiting = stable_image(&namespace, zone("b")).await?;
    running.signal(Signal::CONT)?;
    ensure!(waiting == "myapp:v1", "zone b went on by itself");
    running.line("zone a  verified").await?;
    ensure_code(&running.finish().await?, 0)?;
    ensure_all_on(&namespace, "myapp:v2").await
}
