//! Queries for Istio's metrics: labels that do not exist, Services that count nothing.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::diagnose::context::{Context, in_namespace, listed};
use crate::diagnose::finding::{Effect, Found, Severity};
use crate::diagnose::promql::{Matcher, matchers};
use crate::diagnose::rule::{Check, Rule};
use crate::diagnose::usage::{UNKNOWN, Usage, usages};
use crate::scene::{AnalysisTemplate, Key, Kind};
use crate::traffic::{fully_qualified, leads_to, service_of};

/// Labels of Istio's standard metrics after `source_` and `destination_`.
const PEER: [&str; 7] = [
    "workload",
    "workload_namespace",
    "principal",
    "app",
    "version",
    "canonical_service",
    "canonical_revision",
];
/// The other labels that begin like Istio's.
const OTHER: [&str; 12] = [
    "source_cluster",
    "destination_cluster",
    "destination_service",
    "destination_service_name",
    "destination_service_namespace",
    "request_protocol",
    "request_operation",
    "request_host",
    "response_code",
    "response_flags",
    "grpc_response_status",
    "connection_security_policy",
];
/// Labels that ztunnel adds to TCP metrics (from Istio 1.25).
const ZTUNNEL: [&str; 4] =
    ["source_region", "source_zone", "destination_region", "destination_zone"];
/// How labels begin that can only come from Istio; others may be added by whoever scrapes.
const FAMILIES: [&str; 6] =
    ["source_", "destination_", "request_", "response_", "connection_", "grpc_"];

fn is_unknown(matcher: &Matcher, added: &BTreeSet<String>) -> bool {
    let label = matcher.label.as_str();
    let peer = label.strip_prefix("source_").or_else(|| label.strip_prefix("destination_"));
    matcher.metric.starts_with("istio_")
        && FAMILIES.iter().any(|family| label.starts_with(family))
        && peer.is_none_or(|label| !PEER.contains(&label))
        && !OTHER.contains(&label)
        && !(matcher.metric.starts_with("istio_tcp_") && ZTUNNEL.contains(&label))
        && !added.contains(label)
}

/// Labels that Telemetry objects add.
fn added(context: &Context<'_>) -> BTreeSet<String> {
    let mut added = BTreeSet::new();
    for (_, telemetry) in context.scene.telemetries.iter() {
        collect_overrides(&telemetry.spec, &mut added);
    }
    added
}

fn collect_overrides(value: &Value, added: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::Object(tags)) = fields.get("tagOverrides") {
                added.extend(tags.keys().cloned());
            }
            fields.values().for_each(|value| collect_overrides(value, added));
        }
        Value::Array(items) => items.iter().for_each(|value| collect_overrides(value, added)),
        _ => {}
    }
}

const MEANT: &str = "one Rollout serves one zone, so its name tells the zone: \
                     destination_workload=\"ROLLOUT\" (before Istio 1.22 \
                     =~\"ROLLOUT(-[0-9a-z]+)?\")";

pub(super) const LABEL: Rule = Rule {
    code: "ZRM001",
    title: "An analysis asks for a label that Istio's metrics do not have",
    check: Check::Analysis,
    effect: Effect::Release,
    meaning: "The query returns nothing: the analysis ends in Error, and the Rollout is aborted.",
    cause: "Istio's metrics have no label for a zone or for pod labels (unless a Telemetry adds \
            one).",
    fix: "Tell zones by destination_workload: one Rollout serves one zone.",
    verify: "kubectl get analysisruns",
    example: include_str!("../examples/ZRM001.diff"),
    find: |context| {
        let mut found =
            unknown_labels(context, &context.scene.analysis_templates, "AnalysisTemplate");
        found.extend(unknown_labels(
            context,
            &context.scene.cluster_analysis_templates,
            "ClusterAnalysisTemplate",
        ));
        found
    },
};

fn unknown_labels(
    context: &Context<'_>,
    templates: &Kind<AnalysisTemplate>,
    kind: &'static str,
) -> Vec<Found> {
    let added = added(context);
    let mut found = Vec::new();
    for (key, template) in templates.iter() {
        for (index, metric) in template.spec.metrics.iter().enumerate() {
            let Some(prometheus) = &metric.provider.prometheus else { continue };
            let query = prometheus.query.replace("{{", "").replace("}}", "");
            let unknown: BTreeSet<String> = matchers(&query)
                .into_iter()
                .filter(|matcher| is_unknown(matcher, &added))
                .map(|matcher| matcher.label)
                .collect();
            if !unknown.is_empty() {
                found.push(
                    Found::new(
                        Severity::Error,
                        format!(
                            "metric {} of {kind} {key} asks for {}, which Istio's metrics do not \
                             have: no data, and the Rollout is aborted",
                            metric.name,
                            listed(&unknown)
                        ),
                    )
                    .at(
                        kind,
                        key,
                        format!("spec.metrics[{index}].provider.prometheus.query"),
                        listed(&unknown),
                    )
                    .fix(format!(
                        "{MEANT}: kubectl edit {} {}{}",
                        kind.to_ascii_lowercase(),
                        key.name,
                        in_namespace(key)
                    ))
                    .verify(format!("kubectl get analysisruns{}", in_namespace(key))),
                );
            }
        }
    }
    found
}

pub(super) const ALERT: Rule = Rule {
    code: "ZRM007",
    title: "An alert asks for a label that Istio's metrics do not have",
    check: Check::Analysis,
    effect: Effect::Blind,
    meaning: "The alert never fires.",
    cause: "Istio's metrics have no label for a zone or for pod labels (unless a Telemetry adds \
            one), so the expression is always empty.",
    fix: "Tell zones by destination_workload: one Rollout serves one zone.",
    verify: "kubectl get prometheusrules",
    example: include_str!("../examples/ZRM007.diff"),
    find: alerts,
};

fn alerts(context: &Context<'_>) -> Vec<Found> {
    let added = added(context);
    let mut found = Vec::new();
    for (key, object) in context.scene.alerts.iter() {
        let groups = object.spec["groups"].as_array().into_iter().flatten().enumerate();
        let rules = groups.flat_map(|(at, group)| {
            let rules = group["rules"].as_array().into_iter().flatten().enumerate();
            rules.map(move |(index, rule)| (format!("spec.groups[{at}].rules[{index}].expr"), rule))
        });
        for (path, rule) in rules {
            let expression = rule["expr"].as_str().unwrap_or_default();
            let unknown: BTreeSet<String> = matchers(expression)
                .into_iter()
                .filter(|matcher| is_unknown(matcher, &added))
                .map(|matcher| matcher.label)
                .collect();
            let name = rule["alert"].as_str().or(rule["record"].as_str()).unwrap_or_default();
            if !unknown.is_empty() {
                found.push(
                    Found::new(
                        Severity::Warning,
                        format!(
                            "alert {name} of PrometheusRule {key} asks for {}, which Istio's \
                             metrics do not have: it never fires",
                            listed(&unknown)
                        ),
                    )
                    .at("PrometheusRule", key, path, listed(&unknown))
                    .fix(format!(
                        "{MEANT}: kubectl edit prometheusrule {}{}",
                        key.name,
                        in_namespace(key)
                    ))
                    .verify(format!(
                        "kubectl get prometheusrule {}{} -o yaml",
                        key.name,
                        in_namespace(key)
                    )),
                );
            }
        }
    }
    found
}

pub(super) const NO_SERIES: Rule = Rule {
    code: "ZRM002",
    title: "An analysis asks for a Service that gets no requests",
    check: Check::Analysis,
    effect: Effect::Release,
    meaning: "The query returns nothing: the analysis ends in Error, and the Rollout is aborted.",
    cause: "destination_service is the Service that clients call. With subsets that is one and \
            the same for stable and canary pods; a canary Service counts nothing, or does not \
            exist.",
    fix: "Tell stable and canary apart by destination_canonical_revision or destination_version, \
          or by destination_workload.",
    verify: "kubectl get analysisruns",
    example: include_str!("../examples/ZRM002.diff"),
    find: no_series,
};

fn no_series(context: &Context<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    for usage in usages(context) {
        let metrics = usage.template.map(|template| template.spec.metrics.iter().enumerate());
        for (index, metric) in metrics.into_iter().flatten() {
            let Some(query) = usage.query(metric) else { continue };
            let asked = asked_services(&usage, &matchers(&query));
            for (text, service) in asked {
                if let Some(why) = counts_nothing(context, &usage, &service) {
                    let key = usage.key();
                    found.push(
                        Found::new(
                            Severity::Error,
                            format!(
                                "{} {key} asks for destination_service {text} for Rollout {}, but \
                                 {why}: no data, Error, abort",
                                usage.kind(),
                                usage.rollout.meta.name
                            ),
                        )
                        .at(
                            usage.kind(),
                            &key,
                            format!("spec.metrics[{index}].provider.prometheus.query"),
                            &text,
                        )
                        .at(
                            "Rollout",
                            &usage.rollout.meta.key(),
                            usage.path(),
                            &usage.reference.template_name,
                        )
                        .fix(format!(
                            "ask for the Service that clients call, and tell the canary by \
                             destination_canonical_revision: kubectl edit {} {}{}",
                            usage.kind().to_ascii_lowercase(),
                            key.name,
                            in_namespace(&key)
                        ))
                        .verify(format!("kubectl get analysisruns{}", in_namespace(&key))),
                    );
                }
            }
        }
    }
    found
}

/// Services that matchers name exactly, with the text that names them.
fn asked_services(usage: &Usage<'_>, matchers: &[Matcher]) -> BTreeSet<(String, Key)> {
    let exact = |label: &str| {
        let mut found =
            matchers.iter().filter(|matcher| matcher.label == label && matcher.operator == "=");
        found.next().map(|matcher| matcher.value.clone())
    };
    let mut asked = BTreeSet::new();
    for matcher in matchers
        .iter()
        .filter(|matcher| matcher.operator == "=" && !matcher.value.contains(UNKNOWN))
    {
        let key = match matcher.label.as_str() {
            "destination_service" => service_of(&matcher.value),
            "destination_service_name" => {
                let namespace = exact("destination_service_namespace")
                    .or_else(|| exact("destination_workload_namespace"));
                let namespace = namespace.unwrap_or_else(|| usage.rollout.meta.namespace.clone());
                Some(Key::new(namespace, &matcher.value))
            }
            _ => None,
        };
        asked.extend(
            key.filter(|key| !key.namespace.contains(UNKNOWN))
                .map(|key| (matcher.value.clone(), key)),
        );
    }
    asked
}

fn counts_nothing(context: &Context<'_>, usage: &Usage<'_>, service: &Key) -> Option<String> {
    if context.scene.services.get(service).is_none() {
        return context.holds(&context.given.services, &service.namespace).then(|| {
            format!("no Service {} exists in namespace {}", service.name, service.namespace)
        });
    }
    let canary = usage.rollout.spec.strategy.canary.as_ref()?;
    let own = [&canary.canary_service, &canary.stable_service]
        .into_iter()
        .flatten()
        .any(|name| *name == service.name);
    let host = fully_qualified(&service.name, &service.namespace);
    let routed =
        context.scene.routes.iter().any(|(_, virtual_service)| leads_to(virtual_service, &host));
    let called = context.routes_of(usage.rollout).iter().any(|route| route.host == host);
    let idle = own && usage.rollout.destination_rule().is_some() && !routed && !called;
    idle.then(|| format!("its requests go to subsets of another Service, not to {}", service.name))
}
