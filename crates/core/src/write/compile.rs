//! From an action to the guarded patch that does it, judged against what is known now.

use std::fmt;

use serde_json::{Value, json};

use super::divert::{divert, end_diversion};
use super::{Action, Guards, Op, Subresource, TargetKind, Write};
use crate::group::{Group, ZoneId};
use crate::scene::{PauseCondition, Rollout, Scene};
use crate::template::{Images, as_written};
use crate::traffic::{RolloutRoute, rollout_routes};
use crate::zone::{HOLD_ANNOTATION, template_of};

/// Annotation that is changed to make the controller look again.
const NUDGE_ANNOTATION: &str = "zone-rollout.io/nudge";

/// The cluster is not as it was judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drift {
    /// What differs, as a sentence without a full stop.
    pub what: String,
}

impl Drift {
    /// A drift with this description.
    pub fn new(what: impl Into<String>) -> Self {
        Self { what: what.into() }
    }
}

impl fmt::Display for Drift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

/// Compiles an action into a guarded patch.
///
/// # Errors
/// If the scene no longer has what the action is about.
pub fn compile(action: &Action, scene: &Scene, group: &Group) -> Result<Write, Drift> {
    let rollout = rollout_of(scene, group, action.zone())?;
    match action {
        Action::Open { .. } | Action::Continue { .. } => end_pause(rollout),
        Action::SetImage { images, .. } => set_image(rollout, images),
        Action::Hold { run, .. } => Ok(hold(rollout, run)),
        Action::Release { .. } => release(rollout),
        Action::Restore { template, .. } => {
            Ok(set_template(rollout, same_object(&rollout.meta.uid), template.clone()))
        }
        Action::RollBack { .. } => roll_back(scene, rollout),
        Action::Retry { .. } => retry(rollout),
        Action::Abort { .. } => abort(rollout),
        Action::TrafficToStable { .. } => traffic_to_stable(scene, rollout),
        Action::Nudge { .. } => Ok(nudge(rollout)),
        Action::Divert { zone, to } => divert(scene, zone, rollout, rollout_of(scene, group, to)?),
        Action::EndDiversion { zone } => end_diversion(scene, zone, rollout),
    }
}

fn rollout_of<'a>(scene: &'a Scene, group: &Group, zone: &ZoneId) -> Result<&'a Rollout, Drift> {
    group
        .zone(zone)
        .and_then(|zone| scene.rollouts.get(&zone.rollout))
        .ok_or_else(|| Drift::new(format!("the Rollout of zone {zone} is gone")))
}

/// The uid keeps a write from hitting an object that was deleted and made again.
pub(super) fn same_object(uid: &str) -> Guards {
    Guards::new("/metadata/uid", uid)
}

fn on_status(rollout: &Rollout, guards: Guards, ops: Vec<Op>) -> Write {
    Write::new(TargetKind::Rollout, rollout.meta.key(), Subresource::Status, guards, ops)
}

fn on_spec(rollout: &Rollout, guards: Guards, ops: Vec<Op>) -> Write {
    Write::new(TargetKind::Rollout, rollout.meta.key(), Subresource::Main, guards, ops)
}

/// Does what `kubectl argo rollouts promote` does at a pause (`getPatches` in `cmd/promote`), but
/// only if it is still this pause of this template: upstream's patch skips a step if it comes twice.
fn end_pause(rollout: &Rollout) -> Result<Write, Drift> {
    let status = &rollout.status;
    let Some(PauseCondition { reason, .. }) = status.pause_conditions.first() else {
        return Err(Drift::new(format!("Rollout `{}` is not paused any more", rollout.meta.name)));
    };
    let guards = same_object(&rollout.meta.uid)
        .and("/status/currentPodHash", status.current_pod_hash.as_str())
        .and("/status/currentStepIndex", rollout.step_index())
        .and("/status/pauseConditions/0/reason", reason.as_str());
    Ok(on_status(rollout, guards, vec![Op::Remove("/status/pauseConditions".to_owned())]))
}

fn set_image(rollout: &Rollout, images: &Images) -> Result<Write, Drift> {
    let containers = rollout.spec.template.pointer("/spec/containers").and_then(Value::as_array);
    let mut guards = same_object(&rollout.meta.uid);
    let mut ops = Vec::new();
    for (name, image) in images {
        let (index, container) = containers
            .into_iter()
            .flatten()
            .enumerate()
            .find(|(_, container)| container["name"] == *name)
            .ok_or_else(|| Drift::new(format!("container `{name}` is gone")))?;
        let pointer = format!("/spec/template/spec/containers/{index}");
        guards = guards
            .and(format!("{pointer}/name"), name.as_str())
            .and(format!("{pointer}/image"), container["image"].clone());
        ops.push(Op::Replace(format!("{pointer}/image"), json!(image)));
    }
    Ok(on_spec(rollout, guards, ops))
}

/// Only over the template that was seen, whole: an edit that came between is nobody's to undo.
fn set_template(rollout: &Rollout, guards: Guards, template: Value) -> Write {
    let guards = guards.and("/spec/template", rollout.spec.template.clone());
    on_spec(rollout, guards, vec![Op::Replace("/spec/template".to_owned(), template)])
}

/// The controller finds the stable ReplicaSet again by its template, if that is without what the
/// controller itself has put into it (`FindNewReplicaSet` in `utils/replicaset/replicaset.go`).
fn roll_back(scene: &Scene, rollout: &Rollout) -> Result<Write, Drift> {
    let stable = &rollout.status.stable_rs;
    let template = template_of(scene, rollout, stable).ok_or_else(|| {
        Drift::new(format!("the stable ReplicaSet of Rollout `{}` is gone", rollout.meta.name))
    })?;
    let guards = same_object(&rollout.meta.uid).and("/status/stableRS", stable.as_str());
    Ok(set_template(rollout, guards, as_written(template, rollout)))
}

/// Does what `kubectl argo rollouts retry rollout` does (`cmd/retry`), but only to this update.
fn retry(rollout: &Rollout) -> Result<Write, Drift> {
    if !rollout.status.abort {
        return Err(Drift::new(format!("Rollout `{}` is not aborted any more", rollout.meta.name)));
    }
    let guards = same_object(&rollout.meta.uid)
        .and("/status/currentPodHash", rollout.status.current_pod_hash.as_str())
        .and("/status/abort", true);
    Ok(on_status(rollout, guards, vec![Op::Remove("/status/abort".to_owned())]))
}

fn hold(rollout: &Rollout, run: &str) -> Write {
    let guards = same_object(&rollout.meta.uid)
        .and("/status/currentPodHash", rollout.status.current_pod_hash.as_str());
    let pause = Op::Add("/spec/paused".to_owned(), json!(true));
    on_spec(rollout, guards, vec![pause, annotate(rollout, HOLD_ANNOTATION, run)])
}

/// Any change will do; the resource version differs from the last nudge's.
fn nudge(rollout: &Rollout) -> Write {
    let version = &rollout.meta.resource_version;
    let guards = same_object(&rollout.meta.uid).and("/metadata/resourceVersion", version.as_str());
    on_spec(rollout, guards, vec![annotate(rollout, NUDGE_ANNOTATION, version)])
}

fn annotate(rollout: &Rollout, name: &str, value: &str) -> Op {
    if rollout.meta.annotations.is_empty() {
        Op::Add("/metadata/annotations".to_owned(), json!({name: value}))
    } else {
        Op::Add(annotation_pointer(name), json!(value))
    }
}

fn release(rollout: &Rollout) -> Result<Write, Drift> {
    let Some(run) = rollout.meta.annotations.get(HOLD_ANNOTATION) else {
        return Err(Drift::new(format!(
            "Rollout `{}` is not held by this tool any more",
            rollout.meta.name
        )));
    };
    let guards = same_object(&rollout.meta.uid)
        .and("/spec/paused", true)
        .and(annotation_pointer(HOLD_ANNOTATION), run.as_str())
        .and("/status/currentPodHash", rollout.status.current_pod_hash.as_str());
    let ops = vec![
        Op::Replace("/spec/paused".to_owned(), json!(false)),
        Op::Remove(annotation_pointer(HOLD_ANNOTATION)),
    ];
    Ok(on_spec(rollout, guards, ops))
}

fn annotation_pointer(name: &str) -> String {
    format!("/metadata/annotations/{}", name.replace('~', "~0").replace('/', "~1"))
}

/// While `promoteFull` is true the controller takes every abort back (`syncRolloutStatusCanary`), so
/// both have to change in one patch.
fn abort(rollout: &Rollout) -> Result<Write, Drift> {
    let status = &rollout.status;
    if rollout.is_fully_promoted() {
        return Err(Drift::new(format!("Rollout `{}` has finished", rollout.meta.name)));
    }
    let guards = same_object(&rollout.meta.uid)
        .and("/status/currentPodHash", status.current_pod_hash.as_str());
    let give_up = Op::Add("/status/abort".to_owned(), json!(true));
    if status.promote_full {
        let guards = guards.and("/status/promoteFull", true);
        let keep_steps = Op::Replace("/status/promoteFull".to_owned(), json!(false));
        return Ok(on_status(rollout, guards, vec![keep_steps, give_up]));
    }
    Ok(on_status(rollout, guards, vec![give_up]))
}

/// Only the first route that still sends traffic to the canary; a Rollout with several needs several
/// writes.
fn traffic_to_stable(scene: &Scene, rollout: &Rollout) -> Result<Write, Drift> {
    let routes = rollout_routes(scene, rollout).map_err(|gap| Drift::new(gap.to_string()))?;
    let route = routes
        .iter()
        .find(|route| route.canary_weight() > 0)
        .ok_or_else(|| Drift::new("no route sends traffic to the canary any more"))?;
    let uid = scene
        .routes
        .get(&route.virtual_service)
        .map_or("", |virtual_service| virtual_service.meta.uid.as_str());
    let pointer = format!("/spec/http/{}", route.index);
    let mut guards =
        same_object(uid).and(format!("{pointer}/route"), route.route.raw_destinations().clone());
    if !route.route.name.is_empty() {
        guards = guards.and(format!("{pointer}/name"), route.route.name.as_str());
    }
    Ok(Write::new(
        TargetKind::VirtualService,
        route.virtual_service.clone(),
        Subresource::Main,
        guards,
        vec![Op::Replace(format!("{pointer}/route"), without_canary(route))],
    ))
}

/// The route with the canary's weight given to the stable destination.
fn without_canary(route: &RolloutRoute<'_>) -> Value {
    let weight = |index: usize| route.route.destinations[index].weight.unwrap_or(0.0);
    let mut destinations = route.route.raw_destinations().clone();
    #[expect(
        clippy::cast_possible_truncation,
        reason = "weights are whole numbers; the controller writes percent"
    )]
    let stable = (weight(route.stable) + weight(route.canary)).round() as i64;
    destinations[route.stable]["weight"] = json!(stable);
    destinations[route.canary]["weight"] = json!(0);
    destinations
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::find_groups;
    use crate::layout::ring;
    use crate::testing::{object, running, scene_of, spec};

    fn compiled(action: &Action, change: impl Fn(&mut Vec<Value>)) -> String {
        in_scene(change, |scene, group| compile(action, scene, group))
    }

    /// The same for what only a cleared action may do.
    fn of_rollout(
        compile: impl Fn(&Rollout) -> Result<Write, Drift>,
        change: impl Fn(&mut Vec<Value>),
    ) -> String {
        in_scene(change, |scene, group| compile(rollout_of(scene, group, &zone_a())?))
    }

    fn in_scene(
        change: impl Fn(&mut Vec<Value>),
        compile: impl Fn(&Scene, &Group) -> Result<Write, Drift>,
    ) -> String {
        let mut objects = running(ring(&spec()));
        let rollout = object(&mut objects, "Rollout", "test-a");
        rollout["status"]["currentPodHash"] = json!("v2");
        rollout["status"]["currentStepIndex"] = json!(0);
        change(&mut objects);
        let scene = scene_of(&objects);
        match compile(&scene, &find_groups(&scene)[0]) {
            Ok(write) => {
                let patch = write.patch();
                let ops: Vec<String> =
                    patch.as_array().unwrap().iter().map(Value::to_string).collect();
                let (kind, subresource) = (write.kind, write.subresource);
                format!("{kind:?} {} {subresource:?}\n{}", write.key, ops.join("\n"))
            }
            Err(drift) => format!("drift: {drift}"),
        }
    }

    fn zone_a() -> ZoneId {
        ZoneId("a".to_owned())
    }

    fn paused(objects: &mut [Value]) {
        object(objects, "Rollout", "test-a")["status"]["pauseConditions"] =
            json!([{"reason": "CanaryPauseStep", "startTime": "2026-11-30T11:00:00Z"}]);
    }

    #[test]
    fn a_pause_is_ended_only_where_it_was_seen() {
        let action = Action::Continue { zone: zone_a(), step: 0 };
        insta::assert_snapshot!(compiled(&action, |objects| paused(objects)), @r#"
        Rollout default/test-a Status
        {"op":"test","path":"/metadata/uid","value":"rollout-a"}
        {"op":"test","path":"/status/currentPodHash","value":"v2"}
        {"op":"test","path":"/status/currentStepIndex","value":0}
        {"op":"test","path":"/status/pauseConditions/0/reason","value":"CanaryPauseStep"}
        {"op":"remove","path":"/status/pauseConditions"}
        "#);
        insta::assert_snapshot!(
            compiled(&action, |_| {}),
            @"drift: Rollout `test-a` is not paused any more"
        );
    }

    #[test]
    fn a_hold_is_marked_as_ours() {
        let action = Action::Hold { zone: zone_a(), run: "r1".to_owned() };
        insta::assert_snapshot!(compiled(&action, |_| {}), @r#"
        Rollout default/test-a Main
        {"op":"test","path":"/metadata/uid","value":"rollout-a"}
        {"op":"test","path":"/status/currentPodHash","value":"v2"}
        {"op":"add","path":"/spec/paused","value":true}
        {"op":"add","path":"/metadata/annotations/zone-rollout.io~1hold","value":"r1"}
        "#);
    }

    #[test]
    fn an_image_replaces_the_one_that_was_seen() {
        let images = |name: &str| Images::from([(name.to_owned(), "myapp:v2".to_owned())]);
        let of_app = |rollout: &Rollout| set_image(rollout, &images("app"));
        insta::assert_snapshot!(of_rollout(of_app, |_| {}), @r#"
        Rollout default/test-a Main
        {"op":"test","path":"/metadata/uid","value":"rollout-a"}
        {"op":"test","path":"/spec/template/spec/containers/0/name","value":"app"}
        {"op":"test","path":"/spec/template/spec/containers/0/image","value":"myapp:v1"}
        {"op":"replace","path":"/spec/template/spec/containers/0/image","value":"myapp:v2"}
        "#);
        let of_web = |rollout: &Rollout| set_image(rollout, &images("web"));
        insta::assert_snapshot!(of_rollout(of_web, |_| {}), @"drift: container `web` is gone");
    }

    #[test]
    fn a_hold_is_released_only_if_it_is_still_ours() {
        let held = |objects: &mut Vec<Value>| {
            let rollout = object(objects, "Rollout", "test-a");
            rollout["spec"]["paused"] = json!(true);
            rollout["metadata"]["annotations"][HOLD_ANNOTATION] = json!("r1");
        };
        insta::assert_snapshot!(of_rollout(release, held), @r#"
        Rollout default/test-a Main
        {"op":"test","path":"/metadata/uid","value":"rollout-a"}
        {"op":"test","path":"/spec/paused","value":true}
        {"op":"test","path":"/metadata/annotations/zone-rollout.io~1hold","value":"r1"}
        {"op":"test","path":"/status/currentPodHash","value":"v2"}
        {"op":"replace","path":"/spec/paused","value":false}
        {"op":"remove","path":"/metadata/annotations/zone-rollout.io~1hold"}
        "#);
        insta::assert_snapshot!(of_rollout(release, |_| {}), @"drift: Rollout `test-a` is not held by this tool any more");
    }

    #[test]
    fn a_nudge_changes_only_its_annotation_of_what_was_seen() {
        let action = Action::Nudge { zone: zone_a() };
        let seen = |objects: &mut Vec<Value>| {
            object(objects, "Rollout", "test-a")["metadata"]["resourceVersion"] = json!("7");
        };
        insta::assert_snapshot!(compiled(&action, seen), @r#"
        Rollout default/test-a Main
        {"op":"test","path":"/metadata/uid","value":"rollout-a"}
        {"op":"test","path":"/metadata/resourceVersion","value":"7"}
        {"op":"add","path":"/metadata/annotations/zone-rollout.io~1nudge","value":"7"}
        "#);
    }

    #[test]
    fn an_abort_takes_a_full_promotion_back_in_the_same_patch() {
        let action = Action::Abort { zone: zone_a() };
        let full = |objects: &mut Vec<Value>| {
            object(objects, "Rollout", "test-a")["status"]["promoteFull"] = json!(true);
        };
        insta::assert_snapshot!(compiled(&action, full), @r#"
        Rollout default/test-a Status
        {"op":"test","path":"/metadata/uid","value":"rollout-a"}
        {"op":"test","path":"/status/currentPodHash","value":"v2"}
        {"op":"test","path":"/status/promoteFull","value":true}
        {"op":"replace","path":"/status/promoteFull","value":false}
        {"op":"add","path":"/status/abort","value":true}
        "#);
    }

    #[test]
    fn traffic_moves_only_if_the_whole_route_is_as_it_was_seen() {
        let action = Action::TrafficToStable { zone: zone_a() };
        let at_twenty = |objects: &mut Vec<Value>| {
            let virtual_service = object(objects, "VirtualService", "test");
            virtual_service["metadata"]["uid"] = json!("vs");
            let route = &mut virtual_service["spec"]["http"][0]["route"];
            route[0]["weight"] = json!(80);
            route[1]["weight"] = json!(20);
        };
        insta::assert_snapshot!(compiled(&action, at_twenty), @r#"
        VirtualService default/test Main
        {"op":"test","path":"/metadata/uid","value":"vs"}
        {"op":"test","path":"/spec/http/0/route","value":[{"destination":{"host":"test.default.svc.cluster.local","subset":"stable-a"},"weight":80},{"destination":{"host":"test.default.svc.cluster.local","subset":"canary-a"},"weight":20}]}
        {"op":"test","path":"/spec/http/0/name","value":"zone-a-route"}
        {"op":"replace","path":"/spec/http/0/route","value":[{"destination":{"host":"test.default.svc.cluster.local","subset":"stable-a"},"weight":100},{"destination":{"host":"test.default.svc.cluster.local","subset":"canary-a"},"weight":0}]}
        "#);
        insta::assert_snapshot!(
            compiled(&action, |_| {}),
            @"drift: no route sends traffic to the canary any more"
        );
    }
}
