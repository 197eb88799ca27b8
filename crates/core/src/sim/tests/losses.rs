//! Pods and nodes that are lost in mid-canary.

use super::support::*;
use crate::sim::{Act, World};
use crate::traffic::{Client, flow};

#[test]
fn steps_run_on_without_traffic_while_the_stable_pods_are_missing() {
    let mut world = ring_at_rest();
    ask(&mut world, &["a"], "myapp:v2");
    wait(&mut world, 5);
    ready(&mut world, 3, false);
    let since = world.history().len();
    open(&mut world, "a");
    wait(&mut world, 200);
    assert_eq!(passage(&world, "a", since), "0 1 2 3 4 5 6 7");
    assert_eq!(told(&world, "a"), "Progressing 7 0 % 0+3");
}

#[test]
fn a_zone_without_stable_pods_marches_on_and_is_promoted() {
    let mut world = ring_with_services();
    in_mid_canary(&mut world, 10);
    let since = world.history().len();
    ready(&mut world, 3, false);
    wait(&mut world, 200);
    assert_eq!(passage(&world, "a", since), "3 4 5 6 7 80% 8 9 100% 0%");
    assert_eq!(told(&world, "a"), "Healthy 9 0 % 3");
}

#[test]
fn a_hold_stops_the_march() {
    let mut world = ring_with_services();
    in_mid_canary(&mut world, 10);
    ready(&mut world, 3, false);
    act(&mut world, Act::Pause(key("a"), true));
    wait(&mut world, 200);
    assert_eq!(told(&world, "a"), "Paused 2 10 % 0+1");
}

#[test]
fn a_held_zone_is_carried_by_the_next_one_and_its_canary() {
    let mut world = ring_at_rest();
    in_mid_canary(&mut world, 10);
    ready(&mut world, 3, false);
    act(&mut world, Act::Pause(key("a"), true));
    wait(&mut world, 5);
    assert_eq!(served(&world), "test-a 10 %, test-b 90 %");
    act(&mut world, Act::Abort(key("a")));
    wait(&mut world, 5);
    super::writes::traffic_to_stable(&mut world, "a");
    assert_eq!(served(&world), "test-b 100 %");
}

/// Who serves the clients of zone a.
fn served(world: &World) -> String {
    let scene = world.scene();
    let client = Client::in_zone(&scene, "us-east-1a");
    let flow = flow(&scene, "test.default.svc.cluster.local", &client, None);
    let mut told: Vec<String> = ["test-a", "test-b", "test-c"]
        .iter()
        .map(|zone| (zone, flow.share_of(|pod| pod.name.starts_with(zone))))
        .filter(|(_, share)| *share > 0.0)
        .map(|(zone, share)| format!("{zone} {:.0} %", share * 100.0))
        .collect();
    if flow.unserved > 0.0 {
        told.push("nobody".to_owned());
    }
    told.join(", ")
}

#[test]
fn a_lost_zone_looks_as_if_it_ran_and_its_pods_are_replaced_when_it_is_back() {
    let mut world = ring_at_rest();
    in_mid_canary(&mut world, 20);
    let zone = || "us-east-1a".to_owned();
    act(&mut world, Act::Nodes { zone: zone(), up: false });
    wait(&mut world, 5);
    assert_eq!(told(&world, "a"), "Paused 4 20 % 0+0");
    let stable = rollout(&world, "a").status.stable_rs;
    let lost = pods(&world, "a", &stable);
    assert!(lost.iter().all(|pod| pod.status.phase == crate::scene::PodPhase::Running));
    wait(&mut world, 400);
    let replaced = pods(&world, "a", &stable);
    assert!(replaced.iter().all(|pod| pod.spec.node_name.is_empty()), "nowhere to go");
    act(&mut world, Act::Nodes { zone: zone(), up: true });
    wait(&mut world, 200);
    assert_eq!(told(&world, "a"), "Healthy 9 0 % 3");
}

#[test]
fn a_deleted_pod_is_replaced() {
    let mut world = ring_at_rest();
    let stable = rollout(&world, "a").status.stable_rs;
    let pod = pods(&world, "a", &stable)[0].meta.key();
    act(&mut world, Act::DeletePod(pod));
    world.wait(std::time::Duration::from_millis(400));
    assert_eq!(told(&world, "a"), "Progressing 9 0 % 2");
    wait(&mut world, 5);
    assert_eq!(told(&world, "a"), "Healthy 9 0 % 3");
}

#[test]
fn nothing_moves_while_the_controller_is_down() {
    let mut world = ring_at_rest();
    act(&mut world, Act::Controller(false));
    ask(&mut world, &["a"], "myapp:v2");
    wait(&mut world, 60);
    assert_eq!(told(&world, "a"), "Healthy 9 0 % 3");
    act(&mut world, Act::Controller(true));
    wait(&mut world, 5);
    assert_eq!(told(&world, "a"), "Paused 0 0 % 3+0");
}
