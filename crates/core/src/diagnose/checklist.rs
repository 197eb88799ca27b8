//! The points to check before a first release by zones, each answered by the rules.

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
    ("all nodes of the zones are ready", &["ZRI041", "ZRI042", "ZRK011"], |scene| {
        scene.nodes.items.is_empty().then_some("no nodes are given")
    }),
    (
        "the VirtualService has all subsets",
        &["ZRI002", "ZRI003", "ZRI043", "ZRI047", "ZRI048", "ZRA001", "ZRA002", "ZRA003"],
        |scene| scene.routes.items.is_empty().then_some("no VirtualService is given"),
    ),
    (
        "the DestinationRules' locality settings work",
        &[
            "ZRI005", "ZRI010", "ZRI011", "ZRI012", "ZRI013", "ZRI014", "ZRI015", "ZRI020",
            "ZRI030", "ZRI034",
        ],
        |scene| scene.rules.items.is_empty().then_some("no DestinationRule is given"),
    ),
    (
        "outlier detection is on, and ejects enough",
        &["ZRI020", "ZRI021", "ZRI022", "ZRI023", "ZRI024"],
        |scene| {
            let mut policies =
                scene.rules.iter().filter_map(|(_, rule)| rule.spec.traffic_policy.as_ref());
            policies
                .all(|policy| policy.outlier_detection.is_none())
                .then_some("no DestinationRule has outlierDetection")
        },
    ),
    (
        "each Rollout has subsets and a DestinationRule of its own",
        &["ZRI001", "ZRI033", "ZRI036"],
        |scene| scene.rollouts.items.is_empty().then_some("no Rollout is given"),
    ),
    ("the Services are there", &["ZRA004", "ZRA006", "ZRI007"], |scene| {
        scene.services.items.is_empty().then_some("no Service is given")
    }),
    (
        "the analysis can measure",
        &["ZRM001", "ZRM002", "ZRM003", "ZRM004", "ZRM005", "ZRM006"],
        |scene| {
            let none = scene.analysis_templates.items.is_empty()
                && scene.cluster_analysis_templates.items.is_empty();
            none.then_some("no AnalysisTemplate is given")
        },
    ),
    ("the alerts can fire", &["ZRM007"], |scene| {
        scene.alerts.items.is_empty().then_some("no PrometheusRule is given")
    }),
];

/// The list, as these findings answer it. Hints count for nothing.
pub fn checklist(scene: &Scene, findings: &[Finding]) -> Vec<Point> {
    let point = |(text, codes, unknown): &(&'static str, &[&str], Known)| {
        let against = findings.iter().filter(|finding| {
            finding.severity > Severity::Info && codes.contains(&finding.rule.code)
        });
        let mut against: Vec<&'static str> = against.map(|finding| finding.rule.code).collect();
        against.sort_unstable();
        against.dedup();
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
