//! What a run would do, told before it begins.

use std::collections::BTreeMap;

use crate::exposure::{Exposure, exposure};
use crate::group::{Group, Zone, ZoneId};
use crate::promote::blocker::unheard;
use crate::promote::{Blocker, Goal, Settings, blockers};
use crate::scene::Scene;
use crate::time::Moment;
use crate::zone::{ZoneFacts, ZoneState, zone_state};

/// What a run would do to a group.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The version it brings.
    pub version: String,
    /// All zones: those to be driven in their order, then the others.
    pub zones: Vec<PlannedZone>,
    /// How many clients are on the new version before it begins, if it can be computed.
    pub exposure: Option<Exposure>,
}

/// What a run would do to one zone.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedZone {
    /// The zone.
    pub zone: ZoneId,
    /// Its Rollout.
    pub rollout: String,
    /// The version it is on, if it is known.
    pub from: Option<String>,
    /// What happens.
    pub way: ZoneWay,
}

/// What a run does to a zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ZoneWay {
    /// It is on the version already: watch it.
    Watch,
    /// It is on its way already: follow it, then watch it.
    Follow,
    /// Open its gate, follow and watch it.
    Open,
    /// Release our hold, follow and watch it.
    Release,
    /// Set the image; if it has a gate, open it; follow and watch it.
    SetImage,
    /// Set the earlier template; if it stops at a gate, open it; follow and watch it.
    Restore,
    /// Wait for the version to arrive; then as `Open` or `Release`.
    AwaitSync,
    /// Hold it, wait for the version to arrive, release it, follow and watch it.
    Hold,
    /// It asks for another version and stays there.
    LeaveBehind,
    /// It is not part of this run.
    Skip,
}

/// A plan, or what forbids it.
#[derive(Debug, Clone, PartialEq)]
pub enum Planned {
    /// Nothing is in flight and nothing was asked for, or everything has arrived.
    NothingToDo,
    /// What would be done.
    Plan(Plan),
    /// Why nothing may be done.
    Refused(Vec<Blocker>),
}

impl Planned {
    /// True if all that forbids it is that the controller has not looked yet.
    pub fn awaits_controller(&self) -> bool {
        let unheard = |blocker: &Blocker| {
            matches!(blocker, Blocker::State(_, ZoneState::Unobserved | ZoneState::NeverReconciled))
        };
        matches!(self, Self::Refused(blockers) if blockers.iter().all(unheard))
    }
}

/// Plans a run. Without a goal there is nothing to do, unless nobody knows yet whether there is.
pub fn plan(
    scene: &Scene,
    group: &Group,
    settings: &Settings,
    goal: Option<&Goal>,
    now: Moment,
) -> Planned {
    let Some(goal) = goal else {
        let unheard = unheard(scene, group, settings, now);
        return if unheard.is_empty() { Planned::NothingToDo } else { Planned::Refused(unheard) };
    };
    let blockers = blockers(scene, group, settings, goal, now);
    if !blockers.is_empty() {
        return Planned::Refused(blockers);
    }
    let driven = settings.order.iter().filter_map(|id| group.zone(id));
    let others = group.zones.iter().filter(|zone| !settings.order.contains(&zone.id));
    let view = |zone: &Zone| planned_zone(scene, group, settings, goal, zone, now);
    let zones: Vec<PlannedZone> = driven.chain(others).filter_map(view).collect();
    let arrived = zones.iter().all(|zone| matches!(zone.way, ZoneWay::Watch | ZoneWay::Skip));
    if arrived && all_stable(scene, group, settings, now) {
        return Planned::NothingToDo;
    }
    let exposure = exposure(scene, group, &targets(scene, group, goal));
    Planned::Plan(Plan { version: goal.version(), zones, exposure })
}

fn all_stable(scene: &Scene, group: &Group, settings: &Settings, now: Moment) -> bool {
    group.zones.iter().filter(|zone| !settings.skipped.contains(&zone.id)).all(|zone| {
        matches!(zone_state(scene, group, zone, None, now), ZoneState::Stable | ZoneState::Promoted)
    })
}

/// The template hash of the new version in each zone that asks for it.
pub(crate) fn targets(scene: &Scene, group: &Group, goal: &Goal) -> BTreeMap<ZoneId, String> {
    group
        .zones
        .iter()
        .filter_map(|zone| Some((zone, zone.rollout(scene)?)))
        .filter(|(zone, rollout)| goal.is_asked_for(zone, rollout))
        .map(|(zone, rollout)| (zone.id.clone(), rollout.status.current_pod_hash.clone()))
        .collect()
}

fn planned_zone(
    scene: &Scene,
    group: &Group,
    settings: &Settings,
    goal: &Goal,
    zone: &Zone,
    now: Moment,
) -> Option<PlannedZone> {
    let facts = ZoneFacts::gather(scene, zone)?;
    let asked_for = goal.is_asked_for(zone, facts.rollout);
    let state = zone_state(scene, group, zone, None, now);
    let way = if !settings.order.contains(&zone.id) {
        ZoneWay::Skip
    } else if !asked_for {
        match goal {
            Goal::InFlight { .. } => ZoneWay::LeaveBehind,
            Goal::Set(_) => ZoneWay::SetImage,
            Goal::Restored(_) => ZoneWay::Restore,
            Goal::Expected(_) if settings.hold && facts.rollout.gate().is_none() => ZoneWay::Hold,
            Goal::Expected(_) => ZoneWay::AwaitSync,
        }
    } else {
        match state {
            ZoneState::Held { .. } => ZoneWay::Release,
            ZoneState::Unobserved if facts.rollout.spec.paused => ZoneWay::Release,
            ZoneState::Gate { .. } | ZoneState::Unobserved => ZoneWay::Open,
            _ if facts.has_started() => ZoneWay::Follow,
            _ if facts.is_in_flight() => ZoneWay::Open,
            _ => ZoneWay::Watch,
        }
    };
    Some(PlannedZone {
        zone: zone.id.clone(),
        rollout: zone.rollout.name.clone(),
        from: facts.stable_version(),
        way,
    })
}
