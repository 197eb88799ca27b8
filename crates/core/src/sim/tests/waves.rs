//! Ordinary releases, and layouts that order nothing.

use super::support::*;
use crate::layout::{Spec, ring};
use crate::scene::Key;
use crate::sim::{Act, By, Face, ImageFate, Verdict, World, shared_rule};

#[test]
fn a_first_deployment_ends_healthy() {
    let world = ring_at_rest();
    for zone in ["a", "b", "c"] {
        assert_eq!(told(&world, zone), "Healthy 9 0 % 3");
    }
}

#[test]
fn a_shared_rule_ends_up_empty_and_every_rollout_healthy() {
    let world = at_rest(&shared_rule(&short_pauses()));
    for zone in ["a", "b", "c"] {
        assert_eq!(told(&world, zone), "Healthy 9 0 % 3");
    }
    let scene = world.scene();
    assert!(scene.rules.get(&Key::new("default", "test")).unwrap().spec.subsets.is_empty());
}

#[test]
fn zones_with_timed_pauses_alone_advance_side_by_side() {
    let mut world = at_rest(&ring(&Spec { gate: false, ..short_pauses() }));
    ask(&mut world, &["a", "b", "c"], "myapp:v2");
    wait(&mut world, 30);
    for zone in ["a", "b", "c"] {
        assert_eq!(told(&world, zone), "Paused 3 20 % 3+1");
    }
    wait(&mut world, 200);
    for zone in ["a", "b", "c"] {
        assert_eq!(told(&world, zone), "Healthy 8 0 % 3");
    }
}

#[test]
fn a_gated_zone_waits_with_no_pod_and_opening_one_moves_that_one_alone() {
    let mut world = ring_at_rest();
    ask(&mut world, &["a", "b", "c"], "myapp:v2");
    wait(&mut world, 300);
    for zone in ["a", "b", "c"] {
        assert_eq!(told(&world, zone), "Paused 0 0 % 3+0");
    }
    let since = world.history().len();
    open(&mut world, "b");
    wait(&mut world, 300);
    assert_eq!(told(&world, "a"), "Paused 0 0 % 3+0");
    assert_eq!(told(&world, "b"), "Healthy 9 0 % 3");
    assert_eq!(passage(&world, "b", since), "0 1 10% 2 3 20% 4 5 50% 6 7 80% 8 9 100% 0%");
}

#[test]
fn pods_carry_their_role_and_change_it_at_promotion() {
    let mut world = ring_at_rest();
    in_mid_canary(&mut world, 20);
    let roles = |world: &World, hash: &str| -> Vec<String> {
        let pods = pods(world, "a", hash);
        let role = |pod: &crate::scene::Pod| pod.meta.labels.get("zone-rollout.io/role").cloned();
        pods.iter().map(|pod| role(pod).unwrap_or_default()).collect()
    };
    let status = rollout(&world, "a").status;
    let (old, new) = (status.stable_rs, status.current_pod_hash);
    assert_eq!(
        (roles(&world, &old), roles(&world, &new)),
        (vec!["stable".to_owned(); 3], vec!["canary".to_owned()])
    );
    while rollout(&world, "a").status.stable_rs != new {
        world.wait(std::time::Duration::from_millis(100));
    }
    wait(&mut world, 1);
    assert_eq!(
        (roles(&world, &old), roles(&world, &new)),
        (vec![String::new(); 3], vec!["stable".to_owned(); 3])
    );
    wait(&mut world, 60);
    assert!(pods(&world, "a", &old).is_empty(), "the old pods go after a while");
}

#[test]
fn a_lost_race_for_the_shared_route_is_made_up_for() {
    let mut world = at_rest(&ring(&Spec { gate: false, ..short_pauses() }));
    for version in 2..6 {
        ask(&mut world, &["a", "b", "c"], &format!("myapp:v{version}"));
        wait(&mut world, 300);
        for zone in ["a", "b", "c"] {
            assert_eq!(told(&world, zone), "Healthy 8 0 % 3");
        }
    }
    assert!(world.conflicts() > 0, "no race was lost");
}

#[test]
fn a_canary_that_cannot_start_takes_no_traffic_and_runs_into_its_deadline_with_services() {
    let mut world = ring_with_services();
    act(&mut world, Act::Image("myapp:v2".to_owned(), ImageFate::Missing));
    ask(&mut world, &["a"], "myapp:v2");
    wait(&mut world, 5);
    open(&mut world, "a");
    wait(&mut world, 590);
    assert_eq!(told(&world, "a"), "Progressing 1 0 % 3+0");
    wait(&mut world, 30);
    assert_eq!(told(&world, "a"), "Degraded 1 0 % 3+0");
    assert!(rollout(&world, "a").status.message.starts_with("ProgressDeadlineExceeded: "));
}

#[test]
fn analyses_end_a_step_abort_or_wait_for_a_person() {
    let with_analysis = || {
        let mut manifests = ring(&short_pauses());
        for rollout in manifests.iter_mut().filter(|manifest| manifest["kind"] == "Rollout") {
            let steps = &mut rollout["spec"]["strategy"]["canary"]["steps"];
            steps[2] = serde_json::json!({"analysis": {"templates": [{"templateName": "x"}]}});
        }
        let mut world = at_rest(&manifests);
        ask(&mut world, &["a"], "myapp:v2");
        wait(&mut world, 5);
        open(&mut world, "a");
        world
    };
    let mut good = with_analysis();
    wait(&mut good, 20);
    assert_eq!(told(&good, "a"), "Paused 4 20 % 3+1");
    let mut bad = with_analysis();
    act(&mut bad, Act::Judge(key("a"), Verdict::Failed));
    wait(&mut bad, 20);
    assert_eq!(told(&bad, "a"), "Degraded 0 0 % 3+1");
    assert!(rollout(&bad, "a").status.message.contains("Step-based analysis phase error/failed"));
    let mut unclear = with_analysis();
    act(&mut unclear, Act::Judge(key("a"), Verdict::Inconclusive));
    wait(&mut unclear, 60);
    assert_eq!(told(&unclear, "a"), "Paused 2 10 % 3+1");
    assert_eq!(rollout(&unclear, "a").status.message, "InconclusiveAnalysisRun");
    open(&mut unclear, "a");
    wait(&mut unclear, 10);
    assert_eq!(told(&unclear, "a"), "Paused 4 20 % 3+1");
}

#[test]
fn the_same_seed_gives_the_same_history() {
    let play = |seed| {
        let mut world = World::deploy(&ring(&short_pauses()), at(), seed).unwrap();
        wait(&mut world, 60);
        in_mid_canary(&mut world, 20);
        world.history().to_vec()
    };
    assert_eq!(play(7), play(7));
    assert_ne!(play(7), play(8));
    let by_controller = |change: &&crate::sim::Change| {
        change.by == By::Controller && matches!(change.face, Face::Rollout { .. })
    };
    assert!(play(7).iter().filter(by_controller).count() > 10);
}
