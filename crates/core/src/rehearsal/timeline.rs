//! What happens when, zone by zone, and what it means for clients.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::exposure::{Share, exposure};
use crate::group::{Group, ZoneId};
use crate::promote::{Goal, Run, targets};
use crate::scene::Scene;
use crate::time::Moment;
use crate::zone::ZoneFacts;

/// What happens when.
#[derive(Debug, Clone, PartialEq)]
pub struct Timeline {
    /// When it begins.
    pub begins: Timestamp,
    /// When the last thing in it happens.
    pub ends: Timestamp,
    /// The zones, in the group's order.
    pub zones: Vec<ZoneTimeline>,
    /// How many clients are on the new version, whenever that changes.
    pub exposure: Vec<ExposurePoint>,
}

/// What happens to one zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ZoneTimeline {
    /// The zone.
    pub zone: ZoneId,
    /// Weights of its canary as they come into force, in order.
    pub weights: Vec<WeightPoint>,
    /// When its gate is opened, or its image set.
    pub started: Option<Timestamp>,
    /// When the new version is the stable one.
    pub promoted: Option<Timestamp>,
    /// When it has been watched for long enough.
    pub verified: Option<Timestamp>,
    /// Whether it was on the new version from the beginning.
    was_promoted: bool,
}

/// A weight that comes into force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WeightPoint {
    /// When.
    pub at: Timestamp,
    /// Percent.
    pub weight: u32,
}

/// How many clients are on the new version from a moment on.
#[derive(Debug, Clone, PartialEq)]
pub struct ExposurePoint {
    /// From when on.
    pub at: Timestamp,
    /// As things are then.
    pub now: Share,
    /// If the worst zone is lost then: which, and what that means.
    pub worst: Option<(ZoneId, Share)>,
}

impl Timeline {
    /// A timeline in which nothing has happened yet.
    pub(super) fn new(group: &Group, scene: &Scene, now: Moment) -> Self {
        let zone = |zone: &crate::group::Zone| ZoneTimeline {
            zone: zone.id.clone(),
            weights: Vec::new(),
            started: None,
            promoted: None,
            verified: None,
            was_promoted: ZoneFacts::gather(scene, zone)
                .is_some_and(|facts| facts.rollout.is_fully_promoted() && facts.is_observed()),
        };
        let zones = group.zones.iter().map(zone).collect();
        Self { begins: now.wall, ends: now.wall, zones, exposure: Vec::new() }
    }

    /// Takes in what is seen now.
    pub(super) fn look(
        &mut self,
        group: &Group,
        scene: &Scene,
        goal: &Goal,
        run: Option<&Run>,
        now: Moment,
    ) {
        let before = self.zones.clone();
        for (zone, timeline) in group.zones.iter().zip(&mut self.zones) {
            let Some(facts) = ZoneFacts::gather(scene, zone) else { continue };
            timeline.look(&facts, now);
            if let Some(run) = run {
                timeline.follow(run);
            }
        }
        if self.zones != before || self.exposure.is_empty() {
            self.ends = now.wall;
            self.expose(group, scene, goal, now);
        }
    }

    fn expose(&mut self, group: &Group, scene: &Scene, goal: &Goal, now: Moment) {
        let Some(exposure) = exposure(scene, group, &targets(scene, group, goal)) else { return };
        let reach = |share: &Share| share.new + share.unserved;
        let worst = worst(exposure.if_lost, reach);
        let point = ExposurePoint { at: now.wall, now: exposure.now, worst };
        let same = |last: &ExposurePoint| last.now == point.now && last.worst == point.worst;
        if !self.exposure.last().is_some_and(same) {
            self.exposure.push(point);
        }
    }
}

/// The loss by which most clients are on the new version or not served.
fn worst(
    if_lost: BTreeMap<ZoneId, Share>,
    reach: impl Fn(&Share) -> f64,
) -> Option<(ZoneId, Share)> {
    if_lost
        .into_iter()
        .reduce(|one, other| if reach(&other.1) > reach(&one.1) { other } else { one })
}

impl ZoneTimeline {
    fn look(&mut self, facts: &ZoneFacts<'_>, now: Moment) {
        let arrived = facts.rollout.is_fully_promoted() && facts.is_observed();
        self.was_promoted &= arrived;
        if arrived && !self.was_promoted {
            self.promoted.get_or_insert(now.wall);
        }
        let weight = facts.in_force.as_ref().map_or(0, |in_force| in_force.highest);
        let last = self.weights.last().map_or(0, |point| point.weight);
        if weight != last && self.promoted.is_none() {
            self.weights.push(WeightPoint { at: now.wall, weight });
        }
    }

    /// What a run knows better.
    fn follow(&mut self, run: &Run) {
        let record = run.zone(&self.zone);
        self.started = record.started().map(|moment| moment.wall);
        self.verified = record.verified().map(|moment| moment.wall);
    }
}
