//! Diversions on running groups, and on the simulated cluster while its controller writes.

use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::group::find_groups;
use crate::layout::{ring, zone_local};
use crate::promote::{Goal, blockers};
use crate::scene::Scene;
use crate::sim::{Act, World};
use crate::testing::{canary, now, object, promoted, running, scene_of, settings, spec};
use crate::traffic::{Client, flow, weight_in_force};
use crate::write::{Action, Written, compile};

fn id(name: &str) -> ZoneId {
    ZoneId(name.to_owned())
}

/// Sends the clients of zone a to another.
fn divert(objects: &mut [Value], to: &str) {
    object(objects, "VirtualService", "test")["metadata"]["uid"] = json!("vs");
    let scene = scene_of(objects);
    let group = find_groups(&scene).remove(0);
    let action = Action::Divert { zone: id("a"), to: id(to) };
    let write = compile(&action, &scene, &group).unwrap();
    write.apply_to(object(objects, "VirtualService", "test")).unwrap();
}

fn unready(objects: &mut [Value], zone: &str, pods: usize) {
    for index in 0..pods {
        let pod = object(objects, "Pod", &format!("test-{zone}-v1-{index}"));
        pod["status"]["conditions"] = json!([{"type": "Ready", "status": "False"}]);
    }
}

/// What it would mean to send the clients of zone a to the next zone: load, exposure, reasons.
fn told(change: impl Fn(&mut Vec<Value>)) -> String {
    let mut objects = running(zone_local(&spec()));
    change(&mut objects);
    let scene = scene_of(&objects);
    let group = find_groups(&scene).remove(0);
    let next = next_zone(&scene, &group, &group.zones[0]).unwrap();
    let load = next.factor.map(|factor| format!(", {factor:.1} times the load"));
    let percent = |share: f64| (share * 100.0).round();
    let version = next.other_version.as_ref().zip(next.exposure.as_ref());
    let version = version.map(|(version, (before, after))| {
        format!(", on {version} {} > {}", percent(before.now.new), percent(after.now.new))
    });
    let unfit = next.unfit.iter().map(|unfit| format!("; {unfit}"));
    let to = format!("to {}", next.to);
    [Some(to), load, version].into_iter().flatten().chain(unfit).collect()
}

#[test]
fn the_next_zone_that_can_take_them_is_chosen() {
    assert_eq!(told(|_| {}), "to b, 2.0 times the load");
    assert_eq!(told(|objects| unready(objects, "b", 1)), "to c, 2.0 times the load");
    assert_eq!(told(|objects| canary(objects, "b", 20, 1)), "to c, 2.0 times the load");
    assert_eq!(
        told(|objects| canary(objects, "b", 0, 0)),
        "to b, 2.0 times the load",
        "at its gate"
    );
}

#[test]
fn where_none_can_the_reasons_of_the_next_are_told() {
    let short = |objects: &mut Vec<Value>| {
        unready(objects, "b", 1);
        unready(objects, "c", 3);
    };
    assert_eq!(
        told(short),
        "to b, 3.0 times the load; in zone b, 2 of 3 pods are Ready and would each carry 3.0 \
         times their normal load"
    );
    let moving = |objects: &mut Vec<Value>| {
        canary(objects, "b", 20, 1);
        unready(objects, "c", 3);
    };
    assert_eq!(told(moving), "to b, 2.0 times the load; zone b is in the middle of an update");
    let lost = |objects: &mut Vec<Value>| {
        unready(objects, "b", 3);
        unready(objects, "c", 3);
    };
    assert_eq!(told(lost), "to b; zone b is lost: none of the zone's 3 stable pods is Ready");
}

#[test]
fn a_zone_on_another_version_exposes_them_to_it() {
    let ahead = |objects: &mut Vec<Value>| {
        canary(objects, "b", 20, 1);
        promoted(objects, "b");
    };
    assert_eq!(told(ahead), "to b, 2.0 times the load, on myapp:v2 33 > 67");
}

#[test]
fn guests_count_and_zones_without_their_own_clients_take_none() {
    let mut objects = running(zone_local(&spec()));
    divert(&mut objects, "b");
    let scene = scene_of(&objects);
    let group = find_groups(&scene).remove(0);
    let to_b = transfer(&scene, &group, &group.zones[2], &group.zones[1]);
    assert_eq!(to_b.factor, Some(3.0));
    let to_a = transfer(&scene, &group, &group.zones[2], &group.zones[0]);
    assert_eq!(to_a.unfit, [Unfit::Diverted(id("a"))]);
}

#[test]
fn a_route_behind_the_zones_own_sends_nobody_elsewhere() {
    let mut objects = running(zone_local(&spec()));
    divert(&mut objects, "b");
    let http = &mut object(&mut objects, "VirtualService", "test")["spec"]["http"];
    http.as_array_mut().unwrap().swap(0, 1);
    let scene = scene_of(&objects);
    let group = find_groups(&scene).remove(0);
    assert_eq!(diverted(&scene, &group, &group.zones[0]), None);
    assert_eq!(served(&scene), "a");
}

#[test]
fn a_route_without_a_name_takes_no_second_one() {
    let mut objects = running(zone_local(&spec()));
    object(&mut objects, "VirtualService", "test")["spec"]["http"] = json!([{"route": [
        {"destination": {"host": "test", "subset": "stable-a"}, "weight": 100},
        {"destination": {"host": "test", "subset": "canary-a"}, "weight": 0},
    ]}]);
    let canary = &mut object(&mut objects, "Rollout", "test-a")["spec"]["strategy"]["canary"];
    canary["trafficRouting"]["istio"]["virtualService"] = json!({"name": "test"});
    let scene = scene_of(&objects);
    let zones: Vec<Group> = find_groups(&scene);
    let zone = zones.iter().flat_map(|group| &group.zones).find(|zone| zone.id == id("a")).unwrap();
    let unfit = restoration(&scene, zone).unfit;
    assert!(unfit.iter().any(Unfit::is_hopeless), "{unfit:?}");
}

#[test]
fn a_zone_takes_its_clients_back_with_all_pods_and_no_canary_share() {
    let told = |change: &dyn Fn(&mut Vec<Value>)| {
        let mut objects = running(zone_local(&spec()));
        change(&mut objects);
        let scene = scene_of(&objects);
        let zone = find_groups(&scene).remove(0).zones.remove(0);
        let unfit = restoration(&scene, &zone).unfit;
        unfit.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    };
    assert_eq!(told(&|_| {}), "");
    insta::assert_snapshot!(
        told(&|objects| unready(objects, "a", 1)),
        @"in zone a, 2 of 3 pods are Ready and would each carry 1.5 times their normal load"
    );
    insta::assert_snapshot!(
        told(&|objects| canary(objects, "a", 20, 1)),
        @"20 % of the clients of zone a would be on a new version"
    );
}

#[test]
fn an_evacuated_zone_is_not_promoted() {
    let mut objects = running(ring(&spec()));
    divert(&mut objects, "b");
    let scene = scene_of(&objects);
    let group = find_groups(&scene).remove(0);
    let goal = Goal::images(&scene, &group, &["myapp:v2".to_owned()]).map(Goal::Expected).unwrap();
    let told = |skip: &[&str]| {
        let mut settings = settings();
        settings.skipped = skip.iter().map(|zone| id(zone)).collect();
        let found = blockers(&scene, &group, &settings, &goal, now());
        found.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(
        told(&[]),
        "the clients of zone a are sent to zone b: in zone a nobody would use the new version"
    );
    assert_eq!(told(&["a"]), "");
}

fn apply(world: &mut World, action: &Action) {
    let scene = world.scene();
    let group = find_groups(&scene).remove(0);
    let write = compile(action, &scene, &group).unwrap();
    assert!(matches!(world.apply(&write), Written::Landed { .. }));
}

/// Zones whose pods answer the clients of zone a.
fn served(scene: &Scene) -> String {
    let client = Client::in_zone(scene, "us-east-1a");
    let flow = flow(scene, "test.default.svc.cluster.local", &client, None);
    assert!(flow.unserved == 0.0);
    let mut zones: Vec<char> =
        flow.shares.keys().filter_map(|key| key.name.chars().nth(5)).collect();
    zones.dedup();
    zones.into_iter().collect()
}

#[test]
fn it_stays_while_the_controller_writes_weights() {
    for layout in [ring(&spec()), zone_local(&spec())] {
        let mut world = World::deploy(&layout, now().wall, 1).unwrap();
        world.wait(Duration::from_mins(1));
        apply(&mut world, &Action::Divert { zone: id("a"), to: id("b") });
        assert_eq!(served(&world.scene()), "b");
        let rollout = Key::new("default", "test-c");
        world.act(Act::SetImage(rollout.clone(), "myapp:v2".to_owned())).unwrap();
        world.wait(Duration::from_secs(10));
        world.act(Act::Promote(rollout)).unwrap();
        world.wait(Duration::from_mins(3));
        let weight = |world: &World| {
            let scene = world.scene();
            let rollout = scene.rollouts.get(&Key::new("default", "test-c")).unwrap();
            weight_in_force(&scene, rollout).unwrap().highest
        };
        assert_eq!(weight(&world), 10);
        world.wait(Duration::from_mins(30));
        assert_eq!(weight(&world), 0, "promoted");
        assert_eq!(served(&world.scene()), "b");
        let group = find_groups(&world.scene()).remove(0);
        let found = diverted(&world.scene(), &group, &group.zones[0]).unwrap();
        assert_eq!(found, Diverted { to: Some(id("b")), complete: true });
        apply(&mut world, &Action::EndDiversion { zone: id("a") });
        assert_eq!(served(&world.scene()), "a");
        assert_eq!(diverted(&world.scene(), &group, &group.zones[0]), None);
    }
}
