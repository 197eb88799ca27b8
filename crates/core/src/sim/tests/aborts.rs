//! Aborts, and what keeps them from taking effect.

use super::support::*;
use crate::sim::{Act, ImageFate, World};

fn abort(world: &mut World) {
    act(world, Act::Abort(key("a")));
}

#[test]
fn an_abort_takes_traffic_off_and_the_canary_pods_go_after_half_a_minute() {
    let mut world = ring_at_rest();
    in_mid_canary(&mut world, 20);
    abort(&mut world);
    wait(&mut world, 2);
    assert_eq!(told(&world, "a"), "Degraded 0 0 % 3+1");
    wait(&mut world, 25);
    assert_eq!(told(&world, "a"), "Degraded 0 0 % 3+1");
    wait(&mut world, 10);
    assert_eq!(told(&world, "a"), "Degraded 0 0 % 3+0");
    act(&mut world, Act::Retry(key("a")));
    wait(&mut world, 10);
    assert_eq!(told(&world, "a"), "Paused 0 0 % 3+0", "a retry begins at the gate");
}

#[test]
fn an_abort_leaves_traffic_on_the_canary_while_a_stable_pod_is_missing() {
    for mut world in [ring_at_rest(), ring_with_services()] {
        in_mid_canary(&mut world, 20);
        ready(&mut world, 1, false);
        abort(&mut world);
        wait(&mut world, 120);
        assert_eq!(told(&world, "a"), "Degraded 0 20 % 2+1");
        ready(&mut world, 3, true);
        wait(&mut world, 2);
        assert_eq!(told(&world, "a"), "Degraded 0 0 % 3+1");
    }
}

#[test]
fn an_abort_of_a_finished_zone_does_nothing() {
    let mut world = ring_at_rest();
    abort(&mut world);
    wait(&mut world, 5);
    assert_eq!(told(&world, "a"), "Healthy 9 0 % 3");
    assert!(!rollout(&world, "a").status.abort);
}

#[test]
fn an_abort_is_swallowed_by_a_full_promotion() {
    let mut world = ring_with_services();
    act(&mut world, Act::Image("myapp:v2".to_owned(), ImageFate::Missing));
    ask(&mut world, &["a"], "myapp:v2");
    wait(&mut world, 5);
    act(&mut world, Act::PromoteFull(key("a")));
    wait(&mut world, 10);
    abort(&mut world);
    wait(&mut world, 10);
    let status = rollout(&world, "a").status;
    assert!(status.promote_full && !status.abort);
    super::writes::abort(&mut world, "a");
    wait(&mut world, 10);
    assert_eq!(told(&world, "a"), "Degraded 0 0 % 3+0");
    assert!(rollout(&world, "a").status.abort);
}

#[test]
fn a_full_promotion_skips_the_steps() {
    let mut world = ring_at_rest();
    in_mid_canary(&mut world, 10);
    let since = world.history().len();
    act(&mut world, Act::PromoteFull(key("a")));
    wait(&mut world, 30);
    assert_eq!(told(&world, "a"), "Healthy 9 0 % 3");
    assert_eq!(passage(&world, "a", since), "9 0%");
}
