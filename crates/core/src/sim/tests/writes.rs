//! Writes of the tool, and their guards.

use super::support::*;
use crate::group::{ZoneId, find_groups};
use crate::sim::{Fault, World};
use crate::write::{Action, Written, compile};

fn zone(short: &str) -> ZoneId {
    ZoneId(short.to_owned())
}

fn write(world: &mut World, action: &Action) -> Written {
    let scene = world.scene();
    let group = find_groups(&scene).remove(0);
    world.apply(&compile(action, &scene, &group).unwrap())
}

pub(super) fn abort(world: &mut World, short: &str) {
    let written = write(world, &Action::Abort { zone: zone(short) });
    assert!(matches!(written, Written::Landed { .. }), "{written:?}");
}

pub(super) fn traffic_to_stable(world: &mut World, short: &str) {
    let written = write(world, &Action::TrafficToStable { zone: zone(short) });
    assert!(matches!(written, Written::Landed { .. }), "{written:?}");
}

#[test]
fn a_gate_opens_once_and_a_second_patch_is_refused() {
    let mut world = ring_at_rest();
    ask(&mut world, &["a"], "myapp:v2");
    wait(&mut world, 5);
    let scene = world.scene();
    let group = find_groups(&scene).remove(0);
    let open = compile(&Action::Continue { zone: zone("a"), step: 0 }, &scene, &group).unwrap();
    assert!(matches!(world.apply(&open), Written::Landed { .. }));
    assert!(matches!(world.apply(&open), Written::Refused(_)));
    wait(&mut world, 5);
    assert!(matches!(world.apply(&open), Written::Refused(_)), "another step, another pause");
    assert_eq!(told(&world, "a"), "Paused 2 10 % 3+1");
}

#[test]
fn traffic_that_an_abort_left_is_taken_off_and_stays_off() {
    let mut world = ring_at_rest();
    in_mid_canary(&mut world, 20);
    ready(&mut world, 1, false);
    abort(&mut world, "a");
    wait(&mut world, 10);
    assert_eq!(told(&world, "a"), "Degraded 0 20 % 2+1");
    traffic_to_stable(&mut world, "a");
    wait(&mut world, 60);
    assert_eq!(told(&world, "a"), "Degraded 0 0 % 2+1");
    ready(&mut world, 3, true);
    wait(&mut world, 5);
    assert_eq!(told(&world, "a"), "Degraded 0 0 % 3+1");
}

#[test]
fn a_write_may_be_lost_on_either_way() {
    let mut world = ring_at_rest();
    in_mid_canary(&mut world, 20);
    let aborted = |world: &World| rollout(world, "a").status.abort;
    let action = Action::Abort { zone: zone("a") };
    for (fault, lands) in [
        (Fault::NotSent, false),
        (Fault::Conflict, false),
        (Fault::Denied, false),
        (Fault::Invalid, false),
        (Fault::Lost, false),
        (Fault::AnswerLost, true),
    ] {
        world.fail_next_write(fault.clone());
        let written = write(&mut world, &action);
        assert!(!matches!(written, Written::Landed { .. }), "{fault:?}");
        assert_eq!(aborted(&world), lands, "{fault:?}");
    }
}
