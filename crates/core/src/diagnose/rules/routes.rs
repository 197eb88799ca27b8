//! Routes of VirtualServices: shared, shadowed, or missing for some clients.

use serde_json::json;

use std::collections::{BTreeMap, BTreeSet};

use crate::diagnose::command;
use crate::diagnose::context::{Claim, Context, in_mesh, in_namespace, is_catch_all, listed};
use crate::diagnose::finding::{Effect, Found, Severity};
use crate::diagnose::rule::{Check, Rule};
use crate::scene::{HttpRoute, Key, VirtualService};

pub(super) fn show(key: &Key) -> String {
    format!("kubectl get virtualservice {}{} -o yaml", key.name, in_namespace(key))
}

fn name_of(route: &HttpRoute, index: usize) -> String {
    if route.name.is_empty() { format!("number {index}") } else { route.name.clone() }
}

pub(super) const SHARED_ROUTE: Rule = Rule {
    code: "ZRI003",
    title: "Several Rollouts weigh the same route",
    check: Check::Routes,
    effect: Effect::RequestsFail,
    meaning: "With different subsets, one Rollout deletes the destinations of the other, which \
              then becomes InvalidSpec; with the same, both overwrite each other's weights \
              without end.",
    cause: "The Rollouts controller owns all destinations of the routes that a Rollout names, and \
            deletes those with a weight that are not the Rollout's (`processRoutes`).",
    fix: "Give each Rollout a route of its own name.",
    verify: "kubectl get virtualservice NAME -o yaml",
    example: include_str!("../examples/ZRI003.diff"),
    find: shared_route,
};

fn shared_route(context: &Context<'_>) -> Vec<Found> {
    let mut claims: BTreeMap<(Key, usize), Vec<Claim<'_>>> = BTreeMap::new();
    for claim in context.claims() {
        claims.entry((claim.virtual_service.meta.key(), claim.index)).or_default().push(claim);
    }
    let shared = claims.into_iter().filter(|(_, claims)| claims.len() > 1);
    shared
        .map(|((key, index), claims)| {
            let name = name_of(claims[0].route, index);
            let rollouts = listed(claims.iter().map(|claim| &claim.rollout.meta.name));
            let title = format!(
                "route {name} of VirtualService {key} is weighed by {rollouts}; each deletes or \
                 overwrites the other's destinations"
            );
            let mut found = Found::new(Severity::Critical, title).at(
                "VirtualService",
                &key,
                format!("spec.http[{index}]"),
                &name,
            );
            for claim in &claims {
                let path = "spec.strategy.canary.trafficRouting.istio.virtualService.routes";
                found = found.at("Rollout", &claim.rollout.meta.key(), path, &name);
            }
            found
                .fix(format!(
                    "add a route for each Rollout and name it in its virtualService.routes: {}",
                    command::edit("VirtualService", &key)
                ))
                .verify(show(&key))
        })
        .collect()
}

pub(super) const DUPLICATE_NAME: Rule = Rule {
    code: "ZRI004",
    title: "Two routes have the same name",
    check: Check::Routes,
    effect: Effect::WrongPlace,
    meaning: "Only the first of them gets the weights; requests of the second one never reach the \
              canary, or stay there.",
    cause: "Istio does not check the names; the Rollouts controller takes the first route with \
            the name.",
    fix: "Give each route a name of its own, and name all of them in the Rollout.",
    verify: "kubectl get virtualservice NAME -o yaml",
    example: include_str!("../examples/ZRI004.diff"),
    find: duplicate_name,
};

fn duplicate_name(context: &Context<'_>) -> Vec<Found> {
    let claims = context.claims();
    let mut found = Vec::new();
    for (key, virtual_service) in context.scene.routes.iter() {
        let mut seen = BTreeSet::new();
        for (index, route) in virtual_service.spec.http.iter().enumerate() {
            if !route.name.is_empty() && !seen.insert(&route.name) {
                let claimed = claims.iter().any(|claim| {
                    claim.virtual_service.meta.key() == *key && claim.route.name == route.name
                });
                let severity = if claimed { Severity::Error } else { Severity::Warning };
                found.push(
                    Found::new(
                        severity,
                        format!(
                            "VirtualService {key} has more than one route called {}; the Rollouts \
                             controller weighs the first only",
                            route.name
                        ),
                    )
                    .at("VirtualService", key, format!("spec.http[{index}].name"), &route.name)
                    .fix(command::edit("VirtualService", key))
                    .verify(show(key)),
                );
            }
        }
    }
    found
}

pub(super) const NO_CATCH_ALL: Rule = Rule {
    code: "ZRI043",
    title: "Clients outside the zones match no route",
    check: Check::Routes,
    effect: Effect::WrongPlace,
    meaning: "Clients on nodes of another zone, or of none, reach all pods in all zones including \
              the canary, past the weights. At a gateway, or if another route matches by request, \
              they get 404.",
    cause: "If no route with sourceLabels applies to a sidecar, istiod installs the plain route \
            of the Service instead of none.",
    fix: "Add a last route without match, to the stable subsets.",
    verify: "istioctl proxy-config routes POD",
    example: include_str!("../examples/ZRI043.diff"),
    find: no_catch_all,
};

fn no_catch_all(context: &Context<'_>) -> Vec<Found> {
    let claims = context.claims();
    let mut found = Vec::new();
    for (key, virtual_service) in context.scene.routes.iter() {
        let http = &virtual_service.spec.http;
        let by_label =
            |route: &&HttpRoute| route.matches.iter().any(|entry| !entry.source_labels.is_empty());
        let labelled: Vec<&HttpRoute> = http.iter().filter(by_label).collect();
        if labelled.is_empty() || http.iter().any(is_catch_all) {
            continue;
        }
        let weighed = claims.iter().any(|claim| claim.virtual_service.meta.key() == *key);
        let severity = if weighed { Severity::Error } else { Severity::Warning };
        found.push(uncovered(context, key, virtual_service, severity));
    }
    found
}

fn uncovered(
    context: &Context<'_>,
    key: &Key,
    virtual_service: &VirtualService,
    severity: Severity,
) -> Found {
    let routed: BTreeSet<&str> = zone_values(virtual_service).collect();
    let others: Vec<(&Key, &str)> = context
        .given
        .nodes
        .iter()
        .filter_map(|(node, value)| Some((node, value.zone()?)))
        .filter(|(_, zone)| !routed.contains(zone))
        .collect();
    let who = match others.first() {
        Some((node, zone)) => {
            format!("clients outside its zones (node {} is in {zone})", node.name)
        }
        None => "clients outside its zones, or on nodes without a zone,".to_owned(),
    };
    let by_request = virtual_service
        .spec
        .http
        .iter()
        .any(|route| route.matches.iter().any(|entry| !entry.request.is_empty()));
    let what = if by_request || !in_mesh(virtual_service) {
        "get 404"
    } else {
        "reach all pods including the canary, past the weights"
    };
    let mut found = Found::new(
        severity,
        format!("VirtualService {key} has no route without a match: {who} {what}"),
    )
    .at("VirtualService", key, "spec.http", "no route without match");
    for (node, zone) in others.into_iter().take(3) {
        found = found.at("Node", node, "metadata.labels[topology.kubernetes.io/zone]", zone);
    }
    found
        .fix(format!(
            "add a last route without match to the stable subsets: {}",
            command::edit("VirtualService", key)
        ))
        .verify(show(key))
}

/// Zones that the routes of a VirtualService match by source label.
pub(super) fn zone_values(virtual_service: &VirtualService) -> impl Iterator<Item = &str> {
    let entries = virtual_service.spec.http.iter().flat_map(|route| &route.matches);
    entries
        .filter_map(|entry| entry.source_labels.get(crate::scene::ZONE_LABEL))
        .map(String::as_str)
}

pub(super) const GATEWAYS_HIDE_LABELS: Rule = Rule {
    code: "ZRI044",
    title: "A match with gateways ignores its sourceLabels",
    check: Check::Routes,
    effect: Effect::WrongPlace,
    meaning: "The route takes the requests of all zones.",
    cause: "If `gateways` is set in a match, Istio does not look at `sourceLabels` in it at all \
            (`sourceMatchHTTP`).",
    fix: "Set gateways for the VirtualService, not in the match.",
    verify: "istioctl proxy-config routes POD -o json",
    example: include_str!("../examples/ZRI044.diff"),
    find: |context| {
        let mut found = Vec::new();
        for (key, virtual_service) in context.scene.routes.iter() {
            for (index, route) in virtual_service.spec.http.iter().enumerate() {
                let both = route.matches.iter().position(|entry| {
                    !entry.gateways.is_empty() && !entry.source_labels.is_empty()
                });
                found.extend(both.map(|at| {
                    Found::new(
                        Severity::Error,
                        format!(
                            "route {} of VirtualService {key} sets gateways and sourceLabels in \
                             one match; the labels are not looked at",
                            name_of(route, index)
                        ),
                    )
                    .at(
                        "VirtualService",
                        key,
                        format!("spec.http[{index}].match[{at}]"),
                        format!("gateways: {}", route.matches[at].gateways.join(", ")),
                    )
                    .fix(command::remove(
                        "VirtualService",
                        key,
                        &[&format!("spec.http[{index}].match[{at}].gateways")],
                    ))
                    .verify(show(key))
                }));
            }
        }
        found
    },
};

pub(super) const UNREACHABLE: Rule = Rule {
    code: "ZRI048",
    title: "A Rollout's route is never reached",
    check: Check::Routes,
    effect: Effect::WrongPlace,
    meaning: "The weights of the Rollout decide nothing.",
    cause: "Routes are tried in order, and one before it takes every request.",
    fix: "Move the route without match to the end.",
    verify: "kubectl get virtualservice NAME -o yaml",
    example: include_str!("../examples/ZRI048.diff"),
    find: |context| {
        context
            .claims()
            .iter()
            .filter_map(|claim| {
                let before =
                    claim.virtual_service.spec.http[..claim.index].iter().position(is_catch_all)?;
                let key = claim.virtual_service.meta.key();
                let name = name_of(claim.route, claim.index);
                Some(
                    Found::new(
                        Severity::Error,
                        format!(
                            "route {name} of VirtualService {key} is never reached: route {} \
                             before it takes every request, so the weights of Rollout {} decide \
                             nothing",
                            name_of(&claim.virtual_service.spec.http[before], before),
                            claim.rollout.meta.name
                        ),
                    )
                    .at(
                        "VirtualService",
                        &key,
                        format!("spec.http[{before}]"),
                        "takes every request",
                    )
                    .at("VirtualService", &key, format!("spec.http[{}]", claim.index), &name)
                    .fix(command::edit("VirtualService", &key))
                    .verify(show(&key)),
                )
            })
            .collect()
    },
};

pub(super) const HOST_TWICE: Rule = Rule {
    code: "ZRI047",
    title: "Two VirtualServices have the same host",
    check: Check::Routes,
    effect: Effect::WrongPlace,
    meaning: "Sidecars use the older one only; the routes of the other have no effect.",
    cause: "Istio does not merge the VirtualServices of a host for sidecars (it does for \
            gateways).",
    fix: "Put all routes into one VirtualService.",
    verify: "istioctl analyze",
    example: include_str!("../examples/ZRI047.diff"),
    find: host_twice,
};

fn host_twice(context: &Context<'_>) -> Vec<Found> {
    let mut by_host: BTreeMap<String, Vec<(&Key, &VirtualService)>> = BTreeMap::new();
    let mut found = Vec::new();
    for (key, virtual_service) in context.scene.routes.iter().filter(|(_, v)| in_mesh(v)) {
        for (host, spellings) in Context::hosts(virtual_service) {
            if spellings.len() > 1 {
                found.push(
                    Found::new(
                        Severity::Info,
                        format!(
                            "VirtualService {key} names {host} twice, as {}; istioctl analyze \
                             reports it against itself (IST0109)",
                            spellings.join(" and ")
                        ),
                    )
                    .at("VirtualService", key, "spec.hosts", spellings.join(", "))
                    .fix(command::set("VirtualService", key, "spec.hosts", json!([host])))
                    .verify(show(key)),
                );
            }
            by_host.entry(host).or_default().push((key, virtual_service));
        }
    }
    for (host, mut users) in by_host {
        // Visible in their own namespaces only, they never meet.
        let everywhere = |v: &VirtualService| {
            v.spec.export_to.is_empty() || v.spec.export_to.iter().any(|to| to == "*")
        };
        let home = users[0].0.namespace.clone();
        let meet = users.iter().all(|(key, v)| everywhere(v) || key.namespace == home);
        if users.len() > 1 && meet {
            users.sort_by_key(|(_, v)| (v.meta.creation_timestamp, &v.meta.name));
            let loser = users[1].0;
            let mut one = Found::new(
                Severity::Error,
                format!(
                    "VirtualServices {} have the same host {host}; sidecars use {} only",
                    listed(users.iter().map(|(key, _)| key)),
                    users[0].0
                ),
            );
            for (key, _) in &users {
                one = one.at("VirtualService", key, "spec.hosts", &host);
            }
            found.push(
                one.fix(format!(
                    "move its routes and remove it: kubectl delete virtualservice {}{}",
                    loser.name,
                    in_namespace(loser)
                ))
                .verify(format!("kubectl get virtualservices{}", in_namespace(loser))),
            );
        }
    }
    found
}

pub(super) const GATEWAY_PAST_WEIGHTS: Rule = Rule {
    code: "ZRI045",
    title: "Requests from outside pass by the weights",
    check: Check::Routes,
    effect: Effect::WrongPlace,
    meaning: "What comes in by the gateway reaches all pods including the canary, whatever the \
              weights are.",
    cause: "A VirtualService counts only for the gateways it names; without any it counts for \
            sidecars. The gateway's own VirtualService leads to the plain host.",
    fix: "Name the gateway in the VirtualService with the weights (gateways: [mesh, GATEWAY]), or \
          send its route to the stable subset.",
    verify: "istioctl proxy-config routes GATEWAY-POD",
    example: include_str!("../examples/ZRI045.diff"),
    find: gateway_past_weights,
};

fn gateway_past_weights(context: &Context<'_>) -> Vec<Found> {
    let weighed: BTreeMap<String, Key> = context
        .rollouts()
        .flat_map(|rollout| context.routes_of(rollout))
        .filter(|route| context.scene.routes.get(&route.virtual_service).is_some_and(in_mesh))
        .map(|route| (route.host, route.virtual_service))
        .collect();
    let mut found = Vec::new();
    for (key, virtual_service) in context.scene.routes.iter() {
        let outside = virtual_service.spec.gateways.iter().any(|name| name != "mesh");
        for (index, route) in virtual_service.spec.http.iter().enumerate().filter(|_| outside) {
            let plain = route.destinations.iter().filter(|to| to.destination.subset.is_empty());
            for to in plain {
                let host = crate::traffic::fully_qualified(&to.destination.host, &key.namespace);
                if let Some(other) = weighed.get(&host).filter(|other| *other != key) {
                    found.push(
                        Found::new(
                            Severity::Warning,
                            format!(
                                "VirtualService {key} sends requests from outside to {host} \
                                 without a subset: the weights in {other} do not count for them"
                            ),
                        )
                        .at(
                            "VirtualService",
                            key,
                            format!("spec.http[{index}].route"),
                            &to.destination.host,
                        )
                        .at("VirtualService", other, "spec.gateways", "mesh only")
                        .fix(command::edit("VirtualService", key))
                        .verify(show(key)),
                    );
                }
            }
        }
    }
    found
}
