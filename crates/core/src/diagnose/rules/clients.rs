//! Clients and the labels that routes match them by.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::routes::{show, zone_values};
use crate::diagnose::command;
use crate::diagnose::context::{Context, in_mesh, in_namespace, is_catch_all, listed};
use crate::diagnose::finding::{Effect, Found, Severity};
use crate::diagnose::outlook::shares;
use crate::diagnose::rule::{Check, Rule};
use crate::diagnose::version::Version;
use crate::scene::{Key, Meta, Scene, VirtualService, ZONE_LABEL};
use crate::traffic::{Client, leads_to, pod_zone, service_of};

/// Labels that istiod gives to every proxy and endpoint (`AugmentLabels`).
const GIVEN: [&str; 6] = [
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
    "topology.istio.io/subzone",
    "topology.istio.io/cluster",
    "topology.istio.io/network",
    "kubernetes.io/hostname",
];

pub(super) const UNKNOWN_LABEL: Rule = Rule {
    code: "ZRI040",
    title: "A route matches by a topology label that does not exist",
    check: Check::Routes,
    effect: Effect::WrongPlace,
    meaning: "The route is taken by nobody; its zone's clients use another, or reach all pods \
              past the weights.",
    cause: "istiod gives proxies topology.kubernetes.io/region, …/zone and \
            topology.istio.io/subzone from their node. topology.istio.io/zone does not exist, and \
            failure-domain.* is not copied.",
    fix: "Match by topology.kubernetes.io/zone.",
    verify: "istioctl proxy-config bootstrap POD -o json | grep topology",
    example: include_str!("../examples/ZRI040.diff"),
    find: unknown_label,
};

fn unknown_label(context: &Context<'_>) -> Vec<Found> {
    let carried: BTreeSet<&String> =
        context.scene.pods.iter().flat_map(|(_, pod)| pod.meta.labels.keys()).collect();
    let topology =
        |label: &str| label.starts_with("topology.") || label.starts_with("failure-domain.");
    let mut found = Vec::new();
    for (key, virtual_service) in context.scene.routes.iter() {
        for (index, route) in virtual_service.spec.http.iter().enumerate() {
            let labels: BTreeSet<&String> =
                route.matches.iter().flat_map(|entry| entry.source_labels.keys()).collect();
            for label in labels {
                if topology(label) && !GIVEN.contains(&label.as_str()) && !carried.contains(label) {
                    found.push(
                        Found::new(
                            Severity::Error,
                            format!(
                                "route {} of VirtualService {key} matches by source label \
                                 {label}, which no proxy has",
                                route.name
                            ),
                        )
                        .at("VirtualService", key, format!("spec.http[{index}].match"), label)
                        .fix(format!(
                            "match by {ZONE_LABEL}: {}",
                            command::edit("VirtualService", key)
                        ))
                        .verify(show(key)),
                    );
                }
            }
        }
    }
    found
}

pub(super) const UNKNOWN_ZONE: Rule = Rule {
    code: "ZRI041",
    title: "A route matches a zone in which there is no node",
    check: Check::Zones,
    effect: Effect::WrongPlace,
    meaning: "The route is taken by nobody, and the clients that it means use another.",
    cause: "sourceLabels are compared with the zone of the client's node, letter by letter.",
    fix: "Write the zone as the nodes have it.",
    verify: "kubectl get nodes -L topology.kubernetes.io/zone",
    example: include_str!("../examples/ZRI041.diff"),
    find: unknown_zone,
};

fn unknown_zone(context: &Context<'_>) -> Vec<Found> {
    let zones = context.node_zones();
    let mut found = Vec::new();
    for (key, virtual_service) in context.scene.routes.iter().filter(|_| !zones.is_empty()) {
        for (index, route) in virtual_service.spec.http.iter().enumerate() {
            let wanted =
                route.matches.iter().filter_map(|entry| entry.source_labels.get(ZONE_LABEL));
            for zone in wanted.filter(|zone| !zones.contains(zone.as_str())) {
                found.push(
                    Found::new(
                        Severity::Error,
                        format!(
                            "route {} of VirtualService {key} matches zone {zone}, in which there \
                             is no node; there is {}",
                            route.name,
                            listed(&zones)
                        ),
                    )
                    .at(
                        "VirtualService",
                        key,
                        format!("spec.http[{index}].match"),
                        format!("{ZONE_LABEL}: {zone}"),
                    )
                    .fix(command::edit("VirtualService", key))
                    .verify("kubectl get nodes -L topology.kubernetes.io/zone"),
                );
            }
        }
        let routed: BTreeSet<&str> = zone_values(virtual_service).collect();
        let rest: Vec<&&str> = zones.iter().filter(|zone| !routed.contains(**zone)).collect();
        let covered = virtual_service.spec.http.iter().any(is_catch_all);
        if !routed.is_empty() && routed.is_subset(&zones) && !rest.is_empty() && covered {
            found.push(
                Found::new(
                    Severity::Info,
                    format!(
                        "clients in {} have no route of their own in VirtualService {key} and use \
                         the one without match",
                        listed(&rest)
                    ),
                )
                .at("VirtualService", key, "spec.http", listed(&routed))
                .fix(command::edit("VirtualService", key))
                .verify("kubectl get nodes -L topology.kubernetes.io/zone"),
            );
        }
    }
    found
}

pub(super) const NODE_WITHOUT_ZONE: Rule = Rule {
    code: "ZRI042",
    title: "A node has no zone",
    check: Check::Zones,
    effect: Effect::WrongPlace,
    meaning: "Clients on it match no zone's route, and pods on it count for no zone.",
    cause: "istiod takes the zone of proxies and endpoints from the label of their node.",
    fix: "Label the node with topology.kubernetes.io/zone.",
    verify: "kubectl get nodes -L topology.kubernetes.io/zone",
    example: include_str!("../examples/ZRI042.diff"),
    find: node_without_zone,
};

fn node_without_zone(context: &Context<'_>) -> Vec<Found> {
    let by_zone = context.scene.routes.iter().any(|(_, v)| zone_values(v).next().is_some());
    let used = by_zone || context.zone_groups().next().is_some();
    let of_control_plane = |meta: &Meta| {
        meta.labels.keys().any(|label| label.starts_with("node-role.kubernetes.io/control-plane"))
    };
    let nodes = context
        .given
        .nodes
        .iter()
        .filter(|(_, node)| node.zone().is_none() && !of_control_plane(&node.meta));
    nodes
        .filter(|_| used)
        .map(|(key, _)| {
            Found::new(
                Severity::Error,
                format!(
                    "Node {} has no label {ZONE_LABEL}: clients on it match no zone's route",
                    key.name
                ),
            )
            .at("Node", key, "metadata.labels", format!("no {ZONE_LABEL}"))
            .fix(format!("kubectl label node {} {ZONE_LABEL}=ZONE", key.name))
            .verify("kubectl get nodes -L topology.kubernetes.io/zone")
        })
        .collect()
}

pub(super) const WAYPOINT: Rule = Rule {
    code: "ZRI046",
    title: "A waypoint does not know its clients' zones",
    check: Check::Routes,
    effect: Effect::WrongPlace,
    meaning: "Routes by sourceLabels are never taken, and the weights of their Rollouts decide \
              nothing; up to Istio 1.24 the first of them takes everybody.",
    cause: "With a waypoint in between, the proxy that routes is the waypoint's, not the \
            caller's. From 1.25 it drops routes with sourceLabels, before it ignored the labels.",
    fix: "Keep sidecars for clients that are routed by zone, or route without sourceLabels.",
    verify: "istioctl proxy-config routes WAYPOINT-POD",
    example: include_str!("../examples/ZRI046.diff"),
    find: waypoint,
};

fn waypoint(context: &Context<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    for (key, virtual_service) in context.scene.routes.iter().filter(|(_, v)| in_mesh(v)) {
        let labelled: Vec<&str> = virtual_service
            .spec
            .http
            .iter()
            .filter(|route| route.matches.iter().any(|entry| !entry.source_labels.is_empty()))
            .map(|route| route.name.as_str())
            .collect();
        let hosts = Context::hosts(virtual_service);
        let used = hosts.keys().find_map(|host| waypoint_of(context.scene, &service_of(host)?));
        let Some((kind, object, name)) = used.filter(|_| !labelled.is_empty()) else { continue };
        let old = context.versions.istio.is_some_and(|istio| istio < Version::new(1, 25));
        let what = if old { "takes the first of them for everybody" } else { "drops them" };
        let claims = context.claims();
        let rollouts: BTreeSet<&str> = claims
            .iter()
            .filter(|claim| {
                claim.virtual_service.meta.key() == *key
                    && labelled.contains(&claim.route.name.as_str())
            })
            .map(|claim| claim.rollout.meta.name.as_str())
            .collect();
        let effect = if rollouts.is_empty() {
            String::new()
        } else {
            format!(", so the weights of {} decide nothing", listed(&rollouts))
        };
        let severity = Severity::Error;
        found.push(
            Found::new(
                severity,
                format!(
                    "routes {} of VirtualService {key} match by sourceLabels, but {kind} {object} \
                     uses waypoint {name}, which {what}{effect}",
                    listed(&labelled)
                ),
            )
            .at("VirtualService", key, "spec.http", listed(&labelled))
            .at(kind, &object, "metadata.labels[istio.io/use-waypoint]", name)
            .fix(format!(
                "kubectl label {} {}{} istio.io/use-waypoint-",
                kind.to_ascii_lowercase(),
                object.name,
                in_namespace(&object)
            ))
            .verify(show(key)),
        );
    }
    found
}

/// The waypoint of a Service, by its own label or its namespace's; `none` is none.
fn waypoint_of(scene: &Scene, service: &Key) -> Option<(&'static str, Key, String)> {
    const LABEL: &str = "istio.io/use-waypoint";
    let own = scene.services.get(service).and_then(|service| service.meta.labels.get(LABEL));
    let namespace = Key::new("", &service.namespace);
    let inherited =
        scene.namespaces.get(&namespace).and_then(|namespace| namespace.meta.labels.get(LABEL));
    let (kind, key, name) = match (own, inherited) {
        (Some(name), _) => ("Service", service.clone(), name),
        (None, Some(name)) => ("Namespace", namespace, name),
        (None, None) => return None,
    };
    (name != "none").then(|| (kind, key, name.clone()))
}

/// True if a waypoint stands before the Service behind this host.
pub(crate) fn waypoint_of_host(scene: &Scene, host: &str) -> bool {
    service_of(host).is_some_and(|service| waypoint_of(scene, &service).is_some())
}

pub(super) const ZONE_WITHOUT_GATEWAY: Rule = Rule {
    code: "ZRI049",
    title: "A zone with pods has no gateway",
    check: Check::Zones,
    effect: Effect::WrongPlace,
    meaning: "The pods of that zone get no requests from outside while the others live.",
    cause: "Gateways prefer the pods of their own zone, as sidecars do; a zone without a gateway \
            pod is nobody's own.",
    fix: "Run gateway pods in each zone, or switch the preference off: localityLbSetting: \
          {enabled: false}.",
    verify: "kubectl get pods -n istio-system -o wide",
    example: include_str!("../examples/ZRI049.diff"),
    find: zone_without_gateway,
};

fn zone_without_gateway(context: &Context<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    for (key, virtual_service) in context.scene.routes.iter() {
        let zones = gateway_zones(context, virtual_service);
        let led =
            context.outlooks.iter().filter(|outlook| leads_to(virtual_service, &outlook.host));
        for outlook in led.filter(|_| !zones.is_empty()) {
            let answering: BTreeSet<String> = zones
                .iter()
                .flat_map(|zone| {
                    let gateway = Client::gateway(context.scene, zone);
                    let clusters = context.mesh.clusters(&outlook.host, &gateway);
                    shares(&clusters, &gateway, None).zones.into_keys()
                })
                .collect();
            let idle: Vec<&String> =
                outlook.zones.iter().filter(|zone| !answering.contains(*zone)).collect();
            if !idle.is_empty() && !answering.is_empty() {
                found.push(
                    Found::new(
                        Severity::Warning,
                        format!(
                            "the pods of {} in {} get no requests from outside: the gateways of \
                             VirtualService {key} run in {} only",
                            outlook.host,
                            listed(&idle),
                            listed(&zones)
                        ),
                    )
                    .at(
                        "VirtualService",
                        key,
                        "spec.gateways",
                        virtual_service.spec.gateways.join(", "),
                    )
                    .fix(
                        "run gateway pods in each zone (topologySpreadConstraints over \
                         topology.kubernetes.io/zone)",
                    )
                    .verify("kubectl get pods -A -l istio=ingressgateway -o wide"),
                );
            }
        }
    }
    found
}

/// Zones in which the gateways of a VirtualService have pods.
fn gateway_zones(context: &Context<'_>, virtual_service: &VirtualService) -> BTreeSet<String> {
    let namespace = &virtual_service.meta.namespace;
    let named = |name: &String| match name.split_once('/') {
        Some((namespace, name)) => Key::new(namespace, name),
        None => Key::new(namespace, name),
    };
    let gateways = virtual_service
        .spec
        .gateways
        .iter()
        .filter_map(|name| context.scene.gateways.get(&named(name)));
    let selectors: Vec<&Map<String, Value>> =
        gateways.filter_map(|gateway| gateway.spec["selector"].as_object()).collect();
    let pods = context.scene.pods.iter().filter(|(_, pod)| {
        let labels = &pod.meta.labels;
        selectors.iter().any(|selector| {
            !selector.is_empty()
                && selector
                    .iter()
                    .all(|(label, value)| labels.get(label).map(String::as_str) == value.as_str())
        })
    });
    pods.filter_map(|(_, pod)| pod_zone(context.scene, pod)).collect()
}
