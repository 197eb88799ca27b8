//! Zones that failed: how it is known, and what is done about it.

use crate::group::ZoneId;
use crate::promote::decide::{Awaited, Decision, past, weight};
use crate::promote::limits::progress_limit;
use crate::promote::run::{Run, WaitKind};
use crate::promote::{CheckResult, Failure, OnFailure, Outcome};
use crate::proof::{Soak, Unmet, Verdict};
use crate::scene::{Scene, Step, StepKind};
use crate::takeback::{CONTROLLER_NEEDS, TakeBack, take_back};
use crate::time::{Moment, format_duration};
use crate::write::Action;
use crate::zone::{ZoneFacts, ZoneState, outage, trouble, worst_trouble, zone_state};

/// How often the watch over a promoted zone may start again.
const MOST_BREAKS: u32 = 5;

/// Decides about the zone that failed, if one has.
pub(super) fn handle(run: &mut Run, scene: &Scene, now: Moment) -> Option<Decision> {
    let started: Vec<ZoneId> =
        run.settings().order.iter().filter(|id| run.zone(id).started.is_some()).cloned().collect();
    for id in started {
        let known = run.zone(&id).failure.clone();
        if let Some(failure) = known.or_else(|| failure_of(run, scene, &id, now)) {
            run.zone_mut(&id).suspected = Some(failure.clone());
            return Some(react(run, scene, &id, &failure, now));
        }
    }
    None
}

fn failure_of(run: &Run, scene: &Scene, id: &ZoneId, now: Moment) -> Option<Failure> {
    let zone = run.group().zone(id)?;
    let record = run.zone(id);
    let facts = ZoneFacts::gather(scene, zone)?;
    if let Some(CheckResult::Bad(why)) = &record.check.result {
        return Some(Failure::Check(why.clone()));
    }
    match zone_state(scene, run.group(), zone, Some(&record.witness), now) {
        ZoneState::Aborted { message, .. } if !record.aborted => {
            return Some(Failure::Aborted(message));
        }
        ZoneState::InvalidSpec { message } => return Some(Failure::InvalidSpec(message)),
        _ => {}
    }
    if facts.is_in_flight() {
        failure_in_flight(run, scene, &facts, now)
    } else {
        let soak = record.witness.soak.as_ref()?;
        unmendable(soak.verdict()).or_else(|| unsteady(soak))
    }
}

/// A version whose pods fail again and again would be watched for ever.
fn unsteady(soak: &Soak) -> Option<Failure> {
    match soak.verdict() {
        Some(Verdict::Broken(last)) if soak.breaks() >= MOST_BREAKS => {
            Some(Failure::Unsteady { breaks: soak.breaks(), last: last.clone() })
        }
        _ => None,
    }
}

fn failure_in_flight(
    run: &Run,
    scene: &Scene,
    facts: &ZoneFacts<'_>,
    now: Moment,
) -> Option<Failure> {
    let record = run.zone(&facts.zone.id);
    if let Some(outage) = outage(scene, facts) {
        return Some(Failure::Outage(outage));
    }
    if let Some(lag) = record.witness.passage.unproven(now)
        && is_still_in_force(facts, lag.in_force)
    {
        return Some(Failure::Unproven { wanted: lag.wanted, in_force: lag.in_force });
    }
    let canary_pods = || facts.canary.iter().flat_map(|canary| canary.pods.iter().copied());
    let progressing = facts.rollout.condition("Progressing");
    if let Some(late) = progressing.filter(|found| found.reason == "ProgressDeadlineExceeded") {
        let message = late.message.clone();
        return Some(Failure::Deadline { message, trouble: worst_trouble(canary_pods()) });
    }
    if let Some(broken) = canary_pods().filter_map(trouble).find(|pod| pod.kind.is_final()) {
        return Some(Failure::Pod(broken));
    }
    let waits_for_pods = matches!(
        facts.rollout.current_step(),
        None | Some(Step::SetWeight(_) | Step::Other(StepKind::SetCanaryScale, _))
    );
    let limit = progress_limit(facts.rollout);
    let late = waits_for_pods
        && run.quiet_since(scene, facts.zone, now).is_some_and(|since| past(since, limit, now));
    worst_trouble(canary_pods()).filter(|_| late).map(|trouble| Failure::Deadline {
        message: format!("nothing has changed for {}", format_duration(limit)),
        trouble: Some(trouble),
    })
}

/// False if this scene shows another weight than the watches did last: then they are behind, and what they
/// have not shown is no proof. A route that cannot be read contradicts nothing.
fn is_still_in_force(facts: &ZoneFacts<'_>, watched: u32) -> bool {
    facts.in_force.as_ref().map_or(true, |in_force| in_force.lowest == watched)
}

/// A zone that was lost is always held, since the controller would march on through its steps
/// without traffic and promote it in the end; so is one whose steps ran ahead of its traffic.
fn react(run: &mut Run, scene: &Scene, id: &ZoneId, failure: &Failure, now: Moment) -> Decision {
    let Some(facts) = run.group().zone(id).and_then(|zone| ZoneFacts::gather(scene, zone)) else {
        return end(run, scene, id, failure, false);
    };
    let marches = matches!(failure, Failure::Outage(_) | Failure::Unproven { .. });
    let moving = facts.is_in_flight() && !facts.rollout.status.abort;
    if marches && moving && !facts.rollout.spec.paused {
        return Decision::Act(Action::Hold { zone: id.clone(), run: run.settings().run.clone() });
    }
    if marches && moving && !facts.is_observed() {
        // A hold that the controller has not noticed holds nothing.
        return Decision::Wait(vec![Awaited::Zone(id.clone())]);
    }
    let wanted_back = match failure {
        Failure::Outage(_) => true,
        _ => run.settings().on_failure == OnFailure::AbortZone,
    };
    if !wanted_back {
        return end(run, scene, id, failure, false);
    }
    let next = take_back(scene, &facts, run.settings().stable_floor, false);
    let bearable = is_bearable(run, scene, &facts);
    match next {
        TakeBack::Abort if matches!(failure, Failure::Outage(_)) && !bearable => {
            end(run, scene, id, failure, false)
        }
        TakeBack::Abort => Decision::Act(Action::Abort { zone: id.clone() }),
        TakeBack::WriteRoute { .. } => Decision::Act(Action::TrafficToStable { zone: id.clone() }),
        TakeBack::AwaitController => {
            let since = run.waiting(id, WaitKind::TakeBack, now);
            if past(since, CONTROLLER_NEEDS, now) && traffic_remains(run, scene, id) {
                return Decision::Act(Action::TrafficToStable { zone: id.clone() });
            }
            Decision::Wait(vec![Awaited::TakeBack(id.clone())])
        }
        TakeBack::Done => end(run, scene, id, failure, true),
        TakeBack::AlreadyStable | TakeBack::NeverStarted | TakeBack::TooMuchLoad { .. } => {
            end(run, scene, id, failure, false)
        }
    }
}

/// Whether the zone's stable pods, or those of other zones, could carry all its traffic now.
fn is_bearable(run: &Run, scene: &Scene, facts: &ZoneFacts<'_>) -> bool {
    let load = crate::takeback::load(scene, facts);
    load.is_bearable(run.settings().stable_floor)
}

fn traffic_remains(run: &Run, scene: &Scene, id: &ZoneId) -> bool {
    run.group()
        .zone(id)
        .and_then(|zone| ZoneFacts::gather(scene, zone))
        .and_then(|facts| facts.in_force.ok())
        .is_some_and(|in_force| in_force.highest > 0)
}

fn end(run: &Run, scene: &Scene, id: &ZoneId, failure: &Failure, taken_back: bool) -> Decision {
    Decision::End(Outcome::ZoneFailed {
        zone: id.clone(),
        why: failure.clone(),
        weight: weight(run, scene, id),
        taken_back,
    })
}

/// The failure that a soak's verdict amounts to when waiting does not mend it.
fn unmendable(verdict: Option<&Verdict>) -> Option<Failure> {
    match verdict {
        Some(Verdict::Broken(Unmet::PodFailed(trouble))) if trouble.kind.is_final() => {
            Some(Failure::Pod(trouble.clone()))
        }
        Some(Verdict::Broken(unmet @ Unmet::BaseRuleShadowed { .. })) => {
            Some(Failure::Unverified(unmet.clone()))
        }
        _ => None,
    }
}
