//! PodDisruptionBudgets of the pods of Rollouts.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::diagnose::command;
use crate::diagnose::context::{Context, in_namespace, listed};
use crate::diagnose::finding::{Effect, Found, Severity};
use crate::diagnose::rule::{Check, Rule};
use crate::scene::{DisruptionBudget, Key, Origin, Rollout, allowed_zones, labels_of, template_of};

/// The pods a budget counts, by the workload they belong to.
struct Counted<'a> {
    key: &'a Key,
    budget: &'a DisruptionBudget,
    rollouts: Vec<&'a Rollout>,
    /// Pods by zone; those of workloads that are not bound to one are under an empty name.
    zones: BTreeMap<String, u32>,
    total: u32,
}

impl Counted<'_> {
    /// Pods that have to stay.
    fn needed(&self) -> Option<u32> {
        let spec = &self.budget.spec;
        match (&spec.min_available, &spec.max_unavailable) {
            (Some(value), _) => part_of(value, self.total),
            (None, Some(value)) => Some(self.total.saturating_sub(part_of(value, self.total)?)),
            (None, None) => None,
        }
    }

    fn written(&self) -> (&'static str, String) {
        let spec = &self.budget.spec;
        match (&spec.min_available, &spec.max_unavailable) {
            (Some(value), _) => ("spec.minAvailable", value.to_string()),
            (None, Some(value)) => ("spec.maxUnavailable", value.to_string()),
            (None, None) => ("spec", "neither minAvailable nor maxUnavailable".to_owned()),
        }
    }
}

/// A number, or a percentage, which is rounded up.
fn part_of(value: &Value, total: u32) -> Option<u32> {
    match value {
        Value::Number(number) => number.as_u64().and_then(|number| u32::try_from(number).ok()),
        Value::String(text) => match text.strip_suffix('%') {
            Some(percent) => Some((percent.parse::<u32>().ok()?.checked_mul(total)?).div_ceil(100)),
            None => text.parse().ok(),
        },
        _ => None,
    }
}

/// The budgets that count pods of Rollouts.
fn counted<'a>(context: &Context<'a>) -> Vec<Counted<'a>> {
    let mut all = Vec::new();
    for (key, budget) in context.scene.budgets.iter() {
        let mut counted =
            Counted { key, budget, rollouts: Vec::new(), zones: BTreeMap::new(), total: 0 };
        let in_namespace = |other: &Key| other.namespace == key.namespace;
        for rollout in context.rollouts().filter(|rollout| in_namespace(&rollout.meta.key())) {
            let template = template_of(context.scene, rollout);
            if budget.spec.selector.selects(&labels_of(template)) {
                counted.add(template, rollout.replicas());
                counted.rollouts.push(rollout);
            }
        }
        let workloads = context.scene.deployments.iter().chain(context.scene.stateful_sets.iter());
        for (_, workload) in workloads.filter(|(other, _)| in_namespace(other)) {
            if budget.spec.selector.selects(&workload.labels()) {
                counted.add(&workload.spec.template, workload.spec.replicas.unwrap_or(1));
            }
        }
        if !counted.rollouts.is_empty() {
            all.push(counted);
        }
    }
    all
}

impl Counted<'_> {
    fn add(&mut self, template: &Value, replicas: u32) {
        let zones = allowed_zones(template).filter(|zones| zones.len() == 1).unwrap_or_default();
        *self.zones.entry(zones.into_iter().next().unwrap_or_default()).or_default() += replicas;
        self.total += replicas;
    }
}

/// Budgets that count pods of several of these Rollouts, and of how many.
pub(super) fn spanning(context: &Context<'_>, rollouts: &[&Rollout]) -> Vec<(Key, usize)> {
    let names: BTreeSet<Key> = rollouts.iter().map(|rollout| rollout.meta.key()).collect();
    let all = counted(context).into_iter().map(|counted| {
        let spanned = counted.rollouts.iter().filter(|rollout| names.contains(&rollout.meta.key()));
        (counted.key.clone(), spanned.count())
    });
    all.filter(|(_, spanned)| *spanned > 1).collect()
}

fn show(key: &Key) -> String {
    format!("kubectl get poddisruptionbudget {}{}", key.name, in_namespace(key))
}

pub(super) const SPANS: Rule = Rule {
    code: "ZRK001",
    title: "A budget counts the pods of several zones",
    check: Check::Budgets,
    effect: Effect::Pods,
    meaning: "A disruption in one zone uses up what another may lose: a node there cannot be \
              drained meanwhile.",
    cause: "The selector leaves the zone out, so pods of several zones' Rollouts count together.",
    fix: "If that is not meant, give each zone a budget of its own.",
    verify: "kubectl get poddisruptionbudgets",
    example: include_str!("../examples/ZRK001.diff"),
    find: |context| {
        counted(context)
            .iter()
            .filter(|counted| counted.zones.keys().filter(|zone| !zone.is_empty()).count() > 1)
            .map(|counted| {
                let names = listed(counted.rollouts.iter().map(|rollout| &rollout.meta.name));
                Found::new(
                    Severity::Info,
                    format!(
                        "PodDisruptionBudget {} counts the pods of {names} together",
                        counted.key
                    ),
                )
                .at(
                    "PodDisruptionBudget",
                    counted.key,
                    "spec.selector",
                    format!("{:?}", counted.budget.spec.selector.match_labels),
                )
                .fix(command::edit("PodDisruptionBudget", counted.key))
                .verify(show(counted.key))
            })
            .collect()
    },
};

pub(super) const BLOCKS: Rule = Rule {
    code: "ZRK002",
    title: "A budget lets no pod be evicted",
    check: Check::Budgets,
    effect: Effect::Pods,
    meaning: "No node with one of these pods can be drained.",
    cause: "All pods have to stay, so the first eviction is refused already.",
    fix: "maxUnavailable: 1, with at least two replicas.",
    verify: "kubectl get poddisruptionbudgets",
    example: include_str!("../examples/ZRK002.diff"),
    find: |context| {
        counted(context)
            .iter()
            .filter(|counted| {
                counted.total > 0 && counted.needed().is_some_and(|needed| needed >= counted.total)
            })
            .map(|counted| {
                let (path, value) = counted.written();
                let severity = if counted.total > 1 { Severity::Error } else { Severity::Warning };
                Found::new(
                    severity,
                    format!(
                        "PodDisruptionBudget {} needs all of its {} pods: no node with one of \
                         them can be drained",
                        counted.key, counted.total
                    ),
                )
                .at("PodDisruptionBudget", counted.key, path, value)
                .fix(command::set(
                    "PodDisruptionBudget",
                    counted.key,
                    "spec",
                    json!({"minAvailable": null, "maxUnavailable": 1}),
                ))
                .verify(show(counted.key))
            })
            .collect()
    },
};

pub(super) const DEADLOCK: Rule = Rule {
    code: "ZRK003",
    title: "A budget does not let a zone be drained",
    check: Check::Budgets,
    effect: Effect::Pods,
    meaning: "Draining the zone's nodes stops half-way and never ends.",
    cause: "The pods are bound to their zone, so evicted ones stay Pending while its nodes are \
            cordoned; the budget, which counts several zones, then refuses the rest.",
    fix: "minAvailable of at most all pods without those of the largest zone.",
    verify: "kubectl drain NODE --dry-run=server",
    example: include_str!("../examples/ZRK003.diff"),
    find: deadlock,
};

fn deadlock(context: &Context<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    for counted in counted(context) {
        let pinned = counted.zones.keys().all(|zone| !zone.is_empty()) && counted.zones.len() > 1;
        let largest = counted.zones.iter().max_by_key(|(_, pods)| **pods);
        let (Some(needed), Some((zone, pods))) = (counted.needed(), largest.filter(|_| pinned))
        else {
            continue;
        };
        if needed < counted.total && needed > counted.total - pods {
            let (path, value) = counted.written();
            let (key, total) = (counted.key, counted.total);
            found.push(
                Found::new(
                    Severity::Warning,
                    format!(
                        "PodDisruptionBudget {key} needs {needed} of {total} pods, but {pods} of \
                         them are bound to zone {zone}: that zone cannot be drained"
                    ),
                )
                .at("PodDisruptionBudget", key, path, value)
                .at(
                    "Rollout",
                    &counted.rollouts[0].meta.key(),
                    "spec.replicas",
                    counted.rollouts[0].replicas(),
                )
                .fix(command::set(
                    "PodDisruptionBudget",
                    key,
                    "spec",
                    json!({"minAvailable": null, "maxUnavailable": pods}),
                ))
                .verify(show(key)),
            );
        }
    }
    found
}

pub(super) const EMPTY: Rule = Rule {
    code: "ZRK005",
    title: "A budget counts no pods",
    check: Check::Budgets,
    effect: Effect::Pods,
    meaning: "It protects nothing.",
    cause: "No workload of the namespace has pods with the labels that it selects.",
    fix: "Select by labels of the pod template.",
    verify: "kubectl get poddisruptionbudgets",
    example: include_str!("../examples/ZRK005.diff"),
    find: |context| {
        // In a cluster, a workload that was not looked for, or may not be read, can be what it is for.
        let live = context.given.rollouts.items.values().any(|seen| seen.origin == Origin::Live);
        let workloads = [&context.given.deployments, &context.given.stateful_sets];
        if live && !workloads.iter().all(|kind| kind.is_complete()) {
            return Vec::new();
        }
        let selects_any = |key: &Key, budget: &DisruptionBudget| {
            let selector = &budget.spec.selector;
            let rollouts =
                context.scene.rollouts.iter().map(|(other, rollout)| {
                    (other, labels_of(template_of(context.scene, rollout)))
                });
            let workloads =
                context.scene.deployments.iter().chain(context.scene.stateful_sets.iter());
            let workloads = workloads.map(|(other, workload)| (other, workload.labels()));
            let mut own =
                rollouts.chain(workloads).filter(|(other, _)| other.namespace == key.namespace);
            own.any(|(_, labels)| selector.selects(&labels))
        };
        let of_rollouts =
            |key: &Key| context.rollouts().any(|rollout| rollout.meta.namespace == key.namespace);
        let empty = context
            .scene
            .budgets
            .iter()
            .filter(|(key, budget)| of_rollouts(key) && !selects_any(key, budget));
        empty
            .map(|(key, budget)| {
                Found::new(
                    Severity::Warning,
                    format!(
                        "PodDisruptionBudget {key} counts no pods: no workload has the labels it \
                         selects"
                    ),
                )
                .at(
                    "PodDisruptionBudget",
                    key,
                    "spec.selector",
                    format!("{:?}", budget.spec.selector.match_labels),
                )
                .fix(command::edit("PodDisruptionBudget", key))
                .verify(show(key))
            })
            .collect()
    },
};

pub(super) const NONE: Rule = Rule {
    code: "ZRK004",
    title: "A zone has no budget",
    check: Check::Budgets,
    effect: Effect::Pods,
    meaning: "A drain may evict all pods of the zone at once.",
    cause: "No PodDisruptionBudget selects its pods.",
    fix: "Create one for each zone. It governs evictions only, neither updates nor reclaimed \
          nodes.",
    verify: "kubectl get poddisruptionbudgets",
    example: include_str!("../examples/ZRK004.diff"),
    find: |context| {
        let covered: BTreeSet<Key> = counted(context)
            .iter()
            .flat_map(|counted| &counted.rollouts)
            .map(|rollout| rollout.meta.key())
            .collect();
        let groups = context.zone_groups().flat_map(|group| context.rollouts_of(group));
        groups
            .filter(|rollout| context.holds(&context.given.budgets, &rollout.meta.namespace))
            .filter(|rollout| rollout.replicas() > 1 && !covered.contains(&rollout.meta.key()))
            .map(|rollout| {
                let key = rollout.meta.key();
                let labels = rollout.spec.selector.as_typed();
                Found::new(
                    Severity::Warning,
                    format!(
                        "no PodDisruptionBudget counts the pods of Rollout {key}: a drain may \
                         evict all of them at once"
                    ),
                )
                .at("Rollout", &key, "spec.template.metadata.labels", &labels)
                .fix(format!(
                    "kubectl create poddisruptionbudget {}{} --selector={labels} --min-available=1",
                    key.name,
                    in_namespace(&key)
                ))
                .verify(format!("kubectl get poddisruptionbudgets{}", in_namespace(&key)))
            })
            .collect()
    },
};
