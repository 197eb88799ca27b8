//! What all rules look at: the scene, its groups and zones, the versions, and where traffic goes.

use std::collections::{BTreeMap, BTreeSet};

use super::outlook::Outlook;
use super::version::Versions;
use crate::group::{Group, find_groups};
use crate::scene::{
    DestinationRule, HttpRoute, Key, Kind, Origin, Rollout, Scene, Step, TrafficPolicy,
    VirtualService,
};
use crate::traffic::{Mesh, RolloutRoute, fully_qualified, rollout_routes, virtual_service_key};

/// What all rules look at.
pub(super) struct Context<'a> {
    pub(super) scene: &'a Scene,
    pub(super) versions: Versions,
    pub(super) groups: Vec<Group>,
    /// The scene as it was given: without what was assumed.
    pub(super) given: &'a Scene,
    pub(super) mesh: &'a Mesh<'a>,
    pub(super) outlooks: Vec<Outlook<'a>>,
}

/// A route of a VirtualService and the Rollouts that the controller weighs it for.
pub(super) struct Claim<'a> {
    pub(super) virtual_service: &'a VirtualService,
    pub(super) index: usize,
    pub(super) route: &'a HttpRoute,
    pub(super) rollout: &'a Rollout,
}

impl<'a> Context<'a> {
    pub(super) fn new(
        scene: &'a Scene,
        given: &'a Scene,
        mesh: &'a Mesh<'a>,
        versions: Versions,
    ) -> Self {
        let groups = find_groups(scene);
        let outlooks = Outlook::all(scene, mesh);
        Self { scene, versions, groups, given, mesh, outlooks }
    }

    /// Zones of the nodes that were given.
    pub(super) fn node_zones(&self) -> BTreeSet<&'a str> {
        self.given.nodes.iter().filter_map(|(_, node)| node.zone()).collect()
    }

    /// Groups of at least two Rollouts.
    pub(super) fn zone_groups(&self) -> impl Iterator<Item = &Group> {
        self.groups.iter().filter(|group| group.zones.len() > 1)
    }

    /// The Rollouts of a group.
    pub(super) fn rollouts_of(&self, group: &Group) -> Vec<&'a Rollout> {
        group.zones.iter().filter_map(|zone| zone.rollout(self.scene)).collect()
    }

    /// All canary Rollouts.
    pub(super) fn rollouts(&self) -> impl Iterator<Item = &'a Rollout> {
        let all = self.scene.rollouts.iter().map(|(_, rollout)| rollout);
        all.filter(|rollout| rollout.spec.strategy.canary.is_some())
    }

    /// Named HTTP routes of VirtualServices that are there, by the Rollouts that claim them. A Rollout
    /// that names no routes claims the only one.
    pub(super) fn claims(&self) -> Vec<Claim<'a>> {
        let mut claims = Vec::new();
        for rollout in self.rollouts() {
            for reference in rollout.virtual_services() {
                let key = virtual_service_key(reference, &rollout.meta.namespace);
                let Some(virtual_service) = self.scene.routes.get(&key) else { continue };
                let http = &virtual_service.spec.http;
                let claimed = |route: &HttpRoute| {
                    if reference.routes.is_empty() {
                        http.len() == 1
                    } else {
                        reference.routes.contains(&route.name)
                    }
                };
                let mut seen = BTreeSet::new();
                for (index, route) in http.iter().enumerate().filter(|(_, route)| claimed(route)) {
                    if seen.insert(&route.name) {
                        claims.push(Claim { virtual_service, index, route, rollout });
                    }
                }
            }
        }
        claims
    }

    /// Routes that the controller weighs for a Rollout, none if something in them is missing.
    pub(super) fn routes_of(&self, rollout: &Rollout) -> Vec<RolloutRoute<'a>> {
        rollout_routes(self.scene, rollout).unwrap_or_default()
    }

    /// The Rollouts whose controller rewrites this DestinationRule.
    pub(super) fn writers(&self, rule: &DestinationRule) -> Vec<&'a Rollout> {
        let refers = |rollout: &&Rollout| {
            rollout.meta.namespace == rule.meta.namespace
                && rollout.destination_rule().is_some_and(|own| own.name == rule.meta.name)
        };
        self.rollouts().filter(refers).collect()
    }

    /// True if an object of this kind in this namespace that is not here is really missing: the
    /// namespace was read from a cluster, or others of its kind and namespace are in the files.
    pub(super) fn holds<T>(&self, kind: &Kind<T>, namespace: &str) -> bool {
        let mut rollouts = self.given.rollouts.items.iter();
        let read = rollouts.any(|(key, seen)| {
            seen.origin == Origin::Live && (namespace.is_empty() || key.namespace == namespace)
        });
        kind.is_complete() && (read || kind.items.keys().any(|key| key.namespace == namespace))
    }

    /// All policies of all rules, with the path of each and the subset it belongs to.
    pub(super) fn policies(
        &self,
    ) -> impl Iterator<Item = (&'a Key, &'a DestinationRule, String, &'a TrafficPolicy)> {
        self.scene.rules.iter().flat_map(|(key, rule)| {
            let top = rule.spec.traffic_policy.iter().map(|policy| (String::new(), policy));
            let subsets = rule.spec.subsets.iter().enumerate().filter_map(|(index, subset)| {
                Some((format!("subsets[{index}]."), subset.traffic_policy.as_ref()?))
            });
            let own = top.chain(subsets).flat_map(|(place, policy)| {
                let place = format!("spec.{place}trafficPolicy");
                let ports = policy.port_level_settings.iter().enumerate();
                let ports: Vec<(String, &TrafficPolicy)> = ports
                    .map(|(index, port)| (format!("{place}.portLevelSettings[{index}]"), port))
                    .collect();
                [(place, policy)].into_iter().chain(ports)
            });
            own.map(move |(path, policy)| (key, rule, path, policy)).collect::<Vec<_>>()
        })
    }

    /// Fully qualified hosts of a VirtualService, by how they are written.
    pub(super) fn hosts(virtual_service: &VirtualService) -> BTreeMap<String, Vec<&str>> {
        let mut hosts: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for host in &virtual_service.spec.hosts {
            let full = fully_qualified(host, &virtual_service.meta.namespace);
            hosts.entry(full).or_default().push(host);
        }
        hosts
    }
}

/// True if sidecars use the VirtualService.
pub(super) fn in_mesh(virtual_service: &VirtualService) -> bool {
    let gateways = &virtual_service.spec.gateways;
    gateways.is_empty() || gateways.iter().any(|name| name == "mesh")
}

/// True if the route holds for every request of every client.
pub(super) fn is_catch_all(route: &HttpRoute) -> bool {
    let everything = |request: &BTreeMap<String, serde_json::Value>| {
        request.is_empty()
            || request.len() == 1 && request.get("uri").is_some_and(|uri| uri["prefix"] == "/")
    };
    route.matches.is_empty()
        || route.matches.iter().any(|entry| {
            entry.source_labels.is_empty()
                && entry.gateways.is_empty()
                && everything(&entry.request)
        })
}

/// Index of the first step that gives the canary traffic.
pub(super) fn first_weight(steps: &[Step]) -> Option<usize> {
    steps.iter().position(|step| matches!(step, Step::SetWeight(weight) if *weight > 0))
}

/// ` -n NAMESPACE`, for commands.
pub(super) fn in_namespace(key: &Key) -> String {
    if key.namespace.is_empty() { String::new() } else { format!(" -n {}", key.namespace) }
}

/// Names in a row: `a`, `a and b`, `a, b and c`.
pub(super) fn listed<T: std::fmt::Display>(names: impl IntoIterator<Item = T>) -> String {
    let names: Vec<String> = names.into_iter().map(|name| name.to_string()).collect();
    match names.split_last() {
        None => String::new(),
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
    }
}
