//! What programs read, and the commands that people supply.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use zone_lab::kinds::ROLLOUT;
use zone_lab::{Lab, Namespace, ZONES};

use crate::schemas::ensure_fits;
use crate::support::{
    LONG, Layout, PROMOTE, RING, SOAKS, ask_all, ensure_code, ensure_says, group, until_rollout,
    writes, zone,
};

fn parsed(text: &str) -> Result<Value> {
    serde_json::from_str(text).with_context(|| format!("this is not JSON: {text}"))
}

#[tokio::test]
async fn events_begin_with_a_version_and_end_with_the_outcome() -> Result<()> {
    let lab = Lab::connect().await?;
    let namespace = group(&lab, "events", RING).await?;
    ask_all(&namespace, "myapp:v2").await?;
    let arguments = PROMOTE.into_iter().chain(SOAKS).chain(["--only", "a", "-o", "events"]);
    let finished = namespace.plugin(arguments).deadline(LONG).run().await?;
    ensure_code(&finished, 0)?;
    let events: Vec<Value> = finished.stdout.lines().map(parsed).collect::<Result<_>>()?;
    for event in &events {
        ensure_fits("promotion-event", event)?;
    }
    let (first, last) = (&events[0], &events[events.len() - 1]);
    ensure!(first["kind"] == "PromotionEvents" && first["group"] == "test", "{first}");
    ensure!(last["kind"] == "PromotionResult" && last["outcome"] == "Done", "{last}");
    ensure!(last["exitCode"] == 0 && last["wrote"] == true, "{last}");
    let weights: Vec<&Value> = events
        .iter()
        .filter(|event| event["zone"] == "a" && event["state"] == "TimedPause")
        .filter(|event| event["weight"]["inForce"] == event["weight"]["wanted"])
        .map(|event| &event["weight"]["inForce"])
        .collect();
    for weight in [10, 20, 50, 80] {
        ensure!(weights.contains(&&json!(weight)), "{weight} % was not told: {weights:?}");
    }
    ensure!(events.iter().any(|event| event["action"] == "Open" && event["result"] == "Landed"));
    ensure!(events.iter().any(|event| event["change"] == "Over"));
    Ok(())
}

#[tokio::test]
async fn one_document_tells_the_result_with_the_same_exit_code() -> Result<()> {
    let lab = Lab::connect().await?;
    let namespace = group(&lab, "json", Layout { gate: false, pause: "60s", ..RING }).await?;
    let nothing = namespace.plugin(["promote", "--sequential", "-o", "json"]).run().await?;
    ensure_code(&nothing, 0)?;
    ensure!(parsed(&nothing.stdout)?["outcome"] == "NothingToDo", "{nothing}");
    for name in ["test-a", "test-b"] {
        namespace.set_image(name, "myapp:v2").await?;
    }
    for short in ["a", "b"] {
        until_rollout(&namespace, zone(short), "on its way", |rollout| {
            rollout["status"]["currentStepIndex"] == 1
        })
        .await?;
    }
    let refused = namespace.plugin(["promote", "--sequential", "-o", "json"]).run().await?;
    ensure_code(&refused, 5)?;
    let document = parsed(&refused.stdout)?;
    ensure_fits("promotion-result", &document)?;
    ensure!(document["outcome"] == "Refused" && document["wrote"] == false, "{document}");
    let text = document["text"].as_str().unwrap_or_default();
    ensure!(text.contains("zones a, b are moving at the same time"), "{text}");
    Ok(())
}

#[tokio::test]
async fn status_tells_states_from_a_closed_list() -> Result<()> {
    let lab = Lab::connect().await?;
    let namespace = group(&lab, "states", RING).await?;
    namespace.set_image("test-b", "myapp:v2").await?;
    let at_gate =
        |rollout: &Value| rollout["status"]["pauseConditions"][0]["reason"] == "CanaryPauseStep";
    until_rollout(&namespace, zone("b"), "at its gate", at_gate).await?;
    let json = namespace.plugin(["status", "-o", "json"]).run().await?;
    let document = parsed(&json.stdout)?;
    ensure_fits("status", &document)?;
    ensure!(document["apiVersion"] == "zone-rollout.io/v1alpha1", "{document}");
    ensure!(document["kind"] == "GroupStatus", "{document}");
    let states: Vec<&str> = document["zones"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|zone| zone["state"].as_str())
        .collect();
    ensure!(states == ["AwaitingSync", "Gate", "AwaitingSync"], "{states:?}");
    for state in &states {
        ensure!(zone_rollout_core::zone::ZoneState::NAMES.contains(state), "{state} is not listed");
    }
    let yaml = namespace.plugin(["status", "-o", "yaml"]).run().await?;
    let yaml: Value = serde_saphyr::from_str(&yaml.stdout)?;
    ensure_fits("status", &yaml)?;
    ensure!(yaml["zones"][1]["state"] == "Gate", "{yaml}");
    let names = namespace.plugin(["status", "-o", "name"]).run().await?;
    ensure!(names.stdout.lines().count() == 3, "{names}");
    let wide = namespace.plugin(["status", "-o", "wide"]).run().await?;
    ensure_says(&wide, "us-east-1b")?;
    ensure_code(&namespace.plugin(["status", "--exit-code"]).run().await?, 7)?;
    let one = namespace.plugin(["status", "b"]).run().await?;
    ensure!(!one.stdout.contains("test-a"), "{one}");
    Ok(())
}

#[tokio::test]
async fn a_watched_status_is_told_again_when_it_changes() -> Result<()> {
    let lab = Lab::connect().await?;
    let namespace = group(&lab, "watch", RING).await?;
    let mut running = namespace.plugin(["status", "-w", "--exit-code"]).deadline(LONG).start()?;
    running.line("stable").await?;
    namespace.set_image("test-a", "myapp:v2").await?;
    running.line("at its gate").await?;
    running.kill().await?;
    Ok(())
}

/// Asked every so often; its word counts, and its silence halts the watch.
#[tokio::test]
async fn a_check_may_say_no() -> Result<()> {
    let lab = Lab::connect().await?;
    let namespace = group(&lab, "check", RING).await?;
    ask_all(&namespace, "myapp:v2").await?;
    let run = |check: &'static str| {
        PROMOTE.into_iter().chain(SOAKS).chain(["--only", "a", "--check", check])
    };
    let silent = run("echo no data >&2; exit 3");
    let mut silent = namespace.plugin(silent).deadline(LONG).start()?;
    silent.line("watching stands still: the check gave no verdict (no data)").await?;
    silent.kill().await?;
    let bad =
        run("test $ZR_GROUP/$ZR_ZONE/$ZR_STAGE = test/a/soak && echo too many errors >&2; exit 1");
    let bad = namespace.plugin(bad).deadline(LONG).run().await?;
    ensure_code(&bad, 3)?;
    ensure_says(&bad, "the check command said no: too many errors")?;
    let good = namespace.plugin(run("exit 0")).deadline(LONG).run().await?;
    ensure_code(&good, 0)?;
    Ok(())
}

/// A group whose zones have a pause for a person at 10 %.
async fn with_a_pause(lab: &Lab, stem: &str) -> Result<Namespace> {
    let namespace = group(lab, stem, RING).await?;
    let steps = json!([
        {"pause": {}}, {"setWeight": 10}, {"pause": {}}, {"setWeight": 50}, {"pause": {"duration": "1s"}},
    ]);
    for zone in ZONES {
        let name = format!("test-{}", zone.short);
        let patch = json!({"spec": {"strategy": {"canary": {"steps": steps}}}});
        namespace.patch(ROLLOUT, &name, &patch).await?;
    }
    ask_all(&namespace, "myapp:v2").await?;
    Ok(namespace)
}

#[tokio::test]
async fn pauses_for_people_stop_the_run_or_are_opened() -> Result<()> {
    let lab = Lab::connect().await?;
    let namespace = with_a_pause(&lab, "pauses").await?;
    let told = std::env::temp_dir().join(format!("{}-told", namespace.name()));
    let notify = format!("cat > {}", told.display());
    let arguments = PROMOTE.into_iter().chain(SOAKS).chain(["--notify", notify.as_str()]);
    let stopped = namespace.plugin(arguments).deadline(LONG).run().await?;
    ensure_code(&stopped, 7)?;
    ensure_says(&stopped, "zone a: step 2 is a pause for a person")?;
    let told = parsed(&std::fs::read_to_string(&told)?)?;
    ensure_fits("promotion-result", &told)?;
    ensure!(told["outcome"] == "Outstanding" && told["exitCode"] == 7, "{told}");
    let arguments = PROMOTE.into_iter().chain(SOAKS).chain(["--pauses", "open"]);
    let promoted = namespace.plugin(arguments).deadline(LONG).run().await?;
    ensure_code(&promoted, 0)?;
    ensure_says(&promoted, "zone c  ended the pause at step 2")?;
    Ok(())
}

/// Who may not do all of it is told before any of it is done.
#[tokio::test]
async fn missing_rights_are_named_before_anything_is_written() -> Result<()> {
    let lab = Lab::connect().await?;
    let namespace = group(&lab, "rights", RING).await?;
    ask_all(&namespace, "myapp:v2").await?;
    let read = json!({
        "apiGroups": ["argoproj.io", "apps", "", "networking.istio.io"],
        "resources": ["rollouts", "replicasets", "pods", "services", "virtualservices", "destinationrules"],
        "verbs": ["get", "list", "watch"],
    });
    let reader = namespace.user("reader", &[read], &[]).await?;
    let mark = lab.audit_mark()?;
    let shown = namespace.plugin(["status"]).kubeconfig(&reader).run().await?;
    ensure_code(&shown, 0)?;
    ensure_says(&shown, "Not seen: nodes: not permitted")?;
    let refused = namespace.plugin(PROMOTE).kubeconfig(&reader).run().await?;
    ensure_code(&refused, 5)?;
    ensure_says(
        &refused,
        "you may not patch rollouts.argoproj.io/status, patch rollouts.argoproj.io",
    )?;
    ensure!(writes(&lab, &namespace, mark).await?.is_empty());
    Ok(())
}
