//! Groups that come from Git: promoting by gates needs no spec, a spec that Git owns is left alone, and
//! what Git puts back is named.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use zone_lab::{GitOps, Lab, Namespace, ZONES};

use crate::support::{
    History, LONG, Layout, PROMOTE, RING, SOAKS, ensure_code, ensure_says, lose_ready, open_gate,
    stable_image, until_rollout, weight, writes, zone,
};

/// How often Git is applied again.
const PERIOD: Duration = Duration::from_secs(3);
/// How Argo CD is told apart here.
const OWNER: &str = "Argo CD (field manager argocd-controller)";

/// A served group on `myapp:v1` that Git keeps applying.
async fn from_git(lab: &Lab, stem: &str, layout: Layout) -> Result<(Namespace, GitOps)> {
    let namespace = lab.namespace(stem).await?;
    let objects = layout.objects(&namespace, "myapp:v1");
    drop(namespace.gitops(objects.clone(), PERIOD).await?);
    namespace.await_healthy().await?;
    namespace.await_served().await?;
    let git = namespace.gitops(workloads(objects), PERIOD).await?;
    Ok((namespace, git))
}

/// What Git keeps in force. Of routes and rules it has to ignore what Argo Rollouts writes there, so
/// they are applied once.
fn workloads(objects: Vec<Value>) -> Vec<Value> {
    let of_controller = |kind: &Value| kind == "VirtualService" || kind == "DestinationRule";
    objects.into_iter().filter(|object| !of_controller(&object["kind"])).collect()
}

/// Git asks for another version.
async fn commit(namespace: &Namespace, layout: Layout, image: &str) -> Result<GitOps> {
    namespace.gitops(workloads(layout.objects(namespace, image)), PERIOD).await
}

/// Waits for the version, then goes from gate to gate, while Git is applied again and again.
#[tokio::test]
async fn a_version_from_git_is_promoted_by_its_gates() -> Result<()> {
    let lab = Lab::connect().await?;
    let (namespace, before) = from_git(&lab, "gates", RING).await?;
    let history = History::record(&namespace);
    let arguments = PROMOTE.into_iter().chain(SOAKS).chain(["--expect", "myapp:v2"]);
    let mut running = namespace.plugin(arguments).deadline(LONG).start()?;
    running.line("waiting for myapp:v2 to arrive").await?;
    drop(before);
    let _git = commit(&namespace, RING, "myapp:v2").await?;
    ensure_code(&running.finish().await?, 0)?;
    ensure!(history.order() == ["a", "b", "c"], "order was {:?}", history.order());
    history.ensure_one_at_a_time()
}

/// Without `--force` no spec is changed that Git owns.
#[tokio::test]
async fn specs_that_git_owns_are_left_alone() -> Result<()> {
    let lab = Lab::connect().await?;
    let layout = Layout { gate: false, ..RING };
    let (namespace, _git) = from_git(&lab, "owned", layout).await?;
    let mark = lab.audit_mark()?;
    for more in [&["--image", "myapp:v2"][..], &["--hold", "--expect", "myapp:v2"]] {
        let refused = namespace.plugin(PROMOTE.iter().chain(more).copied()).run().await?;
        ensure_code(&refused, 5)?;
        ensure_says(&refused, OWNER)?;
        ensure_says(&refused, "--force")?;
    }
    ensure!(writes(&lab, &namespace, mark).await?.is_empty());
    Ok(())
}

/// With `--force` it is changed all the same; Git puts it back, which is noticed and named.
#[tokio::test]
async fn an_image_that_git_puts_back_is_named() -> Result<()> {
    let lab = Lab::connect().await?;
    let layout = Layout { gate: false, pause: "60s", ..RING };
    let (namespace, _git) = from_git(&lab, "putback", layout).await?;
    let arguments = PROMOTE.into_iter().chain(["--image", "myapp:v2", "--force"]);
    let begun = Instant::now();
    let lost = namespace.plugin(arguments).deadline(LONG).run().await?;
    ensure!(begun.elapsed() < Duration::from_secs(15), "noticed after {:?}", begun.elapsed());
    ensure_code(&lost, 8)?;
    ensure_says(&lost, &format!("the image of zone a was put back, probably by {OWNER}"))?;
    for zone in ZONES {
        ensure!(stable_image(&namespace, zone).await? == "myapp:v1", "zone {}", zone.short);
    }
    Ok(())
}

/// The same with a hold that Git does not want.
#[tokio::test]
async fn a_hold_that_git_puts_back_is_named() -> Result<()> {
    let lab = Lab::connect().await?;
    let layout = Layout { gate: false, ..RING };
    let (namespace, git) = from_git(&lab, "released", layout).await?;
    drop(git);
    let mut manifests = workloads(layout.objects(&namespace, "myapp:v1"));
    for manifest in manifests.iter_mut().filter(|manifest| manifest["kind"] == "Rollout") {
        manifest["spec"]["paused"] = json!(false);
    }
    let _git = namespace.gitops(manifests, PERIOD).await?;
    let arguments = PROMOTE.into_iter().chain(["--hold", "--force", "--expect", "myapp:v2"]);
    let lost = namespace.plugin(arguments).run().await?;
    ensure_code(&lost, 8)?;
    ensure_says(&lost, "which this run holds, was released, probably by")?;
    ensure_says(&lost, OWNER)
}

/// Traffic is taken off a bad version whoever owns the route; what is left to do in Git is said.
#[tokio::test]
async fn an_abort_needs_no_force_and_says_what_to_revert() -> Result<()> {
    let lab = Lab::connect().await?;
    let layout = Layout { pause: "10m", weights: &[20], ..RING };
    let (namespace, before) = from_git(&lab, "revert", layout).await?;
    let (a, stable) = (zone("a"), namespace.pods(zone("a")).await?);
    drop(before);
    let _git = commit(&namespace, layout, "myapp:v2").await?;
    until_rollout(&namespace, a, "at its gate", |rollout| {
        rollout["status"]["pauseConditions"][0]["reason"] == "CanaryPauseStep"
    })
    .await?;
    open_gate(&namespace, a, 20).await?;
    let name = stable.first().and_then(|pod| pod.metadata.name.clone()).unwrap_or_default();
    lose_ready(&namespace, a, &[name]).await?;
    let aborted = namespace.plugin(["abort", "a"]).run().await?;
    ensure_code(&aborted, 0)?;
    ensure_says(&aborted, "so the route was written here")?;
    ensure_says(
        &aborted,
        &format!("in Git, put Rollout test-a back from myapp:v2 to myapp:v1: {OWNER} owns it"),
    )?;
    ensure!(weight(&namespace, a).await? == 0);
    Ok(())
}
