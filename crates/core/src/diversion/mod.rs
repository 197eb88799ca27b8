//! Sending a zone's clients to another zone, and back, by a route before the zone's own. The Rollouts
//! controller changes only the routes that a Rollout names, so the inserted one stays.
//!
//! [`diverted`] tells whether a zone's clients are sent elsewhere, [`transfer`] whether another zone
//! can take them, and [`restoration`] whether their own can take them back. The write itself is
//! [`crate::write::Action::Divert`].

mod judge;
#[cfg(test)]
mod tests;
mod unfit;

pub use judge::{Restoration, Transfer, next_zone, restoration, transfer};
pub use unfit::Unfit;

use crate::group::{Group, Zone, ZoneId};
use crate::scene::{Key, Scene};
use crate::traffic::{RolloutRoute, rollout_routes};

/// Start of the name of an inserted route: `evacuate-a`.
pub const ROUTE_PREFIX: &str = "evacuate-";

/// The name of the route that sends this zone's clients elsewhere.
pub(crate) fn route_name(zone: &ZoneId) -> String {
    format!("{ROUTE_PREFIX}{zone}")
}

/// Where a zone's clients are sent instead of to their own zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diverted {
    /// The zone; nothing if the route leads somewhere else.
    pub to: Option<ZoneId>,
    /// Whether all of the zone's routes have one before them. After a write that was interrupted,
    /// some may not.
    pub complete: bool,
}

/// Whether the clients of a zone are sent elsewhere by an inserted route.
pub fn diverted(scene: &Scene, group: &Group, zone: &Zone) -> Option<Diverted> {
    let routes = rollout_routes(scene, zone.rollout(scene)?).ok()?;
    let name = route_name(&zone.id);
    let before = |route: &RolloutRoute<'_>| {
        let http = &scene.routes.get(&route.virtual_service)?.spec.http;
        http[..route.index].iter().find(|earlier| earlier.name == name)
    };
    let first = routes.iter().find_map(before)?;
    let destination = first.destinations.first().map(|to| &to.destination);
    let is_there =
        |other: &&Zone| {
            let routes = other.rollout(scene).map(|rollout| rollout_routes(scene, rollout));
            routes.into_iter().flatten().flatten().any(|route| {
                Some(&route.route.destinations[route.stable].destination) == destination
            })
        };
    Some(Diverted {
        to: group.others(&zone.id).find(is_there).map(|other| other.id.clone()),
        complete: routes.iter().all(|route| before(route).is_some()),
    })
}

/// The VirtualServices in which a zone's routes stand.
pub fn virtual_services(scene: &Scene, zone: &Zone) -> Vec<Key> {
    let routes = zone.rollout(scene).map(|rollout| rollout_routes(scene, rollout));
    let mut keys: Vec<Key> =
        routes.into_iter().flatten().flatten().map(|route| route.virtual_service).collect();
    keys.dedup();
    keys
}
