//! The words for what zones do, what is awaited, and what to type next.

pub mod blocked;
pub mod by_hand;
pub mod diversion;
pub mod ending;
pub mod happening;
pub mod recalled;

use jiff::Timestamp;
use zone_rollout_core::time::{Moment, format_duration};
use zone_rollout_core::traffic::RouteGap;
use zone_rollout_core::zone::ZoneState;

use super::view::{GroupView, VersionView, ZoneView};

/// Flags to repeat in commands that are printed, so that they can be pasted: ` -n shop`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Flags(pub String);

/// What a zone waits for, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advice {
    /// What is awaited, and by whom.
    pub awaited: String,
    /// A command that helps; nothing if waiting is all there is to do.
    pub command: Option<String>,
}

/// A point in time today, in UTC: `12:05:10Z`.
pub fn clock(at: Timestamp) -> String {
    at.strftime("%H:%M:%SZ").to_string()
}

/// What a zone is doing.
pub fn state(zone: &ZoneView, now: Moment) -> String {
    let words = match &zone.state {
        ZoneState::Unknown { why } => format!("unknown: {why}"),
        ZoneState::Missing => "Rollout missing".to_owned(),
        ZoneState::Deleting => "being deleted".to_owned(),
        ZoneState::Unsupported { .. } => "not supported".to_owned(),
        ZoneState::NeverReconciled => "never seen by the controller".to_owned(),
        ZoneState::Unobserved => "change not seen by the controller yet".to_owned(),
        ZoneState::InvalidSpec { .. } => "invalid spec".to_owned(),
        ZoneState::Aborted { .. } if takes_traffic(zone) => {
            format!("aborted, but {} % of traffic stays", in_force(zone).unwrap_or(0))
        }
        ZoneState::Aborted { .. } => "aborted".to_owned(),
        ZoneState::Retrying => "starting again".to_owned(),
        ZoneState::Deploying => "first deployment".to_owned(),
        ZoneState::Parked => "parked at 0 replicas".to_owned(),
        ZoneState::Stable => "stable".to_owned(),
        ZoneState::AwaitingSync => "stable, awaits the new version".to_owned(),
        ZoneState::Promoted => "promoted".to_owned(),
        ZoneState::Soaking => "promoted, being watched".to_owned(),
        ZoneState::Verified => "verified".to_owned(),
        ZoneState::NotReady { ready, wanted, .. } => {
            format!("{ready} of {wanted} pods are Ready")
        }
        ZoneState::PromotingFull => "being promoted in full".to_owned(),
        ZoneState::Held { ours: true } => "held by this tool".to_owned(),
        ZoneState::Held { ours: false } => "paused by spec.paused".to_owned(),
        ZoneState::Resuming => "going on after a pause".to_owned(),
        ZoneState::Inconclusive { .. } => "analysis without a verdict".to_owned(),
        ZoneState::Gate { .. } => "at its gate".to_owned(),
        ZoneState::TimedPause { until, .. } => match until {
            Some(until) => format!("pause, {} left", left(*until, now)),
            None => "pause".to_owned(),
        },
        ZoneState::Waiting { .. } => "pause for a person".to_owned(),
        ZoneState::Finishing => "finishing".to_owned(),
        ZoneState::Stepping { .. } => "on its way".to_owned(),
        ZoneState::Unproven { wanted, in_force, .. } => {
            format!("{wanted} % not in force ({in_force} % is)")
        }
    };
    let words = match (&zone.outage, &zone.late) {
        (Some(_), _) => format!("{words}; zone lost"),
        (None, Some(_)) => format!("{words}; no progress"),
        (None, None) => words,
    };
    match &zone.diverted {
        Some(diverted) => format!("{words}; clients sent {}", diversion::whither(diverted)),
        None => words,
    }
}

fn left(until: Timestamp, now: Moment) -> String {
    let span = until.duration_since(now.wall);
    format_duration(std::time::Duration::try_from(span).unwrap_or_default())
}

fn takes_traffic(zone: &ZoneView) -> bool {
    in_force(zone).is_some_and(|weight| weight > 0)
}

fn in_force(zone: &ZoneView) -> Option<u32> {
    zone.in_force.as_ref().ok().map(|in_force| in_force.highest)
}

/// The step: `2/9 pause 5m`, or how many there are.
pub fn step(zone: &ZoneView) -> String {
    match &zone.label {
        _ if zone.steps == 0 => "-".to_owned(),
        Some(label) => format!("{}/{} {label}", zone.step, zone.steps),
        None => format!("{0}/{0}", zone.steps),
    }
}

/// Weight that is wanted and weight in force: `20/10 %`.
pub fn weight(zone: &ZoneView) -> String {
    match &zone.in_force {
        Ok(in_force) if in_force.lowest == in_force.highest => {
            format!("{}/{} %", zone.wanted, in_force.highest)
        }
        Ok(in_force) => format!("{}/{}-{} %", zone.wanted, in_force.lowest, in_force.highest),
        Err(RouteGap::NotRouted) => format!("{}/- %", zone.wanted),
        Err(_) => format!("{}/? %", zone.wanted),
    }
}

/// Ready pods of the stable version, and of the new one while it is in flight: `3/3 + 1/1`.
pub fn pods(zone: &ZoneView) -> String {
    let stable = match &zone.stable {
        None => "-".to_owned(),
        Some(VersionView { pods: None, .. }) => return "?".to_owned(),
        Some(VersionView { pods: Some(pods), .. }) => {
            format!("{}/{}", pods.ready, zone.replicas.max(pods.all))
        }
    };
    match zone.canary.as_ref().and_then(|canary| canary.pods) {
        Some(canary) => format!("{stable} + {}/{}", canary.ready, canary.all),
        None => stable,
    }
}

/// What this zone waits for and what helps; nothing if it is at rest.
pub fn advice(view: &GroupView, zone: &ZoneView, flags: &Flags) -> Option<Advice> {
    let flags = &flags.0;
    let name = &zone.zone.rollout.name;
    let promote =
        || Some(format!("kubectl zone-rollout promote {} --sequential{flags}", view.group.name));
    let hand = |verb: &str| {
        let (group, zone) = (&view.group.name, &zone.zone.id);
        Some(format!("kubectl zone-rollout {verb} {group}/{zone}{flags}"))
    };
    let abort = || hand("abort");
    let describe = || Some(format!("kubectl describe rollout {name}{flags}"));
    let pod = || match &zone.trouble {
        Some(trouble) => Some(format!("kubectl describe pod {}{flags}", trouble.pod.name)),
        None => describe(),
    };
    let (awaited, command) = match &zone.state {
        ZoneState::Stable | ZoneState::Promoted | ZoneState::Soaking | ZoneState::Verified => {
            return None;
        }
        ZoneState::Unknown { why } | ZoneState::Unsupported { why } => (why.clone(), describe()),
        ZoneState::Missing => ("its Rollout is gone".to_owned(), None),
        ZoneState::Deleting => ("its Rollout is being deleted".to_owned(), describe()),
        ZoneState::NeverReconciled | ZoneState::Unobserved => (
            "the Rollouts controller has to look at it; is it running?".to_owned(),
            Some(
                "kubectl get pods --all-namespaces -l app.kubernetes.io/name=argo-rollouts"
                    .to_owned(),
            ),
        ),
        ZoneState::InvalidSpec { message } => (message.clone(), describe()),
        ZoneState::Aborted { .. } if takes_traffic(zone) => (
            "the controller keeps traffic on the given-up version until the stable pods are Ready"
                .to_owned(),
            abort(),
        ),
        ZoneState::Aborted { message, .. } => {
            let why = if message.is_empty() { "a person gave the update up" } else { message };
            (format!("{why}; a new version or a retry starts again"), hand("retry"))
        }
        ZoneState::Retrying | ZoneState::Resuming => {
            ("waiting until the Rollouts controller goes on".to_owned(), None)
        }
        ZoneState::Deploying => ("waiting for its first pods".to_owned(), pod()),
        ZoneState::Parked => (
            "waiting until somebody scales it up".to_owned(),
            Some(format!("kubectl scale rollout {name} --replicas N{flags}")),
        ),
        ZoneState::AwaitingSync => {
            ("waiting for the new version, from Git or by --image".to_owned(), None)
        }
        ZoneState::NotReady { trouble, .. } => (
            trouble.as_ref().map_or_else(|| "waiting for its pods".to_owned(), ToString::to_string),
            pod(),
        ),
        ZoneState::PromotingFull => ("all remaining steps are being skipped".to_owned(), abort()),
        ZoneState::Held { ours: true } => {
            let pods = zone.canary.as_ref().and_then(|canary| canary.pods);
            let midway = pods.is_some_and(|pods| pods.all > 0);
            let next = if midway { hand("release") } else { promote() };
            ("waiting until it is released".to_owned(), next)
        }
        ZoneState::Held { ours: false } => {
            ("waiting until the person who set spec.paused takes it back".to_owned(), describe())
        }
        ZoneState::Inconclusive { reason } => (
            format!("waiting until a person judges the analysis ({reason})"),
            Some(format!("kubectl argo rollouts get rollout {name}{flags}")),
        ),
        ZoneState::Gate { .. } => ("waiting to be opened in turn".to_owned(), promote()),
        ZoneState::TimedPause { until: Some(until), .. } => {
            (format!("the Rollouts controller ends the pause at {}", clock(*until)), None)
        }
        ZoneState::TimedPause { until: None, .. } => {
            ("the Rollouts controller ends the pause".to_owned(), None)
        }
        ZoneState::Waiting { .. } => (
            "waiting until a person lets it go on".to_owned(),
            Some(format!(
                "kubectl zone-rollout promote {}/{}{flags}",
                view.group.name, zone.zone.id
            )),
        ),
        ZoneState::Finishing | ZoneState::Stepping { .. } => match &zone.trouble {
            Some(trouble) => (trouble.to_string(), pod()),
            None => ("the Rollouts controller carries the step out".to_owned(), None),
        },
        ZoneState::Unproven { .. } => ("the traffic did not follow the steps".to_owned(), abort()),
    };
    Some(Advice { awaited, command })
}

/// `1 zone`, `3 zones`.
pub fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}
