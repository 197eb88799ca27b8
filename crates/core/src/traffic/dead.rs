//! Routes that lead nowhere.

use super::host::fully_qualified;
use super::merge::merged_rule;
use crate::scene::{Key, Scene};

/// A destination of a VirtualService for which Envoy has no cluster: its requests get 503.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadRoute {
    /// The route's name, or its place if it has none.
    pub route: String,
    /// The subset that no DestinationRule of the host defines.
    pub subset: String,
}

/// Destinations of a VirtualService whose subset is not defined. A weight of 0 is no excuse: it is about
/// to change.
pub fn dead_routes(scene: &Scene, virtual_service: &Key) -> Vec<DeadRoute> {
    let Some(found) = scene.routes.get(virtual_service) else { return Vec::new() };
    let mut dead = Vec::new();
    for (index, route) in found.spec.http.iter().enumerate() {
        for destination in route.destinations.iter().map(|it| &it.destination) {
            let host = fully_qualified(&destination.host, &virtual_service.namespace);
            let subset = &destination.subset;
            if subset.is_empty() || merged_rule(scene, &host).subset(subset).is_some() {
                continue;
            }
            let name = Some(route.name.clone()).filter(|name| !name.is_empty());
            let route = name.unwrap_or_else(|| format!("http[{index}]"));
            dead.push(DeadRoute { route, subset: subset.clone() });
        }
    }
    dead
}
