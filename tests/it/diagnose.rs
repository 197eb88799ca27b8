//! `diagnose` and `explain` from outside: output, exit codes, documents for programs.

use std::fs;
use std::path::Path;

use kubectl_zone_rollout::render::findings;
use serde_json::Value;
use zone_rollout_core::diagnose::RULES;

use crate::support::{program, shown};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

fn diagnose(arguments: &[&str]) -> assert_cmd::Command {
    let mut command = program(Path::new(ROOT));
    command.current_dir(ROOT).arg("diagnose").args(arguments);
    command
}

fn output(arguments: &[&str]) -> (i32, String) {
    let output = diagnose(arguments).output().expect("the program runs");
    let text = String::from_utf8(output.stdout).expect("output is UTF-8");
    (output.status.code().expect("no signal"), text)
}

/// Three Rollouts, one DestinationRule, distribute and failover, as guides show it.
#[test]
fn all_faults_of_the_guide_in_one_report() {
    insta::assert_snapshot!(shown(&mut diagnose(&["-f", "tests/guide"])));
}

#[test]
fn the_points_of_the_guide_by_name() {
    insta::assert_snapshot!(shown(&mut diagnose(&["checklist", "traffic", "-f", "tests/guide"])));
}

#[test]
fn the_exit_code_follows_fail_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("o.yaml");
    let rule = "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {name: a}\n\
                spec: {host: a, trafficPolicy: {outlierDetection: {consecutiveErrors: 3}}}\n";
    fs::write(&path, rule).unwrap();
    let path = path.to_str().unwrap();
    assert_eq!(output(&["-f", path]).0, 0, "only warnings");
    assert_eq!(output(&["-f", path, "--fail-on", "warning"]).0, 3);
    assert_eq!(output(&["budgets", "-f", path, "--fail-on", "warning"]).0, 0);
    assert_eq!(output(&["-f", "tests/guide", "--fail-on", "critical"]).0, 3);
    assert_eq!(output(&["-f", "no/such/file"]).0, 2);
}

#[test]
fn standard_input_is_read_and_what_is_broken_is_told_with_its_line() {
    let text = "kind: Service\napiVersion: v1\nmetadata: {name: a}\n---\nspec: {{ .Values.spec }}\n---\n\
                apiVersion: v1\nkind: Service\nmetadata: {name: b, labels: 7}\n";
    let output = diagnose(&["-f", "-"]).write_stdin(text).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(told.contains("-:5: ") && told.contains("-:7: "), "{told}");
}

fn schema(name: &str) -> Value {
    let path = Path::new(ROOT).join("docs/schemas").join(name);
    let text = fs::read_to_string(path).expect("the schema is there");
    serde_json::from_str(&text).expect("it is JSON")
}

#[test]
fn the_json_document_is_as_its_schema_says() {
    let (code, text) = output(&["-f", "tests/guide", "-o", "json"]);
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((code, document["exitCode"].as_i64()), (3, Some(3)));
    let validator = jsonschema::validator_for(&schema("diagnosis.json")).unwrap();
    let errors: Vec<String> =
        validator.iter_errors(&document).map(|e| format!("{} {e}", e.instance_path())).collect();
    assert_eq!(errors, Vec::<String>::new());
}

#[test]
fn sarif_names_a_rule_a_file_and_a_line_for_each_result() {
    let (code, text) = output(&["-f", "tests/guide", "-o", "sarif"]);
    let log: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((code, log["version"].as_str()), (3, Some("2.1.0")));
    let run = &log["runs"][0];
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    let results = run["results"].as_array().unwrap();
    assert!(!results.is_empty());
    for result in results {
        let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
        assert_eq!(rules[index]["id"], result["ruleId"]);
        assert!(["error", "warning", "note"].contains(&result["level"].as_str().unwrap()));
        let place = &result["locations"][0]["physicalLocation"];
        let uri = place["artifactLocation"]["uri"].as_str().unwrap();
        let line = usize::try_from(place["region"]["startLine"].as_u64().unwrap()).unwrap();
        let text = fs::read_to_string(Path::new(ROOT).join(uri)).unwrap();
        assert!(text.lines().nth(line - 1).unwrap().starts_with("apiVersion:"), "{uri}:{line}");
    }
}

#[test]
fn a_code_is_explained_without_a_cluster() {
    let mut explain = program(Path::new(ROOT));
    insta::assert_snapshot!(shown(explain.args(["explain", "zri021"])));
    let unknown = program(Path::new(ROOT)).args(["explain", "ZRI999"]).output().unwrap();
    assert_eq!(unknown.status.code(), Some(2));
    let all = program(Path::new(ROOT)).arg("explain").output().unwrap();
    assert_eq!(String::from_utf8(all.stdout).unwrap().lines().count(), RULES.len());
}

/// The page is generated: `UPDATE_DOCS=1 cargo test --test it findings_page` writes it anew.
#[test]
fn findings_page() {
    let path = Path::new(ROOT).join("docs/findings.md");
    let page = findings::page(RULES);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, &page).unwrap();
    }
    assert!(
        fs::read_to_string(&path).is_ok_and(|written| written == page),
        "write it anew: UPDATE_DOCS=1"
    );
}

/// A namespace with two Rollouts and nothing else: what is missing is told, once for each kind, with few
/// requests.
#[test]
fn a_namespace_is_read_with_the_same_rules() {
    let (bench, invocation) = zone_stub::cases()[0].set_up_now();
    let mut command = program(bench.home());
    command.arg("diagnose").args(&invocation.flags).env("PATH", "/usr/bin:/bin");
    command.envs(invocation.environment.iter().map(|(name, value)| (name, value)));
    insta::assert_snapshot!(shown(&mut command));
    assert_eq!(bench.observed(Some(0)).requests, 16);
}
