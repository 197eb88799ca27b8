//! What `promote` tells programs: events as they happen, and the result.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};
use zone_rollout_core::promote::{Event, Outcome, Question, Run, SoakChange};
use zone_rollout_core::time::Moment;
use zone_rollout_core::write::Written;

use super::API_VERSION;
use crate::exit::Exit;
use crate::render::words;
use crate::render::words::ending::Ending;

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
        Event::Sight(missing) => json!({"type": "Sight", "missing": missing}),
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
        Outcome::Interrupted { .. } => "Interrupted",
    }
}
