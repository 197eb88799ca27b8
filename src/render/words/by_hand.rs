//! The words for what became of a retry, an undo, a hold or a release, zone by zone.

use zone_rollout_core::by_hand::{ByHand, End, Refusal};
use zone_rollout_core::group::{Group, ZoneId};
use zone_rollout_core::write::Action;
use zone_rollout_core::zone::ZoneState;

use super::recalled::Told;
use super::{Flags, happening};

/// Name of the document that tells of it.
pub fn kind(what: &ByHand) -> &'static str {
    match what {
        ByHand::Retry => "RetryResult",
        ByHand::RollBack => "UndoResult",
        ByHand::Hold { .. } => "HoldResult",
        ByHand::Release => "ReleaseResult",
    }
}

/// A write that has landed.
pub fn wrote(action: &Action) -> String {
    format!("zone {}: {}", action.zone(), happening::what(action))
}

/// What became of all zones, and what to type next.
pub fn all(told: &[Told]) -> String {
    let mut lines: Vec<String> = told.iter().map(|told| told.text.clone()).collect();
    let mut next: Vec<String> = Vec::new();
    for command in told.iter().flat_map(|told| &told.next) {
        let line = format!("  {command}");
        if !next.contains(&line) {
            next.push(line);
        }
    }
    if !next.is_empty() {
        lines.push("Next:".to_owned());
        lines.append(&mut next);
    }
    lines.join("\n")
}

/// How it ended in a zone, or that it has not. `trouble` is why it could not be written.
pub fn told(
    what: &ByHand,
    group: &Group,
    zone: &ZoneId,
    end: Option<&End>,
    trouble: Option<&str>,
    flags: &Flags,
) -> Told {
    let name = &group.name;
    let flags = &flags.0;
    let status = format!("kubectl zone-rollout status {name}{flags}");
    let (result, text, next) = match end {
        Some(End::Done(state)) => {
            ("Done", done(what, state), follow_up(what, state, group, zone, flags))
        }
        Some(End::Already(state)) => ("Already", already(what, state), Vec::new()),
        Some(End::Refused(refusal)) => {
            let help = help(refusal, group, zone, flags);
            ("Refused", format!("refused: {refusal}"), vec![help])
        }
        None => {
            let (result, text) = match trouble {
                Some(why) => ("NotWritten", format!("not done: {why}")),
                None => ("TimedOut", "its effect was not seen within the time limit".to_owned()),
            };
            (result, text, vec![status])
        }
    };
    Told { zone: zone.clone(), result, text: format!("zone {zone}: {text}"), next }
}

fn done(what: &ByHand, state: &ZoneState) -> String {
    match (what, state) {
        (ByHand::Retry, ZoneState::Gate { .. }) => "waits at its gate again".to_owned(),
        (ByHand::Retry, _) => "its update has started again".to_owned(),
        (ByHand::RollBack, _) => {
            "asks for its stable version again; the VirtualService gives the other one 0 %"
                .to_owned()
        }
        (ByHand::Hold { .. }, _) => "held (spec.paused): it goes on only when released".to_owned(),
        (ByHand::Release, _) => "released".to_owned(),
    }
}

fn already(what: &ByHand, state: &ZoneState) -> String {
    let name = state.name();
    match what {
        ByHand::Retry => format!("nothing to start again: it is not aborted ({name})"),
        ByHand::RollBack => format!("nothing to take back: it is at rest ({name})"),
        ByHand::Hold { .. } => format!("nothing to hold: it does not move ({name})"),
        ByHand::Release => format!("nothing to release: it is not held ({name})"),
    }
}

/// What a person types after it.
fn follow_up(
    what: &ByHand,
    state: &ZoneState,
    group: &Group,
    zone: &ZoneId,
    flags: &str,
) -> Vec<String> {
    let name = &group.name;
    match (what, state) {
        (ByHand::Retry, ZoneState::Gate { .. }) | (ByHand::Release, ZoneState::Gate { .. }) => {
            vec![format!("kubectl zone-rollout promote {name} --sequential{flags}")]
        }
        (ByHand::Hold { .. }, _) => {
            vec![format!("kubectl zone-rollout release {name}/{zone}{flags}")]
        }
        _ => vec![format!("kubectl zone-rollout status {name}{flags}")],
    }
}

fn help(refusal: &Refusal, group: &Group, zone: &ZoneId, flags: &str) -> String {
    let name = &group.name;
    let rollout = group.zone(zone).map_or("", |zone| zone.rollout.name.as_str());
    match refusal {
        Refusal::State(_) | Refusal::NoStable => {
            format!("kubectl describe rollout {rollout}{flags}")
        }
        Refusal::Others(_) => format!("kubectl zone-rollout status {name}{flags}"),
        Refusal::NotOurs => format!(
            "to release it all the same: kubectl patch rollout {rollout} --type merge -p \
             '{{\"spec\":{{\"paused\":false}}}}'{flags}"
        ),
        Refusal::Freezes(_) => "to hold it all the same: --freeze-hpa".to_owned(),
        Refusal::Owned(_) => "change it in Git instead, or do it all the same: --force".to_owned(),
    }
}
