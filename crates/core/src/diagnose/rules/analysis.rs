//! Analysis templates: what makes them refuse, fail, or abort without a reason.

use serde_json::json;

use std::collections::BTreeMap;

use crate::diagnose::command;
use crate::diagnose::context::{Context, first_weight, in_namespace, listed};
use crate::diagnose::finding::{Effect, Found, Severity};
use crate::diagnose::rule::{Check, Rule};
use crate::diagnose::usage::{Usage, When, is_endless, usages};
use crate::scene::{AnalysisTemplate, Key, Kind, Metric, Step};

fn runs(key: &Key) -> String {
    format!("kubectl get analysisruns{}", in_namespace(key))
}

pub(super) const TEMPLATE_MISSING: Rule = Rule {
    code: "ZRM006",
    title: "An analysis template does not exist",
    check: Check::Analysis,
    effect: Effect::Release,
    meaning: "The Rollout becomes InvalidSpec: nothing moves.",
    cause: "The controller checks that the templates a Rollout names are there; without \
            clusterScope it looks in the Rollout's namespace.",
    fix: "Create the template, or set clusterScope for one of the cluster.",
    verify: "kubectl get analysistemplates",
    example: include_str!("../examples/ZRM006.diff"),
    find: |context| {
        let held = |usage: &Usage<'_>| {
            let key = usage.key();
            if usage.reference.cluster_scope {
                context.holds(&context.given.cluster_analysis_templates, "")
            } else {
                context.holds(&context.given.analysis_templates, &key.namespace)
            }
        };
        usages(context)
            .iter()
            .filter(|usage| usage.template.is_none() && held(usage))
            .map(|usage| {
                let key = usage.rollout.meta.key();
                Found::new(
                    Severity::Error,
                    format!(
                        "Rollout {key} uses {} {}, which does not exist",
                        usage.kind(),
                        usage.key()
                    ),
                )
                .at("Rollout", &key, usage.path(), &usage.reference.template_name)
                .fix(command::edit("Rollout", &key))
                .verify(format!("kubectl get analysistemplates{}", in_namespace(&key)))
            })
            .collect()
    },
};

pub(super) const NO_VALUE: Rule = Rule {
    code: "ZRM008",
    title: "An argument of an analysis has no value",
    check: Check::Analysis,
    effect: Effect::Release,
    meaning: "The analysis cannot start: the Rollout is refused or aborted.",
    cause: "The template declares an argument without a default, and the Rollout gives it no \
            value (args.x was not resolved).",
    fix: "Give the argument a value in the Rollout, or a default in the template.",
    verify: "kubectl get rollout NAME",
    example: include_str!("../examples/ZRM008.diff"),
    find: |context| {
        let mut found = Vec::new();
        for usage in usages(context) {
            let declared = usage.template.map(|template| &template.spec.args).into_iter().flatten();
            for argument in declared
                .filter(|argument| argument.value.is_none() && argument.value_from.is_none())
            {
                let given = usage.args.iter().any(|given| {
                    given.name == argument.name
                        && (given.value.is_some() || given.value_from.is_some())
                });
                if !given {
                    let key = usage.rollout.meta.key();
                    found.push(
                        Found::new(
                            Severity::Error,
                            format!(
                                "Rollout {key} gives argument {} of {} {} no value",
                                argument.name,
                                usage.kind(),
                                usage.key()
                            ),
                        )
                        .at(
                            "Rollout",
                            &key,
                            format!("{}.args", usage.path()),
                            format!("no {}", argument.name),
                        )
                        .at(usage.kind(), &usage.key(), "spec.args", &argument.name)
                        .fix(command::edit("Rollout", &key))
                        .verify(runs(&key)),
                    );
                }
            }
        }
        found
    },
};

pub(super) const ENDLESS: Rule = Rule {
    code: "ZRM005",
    title: "An analysis step would never end",
    check: Check::Analysis,
    effect: Effect::Release,
    meaning: "The Rollout becomes InvalidSpec: nothing moves.",
    cause: "A metric with an interval and no count is measured without end, which the controller \
            accepts only beside the steps (runs indefinitely. Invalid value for count).",
    fix: "Give the metric a count, or use the template in strategy.canary.analysis.",
    verify: "kubectl get rollout NAME",
    example: include_str!("../examples/ZRM005.diff"),
    find: endless,
};

fn endless(context: &Context<'_>) -> Vec<Found> {
    let mut uses: BTreeMap<(Key, Key), Vec<Usage<'_>>> = BTreeMap::new();
    for usage in usages(context) {
        let metrics = usage.template.map(|template| &template.spec.metrics);
        let never_ends = metrics.is_some_and(|metrics| metrics.iter().any(is_endless));
        if never_ends && matches!(usage.when, When::Step(_)) {
            uses.entry((usage.key(), usage.rollout.meta.key())).or_default().push(usage);
        }
    }
    uses.into_iter()
        .map(|((template, rollout), uses)| {
            let first = &uses[0];
            let metrics = first.template.map(|template| template.spec.metrics.iter().enumerate());
            let (index, metric) = metrics
                .into_iter()
                .flatten()
                .find(|(_, metric)| is_endless(metric))
                .map_or((0, ""), |(index, metric)| (index, metric.name.as_str()));
            let steps = listed(uses.iter().filter_map(|usage| match usage.when {
                When::Step(index) => Some(index),
                When::Beside(_) => None,
            }));
            let mut found = Found::new(
                Severity::Error,
                format!(
                    "{} {template} is a step of Rollout {rollout} (step {steps}), but its metric \
                     {metric} has an interval and no count: the Rollout becomes InvalidSpec",
                    first.kind()
                ),
            )
            .at(
                first.kind(),
                &template,
                format!("spec.metrics[{index}].count"),
                "missing",
            );
            for usage in &uses {
                found = found.at("Rollout", &rollout, usage.path(), &template.name);
            }
            found
                .fix(command::add(
                    first.kind(),
                    &template,
                    &format!("spec.metrics[{index}].count"),
                    &json!(5),
                ))
                .verify(format!("kubectl get rollout {}{}", rollout.name, in_namespace(&rollout)))
        })
        .collect()
}

pub(super) const UNGUARDED: Rule = Rule {
    code: "ZRM003",
    title: "No data counts as a failure",
    check: Check::Analysis,
    effect: Effect::Release,
    meaning: "A quiet minute aborts the Rollout, though nothing is wrong with the new version.",
    cause: "An empty result makes result[0] an evaluation error, and five in a row (ten seconds \
            apart) end the analysis. 0/0 is NaN, which fulfils no comparison: without a \
            failureLimit the first one is a failure.",
    fix: "successCondition: len(result) > 0 && !isNaN(result[0]) && …, the opposite as \
          failureCondition, and an inconclusiveLimit: no data then pauses instead of aborting.",
    verify: "kubectl get analysisruns",
    example: include_str!("../examples/ZRM003.diff"),
    find: unguarded,
};

/// What a metric does not provide for.
fn unprovided(metric: &Metric) -> Option<&'static str> {
    let query = &metric.provider.prometheus.as_ref()?.query;
    let conditions = format!(
        "{} {}",
        metric.success_condition.as_deref().unwrap_or_default(),
        metric.failure_condition.as_deref().unwrap_or_default()
    );
    let compact: String = conditions.split_whitespace().collect();
    let fills =
        query.contains("or vector(") || query.contains("or on()") || query.contains("absent(");
    let tells_empty = compact.contains("len(result)")
        || compact.contains("default(")
        || compact.contains("isNil(")
        || compact.contains("all(result")
        || compact.contains("any(result");
    let empty = compact.contains("result[") && !tells_empty && !fills;
    let divides = query.contains('/') && !fills;
    let nan = divides && compact.contains("result") && !compact.contains("isNaN(");
    match (empty, nan) {
        (true, true) => Some("an empty result or NaN"),
        (true, false) => Some("an empty result"),
        (false, true) => Some("NaN"),
        (false, false) => None,
    }
}

fn templates<'a>(
    kind: &'a Kind<AnalysisTemplate>,
    name: &'static str,
) -> impl Iterator<Item = (&'static str, &'a Key, &'a AnalysisTemplate)> {
    kind.iter().map(move |(key, template)| (name, key, template))
}

fn unguarded(context: &Context<'_>) -> Vec<Found> {
    let of_namespace = templates(&context.scene.analysis_templates, "AnalysisTemplate");
    let of_cluster =
        templates(&context.scene.cluster_analysis_templates, "ClusterAnalysisTemplate");
    let mut found = Vec::new();
    for (kind, key, template) in of_namespace.chain(of_cluster) {
        for (index, metric) in template.spec.metrics.iter().enumerate() {
            let Some(what) = unprovided(metric) else { continue };
            let limit = if metric.failure_limit.is_none() { ", and no failureLimit" } else { "" };
            let condition = metric
                .success_condition
                .as_deref()
                .or(metric.failure_condition.as_deref())
                .unwrap_or_default();
            found.push(
                Found::new(
                    Severity::Warning,
                    format!(
                        "metric {} of {kind} {key} does not provide for {what}{limit}: a minute \
                         without requests aborts the Rollout",
                        metric.name
                    ),
                )
                .at(kind, key, format!("spec.metrics[{index}].successCondition"), condition)
                .fix(format!(
                    "successCondition: \"len(result) > 0 && !isNaN(result[0]) && …\": {}",
                    command::edit(kind, key)
                ))
                .verify(runs(key)),
            );
        }
    }
    found
}

pub(super) const TOO_EARLY: Rule = Rule {
    code: "ZRM004",
    title: "Analysis runs before the canary has requests",
    check: Check::Analysis,
    effect: Effect::Release,
    meaning: "It measures nothing, and aborts the Rollout while it waits at its gate.",
    cause: "Background analysis starts at startingStep (0-based, default 0) and goes on while a \
            pause is held; before the first weight there are no requests to the canary.",
    fix: "startingStep: the step after the first setWeight.",
    verify: "kubectl get analysisruns",
    example: include_str!("../examples/ZRM004.diff"),
    find: too_early,
};

fn too_early(context: &Context<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    for usage in usages(context) {
        let steps = usage.rollout.steps();
        let (When::Beside(start), Some(first)) = (usage.when, first_weight(steps)) else {
            continue;
        };
        let waits = steps[..first].iter().skip(start).any(|step| matches!(step, Step::Pause(None)));
        let delayed = usage.template.is_some_and(|template| {
            template.spec.metrics.iter().all(|metric| metric.initial_delay.is_some())
        });
        let severity = if waits { Severity::Warning } else { Severity::Info };
        if start > first || (!waits && delayed) {
            continue;
        }
        let key = usage.rollout.meta.key();
        let why = if waits {
            "though it waits for a person before its first weight"
        } else {
            "as its first weight is set"
        };
        found.push(
            Found::new(
                severity,
                format!(
                    "Rollout {key} starts to measure {} at step {start}, {why}",
                    usage.reference.template_name
                ),
            )
            .at("Rollout", &key, "spec.strategy.canary.analysis.startingStep", start)
            .fix(command::set(
                "Rollout",
                &key,
                "spec.strategy.canary.analysis.startingStep",
                json!(first + 1),
            ))
            .verify(runs(&key)),
        );
    }
    found
}
