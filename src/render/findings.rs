//! Findings for people: grouped by what they do to traffic, the worst first.

use std::fmt::Write;

use zone_rollout_core::diagnose::{
    Diagnosis, Effect, Evidence, Finding, Point, Problem, Rule, Severity, Verdict,
};
use zone_rollout_core::scene::Origin;

use super::words::count;

/// All findings, and what they rest on.
pub fn text(diagnosis: &Diagnosis) -> String {
    let mut text = String::new();
    for effect in effects(&diagnosis.findings) {
        put(&mut text, &format!("{}\n\n", effect.heading()));
        let of_effect = diagnosis.findings.iter().filter(|finding| finding.rule.effect == effect);
        for finding in of_effect {
            put(&mut text, &one(finding));
        }
    }
    put(&mut text, &summary(diagnosis));
    text
}

/// The effects that occur, in the order of their worst findings.
fn effects(findings: &[Finding]) -> Vec<Effect> {
    let mut effects = Vec::new();
    for finding in findings {
        if !effects.contains(&finding.rule.effect) {
            effects.push(finding.rule.effect);
        }
    }
    effects
}

fn put(text: &mut String, more: &str) {
    text.push_str(more);
}

fn one(finding: &Finding) -> String {
    let mut text =
        format!("{} {}  {}\n", finding.severity.name(), finding.rule.code, finding.title);
    for evidence in &finding.evidence {
        put(&mut text, &format!("  {}\n", shown(evidence)));
    }
    put(&mut text, &format!("  fix: {}\n  verify: {}\n\n", finding.fix, finding.verify));
    text
}

fn shown(evidence: &Evidence) -> String {
    let mut text = String::new();
    if let Some(place) = evidence.origin.as_ref().and_then(place) {
        put(&mut text, &format!("{place}: "));
    }
    if evidence.object.kind != "File" {
        put(&mut text, &format!("{} ", evidence.object));
    }
    let field =
        if evidence.path.is_empty() { String::new() } else { format!("{}: ", evidence.path) };
    put(&mut text, &format!("{field}{}", evidence.value));
    text
}

/// `file:line`, for objects from files.
fn place(origin: &Origin) -> Option<String> {
    match origin {
        Origin::File { path, line } => Some(format!("{path}:{line}")),
        Origin::Live | Origin::Model => None,
    }
}

fn summary(diagnosis: &Diagnosis) -> String {
    let mut text = String::new();
    if let Some(worst) = diagnosis.findings.first() {
        let of = |severity: Severity| {
            diagnosis.findings.iter().filter(|finding| finding.severity == severity).count()
        };
        let counts = [
            count(of(Severity::Critical), "critical", "critical"),
            count(of(Severity::Error), "error", "errors"),
            count(of(Severity::Warning), "warning", "warnings"),
            count(of(Severity::Info), "hint", "hints"),
        ];
        put(&mut text, &counts.join(", "));
        put(&mut text, &format!("\n\nhint: kubectl zone-rollout explain {}\n", worst.rule.code));
    } else {
        put(&mut text, "nothing found\n");
    }
    if diagnosis.assumed_pods {
        put(
            &mut text,
            "note: no pods are given; each workload's pods are assumed Ready, evenly in the zones that \
             its affinity allows\n",
        );
    }
    text
}

/// The points, one line each, and the problems that they would lead to.
pub fn checklist(points: &[Point], problems: &[Problem]) -> String {
    let mut text = String::new();
    for point in points {
        let line = match &point.verdict {
            Verdict::Holds => format!("[x] {}", point.text),
            Verdict::Fails(codes) if codes.is_empty() => format!("[ ] {}", point.text),
            Verdict::Fails(codes) => format!("[ ] {}: {}", point.text, codes.join(", ")),
            Verdict::Unknown(why) => format!("[?] {}: {why}", point.text),
        };
        put(&mut text, &format!("{line}\n"));
    }
    put(&mut text, "\n");
    for problem in problems {
        let causes = match problem.causes.as_slice() {
            [] => "no cause found".to_owned(),
            causes => format!("possible by {}", causes.join(", ")),
        };
        put(&mut text, &format!("{}: {causes}\n", problem.text));
    }
    text
}

/// Everything about a rule.
pub fn explanation(rule: &Rule) -> String {
    let mut text = format!("{} {}\n", rule.code, rule.title);
    let heading = rule.effect.heading();
    for (name, content) in [
        ("check", rule.check.name()),
        ("effect", heading),
        ("meaning", rule.meaning),
        ("cause", rule.cause),
        ("fix", rule.fix),
        ("verify", rule.verify),
    ] {
        put(&mut text, &format!("\n{name}:\n  {content}\n"));
    }
    put(&mut text, "\nexample (- is reported, + is not):\n");
    for line in rule.example.lines() {
        put(&mut text, &format!("  {line}\n"));
    }
    text
}

/// All codes with their titles.
pub fn codes(rules: &[&Rule]) -> String {
    let mut text = String::new();
    for rule in rules {
        put(&mut text, &format!("{}  {:<8}  {}\n", rule.code, rule.check.name(), rule.title));
    }
    text
}

/// The page of all findings for the documentation.
pub fn page(rules: &[&Rule]) -> String {
    let mut text = String::from(
        "# Findings\n\n<!-- Generated from the rules; a test compares it. To write it anew: UPDATE_DOCS=1 cargo test --test it findings_page -->\n\n\
         What `kubectl zone-rollout diagnose` finds, by code. `kubectl zone-rollout explain CODE` prints the same without a network.\n\
         ZRI codes are about Istio, ZRA about Argo Rollouts, ZRK about Kubernetes, ZRM about metrics, ZRF about files. A code never changes its meaning.\n\n\
         | code | check | what |\n|---|---|---|\n",
    );
    for rule in rules {
        let code = rule.code;
        let link = code.to_ascii_lowercase();
        let _infallible =
            writeln!(text, "| [{code}](#{link}) | {} | {} |", rule.check.name(), rule.title);
    }
    for rule in rules {
        let _infallible = write!(
            text,
            "\n## {}\n\n**{}.** {}\n\n*Cause.* {}\n\n*Fix.* {}\n\n*Verify.* \
                `{}`\n\n```diff\n{}```\n",
            rule.code, rule.title, rule.meaning, rule.cause, rule.fix, rule.verify, rule.example
        );
    }
    text
}
