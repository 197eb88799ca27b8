//! Zones that advance by themselves: refused, or held before the version arrives.

use anyhow::{Result, ensure};
use serde_json::json;
use zone_lab::kinds::{AUTOSCALER, ROLLOUT};
use zone_lab::{Lab, ZONES};

use crate::support::{
    History, LONG, Layout, PROMOTE, RING, SOAKS, ensure_code, ensure_says, group, rollout,
    stable_image, until_rollout, zone,
};

const UNGATED: Layout = Layout { gate: false, ..RING };

/// Timed pauses only, and the image has changed everywhere: there is no order left to keep.
#[tokio::test]
async fn zones_that_move_by_themselves_are_refused() -> Result<()> {
    let lab = Lab::connect().await?;
    let namespace = group(&lab, "leak", Layout { pause: "30s", ..UNGATED }).await?;
    for zone in ZONES {
        namespace.set_image(&rollout(zone), "myapp:v2").await?;
    }
    for zone in ZONES {
        until_rollout(&namespace, zone, "at 10 %", |rollout| {
            rollout["status"]["currentStepIndex"] == 1
        })
        .await?;
    }
    let refused = namespace.plugin(PROMOTE.into_iter().chain(SOAKS)).run().await?;
    ensure_code(&refused, 5)?;
    ensure_says(&refused, "zones a, b, c are moving at the same time")?;
    for zone in ZONES {
        ensure_says(&refused, &format!("zone {} by itself, at the earliest: 20 % at", zone.short))?;
    }
    ensure_says(&refused, "kubectl zone-rollout abort test --all")?;
    let expected = PROMOTE.into_iter().chain(["--expect", "myapp:v3"]);
    let refused = namespace.plugin(expected).run().await?;
    ensure_code(&refused, 5)?;
    ensure_says(&refused, "have no gate")?;
    Ok(())
}

/// Held before the image changes, zones without gates go one after another.
#[tokio::test]
async fn held_zones_go_one_after_another() -> Result<()> {
    let lab = Lab::connect().await?;
    let namespace = group(&lab, "held", UNGATED).await?;
    let history = History::record(&namespace);
    let arguments = PROMOTE.into_iter().chain(SOAKS).chain(["--hold", "--expect", "myapp:v2"]);
    let mut running = namespace.plugin(arguments).deadline(LONG).start()?;
    running.line("waiting for myapp:v2 to arrive").await?;
    for zone in ZONES {
        let held = namespace.get(ROLLOUT, &rollout(zone)).await?;
        ensure!(held["spec"]["paused"] == true, "zone {} is not held", zone.short);
        ensure!(held["metadata"]["annotations"]["zone-rollout.io/hold"].is_string());
    }
    for zone in ZONES {
        namespace.set_image(&rollout(zone), "myapp:v2").await?;
    }
    let finished = running.finish().await?;
    ensure_code(&finished, 0)?;
    history.ensure_one_at_a_time()?;
    ensure!(history.order() == ["a", "b", "c"], "order was {:?}", history.order());
    for zone in ZONES {
        ensure!(stable_image(&namespace, zone).await? == "myapp:v2", "zone {}", zone.short);
        let released = namespace.get(ROLLOUT, &rollout(zone)).await?;
        ensure!(released["spec"]["paused"] != true, "zone {} is still held", zone.short);
        ensure!(released["metadata"]["annotations"]["zone-rollout.io/hold"].is_null());
    }
    Ok(())
}

/// A hold freezes scaling, so a zone with an autoscaler is not held without a word.
#[tokio::test]
async fn a_hold_does_not_freeze_an_autoscaler_by_accident() -> Result<()> {
    let lab = Lab::connect().await?;
    let namespace = group(&lab, "frozen", UNGATED).await?;
    let autoscaler = json!({
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "test-b"},
        "spec": {
            "scaleTargetRef": {
                "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "name": "test-b",
            },
            "minReplicas": 3,
            "maxReplicas": 6,
            "metrics": [{"type": "Resource", "resource": {
                "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80},
            }}],
        },
    });
    namespace.apply(&[autoscaler]).await?;
    namespace.get(AUTOSCALER, "test-b").await?;
    let arguments =
        PROMOTE.into_iter().chain(["--hold", "--expect", "myapp:v2", "--wait-sync", "1s"]);
    let refused = namespace.plugin(arguments).run().await?;
    ensure_code(&refused, 5)?;
    ensure_says(&refused, "HorizontalPodAutoscaler `test-b` scales zone b")?;
    let held = namespace.get(ROLLOUT, &rollout(zone("b"))).await?;
    ensure!(held["spec"]["paused"] != true, "it was held all the same");
    Ok(())
}
