//! What a Rollout refers to, and what the controller refuses about it.

use serde_json::json;

use std::collections::BTreeMap;

use super::routes::show;
use crate::diagnose::command;
use crate::diagnose::context::{Context, in_namespace, listed};
use crate::diagnose::finding::{Effect, Found, Severity};
use crate::diagnose::rule::{Check, Rule};
use crate::scene::{Key, Rollout, Service, VirtualServiceReference, labels_of, template_of};
use crate::traffic::{RouteGap, rollout_routes, virtual_service_key};

const ROUTES: &str = "spec.strategy.canary.trafficRouting.istio.virtualService.routes";

fn gaps<'a>(context: &Context<'a>) -> impl Iterator<Item = (&'a Rollout, RouteGap)> {
    context.rollouts().filter_map(|rollout| {
        // Routes of other protocols are weighed as well, and are not understood here.
        let http = rollout.virtual_services().iter().all(|reference| {
            let key = virtual_service_key(reference, &rollout.meta.namespace);
            let object = context.scene.routes.get(&key);
            object.is_none_or(|object| object.spec.tls.is_empty() && object.spec.tcp.is_empty())
        });
        Some((rollout, rollout_routes(context.scene, rollout).err().filter(|_| http)?))
    })
}

fn see(rollout: &Rollout) -> String {
    let key = rollout.meta.key();
    format!(
        "kubectl get rollout {}{} -o jsonpath='{{.status.phase}} {{.status.message}}'",
        key.name,
        in_namespace(&key)
    )
}

pub(super) const ROUTES_OMITTED: Rule = Rule {
    code: "ZRA001",
    title: "A Rollout names no routes, and the VirtualService has several",
    check: Check::Rollouts,
    effect: Effect::Release,
    meaning: "The Rollout becomes InvalidSpec: no route gets weights and nothing moves.",
    cause: "Without `routes` the controller accepts a VirtualService only if it has exactly one \
            HTTP route.",
    fix: "Name the routes.",
    verify: "kubectl get rollout NAME",
    example: include_str!("../examples/ZRA001.diff"),
    find: routes_omitted,
};

fn routes_omitted(context: &Context<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    for (rollout, gap) in gaps(context) {
        let RouteGap::NoRoute(service, name) = gap else { continue };
        let Some(virtual_service) = context.scene.routes.get(&service).filter(|_| name.is_empty())
        else {
            continue;
        };
        let http = &virtual_service.spec.http;
        if http.is_empty() {
            continue;
        }
        let key = rollout.meta.key();
        let names: Vec<&String> = http.iter().map(|route| &route.name).collect();
        found.push(
            Found::new(
                Severity::Error,
                format!(
                    "Rollout {key} names no routes, but VirtualService {service} has {} HTTP \
                     routes: the Rollout becomes InvalidSpec and no route gets weights",
                    http.len()
                ),
            )
            .at("Rollout", &key, ROUTES, "missing")
            .at("VirtualService", &service, "spec.http", format!("{} routes", http.len()))
            .fix(command::set("Rollout", &key, ROUTES, json!(names)))
            .verify(see(rollout)),
        );
    }
    found
}

pub(super) const ROUTE_MISSING: Rule = Rule {
    code: "ZRA002",
    title: "A Rollout names a route that does not exist",
    check: Check::Rollouts,
    effect: Effect::Release,
    meaning: "The Rollout becomes InvalidSpec: nothing moves, not even an abort.",
    cause: "The controller looks for the route by name: HTTP Route 'x' is not found in the \
            defined Virtual Service.",
    fix: "Name a route that exists.",
    verify: "kubectl get virtualservice NAME -o yaml",
    example: include_str!("../examples/ZRA002.diff"),
    find: |context| {
        gaps(context)
            .filter_map(|(rollout, gap)| match gap {
                RouteGap::NoRoute(service, name) if !name.is_empty() => {
                    let key = rollout.meta.key();
                    let there = context
                        .scene
                        .routes
                        .get(&service)
                        .map(|v| listed(v.spec.http.iter().map(|route| &route.name)))
                        .unwrap_or_default();
                    Some(
                        Found::new(
                            Severity::Error,
                            format!(
                                "Rollout {key} names route {name}, which VirtualService {service} \
                                 does not have: the Rollout becomes InvalidSpec"
                            ),
                        )
                        .at("Rollout", &key, ROUTES, &name)
                        .at("VirtualService", &service, "spec.http", format!("routes: {there}"))
                        .fix(command::edit("VirtualService", &service))
                        .verify(see(rollout)),
                    )
                }
                _ => None,
            })
            .collect()
    },
};

pub(super) const DESTINATION_MISSING: Rule = Rule {
    code: "ZRA003",
    title: "A Rollout's route lacks its stable or canary destination",
    check: Check::Rollouts,
    effect: Effect::Release,
    meaning: "The Rollout becomes InvalidSpec: nothing moves, not even an abort.",
    cause: "The controller looks for both destinations in each route: by subset, or by Service if \
            the Rollout names no DestinationRule (subset 'x' not found in route).",
    fix: "Add the destination to the route.",
    verify: "kubectl get virtualservice NAME -o yaml",
    example: include_str!("../examples/ZRA003.diff"),
    find: |context| {
        gaps(context)
            .filter_map(|(rollout, gap)| match gap {
                RouteGap::NoDestination(service, route, wanted) if !wanted.is_empty() => {
                    let key = rollout.meta.key();
                    Some(
                        Found::new(
                            Severity::Error,
                            format!(
                                "route {route} of VirtualService {service} has no destination \
                                 {wanted} for Rollout {key}: the Rollout becomes InvalidSpec"
                            ),
                        )
                        .at(
                            "VirtualService",
                            &service,
                            format!("spec.http ({route}).route"),
                            format!("no {wanted}"),
                        )
                        .at("Rollout", &key, "spec.strategy.canary", wanted)
                        .fix(command::edit("VirtualService", &service))
                        .verify(see(rollout)),
                    )
                }
                _ => None,
            })
            .collect()
    },
};

pub(super) const OBJECT_MISSING: Rule = Rule {
    code: "ZRA004",
    title: "A Rollout refers to an object that does not exist",
    check: Check::Rollouts,
    effect: Effect::Release,
    meaning: "Nothing moves. A missing DestinationRule stays unnoticed even after it has been \
              created, until something else touches the Rollout.",
    cause: "The controller refuses the Rollout (InvalidSpec), or for a DestinationRule reports \
            DestinationRuleNotFound once and does not try again.",
    fix: "Create the object, then touch the Rollout.",
    verify: "kubectl get rollout NAME",
    example: include_str!("../examples/ZRA004.diff"),
    find: object_missing,
};

fn object_missing(context: &Context<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    for rollout in context.rollouts() {
        let namespace = &rollout.meta.namespace;
        let canary = rollout.spec.strategy.canary.as_ref();
        let services = canary.map(|canary| {
            [("canaryService", &canary.canary_service), ("stableService", &canary.stable_service)]
        });
        for (field, name) in services.into_iter().flatten() {
            let Some(name) = name else { continue };
            let key = Key::new(namespace, name);
            if context.scene.services.get(&key).is_none()
                && context.holds(&context.given.services, namespace)
            {
                found.push(lacks(
                    rollout,
                    "Service",
                    &key,
                    &format!("spec.strategy.canary.{field}"),
                ));
            }
        }
        if let Some(rule) = rollout.destination_rule() {
            let key = Key::new(namespace, &rule.name);
            if context.scene.rules.get(&key).is_none()
                && context.holds(&context.given.rules, namespace)
            {
                found.push(lacks(
                    rollout,
                    "DestinationRule",
                    &key,
                    "spec.strategy.canary.trafficRouting.istio.destinationRule.name",
                ));
            }
        }
        for reference in rollout.virtual_services() {
            let key = virtual_service_key(reference, namespace);
            if context.scene.routes.get(&key).is_none()
                && context.holds(&context.given.routes, &key.namespace)
            {
                found.push(lacks(
                    rollout,
                    "VirtualService",
                    &key,
                    "spec.strategy.canary.trafficRouting.istio.virtualService.name",
                ));
            }
        }
    }
    found
}

fn lacks(rollout: &Rollout, kind: &'static str, missing: &Key, path: &str) -> Found {
    let key = rollout.meta.key();
    Found::new(
        Severity::Error,
        format!("Rollout {key} refers to {kind} {missing}, which does not exist"),
    )
    .at("Rollout", &key, path, &missing.name)
    .fix(format!(
        "create it, then: kubectl annotate rollout {}{} touched-at=\"$(date)\" --overwrite",
        key.name,
        in_namespace(&key)
    ))
    .verify(see(rollout))
}

pub(super) const SERVICES: Rule = Rule {
    code: "ZRA006",
    title: "The Services of a Rollout cannot be used",
    check: Check::Rollouts,
    effect: Effect::Release,
    meaning: "The Rollout becomes InvalidSpec: nothing moves.",
    cause: "The controller writes the template hash into both Services. They have to be two, of \
            this Rollout only, and select nothing that its pods do not carry; without a \
            DestinationRule they are required.",
    fix: "Give each Rollout a stable and a canary Service of its own.",
    verify: "kubectl get services -o wide",
    example: include_str!("../examples/ZRA006.diff"),
    find: services,
};

fn services(context: &Context<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    let mut users: BTreeMap<Key, Vec<&Rollout>> = BTreeMap::new();
    for rollout in context.rollouts() {
        let canary = rollout.spec.strategy.canary.as_ref();
        let Some(canary) = canary.filter(|canary| canary.ping_pong.is_none()) else { continue };
        let both = [&canary.canary_service, &canary.stable_service];
        let missing = both.iter().any(|name| name.is_none());
        if rollout.istio().is_some() && rollout.destination_rule().is_none() && missing {
            found.push(refused(
                rollout,
                "names neither a DestinationRule nor both Services: Canary service and Stable \
                 service must be set to use traffic routing",
                "spec.strategy.canary",
                "a Service is missing",
            ));
        }
        let same =
            canary.canary_service.is_some() && canary.canary_service == canary.stable_service;
        if same {
            found.push(refused(
                rollout,
                "uses the same Service for stable and canary",
                "spec.strategy.canary.canaryService",
                canary.canary_service.as_deref().unwrap_or_default(),
            ));
        }
        for name in both.into_iter().flatten().take(if same { 1 } else { 2 }) {
            let key = Key::new(&rollout.meta.namespace, name);
            users.entry(key.clone()).or_default().push(rollout);
            let foreign = context
                .given
                .services
                .get(&key)
                .and_then(|service| foreign_label(context, service, rollout));
            if let Some(label) = foreign {
                found.push(
                    refused(
                        rollout,
                        &format!(
                            "has Service {name}, which selects by {label}; its pods do not carry \
                             that"
                        ),
                        "spec.template.metadata.labels",
                        &format!("no {label}"),
                    )
                    .at("Service", &key, "spec.selector", &label),
                );
            }
        }
    }
    for (key, rollouts) in users.into_iter().filter(|(_, rollouts)| rollouts.len() > 1) {
        let names = listed(rollouts.iter().map(|rollout| &rollout.meta.name));
        found.push(
            Found::new(
                Severity::Error,
                format!(
                    "Service {key} is used by Rollouts {names}; the second becomes InvalidSpec \
                     (managed by another Rollout)"
                ),
            )
            .at("Service", &key, "", format!("used by {names}"))
            .fix(format!(
                "give each Rollout Services of its own: kubectl edit rollout {}{}",
                rollouts[1].meta.name,
                in_namespace(&key)
            ))
            .verify(see(rollouts[1])),
        );
    }
    found
}

fn foreign_label(context: &Context<'_>, service: &Service, rollout: &Rollout) -> Option<String> {
    let labels = labels_of(template_of(context.scene, rollout));
    let selector =
        service.spec.selector.iter().filter(|(label, _)| *label != crate::scene::POD_HASH_LABEL);
    let mut foreign = selector.filter(|(label, value)| labels.get(*label) != Some(*value));
    foreign.next().filter(|_| !labels.is_empty()).map(|(label, value)| format!("{label}={value}"))
}

fn refused(rollout: &Rollout, why: &str, path: &str, value: &str) -> Found {
    let key = rollout.meta.key();
    Found::new(Severity::Error, format!("Rollout {key} {why}"))
        .at("Rollout", &key, path, value)
        .fix(command::edit("Rollout", &key))
        .verify(see(rollout))
}

pub(super) const MANAGED_ROUTES: Rule = Rule {
    code: "ZRA016",
    title: "Several Rollouts manage a header or mirror route of the same name",
    check: Check::Rollouts,
    effect: Effect::WrongPlace,
    meaning: "Each removes or reorders the other's route when it is promoted.",
    cause: "The controller removes managed routes by name from the VirtualService.",
    fix: "Give the managed routes of each Rollout names of their own.",
    verify: "kubectl get virtualservice NAME -o yaml",
    example: include_str!("../examples/ZRA016.diff"),
    find: managed_routes,
};

fn managed_routes(context: &Context<'_>) -> Vec<Found> {
    let mut users: BTreeMap<(Key, String), Vec<&Rollout>> = BTreeMap::new();
    for rollout in context.rollouts() {
        for name in rollout.managed_routes() {
            for reference in rollout.virtual_services() {
                let reference: &VirtualServiceReference = reference;
                let key = virtual_service_key(reference, &rollout.meta.namespace);
                users.entry((key, name.to_owned())).or_default().push(rollout);
            }
        }
    }
    users
        .into_iter()
        .filter(|(_, rollouts)| rollouts.len() > 1)
        .map(|((service, name), rollouts)| {
            let names = listed(rollouts.iter().map(|rollout| &rollout.meta.name));
            let mut found = Found::new(
                Severity::Warning,
                format!(
                    "Rollouts {names} all manage a route {name} in VirtualService {service}; each \
                     removes the other's"
                ),
            );
            for rollout in &rollouts {
                found = found.at(
                    "Rollout",
                    &rollout.meta.key(),
                    "spec.strategy.canary.trafficRouting.managedRoutes",
                    &name,
                );
            }
            found
                .fix(format!(
                    "kubectl edit rollout {}{}",
                    rollouts[1].meta.name,
                    in_namespace(&rollouts[1].meta.key())
                ))
                .verify(show(&service))
        })
        .collect()
}

pub(super) const ORPHANED_RULE: Rule = Rule {
    code: "ZRA018",
    title: "A DestinationRule belongs to a Rollout that is gone",
    check: Check::Rollouts,
    effect: Effect::WrongPlace,
    meaning: "The controller takes the template hash from all subsets of the rule, including \
              other Rollouts': stable and canary pods mix.",
    cause: "The annotation managed-by-rollouts names a Rollout that does not exist or refers to \
            another rule.",
    fix: "Remove the annotation, or bring the Rollout back.",
    verify: "kubectl get destinationrule NAME -o yaml",
    example: include_str!("../examples/ZRA018.diff"),
    find: |context| {
        const MARK: &str = "argo-rollouts.argoproj.io/managed-by-rollouts";
        let marked = context
            .scene
            .rules
            .iter()
            .filter_map(|(key, rule)| Some((key, rule, rule.meta.annotations.get(MARK)?)));
        marked
            .filter(|(key, rule, name)| {
                context.holds(&context.given.rollouts, &key.namespace)
                    && !context.writers(rule).iter().any(|rollout| rollout.meta.name == **name)
            })
            .map(|(key, _, name)| {
                Found::new(
                    Severity::Warning,
                    format!(
                        "DestinationRule {key} is marked as Rollout {name}'s, which does not \
                         exist or refers to another rule"
                    ),
                )
                .at("DestinationRule", key, format!("metadata.annotations[{MARK}]"), name)
                .fix(format!(
                    "kubectl annotate destinationrule {}{} {MARK}-",
                    key.name,
                    in_namespace(key)
                ))
                .verify(format!(
                    "kubectl get destinationrule {}{} -o yaml",
                    key.name,
                    in_namespace(key)
                ))
            })
            .collect()
    },
};

pub(super) const INVALID_SPEC: Rule = Rule {
    code: "ZRA020",
    title: "The controller refuses a Rollout",
    check: Check::Rollouts,
    effect: Effect::Release,
    meaning: "Nothing of the Rollout is reconciled: no step, no weight, no abort.",
    cause: "The controller checks the Rollout and what it refers to before anything else, and \
            says why in the condition InvalidSpec. There is no event for it.",
    fix: "Correct what the message names.",
    verify: "kubectl get rollout NAME -o yaml",
    example: include_str!("../examples/ZRA020.diff"),
    find: |context| {
        let refused = context.rollouts().filter_map(|rollout| {
            let condition =
                rollout.condition("InvalidSpec").filter(|condition| condition.status == "True")?;
            Some((rollout, condition))
        });
        refused
            .map(|(rollout, condition)| {
                let key = rollout.meta.key();
                Found::new(
                    Severity::Error,
                    format!("the controller refuses Rollout {key}: {}", condition.message),
                )
                .at("Rollout", &key, "status.conditions (InvalidSpec).message", &condition.message)
                .fix(command::edit("Rollout", &key))
                .verify(see(rollout))
            })
            .collect()
    },
};
