//! Whether a zone can take clients, and what that means for them.

use std::collections::BTreeMap;

use super::{Unfit, diverted};
use crate::exposure::{Exposure, exposure};
use crate::group::{Group, Zone, ZoneId};
use crate::scene::{Origin, Scene, VirtualService};
use crate::traffic::{RouteGap, rollout_routes};
use crate::write::{Action, Write, compile};
use crate::zone::{Workload, ZoneFacts, outage};

/// A pod may carry this many times its normal load: its own zone's clients, and those of one other.
const BEARABLE: f64 = 2.0;

/// What sending a zone's clients to another would mean.
#[derive(Debug, Clone, PartialEq)]
pub struct Transfer {
    /// Where to.
    pub to: ZoneId,
    /// Load of each Ready stable pod there compared with normal; nothing if there is none.
    pub factor: Option<f64>,
    /// The version that runs there, if it is another than in the zone itself.
    pub other_version: Option<String>,
    /// Clients that are on that version or get errors, before and after; nothing if it cannot be
    /// told.
    pub exposure: Option<(Exposure, Exposure)>,
    /// Why the zone cannot take them; empty if it can.
    pub unfit: Vec<Unfit>,
}

/// What sending a zone's clients back would mean.
#[derive(Debug, Clone, PartialEq)]
pub struct Restoration {
    /// Ready stable pods.
    pub ready: u32,
    /// Wanted stable pods.
    pub wanted: u32,
    /// Why the zone cannot take them; empty if it can.
    pub unfit: Vec<Unfit>,
}

/// Judges whether `to` can take the clients of `zone`. Every zone's clients count the same.
pub fn transfer(scene: &Scene, group: &Group, zone: &Zone, to: &Zone) -> Transfer {
    let mut unfit: Vec<Unfit> = [zone, to].into_iter().filter_map(|it| broken(scene, it)).collect();
    let (own, there) = (ZoneFacts::gather(scene, zone), ZoneFacts::gather(scene, to));
    let guests = group.others(&to.id).filter(|other| other.id != zone.id).filter(|other| {
        diverted(scene, group, other).is_some_and(|found| found.to.as_ref() == Some(&to.id))
    });
    let zones = 2 + u32::try_from(guests.count()).unwrap_or(u32::MAX);
    let factor = there.as_ref().and_then(|facts| factor(facts, zones));
    if let Some(facts) = &there {
        unfit.extend(cannot_serve(scene, facts, factor, BEARABLE));
        if facts.has_started() {
            unfit.push(Unfit::Moving(to.id.clone()));
        }
    }
    if diverted(scene, group, to).is_some() {
        unfit.push(Unfit::Diverted(to.id.clone()));
    }
    let version = |facts: &Option<ZoneFacts<'_>>| facts.as_ref()?.stable_version();
    let other_version = version(&there).filter(|there| Some(there) != version(&own).as_ref());
    let action = Action::Divert { zone: zone.id.clone(), to: to.id.clone() };
    let exposure = || {
        let after = after(scene, &compile(&action, scene, group).ok()?)?;
        let on = of_version(scene, group, other_version.as_deref());
        Some((exposure(scene, group, &on)?, exposure(&after, group, &on)?))
    };
    Transfer { to: to.id.clone(), factor, exposure: exposure(), unfit, other_version }
}

/// The next zone in the group's order, and after the last the first, that can take a zone's clients;
/// if none can, the next one, with the reasons.
pub fn next_zone(scene: &Scene, group: &Group, zone: &Zone) -> Option<Transfer> {
    let place = group.zones.iter().position(|other| other.id == zone.id)?;
    let (before, after) = group.zones.split_at(place);
    let mut others =
        after.iter().skip(1).chain(before).map(|other| transfer(scene, group, zone, other));
    let first = others.next()?;
    if first.unfit.is_empty() {
        return Some(first);
    }
    Some(others.find(|other| other.unfit.is_empty()).unwrap_or(first))
}

/// Judges whether a zone can take its own clients back.
pub fn restoration(scene: &Scene, zone: &Zone) -> Restoration {
    let mut unfit: Vec<Unfit> = broken(scene, zone).into_iter().collect();
    let facts = ZoneFacts::gather(scene, zone);
    if let Some(facts) = &facts {
        unfit.extend(cannot_serve(scene, facts, factor(facts, 1), 1.0));
        let weight = facts.in_force.as_ref().map_or(0, |in_force| in_force.highest);
        if weight > 0 {
            unfit.push(Unfit::Canary { zone: zone.id.clone(), weight });
        }
    }
    Restoration {
        ready: facts.as_ref().map_or(0, ZoneFacts::stable_ready),
        wanted: facts.as_ref().map_or(0, |facts| facts.rollout.replicas()),
        unfit,
    }
}

/// A zone without a route that can be written. A Rollout that does not name its routes takes a second
/// one in its VirtualService for an error.
fn broken(scene: &Scene, zone: &Zone) -> Option<Unfit> {
    let Some(rollout) = zone.rollout(scene) else {
        return Some(Unfit::Unseen(zone.id.clone()));
    };
    match rollout_routes(scene, rollout) {
        Err(gap) => Some(Unfit::Route(zone.id.clone(), gap)),
        Ok(routes) => routes.into_iter().find(|route| route.route.name.is_empty()).map(|route| {
            Unfit::Route(zone.id.clone(), RouteGap::NoRoute(route.virtual_service, String::new()))
        }),
    }
}

fn cannot_serve(
    scene: &Scene,
    facts: &ZoneFacts<'_>,
    factor: Option<f64>,
    bearable: f64,
) -> Option<Unfit> {
    let zone = facts.zone.id.clone();
    if let Some(outage) = outage(scene, facts) {
        return Some(Unfit::Lost(zone, outage));
    }
    let (ready, wanted) = (facts.stable_ready(), facts.rollout.replicas());
    let bears = factor.is_some_and(|factor| factor <= bearable);
    (!bears).then_some(Unfit::Overloaded { zone, ready, wanted, factor })
}

/// Load of each Ready stable pod with the clients of so many zones, compared with normal.
fn factor(facts: &ZoneFacts<'_>, zones: u32) -> Option<f64> {
    let ready = facts.stable_ready();
    let wanted = f64::from(facts.rollout.replicas()) * f64::from(zones);
    (ready > 0).then(|| wanted / f64::from(ready))
}

/// The template hashes of the pods that run a version, by zone.
fn of_version(scene: &Scene, group: &Group, version: Option<&str>) -> BTreeMap<ZoneId, String> {
    let hash = |zone: &Zone| {
        let facts = ZoneFacts::gather(scene, zone)?;
        let runs = |workload: &Workload<'_>| workload.version().as_deref() == version;
        let workload = [facts.stable, facts.canary].into_iter().flatten().find(runs)?;
        Some((zone.id.clone(), workload.hash.to_owned()))
    };
    let zones = group.zones.iter().filter(|_| version.is_some());
    zones.filter_map(hash).collect()
}

/// The scene as it will be once a route is written.
fn after(scene: &Scene, write: &Write) -> Option<Scene> {
    let mut json = serde_json::to_value(scene.routes.get(&write.key)?).ok()?;
    write.apply_to(&mut json).ok()?;
    let changed: VirtualService = serde_json::from_value(json).ok()?;
    let mut scene = scene.clone();
    scene.routes.insert(write.key.clone(), changed, Origin::Model);
    Some(scene)
}
