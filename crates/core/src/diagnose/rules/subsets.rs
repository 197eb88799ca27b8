//! Subsets: who rewrites them, which definition counts, and whether anybody is in them.

use serde_json::json;

use std::collections::{BTreeMap, BTreeSet};

use crate::diagnose::command;
use crate::diagnose::context::{Context, in_namespace, listed};
use crate::diagnose::finding::{Effect, Found, Severity};
use crate::diagnose::rule::{Check, Rule};
use crate::scene::{DestinationRule, Key, Rollout, Step, StepKind, labels_of, template_of};
use crate::traffic::{EffectiveSubset, fully_qualified, merged_rule, service_of};

pub(super) const SHARED_RULE: Rule = Rule {
    code: "ZRI001",
    title: "Several Rollouts share a DestinationRule",
    check: Check::Rules,
    effect: Effect::RequestsFail,
    meaning: "All subsets of the rule are lost, and with them every route to one: 503 for all \
              requests in all zones, while every Rollout is Healthy.",
    cause: "The Rollouts controller rebuilds `spec.subsets` from the two subsets of the Rollout \
            that it reconciles and drops all others (`UpdateHash`). After two Rollouts have been \
            reconciled nothing is left. Different subset names do not help.",
    fix: "Give each Rollout a DestinationRule of its own with the same host; Istio merges them. \
          Keep the policy in one more rule that no Rollout refers to.",
    verify: "kubectl get destinationrules -o \
             custom-columns=NAME:.metadata.name,SUBSETS:.spec.subsets[*].name",
    example: include_str!("../examples/ZRI001.diff"),
    find: shared_rule,
};

fn shared_rule(context: &Context<'_>) -> Vec<Found> {
    let mut users: BTreeMap<Key, Vec<&Rollout>> = BTreeMap::new();
    for rollout in context.rollouts() {
        if let Some(rule) = rollout.destination_rule() {
            let key = Key::new(&rollout.meta.namespace, &rule.name);
            users.entry(key).or_default().push(rollout);
        }
    }
    users.retain(|_, rollouts| rollouts.len() > 1);
    users.iter().map(|(key, rollouts)| shared(context, key, rollouts)).collect()
}

fn shared(context: &Context<'_>, key: &Key, rollouts: &[&Rollout]) -> Found {
    let names = listed(rollouts.iter().map(|rollout| &rollout.meta.name));
    let title = format!(
        "DestinationRule {key} is rewritten by {names}; each drops the subsets of the others \
         until none is left"
    );
    let host = context.scene.rules.get(key).map_or("HOST", |rule| rule.spec.host.as_str());
    let path = "spec.strategy.canary.trafficRouting.istio.destinationRule.name";
    let subsets = context.given.rules.get(key).map(|rule| {
        let names: Vec<&str> =
            rule.spec.subsets.iter().map(|subset| subset.name.as_str()).collect();
        if names.is_empty() { "[] (already lost)".to_owned() } else { names.join(", ") }
    });
    let mut found = Found::new(Severity::Critical, title);
    if let Some(subsets) = subsets {
        found = found.at("DestinationRule", key, "spec.subsets", subsets);
    }
    for rollout in rollouts {
        found = found.at("Rollout", &rollout.meta.key(), path, &key.name);
    }
    let first = &rollouts[0].meta.name;
    found
        .fix(format!(
            "one DestinationRule a Rollout, all with host {host}, then for each Rollout: {}",
            command::set("Rollout", &rollouts[0].meta.key(), path, json!(first))
        ))
        .verify(format!(
            "kubectl get destinationrules{} -o \
             custom-columns=NAME:.metadata.name,SUBSETS:.spec.subsets[*].name",
            in_namespace(key)
        ))
}

pub(super) const MISSING_SUBSET: Rule = Rule {
    code: "ZRI002",
    title: "A subset that is used does not exist",
    check: Check::Rules,
    effect: Effect::RequestsFail,
    meaning: "The share of requests that is sent to the subset is answered 503 (NC, no cluster).",
    cause: "Envoy has a cluster for each subset that a DestinationRule of the host defines. No \
            rule defines this one; the Rollouts controller does not add subsets that are missing.",
    fix: "Define the subset in the DestinationRule that the Rollout refers to.",
    verify: "istioctl proxy-config clusters POD | grep SUBSET",
    example: include_str!("../examples/ZRI002.diff"),
    find: missing_subset,
};

fn missing_subset(context: &Context<'_>) -> Vec<Found> {
    let mut missing: BTreeMap<(String, String), Found> = BTreeMap::new();
    for (key, virtual_service) in context.scene.routes.iter() {
        for (index, route) in virtual_service.spec.http.iter().enumerate() {
            for to in route.destinations.iter().filter(|to| !to.destination.subset.is_empty()) {
                let host = fully_qualified(&to.destination.host, &key.namespace);
                let subset = &to.destination.subset;
                if !is_missing(context, &host, subset) {
                    continue;
                }
                let used = route.destinations.len() == 1 || to.weight.unwrap_or(0.0) > 0.0;
                let severity = if used { Severity::Critical } else { Severity::Error };
                let place = missing.entry((host.clone(), subset.clone()));
                let entry = place.or_insert_with(|| no_subset(severity, &host, subset));
                entry.severity = entry.severity.max(severity);
                entry.add("VirtualService", key, format!("spec.http[{index}].route"), subset);
            }
        }
    }
    let mut found: Vec<Found> = missing.into_values().collect();
    found.extend(context.rollouts().filter_map(|rollout| own_subset_missing(context, rollout)));
    found
}

fn is_missing(context: &Context<'_>, host: &str, subset: &str) -> bool {
    let merged = merged_rule(context.scene, host);
    let namespace = service_of(host).map(|key| key.namespace).unwrap_or_default();
    let known = !merged.rules().is_empty() || context.holds(&context.given.rules, &namespace);
    known && merged.subset(subset).is_none()
}

fn no_subset(severity: Severity, host: &str, subset: &str) -> Found {
    let namespace = service_of(host).unwrap_or_else(|| Key::new("", ""));
    Found::new(
        severity,
        format!(
            "no DestinationRule defines subset {subset} of {host}; what is sent there gets 503"
        ),
    )
    .fix(format!(
        "add `- {{name: {subset}, labels: {{…}}}}` to spec.subsets of a DestinationRule for {host}"
    ))
    .verify(format!(
        "kubectl get destinationrules{} -o yaml | grep -n 'name: {subset}'",
        in_namespace(&namespace)
    ))
}

/// The Rollout's rule exists and lacks the Rollout's own subset, though another rule has it: the
/// controller then has nowhere to write the hash.
fn own_subset_missing(context: &Context<'_>, rollout: &Rollout) -> Option<Found> {
    let reference = rollout.destination_rule()?;
    let key = Key::new(&rollout.meta.namespace, &reference.name);
    let rule = context.scene.rules.get(&key)?;
    let has = |name: &String| rule.spec.subsets.iter().any(|subset| subset.name == *name);
    let own = [&reference.canary_subset_name, &reference.stable_subset_name];
    let lacking = own.into_iter().find(|name| !name.is_empty() && !has(name))?;
    let host = fully_qualified(&rule.spec.host, &key.namespace);
    merged_rule(context.scene, &host).subset(lacking)?;
    Some(
        Found::new(
            Severity::Error,
            format!(
                "DestinationRule {key} lacks subset {lacking} of its own Rollout {}; the \
                 controller cannot tell its pods apart",
                rollout.meta.name
            ),
        )
        .at("DestinationRule", &key, "spec.subsets", format!("no {lacking}"))
        .at(
            "Rollout",
            &rollout.meta.key(),
            "spec.strategy.canary.trafficRouting.istio.destinationRule",
            lacking,
        )
        .fix(command::add(
            "DestinationRule",
            &key,
            "spec.subsets[-]",
            &json!({"name": lacking, "labels": {}}),
        ))
        .verify(format!(
            "kubectl get destinationrule {}{} -o yaml",
            key.name,
            in_namespace(&key)
        )),
    )
}

pub(super) const FOREIGN_SUBSET: Rule = Rule {
    code: "ZRI006",
    title: "A Rollout's DestinationRule has subsets of somebody else",
    check: Check::Rules,
    effect: Effect::RequestsFail,
    meaning: "The other subsets are lost at the next reconcile, and what is sent to them is \
              answered 503.",
    cause: "The Rollouts controller rebuilds `spec.subsets` from the Rollout's stable and canary \
            subset and drops all others (`UpdateHash`).",
    fix: "Move the other subsets into a DestinationRule of the same host that no Rollout refers \
          to; Istio merges them.",
    verify: "kubectl get destinationrules -o \
             custom-columns=NAME:.metadata.name,SUBSETS:.spec.subsets[*].name",
    example: include_str!("../examples/ZRI006.diff"),
    find: foreign_subset,
};

fn foreign_subset(context: &Context<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    for (key, rule) in context.scene.rules.iter() {
        let writers = context.writers(rule);
        // Several writers are another rule's business: then nothing is left at all.
        let ([rollout], Some(own)) =
            (writers.as_slice(), writers.first().and_then(|r| r.destination_rule()))
        else {
            continue;
        };
        let names = [&own.stable_subset_name, &own.canary_subset_name];
        let has_own = rule.spec.subsets.iter().any(|subset| names.contains(&&subset.name));
        let foreign: Vec<&String> = rule
            .spec
            .subsets
            .iter()
            .map(|subset| &subset.name)
            .filter(|name| !names.contains(name))
            .collect();
        if foreign.is_empty() || !has_own || has_experiments(rollout) {
            continue;
        }
        let host = fully_qualified(&rule.spec.host, &key.namespace);
        let used = foreign.iter().any(|name| is_used(context, &host, name));
        let severity = if used { Severity::Critical } else { Severity::Warning };
        found.push(
            Found::new(
                severity,
                format!(
                    "the controller drops {} from DestinationRule {key} at the next reconcile of \
                     Rollout {}",
                    listed(&foreign),
                    rollout.meta.name
                ),
            )
            .at("DestinationRule", key, "spec.subsets", listed(&foreign))
            .at(
                "Rollout",
                &rollout.meta.key(),
                "spec.strategy.canary.trafficRouting.istio.destinationRule.name",
                &key.name,
            )
            .fix(format!(
                "move {} into a DestinationRule for {host} that no Rollout refers to",
                listed(&foreign)
            ))
            .verify(format!(
                "kubectl get destinationrules{} -o \
                 custom-columns=NAME:.metadata.name,SUBSETS:.spec.subsets[*].name",
                in_namespace(key)
            )),
        );
    }
    found
}

/// Experiments have subsets that the controller adds and keeps.
fn has_experiments(rollout: &Rollout) -> bool {
    let experiment = |step: &Step| matches!(step, Step::Other(StepKind::Experiment, _));
    rollout.steps().iter().any(experiment)
}

fn is_used(context: &Context<'_>, host: &str, subset: &str) -> bool {
    context.scene.routes.iter().any(|(key, virtual_service)| {
        let mut all = virtual_service.spec.http.iter().flat_map(|route| &route.destinations);
        all.any(|to| {
            to.destination.subset == subset
                && fully_qualified(&to.destination.host, &key.namespace) == host
        })
    })
}

pub(super) const SAME_SUBSETS: Rule = Rule {
    code: "ZRI031",
    title: "Weighted subsets hold the same pods",
    check: Check::Rules,
    effect: Effect::WrongPlace,
    meaning: "The weights between the two subsets decide nothing: both lead to the same pods.",
    cause: "The subsets have the same labels, and no Rollout refers to their DestinationRule, so \
            nobody adds the template hash that would tell them apart.",
    fix: "Give the subsets labels that differ, or let a Rollout refer to the rule.",
    verify: "kubectl get destinationrule NAME -o yaml",
    example: include_str!("../examples/ZRI031.diff"),
    find: same_subsets,
};

fn same_subsets(context: &Context<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    for (key, virtual_service) in context.scene.routes.iter() {
        for (index, route) in virtual_service.spec.http.iter().enumerate() {
            let defined: Vec<EffectiveSubset<'_>> = route
                .destinations
                .iter()
                .filter_map(|to| {
                    let host = fully_qualified(&to.destination.host, &key.namespace);
                    merged_rule(context.scene, &host).subset(&to.destination.subset)
                })
                .collect();
            let twin = defined.iter().enumerate().find_map(|(at, one)| {
                let same = |other: &&EffectiveSubset<'_>| are_twins(context, one, other);
                Some((one, defined[at + 1..].iter().find(same)?))
            });
            found.extend(twin.map(|(one, other)| twins(key, index, one, other)));
        }
    }
    found
}

fn are_twins(
    context: &Context<'_>,
    one: &EffectiveSubset<'_>,
    other: &EffectiveSubset<'_>,
) -> bool {
    one.subset.name != other.subset.name
        && one.subset.labels == other.subset.labels
        && one.subset.traffic_policy.is_none()
        && other.subset.traffic_policy.is_none()
        && context.writers(one.rule).is_empty()
        && context.writers(other.rule).is_empty()
}

fn twins(key: &Key, index: usize, one: &EffectiveSubset<'_>, other: &EffectiveSubset<'_>) -> Found {
    let (first, second) = (&one.subset.name, &other.subset.name);
    let rule = one.rule.meta.key();
    Found::new(
        Severity::Warning,
        format!(
            "subsets {first} and {second} of DestinationRule {rule} hold the same pods; the \
             weights between them decide nothing"
        ),
    )
    .at(
        "DestinationRule",
        &rule,
        "spec.subsets",
        format!("{first} and {second}: {:?}", one.subset.labels),
    )
    .at("VirtualService", key, format!("spec.http[{index}].route"), format!("{first}, {second}"))
    .fix(
        "give the two subsets labels that differ, or name the rule in \
         trafficRouting.istio.destinationRule of a Rollout",
    )
    .verify(format!(
        "kubectl get destinationrule {}{} -o yaml",
        rule.name,
        in_namespace(&rule)
    ))
}

pub(super) const SHADOWED: Rule = Rule {
    code: "ZRI033",
    title: "A subset or policy is defined twice",
    check: Check::Rules,
    effect: Effect::WrongPlace,
    meaning: "Only one of the definitions counts: the one in the oldest rule. The other has no \
              effect.",
    cause: "Istio merges the DestinationRules of a host by age, then by name. The first \
            definition of a subset wins, and the first top-level traffic policy.",
    fix: "Keep one definition. A rule with the policy for all subsets has to be the only one with \
          a top-level trafficPolicy, or the oldest.",
    verify: "kubectl get destinationrules --sort-by=.metadata.creationTimestamp",
    example: include_str!("../examples/ZRI033.diff"),
    find: shadowed,
};

fn shadowed(context: &Context<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    for host in ruled_hosts(context) {
        let merged = merged_rule(context.scene, &host);
        let with_policy: Vec<&&DestinationRule> =
            merged.rules().iter().filter(|rule| rule.spec.traffic_policy.is_some()).collect();
        if let [first, rest @ ..] = with_policy.as_slice()
            && !rest.is_empty()
        {
            found.push(second_policy(&host, first, rest));
        }
        for subset in subset_names(merged.rules()) {
            let Some(effective) = merged.subset(&subset) else { continue };
            let managed = |rule: &DestinationRule| !context.writers(rule).is_empty();
            // Between a rule of a Rollout and one of nobody, the next rules know which has to win.
            let alike =
                effective.shadowed.iter().find(|rule| managed(rule) == managed(effective.rule));
            found.extend(alike.map(|loser| second_subset(&subset, effective.rule, loser)));
        }
    }
    found
}

fn ruled_hosts(context: &Context<'_>) -> BTreeSet<String> {
    let hosts = context.scene.rules.iter();
    hosts.map(|(key, rule)| fully_qualified(&rule.spec.host, &key.namespace)).collect()
}

fn subset_names(rules: &[&DestinationRule]) -> BTreeSet<String> {
    rules.iter().flat_map(|rule| &rule.spec.subsets).map(|subset| subset.name.clone()).collect()
}

fn second_policy(host: &str, first: &DestinationRule, rest: &[&&DestinationRule]) -> Found {
    let names = listed(rest.iter().map(|rule| rule.meta.key()));
    let mut found = Found::new(
        Severity::Warning,
        format!(
            "the trafficPolicy of {names} has no effect: {} for the same host {host} is older",
            first.meta.key()
        ),
    )
    .at("DestinationRule", &first.meta.key(), "spec.trafficPolicy", "counts");
    for rule in rest {
        found =
            found.at("DestinationRule", &rule.meta.key(), "spec.trafficPolicy", "has no effect");
    }
    let key = rest[0].meta.key();
    found
        .fix(format!(
            "move what is needed into {} and remove the other: {}",
            first.meta.name,
            command::remove("DestinationRule", &key, &["spec.trafficPolicy"])
        ))
        .verify(format!(
            "kubectl get destinationrules{} --sort-by=.metadata.creationTimestamp",
            in_namespace(&key)
        ))
}

fn second_subset(subset: &str, winner: &DestinationRule, loser: &DestinationRule) -> Found {
    let key = loser.meta.key();
    Found::new(
        Severity::Warning,
        format!(
            "subset {subset} of DestinationRule {key} has no effect: {} defines it as well and is \
             older",
            winner.meta.key()
        ),
    )
    .at("DestinationRule", &winner.meta.key(), "spec.subsets", subset)
    .at("DestinationRule", &key, "spec.subsets", subset)
    .fix(format!("keep {subset} in one of {} and {}", winner.meta.name, loser.meta.name))
    .verify(format!(
        "kubectl get destinationrules{} --sort-by=.metadata.creationTimestamp",
        in_namespace(&key)
    ))
}

pub(super) const BASE_TOO_YOUNG: Rule = Rule {
    code: "ZRI034",
    title: "The rule that spans the zones is younger than a Rollout's",
    check: Check::Rules,
    effect: Effect::ZoneLoss,
    meaning: "The stable subset is pinned to the pods of one zone, and its clients get 503 when \
              that zone is lost, though another rule defines it across zones.",
    cause: "Of two definitions of a subset Istio takes the one in the oldest DestinationRule. The \
            Rollout's own, to which the controller adds a template hash, is older here.",
    fix: "Create the rule that spans the zones first: delete the Rollout's rule and apply it \
          again.",
    verify: "kubectl get destinationrules --sort-by=.metadata.creationTimestamp",
    example: include_str!("../examples/ZRI034.diff"),
    find: base_too_young,
};

fn base_too_young(context: &Context<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    for rollout in context.rollouts() {
        let Some((stable, _)) = effective_subsets(context, rollout) else { continue };
        let of_nobody = stable.shadowed.iter().find(|rule| context.writers(rule).is_empty());
        if let Some(base) = of_nobody.filter(|_| !context.writers(stable.rule).is_empty()) {
            let (own, base) = (stable.rule.meta.key(), base.meta.key());
            let name = &stable.subset.name;
            found.push(
                Found::new(
                    Severity::Error,
                    format!(
                        "subset {name} is taken from DestinationRule {own}, which Rollout {} pins \
                         to its own pods, and not from {base}, which is younger",
                        rollout.meta.name
                    ),
                )
                .at("DestinationRule", &own, "metadata.creationTimestamp", age(context, &own))
                .at("DestinationRule", &base, "metadata.creationTimestamp", age(context, &base))
                .fix(format!(
                    "kubectl get destinationrule {}{ns} -o yaml > rule.yaml && kubectl delete -f \
                     rule.yaml && kubectl create -f rule.yaml",
                    own.name,
                    ns = in_namespace(&own)
                ))
                .verify(format!(
                    "kubectl get destinationrules{} --sort-by=.metadata.creationTimestamp",
                    in_namespace(&own)
                )),
            );
        }
    }
    found
}

fn age(context: &Context<'_>, key: &Key) -> String {
    let created = context.scene.rules.get(key).and_then(|rule| rule.meta.creation_timestamp);
    created.map_or_else(|| "none: the name decides".to_owned(), |created| created.to_string())
}

fn effective_subsets<'a>(
    context: &Context<'a>,
    rollout: &Rollout,
) -> Option<(EffectiveSubset<'a>, EffectiveSubset<'a>)> {
    let reference = rollout.destination_rule()?;
    let key = Key::new(&rollout.meta.namespace, &reference.name);
    let host = fully_qualified(&context.scene.rules.get(&key)?.spec.host, &key.namespace);
    let merged = merged_rule(context.scene, &host);
    Some((
        merged.subset(&reference.stable_subset_name)?,
        merged.subset(&reference.canary_subset_name)?,
    ))
}

pub(super) const HASH_SHADOWED: Rule = Rule {
    code: "ZRI036",
    title: "A subset that the controller marks is defined elsewhere",
    check: Check::Rules,
    effect: Effect::WrongPlace,
    meaning: "Stable and canary pods are not told apart: the weights decide nothing while a \
              canary runs.",
    cause: "The controller adds the template hash to the subsets in the Rollout's own \
            DestinationRule. An older rule defines the same subset without anything that tells \
            stable from canary pods, and wins.",
    fix: "Remove the subset from the older rule, or let it select by a label that only stable \
          pods carry (stableMetadata).",
    verify: "kubectl get destinationrules --sort-by=.metadata.creationTimestamp",
    example: include_str!("../examples/ZRI036.diff"),
    find: hash_shadowed,
};

fn hash_shadowed(context: &Context<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    for rollout in context.rollouts() {
        let Some((stable, canary)) = effective_subsets(context, rollout) else { continue };
        let own = rollout.destination_rule().map_or("", |rule| rule.name.as_str());
        let labels = labels_of(template_of(context.scene, rollout));
        for subset in [stable, canary] {
            let foreign = subset.rule.meta.name != own && context.writers(subset.rule).is_empty();
            let selects_both =
                subset.subset.labels.iter().all(|(label, value)| labels.get(label) == Some(value));
            if foreign && selects_both {
                let (rule, name) = (subset.rule.meta.key(), &subset.subset.name);
                found.push(
                    Found::new(
                        Severity::Error,
                        format!(
                            "subset {name} is taken from DestinationRule {rule}, which does not \
                             tell stable from canary pods; the hash that the controller adds to \
                             {own} has no effect"
                        ),
                    )
                    .at(
                        "DestinationRule",
                        &rule,
                        "spec.subsets",
                        format!("{name}: {:?}", subset.subset.labels),
                    )
                    .at(
                        "Rollout",
                        &rollout.meta.key(),
                        "spec.strategy.canary.trafficRouting.istio.destinationRule.name",
                        own,
                    )
                    .fix(format!(
                        "remove {name} from {}: kubectl edit destinationrule {}{}",
                        rule.name,
                        rule.name,
                        in_namespace(&rule)
                    ))
                    .verify(format!("kubectl get destinationrules{} -o yaml", in_namespace(&rule))),
                );
            }
        }
    }
    found
}

pub(super) const STALE_HASH: Rule = Rule {
    code: "ZRI032",
    title: "A subset selects a ReplicaSet without available pods",
    check: Check::Rules,
    effect: Effect::RequestsFail,
    meaning: "What is sent to the subset is answered 503 (UH, no healthy upstream).",
    cause: "After an abort the canary subset keeps the template hash of the aborted ReplicaSet, \
            which is scaled down. The Rollout's own route gives it no weight, but another route \
            does.",
    fix: "Send that route to the stable subset, or bring the Rollout to a new version (undo, \
          retry).",
    verify: "kubectl get replicasets -l rollouts-pod-template-hash=HASH",
    example: include_str!("../examples/ZRI032.diff"),
    find: stale_hash,
};

fn stale_hash(context: &Context<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    let claims = context.claims();
    for (key, virtual_service) in context.scene.routes.iter() {
        for (index, route) in virtual_service.spec.http.iter().enumerate() {
            for to in &route.destinations {
                let alone = route.destinations.len() == 1;
                let used = alone || to.weight.unwrap_or(0.0) > 0.0;
                let host = fully_qualified(&to.destination.host, &key.namespace);
                let Some(subset) = merged_rule(context.given, &host).subset(&to.destination.subset)
                else {
                    continue;
                };
                let Some(hash) = subset.subset.labels.get(crate::scene::POD_HASH_LABEL) else {
                    continue;
                };
                if used && has_no_pods(context, &subset.rule.meta.namespace, hash) {
                    let claimed = claims.iter().any(|claim| {
                        claim.virtual_service.meta.key() == *key && claim.index == index
                    });
                    let severity = if claimed { Severity::Critical } else { Severity::Error };
                    let rule = subset.rule.meta.key();
                    let name = &subset.subset.name;
                    let percent = if alone { 100.0 } else { to.weight.unwrap_or(0.0) };
                    found.push(
                        Found::new(
                            severity,
                            format!(
                                "subset {name} of DestinationRule {rule} selects template hash \
                                 {hash}, which has no available pods, and route {} of \
                                 VirtualService {key} sends {percent} % of its requests there",
                                named(&route.name, index)
                            ),
                        )
                        .at(
                            "DestinationRule",
                            &rule,
                            format!("spec.subsets ({name}).labels.rollouts-pod-template-hash"),
                            hash,
                        )
                        .at(
                            "VirtualService",
                            key,
                            format!("spec.http[{index}].route"),
                            format!("{name}: {percent} %"),
                        )
                        .fix(format!(
                            "send route {} to the stable subset: kubectl edit virtualservice {}{}",
                            named(&route.name, index),
                            key.name,
                            in_namespace(key)
                        ))
                        .verify(format!(
                            "kubectl get replicasets{} -l rollouts-pod-template-hash={hash}",
                            in_namespace(key)
                        )),
                    );
                }
            }
        }
    }
    found
}

fn named(name: &str, index: usize) -> String {
    if name.is_empty() { format!("number {index}") } else { name.to_owned() }
}

fn has_no_pods(context: &Context<'_>, namespace: &str, hash: &str) -> bool {
    let known = context.holds(&context.given.replica_sets, namespace);
    let mut alive = context.given.replica_sets.iter().filter(|(key, replica_set)| {
        key.namespace == namespace
            && replica_set.hash() == hash
            && replica_set.spec.replicas.unwrap_or(1) > 0
            && (replica_set.status.replicas.is_none() || replica_set.status.available_replicas > 0)
    });
    known && alive.next().is_none()
}
