//! What a promotion of *this* cluster would do: the machine that promotes, played against the simulated
//! cluster that goes on from what was read. Times are the model's: pauses are exact, pods get Ready as
//! fast as the model's do. What the model does not know is refused, not guessed.

mod timeline;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

pub use timeline::{ExposurePoint, Timeline, WeightPoint, ZoneTimeline};

use crate::group::{Group, Zone, ZoneId};
use crate::promote::{Goal, Input, Outcome, Pauses, Run, Settings, Step, step};
use crate::scene::Scene;
use crate::sim::{Act, Unmodelled, World};
use crate::template::Images;
use crate::time::Moment;
use crate::zone::ZoneFacts;

/// A release that takes longer than this is not played to its end.
const HORIZON: Duration = Duration::from_hours(14 * 24);
/// How long an expected image may take to arrive in the model.
const ARRIVES: Duration = Duration::from_secs(1);
/// Every rehearsal of the same scene is the same.
const SEED: u64 = 1;

/// A rehearsed promotion.
#[derive(Debug, Clone, PartialEq)]
pub struct Rehearsal {
    /// What happens when.
    pub timeline: Timeline,
    /// How it ends; nothing if it has not ended within two weeks.
    pub outcome: Option<Outcome>,
}

/// Plays a promotion that nothing forbids.
///
/// # Errors
/// If the scene has something that the model does not know.
pub fn rehearse(
    scene: &Scene,
    group: &Group,
    settings: &Settings,
    goal: &Goal,
) -> Result<Rehearsal, Unmodelled> {
    let mut world = World::from_scene(scene, SEED)?;
    if let Goal::Expected(images) = goal {
        arrive(&mut world, group, images);
    }
    // Nobody is asked in a rehearsal.
    let pauses = if settings.pauses == Pauses::Ask { Pauses::Stop } else { settings.pauses };
    let settings = Settings { pauses, check: false, ..settings.clone() };
    let run = Run::new(settings, group.clone(), goal.clone(), world.now());
    let timeline = Timeline::new(group, &world.scene(), world.now());
    let mut play = Play { world, run, timeline };
    let outcome = play.play();
    Ok(Rehearsal { timeline: play.timeline, outcome })
}

/// What zones do that nobody holds: until all are at rest or wait for a person.
///
/// # Errors
/// If the scene has something that the model does not know.
pub fn drift(scene: &Scene, group: &Group) -> Result<Timeline, Unmodelled> {
    let mut world = World::from_scene(scene, SEED)?;
    let end = world.now().after(HORIZON);
    let mut timeline = Timeline::new(group, &world.scene(), world.now());
    let Some(goal) = Goal::in_flight(scene, group) else { return Ok(timeline) };
    while let Some(due) = world.next_due().filter(|due| due.mono <= end.mono) {
        world.advance(due);
        let scene = world.scene();
        timeline.look(group, &scene, &goal, None, world.now());
        if group.zones.iter().all(|zone| rests(&scene, zone)) {
            break;
        }
    }
    Ok(timeline)
}

/// True if nothing more happens to a zone by itself.
fn rests(scene: &Scene, zone: &Zone) -> bool {
    ZoneFacts::gather(scene, zone).is_none_or(|facts| {
        let pause = matches!(facts.rollout.current_step(), Some(crate::scene::Step::Pause(None)));
        facts.rollout.is_fully_promoted() || facts.rollout.status.abort || pause
    })
}

/// The image is asked for everywhere, as by a sync from Git.
fn arrive(world: &mut World, group: &Group, images: &BTreeMap<ZoneId, Images>) {
    world.wait(ARRIVES);
    for zone in &group.zones {
        for image in images.get(&zone.id).into_iter().flat_map(|images| images.values()) {
            // A Rollout that is not there is a blocker, found before.
            drop(world.act(Act::SetImage(zone.rollout.clone(), image.clone())));
        }
    }
}

/// A run against a world.
struct Play {
    world: World,
    run: Run,
    timeline: Timeline,
}

impl Play {
    fn play(&mut self) -> Option<Outcome> {
        let end = self.world.now().after(HORIZON);
        let mut next = self.see();
        while self.world.now().mono < end.mono {
            if let Some(outcome) = next.end {
                self.look();
                return Some(outcome);
            }
            next = if let Some(write) = next.write.take() {
                let written = self.world.apply(&write);
                self.give(Input::Written(written))
            } else if next.confirm {
                self.give(Input::Confirmed(Arc::new(self.world.scene())))
            } else {
                let wake = next.wake.unwrap_or(end);
                self.pass(wake)
            };
        }
        None
    }

    /// Lets time pass until something happens, at most until then.
    fn pass(&mut self, wake: Moment) -> Step {
        let due = self.world.next_due().filter(|due| due.mono <= wake.mono);
        self.world.advance(due.unwrap_or(wake));
        match due {
            Some(_) => self.see(),
            None => self.give(Input::Tick),
        }
    }

    fn see(&mut self) -> Step {
        let scene = Arc::new(self.world.scene());
        let step = self.give(Input::Seen { scene: Arc::clone(&scene), unwatched: None });
        self.look_at(&scene);
        step
    }

    fn look(&mut self) {
        let scene = self.world.scene();
        self.look_at(&scene);
    }

    fn look_at(&mut self, scene: &Scene) {
        let run = &self.run;
        self.timeline.look(run.group(), scene, run.goal(), Some(run), self.world.now());
    }

    fn give(&mut self, input: Input) -> Step {
        step(&mut self.run, input, self.world.now())
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use jiff::Timestamp;
    use serde_json::Value;

    use super::*;
    use crate::group::find_groups;
    use crate::layout::{Spec, ring};
    use crate::testing::{settings, spec};

    /// The ring on `myapp:v1`, asked for `myapp:v2` everywhere.
    fn asked(manifests: &[Value]) -> World {
        let mut world =
            World::deploy(manifests, "2026-11-30T12:00:00Z".parse().unwrap(), 7).unwrap();
        world.wait(Duration::from_mins(2));
        for zone in &find_groups(&world.scene())[0].zones {
            world.act(Act::SetImage(zone.rollout.clone(), "myapp:v2".to_owned())).unwrap();
        }
        world.wait(Duration::from_secs(30));
        world
    }

    fn told(timeline: &Timeline) -> String {
        let mut told = String::new();
        let span = |at: Timestamp| {
            crate::time::format_duration(at.duration_since(timeline.begins).unsigned_abs())
        };
        for zone in &timeline.zones {
            write!(told, "{}:", zone.zone).unwrap();
            for point in &zone.weights {
                write!(told, " {} % at {}", point.weight, span(point.at)).unwrap();
            }
            let ends = [("promoted", zone.promoted), ("verified", zone.verified)];
            for (what, at) in ends.into_iter().filter_map(|(what, at)| Some((what, at?))) {
                write!(told, ", {what} {}", span(at)).unwrap();
            }
            told.push('\n');
        }
        told
    }

    #[test]
    fn gated_zones_go_one_after_another() {
        let world = asked(&ring(&Spec { weights: vec![50], pause: "5m".to_owned(), ..spec() }));
        let (scene, settings) = (world.scene(), settings());
        let group = find_groups(&scene).remove(0);
        let goal = Goal::in_flight(&scene, &group).unwrap();
        let rehearsal = rehearse(&scene, &group, &settings, &goal).unwrap();
        assert_eq!(rehearsal.outcome, Some(Outcome::Done));
        insta::assert_snapshot!(told(&rehearsal.timeline), @r"
        a: 50 % at 1s, promoted 5m2s, verified 5m32s
        b: 50 % at 5m32s, promoted 10m33s, verified 10m53s
        c: 50 % at 10m54s, promoted 15m55s, verified 16m15s
        ");
        let highest = rehearsal.timeline.exposure.iter().map(|point| point.now.new);
        assert!(highest.fold(0.0, f64::max) > 0.99);
        assert_eq!(rehearse(&scene, &group, &settings, &goal).unwrap(), rehearsal);
    }

    #[test]
    fn zones_with_timed_pauses_alone_drift_side_by_side() {
        let spec = Spec { gate: false, weights: vec![50], pause: "5m".to_owned(), ..spec() };
        let world = asked(&ring(&spec));
        let scene = world.scene();
        let timeline = drift(&scene, &find_groups(&scene)[0]).unwrap();
        insta::assert_snapshot!(told(&timeline), @r"
        a: 50 % at 0s, promoted 4m32s
        b: 50 % at 0s, promoted 4m32s
        c: 50 % at 0s, promoted 4m31s
        ");
    }
}
