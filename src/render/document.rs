//! Machine-readable documents. Their shape is a contract: fields are added, never changed.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};
use zone_rollout_core::group::Group;
use zone_rollout_core::promote::{Event, Outcome, Question, Run, SoakChange};
use zone_rollout_core::time::Moment;
use zone_rollout_core::write::Written;

use super::view::{GroupView, VersionView, ZoneView};
use super::words::ending::Ending;
use super::words::recalled::Told;
use super::words::{self, Flags};
use crate::exit::Exit;

/// `apiVersion` of all documents.
pub const API_VERSION: &str = "zone-rollout.io/v1alpha1";

/// What `status -o json` prints.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusDocument {
    api_version: &'static str,
    kind: &'static str,
    /// When it was seen.
    observed_at: Timestamp,
    namespace: String,
    group: String,
    zones: Vec<ZoneDocument>,
    /// Kinds that could not be read.
    not_seen: Vec<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ZoneDocument {
    zone: String,
    topology: Option<String>,
    rollout: String,
    /// One of a closed list.
    state: &'static str,
    state_in_words: String,
    step: usize,
    steps: usize,
    step_label: Option<String>,
    weight: WeightDocument,
    replicas: u32,
    stable: Option<VersionDocument>,
    canary: Option<VersionDocument>,
    since: Option<Timestamp>,
    awaited: Option<String>,
    next_command: Option<String>,
    trouble: Option<String>,
    outage: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct WeightDocument {
    /// In percent.
    wanted: u32,
    /// In percent, by the VirtualServices; null if it cannot be told.
    in_force: Option<u32>,
    /// Why it cannot be told.
    unknown_because: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct VersionDocument {
    version: String,
    images: Vec<ImageDocument>,
    pod_template_hash: String,
    pods: u32,
    ready_pods: u32,
}

#[derive(Debug, Serialize)]
struct ImageDocument {
    container: String,
    image: String,
}

/// The document of a group.
pub fn status(view: &GroupView, flags: &Flags) -> StatusDocument {
    StatusDocument {
        api_version: API_VERSION,
        kind: "GroupStatus",
        observed_at: view.at.wall,
        namespace: view.group.namespace.clone(),
        group: view.group.name.clone(),
        zones: view.zones.iter().map(|zone| zone_document(view, zone, flags)).collect(),
        not_seen: view.gaps.clone(),
    }
}

fn zone_document(view: &GroupView, zone: &ZoneView, flags: &Flags) -> ZoneDocument {
    let advice = words::advice(view, zone, flags);
    ZoneDocument {
        zone: zone.zone.id.to_string(),
        topology: zone.zone.topology.clone(),
        rollout: zone.zone.rollout.name.clone(),
        state: zone.state.name(),
        state_in_words: words::state(zone, view.at),
        step: zone.step,
        steps: zone.steps,
        step_label: zone.label.clone(),
        weight: WeightDocument {
            wanted: zone.wanted,
            in_force: zone.in_force.as_ref().ok().map(|in_force| in_force.highest),
            unknown_because: zone.in_force.as_ref().err().map(ToString::to_string),
        },
        replicas: zone.replicas,
        stable: zone.stable.as_ref().map(version_document),
        canary: zone.canary.as_ref().map(version_document),
        since: zone.since,
        awaited: advice.as_ref().map(|advice| advice.awaited.clone()),
        next_command: advice.and_then(|advice| advice.command),
        trouble: zone.trouble.as_ref().map(ToString::to_string),
        outage: zone.outage.as_ref().map(ToString::to_string),
    }
}

fn version_document(version: &VersionView) -> VersionDocument {
    VersionDocument {
        version: version.version.clone(),
        images: version
            .images
            .iter()
            .map(|(container, image)| ImageDocument {
                container: container.clone(),
                image: image.clone(),
            })
            .collect(),
        pod_template_hash: version.hash.clone(),
        pods: version.pods,
        ready_pods: version.ready,
    }
}

/// One line of `promote -o events`.
pub fn event_document(run: &Run, event: &Event, text: Option<&str>, now: Moment) -> Value {
    let mut document = match event {
        Event::Zone(glimpse) => json!({
            "type": "Zone",
            "zone": glimpse.zone,
            "state": glimpse.state.name(),
            "step": glimpse.step,
            "steps": glimpse.steps,
            "stepLabel": glimpse.label,
            "weight": {"wanted": glimpse.wanted, "inForce": glimpse.in_force},
            "readyPods": {"stable": glimpse.stable_ready, "canary": glimpse.canary_ready},
        }),
        Event::Wrote { action, written } => json!({
            "type": "Wrote",
            "zone": action.zone(),
            "action": action.name(),
            "result": written_name(written),
        }),
        Event::Soak { zone, change } => json!({
            "type": "Soak",
            "zone": zone,
            "change": match change {
                SoakChange::Counting => "Counting",
                SoakChange::Halted(_) => "Halted",
                SoakChange::Broken(_) => "Broken",
                SoakChange::Over => "Over",
            },
            "requiredSeconds": run.soak_of(zone).as_secs(),
        }),
        Event::Waiting(awaited) => json!({
            "type": "Waiting",
            "awaited": awaited
                .iter()
                .map(|awaited| words::happening::awaited(run, awaited, now))
                .collect::<Vec<_>>(),
        }),
        Event::NotRead(why) => json!({"type": "NotRead", "why": why}),
        Event::Ended(_) => json!({"type": "Ended"}),
    };
    document["time"] = json!(now.wall);
    document["text"] = json!(text);
    document
}

fn written_name(written: &Written) -> &'static str {
    match written {
        Written::Landed { .. } => "Landed",
        Written::Refused(_) => "Refused",
        Written::Invalid(_) => "Invalid",
        Written::Denied(_) => "Denied",
        Written::NotSent(_) => "NotSent",
        Written::Unknown(_) => "Unknown",
    }
}

/// That a person is asked, for the notify command.
pub fn question(run: &Run, question: &Question) -> Value {
    let Question::Continue { zone, step } = question;
    json!({
        "apiVersion": API_VERSION,
        "kind": "PromotionWaiting",
        "run": run.settings().run,
        "namespace": run.group().namespace,
        "group": run.group().name,
        "zone": zone,
        "step": step,
        "text": format!("zone {zone} waits for a person at step {step}"),
    })
}

/// How a promotion ended: the last line of `-o events`, and all of `-o json`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResultDocument {
    api_version: &'static str,
    kind: &'static str,
    time: Timestamp,
    /// One of a closed list.
    outcome: &'static str,
    exit_code: u8,
    text: String,
    next_commands: Vec<String>,
    /// Whether this invocation has written anything.
    wrote: bool,
    zones: Vec<ZoneTimes>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ZoneTimes {
    zone: String,
    started_at: Option<Timestamp>,
    promoted_at: Option<Timestamp>,
    verified_at: Option<Timestamp>,
    soak_restarts: u32,
}

/// The document of an outcome. Without a run, nothing was begun.
pub fn result(
    run: Option<&Run>,
    outcome: &Outcome,
    ending: &Ending,
    exit: Exit,
    now: Moment,
) -> ResultDocument {
    let times = |run: &Run| {
        run.group()
            .zones
            .iter()
            .map(|zone| {
                let record = run.zone(&zone.id);
                let soak = record.witness.soak.as_ref();
                ZoneTimes {
                    zone: zone.id.to_string(),
                    started_at: record.started().map(|moment| moment.wall),
                    promoted_at: record.promoted().map(|moment| moment.wall),
                    verified_at: record.verified().map(|moment| moment.wall),
                    soak_restarts: soak.map_or(0, zone_rollout_core::proof::Soak::breaks),
                }
            })
            .collect()
    };
    ResultDocument {
        api_version: API_VERSION,
        kind: "PromotionResult",
        time: now.wall,
        outcome: outcome_name(outcome),
        exit_code: exit.code(),
        text: ending.text.clone(),
        next_commands: ending.next.clone(),
        wrote: run.is_some_and(Run::has_written),
        zones: run.map(times).unwrap_or_default(),
    }
}

fn outcome_name(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Done => "Done",
        Outcome::NothingToDo => "NothingToDo",
        Outcome::Refused(_) => "Refused",
        Outcome::ZoneFailed { .. } => "ZoneFailed",
        Outcome::Stuck { .. } => "Stuck",
        Outcome::Outstanding { .. } => "Outstanding",
        Outcome::Declined => "Declined",
        Outcome::LostControl(_) => "LostControl",
        Outcome::WriteFailed { .. } => "WriteFailed",
        Outcome::Interrupted => "Interrupted",
    }
}

/// What `abort -o json` prints.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AbortDocument {
    api_version: &'static str,
    kind: &'static str,
    time: Timestamp,
    namespace: String,
    group: String,
    exit_code: u8,
    zones: Vec<RecalledZone>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct RecalledZone {
    zone: String,
    /// One of a closed list.
    result: &'static str,
    text: String,
    next_commands: Vec<String>,
}

/// The document of an abort.
pub fn abort(group: &Group, told: &[Told], exit: Exit, now: Moment) -> AbortDocument {
    let zone = |told: &Told| RecalledZone {
        zone: told.zone.to_string(),
        result: told.result,
        text: told.text.clone(),
        next_commands: told.next.clone(),
    };
    AbortDocument {
        api_version: API_VERSION,
        kind: "AbortResult",
        time: now.wall,
        namespace: group.namespace.clone(),
        group: group.name.clone(),
        exit_code: exit.code(),
        zones: told.iter().map(zone).collect(),
    }
}
