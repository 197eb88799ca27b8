//! `outlierDetection` and connection limits: fields that do nothing, or something else.

use serde_json::json;

use super::locality::{remove, show};
use crate::diagnose::command;
use crate::diagnose::context::Context;
use crate::diagnose::finding::{Effect, Found, Severity};
use crate::diagnose::rule::{Check, Rule};
use crate::scene::{Key, OutlierDetection};

fn detections<'a>(
    context: &Context<'a>,
) -> impl Iterator<Item = (&'a Key, String, &'a OutlierDetection)> {
    context.policies().filter_map(|(key, _, path, policy)| {
        Some((key, format!("{path}.outlierDetection"), policy.outlier_detection.as_ref()?))
    })
}

fn add(key: &Key, path: &str, value: u32) -> String {
    command::add("DestinationRule", key, path, &json!(value))
}

pub(super) const OLD_COUNTER: Rule = Rule {
    code: "ZRI021",
    title: "consecutiveErrors has no effect",
    check: Check::Rules,
    effect: Effect::ZoneLoss,
    meaning: "Endpoints are ejected after five 5xx answers in a row, not after the number that is \
              written.",
    cause: "The field is still in the schema and no version of Istio since 1.7 reads it; Envoy's \
            default applies.",
    fix: "Write consecutive5xxErrors (or consecutiveGatewayErrors).",
    verify: "istioctl proxy-config clusters POD --fqdn HOST -o json | grep consecutive5xx",
    example: include_str!("../examples/ZRI021.diff"),
    find: |context| {
        detections(context)
            .filter_map(|(key, path, outlier)| {
                let value = outlier.consecutive_errors.as_ref()?;
                let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
                let applies = match outlier.consecutive5xx_errors {
                    Some(number) => format!("consecutive5xxErrors {number} applies"),
                    None => format!("five 5xx answers in a row apply instead of {value}"),
                };
                Some(
                    Found::new(
                        Severity::Warning,
                        format!(
                            "consecutiveErrors in DestinationRule {key} has no effect: {applies}"
                        ),
                    )
                    .at("DestinationRule", key, format!("{path}.consecutiveErrors"), value)
                    .fix(add(key, &format!("{path}.consecutive5xxErrors"), number.unwrap_or(5)))
                    .verify(show(key)),
                )
            })
            .collect()
    },
};

pub(super) const GATEWAY_COUNTER: Rule = Rule {
    code: "ZRI023",
    title: "consecutiveGatewayErrors has no effect",
    check: Check::Rules,
    effect: Effect::ZoneLoss,
    meaning: "Endpoints are ejected by the count of 5xx answers, before the count for 502, 503 \
              and 504 is reached.",
    cause: "Every gateway error is a 5xx as well. consecutive5xxErrors is 5 unless it is set, so \
            a larger or equal count for gateway errors never comes first.",
    fix: "consecutive5xxErrors: 0 switches the other count off.",
    verify: "kubectl get destinationrule NAME -o yaml",
    example: include_str!("../examples/ZRI023.diff"),
    find: |context| {
        detections(context)
            .filter_map(|(key, path, outlier)| {
                let gateway = outlier.consecutive_gateway_errors?;
                let other = outlier.consecutive5xx_errors.unwrap_or(5);
                (gateway >= other && other > 0 && gateway > 0).then(|| {
                    Found::new(
                        Severity::Warning,
                        format!(
                            "consecutiveGatewayErrors {gateway} in DestinationRule {key} has no \
                             effect: consecutive5xxErrors is {other}"
                        ),
                    )
                    .at("DestinationRule", key, format!("{path}.consecutiveGatewayErrors"), gateway)
                    .fix(add(key, &format!("{path}.consecutive5xxErrors"), 0))
                    .verify(show(key))
                })
            })
            .collect()
    },
};

pub(super) const PANIC: Rule = Rule {
    code: "ZRI024",
    title: "minHealthPercent sends requests back to a failing zone",
    check: Check::Rules,
    effect: Effect::ZoneLoss,
    meaning: "With fewer healthy endpoints than that, ejection is ignored, and the failing ones \
              get requests.",
    cause: "Istio makes minHealthPercent Envoy's panic threshold; absent it is 0, which is off.",
    fix: "Remove minHealthPercent, or set it to 0.",
    verify: "kubectl get destinationrule NAME -o yaml",
    example: include_str!("../examples/ZRI024.diff"),
    find: |context| {
        detections(context)
            .filter_map(|(key, path, outlier)| {
                let percent = outlier.min_health_percent.filter(|percent| *percent > 0)?;
                let path = format!("{path}.minHealthPercent");
                Some(
                    Found::new(
                        Severity::Warning,
                        format!(
                            "with less than {percent} % healthy endpoints, DestinationRule {key} \
                             lets failing ones be used again"
                        ),
                    )
                    .at("DestinationRule", key, &path, percent)
                    .fix(remove(key, &path))
                    .verify(show(key)),
                )
            })
            .collect()
    },
};

pub(super) const SLOW_CONNECT: Rule = Rule {
    code: "ZRI025",
    title: "An unreachable zone costs ten seconds an attempt",
    check: Check::Rules,
    effect: Effect::ZoneLoss,
    meaning: "If a zone cannot be reached at all, each attempt waits for ten seconds, and \
              failover starts only after several of them.",
    cause: "Outlier detection counts a connection as failed after connectTimeout; the mesh's \
            default is 10 s.",
    fix: "connectionPool.tcp.connectTimeout: 1s",
    verify: "kubectl get destinationrule NAME -o yaml",
    example: include_str!("../examples/ZRI025.diff"),
    find: slow_connect,
};

fn slow_connect(context: &Context<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    for (key, rule) in context.scene.rules.iter() {
        let Some(policy) = &rule.spec.traffic_policy else { continue };
        let timeout =
            policy.connection_pool.as_ref().and_then(|pool| pool.pointer("/tcp/connectTimeout"));
        if policy.outlier_detection.is_some() && timeout.is_none() {
            found.push(
                Found::new(
                    Severity::Warning,
                    format!(
                        "DestinationRule {key} has outlierDetection and no connectTimeout: an \
                         unreachable zone costs 10 s for each attempt"
                    ),
                )
                .at(
                    "DestinationRule",
                    key,
                    "spec.trafficPolicy.connectionPool.tcp.connectTimeout",
                    "missing",
                )
                .fix(command::set(
                    "DestinationRule",
                    key,
                    "spec.trafficPolicy.connectionPool.tcp.connectTimeout",
                    json!("1s"),
                ))
                .verify(show(key)),
            );
        }
    }
    found
}
