//! Where the pods of a zone may run.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;

use crate::diagnose::command;
use crate::diagnose::context::{Context, in_namespace, listed};
use crate::diagnose::finding::{Effect, Found, Severity};
use crate::diagnose::rule::{Check, Rule};
use crate::group::ZONE_LABEL as OWN_LABEL;
use crate::scene::{LabelSelector, Rollout, ZONE_LABEL, allowed_zones, labels_of, template_of};

const HOSTNAME: &str = "kubernetes.io/hostname";

fn pods(rollout: &Rollout) -> String {
    let labels = rollout.spec.selector.as_typed();
    format!("kubectl get pods{} -l {labels} -o wide", in_namespace(&rollout.meta.key()))
}

pub(super) const MISMATCH: Rule = Rule {
    code: "ZRK010",
    title: "Label, affinity and route name different zones",
    check: Check::Zones,
    effect: Effect::WrongPlace,
    meaning: "Clients of one zone are served by pods in another, and a release of a zone changes \
              another zone's traffic.",
    cause: "The zone is written in several places: the Rollout's label, its pods' affinity, and \
            the sourceLabels of the route that the Rollout weighs. Nothing keeps them together.",
    fix: "Write the same zone everywhere.",
    verify: "kubectl get pods -o wide",
    example: include_str!("../examples/ZRK010.diff"),
    find: mismatch,
};

fn mismatch(context: &Context<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    for rollout in context.rollouts() {
        let key = rollout.meta.key();
        let Some(zones) = allowed_zones(template_of(context.scene, rollout)) else { continue };
        let bound = listed(&zones);
        let label = rollout.meta.labels.get(OWN_LABEL).filter(|label| !zones.contains(*label));
        found.extend(label.map(|label| {
            Found::new(
                Severity::Error,
                format!(
                    "Rollout {key} is labelled with zone {label}, but its pods are bound to {bound}"
                ),
            )
            .at("Rollout", &key, format!("metadata.labels[{OWN_LABEL}]"), label)
            .at("Rollout", &key, "spec.template.spec", &bound)
            .fix(format!(
                "kubectl label rollout {}{} {OWN_LABEL}={} --overwrite",
                key.name,
                in_namespace(&key),
                zones.first().map_or("ZONE", String::as_str)
            ))
            .verify(pods(rollout))
        }));
        for route in context.routes_of(rollout) {
            let wanted: BTreeSet<&String> = route
                .route
                .matches
                .iter()
                .filter_map(|entry| entry.source_labels.get(ZONE_LABEL))
                .collect();
            if !wanted.is_empty() && wanted.iter().all(|zone| !zones.contains(*zone)) {
                let service = &route.virtual_service;
                found.push(
                    Found::new(
                        Severity::Error,
                        format!(
                            "route {} of VirtualService {service} takes clients in {} to Rollout \
                             {key}, whose pods are bound to {bound}",
                            route.route.name,
                            listed(&wanted)
                        ),
                    )
                    .at(
                        "VirtualService",
                        service,
                        format!("spec.http[{}].match", route.index),
                        listed(&wanted),
                    )
                    .at("Rollout", &key, "spec.template.spec", &bound)
                    .fix(command::edit("Rollout", &key))
                    .verify(pods(rollout)),
                );
            }
        }
    }
    found.extend(same_zone(context));
    found
}

/// Two zones of a group whose pods are bound to the same place.
fn same_zone(context: &Context<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    for group in context.zone_groups() {
        let mut bound: BTreeMap<String, Vec<&Rollout>> = BTreeMap::new();
        for rollout in context.rollouts_of(group) {
            let zones = allowed_zones(template_of(context.scene, rollout)).unwrap_or_default();
            if let (1, Some(zone)) = (zones.len(), zones.into_iter().next()) {
                bound.entry(zone).or_default().push(rollout);
            }
        }
        for (zone, rollouts) in bound.into_iter().filter(|(_, rollouts)| rollouts.len() > 1) {
            let labels: BTreeSet<_> = rollouts
                .iter()
                .map(|rollout| labels_of(template_of(context.scene, rollout)).get("zone").cloned())
                .collect();
            // Two fleets in one zone are fine; two zones by label in one place are not.
            if labels.len() < 2 || labels.contains(&None) {
                continue;
            }
            let key = rollouts[1].meta.key();
            found.push(
                Found::new(
                    Severity::Error,
                    format!(
                        "Rollouts {} stand for different zones, but the pods of all are bound to {zone}",
                        listed(rollouts.iter().map(|rollout| &rollout.meta.name))
                    ),
                )
                .at("Rollout", &key, "spec.template.spec", &zone)
                .at("Rollout", &rollouts[0].meta.key(), "spec.template.spec", &zone)
                .fix(command::edit("Rollout", &key))
                .verify(pods(rollouts[1])),
            );
        }
    }
    found
}

pub(super) const UNSCHEDULABLE: Rule = Rule {
    code: "ZRK011",
    title: "Pods of a zone cannot be scheduled",
    check: Check::Zones,
    effect: Effect::Pods,
    meaning: "Some pods of the zone stay Pending: the release never becomes complete.",
    cause: "The pods are bound to one zone, and a spread or anti-affinity rule asks for more \
            zones or nodes than there are.",
    fix: "Spread over kubernetes.io/hostname, without a condition that one zone cannot meet.",
    verify: "kubectl get pods -o wide",
    example: include_str!("../examples/ZRK011.diff"),
    find: unschedulable,
};

fn unschedulable(context: &Context<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    for rollout in context.rollouts().filter(|rollout| rollout.replicas() > 1) {
        let template = template_of(context.scene, rollout);
        let Some(zones) = allowed_zones(template) else { continue };
        let places = Places {
            zones: zones.len(),
            nodes: nodes_in(context, &zones),
            replicas: rollout.replicas() as usize,
        };
        if let Some((path, why)) = unmet(template, &places) {
            let key = rollout.meta.key();
            found.push(
                Found::new(
                    Severity::Error,
                    format!("not all pods of Rollout {key} can be scheduled: {why}"),
                )
                .at("Rollout", &key, path, &why)
                .fix(command::edit("Rollout", &key))
                .verify(pods(rollout)),
            );
        }
    }
    found
}

/// What there is for the pods of a Rollout.
struct Places {
    zones: usize,
    /// Nothing if no nodes are known.
    nodes: Option<usize>,
    replicas: usize,
}

fn nodes_in(context: &Context<'_>, zones: &BTreeSet<String>) -> Option<usize> {
    let there = context
        .given
        .nodes
        .iter()
        .filter(|(_, node)| node.zone().is_some_and(|zone| zones.contains(zone)));
    context.given.nodes.is_complete().then(|| there.count())
}

fn unmet(template: &Value, places: &Places) -> Option<(String, String)> {
    let list = |pointer: &str| {
        template.pointer(pointer).and_then(Value::as_array).cloned().unwrap_or_default()
    };
    for (index, spread) in list("/spec/topologySpreadConstraints").iter().enumerate() {
        let hard = spread["whenUnsatisfiable"] != "ScheduleAnyway";
        let skew = usize::try_from(spread["maxSkew"].as_u64().unwrap_or(1)).unwrap_or(1);
        let least = usize::try_from(spread["minDomains"].as_u64().unwrap_or(1)).unwrap_or(1);
        let domains = match spread["topologyKey"].as_str() {
            Some(ZONE_LABEL) => Some(places.zones),
            Some(HOSTNAME) => places.nodes,
            _ => None,
        };
        let path = format!("spec.template.spec.topologySpreadConstraints[{index}]");
        let Some(domains) = domains.filter(|_| hard) else { continue };
        if least > domains && places.replicas > skew * domains {
            return Some((path, format!("minDomains is {least}, but they are bound to {domains}")));
        }
        if spread["nodeAffinityPolicy"] == "Ignore"
            && spread["topologyKey"] == ZONE_LABEL
            && places.replicas > skew
        {
            return Some((
                path,
                format!(
                    "nodeAffinityPolicy Ignore counts zones they may not run in, so at most \
                     {skew} fit"
                ),
            ));
        }
    }
    let terms = "/spec/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution";
    let labels = labels_of(template);
    for (index, term) in list(terms).iter().enumerate() {
        let repels_itself = repels(term, &labels);
        let domains = match term["topologyKey"].as_str() {
            Some(ZONE_LABEL) => Some(places.zones),
            Some(HOSTNAME) => places.nodes,
            _ => None,
        };
        if let Some(domains) =
            domains.filter(|domains| repels_itself && *domains > 0 && places.replicas > *domains)
        {
            let path = format!(
                "spec.template.spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[{index}]"
            );
            return Some((
                path,
                format!(
                    "only one pod fits into each {}, and there is room for {domains} of {}",
                    term["topologyKey"].as_str().unwrap_or_default(),
                    places.replicas
                ),
            ));
        }
    }
    None
}

/// True if no two pods of the template may share a node.
pub(super) fn repels_itself_by_node(template: &Value) -> bool {
    let terms = template
        .pointer("/spec/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution");
    let labels = labels_of(template);
    let mut terms = terms.and_then(Value::as_array).into_iter().flatten();
    terms.any(|term| term["topologyKey"] == HOSTNAME && repels(term, &labels))
}

/// True if a term of anti-affinity selects pods with these labels.
fn repels(term: &Value, labels: &BTreeMap<String, String>) -> bool {
    let selector = term.get("labelSelector").map(LabelSelector::deserialize);
    selector.is_some_and(|selector| selector.is_ok_and(|selector| selector.selects(labels)))
}

pub(super) const ONE_NODE: Rule = Rule {
    code: "ZRK012",
    title: "All pods of a zone may share a node",
    check: Check::Zones,
    effect: Effect::ZoneLoss,
    meaning: "The loss of one node is the loss of the zone.",
    cause: "Nothing spreads the pods over the zone's nodes, or the zone has one node only.",
    fix: "Add a topologySpreadConstraint over kubernetes.io/hostname.",
    verify: "kubectl get pods -o wide",
    example: include_str!("../examples/ZRK012.diff"),
    find: one_node,
};

fn one_node(context: &Context<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    for group in context.zone_groups() {
        for rollout in
            context.rollouts_of(group).into_iter().filter(|rollout| rollout.replicas() > 1)
        {
            let key = rollout.meta.key();
            let running = running_on(context, rollout);
            let spread = is_spread(template_of(context.scene, rollout));
            let title = match running.first() {
                Some(node) if running.len() == 1 => {
                    format!("all pods of Rollout {key} run on node {node}")
                }
                Some(_) => continue,
                None if spread => continue,
                None => format!(
                    "nothing spreads the pods of Rollout {key} over the nodes of its zone; all \
                     may run on one"
                ),
            };
            let severity = if running.is_empty() { Severity::Info } else { Severity::Warning };
            found.push(
                Found::new(severity, title)
                    .at(
                        "Rollout",
                        &key,
                        "spec.template.spec.topologySpreadConstraints",
                        if spread { "set" } else { "missing" },
                    )
                    .fix(command::edit("Rollout", &key))
                    .verify(pods(rollout)),
            );
        }
    }
    found
}

/// The nodes that a Rollout's pods run on; none if pods were not given.
fn running_on<'a>(context: &Context<'a>, rollout: &Rollout) -> BTreeSet<&'a str> {
    let selector = &rollout.spec.selector;
    let own = context.given.pods.iter().filter(|(key, pod)| {
        key.namespace == rollout.meta.namespace
            && pod.is_ready()
            && selector.selects(&pod.meta.labels)
    });
    let nodes: Vec<&str> =
        own.map(|(_, pod)| pod.spec.node_name.as_str()).filter(|node| !node.is_empty()).collect();
    if nodes.len() > 1 { nodes.into_iter().collect() } else { BTreeSet::new() }
}

fn is_spread(template: &Value) -> bool {
    let by_host =
        |value: Option<&Value>| value.is_some_and(|value| value.to_string().contains(HOSTNAME));
    by_host(template.pointer("/spec/topologySpreadConstraints"))
        || by_host(template.pointer("/spec/affinity/podAntiAffinity"))
}

pub(super) const UNBOUND: Rule = Rule {
    code: "ZRK013",
    title: "A zone's Rollout is not bound to a zone",
    check: Check::Zones,
    effect: Effect::WrongPlace,
    meaning: "Its pods may run in any zone, so that a release of this zone changes others.",
    cause: "The Rollout belongs to a group with one Rollout for each zone, and has neither a \
            required affinity nor a node selector for one.",
    fix: "Add a required nodeAffinity on topology.kubernetes.io/zone.",
    verify: "kubectl get pods -o wide",
    example: include_str!("../examples/ZRK013.diff"),
    find: |context| {
        let mut found = Vec::new();
        for group in context.zone_groups() {
            let rollouts = context.rollouts_of(group);
            let is_bound = |rollout: &&&Rollout| {
                allowed_zones(template_of(context.scene, rollout))
                    .is_some_and(|zones| zones.len() == 1)
            };
            let bound = rollouts.iter().filter(is_bound).count();
            for rollout in rollouts.iter().filter(|rollout| bound > 0 && !is_bound(rollout)) {
                let key = rollout.meta.key();
                found.push(
                    Found::new(
                        Severity::Warning,
                        format!(
                            "Rollout {key} is one of several zones' and not bound to a zone itself"
                        ),
                    )
                    .at(
                        "Rollout",
                        &key,
                        "spec.template.spec.affinity.nodeAffinity",
                        "names no single zone",
                    )
                    .fix(command::edit("Rollout", &key))
                    .verify(pods(rollout)),
                );
            }
        }
        found
    },
};
