//! What `plan` foretells, next to what then happens.

use anyhow::{Context, Result, ensure};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use zone_lab::{Lab, Namespace, ZONES};

use crate::schemas::ensure_fits;
use crate::support::{
    History, LONG, Layout, PROMOTE, RING, SOAKS, ask_all, ensure_code, ensure_says, group, rollout,
    until_rollout, writes,
};

/// Pods get Ready when they do, and tests share the machine: times are foretold roughly. What counts
/// are order and weights.
const FAR_OFF: SignedDuration = SignedDuration::from_secs(60);

async fn planned(namespace: &Namespace, code: i32) -> Result<Value> {
    let arguments = ["plan", "-o", "json"].into_iter().chain(SOAKS);
    let shown = namespace.plugin(arguments).run().await?;
    ensure_code(&shown, code)?;
    let document: Value = serde_json::from_str(&shown.stdout).context("it is not JSON")?;
    ensure_fits("plan", &document)?;
    Ok(document)
}

fn zones(document: &Value) -> impl Iterator<Item = &Value> {
    document["zones"].as_array().into_iter().flatten()
}

/// How long after the plan something is foretold, or has happened.
fn since(plan: &Value, zone: &Value, what: &str) -> Result<SignedDuration> {
    let time = |value: &Value| -> Result<Timestamp> {
        Ok(value.as_str().with_context(|| format!("no {what}"))?.parse()?)
    };
    Ok(time(&zone[what])?.duration_since(time(&plan["time"])?))
}

/// The weights that each zone's canary is foretold to get.
fn foretold(plan: &Value) -> Vec<Vec<u64>> {
    let weights = |zone: &Value| {
        let points = zone["weights"].as_array().into_iter().flatten();
        points.filter_map(|point| point["weight"].as_u64()).collect()
    };
    plan["zones"].as_array().into_iter().flatten().map(weights).collect()
}

/// The zones in the order in which something is foretold of them.
fn foretold_order(plan: &Value, what: &str) -> Vec<String> {
    let mut zones: Vec<&Value> = plan["zones"].as_array().into_iter().flatten().collect();
    zones.sort_by_key(|zone| zone[what].as_str().unwrap_or("z").to_owned());
    zones.into_iter().filter_map(|zone| zone["zone"].as_str().map(str::to_owned)).collect()
}

#[tokio::test]
async fn a_gated_group_is_foretold() -> Result<()> {
    let lab = Lab::connect().await?;
    let namespace = group(&lab, "foretold", RING).await?;
    ask_all(&namespace, "myapp:v2").await?;
    let mark = lab.audit_mark()?;
    let plan = planned(&namespace, 0).await?;
    ensure!(writes(&lab, &namespace, mark).await?.is_empty(), "it wrote");
    let hash = plan["hash"].as_str().context("no hash")?;
    let other = PROMOTE.into_iter().chain(SOAKS).chain(["--plan", "0123456789ab"]);
    let refused = namespace.plugin(other).run().await?;
    ensure_code(&refused, 5)?;
    ensure_says(&refused, &format!("the plan is not 0123456789ab any more: it is {hash} now"))?;
    let history = History::record(&namespace);
    let exactly = PROMOTE.into_iter().chain(SOAKS).chain(["--plan", hash, "-o", "json"]);
    let promoted = namespace.plugin(exactly).deadline(LONG).run().await?;
    ensure_code(&promoted, 0)?;
    let happened: Value = serde_json::from_str(&promoted.stdout)?;
    ensure!(history.order() == foretold_order(&plan, "startedAt"), "{plan}");
    for (zone, foretold) in ZONES.into_iter().zip(foretold(&plan)) {
        let seen = history.weights(zone);
        ensure!(seen == foretold, "zone {}: foretold {foretold:?}, seen {seen:?}", zone.short);
    }
    for (foretold, happened) in zones(&plan).zip(zones(&happened)) {
        for what in ["startedAt", "promotedAt", "verifiedAt"] {
            let (foretold, happened) =
                (since(&plan, foretold, what)?, since(&plan, happened, what)?);
            let late = happened.saturating_sub(foretold).abs();
            ensure!(late < FAR_OFF, "{what}: foretold after {foretold:#}, seen after {happened:#}");
        }
    }
    Ok(())
}

/// Nobody orders these: what they do by themselves is foretold, and `promote` is refused.
#[tokio::test]
async fn a_group_that_advances_by_itself_is_foretold() -> Result<()> {
    let lab = Lab::connect().await?;
    let layout = Layout { gate: false, pause: "5s", ..RING };
    let namespace = group(&lab, "drifting", layout).await?;
    let history = History::record(&namespace);
    for zone in ZONES {
        namespace.set_image(&rollout(zone), "myapp:v2").await?;
    }
    for zone in ZONES {
        until_rollout(&namespace, zone, "at 10 %", |rollout| {
            rollout["status"]["currentStepIndex"] == json!(1)
        })
        .await?;
    }
    let plan = planned(&namespace, 5).await?;
    ensure!(plan["blockers"][0]["code"] == "Leak", "{plan}");
    for zone in ZONES {
        until_rollout(&namespace, zone, "promoted", |rollout| {
            rollout["status"]["stableRS"] == rollout["status"]["currentPodHash"]
        })
        .await?;
    }
    for (zone, foretold) in ZONES.into_iter().zip(foretold(&plan)) {
        let seen = history.weights(zone);
        ensure!(seen == foretold, "zone {}: foretold {foretold:?}, seen {seen:?}", zone.short);
    }
    Ok(())
}
