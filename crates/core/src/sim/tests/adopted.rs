//! Worlds that go on from what was read, and what they refuse.

use std::time::Duration;

use serde_json::{Value, json};

use super::support::*;
use crate::layout::{ring, zone_local};
use crate::scene::Coverage;
use crate::sim::{Unmodelled, World};
use crate::testing::{canary, now, object, running, scene_of, spec};

#[test]
fn a_cluster_at_rest_stays_at_rest() {
    for manifests in [ring(&spec()), zone_local(&spec())] {
        let mut world = World::from_scene(&scene_of(&running(manifests)), 1).unwrap();
        wait(&mut world, 600);
        for zone in ["a", "b", "c"] {
            assert_eq!(told(&world, zone), "Healthy 9 0 % 3");
            assert_eq!(rollout(&world, zone).status.stable_rs, "v1", "the real hash");
        }
    }
}

#[test]
fn an_update_goes_on_from_where_it_was() {
    let mut objects = running(ring(&short_pauses()));
    canary(&mut objects, "a", 20, 1);
    let mut world = World::from_scene(&scene_of(&objects), 1).unwrap();
    assert_eq!(world.now(), now());
    world.wait(Duration::from_secs(1));
    assert_eq!(told(&world, "a"), "Paused 6 50 % 3+2", "the pause at 20 % was over");
    wait(&mut world, 120);
    assert_eq!(told(&world, "a"), "Healthy 9 0 % 3");
    assert_eq!(rollout(&world, "a").status.stable_rs, "v2");
}

#[test]
fn what_could_not_be_read_is_not_played() {
    let mut scene = scene_of(&running(ring(&spec())));
    scene.pods.coverage = Coverage::Forbidden;
    let refused = World::from_scene(&scene, 1).unwrap_err();
    assert_eq!(refused.to_string(), "the pods are not known: not permitted");
}

#[test]
fn what_is_not_modelled_is_said() {
    let refused = |change: &dyn Fn(&mut Value)| {
        let mut objects = ring(&spec());
        change(&mut object(&mut objects, "Rollout", "test-a")["spec"]);
        match World::deploy(&objects, at(), 1).unwrap_err() {
            Unmodelled::Feature { feature, .. } => feature,
            other => other.to_string(),
        }
    };
    let steps = |spec: &mut Value, step: Value| spec["strategy"]["canary"]["steps"][0] = step;
    let said = [
        refused(&|spec| spec["strategy"] = json!({"blueGreen": {}})),
        refused(&|spec| spec["workloadRef"] = json!({"kind": "Deployment", "name": "test"})),
        refused(&|spec| spec["minReadySeconds"] = json!(5)),
        refused(&|spec| spec["rollbackWindow"] = json!({"revisions": 3})),
        refused(&|spec| spec["strategy"]["canary"]["dynamicStableScale"] = json!(true)),
        refused(&|spec| spec["strategy"]["canary"]["trafficRouting"] = json!({"nginx": {}})),
        refused(&|spec| spec["strategy"]["canary"]["trafficRouting"] = Value::Null),
        refused(&|spec| steps(spec, json!({"plugin": {"name": "x"}}))),
        refused(&|spec| steps(spec, json!({"setHeaderRoute": {"name": "x"}}))),
        refused(&|spec| steps(spec, json!({"novel": {}}))),
    ];
    insta::assert_snapshot!(said.join("\n"), @r"
    no canary strategy
    workloadRef
    minReadySeconds
    rollbackWindow
    dynamicStableScale
    trafficRouting.nginx
    no trafficRouting.istio.destinationRule
    a step `plugin`
    a step `setHeaderRoute`
    a step of an unknown kind
    ");
}
