//! Whether a zone may be started: only while every other zone is verified, or waiting and serving,
//! or left out by name.

use std::fmt;

use crate::group::{Group, Zone, ZoneId};
use crate::promote::run::Run;
use crate::proof::{Proof, Unmet, verify};
use crate::scene::Scene;
use crate::time::Moment;
use crate::zone::{ZoneFacts, ZoneState, worst_trouble, zone_state};

/// What another zone's state allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// It is on the new version and was verified.
    Verified(Proof),
    /// It has not been started, and its stable pods serve.
    Serving(ZoneId),
    /// It was left out by name.
    Skipped(ZoneId),
    /// It waits to go back to an earlier version itself, and need not be well.
    Awaiting(ZoneId),
}

/// That a zone may be started. Only [`clear`] makes one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clearance {
    zone: ZoneId,
    others: Vec<Standing>,
}

impl Clearance {
    /// The zone that may be started.
    pub fn zone(&self) -> &ZoneId {
        &self.zone
    }

    /// Why: the standing of every other zone of the group.
    pub fn others(&self) -> &[Standing] {
        &self.others
    }
}

/// What another zone's state forbids.
#[derive(Debug, Clone, PartialEq)]
pub struct Obstacle {
    /// The other zone.
    pub zone: ZoneId,
    /// What it is doing.
    pub state: ZoneState,
    /// What is missing, if it can be said.
    pub unmet: Option<Unmet>,
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.unmet {
            Some(unmet) => write!(f, "zone {}: {unmet}", self.zone),
            None => write!(f, "zone {} is in state {}", self.zone, self.state.name()),
        }
    }
}

/// Asks this zone whether it is well enough to be started, and all others whether they allow it.
///
/// # Errors
/// The zones that forbid it; never empty.
pub fn clear(
    run: &Run,
    scene: &Scene,
    zone: &ZoneId,
    now: Moment,
) -> Result<Clearance, Vec<Obstacle>> {
    let others = run.group().others(zone);
    let own = own_obstacle(run, scene, zone, now);
    agreed(zone, own, others.map(|other| standing(run, scene, other, now)))
}

/// The same for what a person does to a zone, of which nothing is remembered. What does not make the zone
/// move asks nobody.
///
/// # Errors
/// The zones that forbid it; never empty.
pub fn clear_by_hand(
    scene: &Scene,
    group: &Group,
    zone: &ZoneId,
    moves: bool,
    now: Moment,
) -> Result<Clearance, Vec<Obstacle>> {
    let others = group.others(zone).filter(|_| moves);
    agreed(zone, None, others.map(|other| standing_by_itself(scene, group, other, now)))
}

/// A clearance if nothing is in the way: neither of the zone's own, nor of the others.
fn agreed(
    zone: &ZoneId,
    own: Option<Obstacle>,
    standings: impl Iterator<Item = Result<Standing, Obstacle>>,
) -> Result<Clearance, Vec<Obstacle>> {
    let (mut others, mut obstacles) = (Vec::new(), Vec::from_iter(own));
    for standing in standings {
        match standing {
            Ok(standing) => others.push(standing),
            Err(obstacle) => obstacles.push(obstacle),
        }
    }
    if obstacles.is_empty() { Ok(Clearance { zone: zone.clone(), others }) } else { Err(obstacles) }
}

fn standing_by_itself(
    scene: &Scene,
    group: &Group,
    zone: &Zone,
    now: Moment,
) -> Result<Standing, Obstacle> {
    let state = zone_state(scene, group, zone, None, now);
    let unmet = match &state {
        ZoneState::Held { .. } if has_moved(scene, zone) => None,
        ZoneState::Gate { .. }
        | ZoneState::Held { .. }
        | ZoneState::Stable
        | ZoneState::AwaitingSync
        | ZoneState::Promoted => match serving(scene, zone) {
            Ok(standing) => return Ok(standing),
            Err(unmet) => Some(unmet),
        },
        _ => None,
    };
    Err(Obstacle { zone: zone.id.clone(), state, unmet })
}

/// A zone that is unwell before its update would only look worse in it.
fn own_obstacle(run: &Run, scene: &Scene, id: &ZoneId, now: Moment) -> Option<Obstacle> {
    if run.goal().goes_back() {
        return None;
    }
    let zone = run.group().zone(id)?;
    let unmet = serving(scene, zone).err()?;
    let state = zone_state(scene, run.group(), zone, Some(&run.zone(id).witness), now);
    Some(Obstacle { zone: id.clone(), state, unmet: Some(unmet) })
}

fn standing(run: &Run, scene: &Scene, zone: &Zone, now: Moment) -> Result<Standing, Obstacle> {
    if run.settings().skipped.contains(&zone.id) {
        return Ok(Standing::Skipped(zone.id.clone()));
    }
    let record = run.zone(&zone.id);
    let state = zone_state(scene, run.group(), zone, Some(&record.witness), now);
    let obstacle = |unmet| Obstacle { zone: zone.id.clone(), state: state.clone(), unmet };
    let on_goal = zone.rollout(scene).is_some_and(|rollout| run.goal().is_asked_for(zone, rollout));
    match &state {
        ZoneState::Verified => {
            let target = record.target.as_ref().ok_or_else(|| obstacle(None))?;
            let unmet = |unmet: Vec<Unmet>| obstacle(unmet.into_iter().next());
            verify(scene, zone, target).map(Standing::Verified).map_err(unmet)
        }
        ZoneState::Gate { .. } => serving(scene, zone).map_err(|unmet| obstacle(Some(unmet))),
        ZoneState::Held { ours: true } if !has_moved(scene, zone) => {
            serving(scene, zone).map_err(|unmet| obstacle(Some(unmet)))
        }
        ZoneState::Stable
        | ZoneState::AwaitingSync
        | ZoneState::Promoted
        | ZoneState::NotReady { .. }
            if !on_goal && goes_back(run, zone) =>
        {
            Ok(Standing::Awaiting(zone.id.clone()))
        }
        ZoneState::Stable | ZoneState::AwaitingSync | ZoneState::NotReady { .. } if !on_goal => {
            serving(scene, zone).map_err(|unmet| obstacle(Some(unmet)))
        }
        _ => Err(obstacle(None)),
    }
}

fn goes_back(run: &Run, zone: &Zone) -> bool {
    run.goal().goes_back() && run.settings().order.contains(&zone.id)
}

fn has_moved(scene: &Scene, zone: &Zone) -> bool {
    ZoneFacts::gather(scene, zone).is_some_and(|facts| {
        let weight = facts.in_force.as_ref().map_or(0, |in_force| in_force.highest);
        weight > 0 || facts.canary.is_some_and(|canary| canary.count() > 0)
    })
}

/// A zone that waits has to be able to take its own traffic: all its wanted stable pods are Ready.
fn serving(scene: &Scene, zone: &Zone) -> Result<Standing, Unmet> {
    if !scene.pods.is_complete() {
        return Err(Unmet::Unseen { kind: "pods", why: scene.pods.coverage.to_string() });
    }
    let facts = ZoneFacts::gather(scene, zone).ok_or(Unmet::NoRollout)?;
    let wanted = facts.rollout.replicas();
    let ready = facts.stable_ready();
    if wanted == 0 {
        Err(Unmet::NoPods)
    } else if ready < wanted {
        let pods = facts.stable.iter().flat_map(|stable| stable.pods.iter().copied());
        Err(Unmet::PodsShort { ready, wanted, trouble: worst_trouble(pods) })
    } else {
        Ok(Standing::Serving(zone.id.clone()))
    }
}

/// Whether the zones that wait in this group could serve now; used before a run starts.
pub(super) fn not_serving(scene: &Scene, group: &Group) -> Vec<(ZoneId, Unmet)> {
    group
        .zones
        .iter()
        .filter_map(|zone| serving(scene, zone).err().map(|unmet| (zone.id.clone(), unmet)))
        .collect()
}
