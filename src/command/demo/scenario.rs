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
    /// Seconds that pass there in one second here.
    pub(super) speed: u32,
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
        speed: 200,
        scene: "All zones were given myapp:v2. Each waits at its gate, the first step `pause: {}`.",
        commands: &["status", "promote --sequential --yes"],
        lesson: "Each zone was opened only after the ones before it had been promoted, checked and \
                 watched.",
    }
}

fn bad_release(spec: &Spec) -> Scenario {
    Scenario {
        faults: vec![Act::Image(NEW.to_owned(), ImageFate::Crashes)],
        speed: 10,
        scene: "All zones were given myapp:v2, which crashes as soon as it was started.",
        commands: &["promote --sequential --yes --on-failure abort-zone", "status"],
        lesson: "The first zone alone met the bad version. Its traffic is back on the old one, and \
                 the other zones never left their gates.",
        ..healthy(spec)
    }
}

fn zone_outage(spec: &Spec) -> Scenario {
    Scenario {
        cues: vec![Cue {
            when: |world| is_a_minute_into(world, 50),
            acts: |_| vec![Act::Nodes { zone: "us-east-1a".to_owned(), up: false }],
            said: "the nodes of zone a stop reporting",
        }],
        speed: 50,
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
            when: |world| is_a_minute_into(world, 10),
            acts: lose_an_old_pod,
            said: "an old pod of zone a is not Ready any more, and its new pod crashes",
        }],
        speed: 20,
        scene: "All zones were given myapp:v2. At 10 %, zone a is going to lose an old and a new pod.",
        commands: &["promote --sequential --yes --on-failure abort-zone", "status"],
        lesson: "An abort says Degraded at once, and with an old pod missing it leaves the traffic \
                 on the version that was given up. It was seen in the VirtualService, and the route \
                 was put right.",
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

const ZONE_A: &str = "test-a";

/// True once zone a has been in the pause at this weight for a minute.
fn is_a_minute_into(world: &World, weight: u32) -> bool {
    let scene = world.scene();
    let rollout = scene.rollouts.get(&Key::new("default", ZONE_A));
    rollout.is_some_and(|rollout| {
        let in_force = weight_in_force(&scene, rollout).map_or(0, |in_force| in_force.highest);
        let paused = rollout.status.pause_conditions.first().and_then(|pause| pause.start_time);
        let waited = paused.map_or(Duration::ZERO, |since| world.now().since(since));
        in_force == weight && waited >= Duration::from_mins(1)
    })
}

/// One of the old pods of zone a loses its readiness, and the new one is replaced by one that crashes.
fn lose_an_old_pod(world: &World) -> Vec<Act> {
    let scene = world.scene();
    let Some(rollout) = scene.rollouts.get(&Key::new("default", ZONE_A)) else { return Vec::new() };
    let pod = |hash: &str| {
        let mut pods = scene.pods.iter();
        let found = pods.find(|(key, pod)| key.name.starts_with(ZONE_A) && pod.hash() == hash);
        found.map(|(key, _)| key.clone())
    };
    let old = pod(&rollout.status.stable_rs).map(|old| Act::Ready(old, false));
    let crashes = Act::Image(NEW.to_owned(), ImageFate::Crashes);
    let new = pod(&rollout.status.current_pod_hash).map(Act::DeletePod);
    old.into_iter().chain([crashes]).chain(new).collect()
}
