//! What a run does next, judged from one scene and what the run remembers.

use std::time::Duration;

use serde_json::Value;

use crate::group::ZoneId;
use crate::promote::blocker::needs_hold;
use crate::promote::clearance::{Obstacle, clear};
use crate::promote::failure;
use crate::promote::limits::out_of_time;
use crate::promote::lost::lost_control;
use crate::promote::run::{Run, WaitKind};
use crate::promote::{CheckResult, Clearance, Goal, Outcome, Pauses};
use crate::scene::Scene;
use crate::template::Images;
use crate::time::Moment;
use crate::write::Action;
use crate::zone::{ZoneFacts, ZoneState, zone_state};

/// How long the controller may take for what it does in one reconcile.
pub(super) const CONTROLLER: Duration = Duration::from_mins(1);
/// How long the controller may leave something unnoticed before the Rollout is touched; twice as long
/// before it is touched again.
const UNHEARD: Duration = Duration::from_secs(5);
/// How long after a gate was opened it may be opened again if it is found closed.
const OPEN_AGAIN: Duration = Duration::from_secs(10);
/// How long a zone may lack pods, or another zone be unwell, before the run gives up waiting.
pub(super) const PATIENCE: Duration = Duration::from_mins(10);

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
    if let Some(zone) = zone_to_nudge(run, scene, now) {
        return Decision::Act(Action::Nudge { zone });
    }
    if let Some(decision) = failure::handle(run, scene, now) {
        // A controller that is away takes nothing back either.
        let late = matches!(decision, Decision::Wait(_)).then(|| out_of_time(run, scene, now));
        return late.flatten().map_or(decision, Decision::End);
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

pub(super) fn has_started(run: &Run, scene: &Scene, id: &ZoneId) -> bool {
    let Some(facts) = run.group().zone(id).and_then(|zone| ZoneFacts::gather(scene, zone)) else {
        return false;
    };
    // A zone that is held from before its start has no gate to be behind, and has not started.
    let waiting = facts.rollout.spec.paused && run.zone(id).started.is_none();
    facts.has_started() && !waiting
}

pub(super) fn state_of(run: &Run, scene: &Scene, id: &ZoneId, now: Moment) -> ZoneState {
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

/// What a zone is asked for when its turn comes.
enum Wanted {
    Images(Images),
    Template(Value),
}

impl Wanted {
    fn action(self, clearance: Clearance) -> Action {
        match self {
            Self::Images(images) => Action::SetImage { clearance, images },
            Self::Template(template) => Action::Restore { clearance, template },
        }
    }
}

/// The zone's template is not the one that is wanted.
fn not_asked_for(
    run: &mut Run,
    scene: &Scene,
    id: &ZoneId,
    state: &ZoneState,
    now: Moment,
) -> Turn {
    let wanted = match run.goal() {
        Goal::InFlight { .. } => return Turn::LeftBehind,
        Goal::Expected(_) => return Turn::Decided(wait_for_sync(run, id, now)),
        Goal::Set(images) => Wanted::Images(images.get(id).cloned().unwrap_or_default()),
        Goal::Restored(templates) => match templates.get(id) {
            Some(template) => Wanted::Template(template.clone()),
            None => return Turn::LeftBehind,
        },
    };
    Turn::Decided(match state {
        ZoneState::Stable
        | ZoneState::AwaitingSync
        | ZoneState::Promoted
        | ZoneState::NotReady { .. }
        | ZoneState::Gate { .. } => {
            start(run, scene, id, now, |clearance| wanted.action(clearance))
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
    action: impl FnOnce(Clearance) -> Action,
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
            if obstacles.iter().all(|obstacle| obstacle.state == ZoneState::Soaking) {
                run.stopped_waiting(id);
            } else if past(since, PATIENCE, now) {
                let what = obstacles.iter().map(Obstacle::to_string).collect::<Vec<_>>().join("; ");
                return stuck(run, scene, Some(id), format!("it cannot start: {what}"));
            }
            Decision::Wait(vec![Awaited::Others { zone: id.clone(), obstacles }])
        }
    }
}

/// A zone in which the controller has left something unnoticed, and that was not touched lately.
fn zone_to_nudge(run: &Run, scene: &Scene, now: Moment) -> Option<ZoneId> {
    let unheard = |id: &&ZoneId| {
        let record = run.zone(id);
        let facts = run.group().zone(id).and_then(|zone| ZoneFacts::gather(scene, zone));
        let still = facts.is_some_and(|facts| facts.awaits_controller());
        still
            && record.unheard.is_some_and(|since| past(since, UNHEARD, now))
            && record.nudged.is_none_or(|(at, times)| past(at, UNHEARD * 2_u32.pow(times), now))
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
        Action::SetImage { .. } | Action::Restore { .. } => !run.zone(id).template_set,
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
