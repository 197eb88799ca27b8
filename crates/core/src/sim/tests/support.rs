//! A world of three zones, and words for what is seen in it.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use crate::layout::{Spec, ring};
use crate::scene::{Key, Pod, Rollout};
use crate::sim::{Act, Face, World};
use crate::testing::spec;

pub(super) fn at() -> Timestamp {
    "2026-11-30T12:00:00Z".parse().unwrap()
}

pub(super) fn key(zone: &str) -> Key {
    Key::new("default", format!("test-{zone}"))
}

/// Three zones with a gate and pauses of 20 s.
pub(super) fn short_pauses() -> Spec {
    Spec { pause: "20s".to_owned(), ..spec() }
}

/// The ring, at rest on `myapp:v1`.
pub(super) fn ring_at_rest() -> World {
    at_rest(&ring(&short_pauses()))
}

/// The ring with stable and canary Services named in the Rollouts.
pub(super) fn ring_with_services() -> World {
    let mut manifests = ring(&short_pauses());
    for rollout in manifests.iter_mut().filter(|manifest| manifest["kind"] == "Rollout") {
        let canary = &mut rollout["spec"]["strategy"]["canary"];
        canary["stableService"] = "test-stable".into();
        canary["canaryService"] = "test-canary".into();
    }
    at_rest(&manifests)
}

pub(super) fn at_rest(manifests: &[Value]) -> World {
    let mut world = World::deploy(manifests, at(), 1).unwrap();
    wait(&mut world, 120);
    world
}

/// Zone a at this weight, in the pause after it.
pub(super) fn in_mid_canary(world: &mut World, weight: u32) {
    ask(world, &["a", "b", "c"], "myapp:v2");
    wait(world, 10);
    open(world, "a");
    for _ in 0..200 {
        world.wait(Duration::from_secs(1));
        let paused = !rollout(world, "a").status.pause_conditions.is_empty();
        if paused && told(world, "a").contains(&format!(" {weight} %")) {
            return;
        }
    }
    panic!("never at {weight} %: {}", told(world, "a"));
}

pub(super) fn wait(world: &mut World, seconds: u64) {
    world.wait(Duration::from_secs(seconds));
}

pub(super) fn rollout(world: &World, zone: &str) -> Rollout {
    (*world.rollout(&key(zone)).unwrap()).clone()
}

pub(super) fn pods(world: &World, zone: &str, hash: &str) -> Vec<Pod> {
    let scene = world.scene();
    let of_zone = scene.pods.iter().map(|(_, pod)| pod.clone());
    let name = format!("test-{zone}-");
    of_zone.filter(|pod| pod.meta.name.starts_with(&name) && pod.hash() == hash).collect()
}

/// Phase, step, weight in force, Ready pods of the stable and of the new version:
/// `Paused 2 10 % 3+1`.
pub(super) fn told(world: &World, zone: &str) -> String {
    let rollout = rollout(world, zone);
    let weight = crate::traffic::weight_in_force(&world.scene(), &rollout)
        .map_or_else(|gap| gap.to_string(), |weight| format!("{} %", weight.highest));
    let ready = |hash: &str| pods(world, zone, hash).iter().filter(|pod| pod.is_ready()).count();
    let status = &rollout.status;
    let mut pods = ready(&status.stable_rs).to_string();
    if status.stable_rs != status.current_pod_hash {
        pods = format!("{pods}+{}", ready(&status.current_pod_hash));
    }
    format!("{} {} {weight} {pods}", status.phase, rollout.step_index())
}

pub(super) fn act(world: &mut World, act: Act) {
    world.act(act).unwrap();
}

/// A new image in these zones.
pub(super) fn ask(world: &mut World, zones: &[&str], image: &str) {
    for zone in zones {
        act(world, Act::SetImage(key(zone), image.to_owned()));
    }
}

/// Opens the pause that a zone waits in, as upstream does.
pub(super) fn open(world: &mut World, zone: &str) {
    act(world, Act::Promote(key(zone)));
}

/// Takes the readiness of this many stable pods of zone a, or gives it back.
pub(super) fn ready(world: &mut World, count: usize, ready: bool) {
    let stable = rollout(world, "a").status.stable_rs;
    for pod in pods(world, "a", &stable).into_iter().take(count) {
        act(world, Act::Ready(pod.meta.key(), ready));
    }
}

/// Steps and weights that a zone has gone through since then, in order: `0 1 10% 2`.
pub(super) fn passage(world: &World, zone: &str, since: usize) -> String {
    let name = format!("zone-{zone}-route");
    let mut told: Vec<String> = Vec::new();
    for change in &world.history()[since..] {
        let text = match &change.face {
            Face::Rollout { step: Some(step), .. } if change.object == key(zone) => {
                step.to_string()
            }
            Face::Route(routes) => {
                let route = routes.iter().find(|(route, _)| *route == name);
                format!("{}%", route.map_or(0, |(_, weights)| weights[1]))
            }
            _ => continue,
        };
        let last = told.iter().rev().find(|word| word.ends_with('%') == text.ends_with('%'));
        if last != Some(&text) {
            told.push(text);
        }
    }
    told.join(" ")
}
