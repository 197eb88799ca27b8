//! Diagnosis: rules over a scene, each a pure function that names a fault, its cause and its cure.
//! What they say about locality and failover comes from the traffic core, so that layouts that do
//! the same get the same verdict however they are written.

mod checklist;
mod command;
mod context;
mod finding;
mod matrix;
mod outlook;
mod promql;
mod rule;
mod rules;
mod unread;
mod usage;
mod version;

use std::collections::BTreeSet;

pub use checklist::{Point, Problem, Verdict, checklist, problems};
pub use finding::{Effect, Evidence, Finding, ObjectRef, Severity};
pub use matrix::{ClientRow, HostMatrix, matrix};
pub use outlook::Shares;
pub use rule::{Check, Rule};
pub use rules::RULES;
pub use unread::{UNREADABLE, unreadable};
pub use version::{Version, Versions};

use crate::scene::{Origin, Scene};
use crate::traffic::Mesh;
use context::Context;

/// What was found, and on what it rests.
#[derive(Debug)]
pub struct Diagnosis {
    /// The findings: by effect, then the worst first.
    pub findings: Vec<Finding>,
    /// True if no pods were given and the traffic was computed from assumed ones.
    pub assumed_pods: bool,
    /// The versions that were known.
    pub versions: Versions,
}

/// Applies the rules of these checks, or all, to a scene.
pub fn diagnose(scene: &Scene, versions: Versions, checks: &BTreeSet<Check>) -> Diagnosis {
    let versions = versions.or_read_from(scene);
    let (complete, assumed_pods) = scene.with_assumed_pods();
    let mesh = Mesh::of(&complete);
    let context = Context::new(&complete, scene, &mesh, versions);
    let wanted = RULES.iter().filter(|rule| checks.is_empty() || checks.contains(&rule.check));
    let mut findings: Vec<Finding> =
        wanted.flat_map(|rule| found_by(rule, &context, scene)).collect();
    sort(&mut findings);
    Diagnosis { findings, assumed_pods, versions }
}

/// Puts findings in order: the worst first, then by effect, code and object.
pub fn sort(findings: &mut [Finding]) {
    findings.sort_by(|one, other| {
        let worst = |finding: &Finding| (std::cmp::Reverse(finding.severity), finding.rule.effect);
        let order = (worst(one), one.rule.code).cmp(&(worst(other), other.rule.code));
        order.then_with(|| one.evidence[0].object.cmp(&other.evidence[0].object))
    });
}

fn found_by<'a>(
    rule: &'static Rule,
    context: &'a Context<'_>,
    scene: &'a Scene,
) -> impl Iterator<Item = Finding> + 'a {
    (rule.find)(context).into_iter().map(move |found| Finding {
        rule,
        severity: found.severity,
        title: found.title,
        evidence: found
            .evidence
            .into_iter()
            .map(|evidence| Evidence { origin: origin_of(scene, &evidence.object), ..evidence })
            .collect(),
        fix: found.fix,
        verify: found.verify,
    })
}

/// The rule with this code, however it is capitalised.
pub fn rule(code: &str) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.code.eq_ignore_ascii_case(code)).copied()
}

fn origin_of(scene: &Scene, object: &ObjectRef) -> Option<Origin> {
    let key = &object.key;
    match object.kind {
        "Rollout" => scene.rollouts.items.get(key).map(|seen| seen.origin.clone()),
        "VirtualService" => scene.routes.items.get(key).map(|seen| seen.origin.clone()),
        "DestinationRule" => scene.rules.items.get(key).map(|seen| seen.origin.clone()),
        "Service" => scene.services.items.get(key).map(|seen| seen.origin.clone()),
        "Node" => scene.nodes.items.get(key).map(|seen| seen.origin.clone()),
        "Namespace" => scene.namespaces.items.get(key).map(|seen| seen.origin.clone()),
        "ReplicaSet" => scene.replica_sets.items.get(key).map(|seen| seen.origin.clone()),
        "PodDisruptionBudget" => scene.budgets.items.get(key).map(|seen| seen.origin.clone()),
        "AnalysisTemplate" => {
            scene.analysis_templates.items.get(key).map(|seen| seen.origin.clone())
        }
        "ClusterAnalysisTemplate" => {
            scene.cluster_analysis_templates.items.get(key).map(|seen| seen.origin.clone())
        }
        "PrometheusRule" => scene.alerts.items.get(key).map(|seen| seen.origin.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
