//! The machine that promotes, against the model: what holds whatever people and faults do meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;

use super::support::at;
use crate::group::{Group, ZoneId, find_groups};
use crate::layout::{Spec, SpecZone, ring, zone_local};
use crate::promote::{
    Goal, Input, OnFailure, Outcome, Pauses, Planned, Run, Settings, Step, plan, step,
};
use crate::scene::{Key, Kind, Scene, VirtualService};
use crate::sim::{Act, By, Change, Face, Fault, ImageFate, World};
use crate::testing::{settings, spec};
use crate::time::Moment;
use crate::traffic::weight_in_force;
use crate::write::{Subresource, Write};
use crate::zone::ZoneFacts;

const WEIGHTS: [u32; 3] = [10, 50, 80];
const NEW: &str = "myapp:v2";
/// Far more looks than twenty minutes take.
const LOOKS: usize = 10_000;
/// How long a command that is started again gives the controller to notice a change.
const PATIENCE: Duration = Duration::from_secs(10);
/// How many schedules are tried; `make campaign` asks for more.
const SCHEDULES: u32 = 100;

fn schedules() -> ProptestConfig {
    let asked = std::env::var("CAMPAIGN").ok().and_then(|number| number.parse().ok());
    ProptestConfig { cases: asked.unwrap_or(SCHEDULES), ..ProptestConfig::default() }
}

/// A promotion in a world, with what happens to it at which second.
struct Play {
    world: World,
    run: Run,
    acts: Vec<(Duration, Happening)>,
    writes: Vec<Write>,
    /// What the watches go on to show while they are silent.
    silent: Option<Arc<Scene>>,
    /// The same of the VirtualServices' alone.
    silent_routes: Option<Kind<VirtualService>>,
}

#[derive(Debug, Clone)]
enum Happening {
    Act(Act),
    /// The next write fails in this way.
    Fault(Fault),
    /// The tool is killed, and the same command is started again.
    Crash,
    /// The watches fall silent without a word, or show everything again.
    Silence(bool),
    /// The same of the VirtualServices' alone.
    SilentRoutes(bool),
}

/// A group at its gates, asked to run the new image.
fn play(zones: usize, replicas: u32, in_ring: bool, seed: u64) -> Play {
    let letters = ["a", "b", "c", "d", "e", "f"];
    let zone = |short: &&str| SpecZone {
        short: (*short).to_owned(),
        topology: format!("us-east-1{short}"),
    };
    let spec = Spec {
        zones: letters[..zones].iter().map(zone).collect(),
        replicas,
        weights: WEIGHTS.to_vec(),
        pause: "20s".to_owned(),
        progress_deadline_seconds: 60,
        ..spec()
    };
    let manifests = if in_ring { ring(&spec) } else { zone_local(&spec) };
    let mut world = World::deploy(&manifests, at(), seed).unwrap();
    world.wait(Duration::from_mins(1));
    let group = find_groups(&world.scene()).remove(0);
    for zone in &group.zones {
        world.act(Act::SetImage(zone.rollout.clone(), NEW.to_owned())).unwrap();
    }
    world.wait(Duration::from_secs(30));
    let goal = Goal::in_flight(&world.scene(), &group).unwrap();
    let settings = Settings {
        order: group.zones.iter().map(|zone| zone.id.clone()).collect(),
        soak: Duration::from_secs(10),
        first_soak: Duration::from_secs(15),
        pauses: Pauses::Open,
        on_failure: OnFailure::AbortZone,
        timeout: Some(Duration::from_mins(20)),
        ..settings()
    };
    let run = Run::new(settings, group, goal, world.now());
    Play { world, run, acts: Vec::new(), writes: Vec::new(), silent: None, silent_routes: None }
}

impl Play {
    fn group(&self) -> Group {
        self.run.group().clone()
    }

    /// Drives the run to its end, as the driver does.
    fn drive(&mut self) -> Outcome {
        let start = self.world.now();
        let mut next = self.see();
        for _ in 0..LOOKS {
            if let Some(outcome) = next.end {
                return outcome;
            }
            if let Some(write) = next.write.take() {
                self.check_start(&write);
                let written = self.world.apply(&write);
                self.writes.push(write);
                next = self.give(Input::Written(written));
                continue;
            }
            if next.confirm {
                next = self.give(Input::Confirmed(self.scene()));
                continue;
            }
            let wake = next.wake.expect("a run that goes on says when it looks again");
            assert!(wake.mono > self.world.now().mono, "it would look for ever");
            next = self.pass(start, wake);
        }
        panic!(
            "after {LOOKS} looks there is no end, {:?} later",
            self.world.now().mono.saturating_sub(start.mono)
        )
    }

    /// Lets time pass until something happens, at most until then.
    fn pass(&mut self, start: Moment, wake: Moment) -> Step {
        let due = self.world.next_due().filter(|due| due.mono <= wake.mono);
        let act = self.acts.first().map(|(after, _)| start.after(*after));
        let act = act.filter(|act| act.mono <= due.unwrap_or(wake).mono);
        if let Some(at) = act {
            self.world.advance(at);
            match self.acts.remove(0).1 {
                // What it is about may be gone.
                Happening::Act(act) => drop(self.world.act(act)),
                Happening::Fault(fault) => self.world.fail_next_write(fault),
                Happening::Silence(falls) => self.silent = falls.then(|| self.scene()),
                Happening::SilentRoutes(falls) => {
                    self.silent_routes = falls.then(|| self.world.scene().routes);
                }
                Happening::Crash => {
                    if let Some(outcome) = self.start_again() {
                        return Step { end: Some(outcome), ..Step::default() };
                    }
                }
            }
            return self.see();
        }
        self.world.advance(due.unwrap_or(wake));
        match due {
            Some(_) => self.see(),
            None => self.give(Input::Tick),
        }
    }

    /// The same command again, which knows nothing of the run before. Returns how it ends if it does not
    /// begin.
    fn start_again(&mut self) -> Option<Outcome> {
        (self.silent, self.silent_routes) = (None, None);
        let give_up = self.world.now().after(PATIENCE);
        let settings = self.run.settings().clone();
        loop {
            let (scene, now) = (self.world.scene(), self.world.now());
            let group = find_groups(&scene).remove(0);
            let goal = Goal::in_flight(&scene, &group);
            match (plan(&scene, &group, &settings, goal.as_ref(), now), goal) {
                (Planned::Plan(_), Some(goal)) => {
                    self.run = Run::new(settings, group, goal, now);
                    return None;
                }
                (planned, _) if planned.awaits_controller() && now.mono < give_up.mono => {
                    self.world.wait(Duration::from_millis(500));
                }
                (Planned::Refused(blockers), _) => return Some(Outcome::Refused(blockers)),
                _ => return Some(Outcome::NothingToDo),
            }
        }
    }

    fn see(&mut self) -> Step {
        let mut scene = self.silent.clone().unwrap_or_else(|| self.scene());
        if let Some(routes) = &self.silent_routes {
            Arc::make_mut(&mut scene).routes = routes.clone();
        }
        self.give(Input::Seen { scene, unwatched: None })
    }

    fn give(&mut self, input: Input) -> Step {
        step(&mut self.run, input, self.world.now())
    }

    fn scene(&self) -> Arc<Scene> {
        Arc::new(self.world.scene())
    }

    /// Nothing else is on its way when we start a zone.
    fn check_start(&self, write: &Write) {
        let scene = self.world.scene();
        let group = self.group();
        let opens = write.patch().to_string().contains("/status/pauseConditions\"}");
        let own = group.zones.iter().find(|zone| zone.rollout == write.key);
        let Some(own) = own.filter(|_| opens) else { return };
        let started = |zone: &crate::group::Zone| {
            ZoneFacts::gather(&scene, zone).is_some_and(|facts| facts.has_started())
        };
        if started(own) {
            return;
        }
        for other in group.zones.iter().filter(|zone| zone.id != own.id) {
            assert!(!started(other), "zone {} was started beside {}", own.id, other.id);
            let serves = ZoneFacts::gather(&scene, other)
                .is_some_and(|facts| facts.stable_ready() >= facts.rollout.replicas());
            assert!(serves, "zone {} was started while {} did not serve", own.id, other.id);
        }
    }

    /// Done means: the new image, all pods, no traffic elsewhere.
    fn check_done(&self) {
        let scene = self.world.scene();
        for zone in &self.group().zones {
            let facts = ZoneFacts::gather(&scene, zone).unwrap();
            assert_eq!(facts.stable_version().as_deref(), Some(NEW), "zone {}", zone.id);
            assert!(facts.stable_ready() >= facts.rollout.replicas(), "zone {}", zone.id);
            assert_eq!(weight_in_force(&scene, facts.rollout).unwrap().highest, 0);
        }
    }

    /// Our writes move no step and no template but by ending a pause.
    fn check_steps(&self) {
        let mut last: BTreeMap<&Key, &Change> = BTreeMap::new();
        for change in self.world.history() {
            let Face::Rollout { step, current, .. } = &change.face else { continue };
            if let Some(Change { face: Face::Rollout { step: before, current: hash, .. }, .. }) =
                last.insert(&change.object, change)
                && change.by == By::Tool
            {
                assert_eq!((before, hash), (step, current), "{change:?}");
            }
        }
    }

    /// The weights that came into force in a zone's route, in order.
    fn weights(&self, zone: &ZoneId) -> Vec<u32> {
        let name = format!("zone-{zone}-route");
        let mut weights = Vec::new();
        for change in self.world.history() {
            let Face::Route(routes) = &change.face else { continue };
            let weight = routes.iter().find(|(route, _)| *route == name).unwrap().1[1];
            if weights.last() != Some(&weight) {
                weights.push(weight);
            }
        }
        weights
    }
}

#[test]
fn a_calm_promotion_brings_every_zone_through_every_weight() {
    for (zones, replicas, in_ring) in [(2, 1, true), (3, 3, true), (4, 2, false)] {
        let mut play = play(zones, replicas, in_ring, 7);
        assert_eq!(play.drive(), Outcome::Done);
        play.check_done();
        play.check_steps();
        assert_eq!(play.writes.len(), zones, "one write opens each gate");
        for zone in &play.group().zones {
            assert_eq!(play.weights(&zone.id), [0, 10, 50, 80, 100, 0], "zone {}", zone.id);
        }
    }
}

#[test]
fn a_version_that_crashes_stays_in_the_first_zone() {
    let mut play = play(3, 3, true, 1);
    play.world.act(Act::Image(NEW.to_owned(), ImageFate::Crashes)).unwrap();
    assert!(matches!(play.drive(), Outcome::ZoneFailed { .. }));
    assert_eq!(play.weights(&ZoneId("a".to_owned())), [0], "no client ever met it");
    let touched: BTreeSet<&str> = play.writes.iter().map(|write| write.key.name.as_str()).collect();
    assert_eq!(touched, BTreeSet::from(["test-a"]));
}

#[test]
fn a_controller_that_is_away_does_not_keep_a_run_for_ever() {
    let mut play = play(2, 1, true, 1);
    let lost = Act::Nodes { zone: "us-east-1a".to_owned(), up: false };
    play.acts = vec![
        (Duration::from_secs(7), Happening::Act(Act::Controller(false))),
        (Duration::from_secs(30), Happening::Act(lost)),
    ];
    assert!(matches!(play.drive(), Outcome::Stuck { .. }));
}

/// The watches are behind, and an answer was lost: what a fresh reading shows then is this run's own doing.
#[test]
fn a_lost_answer_is_no_act_of_somebody_else_while_the_watches_are_behind() {
    let mut play = play(2, 1, true, 0);
    play.acts =
        in_time(vec![(60, Happening::Fault(Fault::AnswerLost)), (70, Happening::Silence(true))]);
    assert_eq!(play.drive(), Outcome::Done);
}

/// Only the watch of the VirtualServices is behind, for longer than a weight may take: what it has not shown
/// is no reason to hold a zone.
#[test]
fn a_weight_that_one_watch_has_not_shown_holds_nothing() {
    let mut play = play(2, 1, true, 0);
    let silent = |falls| Happening::SilentRoutes(falls);
    play.acts =
        vec![(Duration::from_secs(15), silent(true)), (Duration::from_secs(38), silent(false))];
    play.drive();
    assert!(
        play.writes.iter().all(|write| write.subresource == Subresource::Status),
        "it was held"
    );
}

fn happening(zones: usize) -> impl Strategy<Value = Happening> {
    let zone = (0..zones).prop_map(|index| ["a", "b", "c", "d", "e", "f"][index].to_owned());
    (zone, 0..22_u8).prop_map(|(zone, kind)| {
        let key = Key::new("default", format!("test-{zone}"));
        let topology = format!("us-east-1{zone}");
        Happening::Act(match kind {
            0 => Act::Promote(key),
            1 => Act::PromoteFull(key),
            2 => Act::Abort(key),
            3 => Act::Retry(key),
            4 => Act::Undo(key),
            5 => Act::Pause(key, true),
            6 => Act::Pause(key, false),
            7 => Act::Scale(key, 4),
            8 => Act::SetImage(key, "myapp:v3".to_owned()),
            9 => Act::Image(NEW.to_owned(), ImageFate::Missing),
            10 => Act::Nodes { zone: topology, up: false },
            11 => Act::Nodes { zone: topology, up: true },
            12 => Act::Controller(false),
            13 => Act::Controller(true),
            14 => return Happening::Fault(Fault::Denied),
            15 => return Happening::Fault(Fault::Invalid),
            _ => return interruption(kind),
        })
    })
}

/// What delays a release and changes nothing about it.
fn interruption(kind: u8) -> Happening {
    match kind % 6 {
        0 => Happening::Fault(Fault::AnswerLost),
        1 => Happening::Fault(Fault::NotSent),
        2 => Happening::Fault(Fault::Lost),
        3 => Happening::Fault(Fault::Conflict),
        4 => Happening::Silence(true),
        _ => Happening::Crash,
    }
}

/// Silence ends by itself after a while, as a watch that the server has forgotten does.
fn in_time(happenings: Vec<(u64, Happening)>) -> Vec<(Duration, Happening)> {
    let ends = |at: &u64| (Duration::from_secs(at + 20), Happening::Silence(false));
    let mut all: Vec<(Duration, Happening)> = happenings
        .iter()
        .filter(|(_, it)| matches!(it, Happening::Silence(true)))
        .map(|(at, _)| ends(at))
        .collect();
    all.extend(happenings.into_iter().map(|(at, it)| (Duration::from_secs(at), it)));
    all.sort_by_key(|(at, _)| *at);
    all
}

proptest! {
    #![proptest_config(schedules())]

    #[test]
    fn whatever_happens_zones_are_started_one_by_one_and_done_is_true(
        zones in 2..=6_usize,
        replicas in 1..=6_u32,
        in_ring in any::<bool>(),
        seed in any::<u64>(),
        acts in prop::collection::vec((0..300_u64, happening(6)), 0..8),
    ) {
        let mut play = play(zones, replicas, in_ring, seed);
        play.acts = in_time(acts);
        if play.drive() == Outcome::Done {
            play.check_done();
        }
        play.check_steps();
    }

    #[test]
    fn interrupted_at_any_moment_it_comes_to_the_same_end(
        zones in 2..=4_usize,
        replicas in 1..=4_u32,
        in_ring in any::<bool>(),
        seed in any::<u64>(),
        kinds in prop::collection::vec((0..300_u64, (0..6_u8).prop_map(interruption)), 0..6),
    ) {
        let mut play = play(zones, replicas, in_ring, seed);
        play.acts = in_time(kinds);
        let outcome = play.drive();
        prop_assert!(matches!(outcome, Outcome::Done | Outcome::NothingToDo), "{:?}", outcome);
        play.check_done();
        play.check_steps();
        for zone in &play.group().zones {
            prop_assert_eq!(play.weights(&zone.id), [0, 10, 50, 80, 100, 0]);
        }
    }
}
