//! The words for how a run ends, and what to type next.

use zone_rollout_core::group::{Group, ZoneId};
use zone_rollout_core::promote::{Failure, LostControl, Outcome, Run};
use zone_rollout_core::zone::Outage;

use super::Flags;
use crate::exit::Exit;

/// How a run ended, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    /// What happened.
    pub text: String,
    /// What to type next; nothing if all is done.
    pub next: Vec<String>,
}

/// The exit code of an outcome. `signal` is the number of the signal that came, if one did.
pub fn exit(outcome: &Outcome, signal: Option<u8>) -> Exit {
    match outcome {
        Outcome::Done | Outcome::NothingToDo => Exit::Done,
        Outcome::Refused(_) | Outcome::WriteFailed { first: true, .. } => Exit::Refused,
        Outcome::ZoneFailed { .. } | Outcome::WriteFailed { .. } => Exit::Failed,
        Outcome::Stuck { .. } => Exit::Stuck,
        Outcome::Outstanding { .. } => Exit::Outstanding,
        Outcome::Declined => Exit::Declined,
        Outcome::LostControl(_) => Exit::LostControl,
        Outcome::Interrupted { .. } => signal.map_or(Exit::Unexpected, Exit::Signal),
    }
}

/// How a run ended.
pub fn ending(run: &Run, outcome: &Outcome, again: &str, flags: &Flags) -> Ending {
    let version = run.goal().version();
    let group = run.group();
    let flags = &flags.0;
    let abort = |zone: &ZoneId| format!("kubectl zone-rollout abort {}/{zone}{flags}", group.name);
    let describe =
        |zone: &ZoneId| format!("kubectl describe rollout {}{flags}", rollout(group, zone));
    let status = || format!("kubectl zone-rollout status {}{flags}", group.name);
    let (text, next) = match outcome {
        Outcome::Done => (format!("done: {} on {version}, verified", driven(run)), vec![]),
        Outcome::NothingToDo => ("nothing to do".to_owned(), vec![]),
        Outcome::Refused(_) => ("refused; nothing was written".to_owned(), vec![]),
        Outcome::ZoneFailed { zone, why, weight, taken_back } => {
            let mut next = failed_next(run, zone, why, flags);
            if !taken_back && weight.is_none_or(|weight| weight < 100) {
                next.push(abort(zone));
            }
            (failed(run, zone, why, *weight, *taken_back), next)
        }
        Outcome::Stuck { zone, what, weight } => {
            let place = zone.as_ref().map_or_else(String::new, |zone| format!("zone {zone}: "));
            let text = format!("stuck: {place}{what}; {}", left_as_it_is(*weight));
            (text, vec![zone.as_ref().map_or_else(status, describe), again.to_owned()])
        }
        Outcome::Outstanding { zone, what } => {
            (format!("outstanding: zone {zone}: {what}"), vec![status(), again.to_owned()])
        }
        Outcome::Declined => ("declined; nothing more was done".to_owned(), vec![again.to_owned()]),
        Outcome::LostControl(lost) => {
            (format!("stopped: {}", lost_control(lost)), vec![status(), again.to_owned()])
        }
        Outcome::WriteFailed { zone, what, .. } => {
            (format!("zone {zone} could not be written: {what}"), vec![describe(zone)])
        }
        Outcome::Interrupted { writing: None } => {
            let text =
                "interrupted: nothing was aborted or promoted; zones go on by their own steps";
            (text.to_owned(), vec![again.to_owned()])
        }
        Outcome::Interrupted { writing: Some(zone) } => {
            let text = format!(
                "interrupted: zone {zone} was being written, and whether that arrived is not known; \
                 zones go on by their own steps"
            );
            (text, vec![status(), again.to_owned()])
        }
    };
    Ending { text, next }
}

fn driven(run: &Run) -> String {
    let zones: Vec<&str> = run.settings().order.iter().map(|zone| zone.0.as_str()).collect();
    format!("{} {}", if zones.len() == 1 { "zone" } else { "zones" }, zones.join(", "))
}

fn rollout(group: &Group, zone: &ZoneId) -> String {
    group.zone(zone).map_or_else(String::new, |zone| zone.rollout.name.clone())
}

fn left_as_it_is(weight: Option<u32>) -> String {
    match weight {
        Some(weight) => format!("left as it is, with {weight} % on the new version"),
        None => "left as it is".to_owned(),
    }
}

fn failed(
    run: &Run,
    zone: &ZoneId,
    why: &Failure,
    weight: Option<u32>,
    taken_back: bool,
) -> String {
    let reason = match why {
        Failure::Aborted(message) => format!("its update was aborted: {message}"),
        Failure::InvalidSpec(message) => format!("its spec is invalid: {message}"),
        Failure::Deadline { message, trouble: None } => format!("no progress: {message}"),
        Failure::Deadline { trouble: Some(trouble), .. } => format!("no progress: {trouble}"),
        Failure::Pod(trouble) => trouble.to_string(),
        Failure::Outage(outage) => format!("the zone is lost, whatever it runs: {outage}"),
        Failure::Unproven { wanted, in_force } => format!(
            "its steps went on without the traffic: {wanted} % was never in force, {in_force} % is"
        ),
        Failure::Unverified(unmet) => unmet.to_string(),
        Failure::Unsteady { breaks, last } => {
            format!("its watch was broken {breaks} times, the last time because {last}")
        }
        Failure::Check(said) => format!("the check command said no: {said}"),
    };
    let held = run
        .group()
        .zone(zone)
        .zip(run.scene())
        .and_then(|(zone, scene)| zone.rollout(scene))
        .is_some_and(|rollout| rollout.spec.paused);
    let fate = match (taken_back, held) {
        (true, false) => "taken back: its clients are off the new version".to_owned(),
        (true, true) => "held and taken back: its clients are off the new version".to_owned(),
        (false, true) => format!("held, {}", left_as_it_is(weight)),
        (false, false) => left_as_it_is(weight),
    };
    format!("zone {zone} failed: {reason}\nzone {zone} is {fate}; later zones were not touched")
}

fn failed_next(run: &Run, zone: &ZoneId, why: &Failure, flags: &str) -> Vec<String> {
    let pod = |pod: &zone_rollout_core::scene::Key| {
        vec![
            format!("kubectl describe pod {}{flags}", pod.name),
            format!("kubectl logs {} --all-containers --previous{flags}", pod.name),
        ]
    };
    match why {
        Failure::Pod(trouble) => pod(&trouble.pod),
        Failure::Deadline { trouble: Some(trouble), .. } => {
            vec![format!("kubectl describe pod {}{flags}", trouble.pod.name)]
        }
        Failure::Outage(Outage::NoNodes | Outage::NodesNotReady { .. }) => {
            let topology = run.group().zone(zone).and_then(|zone| zone.topology.clone());
            let topology = topology.unwrap_or_default();
            vec![format!("kubectl get nodes -l topology.kubernetes.io/zone={topology}")]
        }
        _ => vec![format!("kubectl describe rollout {}{flags}", rollout(run.group(), zone))],
    }
}

fn probably(by: Option<&String>) -> String {
    by.map_or_else(String::new, |by| format!(", probably by {by}"))
}

fn lost_control(lost: &LostControl) -> String {
    match lost {
        LostControl::TargetChanged { zone, version } => {
            format!("zone {zone} is asked for another version now ({version})")
        }
        LostControl::AbortedElsewhere(zone) => format!("somebody else aborted zone {zone}"),
        LostControl::PromotedElsewhere(zone) => {
            format!("zone {zone} was promoted by somebody else, or went on by itself")
        }
        LostControl::ReleasedElsewhere { zone, by } => {
            format!("zone {zone}, which this run holds, was released{}", probably(by.as_ref()))
        }
        LostControl::Reverted { zone, by } => {
            format!("the image of zone {zone} was put back{}", probably(by.as_ref()))
        }
        LostControl::Deleted(zone) => format!("the Rollout of zone {zone} was deleted"),
        LostControl::Lease(holder) => format!("the lease was taken by {holder}"),
        LostControl::Permission(why) => format!("the permission to write is gone: {why}"),
        LostControl::Refused(zone, drift) => {
            format!("zone {zone} changes while it is written to: {drift}")
        }
    }
}
