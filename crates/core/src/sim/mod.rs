//! A simulated cluster on a virtual clock: the Rollouts controller, ReplicaSets, pods and nodes, and
//! the mesh objects that the controller writes. It is synchronous and deterministic: the same scene,
//! seed and acts give the same history. It reads nothing but what is put into it, and refuses what it
//! cannot play ([`Unmodelled`]) instead of guessing.
//!
//! It mirrors argo-rollouts v1.9 for canary Rollouts that steer traffic by Istio subsets; each rule
//! names the controller function it mirrors. Left out are the controller's Events, its lag behind the
//! API server except for conflicts on shared mesh objects, and the selectors of the stable and canary
//! Services, which nobody reads where traffic is split by subsets.

mod act;
mod controller;
mod history;
mod manifests;
mod objects;
mod pods;
mod random;
mod shared;
pub mod story;
#[cfg(test)]
mod tests;
mod timers;
mod unmodelled;
mod write;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use serde_json::Value;

pub use act::{Act, ImageFate, NoSuchObject, Verdict};
pub use history::{By, Change, Face};
pub use shared::shared_rule;
pub use unmodelled::Unmodelled;
pub use write::Fault;

use self::controller::Controller;
use self::history::History;
use self::random::Random;
use self::timers::{Timer, Timers};
use crate::scene::{Coverage, Key, Scene};
use crate::time::Moment;

/// A simulated cluster.
#[derive(Debug, Clone)]
pub struct World {
    now: Moment,
    scene: Scene,
    random: Random,
    /// The last resource version that was given out.
    version: u64,
    timers: Timers,
    controller: Controller,
    /// The template that each ReplicaSet was made from, without what the controller adds to it.
    templates: BTreeMap<Key, Value>,
    images: BTreeMap<String, ImageFate>,
    verdicts: BTreeMap<Key, Verdict>,
    faults: VecDeque<Fault>,
    history: History,
}

impl World {
    /// A world that goes on from what was read of a cluster.
    ///
    /// # Errors
    /// If the scene is incomplete, or has something that is not modelled.
    pub fn from_scene(scene: &Scene, seed: u64) -> Result<Self, Unmodelled> {
        let now = unmodelled::check(scene)?;
        let mut world = Self {
            now,
            scene: scene.clone(),
            random: Random::new(seed),
            version: 0,
            timers: Timers::default(),
            controller: Controller::default(),
            templates: BTreeMap::new(),
            images: BTreeMap::new(),
            verdicts: BTreeMap::new(),
            faults: VecDeque::new(),
            history: History::default(),
        };
        world.adopt();
        Ok(world)
    }

    /// This moment.
    pub fn now(&self) -> Moment {
        self.now
    }

    /// When something happens next by itself, if anything does.
    pub fn next_due(&self) -> Option<Moment> {
        let due = self.timers.next()?;
        Some(self.now.after(due.saturating_sub(self.now.mono)))
    }

    /// Lets time pass; a moment in the past changes nothing.
    pub fn advance(&mut self, to: Moment) {
        while let Some((due, timer)) = self.timers.pop(to.mono) {
            self.pass(due);
            self.fire(timer);
        }
        self.pass(to.mono);
    }

    /// Lets this span of time pass.
    pub fn wait(&mut self, span: Duration) {
        self.advance(self.now.after(span));
    }

    fn pass(&mut self, until: Duration) {
        self.now = self.now.after(until.saturating_sub(self.now.mono));
    }

    fn fire(&mut self, timer: Timer) {
        match timer {
            Timer::Reconcile(rollout) => {
                self.controller.woken.remove(&rollout);
                self.reconcile(&rollout);
            }
            Timer::Again(rollout) => self.reconcile(&rollout),
            Timer::Judged(rollout) => self.end_analyses(&rollout),
            Timer::Schedule => self.schedule_all(),
            Timer::Started(pod) => self.started(&pod),
            Timer::Crashed(pod) => self.crashed(&pod),
            Timer::Evicted(pod) => self.evicted(&pod),
        }
    }

    /// Everything as it is now.
    pub fn scene(&self) -> Scene {
        let mut scene = self.scene.clone();
        for coverage in [
            &mut scene.rollouts.coverage,
            &mut scene.replica_sets.coverage,
            &mut scene.pods.coverage,
            &mut scene.nodes.coverage,
            &mut scene.services.coverage,
            &mut scene.routes.coverage,
            &mut scene.rules.coverage,
            &mut scene.autoscalers.coverage,
        ] {
            *coverage = Coverage::Complete(self.now);
        }
        scene
    }

    /// How often the controller has lost a race for a mesh object, and had to try again.
    pub fn conflicts(&self) -> u32 {
        self.controller.conflicts
    }

    /// What has changed since the beginning, in order.
    pub fn history(&self) -> &[Change] {
        self.history.changes()
    }
}
