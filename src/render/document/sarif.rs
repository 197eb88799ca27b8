//! Findings as SARIF 2.1.0, which code review shows beside the lines they are about.

use serde_json::{Value, json};
use zone_rollout_core::diagnose::{Diagnosis, Evidence, Finding, RULES, Rule, Severity};
use zone_rollout_core::scene::Origin;

/// The log of one diagnosis.
pub fn sarif(diagnosis: &Diagnosis) -> Value {
    let rules: Vec<Value> = RULES.iter().map(|rule| described(rule)).collect();
    let results: Vec<Value> = diagnosis.findings.iter().map(result).collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "kubectl-zone-rollout",
                "version": env!("CARGO_PKG_VERSION"),
                "informationUri": env!("CARGO_PKG_REPOSITORY"),
                "rules": rules,
            }},
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

fn described(rule: &Rule) -> Value {
    json!({
        "id": rule.code,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.meaning},
        "help": {"text": format!("{}\n\n{}\n\nfix: {}\n\nverify: {}", rule.meaning, rule.cause, rule.fix, rule.verify)},
        "properties": {"tags": [rule.check.name()]},
    })
}

fn result(finding: &Finding) -> Value {
    let index = RULES.iter().position(|rule| rule.code == finding.rule.code);
    let locations: Vec<Value> = finding.evidence.iter().map(location).collect();
    let (first, others) = locations.split_at(1.min(locations.len()));
    json!({
        "ruleId": finding.rule.code,
        "ruleIndex": index,
        "level": level(finding.severity),
        "message": {"text": format!("{}\nfix: {}\nverify: {}", finding.title, finding.fix, finding.verify)},
        "locations": first,
        "relatedLocations": others,
        "properties": {"severity": finding.severity.name()},
    })
}

/// SARIF knows no level above `error`.
fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical | Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "note",
    }
}

fn location(evidence: &Evidence) -> Value {
    let object = &evidence.object;
    let mut location = json!({
        "message": {"text": format!("{object} {}: {}", evidence.path, evidence.value)},
        "logicalLocations": [{"fullyQualifiedName": format!("{object}"), "kind": "object"}],
    });
    if let Some(Origin::File { path, line }) = &evidence.origin {
        location["physicalLocation"] = json!({
            "artifactLocation": {"uri": uri(path)},
            "region": {"startLine": line},
        });
    }
    location
}

/// A relative reference; what a reference may not hold is escaped.
fn uri(path: &str) -> String {
    let path = path.strip_prefix("./").unwrap_or(path);
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    path.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}
