//! Every rule against its own example: it finds the fault in one half and is silent about the other,
//! in which nothing else is wrong either. And nothing is wrong with the layouts of this project.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::*;
use crate::layout::{ring, zone_local};
use crate::scene::{Coverage, Found, Origin};
use crate::testing::{canary, now, running, spec};

fn scene(objects: Vec<Value>) -> Scene {
    let origin = Origin::File { path: Arc::from("f"), line: 1 };
    let found = objects.into_iter().map(|object| Found { object, origin: origin.clone() });
    let (scene, unreadable) = Scene::of_objects(found.collect(), "default", now());
    assert_eq!(unreadable, []);
    scene
}

fn documents(text: &str) -> Vec<Value> {
    let parts = text.split("\n---\n");
    parts
        .map(|part| serde_saphyr::from_str(part).unwrap_or_else(|e| panic!("{e}\n{part}")))
        .collect()
}

fn findings(objects: Vec<Value>) -> Vec<Finding> {
    diagnose(&scene(objects), Versions::default(), &BTreeSet::new()).findings
}

fn told(findings: &[Finding]) -> Vec<String> {
    findings.iter().map(|finding| format!("{} {}", finding.rule.code, finding.title)).collect()
}

fn examples() -> impl Iterator<Item = &'static Rule> {
    // Whoever reads files applies this one.
    RULES.iter().copied().filter(|rule| rule.code != UNREADABLE.code)
}

#[test]
fn each_rule_finds_its_example() {
    for rule in examples() {
        let found = findings(documents(&rule.failing_example()));
        let own: Vec<&Finding> = found.iter().filter(|f| f.rule.code == rule.code).collect();
        assert!(!own.is_empty(), "{} finds nothing, but {:?}", rule.code, told(&found));
        for finding in own {
            assert!(!finding.evidence.is_empty(), "{}", rule.code);
            assert!(!finding.fix.is_empty() && !finding.verify.is_empty(), "{}", rule.code);
            assert!(finding.evidence[0].origin.is_some(), "{}: {:?}", rule.code, finding.evidence);
        }
    }
}

#[test]
fn each_rule_is_silent_about_the_cure() {
    for rule in examples() {
        let found = findings(documents(&rule.passing_example()));
        let left: Vec<Finding> = found
            .into_iter()
            .filter(|f| f.rule.code == rule.code || f.severity >= Severity::Error)
            .collect();
        assert!(left.is_empty(), "{}: {:?}", rule.code, told(&left));
    }
}

#[test]
fn codes_are_in_order_and_never_twice() {
    let codes: Vec<&str> = RULES.iter().map(|rule| &rule.code[2..]).collect();
    let distinct: BTreeSet<&str> = codes.iter().copied().collect();
    assert_eq!(codes.len(), distinct.len());
    assert!(rule("zri001").is_some_and(|rule| rule.code == "ZRI001"));
}

/// Every way in which the layouts of this project are seen: as files, deployed, in mid-canary.
#[test]
fn generated_layouts_have_no_fault() {
    for (name, layout) in [("ring", ring as fn(&_) -> _), ("zone-local", zone_local)] {
        let mut mid_canary = running(layout(&spec()));
        canary(&mut mid_canary, "a", 20, 1);
        for (state, mut objects) in [
            ("files", layout(&spec())),
            ("running", running(layout(&spec()))),
            ("canary", mid_canary),
        ] {
            give_versions(&mut objects);
            // In mid-canary the zones do differ, and the test's zones do have one node each.
            let true_here = |finding: &Finding| match finding.rule.code {
                "ZRA012" => state == "canary",
                "ZRK012" => state != "files",
                _ => false,
            };
            let found = findings(objects).into_iter();
            let bad: Vec<Finding> = found
                .filter(|finding| finding.severity > Severity::Info && !true_here(finding))
                .collect();
            assert!(bad.is_empty(), "{name} {state}: {:?}", told(&bad));
        }
    }
}

/// Objects of tests carry no version; those of files do.
fn give_versions(objects: &mut [Value]) {
    for object in objects {
        let version = match object["kind"].as_str().unwrap_or_default() {
            "ReplicaSet" => "apps/v1",
            "Pod" | "Node" | "Service" => "v1",
            _ => continue,
        };
        object["apiVersion"] = version.into();
    }
}

#[test]
fn a_budget_counts_no_pods_only_if_all_workloads_were_read() {
    let rule = RULES.iter().find(|rule| rule.code == "ZRK005").unwrap();
    let mut scene = scene(documents(&rule.failing_example()));
    for seen in scene.rollouts.items.values_mut() {
        seen.origin = Origin::Live;
    }
    let empty = |scene: &Scene| {
        let all = diagnose(scene, Versions::default(), &BTreeSet::new()).findings;
        all.iter().any(|finding| finding.rule.code == rule.code)
    };
    scene.deployments.coverage = Coverage::Complete(now());
    for unread in [Coverage::NotGiven, Coverage::Forbidden] {
        scene.stateful_sets.coverage = unread;
        assert!(!empty(&scene));
    }
    scene.stateful_sets.coverage = Coverage::Complete(now());
    assert!(empty(&scene));
}
