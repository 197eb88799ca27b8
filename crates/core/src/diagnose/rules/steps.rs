//! Steps, gates and templates of the zones of a group.

use serde_json::json;

use crate::diagnose::command;
use crate::diagnose::context::{Context, in_namespace, listed};
use crate::diagnose::finding::{Effect, Found, Severity};
use crate::diagnose::rule::{Check, Rule};
use crate::layout::ROLE_LABEL;
use crate::scene::{Key, Rollout, Step, labels_of, template_of};
use crate::template::difference;

fn steps_of(key: &Key) -> String {
    format!(
        "kubectl get rollout {}{} -o jsonpath='{{.spec.strategy.canary.steps}}'",
        key.name,
        in_namespace(key)
    )
}

pub(super) const NO_GATE: Rule = Rule {
    code: "ZRA010",
    title: "Zones move by themselves",
    check: Check::Rollouts,
    effect: Effect::Release,
    meaning: "When the image changes everywhere, all these zones go through their weights at the \
              same time.",
    cause: "A Rollout starts with its first step as soon as its template changes. Timed pauses \
            end by themselves, `promote` only ends the current one, and a PodDisruptionBudget \
            governs evictions only: nothing orders the zones.",
    fix: "Make `pause: {}` the first step of each zone, and open one zone after another with \
          `promote --sequential`.",
    verify: "kubectl zone-rollout status",
    example: include_str!("../examples/ZRA010.diff"),
    find: no_gate,
};

fn no_gate(context: &Context<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    for group in context.zone_groups() {
        let open: Vec<&Rollout> = context
            .rollouts_of(group)
            .into_iter()
            .filter(|rollout| rollout.spec.strategy.canary.is_some() && rollout.gate().is_none())
            .collect();
        let Some(first) = open.first() else { continue };
        let names = listed(open.iter().map(|rollout| &rollout.meta.name));
        let budgets = super::budgets::spanning(context, &open);
        let no_order = match budgets.first() {
            Some((budget, _)) => {
                format!("; PodDisruptionBudget {budget} spans them and orders no updates")
            }
            None => String::new(),
        };
        let mut one = Found::new(
            Severity::Warning,
            format!(
                "{names} have no pause for a person before their first weight: when the image \
                 changes everywhere, zones change at the same time{no_order}"
            ),
        );
        for rollout in &open {
            let step = rollout.steps().first().map_or("none".to_owned(), described);
            one = one.at("Rollout", &rollout.meta.key(), "spec.strategy.canary.steps[0]", step);
        }
        for (budget, selected) in budgets {
            one = one.at(
                "PodDisruptionBudget",
                &budget,
                "spec.selector",
                format!("spans {selected} Rollouts"),
            );
        }
        let key = first.meta.key();
        found.push(
            one.fix(command::add(
                "Rollout",
                &key,
                "spec.strategy.canary.steps[0]",
                &json!({"pause": {}}),
            ))
            .verify(format!(
                "kubectl zone-rollout status {}{}",
                group.name,
                in_namespace(&key)
            )),
        );
    }
    found
}

fn described(step: &Step) -> String {
    match step {
        Step::SetWeight(weight) => format!("setWeight: {weight}"),
        Step::Pause(Some(span)) => format!("pause: {}", crate::time::format_duration(*span)),
        Step::Pause(None) => "pause: {}".to_owned(),
        Step::Other(..) => "another step".to_owned(),
    }
}

pub(super) const STEPS_DIFFER: Rule = Rule {
    code: "ZRA011",
    title: "Zones have different steps",
    check: Check::Rollouts,
    effect: Effect::Release,
    meaning: "What was seen in one zone says less about the next: it takes other weights or other \
              pauses.",
    cause: "Each Rollout has steps of its own; nothing keeps them alike.",
    fix: "Give all zones the same steps.",
    verify: "kubectl get rollouts -o custom-columns=NAME:.metadata.name,\
             STEPS:.spec.strategy.canary.steps",
    example: include_str!("../examples/ZRA011.diff"),
    find: |context| {
        let mut found = Vec::new();
        for group in context.zone_groups() {
            let rollouts = context.rollouts_of(group);
            let Some((first, others)) = rollouts.split_first() else { continue };
            for other in others.iter().filter(|other| other.steps() != first.steps()) {
                let key = other.meta.key();
                found.push(
                    Found::new(
                        Severity::Warning,
                        format!("Rollout {key} has other steps than {}", first.meta.name),
                    )
                    .at(
                        "Rollout",
                        &key,
                        "spec.strategy.canary.steps",
                        other.steps().iter().map(described).collect::<Vec<_>>().join(", "),
                    )
                    .at(
                        "Rollout",
                        &first.meta.key(),
                        "spec.strategy.canary.steps",
                        first.steps().iter().map(described).collect::<Vec<_>>().join(", "),
                    )
                    .fix(command::edit("Rollout", &key))
                    .verify(steps_of(&key)),
                );
            }
        }
        found
    },
};

pub(super) const TEMPLATES_DIFFER: Rule = Rule {
    code: "ZRA012",
    title: "Zones have different templates",
    check: Check::Rollouts,
    effect: Effect::Release,
    meaning: "The zones run different releases, or a difference that nobody meant goes out with \
              the next one.",
    cause: "Each Rollout has a template of its own; labels, affinity and the zone's own name may \
            differ, this does not look like it.",
    fix: "Bring the zones to the same template, or go on with the release that is under way.",
    verify: "kubectl zone-rollout status",
    example: include_str!("../examples/ZRA012.diff"),
    find: |context| {
        let mut found = Vec::new();
        for group in context.zone_groups() {
            let members: Vec<_> = group
                .zones
                .iter()
                .filter_map(|zone| Some((zone, zone.rollout(context.scene)?)))
                .collect();
            let Some(((zone, first), others)) = members.split_first() else { continue };
            let template = template_of(context.scene, first);
            for (other_zone, other) in others {
                let place =
                    difference((template, zone), (template_of(context.scene, other), other_zone));
                found.extend(place.map(|place| {
                    let key = other.meta.key();
                    Found::new(
                        Severity::Warning,
                        format!(
                            "the template of Rollout {key} differs from {}'s at {place}",
                            first.meta.name
                        ),
                    )
                    .at("Rollout", &key, format!("spec.template.{place}"), "differs")
                    .at("Rollout", &first.meta.key(), format!("spec.template.{place}"), "differs")
                    .fix(format!(
                        "kubectl diff of the two: kubectl get rollouts {} {}{} -o yaml",
                        first.meta.name,
                        key.name,
                        in_namespace(&key)
                    ))
                    .verify(format!(
                        "kubectl zone-rollout status {}{}",
                        group.name,
                        in_namespace(&key)
                    ))
                }));
            }
        }
        found
    },
};

pub(super) const ROLE_IN_TEMPLATE: Rule = Rule {
    code: "ZRA013",
    title: "A template carries a label that only running pods should have",
    check: Check::Rollouts,
    effect: Effect::WrongPlace,
    meaning: "Canary pods carry the stable label from the start and get all the traffic of stable \
              pods, past the weights.",
    cause: "The controller sets stableMetadata and canaryMetadata on pods and takes them away. \
            `kubectl argo rollouts undo` copies the template of a ReplicaSet with them into the \
            Rollout.",
    fix: "Remove the label from the template.",
    verify: "kubectl get rollout NAME -o jsonpath='{.spec.template.metadata.labels}'",
    example: include_str!("../examples/ZRA013.diff"),
    find: role_in_template,
};

fn role_in_template(context: &Context<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    for rollout in context.rollouts() {
        let canary = rollout.spec.strategy.canary.as_ref();
        let ephemeral = canary.map(|canary| [&canary.stable_metadata, &canary.canary_metadata]);
        let own =
            ephemeral.into_iter().flatten().flatten().flat_map(|metadata| metadata.labels.keys());
        let mut own: Vec<&str> = own.map(String::as_str).chain([ROLE_LABEL]).collect();
        own.sort_unstable();
        own.dedup();
        let labels = labels_of(template_of(context.scene, rollout));
        for label in own.into_iter().filter(|label| labels.contains_key(*label)) {
            let key = rollout.meta.key();
            found.push(
                Found::new(
                    Severity::Error,
                    format!(
                        "the template of Rollout {key} carries {label}: {}, which the controller \
                         gives and takes itself; new canary pods carry it from the start",
                        labels[label]
                    ),
                )
                .at(
                    "Rollout",
                    &key,
                    format!("spec.template.metadata.labels[{label}]"),
                    &labels[label],
                )
                .fix(command::remove(
                    "Rollout",
                    &key,
                    &[&format!("spec.template.metadata.labels[{label}]")],
                ))
                .verify(format!(
                    "kubectl get rollout {}{} -o jsonpath='{{.spec.template.metadata.labels}}'",
                    key.name,
                    in_namespace(&key)
                )),
            );
        }
    }
    found
}

fn last_weight(rollout: &Rollout) -> Option<u32> {
    rollout.steps().iter().rev().find_map(|step| match step {
        Step::SetWeight(weight) => Some(*weight),
        _ => None,
    })
}

pub(super) const LAST_JUMP: Rule = Rule {
    code: "ZRA015",
    title: "The last step is a jump",
    check: Check::Rollouts,
    effect: Effect::Release,
    meaning: "After the last weight the canary gets everything at once, and the old pods go soon \
              after.",
    cause: "Past its last step a Rollout is promoted: weight 100, without a pause at it.",
    fix: "Add setWeight: 100 and a pause at the end.",
    verify: "kubectl get rollout NAME -o yaml",
    example: include_str!("../examples/ZRA015.diff"),
    find: |context| {
        let jumps = context.rollouts().filter_map(|rollout| {
            Some((rollout, last_weight(rollout).filter(|weight| *weight < 100)?))
        });
        jumps
            .filter(|(rollout, _)| rollout.istio().is_some())
            .map(|(rollout, weight)| {
                let key = rollout.meta.key();
                let scaled = rollout
                    .spec
                    .strategy
                    .canary
                    .as_ref()
                    .is_some_and(|canary| canary.dynamic_stable_scale);
                let (severity, more) = if scaled {
                    (
                        Severity::Warning,
                        ", while dynamicStableScale has already taken most stable pods away: \
                         requests fail for a moment",
                    )
                } else {
                    (Severity::Info, "")
                };
                Found::new(
                    severity,
                    format!("Rollout {key} goes from {weight} to 100 % at once at its end{more}"),
                )
                .at("Rollout", &key, "spec.strategy.canary.steps", format!("last weight {weight}"))
                .fix(command::add(
                    "Rollout",
                    &key,
                    "spec.strategy.canary.steps[-]",
                    &json!({"setWeight": 100}),
                ))
                .verify(steps_of(&key))
            })
            .collect()
    },
};
