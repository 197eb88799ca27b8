//! The words for what happens in a run.

use std::time::Duration;

use zone_rollout_core::promote::{Awaited, Event, Obstacle, Run, SoakChange, ZoneGlimpse};
use zone_rollout_core::proof::{Soak, Verdict};
use zone_rollout_core::time::{Moment, format_duration};
use zone_rollout_core::write::{Action, Written};
use zone_rollout_core::zone::ZoneState;

use super::clock;

/// An event as a line; nothing if people need not read it.
pub fn event(run: &Run, event: &Event, now: Moment) -> Option<String> {
    match event {
        Event::Zone(glimpse) if is_news(glimpse) => {
            Some(format!("zone {}  {}", glimpse.zone, self::glimpse(run, glimpse, now)))
        }
        Event::Wrote { action, written } => Some(wrote(action, written)),
        Event::Soak { zone, change } => Some(format!("zone {zone}  {}", soak(run, zone, change))),
        Event::Waiting(awaited) => {
            let others = awaited
                .iter()
                .find(|awaited| matches!(awaited, Awaited::Others { .. } | Awaited::Sync(_)))?;
            Some(self::awaited(run, others, now))
        }
        Event::NotRead(why) => Some(format!("{why}; trying again")),
        Event::Sight(missing) => Some(sight(missing.as_deref())),
        Event::Zone(_) | Event::Ended(_) => None,
    }
}

/// Steps that are being carried out change from moment to moment; what counts is where they come to
/// rest. The soak has lines of its own.
fn is_news(glimpse: &ZoneGlimpse) -> bool {
    match &glimpse.state {
        ZoneState::TimedPause { until, .. } => {
            until.is_some() && glimpse.in_force.is_none_or(|in_force| in_force == glimpse.wanted)
        }
        ZoneState::Stepping { .. }
        | ZoneState::Resuming
        | ZoneState::Retrying
        | ZoneState::Finishing
        | ZoneState::Unobserved
        | ZoneState::Stable
        | ZoneState::Promoted
        | ZoneState::Soaking
        | ZoneState::Verified
        | ZoneState::NotReady { .. } => false,
        _ => true,
    }
}

fn soak(run: &Run, zone: &zone_rollout_core::group::ZoneId, change: &SoakChange) -> String {
    let required = format_duration(run.soak_of(zone));
    match change {
        SoakChange::Counting => format!("promoted and verified; watching it for {required}"),
        SoakChange::Halted(unmet) => format!("watching stands still: {unmet}"),
        SoakChange::Broken(unmet) => format!("watching starts again: {unmet}"),
        SoakChange::Over => format!("verified for {required}"),
    }
}

/// Whether the cluster can be seen.
pub fn sight(missing: Option<&str>) -> String {
    match missing {
        None => "the cluster is seen again".to_owned(),
        Some(what) => format!(
            "the cluster is out of sight ({what}); nothing is started until it is seen again, zones \
             on their way go on by their own steps"
        ),
    }
}

fn wrote(action: &Action, written: &Written) -> String {
    let zone = action.zone();
    let what = what(action);
    match written {
        Written::Landed { .. } => format!("zone {zone}  {what}"),
        Written::Refused(drift) => {
            format!("zone {zone}  not done ({what}): {drift}; looking again")
        }
        Written::Invalid(why) | Written::Denied(why) => {
            format!("zone {zone}  not done ({what}): {why}")
        }
        Written::NotSent(why) => format!("zone {zone}  not sent ({what}): {why}; trying again"),
        Written::Unknown(why) => {
            format!("zone {zone}  the answer was lost ({what}): {why}; looking whether it was done")
        }
    }
}

/// What was done to a zone.
pub fn what(action: &Action) -> String {
    match action {
        Action::Open { .. } => "opened its gate".to_owned(),
        Action::Continue { step, .. } => format!("ended the pause at step {step}"),
        Action::SetImage { images, .. } => {
            let images: Vec<&str> = images.values().map(String::as_str).collect();
            format!("set image {}", images.join(", "))
        }
        Action::Restore { .. } => "set what it ran before".to_owned(),
        Action::RollBack { .. } => "set its stable version again".to_owned(),
        Action::Retry { .. } => "started its update again".to_owned(),
        Action::Hold { .. } => "held it (spec.paused)".to_owned(),
        Action::Release { .. } => "released our hold".to_owned(),
        Action::Abort { .. } => "gave the update up".to_owned(),
        Action::TrafficToStable { .. } => "wrote the route: all traffic to stable".to_owned(),
        Action::Divert { to, .. } => format!("sent its clients to zone {to}"),
        Action::EndDiversion { .. } => "took its clients back".to_owned(),
        Action::Nudge { .. } => "touched it: the controller has missed a change".to_owned(),
    }
}

/// What a zone looks like now.
pub fn glimpse(run: &Run, glimpse: &ZoneGlimpse, now: Moment) -> String {
    let doing = doing(run, glimpse, now);
    if matches!(
        glimpse.state,
        ZoneState::Stable
            | ZoneState::AwaitingSync
            | ZoneState::Promoted
            | ZoneState::Soaking
            | ZoneState::Verified
            | ZoneState::NotReady { .. }
            | ZoneState::Parked
    ) {
        return format!("{doing}, {}", pods(glimpse));
    }
    let weight = match glimpse.in_force {
        Some(in_force) if in_force == glimpse.wanted => format!(", {in_force} %"),
        Some(in_force) => format!(", {in_force} % of {} %", glimpse.wanted),
        None => String::new(),
    };
    format!("{doing}{weight}, {}", pods(glimpse))
}

fn pods(glimpse: &ZoneGlimpse) -> String {
    if glimpse.canary_ready == 0 {
        format!("{} pods Ready", glimpse.stable_ready)
    } else {
        format!("{} old + {} new pods Ready", glimpse.stable_ready, glimpse.canary_ready)
    }
}

fn doing(run: &Run, glimpse: &ZoneGlimpse, now: Moment) -> String {
    let step = || {
        let label = glimpse.label.as_deref().unwrap_or("done");
        format!("step {}/{} {label}", glimpse.step, glimpse.steps)
    };
    match &glimpse.state {
        ZoneState::Gate { .. } => "at its gate".to_owned(),
        ZoneState::TimedPause { until: Some(until), .. } => {
            format!("{} until {}", step(), clock(*until))
        }
        ZoneState::Stepping { .. } | ZoneState::TimedPause { .. } | ZoneState::Resuming => step(),
        ZoneState::Waiting { .. } => format!("{}, for a person", step()),
        ZoneState::Finishing => "all steps done, finishing".to_owned(),
        ZoneState::Soaking => match run.zone(&glimpse.zone).witness.soak.as_ref() {
            Some(soak) => watched(soak, now),
            None => "promoted".to_owned(),
        },
        ZoneState::NotReady { ready, wanted, trouble } => match trouble {
            Some(trouble) => format!("{ready} of {wanted} pods Ready: {trouble}"),
            None => format!("{ready} of {wanted} pods Ready"),
        },
        ZoneState::Stable => "stable".to_owned(),
        ZoneState::AwaitingSync => "stable, awaits the new version".to_owned(),
        ZoneState::Promoted => "promoted".to_owned(),
        ZoneState::Verified => "verified".to_owned(),
        ZoneState::Aborted { message, .. } if message.is_empty() => "aborted".to_owned(),
        ZoneState::Aborted { message, .. } => format!("aborted: {message}"),
        ZoneState::InvalidSpec { message } => format!("invalid spec: {message}"),
        ZoneState::Held { ours: true } => "held by this tool".to_owned(),
        ZoneState::Held { ours: false } => "paused by spec.paused".to_owned(),
        ZoneState::Unobserved => "change not seen by the controller yet".to_owned(),
        ZoneState::Unproven { wanted, in_force, .. } => {
            format!("{wanted} % never came into force ({in_force} % is)")
        }
        state => state.name().to_owned(),
    }
}

fn watched(soak: &Soak, now: Moment) -> String {
    let (done, required) = (soak_done(soak, now), soak.required());
    let so_far = format!("watched {} of {}", format_duration(done), format_duration(required));
    match soak.verdict() {
        Some(Verdict::Halted(unmet)) => format!("{so_far}, standing still: {unmet}"),
        Some(Verdict::Broken(unmet)) => format!("{so_far}, starting again: {unmet}"),
        _ => so_far,
    }
}

fn soak_done(soak: &Soak, now: Moment) -> Duration {
    // Between two looks the clock is shown as running, up to what is required.
    let running = match (soak.verdict(), soak.wake()) {
        (Some(Verdict::Counting), Some(end)) => {
            soak.required().saturating_sub(end.mono.saturating_sub(now.mono))
        }
        _ => soak.done(),
    };
    running.clamp(soak.done(), soak.required())
}

/// Position and length of a zone's bar: its steps, then its watch as one more unit of ten parts.
pub fn progress(run: &Run, glimpse: &ZoneGlimpse) -> (u64, u64) {
    const WATCH: u64 = 10;
    let steps = u64::try_from(glimpse.steps).unwrap_or(0).max(1) * 2;
    let all = steps + WATCH;
    let started = run.zone(&glimpse.zone).started().is_some();
    let soak = run.zone(&glimpse.zone).witness.soak.as_ref();
    match soak {
        Some(soak) if soak.required().is_zero() => (all, all),
        Some(soak) => {
            let share = soak.done().as_secs_f64() / soak.required().as_secs_f64();
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                clippy::cast_precision_loss,
                reason = "a share of ten"
            )]
            let watched = (share * WATCH as f64) as u64;
            (steps + watched, all)
        }
        None if started => (u64::try_from(glimpse.step).unwrap_or(0) * 2, all),
        None => (0, all),
    }
}

/// What is awaited.
pub fn awaited(run: &Run, awaited: &Awaited, now: Moment) -> String {
    let zone_line = |id: &zone_rollout_core::group::ZoneId| {
        let seen = run
            .scene()
            .zip(run.group().zone(id))
            .and_then(|(scene, zone)| run.glimpse(scene, zone, now));
        seen.map_or_else(String::new, |seen| glimpse(run, &seen, now))
    };
    match awaited {
        Awaited::Zone(zone) | Awaited::Soak(zone) => {
            format!("zone {zone}  waiting: {}", zone_line(zone))
        }
        Awaited::Others { zone, obstacles } => {
            let what: Vec<String> = obstacles.iter().map(Obstacle::to_string).collect();
            format!("zone {zone}  cannot start yet: {}", what.join("; "))
        }
        Awaited::Sync(zone) => format!(
            "zone {zone}  waiting for {} to arrive, at most {}",
            run.goal().version(),
            format_duration(run.settings().wait_sync)
        ),
        Awaited::TakeBack(zone) => {
            format!("zone {zone}  waiting for its traffic to go back: {}", zone_line(zone))
        }
        Awaited::Check(zone) => format!("zone {zone}  waiting for the check command to agree"),
    }
}
