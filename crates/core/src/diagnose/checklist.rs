//! The points to check before a first release by zones, and the problems that people look for, by the
//! names they have in the guides to zone-aware Rollouts. The rules answer each of them.

use super::finding::{Finding, Severity};
use crate::scene::Scene;

/// One point of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Point {
    /// What is to be so.
    pub text: &'static str,
    /// Whether it is.
    pub verdict: Verdict,
}

/// Whether a point of the list holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It does.
    Holds,
    /// It does not; these findings say why, by code.
    Fails(Vec<&'static str>),
    /// The objects that would tell are not there.
    Unknown(&'static str),
}

type Known = fn(&Scene) -> Option<&'static str>;

/// Each point with the rules that speak against it, and what has to be there to judge it.
const POINTS: [(&str, &[&str], Known); 8] = [
    ("All zone Nodes are ready", &["ZRI041", "ZRI042", "ZRK011"], |scene| {
        scene.nodes.items.is_empty().then_some("no nodes are given")
    }),
    (
        "VirtualService includes all subsets",
        &["ZRI002", "ZRI003", "ZRI043", "ZRI047", "ZRI048", "ZRA001", "ZRA002", "ZRA003"],
        |scene| scene.routes.items.is_empty().then_some("no VirtualService is given"),
    ),
    (
        "DestinationRule locality settings verified",
        &[
            "ZRI005", "ZRI010", "ZRI011", "ZRI012", "ZRI013", "ZRI014", "ZRI015", "ZRI020",
            "ZRI030", "ZRI034",
        ],
        |scene| scene.rules.items.is_empty().then_some("no DestinationRule is given"),
    ),
    ("Outlier detection enabled", &["ZRI020", "ZRI021", "ZRI022", "ZRI023", "ZRI024"], |scene| {
        let mut policies =
            scene.rules.iter().filter_map(|(_, rule)| rule.spec.traffic_policy.as_ref());
        policies
            .all(|policy| policy.outlier_detection.is_none())
            .then_some("no DestinationRule has outlierDetection")
    }),
    ("Each Rollout manages unique subsets", &["ZRI001", "ZRI033", "ZRI036"], |scene| {
        scene.rollouts.items.is_empty().then_some("no Rollout is given")
    }),
    ("Zone-specific Services defined", &["ZRA004", "ZRA006", "ZRI007"], |scene| {
        scene.services.items.is_empty().then_some("no Service is given")
    }),
    (
        "Prometheus metrics collection verified",
        &["ZRM001", "ZRM002", "ZRM003", "ZRM004", "ZRM005", "ZRM006"],
        |scene| {
            let none = scene.analysis_templates.items.is_empty()
                && scene.cluster_analysis_templates.items.is_empty();
            none.then_some("no AnalysisTemplate is given")
        },
    ),
    ("Alert rules configured", &["ZRM007"], |scene| {
        scene.alerts.items.is_empty().then_some("no PrometheusRule is given")
    }),
];

/// The list, as these findings answer it. Hints count for nothing.
pub fn checklist(scene: &Scene, findings: &[Finding]) -> Vec<Point> {
    let point = |(text, codes, unknown): &(&'static str, &[&str], Known)| {
        let against = against(findings, codes);
        let not_ready =
            scene.nodes.iter().any(|(_, node)| node.zone().is_some() && !node.is_ready());
        let verdict = match unknown(scene) {
            _ if !against.is_empty() => Verdict::Fails(against),
            Some(why) => Verdict::Unknown(why),
            None if codes.contains(&"ZRI042") && not_ready => Verdict::Fails(Vec::new()),
            None => Verdict::Holds,
        };
        Point { text, verdict }
    };
    POINTS.iter().map(point).collect()
}

/// A problem as people see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// What they see.
    pub text: &'static str,
    /// The findings that would make it so, by code.
    pub causes: Vec<&'static str>,
}

/// Each problem with the rules that know a cause of it.
const PROBLEMS: [(&str, &[&str]); 4] = [
    (
        "VirtualService conflict error",
        &["ZRI001", "ZRI003", "ZRI004", "ZRI047", "ZRI051", "ZRA016", "ZRA017"],
    ),
    (
        "Cross-zone traffic occurring",
        &[
            "ZRI005", "ZRI011", "ZRI013", "ZRI020", "ZRI040", "ZRI041", "ZRI042", "ZRI043",
            "ZRI044", "ZRI046", "ZRI048", "ZRK010", "ZRK013",
        ],
    ),
    (
        "Failover not working",
        &[
            "ZRI005", "ZRI010", "ZRI011", "ZRI012", "ZRI014", "ZRI015", "ZRI020", "ZRI021",
            "ZRI022", "ZRI023", "ZRI024", "ZRI025", "ZRI030", "ZRI034",
        ],
    ),
    (
        "Rollout stuck",
        &[
            "ZRA001", "ZRA002", "ZRA003", "ZRA004", "ZRA006", "ZRA020", "ZRI003", "ZRI010",
            "ZRM001", "ZRM002", "ZRM003", "ZRM004", "ZRM005", "ZRM006", "ZRK011",
        ],
    ),
];

/// The problems, each with its causes among these findings.
pub fn problems(findings: &[Finding]) -> Vec<Problem> {
    let problem = |(text, codes): &(&'static str, &[&str])| Problem {
        text,
        causes: against(findings, codes),
    };
    PROBLEMS.iter().map(problem).collect()
}

/// Codes of the findings that are more than hints, each once.
fn against(findings: &[Finding], codes: &[&str]) -> Vec<&'static str> {
    let against = findings
        .iter()
        .filter(|finding| finding.severity > Severity::Info && codes.contains(&finding.rule.code));
    let mut against: Vec<&'static str> = against.map(|finding| finding.rule.code).collect();
    against.sort_unstable();
    against.dedup();
    against
}
