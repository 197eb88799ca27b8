//! What the demo shows: for each scenario a layout, what goes wrong, what is typed, and the lesson.

use std::time::Duration;

use serde_json::Value;
use zone_rollout_core::layout::{Spec, SpecZone, ring};
use zone_rollout_core::scene::Key;
use zone_rollout_core::sim::{Act, ImageFate, World, shared_rule};
use zone_rollout_core::traffic::weight_in_force;

use crate::cli::DemoScenario;
use crate::cluster::Cue;

/// The image that is released.
pub(super) const NEW: &str = "myapp:v2";

/// One scenario.
pub(super) struct Scenario {
    pub(super) manifests: Vec<Value>,
    /// Done before the new image is asked for.
    pub(super) faults: Vec<Act>,
    /// How long the image has been asked for when the first command is typed.
    pub(super) head_start: Duration,
    pub(super) cues: Vec<Cue>,
    /// What has happened so far.
    pub(super) scene: &'static str,
    pub(super) commands: &'static [&'static str],
    /// What was seen.
    pub(super) lesson: &'static str,
}

/// A scenario in this many zones.
pub(super) fn of(scenario: DemoScenario, zones: u8) -> Scenario {
    let spec = spec(zones);
    match scenario {
        DemoScenario::Healthy => healthy(&spec),
        DemoScenario::BadRelease => bad_release(&spec),
        DemoScenario::ZoneOutage => zone_outage(&spec),
        DemoScenario::StableShort => stable_short(&spec),
        DemoScenario::SelfAdvancing => self_advancing(&spec),
        DemoScenario::SharedRule => shared(&spec),
    }
}

fn healthy(spec: &Spec) -> Scenario {
    Scenario {
        manifests: ring(spec),
        faults: Vec::new(),
        head_start: Duration::from_mins(1),
        cues: Vec::new(),
        scene: "All zones were given myapp:v2. Each waits at its gate, the first step `pause: {}`.",
        commands: &["status", "promote --sequential --yes"],
        lesson: "Each zone was opened only after the ones before it had been promoted, checked and \
                 watched.",
    }
}

fn bad_release(spec: &Spec) -> Scenario {
    Scenario {
        faults: vec![Act::Image(NEW.to_owned(), ImageFate::EndsAfter(Duration::from_mins(7)))],
        scene: "All zones were given myapp:v2, which crashes after seven minutes.",
        commands: &["promote --sequential --yes --on-failure abort-zone", "status"],
        lesson: "The first zone alone met the bad version. Its traffic is back on the old one, and \
                 the other zones never left their gates.",
        ..healthy(spec)
    }
}

fn zone_outage(spec: &Spec) -> Scenario {
    Scenario {
        cues: vec![Cue {
            when: |world| weight(world) >= 50,
            acts: |_| vec![Act::Nodes { zone: "us-east-1a".to_owned(), up: false }],
            said: "the nodes of zone a stop reporting",
        }],
        scene: "All zones were given myapp:v2. Zone a is going to be lost while it is at 50 %.",
        commands: &["promote --sequential --yes --on-failure abort-zone", "status"],
        lesson: "The Rollouts controller would have gone on through the steps and promoted a lost \
                 zone. It was held at once, and given up when the next zone could carry its traffic.",
        ..healthy(spec)
    }
}

fn stable_short(spec: &Spec) -> Scenario {
    Scenario {
        cues: vec![Cue {
            when: |world| weight(world) >= 10,
            acts: |world| stable_pod(world).map(|pod| Act::Ready(pod, false)).into_iter().collect(),
            said: "one of the old pods of zone a is not Ready any more",
        }],
        scene: "All zones were given myapp:v2. Zone a is going to lose one of its old pods at 10 %.",
        commands: &["promote --sequential --yes --on-failure abort-zone", "status"],
        lesson: "With an old pod missing, the controller walks through its steps without moving \
                 traffic, and leaves traffic on a canary that was aborted. Both were seen in the \
                 VirtualService, and the route was put right.",
        ..healthy(spec)
    }
}

fn self_advancing(spec: &Spec) -> Scenario {
    Scenario {
        manifests: ring(&Spec { gate: false, ..spec.clone() }),
        scene: "All zones were given myapp:v2. Their steps have timed pauses and no gate.",
        commands: &["status", "promote --sequential --yes"],
        lesson: "Timed pauses alone order nothing: all zones move side by side, whether anybody \
                 promotes them or not. A first step `pause: {}` makes each wait for its turn.",
        ..healthy(spec)
    }
}

fn shared(spec: &Spec) -> Scenario {
    Scenario {
        manifests: shared_rule(spec),
        scene: "All zones were given myapp:v2. Their Rollouts share one DestinationRule.",
        commands: &["promote --sequential --yes"],
        lesson: "Each Rollout erases the subsets of the others, so that clients get 503, and every \
                 Rollout says Healthy. Each needs a DestinationRule of its own.",
        ..healthy(spec)
    }
}

fn spec(zones: u8) -> Spec {
    let zone = |letter: char| SpecZone {
        short: letter.to_string(),
        topology: format!("us-east-1{letter}"),
    };
    Spec {
        name: "test".to_owned(),
        namespace: "default".to_owned(),
        image: "myapp:v1".to_owned(),
        zones: ('a'..='z').take(zones.into()).map(zone).collect(),
        replicas: 3,
        port: 8080,
        target_port: 8080,
        gate: true,
        weights: vec![10, 50],
        pause: "5m".to_owned(),
        progress_deadline_seconds: 600,
        istio_api_version: "v1".to_owned(),
    }
}

/// Weight of the canary in zone a, in percent.
fn weight(world: &World) -> u32 {
    let scene = world.scene();
    let rollout = scene.rollouts.get(&Key::new("default", "test-a"));
    rollout
        .and_then(|rollout| weight_in_force(&scene, rollout).ok())
        .map_or(0, |weight| weight.highest)
}

/// An old pod of zone a.
fn stable_pod(world: &World) -> Option<Key> {
    let scene = world.scene();
    let stable = &scene.rollouts.get(&Key::new("default", "test-a"))?.status.stable_rs;
    let mut pods = scene.pods.iter();
    pods.find(|(key, pod)| key.name.starts_with("test-a-") && pod.hash() == stable)
        .map(|(key, _)| key.clone())
}
