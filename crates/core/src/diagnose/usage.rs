//! Where Rollouts use analysis templates, and with which arguments.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::context::Context;
use crate::scene::{
    AnalysisTemplate, Argument, BackgroundAnalysis, Key, Metric, Rollout, Step, StepKind,
    TemplateReference,
};

/// When an analysis runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    /// Beside the steps, from this one on (0-based).
    Beside(usize),
    /// As this step (0-based).
    Step(usize),
}

/// One use of a template by a Rollout.
pub(super) struct Usage<'a> {
    pub(super) rollout: &'a Rollout,
    pub(super) when: When,
    pub(super) reference: TemplateReference,
    pub(super) args: Vec<Argument>,
    /// Nothing if it is not known.
    pub(super) template: Option<&'a AnalysisTemplate>,
}

impl Usage<'_> {
    pub(super) fn kind(&self) -> &'static str {
        if self.reference.cluster_scope { "ClusterAnalysisTemplate" } else { "AnalysisTemplate" }
    }

    pub(super) fn key(&self) -> Key {
        let namespace =
            if self.reference.cluster_scope { "" } else { &self.rollout.meta.namespace };
        Key::new(namespace, &self.reference.template_name)
    }

    /// The path of the use in the Rollout.
    pub(super) fn path(&self) -> String {
        match self.when {
            When::Beside(_) => "spec.strategy.canary.analysis".to_owned(),
            When::Step(index) => format!("spec.strategy.canary.steps[{index}].analysis"),
        }
    }

    /// A metric's query with all arguments that are known put in.
    pub(super) fn query(&self, metric: &Metric) -> Option<String> {
        let prometheus = metric.provider.prometheus.as_ref()?;
        let values = self.values();
        let mut rest = prometheus.query.as_str();
        let mut query = String::new();
        while let Some((before, after)) = rest.split_once("{{") {
            let Some((name, behind)) = after.split_once("}}") else { break };
            query.push_str(before);
            match name.trim().strip_prefix("args.").and_then(|name| values.get(name)) {
                Some(value) => query.push_str(value),
                None => query.push_str(UNKNOWN),
            }
            rest = behind;
        }
        query.push_str(rest);
        Some(query)
    }

    fn values(&self) -> BTreeMap<String, String> {
        let declared = self.template.map(|template| &template.spec.args).into_iter().flatten();
        let all = declared.chain(&self.args);
        all.filter_map(|argument| Some((argument.name.clone(), self.value(argument)?))).collect()
    }

    fn value(&self, argument: &Argument) -> Option<String> {
        if argument.value.is_some() {
            return argument.value.clone();
        }
        let path = argument.value_from.as_ref()?.pointer("/fieldRef/fieldPath")?.as_str()?;
        match path {
            "metadata.namespace" => Some(self.rollout.meta.namespace.clone()),
            "metadata.name" => Some(self.rollout.meta.name.clone()),
            _ => {
                let label = path.strip_prefix("metadata.labels['")?.strip_suffix("']")?;
                self.rollout.meta.labels.get(label).cloned()
            }
        }
    }
}

/// Stands for an argument whose value is not known.
pub(super) const UNKNOWN: &str = "\u{fffd}";

/// All uses of templates by Rollouts.
pub(super) fn usages<'a>(context: &Context<'a>) -> Vec<Usage<'a>> {
    let mut usages = Vec::new();
    for rollout in context.rollouts() {
        let beside =
            rollout.spec.strategy.canary.as_ref().and_then(|canary| canary.analysis.as_ref());
        if let Some(analysis) = beside {
            add(context, rollout, When::Beside(analysis.starting_step), analysis, &mut usages);
        }
        for (index, step) in rollout.steps().iter().enumerate() {
            if let Some(analysis) = analysis_of(step) {
                add(context, rollout, When::Step(index), &analysis, &mut usages);
            }
        }
    }
    usages
}

fn analysis_of(step: &Step) -> Option<BackgroundAnalysis> {
    match step {
        Step::Other(StepKind::Analysis, content) => BackgroundAnalysis::deserialize(content).ok(),
        _ => None,
    }
}

fn add<'a>(
    context: &Context<'a>,
    rollout: &'a Rollout,
    when: When,
    analysis: &BackgroundAnalysis,
    usages: &mut Vec<Usage<'a>>,
) {
    for reference in &analysis.templates {
        let mut usage = Usage {
            rollout,
            when,
            reference: reference.clone(),
            args: analysis.args.clone(),
            template: None,
        };
        let kind = if reference.cluster_scope {
            &context.scene.cluster_analysis_templates
        } else {
            &context.scene.analysis_templates
        };
        usage.template = kind.get(&usage.key());
        usages.push(usage);
    }
}

/// True if a metric is measured without end.
pub(super) fn is_endless(metric: &Metric) -> bool {
    let none =
        |value: &Value| *value == Value::Null || *value == 0 || *value == "0" || *value == "";
    metric.interval.as_ref().is_some_and(|interval| !none(interval))
        && metric.count.as_ref().is_none_or(none)
}
