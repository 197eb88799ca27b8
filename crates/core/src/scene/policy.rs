//! What is read only to diagnose: analysis templates, disruption budgets, plain workloads, and
//! objects of which a label or a query is looked at.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::{Argument, LabelSelector, Meta};

/// An AnalysisTemplate or ClusterAnalysisTemplate (`argoproj.io/v1alpha1`).
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct AnalysisTemplate {
    /// Metadata.
    #[serde(rename = "metadata")]
    pub meta: Meta,
    /// What is measured.
    pub spec: AnalysisTemplateSpec,
}

/// `spec` of an AnalysisTemplate.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct AnalysisTemplateSpec {
    /// Declared arguments with their defaults.
    pub args: Vec<Argument>,
    /// The metrics.
    pub metrics: Vec<Metric>,
}

/// One metric of a template.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Metric {
    /// Name.
    pub name: String,
    /// Time between measurements; absent means one measurement.
    pub interval: Option<Value>,
    /// Measurements until it is successful; absent with an interval means without end.
    pub count: Option<Value>,
    /// Time before the first measurement.
    pub initial_delay: Option<Value>,
    /// True where a measurement is good.
    pub success_condition: Option<String>,
    /// True where a measurement is bad.
    pub failure_condition: Option<String>,
    /// Bad measurements that are tolerated; absent is 0.
    pub failure_limit: Option<Value>,
    /// Where the numbers come from.
    pub provider: Provider,
}

/// Where a metric's numbers come from.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Provider {
    /// Prometheus; all others are left alone.
    pub prometheus: Option<Prometheus>,
}

/// `provider.prometheus`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Prometheus {
    /// The query, with `{{args.NAME}}` in it.
    pub query: String,
}

/// A PodDisruptionBudget (`policy/v1`).
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct DisruptionBudget {
    /// Metadata.
    #[serde(rename = "metadata")]
    pub meta: Meta,
    /// What it protects.
    pub spec: DisruptionBudgetSpec,
}

/// `spec` of a PodDisruptionBudget.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DisruptionBudgetSpec {
    /// Pods that have to stay, a number or a percentage.
    pub min_available: Option<Value>,
    /// Pods that may be missing, a number or a percentage.
    pub max_unavailable: Option<Value>,
    /// The pods it counts.
    pub selector: LabelSelector,
}

/// A Deployment or StatefulSet (`apps/v1`).
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Workload {
    /// Metadata.
    #[serde(rename = "metadata")]
    pub meta: Meta,
    /// What is wanted.
    pub spec: WorkloadSpec,
}

/// `spec` of a workload.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct WorkloadSpec {
    /// Wanted pods; the API server defaults to 1.
    pub replicas: Option<u32>,
    /// The pod template.
    pub template: Value,
}

/// An object of which only labels or loose fields are read.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Plain {
    /// Metadata.
    #[serde(rename = "metadata")]
    pub meta: Meta,
    /// Whatever it says.
    pub spec: Value,
}

impl Workload {
    /// Labels of its pods.
    pub fn labels(&self) -> BTreeMap<String, String> {
        labels_of(&self.spec.template)
    }
}

/// The labels of a pod template.
pub fn labels_of(template: &Value) -> BTreeMap<String, String> {
    let labels = template.pointer("/metadata/labels").and_then(Value::as_object);
    let text = |(key, value): (&String, &Value)| Some((key.clone(), value.as_str()?.to_owned()));
    labels.into_iter().flatten().filter_map(text).collect()
}

impl LabelSelector {
    /// True if it selects pods with these labels. An empty selector selects all.
    pub fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        let exact = self.match_labels.iter().all(|(label, value)| labels.get(label) == Some(value));
        exact && self.match_expressions.iter().all(|expression| holds(expression, labels))
    }
}

fn holds(expression: &Value, labels: &BTreeMap<String, String>) -> bool {
    let label = expression["key"].as_str().and_then(|key| labels.get(key));
    let listed = || {
        let values = expression["values"].as_array().into_iter().flatten();
        label.is_some_and(|label| values.filter_map(Value::as_str).any(|value| value == label))
    };
    match expression["operator"].as_str() {
        Some("In") => listed(),
        Some("NotIn") => !listed(),
        Some("Exists") => label.is_some(),
        Some("DoesNotExist") => label.is_none(),
        _ => false,
    }
}
