//! What people do with upstream's commands.

use super::support::*;
use crate::sim::Act;

#[test]
fn an_undo_after_the_end_is_an_update_that_waits_at_the_gate() {
    let mut world = ring_at_rest();
    let before = rollout(&world, "a").status.stable_rs;
    in_mid_canary(&mut world, 10);
    wait(&mut world, 200);
    act(&mut world, Act::Undo(key("a")));
    wait(&mut world, 60);
    assert_eq!(rollout(&world, "a").status.current_pod_hash, before, "the old ReplicaSet");
    assert_eq!(told(&world, "a"), "Paused 0 0 % 3+0");
    open(&mut world, "a");
    wait(&mut world, 200);
    assert_eq!(told(&world, "a"), "Healthy 9 0 % 3");
    assert_eq!(rollout(&world, "a").status.stable_rs, before);
}

#[test]
fn an_undo_in_mid_canary_takes_the_role_label_along_and_starts_a_new_canary() {
    let mut world = ring_at_rest();
    in_mid_canary(&mut world, 20);
    let before = rollout(&world, "a").status;
    act(&mut world, Act::Undo(key("a")));
    wait(&mut world, 10);
    let after = rollout(&world, "a");
    assert_ne!(after.status.current_pod_hash, before.stable_rs);
    assert_ne!(after.status.current_pod_hash, before.current_pod_hash);
    assert_eq!(told(&world, "a"), "Paused 0 0 % 3+0");
    let labels = &after.spec.template["metadata"]["labels"];
    assert_eq!(labels["zone-rollout.io/role"], "stable");
    wait(&mut world, 60);
    assert!(pods(&world, "a", &before.current_pod_hash).is_empty(), "the canary in between goes");
}

#[test]
fn the_stable_template_in_mid_canary_ends_the_update_at_once() {
    let mut world = ring_at_rest();
    in_mid_canary(&mut world, 20);
    ask(&mut world, &["a"], "myapp:v1");
    wait(&mut world, 5);
    assert!(told(&world, "a").contains(" 9 0 % 3"), "{}", told(&world, "a"));
    wait(&mut world, 60);
    assert_eq!(told(&world, "a"), "Healthy 9 0 % 3");
}

#[test]
fn a_hold_before_the_image_freezes_scaling_and_a_gate_does_not() {
    let mut held = ring_at_rest();
    act(&mut held, Act::Pause(key("a"), true));
    ask(&mut held, &["a"], "myapp:v2");
    wait(&mut held, 10);
    act(&mut held, Act::Scale(key("a"), 5));
    wait(&mut held, 60);
    assert_eq!(told(&held, "a").split(' ').next_back(), Some("3+0"));
    act(&mut held, Act::Pause(key("a"), false));
    wait(&mut held, 60);
    assert_eq!(told(&held, "a"), "Paused 0 0 % 5+0");
    let mut gated = ring_at_rest();
    ask(&mut gated, &["a"], "myapp:v2");
    wait(&mut gated, 10);
    act(&mut gated, Act::Scale(key("a"), 5));
    wait(&mut gated, 10);
    assert_eq!(told(&gated, "a"), "Paused 0 0 % 5+0");
}

#[test]
fn a_promote_that_comes_twice_skips_a_step() {
    let mut world = ring_at_rest();
    ask(&mut world, &["a"], "myapp:v2");
    wait(&mut world, 5);
    open(&mut world, "a");
    wait(&mut world, 1);
    assert_eq!(rollout(&world, "a").step_index(), 1, "its pod is being started");
    open(&mut world, "a");
    wait(&mut world, 5);
    assert_eq!(rollout(&world, "a").step_index(), 2);
}
