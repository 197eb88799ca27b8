//! What a run does next, judged from one scene and what the run remembers.

use std::time::Duration;

use crate::group::ZoneId;
use crate::promote::blocker::needs_hold;
use crate::promote::clearance::{Obstacle, clear};
use crate::promote::failure;
use crate::promote::run::{Run, WaitKind};
use crate::promote::{CheckResult, Failure, Goal, LostControl, Outcome, Pauses};
use crate::proof::{Soak, Unmet, Verdict};
use crate::scene::{Rollout, Scene};
use crate::time::Moment;
use crate::write::Action;
use crate::zone::{ZoneFacts, ZoneState, zone_state};

/// How long the controller may take for what it does in one reconcile.
const CONTROLLER: Duration = Duration::from_mins(1);
/// How long the controller may leave something unnoticed before the Rollout is touched.
const UNHEARD: Duration = Duration::from_secs(5);
/// How long after a gate was opened it may be opened again if it is found closed.
const OPEN_AGAIN: Duration = Duration::from_secs(10);
/// How long a zone may lack pods, or another zone be unwell, before the run gives up waiting.
const PATIENCE: Duration = Duration::from_mins(10);
/// What is added to a Rollout's own deadline before its lack of progress counts as ours.
const DEADLINE_MARGIN: Duration = Duration::from_secs(10);
/// The controller's default for `progressDeadlineSeconds`.
const DEFAULT_DEADLINE: Duration = Duration::from_mins(10);

/// What a run does next.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Decision {
    /// Do this.
    Act(Action),
    /// Ask a person.
    Ask(Question),
    /// Look again later.
    Wait(Vec<Awaited>),
    /// It is over.
    End(Outcome),
}

/// A question to a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Question {
    /// May this pause be ended?
    Continue {
        /// The zone.
        zone: ZoneId,
        /// Index of the step.
        step: usize,
    },
}

/// What is awaited.
#[derive(Debug, Clone, PartialEq)]
pub enum Awaited {
    /// That the zone's update goes on; its state says how.
    Zone(ZoneId),
    /// That the zone's soak ends.
    Soak(ZoneId),
    /// That other zones let this one start.
    Others {
        /// The zone that is to be started.
        zone: ZoneId,
        /// What is in the way.
        obstacles: Vec<Obstacle>,
    },
    /// That the expected version arrives in the zone.
    Sync(ZoneId),
    /// That the zone's traffic goes back to its stable pods.
    TakeBack(ZoneId),
    /// That the check command agrees.
    Check(ZoneId),
}

/// What to do next.
pub(super) fn decide(run: &mut Run, scene: &Scene, now: Moment) -> Decision {
    if let Some(lost) = lost_control(run, scene, now) {
        return Decision::End(Outcome::LostControl(lost));
    }
    if let Some(zone) = zone_to_nudge(run, now) {
        return Decision::Act(Action::Nudge { zone });
    }
    if let Some(decision) = failure::handle(run, scene, now) {
        return decision;
    }
    if let Some(outcome) = out_of_time(run, scene, now) {
        return Decision::End(outcome);
    }
    if let Some(zone) = zone_to_hold(run, scene, now) {
        return Decision::Act(Action::Hold { zone, run: run.settings().run.clone() });
    }
    let mut left_behind = Vec::new();
    for zone in in_turn(run, scene) {
        match advance(run, scene, &zone, now) {
            Turn::Over => {}
            Turn::LeftBehind => left_behind.push(zone),
            Turn::Decided(decision) => return decision,
        }
    }
    match left_behind.into_iter().next() {
        None => Decision::End(Outcome::Done),
        Some(zone) => {
            let what = "it still asks for another version".to_owned();
            Decision::End(Outcome::Outstanding { zone, what })
        }
    }
}

/// What a zone's turn comes to.
enum Turn {
    Over,
    LeftBehind,
    Decided(Decision),
}

/// The zones in the order in which they are looked at: one that is on its way comes first.
fn in_turn(run: &Run, scene: &Scene) -> Vec<ZoneId> {
    let moving = |id: &&ZoneId| has_started(run, scene, id);
    let order = &run.settings().order;
    let first = order.iter().filter(moving);
    let rest = order.iter().filter(|id| !moving(id));
    first.chain(rest).cloned().collect()
}

fn has_started(run: &Run, scene: &Scene, id: &ZoneId) -> bool {
    let Some(facts) = run.group().zone(id).and_then(|zone| ZoneFacts::gather(scene, zone)) else {
        return false;
    };
    // A zone that is held from before its start has no gate to be behind, and has not started.
    let waiting = facts.rollout.spec.paused && run.zone(id).started.is_none();
    facts.has_started() && !waiting
}

fn state_of(run: &Run, scene: &Scene, id: &ZoneId, now: Moment) -> ZoneState {
    match run.group().zone(id) {
        Some(zone) => zone_state(scene, run.group(), zone, Some(&run.zone(id).witness), now),
        None => ZoneState::Missing,
    }
}

fn advance(run: &mut Run, scene: &Scene, id: &ZoneId, now: Moment) -> Turn {
    let asked_for = run
        .group()
        .zone(id)
        .and_then(|zone| Some((zone, zone.rollout(scene)?)))
        .is_some_and(|(zone, rollout)| run.goal().is_asked_for(zone, rollout));
    let state = state_of(run, scene, id, now);
    if !asked_for {
        return not_asked_for(run, scene, id, &state, now);
    }
    let decision = match state {
        ZoneState::Verified => return Turn::Over,
        ZoneState::Gate { .. } => {
            start(run, scene, id, now, |clearance| Action::Open { clearance })
        }
        ZoneState::Held { ours: true } => {
            start(run, scene, id, now, |clearance| Action::Release { clearance })
        }
        ZoneState::Held { ours: false } => outstanding(id, "it is paused by spec.paused"),
        ZoneState::Inconclusive { reason } => {
            outstanding(id, &format!("a person has to judge ({reason})"))
        }
        ZoneState::Parked => outstanding(id, "it is parked at 0 replicas"),
        ZoneState::Waiting { step } => at_pause(run, id, step, now),
        ZoneState::Stable
        | ZoneState::Promoted
        | ZoneState::Soaking
        | ZoneState::NotReady { .. } => Decision::Wait(vec![Awaited::Soak(id.clone())]),
        _ => Decision::Wait(vec![Awaited::Zone(id.clone())]),
    };
    Turn::Decided(decision)
}

/// The zone's template is not the one that is wanted.
fn not_asked_for(
    run: &mut Run,
    scene: &Scene,
    id: &ZoneId,
    state: &ZoneState,
    now: Moment,
) -> Turn {
    let images = match run.goal() {
        Goal::InFlight { .. } => return Turn::LeftBehind,
        Goal::Expected(_) => return Turn::Decided(wait_for_sync(run, id, now)),
        Goal::Set(images) => images.get(id).cloned().unwrap_or_default(),
    };
    Turn::Decided(match state {
        ZoneState::Stable
        | ZoneState::AwaitingSync
        | ZoneState::Promoted
        | ZoneState::NotReady { .. }
        | ZoneState::Gate { .. } => {
            start(run, scene, id, now, |clearance| Action::SetImage { clearance, images })
        }
        ZoneState::Parked => outstanding(id, "it is parked at 0 replicas"),
        ZoneState::Held { .. } => outstanding(id, "it is paused by spec.paused"),
        _ => Decision::Wait(vec![Awaited::Zone(id.clone())]),
    })
}

/// Starts a zone if every other zone allows it.
fn start(
    run: &mut Run,
    scene: &Scene,
    id: &ZoneId,
    now: Moment,
    action: impl FnOnce(crate::promote::Clearance) -> Action,
) -> Decision {
    if let Some(decision) = await_effect(run, scene, id, now) {
        return decision;
    }
    match clear(run, scene, id, now) {
        Ok(_) if run.zone(id).restless_until(now).is_some() => {
            Decision::Wait(vec![Awaited::Zone(id.clone())])
        }
        Ok(clearance) => {
            run.stopped_waiting(id);
            Decision::Act(action(clearance))
        }
        Err(obstacles) => {
            let since = run.waiting(id, WaitKind::Others, now);
            // A soak that runs is no obstacle to complain about: it ends by itself.
            let soaking = obstacles.iter().all(|obstacle| obstacle.state == ZoneState::Soaking);
            if !soaking && past(since, PATIENCE, now) {
                let what = obstacles.iter().map(Obstacle::to_string).collect::<Vec<_>>().join("; ");
                return stuck(run, scene, Some(id), format!("other zones: {what}"));
            }
            Decision::Wait(vec![Awaited::Others { zone: id.clone(), obstacles }])
        }
    }
}

/// A zone in which the controller has left something unnoticed, and that was not touched lately.
fn zone_to_nudge(run: &Run, now: Moment) -> Option<ZoneId> {
    let unheard = |id: &&ZoneId| {
        let record = run.zone(id);
        record.unheard.is_some_and(|since| past(since, UNHEARD, now))
            && record.nudged.is_none_or(|at| past(at, UNHEARD, now))
    };
    run.settings().order.iter().find(unheard).cloned()
}

/// After a write has landed, the watch may still show the time before it. Writing again at once is
/// not the answer; if the effect does not come, something is wrong.
fn await_effect(run: &mut Run, scene: &Scene, id: &ZoneId, now: Moment) -> Option<Decision> {
    let (action, at) = run.zone(id).last_act.clone()?;
    let still_to_come = match action {
        // A controller that had not seen the pause end may have paused again (argo-rollouts#720).
        Action::Open { .. } => !past(at, OPEN_AGAIN, now),
        Action::Release { .. } => true,
        Action::SetImage { .. } => !run.zone(id).image_set,
        _ => false,
    };
    if !still_to_come {
        return None;
    }
    if past(at, CONTROLLER, now) {
        let what = format!("`{}` was accepted and has had no effect", action.name());
        return Some(stuck(run, scene, Some(id), what));
    }
    Some(Decision::Wait(vec![Awaited::Zone(id.clone())]))
}

fn at_pause(run: &Run, id: &ZoneId, step: usize, now: Moment) -> Decision {
    let ended = matches!(run.zone(id).last_act, Some((Action::Continue { step: ended, .. }, _)) if ended == step);
    if ended || run.zone(id).restless_until(now).is_some() {
        return Decision::Wait(vec![Awaited::Zone(id.clone())]);
    }
    let proceed = || Decision::Act(Action::Continue { zone: id.clone(), step });
    match run.settings().pauses {
        Pauses::Stop => outstanding(id, &format!("step {step} is a pause for a person")),
        Pauses::Ask if run.zone(id).pause_allowed == Some(step) => proceed(),
        Pauses::Ask => Decision::Ask(Question::Continue { zone: id.clone(), step }),
        Pauses::Open if !run.settings().check => proceed(),
        Pauses::Open => match run.zone(id).check.result {
            Some(CheckResult::Good) => proceed(),
            _ => Decision::Wait(vec![Awaited::Check(id.clone())]),
        },
    }
}

fn wait_for_sync(run: &mut Run, id: &ZoneId, now: Moment) -> Decision {
    let since = run.waiting(id, WaitKind::Sync, now);
    if past(since, run.settings().wait_sync, now) {
        return outstanding(id, "the expected version has not arrived");
    }
    Decision::Wait(vec![Awaited::Sync(id.clone())])
}

fn outstanding(id: &ZoneId, what: &str) -> Decision {
    Decision::End(Outcome::Outstanding { zone: id.clone(), what: what.to_owned() })
}

fn stuck(run: &Run, scene: &Scene, zone: Option<&ZoneId>, what: String) -> Decision {
    Decision::End(Outcome::Stuck {
        zone: zone.cloned(),
        what,
        weight: zone.and_then(|id| weight(run, scene, id)),
    })
}

/// The new version's share of a zone's traffic, if it can be told.
pub(super) fn weight(run: &Run, scene: &Scene, id: &ZoneId) -> Option<u32> {
    let facts = ZoneFacts::gather(scene, run.group().zone(id)?)?;
    let target = run.zone(id).target.as_ref()?;
    if facts.rollout.is_fully_promoted() {
        return Some(if facts.rollout.status.stable_rs == target.hash { 100 } else { 0 });
    }
    facts.in_force.ok().map(|in_force| in_force.highest)
}

pub(super) fn past(since: Moment, limit: Duration, now: Moment) -> bool {
    now.mono.saturating_sub(since.mono) >= limit
}

/// A zone without a gate has to be held before the version arrives in it.
fn zone_to_hold(run: &Run, scene: &Scene, now: Moment) -> Option<ZoneId> {
    if !run.settings().hold || !matches!(run.goal(), Goal::Expected(_)) {
        return None;
    }
    run.settings().order.iter().find_map(|id| {
        let zone = run.group().zone(id)?;
        let rollout = zone.rollout(scene)?;
        let record = run.zone(id);
        let sent = matches!(record.last_act, Some((Action::Hold { .. }, _)));
        let untouched = record.started.is_none() && !record.held && !sent;
        let at_rest = rollout.is_fully_promoted()
            && !matches!(state_of(run, scene, id, now), ZoneState::Unobserved);
        (untouched && at_rest && needs_hold(rollout) && !run.goal().is_asked_for(zone, rollout))
            .then(|| id.clone())
    })
}

/// Whether somebody else changed what this run is about.
fn lost_control(run: &Run, scene: &Scene, now: Moment) -> Option<LostControl> {
    run.group()
        .zones
        .iter()
        .filter(|zone| !run.settings().skipped.contains(&zone.id))
        .find_map(|zone| lost_zone(run, scene, &zone.id, now))
}

fn lost_zone(run: &Run, scene: &Scene, id: &ZoneId, now: Moment) -> Option<LostControl> {
    let record = run.zone(id);
    let zone = run.group().zone(id)?;
    let Some(rollout) = zone.rollout(scene) else {
        let gone =
            scene.rollouts.is_complete() && !scene.rollouts.broken.contains_key(&zone.rollout);
        return gone.then(|| LostControl::Deleted(id.clone()));
    };
    let last_manager = || rollout.meta.managed_fields.last().map(|entry| entry.manager.clone());
    if record.image_set && !run.goal().is_asked_for(zone, rollout) {
        return Some(LostControl::Reverted { zone: id.clone(), by: last_manager() });
    }
    let changed = record.target.as_ref().is_some_and(|target| {
        rollout.is_observed() && rollout.status.current_pod_hash != target.hash
    });
    if changed {
        let version = crate::template::version(&rollout.spec.template);
        return Some(LostControl::TargetChanged { zone: id.clone(), version });
    }
    if record.held && record.started.is_none() && !rollout.spec.paused {
        return Some(LostControl::ReleasedElsewhere(id.clone()));
    }
    match state_of(run, scene, id, now) {
        ZoneState::Aborted { message, .. } if message.is_empty() && !record.aborted => {
            Some(LostControl::AbortedElsewhere(id.clone()))
        }
        ZoneState::PromotingFull => Some(LostControl::PromotedElsewhere(id.clone())),
        _ if record.started.is_none() && went_on(run, scene, id) => {
            Some(LostControl::PromotedElsewhere(id.clone()))
        }
        _ => None,
    }
}

/// True if a zone that this run has not started is on its way, or has arrived.
fn went_on(run: &Run, scene: &Scene, id: &ZoneId) -> bool {
    if has_started(run, scene, id) {
        return true;
    }
    let arrived = || {
        let rollout = run.group().zone(id)?.rollout(scene)?;
        let target = run.zone(id).target.as_ref()?;
        Some(rollout.is_observed() && rollout.status.stable_rs == target.hash)
    };
    arrived().unwrap_or(false)
}

/// Whether something has taken longer than it may.
fn out_of_time(run: &Run, scene: &Scene, now: Moment) -> Option<Outcome> {
    let limit = run.settings().timeout;
    if limit.is_some_and(|limit| past(run.started, limit, now)) {
        let on_its_way = |id: &&ZoneId| {
            let record = run.zone(id);
            record.started.is_some() && record.verified.is_none()
        };
        let zone = run.settings().order.iter().find(on_its_way);
        return Some(Outcome::Stuck {
            zone: zone.cloned(),
            what: "the limit for the whole run has passed".to_owned(),
            weight: zone.and_then(|id| weight(run, scene, id)),
        });
    }
    run.settings().order.iter().find_map(|id| {
        let what = slow(run, scene, id, now)?;
        Some(Outcome::Stuck { zone: Some(id.clone()), what, weight: weight(run, scene, id) })
    })
}

/// What a zone that was started waits for, if it has waited for too long.
fn slow(run: &Run, scene: &Scene, id: &ZoneId, now: Moment) -> Option<String> {
    let record = run.zone(id);
    let since = record.changed?;
    let soak = record.witness.soak.as_ref();
    if let Some(halted) = soak.and_then(Soak::halted_since)
        && past(halted, PATIENCE, now)
    {
        return match soak.and_then(Soak::verdict) {
            Some(Verdict::Halted(unmet) | Verdict::Broken(unmet)) => Some(unmet.to_string()),
            _ => None,
        };
    }
    let state = state_of(run, scene, id, now);
    let rollout = run.group().zone(id)?.rollout(scene)?;
    let (limit, what) = match &state {
        ZoneState::Unobserved
        | ZoneState::Resuming
        | ZoneState::Retrying
        | ZoneState::NeverReconciled => {
            (CONTROLLER, "the Rollouts controller does not react".to_owned())
        }
        ZoneState::Unknown { why } => (PATIENCE, why.clone()),
        ZoneState::TimedPause { until: Some(until), .. } if now.since(*until) >= CONTROLLER => {
            (Duration::ZERO, "the Rollouts controller does not end a pause that is over".to_owned())
        }
        ZoneState::Stepping { step } => {
            let label =
                rollout.steps().get(*step).map_or_else(String::new, crate::scene::Step::label);
            (progress_limit(rollout), format!("step {step} ({label}) makes no progress"))
        }
        ZoneState::Deploying => (progress_limit(rollout), "it is still being deployed".to_owned()),
        ZoneState::Finishing => {
            (progress_limit(rollout), "the new pods are not all available".to_owned())
        }
        _ => return None,
    };
    past(since, limit, now).then_some(what)
}

/// How long a step may go on without any change.
///
/// The controller has a deadline of its own, but cannot be relied on for it: without stable and canary
/// Services, a ReplicaSet that is not fully available ends each reconcile before the deadline is
/// looked at (`shouldDelayDestinationRuleUpdate` in `rollout/trafficrouting/istio/istio.go`).
pub(super) fn progress_limit(rollout: &Rollout) -> Duration {
    let deadline = rollout
        .spec
        .progress_deadline_seconds
        .map_or(DEFAULT_DEADLINE, |seconds| Duration::from_secs(seconds.into()));
    deadline + DEADLINE_MARGIN
}

impl std::fmt::Display for Obstacle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.unmet {
            Some(unmet) => write!(f, "zone {}: {unmet}", self.zone),
            None => write!(f, "zone {} is in state {}", self.zone, self.state.name()),
        }
    }
}

/// The failure that a soak's verdict amounts to when waiting does not mend it.
pub(super) fn unmendable(verdict: Option<&Verdict>) -> Option<Failure> {
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
