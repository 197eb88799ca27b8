//! The memory of a run: what was pinned, what was seen, what was done. The cluster decides; this only
//! remembers what the cluster cannot tell.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::group::{Group, Zone, ZoneId};
use crate::promote::decide::past;
use crate::promote::event::{Event, SoakChange, ZoneGlimpse};
use crate::promote::{Awaited, CheckResult, Failure, Goal, Question, Settings};
use crate::proof::{Soak, Target, Unmet, Verdict, Witness};
use crate::scene::Scene;
use crate::time::Moment;
use crate::write::Action;
use crate::zone::{ZoneFacts, zone_state};

/// How long a Rollout has to be untouched before a pause of it is ended. A controller that is still
/// writing may miss the end of the pause ([`Rollout::awaits_controller`]).
///
/// [`Rollout::awaits_controller`]: crate::scene::Rollout::awaits_controller
const REST: Duration = Duration::from_secs(1);

/// How long a route may take to follow a promotion before people are told.
const SETTLING: Duration = Duration::from_secs(5);

/// A run and all it remembers.
#[derive(Debug, Clone)]
pub struct Run {
    settings: Settings,
    group: Group,
    goal: Goal,
    zones: BTreeMap<ZoneId, ZoneRun>,
    pub(super) started: Moment,
    pub(super) phase: Phase,
    /// The last scene, to be looked at again when time has passed.
    pub(super) scene: Option<Arc<Scene>>,
    /// Whether anything was written.
    pub(super) wrote: bool,
    pub(super) stopping: bool,
    /// Whether people were told that the cluster cannot be seen.
    blind: bool,
    pub(super) asked: Option<Question>,
    pub(super) awaited: Vec<Awaited>,
    /// Refused writes in a row.
    pub(super) refusals: u32,
    pub(super) retry_at: Option<Moment>,
    /// Why the last reading failed, as people were told.
    pub(super) unread: Option<String>,
}

/// Where the run is between looking and acting.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Phase {
    /// It watches.
    Watching,
    /// It wants to act and has asked for a fresh reading.
    Confirming,
    /// A write is under way.
    Writing(Action),
    /// A person was asked.
    Asking,
    /// It is over.
    Ended,
}

/// What a run remembers of one zone.
#[derive(Debug, Clone, Default)]
pub struct ZoneRun {
    /// What the zone is brought to, once its template is known.
    pub target: Option<Target>,
    /// What was seen of it.
    pub witness: Witness,
    /// Whether this run started it, or found it started.
    pub(super) started: Option<Moment>,
    /// When it was seen on the new version first.
    pub(super) promoted: Option<Moment>,
    /// When it was verified first.
    pub(super) verified: Option<Moment>,
    /// What this run did to it, and when it was answered.
    pub(super) last_act: Option<(Action, Moment)>,
    /// What this run may have done to it: the answer was lost.
    pub(super) uncertain: Option<Action>,
    /// Whether our hold was seen.
    pub(super) held: bool,
    pub(super) aborted: bool,
    /// Whether what this run set was seen in the template.
    pub(super) template_set: bool,
    /// Since when something that should end soon has lasted.
    pub(super) waiting_since: Option<(WaitKind, Moment)>,
    pub(super) check: Check,
    /// Why it counts as failed, once something was done about that.
    pub(super) failure: Option<Failure>,
    /// Why it seemed to have failed at the last look.
    pub(super) suspected: Option<Failure>,
    /// The step at which a person allowed to go on.
    pub(super) pause_allowed: Option<usize>,
    /// When it last looked different from before.
    pub(super) changed: Option<Moment>,
    /// Since when the controller has had something to notice.
    pub(super) unheard: Option<Moment>,
    /// When it was touched for that, and how often.
    pub(super) nudged: Option<(Moment, u32)>,
    /// The Rollout's resource version, and the moment at which it counts as at rest.
    rest: Option<(String, Moment)>,
    glimpse: Option<ZoneGlimpse>,
    /// What people were told last about its soak.
    told: Option<Verdict>,
}

/// Waits with a limit of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WaitKind {
    Others,
    Sync,
    TakeBack,
}

/// The check command of one zone.
#[derive(Debug, Clone, Default)]
pub(super) struct Check {
    pub(super) asked: Option<Moment>,
    pub(super) running: bool,
    pub(super) result: Option<CheckResult>,
}

impl Run {
    /// A run that has done nothing yet.
    pub fn new(settings: Settings, group: Group, goal: Goal, now: Moment) -> Self {
        let zones = group.zones.iter().map(|zone| (zone.id.clone(), ZoneRun::default())).collect();
        Self {
            settings,
            group,
            goal,
            zones,
            started: now,
            phase: Phase::Watching,
            scene: None,
            wrote: false,
            stopping: false,
            blind: false,
            asked: None,
            awaited: Vec::new(),
            refusals: 0,
            retry_at: None,
            unread: None,
        }
    }

    /// What was asked for.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The group.
    pub fn group(&self) -> &Group {
        &self.group
    }

    /// The version it is brought to.
    pub fn goal(&self) -> &Goal {
        &self.goal
    }

    /// What is remembered of a zone of the group.
    ///
    /// # Panics
    /// If the group has no such zone.
    pub fn zone(&self, id: &ZoneId) -> &ZoneRun {
        self.zones.get(id).expect("a run has a record of every zone of its group")
    }

    pub(super) fn zone_mut(&mut self, id: &ZoneId) -> &mut ZoneRun {
        self.zones.get_mut(id).expect("a run has a record of every zone of its group")
    }

    /// What is awaited, as of the last decision.
    pub fn awaited(&self) -> &[Awaited] {
        &self.awaited
    }

    /// Whether the limit for the whole run has passed.
    pub(super) fn is_out_of_time(&self, now: Moment) -> bool {
        self.settings.timeout.is_some_and(|limit| past(self.started, limit, now))
    }

    /// When the run began.
    pub fn started(&self) -> Moment {
        self.started
    }

    /// Whether anything was written.
    pub fn has_written(&self) -> bool {
        self.wrote
    }

    /// The last scene that was seen.
    pub fn scene(&self) -> Option<&Scene> {
        self.scene.as_deref()
    }

    /// How long this zone has to be watched.
    pub fn soak_of(&self, id: &ZoneId) -> Duration {
        if self.settings.order.first() == Some(id) {
            self.settings.first_soak
        } else {
            self.settings.soak
        }
    }

    /// What a zone looks like now, if its Rollout is known.
    pub fn glimpse(&self, scene: &Scene, zone: &Zone, now: Moment) -> Option<ZoneGlimpse> {
        let facts = ZoneFacts::gather(scene, zone)?;
        let record = self.zone(&zone.id);
        Some(ZoneGlimpse {
            zone: zone.id.clone(),
            state: zone_state(scene, &self.group, zone, Some(&record.witness), now),
            step: facts.rollout.step_index(),
            steps: facts.rollout.steps().len(),
            label: facts.rollout.current_step().map(crate::scene::Step::label),
            wanted: if facts.is_in_flight() { facts.rollout.desired_weight() } else { 0 },
            in_force: facts.in_force.as_ref().ok().map(|in_force| in_force.highest),
            stable_ready: facts.stable_ready(),
            canary_ready: facts.canary.as_ref().map_or(0, crate::zone::Workload::ready),
        })
    }

    /// Takes in a scene: pins targets, follows the weights, looks at the soaks. Returns what changed.
    pub(super) fn observe(&mut self, scene: &Scene, now: Moment) -> Vec<Event> {
        let group = self.group.clone();
        let mut events: Vec<Event> = self.sight(scene).into_iter().collect();
        for zone in &group.zones {
            self.pin(scene, zone);
            self.hear(scene, zone, now);
            self.follow(scene, zone, now);
            events.extend(self.look(scene, zone, now));
            events.extend(self.changed(scene, zone, now));
        }
        events
    }

    /// Tells when the cluster gets out of sight, and when it is back; not why each kind is.
    fn sight(&mut self, scene: &Scene) -> Option<Event> {
        let missing = scene.out_of_sight();
        let was_blind = std::mem::replace(&mut self.blind, missing.is_some());
        (self.blind != was_blind).then_some(Event::Sight(missing))
    }

    /// Pins the target hash when the zone's template first is what the goal asks for and the
    /// controller has seen it.
    fn pin(&mut self, scene: &Scene, zone: &Zone) {
        let Some(facts) = ZoneFacts::gather(scene, zone) else { return };
        let rollout = facts.rollout;
        let wanted = self.goal.is_asked_for(zone, rollout);
        let asked_for = wanted && facts.is_observed();
        let record = self.zones.get_mut(&zone.id).expect("every zone has a record");
        record.held |=
            rollout.spec.paused && matches!(record.last_act, Some((Action::Hold { .. }, _)));
        record.template_set |= wanted
            && matches!(
                record.last_act,
                Some((Action::SetImage { .. } | Action::Restore { .. }, _))
            );
        let hash = &rollout.status.current_pod_hash;
        if record.target.is_none() && asked_for && !hash.is_empty() {
            record.target = Some(Target {
                hash: hash.clone(),
                replicas: rollout.replicas(),
                healthy_seen: false,
            });
        }
        let promoted = rollout.is_fully_promoted() && facts.is_observed();
        if let Some(target) = record.target.as_mut().filter(|target| target.hash == *hash) {
            if !promoted {
                target.replicas = rollout.replicas();
            }
            target.healthy_seen |= promoted && rollout.status.phase == "Healthy";
        }
    }

    /// Notes when the Rollout was written last, and whether the controller has noticed everything.
    fn hear(&mut self, scene: &Scene, zone: &Zone, now: Moment) {
        let Some(facts) = ZoneFacts::gather(scene, zone) else { return };
        let rollout = facts.rollout;
        let version = &rollout.meta.resource_version;
        let record = self.zone_mut(&zone.id);
        if record.rest.as_ref().is_none_or(|(seen, _)| seen != version) {
            // What was written before this run began is dated by the pause it waits in.
            let paused = rollout.status.pause_conditions.first().and_then(|pause| pause.start_time);
            let age = match &record.rest {
                None => paused.map_or(Duration::ZERO, |start| now.since(start)),
                Some(_) => Duration::ZERO,
            };
            record.rest = Some((version.clone(), now.after(REST.saturating_sub(age))));
        }
        if facts.awaits_controller() {
            record.unheard.get_or_insert(now);
        } else {
            (record.unheard, record.nudged) = (None, None);
        }
    }

    /// Weights have to follow the steps on the way forward only: on the way back the controller may skip
    /// them all.
    fn follow(&mut self, scene: &Scene, zone: &Zone, now: Moment) {
        if self.goal.goes_back() {
            return;
        }
        let Some(facts) = ZoneFacts::gather(scene, zone) else { return };
        let in_force = facts.in_force.as_ref().ok().map(|in_force| in_force.lowest);
        self.zone_mut(&zone.id).witness.passage.observe(facts.rollout, in_force, now);
    }

    /// Looks at a promoted zone and lets its soak take it in.
    fn look(&mut self, scene: &Scene, zone: &Zone, now: Moment) -> Vec<Event> {
        let required = self.soak_of(&zone.id);
        let needs_check = self.settings.check;
        if self.settings.skipped.contains(&zone.id) {
            return Vec::new();
        }
        let record = self.zone_mut(&zone.id);
        let promoted = zone.rollout(scene).is_some_and(|rollout| {
            rollout.is_observed()
                && rollout.is_fully_promoted()
                && record
                    .target
                    .as_ref()
                    .is_some_and(|target| target.hash == rollout.status.stable_rs)
        });
        let Some(target) = record.target.clone().filter(|_| promoted) else { return Vec::new() };
        if record.witness.soak.is_none() {
            record.promoted = Some(now);
            record.check = Check::default();
        }
        let silent = needs_check.then(|| record.check.silence()).flatten();
        let soak = record.witness.soak.get_or_insert_with(|| Soak::new(&target.hash, required));
        let was_over = soak.is_over();
        soak.look(scene, zone, &target, silent, now);
        let mut events = Vec::new();
        if let Some(verdict) = news(soak, now).filter(|news| record.told.as_ref() != Some(news)) {
            let change = match &verdict {
                Verdict::Counting => SoakChange::Counting,
                Verdict::Halted(unmet) => SoakChange::Halted(unmet.clone()),
                Verdict::Broken(unmet) => SoakChange::Broken(unmet.clone()),
            };
            record.told = Some(verdict);
            events.push(Event::Soak { zone: zone.id.clone(), change });
        }
        if soak.is_over() && !was_over && record.verified.is_none() {
            record.verified = Some(now);
            events.push(Event::Soak { zone: zone.id.clone(), change: SoakChange::Over });
        }
        events
    }

    fn changed(&mut self, scene: &Scene, zone: &Zone, now: Moment) -> Option<Event> {
        let glimpse = self.glimpse(scene, zone, now)?;
        let record = self.zone_mut(&zone.id);
        if record.glimpse.as_ref() == Some(&glimpse) {
            return None;
        }
        let was_waiting =
            record.glimpse.as_ref().is_some_and(|before| before.state == glimpse.state);
        if matches!(glimpse.state, crate::zone::ZoneState::Waiting { .. }) && !was_waiting {
            // A verdict from before this pause does not count for it.
            record.check = Check::default();
        }
        record.glimpse = Some(glimpse.clone());
        record.changed = Some(now);
        Some(Event::Zone(glimpse))
    }

    /// Since when a zone has looked as it does in this scene. Nothing if the watches have shown something
    /// else last: a fresh reading is ahead of them.
    pub(super) fn quiet_since(&self, scene: &Scene, zone: &Zone, now: Moment) -> Option<Moment> {
        let record = self.zone(&zone.id);
        record.changed.filter(|_| self.glimpse(scene, zone, now) == record.glimpse)
    }

    /// Forgets what was seen of the weights, and what was counted of the soaks, because changes may
    /// have been missed.
    pub(super) fn interrupted(&mut self, unwatched: Duration) {
        for record in self.zones.values_mut() {
            record.witness.passage.interrupt();
            if let Some(soak) = &mut record.witness.soak {
                soak.unwatched(unwatched);
            }
        }
    }

    /// The earliest moment at which something changes by itself.
    pub(super) fn wake(&self, now: Moment) -> Option<Moment> {
        self.zones
            .values()
            .flat_map(|record| {
                [
                    record.witness.soak.as_ref().and_then(Soak::wake),
                    record.witness.passage.wake(),
                    record.restless_until(now),
                ]
            })
            .flatten()
            // What is past changes nothing more; a soak that is over says so for ever.
            .filter(|moment| moment.mono > now.mono)
            .min_by_key(|moment| moment.mono)
    }

    /// Remembers since when a wait of this kind has lasted; returns that moment.
    pub(super) fn waiting(&mut self, id: &ZoneId, kind: WaitKind, now: Moment) -> Moment {
        let record = self.zone_mut(id);
        match record.waiting_since {
            Some((known, since)) if known == kind => since,
            _ => {
                record.waiting_since = Some((kind, now));
                now
            }
        }
    }

    /// The wait of any kind is over.
    pub(super) fn stopped_waiting(&mut self, id: &ZoneId) {
        self.zone_mut(id).waiting_since = None;
    }
}

impl Check {
    /// Why there is no good verdict, if there is none.
    fn silence(&self) -> Option<Unmet> {
        match &self.result {
            Some(CheckResult::Good) => None,
            Some(CheckResult::Bad(why) | CheckResult::Silent(why)) => {
                Some(Unmet::CheckSilent { why: why.clone() })
            }
            None => Some(Unmet::CheckSilent { why: "it has not run yet".to_owned() }),
        }
    }
}

/// What the last look found, if it is worth a word. Right after a promotion the route follows within
/// a moment; only if it does not is that news.
fn news(soak: &Soak, now: Moment) -> Option<Verdict> {
    let late =
        soak.halted_since().is_some_and(|since| now.mono.saturating_sub(since.mono) >= SETTLING);
    soak.verdict().filter(|_| soak.has_begun() || late).cloned()
}

impl ZoneRun {
    /// The moment from which a pause of the zone may be ended, if that is still to come.
    pub(super) fn restless_until(&self, now: Moment) -> Option<Moment> {
        let (_, until) = self.rest.as_ref()?;
        Some(*until).filter(|until| until.mono > now.mono)
    }

    /// When this run, or somebody before it, started the zone.
    pub fn started(&self) -> Option<Moment> {
        self.started
    }

    /// When the zone was seen on the new version first.
    pub fn promoted(&self) -> Option<Moment> {
        self.promoted
    }

    /// When the zone was verified first.
    pub fn verified(&self) -> Option<Moment> {
        self.verified
    }
}
