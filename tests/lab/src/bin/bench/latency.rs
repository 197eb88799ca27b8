//! How long it takes from "this zone is verified" to the patch that opens the next gate.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use zone_lab::Namespace;
use zone_lab::kinds::ROLLOUT;

use crate::measure::{milliseconds, percentile};

/// Promotions that are driven; one of three zones has two gates that follow another zone.
const RUNS: usize = 15;
const LONG: Duration = Duration::from_mins(10);

pub(crate) async fn measure(namespace: &Namespace, plugin: &str) -> Result<()> {
    let mut waits: Vec<Duration> = Vec::new();
    for run in 0..RUNS {
        let image = format!("myapp:v{}", run + 2);
        for rollout in namespace.list(ROLLOUT).await? {
            let name = rollout["metadata"]["name"].as_str().context("a name")?;
            namespace.set_image(name, &image).await?;
        }
        let arguments = "promote --sequential --yes --first-soak 1s --soak 1s -o events --expect";
        let arguments = arguments.split(' ').chain([image.as_str(), "-n", namespace.name()]);
        let promoted = namespace.command(plugin, arguments).deadline(LONG).run().await?;
        ensure!(promoted.code() == Some(0), "{promoted}");
        waits.extend(waits_in(&promoted.stdout)?);
    }
    let (middle, worst) = (percentile(&mut waits, 50)?, percentile(&mut waits, 99)?);
    println!(
        "From a zone's verification to the answer to the next gate's patch: p50 {:.0} ms, p99 {:.0} ms \
         ({} gates).",
        milliseconds(middle),
        milliseconds(worst),
        waits.len()
    );
    Ok(())
}

/// The spans from the end of each soak to the next gate, by the events' own times.
fn waits_in(events: &str) -> Result<Vec<Duration>> {
    let mut verified: Option<jiff::Timestamp> = None;
    let mut opened: BTreeMap<String, Duration> = BTreeMap::new();
    for line in events.lines() {
        let event: Value = serde_json::from_str(line)?;
        let time =
            || -> Result<jiff::Timestamp> { Ok(event["time"].as_str().context("time")?.parse()?) };
        if event["type"] == "Soak" && event["change"] == "Over" {
            verified = Some(time()?);
        } else if event["action"] == "Open"
            && event["result"] == "Landed"
            && let Some(since) = verified.take()
        {
            let zone = event["zone"].as_str().unwrap_or_default().to_owned();
            opened.insert(zone, time()?.duration_since(since).unsigned_abs());
        }
    }
    Ok(opened.into_values().collect())
}
