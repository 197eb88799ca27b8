//! Layouts from `manifests`, as a user applies them: healthy, served, without an error of the tools
//! that people check with, and promoted.

use anyhow::{Result, ensure};
use zone_lab::{Lab, Namespace, ZONES};

use crate::support::{
    History, LONG, PROMOTE, SOAKS, ask_all, ensure_all_on, ensure_code, ensure_says,
};

/// The command line of a layout for the lab, but for where it goes.
fn line(layout: &str) -> String {
    let zones = ZONES.map(|zone| zone.topology).join(",");
    format!(
        "manifests test --image myapp:v1 --zones {zones} --target-port 9090 --steps 10,50 --pause 2s \
         --layout {layout}"
    )
}

/// Runs a script that finds the plugin's line in `$1` and a folder in `$2`.
async fn script(namespace: &Namespace, layout: &str, text: &str) -> Result<String> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("layout");
    let line = format!("kubectl zone-rollout {} -n {}", line(layout), namespace.name());
    let words = ["-eo", "pipefail", "-c", text, "script", &line, &path.to_string_lossy()];
    let finished = namespace.command("bash", words).deadline(LONG).run().await?;
    ensure_code(&finished, 0)?;
    Ok(finished.stdout)
}

/// Applied in this way: served, checked, and promoted in order.
async fn holds(lab: &Lab, stem: &str, layout: &str, apply: &str) -> Result<()> {
    let namespace = lab.namespace(stem).await?;
    script(&namespace, layout, apply).await?;
    namespace.await_healthy().await?;
    namespace.await_served().await?;
    let status = namespace.plugin(["status"]).run().await?;
    ensure_code(&status, 0)?;
    for zone in ZONES {
        ensure_says(&status, &format!("test-{}", zone.short))?;
    }
    let analysis = namespace.command("istioctl", ["analyze", "-n", namespace.name()]).run().await?;
    ensure_code(&analysis, 0)?;
    ensure!(!analysis.stdout.contains("Error ["), "{analysis}");

    ask_all(&namespace, "myapp:v2").await?;
    let history = History::record(&namespace);
    let promoted = namespace.plugin(PROMOTE.into_iter().chain(SOAKS)).deadline(LONG).run().await?;
    ensure_code(&promoted, 0)?;
    history.ensure_one_at_a_time()?;
    ensure!(history.order() == ["a", "b", "c"], "order was {:?}", history.order());
    ensure_all_on(&namespace, "myapp:v2").await
}

#[tokio::test]
async fn a_generated_ring_holds() -> Result<()> {
    let lab = Lab::connect().await?;
    holds(&lab, "ring", "ring", "$1 -o $2; kubectl apply --server-side -f $2").await
}

#[tokio::test]
async fn a_generated_zone_local_layout_holds() -> Result<()> {
    let lab = Lab::connect().await?;
    let apply = "$1 -o $2 --kustomize; kubectl apply --server-side -k $2";
    holds(&lab, "local", "zone-local", apply).await
}

#[tokio::test]
async fn a_generated_plain_layout_holds() -> Result<()> {
    let lab = Lab::connect().await?;
    holds(&lab, "plain", "plain", "$1 | kubectl apply --server-side -f -").await
}

/// With analysis and GitOps as well; the lab has no Prometheus, so nothing is deployed.
#[tokio::test]
async fn the_linter_of_argo_rollouts_finds_no_error() -> Result<()> {
    let lab = Lab::connect().await?;
    let namespace = lab.namespace("lint").await?;
    for layout in ["ring", "zone-local", "plain"] {
        let lint = "$1 --prometheus http://prometheus:9090 --gitops argocd > $2
            kubectl argo rollouts lint -f $2 2>&1";
        let said = script(&namespace, layout, lint).await?;
        ensure!(said.trim().is_empty(), "{layout}: {said}");
    }
    // All but the rule, whose kind only Prometheus's operator brings.
    let apply = "$1 --prometheus http://prometheus:9090 -o $2; rm $2/*prometheusrule*
        kubectl apply --server-side --dry-run=server -f $2";
    script(&namespace, "ring", apply).await.map(drop)
}
