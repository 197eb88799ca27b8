//! Weights in routes: who writes them, and what they are next to what the controller wants.

use serde_json::Value;

use super::routes::show;
use crate::diagnose::command;
use crate::diagnose::context::{Claim, Context, in_namespace};
use crate::diagnose::finding::{Effect, Found, Severity};
use crate::diagnose::rule::{Check, Rule};
use crate::diagnose::version::Version;
use crate::gitops;
use crate::scene::{Key, Rollout};

pub(super) const DRIFT: Rule = Rule {
    code: "ZRI050",
    title: "The weights are not the ones the Rollout wants",
    check: Check::Routes,
    effect: Effect::WrongPlace,
    meaning: "Another share of requests reaches the canary than the step says.",
    cause: "Something else writes the VirtualService, or the controller cannot: it waits for \
            stable pods, or is not running.",
    fix: "See who wrote last; keep GitOps away from the weights (ignoreDifferences).",
    verify: "kubectl zone-rollout status",
    example: include_str!("../examples/ZRI050.diff"),
    find: drift,
};

fn is_reported(rollout: &Rollout) -> bool {
    !rollout.status.phase.is_empty() && !rollout.status.stable_rs.is_empty()
}

fn drift(context: &Context<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    for rollout in context.rollouts().filter(|rollout| is_reported(rollout)) {
        let wanted = if rollout.is_fully_promoted() { 0 } else { rollout.desired_weight() };
        for route in
            context.routes_of(rollout).iter().filter(|route| route.canary_weight() != wanted)
        {
            let key = &route.virtual_service;
            let in_force = route.canary_weight();
            found.push(
                Found::new(
                    Severity::Warning,
                    format!(
                        "Rollout {} wants {wanted} % for its canary, but route {} of \
                         VirtualService {key} has {in_force} %",
                        rollout.meta.name, route.route.name
                    ),
                )
                .at(
                    "VirtualService",
                    key,
                    format!("spec.http[{}].route", route.index),
                    format!("{in_force} %"),
                )
                .at("Rollout", &rollout.meta.key(), "status.currentStepIndex", rollout.step_index())
                .fix(format!(
                    "kubectl get virtualservice {}{} -o yaml --show-managed-fields | grep manager",
                    key.name,
                    in_namespace(key)
                ))
                .verify(format!("kubectl zone-rollout status{}", in_namespace(key))),
            );
        }
    }
    found
}

pub(super) const IN_GIT: Rule = Rule {
    code: "ZRI051",
    title: "Weights are kept where the controller does not write",
    check: Check::Routes,
    effect: Effect::WrongPlace,
    meaning: "Each time the object is applied or synced, the canary gets the weight in the file, \
              whatever the Rollout's step is.",
    cause: "The Rollouts controller writes 100/0 to the route of a finished Rollout; whoever \
            applies the file writes its own weights over that.",
    fix: "Write 100 for stable and 0 for canary, and keep GitOps from comparing weights \
          (ignoreDifferences on spec.http[].route, RespectIgnoreDifferences).",
    verify: "kubectl get virtualservice NAME -o yaml",
    example: include_str!("../examples/ZRI051.diff"),
    find: in_git,
};

fn in_git(context: &Context<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    for rollout in context.rollouts() {
        for route in context.routes_of(rollout) {
            let key = &route.virtual_service;
            let synced = synced_by(context, key);
            let initial = !is_reported(rollout) && route.canary_weight() > 0;
            if initial {
                found.push(
                    Found::new(
                        Severity::Warning,
                        format!(
                            "route {} of VirtualService {key} gives the canary {} % where no \
                             canary runs; the controller writes 100/0, and every apply writes it \
                             back",
                            route.route.name,
                            route.canary_weight()
                        ),
                    )
                    .at(
                        "VirtualService",
                        key,
                        format!("spec.http[{}].route[{}].weight", route.index, route.canary),
                        route.canary_weight(),
                    )
                    .fix(command::edit("VirtualService", key))
                    .verify(show(key)),
                );
            } else if let Some(mark) = synced {
                found.push(
                    Found::new(
                        Severity::Warning,
                        format!(
                            "VirtualService {key} is synced from Git ({mark}): a sync in \
                             mid-canary puts back the weights of route {}",
                            route.route.name
                        ),
                    )
                    .at("VirtualService", key, "metadata", &mark)
                    .fix(
                        "let the GitOps tool ignore the weights (Argo CD: ignoreDifferences with \
                         RespectIgnoreDifferences)",
                    )
                    .verify(show(key)),
                );
            }
        }
    }
    found
}

/// What syncs a VirtualService from Git, unless it is told to leave VirtualServices alone.
fn synced_by(context: &Context<'_>, key: &Key) -> Option<String> {
    let here = |spec: &Value| {
        let namespace = spec.pointer("/destination/namespace").and_then(Value::as_str);
        namespace == Some(key.namespace.as_str())
    };
    let applications = context.scene.applications.iter();
    let mut own: Vec<_> = applications.filter(|(_, application)| here(&application.spec)).collect();
    let spares = |spec: &Value| {
        let ignored = spec["ignoreDifferences"].as_array().into_iter().flatten();
        ignored.into_iter().any(|entry| entry["kind"] == "VirtualService" || entry["kind"] == "*")
    };
    if own.iter().any(|(_, application)| spares(&application.spec)) {
        return None;
    }
    let object = context.scene.routes.get(key)?;
    let automated = |spec: &Value| spec.pointer("/syncPolicy/automated").is_some();
    own.retain(|(_, application)| automated(&application.spec));
    let by_application = own.first().map(|(name, _)| format!("Argo CD Application {name}"));
    gitops::owner(&object.meta).map(|owner| owner.to_string()).or(by_application)
}

pub(super) const STRANGER: Rule = Rule {
    code: "ZRA017",
    title: "A managed route has a destination of somebody else",
    check: Check::Routes,
    effect: Effect::WrongPlace,
    meaning: "The destination is deleted at the next change of weights.",
    cause: "In the routes that a Rollout names, the controller deletes every destination with a \
            weight that is neither its stable nor its canary one (`processRoutes`).",
    fix: "Give the destination a route of its own; from Argo Rollouts 1.9 a subset may be named \
          in destinationRule.additionalSubsetNames.",
    verify: "kubectl get virtualservice NAME -o yaml",
    example: include_str!("../examples/ZRA017.diff"),
    find: stranger,
};

fn stranger(context: &Context<'_>) -> Vec<Found> {
    let claims = context.claims();
    let alone = |claim: &&Claim<'_>| {
        let same = |other: &&Claim<'_>| std::ptr::eq(other.route, claim.route);
        claims.iter().filter(same).count() == 1
    };
    claims.iter().filter(alone).filter_map(|claim| foreign(context, claim)).collect()
}

fn foreign(context: &Context<'_>, claim: &Claim<'_>) -> Option<Found> {
    let routes = context.routes_of(claim.rollout);
    let route = routes.iter().find(|route| std::ptr::eq(route.route, claim.route))?;
    let knows = context.versions.argo.is_none_or(|argo| argo >= Version::new(1, 9));
    let own = claim.rollout.destination_rule().filter(|_| knows);
    let kept = own.map(|rule| &rule.additional_subset_names);
    let (index, to) = route.route.destinations.iter().enumerate().find(|(index, to)| {
        let own = *index == route.stable || *index == route.canary;
        let named = kept.is_some_and(|kept| kept.contains(&to.destination.subset));
        !own && !named && to.weight.unwrap_or(0.0) > 0.0
    })?;
    let key = &route.virtual_service;
    let what = if to.destination.subset.is_empty() {
        &to.destination.host
    } else {
        &to.destination.subset
    };
    Some(
        Found::new(
            Severity::Warning,
            format!(
                "Rollout {} deletes destination {what} from route {} of VirtualService {key} at \
                 its next change of weights",
                claim.rollout.meta.name, route.route.name
            ),
        )
        .at("VirtualService", key, format!("spec.http[{}].route[{index}]", route.index), what)
        .fix(command::edit("VirtualService", key))
        .verify(show(key)),
    )
}

pub(super) const GUARD: Rule = Rule {
    code: "ZRI052",
    title: "Services beside subsets",
    check: Check::Rollouts,
    effect: Effect::Release,
    meaning: "While an abort waits for a stable pod, the controller writes both Services again \
              and again (about 20 writes a second), and at the first switch to subsets there may \
              be 503 for a moment.",
    cause: "canaryService and stableService are not needed for subsets. With them the controller \
            does not wait for a ReplicaSet to be available before it switches the DestinationRule.",
    fix: "Leave both out of the Rollout; the Services themselves may stay.",
    verify: "kubectl get rollout NAME -o yaml",
    example: include_str!("../examples/ZRI052.diff"),
    find: |context| {
        let both = context.rollouts().filter(|rollout| {
            let canary = rollout.spec.strategy.canary.as_ref();
            rollout.destination_rule().is_some()
                && canary.is_some_and(|canary| canary.stable_service.is_some())
        });
        both.map(|rollout| {
            let key = rollout.meta.key();
            Found::new(
                Severity::Info,
                format!(
                    "Rollout {key} names Services and subsets; the Services are not needed and \
                     trade one guard for another"
                ),
            )
            .at(
                "Rollout",
                &key,
                "spec.strategy.canary.stableService",
                rollout
                    .spec
                    .strategy
                    .canary
                    .as_ref()
                    .and_then(|canary| canary.stable_service.clone())
                    .unwrap_or_default(),
            )
            .fix(command::remove(
                "Rollout",
                &key,
                &["spec.strategy.canary.stableService", "spec.strategy.canary.canaryService"],
            ))
            .verify(format!(
                "kubectl get rollout {}{} -o yaml",
                key.name,
                in_namespace(&key)
            ))
        })
        .collect()
    },
};
