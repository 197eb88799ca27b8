//! What the Rollouts controller waits for or refuses, beyond what a Rollout refers to.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::diagnose::command;
use crate::diagnose::context::{Context, in_namespace, listed};
use crate::diagnose::finding::{Effect, Found, Severity};
use crate::diagnose::rule::{Check, Rule};
use crate::diagnose::version::Version;
use crate::scene::{ReplicaSet, Rollout, Step, StepKind};
use crate::traffic::{fully_qualified, merged_rule};

pub(super) const FROZEN: Rule = Rule {
    code: "ZRA021",
    title: "A ReplicaSet that is not fully available holds a Rollout",
    check: Check::Rollouts,
    effect: Effect::Release,
    meaning: "While it lasts, abort, promote and new steps may be accepted and not carried out: \
              the weights stay as they are.",
    cause: "With subsets and without stable and canary Services, the controller does not switch \
            the DestinationRule while a ReplicaSet is not fully available (delaying destination \
            rule switch, in its log only). Silent in 1.8.3 and 1.8.4, absent up to 1.7.",
    fix: "Bring the pods up or scale them away; `kubectl zone-rollout abort` writes the weights \
          itself.",
    verify: "kubectl get replicasets",
    example: include_str!("../examples/ZRA021.diff"),
    find: frozen,
};

fn frozen(context: &Context<'_>) -> Vec<Found> {
    let old = context.versions.argo.is_some_and(|argo| argo < Version::new(1, 8));
    let mut found = Vec::new();
    for rollout in context.rollouts().filter(|_| !old) {
        let canary = rollout.spec.strategy.canary.as_ref();
        let guarded = canary.is_some_and(|canary| {
            canary.stable_service.is_some() || canary.canary_service.is_some()
        });
        if rollout.destination_rule().is_none() || guarded {
            continue;
        }
        let lacking = replica_sets(context, rollout).find(|replica_set| {
            let wanted = replica_set.spec.replicas.unwrap_or(1);
            replica_set.status.replicas.is_some() && replica_set.status.available_replicas < wanted
        });
        let Some(lacking) = lacking else { continue };
        let (key, owner) = (lacking.meta.key(), rollout.meta.key());
        let wanted = lacking.spec.replicas.unwrap_or(1);
        let status = &rollout.status;
        // While pods come up this is how things go; where somebody wants out, or it has timed out, not.
        let asked = status.abort || status.promote_full;
        let late = rollout
            .condition("Progressing")
            .is_some_and(|c| c.reason == "ProgressDeadlineExceeded");
        let severity = if asked || late { Severity::Error } else { Severity::Warning };
        found.push(
            Found::new(
                severity,
                format!(
                    "ReplicaSet {} of Rollout {owner} has {} of {wanted} pods available: the \
                     controller does not switch subsets meanwhile, and an abort or promote may \
                     not be carried out",
                    key.name, lacking.status.available_replicas
                ),
            )
            .at("ReplicaSet", &key, "status.availableReplicas", lacking.status.available_replicas)
            .at("Rollout", &owner, "spec.strategy.canary.stableService", "missing")
            .fix(format!(
                "bring its pods up, or take the traffic back: kubectl zone-rollout abort {}{}",
                owner.name,
                in_namespace(&owner)
            ))
            .verify(format!("kubectl get replicasets{}", in_namespace(&key))),
        );
    }
    found
}

/// The stable and the new ReplicaSet of a Rollout.
fn replica_sets<'a>(
    context: &Context<'a>,
    rollout: &'a Rollout,
) -> impl Iterator<Item = &'a ReplicaSet> {
    let hashes = [&rollout.status.stable_rs, &rollout.status.current_pod_hash];
    context.given.replica_sets.iter().map(|(_, replica_set)| replica_set).filter(
        move |replica_set| {
            let owned = replica_set
                .meta
                .owner_references
                .iter()
                .any(|owner| owner.kind == "Rollout" && owner.name == rollout.meta.name);
            owned
                && replica_set.meta.namespace == rollout.meta.namespace
                && hashes.iter().any(|hash| !hash.is_empty() && *hash == replica_set.hash())
        },
    )
}

pub(super) const REFUSED: Rule = Rule {
    code: "ZRA009",
    title: "The controller will refuse a Rollout",
    check: Check::Rollouts,
    effect: Effect::Release,
    meaning: "The Rollout becomes InvalidSpec: nothing moves.",
    cause: "The controller checks the steps and options of a Rollout before anything else: \
            weights from 0 to 100, one strategy, and options that need traffic routing only \
            together with it.",
    fix: "Correct the field that is named.",
    verify: "kubectl get rollout NAME",
    example: include_str!("../examples/ZRA009.diff"),
    find: |context| {
        let all = context.scene.rollouts.iter().map(|(_, rollout)| rollout);
        let refused = all.filter_map(|rollout| Some((rollout, refusal(rollout)?)));
        refused
            .map(|(rollout, (path, why))| {
                let key = rollout.meta.key();
                Found::new(
                    Severity::Error,
                    format!("the controller will refuse Rollout {key}: {why}"),
                )
                .at("Rollout", &key, path, &why)
                .fix(command::edit("Rollout", &key))
                .verify(format!(
                    "kubectl get rollout {}{}",
                    key.name,
                    in_namespace(&key)
                ))
            })
            .collect()
    },
};

/// The first thing that the controller's validation (`ValidateRolloutSpec`) would not accept.
fn refusal(rollout: &Rollout) -> Option<(String, String)> {
    let strategy = &rollout.spec.strategy;
    let canary = strategy.canary.as_ref()?;
    let at = |path: &str, why: &str| Some((format!("spec.strategy.{path}"), why.to_owned()));
    if strategy.blue_green.is_some() {
        return at("blueGreen", "multiple strategies can not be listed");
    }
    let routed = canary.traffic_routing.is_some();
    if canary.dynamic_stable_scale && !routed {
        return at(
            "canary.dynamicStableScale",
            "dynamicStableScale can only be used with traffic routing",
        );
    }
    let routing = canary.traffic_routing.as_ref();
    let other_most = routing.is_some_and(|routing| routing.others.contains_key("maxTrafficWeight"));
    canary.steps.iter().enumerate().find_map(|(index, step)| {
        let why = match step {
            Step::SetWeight(weight) if !other_most && *weight > 100 => {
                format!("setWeight {weight} is not between 0 and 100")
            }
            Step::Other(StepKind::SetCanaryScale, _) if !routed => {
                "setCanaryScale requires traffic routing".to_owned()
            }
            _ => return None,
        };
        at(&format!("canary.steps[{index}]"), &why)
    })
}

pub(super) const UNMANAGED_ROUTE: Rule = Rule {
    code: "ZRA008",
    title: "A step sets a header or mirror route that is not managed",
    check: Check::Rollouts,
    effect: Effect::Release,
    meaning: "The Rollout becomes InvalidSpec: nothing moves.",
    cause: "The controller accepts setHeaderRoute and setMirrorRoute only for names that are \
            listed in trafficRouting.managedRoutes.",
    fix: "List the route in trafficRouting.managedRoutes.",
    verify: "kubectl get rollout NAME",
    example: include_str!("../examples/ZRA008.diff"),
    find: unmanaged_route,
};

fn unmanaged_route(context: &Context<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    for rollout in context.rollouts() {
        let managed: BTreeSet<&str> = rollout.managed_routes().collect();
        for (index, step) in rollout.steps().iter().enumerate() {
            let Step::Other(StepKind::SetHeaderRoute | StepKind::SetMirrorRoute, route) = step
            else {
                continue;
            };
            let name = route["name"].as_str().unwrap_or_default();
            if !managed.contains(name) {
                let key = rollout.meta.key();
                found.push(
                    Found::new(
                        Severity::Error,
                        format!(
                            "step {index} of Rollout {key} sets route {name}, which is not in \
                             managedRoutes: the Rollout becomes InvalidSpec"
                        ),
                    )
                    .at("Rollout", &key, format!("spec.strategy.canary.steps[{index}]"), name)
                    .at(
                        "Rollout",
                        &key,
                        "spec.strategy.canary.trafficRouting.managedRoutes",
                        listed(&managed),
                    )
                    .fix(command::set(
                        "Rollout",
                        &key,
                        "spec.strategy.canary.trafficRouting.managedRoutes",
                        json!([{"name": name}]),
                    ))
                    .verify(format!(
                        "kubectl get rollout {}{}",
                        key.name,
                        in_namespace(&key)
                    )),
                );
            }
        }
    }
    found
}

pub(super) const LATE_LABELS: Rule = Rule {
    code: "ZRI037",
    title: "This Istio notices changed pod labels too late",
    check: Check::Rules,
    effect: Effect::RequestsFail,
    meaning: "After a promotion the subset holds the wrong pods for a while: requests fail or \
              reach the wrong version.",
    cause: "Before 1.22 istiod learns changed labels of a running pod only with the next change \
            of its endpoints. The labels of stableMetadata and canaryMetadata change on running \
            pods.",
    fix: "Upgrade Istio to 1.22, or select subsets by the template hash alone.",
    verify: "istioctl version",
    example: include_str!("../examples/ZRI037.diff"),
    find: late_labels,
};

fn late_labels(context: &Context<'_>) -> Vec<Found> {
    let Some(istio) = context.versions.istio.filter(|istio| *istio < Version::new(1, 22)) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for rollout in context.rollouts() {
        let canary = rollout.spec.strategy.canary.as_ref();
        let metadata = canary.map(|canary| [&canary.stable_metadata, &canary.canary_metadata]);
        let labels: BTreeSet<&String> =
            metadata.into_iter().flatten().flatten().flat_map(|m| m.labels.keys()).collect();
        for route in context.routes_of(rollout) {
            let host = fully_qualified(
                &route.route.destinations[route.stable].destination.host,
                &route.virtual_service.namespace,
            );
            let name = &route.route.destinations[route.stable].destination.subset;
            let Some(subset) = merged_rule(context.scene, &host).subset(name) else { continue };
            let changing = subset.subset.labels.keys().find(|label| labels.contains(label));
            if let Some(label) = changing {
                let key = subset.rule.meta.key();
                found.push(
                    Found::new(
                        Severity::Error,
                        format!(
                            "subset {name} of DestinationRule {key} selects by {label}, which \
                             changes on running pods; Istio {istio} notices that too late"
                        ),
                    )
                    .at("DestinationRule", &key, format!("spec.subsets ({name}).labels"), label)
                    .at(
                        "Rollout",
                        &rollout.meta.key(),
                        "spec.strategy.canary.stableMetadata",
                        label,
                    )
                    .fix("upgrade Istio to 1.22 or newer")
                    .verify("istioctl version"),
                );
            }
        }
    }
    found
}

pub(super) const NO_ROOM: Rule = Rule {
    code: "ZRK014",
    title: "There is no node for the canary pods",
    check: Check::Zones,
    effect: Effect::Pods,
    meaning: "The canary's pods stay Pending, and the release never leaves its first weight.",
    cause: "With traffic routing the stable pods stay while canary pods come up. A required \
            anti-affinity by node counts both, and there are no more nodes than stable pods.",
    fix: "Prefer the spread instead of requiring it, or add a node.",
    verify: "kubectl get pods -o wide",
    example: include_str!("../examples/ZRK014.diff"),
    find: no_room,
};

fn no_room(context: &Context<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    for rollout in context.rollouts().filter(|rollout| rollout.istio().is_some()) {
        let template = crate::scene::template_of(context.scene, rollout);
        let Some(zones) = crate::scene::allowed_zones(template) else { continue };
        let nodes = context
            .given
            .nodes
            .iter()
            .filter(|(_, node)| node.zone().is_some_and(|zone| zones.contains(zone)))
            .count();
        let replicas = rollout.replicas() as usize;
        let exclusive = super::placement::repels_itself_by_node(template);
        if nodes == replicas && exclusive && replicas > 0 {
            let key = rollout.meta.key();
            found.push(
                Found::new(
                    Severity::Error,
                    format!(
                        "Rollout {key} has as many nodes as stable pods ({nodes}) and lets no two \
                         pods share one: its canary pods stay Pending"
                    ),
                )
                .at(
                    "Rollout",
                    &key,
                    "spec.template.spec.affinity.podAntiAffinity",
                    Value::from("required, by kubernetes.io/hostname"),
                )
                .fix(command::edit("Rollout", &key))
                .verify(format!("kubectl get pods{} -o wide", in_namespace(&key))),
            );
        }
    }
    found
}
