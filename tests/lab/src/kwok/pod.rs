//! Pods: what happens to them after they are scheduled.

use serde_json::{Value, json};

use super::fragments::{self as status, Container};
use super::{HOLD_UNREADY, absent, exists, stage};

pub(super) fn stages() -> Vec<Value> {
    let mut stages = vec![
        pod("start", &[started(false), special(false, ALL)], 0, &status::first(Container::Ready)),
        pod(
            "start-unready",
            &[started(false), special(true, "never-ready|slow|crash-loop")],
            0,
            &status::first(Container::Unready),
        ),
        pod(
            "pull-fail",
            &[started(false), special(true, "pull-fail")],
            0,
            &status::first(Container::PullFails),
        ),
        pod("ready", &[unready(), held(), special(false, ALL)], 1_000, status::READY),
        pod("ready-slow", &[unready(), held(), special(true, "slow")], 10_000, status::READY),
        pod("crash", &[exists(RUNNING), special(true, "crash-loop")], 1_000, status::CRASHED),
        // The first restarts come quickly: a test wants to see several.
        pod("crash-again-soon", &[crashed("< 3")], 1_000, status::RESTARTED),
        pod("crash-again-later", &[crashed(">= 3")], 10_000, status::RESTARTED),
    ];
    let deleted = exists(".metadata.deletionTimestamp");
    stages.push(stage("Pod", "pod-delete", &[deleted], 0, &json!({"delete": true})));
    stages
}

/// Every part of a tag that asks for something special.
const ALL: &str = "never-ready|slow|crash-loop|pull-fail";
const RUNNING: &str = ".status.containerStatuses[].state.running";

fn pod(name: &str, matches: &[Value], delay: u64, status: &str) -> Value {
    let mut all = vec![absent(".metadata.deletionTimestamp")];
    all.extend_from_slice(matches);
    stage("Pod", &format!("pod-{name}"), &all, delay, &json!({"statusTemplate": status}))
}

fn started(yes: bool) -> Value {
    if yes { exists(".status.podIP") } else { absent(".status.podIP") }
}

/// Tags that end in `-in-ZONE` ask for it in that zone only: a release may fail in one zone although
/// all run the same image.
fn special(yes: bool, tags: &str) -> Value {
    let tagged = format!(
        r#".metadata.labels.zone as $zone | .spec.containers[].image | select(test(":[^/]*({tags})") and ((test("-in-") | not) or endswith("-in-" + $zone)))"#
    );
    if yes { exists(&tagged) } else { absent(&tagged) }
}

fn unready() -> Value {
    exists(r#".status.conditions[] | select(.type == "Ready" and .status == "False")"#)
}

fn held() -> Value {
    absent(&format!(".metadata.annotations[\"{HOLD_UNREADY}\"]"))
}

fn crashed(restarts: &str) -> Value {
    exists(&format!(
        r#".status.containerStatuses[] | select(.state.waiting.reason == "CrashLoopBackOff" and .restartCount {restarts})"#
    ))
}
