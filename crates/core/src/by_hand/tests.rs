use serde_json::{Value, json};

use super::*;
use crate::group::find_groups;
use crate::layout::ring;
use crate::testing::{canary, now, object, promoted, running, scene_of, spec};
use crate::write::compile;

fn hold() -> ByHand {
    ByHand::Hold { run: "r1".to_owned(), freeze_autoscaler: false }
}

/// What comes next for zone a, in words.
fn ahead(what: ByHand, change: impl Fn(&mut Vec<Value>)) -> String {
    let mut objects = running(ring(&spec()));
    change(&mut objects);
    let scene = scene_of(&objects);
    let group = &find_groups(&scene)[0];
    let mut hands = Hands::new(what, vec![ZoneId("a".to_owned())], false);
    if let Some(action) = hands.next(&scene, group, now()) {
        return action.name().to_owned();
    }
    match hands.ends().next() {
        Some((_, Some(End::Refused(refusal)))) => format!("refused: {refusal}"),
        Some((_, Some(End::Already(state)))) => format!("already: {}", state.name()),
        Some((_, Some(End::Done(state)))) => format!("done: {}", state.name()),
        _ => "wait".to_owned(),
    }
}

fn aborted(objects: &mut Vec<Value>) {
    canary(objects, "a", 0, 0);
    let status = &mut object(objects, "Rollout", "test-a")["status"];
    status["abort"] = json!(true);
    status["abortedAt"] = json!("2026-11-30T11:59:30Z");
    status["pauseConditions"] = json!([]);
}

fn without_gates(objects: &mut [Value]) {
    for zone in ["a", "b", "c"] {
        let rollout = object(objects, "Rollout", &format!("test-{zone}"));
        let steps = rollout["spec"]["strategy"]["canary"]["steps"].as_array_mut().unwrap();
        steps.remove(0);
    }
}

fn paused(objects: &mut [Value], ours: bool) {
    let rollout = object(objects, "Rollout", "test-a");
    rollout["spec"]["paused"] = json!(true);
    if ours {
        rollout["metadata"]["annotations"]["zone-rollout.io/hold"] = json!("r1");
    }
}

#[test]
fn only_what_was_given_up_is_started_again() {
    assert_eq!(ahead(ByHand::Retry, aborted), "Retry");
    assert_eq!(ahead(ByHand::Retry, |_| {}), "already: Stable");
    assert_eq!(ahead(ByHand::Retry, |objects| canary(objects, "a", 20, 1)), "already: TimedPause");
}

#[test]
fn a_zone_without_a_gate_is_not_started_beside_another() {
    let alone = |objects: &mut Vec<Value>| {
        aborted(objects);
        without_gates(objects);
    };
    assert_eq!(ahead(ByHand::Retry, alone), "Retry");
    let beside = |objects: &mut Vec<Value>| {
        alone(objects);
        canary(objects, "b", 20, 1);
    };
    assert_eq!(
        ahead(ByHand::Retry, beside),
        "refused: it would move while another zone does, or is not well: zone b is in state TimedPause"
    );
}

#[test]
fn what_is_in_flight_goes_back_and_what_rests_does_not() {
    assert_eq!(ahead(ByHand::RollBack, |objects| canary(objects, "a", 20, 1)), "RollBack");
    assert_eq!(ahead(ByHand::RollBack, aborted), "RollBack");
    assert_eq!(ahead(ByHand::RollBack, |_| {}), "already: Stable");
    let gone = |objects: &mut Vec<Value>| {
        canary(objects, "a", 20, 1);
        objects.retain(|object| object["metadata"]["name"] != "test-a-v1");
    };
    assert_eq!(
        ahead(ByHand::RollBack, gone),
        "refused: there is no stable version that it could go back to"
    );
}

#[test]
fn specs_of_git_are_left_alone() {
    let owned = |objects: &mut Vec<Value>| {
        canary(objects, "a", 20, 1);
        object(objects, "Rollout", "test-a")["metadata"]["annotations"]["argocd.argoproj.io/tracking-id"] =
            json!("shop:argoproj.io/Rollout:default/test-a");
    };
    for what in [ByHand::RollBack, hold()] {
        let told = ahead(what, owned);
        assert!(told.starts_with("refused: its spec is owned by Argo CD"), "{told}");
    }
}

#[test]
fn a_hold_is_ours_to_release_and_no_other() {
    assert_eq!(ahead(hold(), |objects| canary(objects, "a", 20, 1)), "Hold");
    assert_eq!(ahead(hold(), |objects| paused(objects, false)), "already: Held");
    assert_eq!(ahead(ByHand::Release, |objects| paused(objects, true)), "Release");
    assert_eq!(
        ahead(ByHand::Release, |objects| paused(objects, false)),
        "refused: it is paused by spec.paused, not by this tool"
    );
    assert_eq!(ahead(ByHand::Release, |_| {}), "already: Stable");
}

#[test]
fn a_hold_that_is_released_midway_does_not_move_beside_another_zone() {
    let midway = |objects: &mut Vec<Value>| {
        canary(objects, "a", 20, 1);
        paused(objects, true);
    };
    assert_eq!(ahead(ByHand::Release, midway), "Release");
    let beside = |objects: &mut Vec<Value>| {
        midway(objects);
        canary(objects, "b", 20, 1);
    };
    let told = ahead(ByHand::Release, beside);
    assert!(told.starts_with("refused: it would move while another zone does"), "{told}");
}

#[test]
fn a_hold_does_not_freeze_an_autoscaler() {
    let scaled = |objects: &mut Vec<Value>| {
        canary(objects, "a", 20, 1);
        objects.push(json!({
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "test-a", "namespace": "default"},
            "spec": {"scaleTargetRef": {"kind": "Rollout", "name": "test-a"}},
        }));
    };
    let told = ahead(hold(), scaled);
    assert!(told.contains("HorizontalPodAutoscaler `test-a`"), "{told}");
}

/// Labels that the controller put into the stable ReplicaSet are no part of the version.
#[test]
fn going_back_leaves_out_what_the_controller_added() {
    let mut objects = running(ring(&spec()));
    canary(&mut objects, "a", 20, 1);
    let stable = object(&mut objects, "ReplicaSet", "test-a-v1");
    stable["spec"]["template"]["metadata"]["labels"]["zone-rollout.io/role"] = json!("stable");
    stable["spec"]["template"]["metadata"]["creationTimestamp"] = json!(null);
    let before = ring(&spec())
        .into_iter()
        .find(|it| it["kind"] == "Rollout" && it["metadata"]["name"] == "test-a")
        .map(|mut rollout| rollout["spec"]["template"].take());
    let scene = scene_of(&objects);
    let action = Action::RollBack { zone: ZoneId("a".to_owned()) };
    let write = compile(&action, &scene, &find_groups(&scene)[0]).unwrap();
    write.apply_to(object(&mut objects, "Rollout", "test-a")).unwrap();
    assert_eq!(
        Some(&object(&mut objects, "Rollout", "test-a")["spec"]["template"]),
        before.as_ref()
    );
    // Whoever has changed the template meanwhile keeps the change.
    object(&mut objects, "Rollout", "test-a")["spec"]["template"]["spec"]["hostNetwork"] =
        json!(true);
    assert!(write.apply_to(object(&mut objects, "Rollout", "test-a")).is_err());
}

#[test]
fn the_version_before_is_the_highest_other_revision() {
    let mut objects = running(ring(&spec()));
    canary(&mut objects, "a", 20, 1);
    promoted(&mut objects, "a");
    for (hash, revision, born) in [("v1", "6", "10:00:00"), ("v2", "7", "11:30:00")] {
        let meta = &mut object(&mut objects, "ReplicaSet", &format!("test-a-{hash}"))["metadata"];
        meta["annotations"] = json!({"rollout.argoproj.io/revision": revision});
        meta["creationTimestamp"] = json!(format!("2026-11-30T{born}Z"));
    }
    let scene = scene_of(&objects);
    let group = &find_groups(&scene)[0];
    let version = |revision: Option<u64>| {
        let found = earlier(&scene, &group.zones[0], revision)?;
        Some((found.revision, crate::template::version(&found.template)))
    };
    assert_eq!(version(None), Some((6, "myapp:v1".to_owned())));
    assert_eq!(version(Some(6)), Some((6, "myapp:v1".to_owned())));
    assert_eq!(version(Some(5)), None);
    let new: Vec<&str> = group
        .zones
        .iter()
        .filter(|zone| is_of_release(&scene, group, &ZoneFacts::gather(&scene, zone).unwrap()))
        .map(|zone| zone.id.0.as_str())
        .collect();
    assert_eq!(new, ["a"], "only the zone on the version that came last");
}
