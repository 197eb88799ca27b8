//! The machine itself: inputs in, at most one write out. It never writes from a watch: it asks for a
//! fresh reading first, judges that with the same function, and only then compiles the write.

use std::sync::Arc;
use std::time::Duration;

use crate::group::ZoneId;
use crate::promote::decide::{Awaited, Decision, Question, decide};
use crate::promote::event::Event;
use crate::promote::run::{Phase, Run};
use crate::promote::{LostControl, Outcome};
use crate::scene::Scene;
use crate::time::Moment;
use crate::write::{Action, Write, Written, compile};
use crate::zone::{ZoneFacts, ZoneState, zone_state};

/// How often a run looks at the same scene again: soaks and limits go on without any change.
const LOOK_AGAIN: Duration = Duration::from_secs(2);
/// How long to wait after a reading or a write that did not reach the server.
const TRY_AGAIN: Duration = Duration::from_secs(1);
/// How long the watches may take to show what a fresh reading has shown.
const CATCH_UP: Duration = Duration::from_millis(250);
/// How often the check command runs.
const CHECK_EVERY: Duration = Duration::from_secs(30);
/// How often the same write may be refused before it counts as invalid.
const REFUSALS: u32 = 5;

/// What reaches the machine.
#[derive(Debug, Clone)]
pub enum Input {
    /// The watches saw something.
    Seen {
        /// Everything that is known now.
        scene: Arc<Scene>,
        /// For how long before this changes may have been missed, if any were.
        unwatched: Option<Duration>,
    },
    /// The fresh reading that was asked for.
    Confirmed(Arc<Scene>),
    /// The fresh reading failed.
    NotConfirmed(String),
    /// The answer to the write.
    Written(Written),
    /// Somebody else has the lease.
    LeaseLost(String),
    /// The check command has ended.
    Checked(ZoneId, CheckResult),
    /// A person has answered.
    Answered(bool),
    /// The run is to stop, whatever it was doing.
    Stop(StopLevel),
    /// Time has passed.
    Tick,
}

/// How urgently a run is to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopLevel {
    /// After the request that is under way.
    AfterRequest,
    /// Now.
    Now,
}

/// The verdict of the check command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckResult {
    /// Exit code 0.
    Good,
    /// Exit code 1.
    Bad(String),
    /// Anything else: no data.
    Silent(String),
}

/// A run of the check command that is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckRequest {
    /// The zone it is about.
    pub zone: ZoneId,
    /// What the zone is doing.
    pub stage: CheckStage,
}

/// What a zone is doing while it is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckStage {
    /// It waits at a pause for a person.
    Pause,
    /// It is being watched after its promotion.
    Soak,
}

/// What the machine wants done.
#[derive(Debug, Default)]
pub struct Step {
    /// Read everything anew, and the lease, and hand it in.
    pub confirm: bool,
    /// Send this, once, and hand in the answer.
    pub write: Option<Write>,
    /// Ask this, and hand in the answer.
    pub ask: Option<Question>,
    /// Run the check command for these zones, and hand in the verdicts.
    pub checks: Vec<CheckRequest>,
    /// What happened.
    pub events: Vec<Event>,
    /// Hand in a tick at this moment, unless something else comes first.
    pub wake: Option<Moment>,
    /// It is over.
    pub end: Option<Outcome>,
}

/// Takes in one input.
pub fn step(run: &mut Run, input: Input, now: Moment) -> Step {
    let mut step = Step::default();
    if run.phase == Phase::Ended {
        return step;
    }
    match input {
        Input::Seen { scene, unwatched } => {
            if let Some(unwatched) = unwatched {
                run.interrupted(unwatched);
            }
            run.see(scene, now, &mut step);
        }
        Input::Confirmed(scene) => return confirmed(run, &scene, now),
        Input::NotConfirmed(why) => {
            run.phase = Phase::Watching;
            run.retry_at = Some(now.after(TRY_AGAIN));
            if run.unread.as_ref() != Some(&why) {
                run.unread = Some(why.clone());
                step.events.push(Event::NotRead(why));
            }
        }
        Input::Written(written) => {
            if let Some(outcome) = run.answered(written, now, &mut step) {
                return run.end(step, outcome);
            }
        }
        Input::LeaseLost(holder) => {
            return run.end(step, Outcome::LostControl(LostControl::Lease(holder)));
        }
        Input::Checked(zone, result) => run.checked(&zone, result),
        Input::Answered(yes) => {
            if let Some(outcome) = run.told(yes) {
                return run.end(step, outcome);
            }
        }
        Input::Stop(level) => {
            run.stopping = true;
            // A reading under way is given up, a write is not.
            if level == StopLevel::Now || run.phase == Phase::Confirming {
                let writing = match &run.phase {
                    Phase::Writing(action) => Some(action.zone().clone()),
                    _ => None,
                };
                return run.end(step, Outcome::Interrupted { writing });
            }
        }
        Input::Tick => {
            if let Some(scene) = run.scene.clone() {
                run.see(scene, now, &mut step);
            }
        }
    }
    match run.phase {
        Phase::Watching | Phase::Asking => watch(run, now, step),
        _ => run.keep_time(now, step),
    }
}

/// Judges what is known; a decision to act first asks for a fresh reading.
fn watch(run: &mut Run, now: Moment, mut step: Step) -> Step {
    if run.stopping {
        return run.end(step, Outcome::Interrupted { writing: None });
    }
    let Some(scene) = run.scene.clone() else { return step };
    if run.retry_at.is_some_and(|at| at.mono > now.mono) {
        return run.keep_time(now, step);
    }
    let decision = decide(run, &scene, now);
    if !matches!(decision, Decision::Ask(_)) {
        // What was asked is no longer the question; a late answer is ignored.
        run.asked = None;
        run.phase = Phase::Watching;
    }
    match decision {
        Decision::Act(_) => run.confirm(&mut step),
        Decision::End(outcome) if outcome.is_judgement() && !run.is_out_of_time(now) => {
            run.confirm(&mut step);
        }
        Decision::Ask(question) if run.asked.as_ref() == Some(&question) => {}
        Decision::Ask(question) => {
            run.asked = Some(question.clone());
            run.phase = Phase::Asking;
            step.ask = Some(question);
        }
        Decision::Wait(awaited) => run.awaits(awaited, &mut step),
        Decision::End(outcome) => return run.end(step, outcome),
    }
    step.checks = run.due_checks(&scene, now);
    run.keep_time(now, step)
}

/// Judges the fresh reading; only here a write is made.
///
/// The reading is ahead of the watches, and is not remembered: what a run remembers follows the
/// watches alone, so that it never goes back in time.
fn confirmed(run: &mut Run, scene: &Scene, now: Moment) -> Step {
    let mut step = Step::default();
    run.phase = Phase::Watching;
    run.unread = None;
    // What this run may have done itself is not to be taken for somebody else's doing.
    run.settle(scene, now);
    match decide(run, scene, now) {
        Decision::Act(action) => match compile(&action, scene, run.group()) {
            Ok(write) => {
                step.write = Some(write);
                run.phase = Phase::Writing(action);
            }
            Err(drift) => {
                let lost = LostControl::Refused(action.zone().clone(), drift);
                return run.end(step, Outcome::LostControl(lost));
            }
        },
        Decision::End(outcome) => return run.end(step, outcome),
        // The watches have to catch up before it makes sense to look again.
        Decision::Ask(_) | Decision::Wait(_) => run.retry_at = Some(now.after(CATCH_UP)),
    }
    run.keep_time(now, step)
}

impl Run {
    fn confirm(&mut self, step: &mut Step) {
        self.phase = Phase::Confirming;
        step.confirm = true;
    }

    fn see(&mut self, scene: Arc<Scene>, now: Moment, step: &mut Step) {
        if self.scene.is_none() {
            self.adopt(&scene, now);
        }
        self.settle(&scene, now);
        step.events.extend(self.observe(&scene, now));
        self.scene = Some(scene);
    }

    /// Zones that are on their way, or have arrived, before the run begins are part of it: an
    /// earlier run was interrupted.
    fn adopt(&mut self, scene: &Scene, now: Moment) {
        let group = self.group().clone();
        for zone in &group.zones {
            let Some(facts) = ZoneFacts::gather(scene, zone) else { continue };
            let held = facts.rollout.spec.paused;
            let arrived = facts.rollout.is_fully_promoted()
                && facts.is_observed()
                && self.goal().is_asked_for(zone, facts.rollout);
            let record = self.zone_mut(&zone.id);
            if arrived || (facts.has_started() && !held) {
                record.started = Some(now);
            } else if held {
                record.held = true;
            }
        }
    }

    fn answered(&mut self, written: Written, now: Moment, step: &mut Step) -> Option<Outcome> {
        let Phase::Writing(action) = std::mem::replace(&mut self.phase, Phase::Watching) else {
            return None;
        };
        let id = action.zone().clone();
        step.events.push(Event::Wrote { action: action.clone(), written: written.clone() });
        let first = !self.wrote;
        match written {
            Written::Landed { .. } => {
                self.wrote = true;
                self.landed(action, now);
                None
            }
            Written::Refused(drift) => {
                self.refusals += 1;
                (self.refusals >= REFUSALS)
                    .then_some(Outcome::LostControl(LostControl::Refused(id, drift)))
            }
            Written::Invalid(what) => Some(Outcome::WriteFailed { zone: id, what, first }),
            Written::Denied(what) if first => Some(Outcome::WriteFailed { zone: id, what, first }),
            Written::Denied(what) => Some(Outcome::LostControl(LostControl::Permission(what))),
            Written::NotSent(_) => {
                self.retry_at = Some(now.after(TRY_AGAIN));
                None
            }
            Written::Unknown(_) => {
                self.wrote = true;
                self.zone_mut(&id).uncertain = Some(action);
                self.retry_at = Some(now.after(TRY_AGAIN));
                None
            }
        }
    }

    fn landed(&mut self, action: Action, now: Moment) {
        self.refusals = 0;
        let id = action.zone().clone();
        let rollout = self.group().zone(&id).zip(self.scene.as_ref());
        let gateless = rollout
            .and_then(|(zone, scene)| zone.rollout(scene))
            .is_some_and(|rollout| rollout.gate().is_none());
        let record = self.zone_mut(&id);
        match &action {
            Action::Open { .. } | Action::Release { .. } => {
                record.started.get_or_insert(now);
                record.held = false;
            }
            // Without a gate, a new template starts by itself; an earlier one may pass its gate.
            Action::SetImage { .. } if gateless => {
                record.started.get_or_insert(now);
            }
            Action::Restore { .. } => {
                record.started.get_or_insert(now);
            }
            Action::Abort { .. } => record.aborted = true,
            Action::SetImage { .. }
            | Action::Retry { .. }
            | Action::RollBack { .. }
            | Action::Continue { .. }
            | Action::Hold { .. }
            | Action::TrafficToStable { .. }
            | Action::Divert { .. }
            | Action::EndDiversion { .. }
            | Action::Nudge { .. } => {}
        }
        if matches!(action, Action::Hold { .. } | Action::Abort { .. }) && record.started.is_some()
        {
            // From here on there is no way back, whatever the next look shows.
            record.failure = record.suspected.take();
        }
        record.uncertain = None;
        if let Action::Nudge { .. } = action {
            let times = record.nudged.map_or(0, |(_, times)| times);
            record.nudged = Some((now, times + 1));
        } else {
            record.last_act = Some((action, now));
        }
    }

    /// Writes whose answer was lost count as done once their effect is seen.
    fn settle(&mut self, scene: &Scene, now: Moment) {
        let group = self.group().clone();
        for zone in &group.zones {
            let Some(rollout) = zone.rollout(scene) else { continue };
            let status = &rollout.status;
            let done = match &self.zone(&zone.id).uncertain {
                None => false,
                Some(Action::Open { .. }) => {
                    ZoneFacts::gather(scene, zone).is_some_and(|facts| facts.has_started())
                }
                Some(Action::Continue { step, .. }) => {
                    rollout.step_index() != *step || status.pause_conditions.is_empty()
                }
                Some(
                    Action::SetImage { .. } | Action::Restore { .. } | Action::RollBack { .. },
                ) => self.goal().is_asked_for(zone, rollout),
                Some(Action::Hold { .. }) => rollout.spec.paused,
                Some(Action::Release { .. }) => !rollout.spec.paused,
                Some(Action::Abort { .. }) => status.abort,
                Some(Action::Retry { .. }) => !status.abort,
                Some(
                    Action::TrafficToStable { .. }
                    | Action::Divert { .. }
                    | Action::EndDiversion { .. }
                    | Action::Nudge { .. },
                ) => true,
            };
            if let Some(action) = self.zone(&zone.id).uncertain.clone().filter(|_| done) {
                self.landed(action, now);
            }
        }
    }

    fn checked(&mut self, zone: &ZoneId, result: CheckResult) {
        let check = &mut self.zone_mut(zone).check;
        check.running = false;
        check.result = Some(result);
    }

    /// Takes in a person's answer; no is the end.
    fn told(&mut self, yes: bool) -> Option<Outcome> {
        let Some(Question::Continue { zone, step }) = self.asked.take() else { return None };
        self.phase = Phase::Watching;
        if !yes {
            return Some(Outcome::Declined);
        }
        self.zone_mut(&zone).pause_allowed = Some(step);
        None
    }

    fn awaits(&mut self, awaited: Vec<Awaited>, step: &mut Step) {
        if self.awaited != awaited {
            self.awaited.clone_from(&awaited);
            step.events.push(Event::Waiting(awaited));
        }
    }

    fn end(&mut self, mut step: Step, outcome: Outcome) -> Step {
        self.phase = Phase::Ended;
        step.events.push(Event::Ended(outcome.clone()));
        Step { events: step.events, end: Some(outcome), ..Step::default() }
    }

    fn keep_time(&self, now: Moment, mut step: Step) -> Step {
        let earliest = [self.wake(now), self.retry_at.filter(|at| at.mono > now.mono), step.wake]
            .into_iter()
            .flatten()
            .chain([now.after(LOOK_AGAIN)])
            .min_by_key(|moment| moment.mono);
        step.wake = earliest;
        step
    }

    /// The check command is due for zones that are watched or wait for a person.
    fn due_checks(&mut self, scene: &Scene, now: Moment) -> Vec<CheckRequest> {
        if !self.settings().check {
            return Vec::new();
        }
        let group = self.group().clone();
        let mut due = Vec::new();
        for zone in &group.zones {
            let witness = &self.zone(&zone.id).witness;
            let stage = match zone_state(scene, &group, zone, Some(witness), now) {
                ZoneState::Soaking | ZoneState::NotReady { .. } if witness.soak.is_some() => {
                    CheckStage::Soak
                }
                ZoneState::Waiting { .. } => CheckStage::Pause,
                _ => continue,
            };
            let check = &mut self.zone_mut(&zone.id).check;
            let recent =
                check.asked.is_some_and(|asked| now.mono.saturating_sub(asked.mono) < CHECK_EVERY);
            if !check.running && !recent {
                check.running = true;
                check.asked = Some(now);
                due.push(CheckRequest { zone: zone.id.clone(), stage });
            }
        }
        due
    }
}
