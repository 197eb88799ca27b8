//! Requests through the real sidecars, and the application that answers them.

use anyhow::{Result, anyhow, ensure};
use serde_json::json;
use zone_lab::kinds::{DESTINATION_RULE, ROLLOUT, VIRTUAL_SERVICE};
use zone_lab::{Answer, Failure, Lab, Namespace, ZONES, Zone};

use crate::{SOON, a};

#[tokio::test]
async fn ring_is_served_in_each_zone_and_promotes() -> Result<()> {
    let lab = Lab::connect().await?;
    let namespace = lab.namespace("ring").await?;
    namespace.deploy(&namespace.ring("myapp:v1")).await?;
    namespace.await_served().await?;
    for zone in ZONES {
        let own = Answer::from(&*format!("{}/v1", zone.short));
        ensure!(namespace.ask(zone).await == own, "zone {} is not served by itself", zone.short);
    }
    namespace.set_image("test-a", "myapp:v2").await?;
    namespace.await_phase("test-a", "Paused").await?;
    let load = namespace.load(&[a()], 50)?;
    open_gate(&namespace, "test-a").await?;
    namespace.await_phase("test-a", "Healthy").await?;
    let tally = load.stop().await?;
    ensure!(tally.errors() == 0 && tally.count("a/v1") > 0 && tally.count("a/v2") > 0, "{tally}");
    namespace
        .until("all traffic on the stable subset", SOON, async || {
            let routes = namespace.get(VIRTUAL_SERVICE, "test").await?;
            Ok((routes["spec"]["http"][0]["route"][0]["weight"] == 100).then_some(()))
        })
        .await?;
    let subsets = &namespace.get(DESTINATION_RULE, "test").await?["spec"]["subsets"];
    ensure!(
        subsets.as_array().is_some_and(|all| all.len() == 4),
        "the base rule has changed: {subsets}"
    );
    Ok(())
}

/// Promotes a Rollout that waits at its first step. The controller may miss a change that comes while
/// it writes itself (it puts what it wrote over the newer object in its cache), so this touches the
/// Rollout until it moves.
async fn open_gate(namespace: &Namespace, rollout: &str) -> Result<()> {
    let open = json!({"pauseConditions": null});
    namespace.patch_status(ROLLOUT, rollout, &open).await?;
    let mut touched = 0;
    namespace
        .until("the gate to open", SOON, async || {
            touched += 1;
            let touch = json!({"metadata": {"annotations": {"touched": touched.to_string()}}});
            namespace.patch(ROLLOUT, rollout, &touch).await?;
            let rollout = namespace.get(ROLLOUT, rollout).await?;
            Ok((rollout["status"]["currentStepIndex"] != 0).then_some(()))
        })
        .await
}

#[tokio::test]
async fn applications_fail_on_request() -> Result<()> {
    let lab = Lab::connect().await?;
    let namespace = lab.namespace("fail").await?;
    namespace.deploy(&namespace.zone_local("myapp:v1")).await?;
    namespace.await_served().await?;
    for (how, expected) in [(Failure::Http500, 500), (Failure::Refused, 503)] {
        namespace.fail(a(), Some("v1"), Some(how)).await?;
        await_answer(&namespace, a(), &Answer::Status(expected)).await?;
        let other = namespace.ask(Zone::named("b")).await;
        ensure!(other.is_pod(), "zone b answers {other}");
        // Of another version there is no pod to fail.
        namespace.fail(a(), Some("v1"), None).await?;
        namespace.fail(a(), Some("v2"), Some(how)).await?;
        namespace.await_served().await?;
    }
    Ok(())
}

pub(crate) async fn await_answer(
    namespace: &Namespace,
    zone: Zone,
    expected: &Answer,
) -> Result<()> {
    let what = format!("the answer {expected}");
    namespace
        .until(what, SOON, async || {
            let answer = namespace.ask(zone).await;
            if answer == *expected { Ok(Some(())) } else { Err(anyhow!("it was {answer}")) }
        })
        .await
}
