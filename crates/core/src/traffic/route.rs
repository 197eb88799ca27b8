//! The routes that the Rollouts controller weighs, and the weights in force in them.

use std::fmt;

use crate::scene::{HttpRoute, Key, Rollout, RouteDestination, Scene, VirtualServiceReference};
use crate::traffic::host::fully_qualified;

/// One HTTP route that the controller weighs for a Rollout.
#[derive(Debug)]
pub struct RolloutRoute<'a> {
    /// The VirtualService it stands in.
    pub virtual_service: Key,
    /// Index in `spec.http`.
    pub index: usize,
    /// The route.
    pub route: &'a HttpRoute,
    /// Index of the stable destination in the route.
    pub stable: usize,
    /// Index of the canary destination in the route.
    pub canary: usize,
    /// Fully qualified host of the stable destination.
    pub host: String,
}

/// Why a Rollout's route cannot be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RouteGap {
    /// The Rollout steers no traffic through Istio.
    NotRouted,
    /// The VirtualServices could not be read.
    Unreadable,
    /// The VirtualService does not exist.
    NoVirtualService(Key),
    /// The VirtualService has no such route. An empty name: it has not exactly one route.
    NoRoute(Key, String),
    /// The route lacks the stable or the canary destination (`stable-a`).
    NoDestination(Key, String, String),
}

impl fmt::Display for RouteGap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotRouted => f.write_str("it steers no traffic through Istio"),
            Self::Unreadable => f.write_str("the VirtualServices cannot be read"),
            Self::NoVirtualService(key) => write!(f, "VirtualService `{}` is missing", key.name),
            Self::NoRoute(key, route) if route.is_empty() => {
                write!(
                    f,
                    "VirtualService `{}` must have exactly one HTTP route, or the Rollout must name its routes",
                    key.name
                )
            }
            Self::NoRoute(key, route) => {
                write!(f, "VirtualService `{}` has no HTTP route `{route}`", key.name)
            }
            Self::NoDestination(key, route, wanted) => write!(
                f,
                "HTTP route `{route}` of VirtualService `{}` has no destination `{wanted}`",
                key.name
            ),
        }
    }
}

/// Weights of the canary over all routes of a Rollout, in percent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InForce {
    /// The smallest.
    pub lowest: u32,
    /// The largest. Only 0 here means that no route sends traffic to the canary.
    pub highest: u32,
}

/// The routes that the controller weighs for this Rollout; at least one.
///
/// Mirrors `getHttpRouteIndexesToPatch` and `processRoutes`
/// (`rollout/trafficrouting/istio/istio.go`): a named route is the first of that name, without
/// names there has to be exactly one; destinations are told by subset, or by Service if the Rollout
/// names no DestinationRule.
///
/// # Errors
/// The first thing that is missing on the way.
pub fn rollout_routes<'a>(
    scene: &'a Scene,
    rollout: &Rollout,
) -> Result<Vec<RolloutRoute<'a>>, RouteGap> {
    let mut found = Vec::new();
    for reference in rollout.virtual_services() {
        let key = virtual_service_key(reference, &rollout.meta.namespace);
        let virtual_service = scene.routes.get(&key).ok_or_else(|| {
            if scene.routes.is_complete() {
                RouteGap::NoVirtualService(key.clone())
            } else {
                RouteGap::Unreadable
            }
        })?;
        for index in route_indexes(&virtual_service.spec.http, reference, &key)? {
            let route = &virtual_service.spec.http[index];
            found.push(rollout_route(rollout, key.clone(), index, route)?);
        }
    }
    if found.is_empty() { Err(RouteGap::NotRouted) } else { Ok(found) }
}

/// The key of a VirtualService that a Rollout refers to: `name`, or `name.namespace`.
pub(crate) fn virtual_service_key(reference: &VirtualServiceReference, namespace: &str) -> Key {
    match reference.name.split_once('.') {
        Some((name, rest)) => Key::new(rest.split('.').next().unwrap_or(namespace), name),
        None => Key::new(namespace, &reference.name),
    }
}

fn route_indexes(
    http: &[HttpRoute],
    reference: &VirtualServiceReference,
    key: &Key,
) -> Result<Vec<usize>, RouteGap> {
    if reference.routes.is_empty() {
        return match http.len() {
            1 => Ok(vec![0]),
            _ => Err(RouteGap::NoRoute(key.clone(), String::new())),
        };
    }
    let index = |name: &String| {
        http.iter()
            .position(|route| route.name == *name)
            .ok_or_else(|| RouteGap::NoRoute(key.clone(), name.clone()))
    };
    reference.routes.iter().map(index).collect()
}

fn rollout_route<'a>(
    rollout: &Rollout,
    virtual_service: Key,
    index: usize,
    route: &'a HttpRoute,
) -> Result<RolloutRoute<'a>, RouteGap> {
    let canary = rollout.spec.strategy.canary.as_ref();
    let (stable_name, canary_name) = match rollout.destination_rule() {
        Some(rule) => (Some(&rule.stable_subset_name), Some(&rule.canary_subset_name)),
        None => (
            canary.and_then(|canary| canary.stable_service.as_ref()),
            canary.and_then(|canary| canary.canary_service.as_ref()),
        ),
    };
    let by_subset = rollout.destination_rule().is_some();
    let position = |wanted: Option<&String>| {
        let wanted = wanted.map_or("", String::as_str);
        route.destinations.iter().position(|to| is_destination(to, wanted, by_subset)).ok_or_else(
            || {
                let name = route.name.clone();
                RouteGap::NoDestination(virtual_service.clone(), name, wanted.to_owned())
            },
        )
    };
    let (stable, canary) = (position(stable_name)?, position(canary_name)?);
    let host = &route.destinations[stable].destination.host;
    let host = fully_qualified(host, &virtual_service.namespace);
    Ok(RolloutRoute { virtual_service, index, route, stable, canary, host })
}

fn is_destination(to: &RouteDestination, wanted: &str, by_subset: bool) -> bool {
    if by_subset {
        to.destination.subset == wanted
    } else {
        to.destination.host.split('.').next() == Some(wanted)
    }
}

impl RolloutRoute<'_> {
    /// Weight of the canary in percent of the whole route.
    pub fn canary_weight(&self) -> u32 {
        let weight = |to: &RouteDestination| to.weight.unwrap_or(0.0);
        let total: f64 = self.route.destinations.iter().map(weight).sum();
        if total <= 0.0 {
            return 0;
        }
        let percent = weight(&self.route.destinations[self.canary]) * 100.0 / total;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of the whole lies between 0 and 100"
        )]
        let percent = percent.clamp(0.0, 100.0).round() as u32;
        percent
    }
}

/// Where a Rollout's stable pods are reached.
#[derive(Debug)]
pub struct StableDestination {
    /// The VirtualService.
    pub virtual_service: Key,
    /// Fully qualified host.
    pub host: String,
}

/// Where the Rollout's stable pods are reached, if it steers traffic through Istio. Known in part
/// even if the VirtualService is not: then the host is empty.
pub fn stable_destination(scene: &Scene, rollout: &Rollout) -> Option<StableDestination> {
    let reference = rollout.virtual_services().into_iter().next()?;
    let virtual_service = virtual_service_key(reference, &rollout.meta.namespace);
    let host = rollout_routes(scene, rollout)
        .ok()
        .and_then(|routes| routes.into_iter().next())
        .map(|route| route.host)
        .unwrap_or_default();
    Some(StableDestination { virtual_service, host })
}

/// The host by which clients call a Rollout's pods: the one of its route, or without Istio routing
/// the Service of its namespace that selects its pods, the most general one first.
pub fn host_of(scene: &Scene, rollout: &Rollout) -> Option<String> {
    match rollout_routes(scene, rollout) {
        Ok(routes) => routes.into_iter().next().map(|route| route.host),
        Err(RouteGap::NotRouted) => scene
            .services
            .iter()
            .filter(|(key, service)| {
                let selector = &service.spec.selector;
                let labels = rollout.spec.template.pointer("/metadata/labels");
                key.namespace == rollout.meta.namespace
                    && !selector.is_empty()
                    && selector.iter().all(|(label, value)| {
                        labels.and_then(|labels| labels.get(label)).is_some_and(|own| own == value)
                    })
            })
            .min_by_key(|(_, service)| service.spec.selector.len())
            .map(|(key, _)| fully_qualified(&key.name, &key.namespace)),
        Err(_) => None,
    }
}

/// The weight of the canary that the VirtualServices give now.
///
/// # Errors
/// As [`rollout_routes`].
pub fn weight_in_force(scene: &Scene, rollout: &Rollout) -> Result<InForce, RouteGap> {
    let routes = rollout_routes(scene, rollout)?;
    let weights = || routes.iter().map(RolloutRoute::canary_weight);
    Ok(InForce { lowest: weights().min().unwrap_or(0), highest: weights().max().unwrap_or(0) })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::layout::ring;
    use crate::testing::{object, scene_of, spec};

    #[test]
    fn the_weight_is_the_one_in_the_named_route() {
        let mut objects = ring(&spec());
        let http = &mut object(&mut objects, "VirtualService", "test")["spec"]["http"];
        http[1]["route"][0]["weight"] = json!(80);
        http[1]["route"][1]["weight"] = json!(20.0);
        let scene = scene_of(&objects);
        let weight = |name: &str| {
            weight_in_force(&scene, scene.rollouts.get(&Key::new("default", name)).unwrap())
        };
        assert_eq!(weight("test-a"), Ok(InForce { lowest: 0, highest: 0 }));
        assert_eq!(weight("test-b"), Ok(InForce { lowest: 20, highest: 20 }));
    }

    #[test]
    fn each_gap_is_named() {
        let gap = |change: &dyn Fn(&mut Vec<serde_json::Value>)| {
            let mut objects = ring(&spec());
            change(&mut objects);
            let scene = scene_of(&objects);
            let rollout = scene.rollouts.get(&Key::new("default", "test-a")).unwrap();
            weight_in_force(&scene, rollout).unwrap_err().to_string()
        };
        insta::assert_snapshot!(
            gap(&|all| all.retain(|object| object["kind"] != "VirtualService")),
            @"VirtualService `test` is missing"
        );
        insta::assert_snapshot!(
            gap(&|all| {
                object(all, "VirtualService", "test")["spec"]["http"][0]["name"] = json!("other");
            }),
            @"VirtualService `test` has no HTTP route `zone-a-route`"
        );
        insta::assert_snapshot!(
            gap(&|all| {
                let http = &mut object(all, "VirtualService", "test")["spec"]["http"];
                http[0]["route"].as_array_mut().unwrap().truncate(1);
            }),
            @"HTTP route `zone-a-route` of VirtualService `test` has no destination `canary-a`"
        );
        insta::assert_snapshot!(
            gap(&|all| {
                let canary = &mut object(all, "Rollout", "test-a")["spec"]["strategy"]["canary"];
                canary["trafficRouting"]["istio"]["virtualService"]["routes"] = json!([]);
            }),
            @"VirtualService `test` must have exactly one HTTP route, or the Rollout must name its routes"
        );
        insta::assert_snapshot!(
            gap(&|all| {
                let canary = &mut object(all, "Rollout", "test-a")["spec"]["strategy"]["canary"];
                canary.as_object_mut().unwrap().remove("trafficRouting");
            }),
            @"it steers no traffic through Istio"
        );
    }
}
