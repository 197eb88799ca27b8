//! What holds for the machine whatever it is shown, in whatever order.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::group::find_groups;
use crate::layout::ring;
use crate::scene::Scene;
use crate::testing::{
    canary, now, object, promoted, running, scene_of, set_weight, settings, spec,
};
use crate::write::Written;

/// What a zone may look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Face {
    OldVersion,
    AtGate,
    AtGateShort,
    Resuming,
    Midway,
    MidwayLost,
    Promoted,
    PromotedShort,
    Aborted,
    Full,
    Held,
    Parked,
    NextVersion,
}

const FACES: [Face; 13] = [
    Face::OldVersion,
    Face::AtGate,
    Face::AtGateShort,
    Face::Resuming,
    Face::Midway,
    Face::MidwayLost,
    Face::Promoted,
    Face::PromotedShort,
    Face::Aborted,
    Face::Full,
    Face::Held,
    Face::Parked,
    Face::NextVersion,
];

impl Face {
    fn put(self, objects: &mut Vec<Value>, zone: &str) {
        let name = format!("test-{zone}");
        match self {
            Self::OldVersion => return,
            Self::Midway | Self::MidwayLost | Self::Aborted | Self::Full => {
                canary(objects, zone, 20, 1);
            }
            Self::Promoted | Self::PromotedShort => {
                canary(objects, zone, 80, 3);
                promoted(objects, zone);
            }
            _ => canary(objects, zone, 0, 0),
        }
        let status = &mut object(objects, "Rollout", &name)["status"];
        match self {
            Self::Resuming => status["pauseConditions"] = json!([]),
            Self::Aborted => {
                status["abort"] = json!(true);
                status["abortedAt"] = json!("2026-11-30T12:00:00Z");
                set_weight(objects, zone, 0);
            }
            Self::Full => status["promoteFull"] = json!(true),
            Self::Held => object(objects, "Rollout", &name)["spec"]["paused"] = json!(true),
            Self::Parked => object(objects, "Rollout", &name)["spec"]["replicas"] = json!(0),
            Self::NextVersion => status["currentPodHash"] = json!("v3"),
            Self::AtGateShort => unready(objects, zone, "v1", 1),
            Self::MidwayLost => unready(objects, zone, "v1", 3),
            Self::PromotedShort => unready(objects, zone, "v2", 1),
            _ => {}
        }
    }

    /// Whether a zone that looks like this allows another one to be started.
    fn allows_others(self) -> bool {
        matches!(self, Self::OldVersion | Self::AtGate | Self::Promoted)
    }
}

fn unready(objects: &mut [Value], zone: &str, hash: &str, pods: usize) {
    for pod in 0..pods {
        let pod = object(objects, "Pod", &format!("test-{zone}-{hash}-{pod}"));
        pod["status"]["conditions"] = json!([{"type": "Ready", "status": "False"}]);
    }
}

fn scene(faces: [Face; 3]) -> Arc<Scene> {
    let mut objects = running(ring(&spec()));
    for (face, zone) in faces.into_iter().zip(["a", "b", "c"]) {
        face.put(&mut objects, zone);
    }
    Arc::new(scene_of(&objects))
}

fn run() -> Run {
    let at_gates = scene([Face::AtGate; 3]);
    let group = find_groups(&at_gates).remove(0);
    let goal = Goal::in_flight(&at_gates, &group).unwrap();
    let settings = Settings {
        soak: Duration::from_secs(4),
        first_soak: Duration::from_secs(4),
        pauses: Pauses::Open,
        on_failure: OnFailure::AbortZone,
        ..settings()
    };
    Run::new(settings, group, goal, now())
}

/// What happens next to the machine.
#[derive(Debug, Clone)]
enum Turn {
    Show([Face; 3]),
    Confirm([Face; 3]),
    Answer(Written),
    Wait(u64),
    Stop,
}

fn turns() -> impl Strategy<Value = Vec<Turn>> {
    let face = || prop_oneof![4 => Just(Face::AtGate), 4 => Just(Face::Promoted), 5 => prop::sample::select(&FACES[..])];
    let faces = || [face(), face(), face()];
    let written = prop_oneof![
        Just(Written::Landed { resource_version: "2".to_owned() }),
        Just(Written::Unknown("lost".to_owned())),
        Just(Written::NotSent("refused".to_owned())),
        Just(Written::Refused(crate::write::Drift::new("changed"))),
    ];
    let turn = prop_oneof![
        5 => faces().prop_map(Turn::Show),
        5 => faces().prop_map(Turn::Confirm),
        4 => written.prop_map(Turn::Answer),
        3 => (1..8_u64).prop_map(Turn::Wait),
        1 => Just(Turn::Stop),
    ];
    prop::collection::vec(turn, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn a_gate_is_opened_only_while_the_reading_allows_it(turns in turns()) {
        let mut run = run();
        let mut at = now();
        let (mut asked, mut sent, mut stopped) = (false, false, false);
        for turn in turns {
            let (input, reading) = match turn {
                Turn::Show(faces) => (Input::Seen { scene: scene(faces), unwatched: None }, None),
                // The driver reads and answers only when it was asked to.
                Turn::Confirm(faces) if asked => (Input::Confirmed(scene(faces)), Some(faces)),
                Turn::Answer(written) if sent => (Input::Written(written), None),
                Turn::Wait(seconds) => {
                    at = at.after(Duration::from_secs(seconds));
                    (Input::Tick, None)
                }
                Turn::Stop => (Input::Stop(StopLevel::AfterRequest), None),
                Turn::Confirm(_) | Turn::Answer(_) => continue,
            };
            stopped |= matches!(input, Input::Stop(_));
            if matches!(input, Input::Confirmed(_)) {
                asked = false;
            }
            if matches!(input, Input::Written(_)) {
                sent = false;
            }
            let step = step(&mut run, input, at);
            prop_assert!(!(step.confirm && step.write.is_some()));
            asked |= step.confirm;
            if let Some(write) = &step.write {
                prop_assert!(!stopped, "written after the run was stopped");
                prop_assert!(!sent, "written while a write was under way");
                sent = true;
                let faces = reading.expect("a write follows a fresh reading");
                let patch = write.patch();
                let ops = patch.as_array().unwrap();
                prop_assert!(ops.iter().any(|op| op["op"] == "test"), "unguarded: {patch}");
                let opens = ops.iter().any(|op| op["path"] == "/status/pauseConditions");
                if opens && write.key.name.starts_with("test-") {
                    let zone = ["test-a", "test-b", "test-c"]
                        .iter()
                        .position(|name| *name == write.key.name)
                        .unwrap();
                    prop_assert_eq!(faces[zone], Face::AtGate, "zone {} was not at its gate", zone);
                    for (other, face) in faces.into_iter().enumerate() {
                        prop_assert!(
                            other == zone || face.allows_others(),
                            "zone {} was started beside {:?}", zone, face
                        );
                    }
                }
            }
            if step.end.is_some() {
                break;
            }
        }
    }
}
