//! Telling a story in a world.

use std::time::Duration;

use jiff::Timestamp;

use super::{Deed, LONG, REST, ROLLOUT, Record, Recorder, SETTLED, Story, When, beginning};
use crate::scene::{Key, Rollout};
use crate::sim::{Act, ImageFate, World};
use crate::traffic::weight_in_force;

/// Plays a story in a world and records it.
///
/// # Errors
/// The beat that never came.
pub fn play(story: &Story, seed: u64) -> Result<Record, String> {
    let manifests = beginning(story, "default");
    let mut world = World::deploy(&manifests, Timestamp::UNIX_EPOCH, seed)
        .map_err(|unmodelled| unmodelled.to_string())?;
    for (tag, fate) in [
        ("myapp:v2-pull-fail", ImageFate::Missing),
        ("myapp:v2-never-ready", ImageFate::NeverReady),
    ] {
        world.act(Act::Image(tag.to_owned(), fate)).map_err(|gone| gone.to_string())?;
    }
    if let Some(verdict) = story.analysis {
        world.act(Act::Judge(zone_a(), verdict)).map_err(|gone| gone.to_string())?;
    }
    world.wait(Duration::from_mins(1));
    let from = world.history().len();
    for beat in &story.beats {
        wait(&mut world, beat.when).ok_or_else(|| format!("{}: {beat:?}", story.name))?;
        world.wait(SETTLED);
        do_it(&mut world, beat.deed);
    }
    wait(&mut world, story.end).ok_or_else(|| format!("{}: no end", story.name))?;
    world.wait(REST);
    let mut recorder = Recorder::of(story);
    let (before, told) = world.history().split_at(from);
    for change in before {
        recorder.take(&change.object.name, &change.face);
    }
    recorder.begin();
    for change in told {
        recorder.take(&change.object.name, &change.face);
    }
    Ok(recorder.record().clone())
}

fn zone_a() -> Key {
    Key::new("default", ROLLOUT)
}

fn wait(world: &mut World, when: When) -> Option<()> {
    let start = world.now();
    while !is(world, when, world.now().mono.saturating_sub(start.mono)) {
        if world.now().mono.saturating_sub(start.mono) > LONG {
            return None;
        }
        world.wait(Duration::from_millis(50));
    }
    Some(())
}

fn is(world: &World, when: When, waited: Duration) -> bool {
    let scene = world.scene();
    let Some(rollout) = scene.rollouts.get(&zone_a()) else { return false };
    match when {
        When::Now => true,
        When::After(seconds) => waited >= Duration::from_secs(seconds),
        When::Weight(weight) => {
            weight_in_force(&scene, rollout).is_ok_and(|in_force| in_force.highest == weight)
        }
        _ => rollout_is(rollout, when),
    }
}

/// Whether a condition that is about the Rollout alone is true.
pub fn rollout_is(rollout: &Rollout, when: When) -> bool {
    let status = &rollout.status;
    match when {
        When::Pause(step) => {
            rollout.is_observed()
                && status.current_step_index == Some(step)
                && !status.pause_conditions.is_empty()
        }
        When::Step(step) => status.current_step_index == Some(step),
        When::Phase(phase) => {
            let settled = phase != "Healthy" || rollout.is_fully_promoted();
            rollout.is_observed() && status.phase == phase && settled
        }
        When::Now | When::Weight(_) | When::After(_) => false,
    }
}

fn do_it(world: &mut World, deed: Deed) {
    let key = zone_a();
    let act = match deed {
        Deed::Image(image) => Act::SetImage(key, image.to_owned()),
        Deed::Promote => Act::Promote(key),
        Deed::PromoteFull => Act::PromoteFull(key),
        Deed::Abort => Act::Abort(key),
        Deed::Retry => Act::Retry(key),
        Deed::Undo => Act::Undo(key),
        Deed::Hold(hold) => Act::Pause(key, hold),
        Deed::Scale(replicas) => Act::Scale(key, replicas),
        Deed::Unready(count) => return ready(world, count, false),
        Deed::ReadyAgain => return ready(world, usize::MAX, true),
    };
    // Every story is about a Rollout that is there.
    let _there = world.act(act);
}

fn ready(world: &mut World, count: usize, ready: bool) {
    let Some(rollout) = world.rollout(&zone_a()) else { return };
    let stable = world.stable_replica_set(&rollout).and_then(|key| world.replica_set(&key));
    for pod in stable.map(|stable| world.pods_of(&stable)).into_iter().flatten().take(count) {
        let _there = world.act(Act::Ready(pod.meta.key(), ready));
    }
}
