//! Set-ups from public reports: what has to be found in them, and that their healthy twins are silent.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use kubectl_zone_rollout::files;
use zone_rollout_core::diagnose::{Finding, Severity, Versions, diagnose};
use zone_rollout_core::time::Moment;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus");

fn cases() -> Vec<PathBuf> {
    let entries = fs::read_dir(FOLDER).expect("the folder is there");
    let entries = entries.map(|entry| entry.expect("an entry can be read").path());
    let mut cases: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
    cases.sort();
    cases
}

/// The lines of one side of a case.
fn side(case: &Path, mark: char) -> String {
    let text = fs::read_to_string(case.join("objects.diff")).expect("a case has objects");
    let lines = text.lines().filter(|line| line.starts_with([' ', mark]));
    lines.flat_map(|line| [&line[1..], "\n"]).collect()
}

fn found(objects: &str) -> Vec<Finding> {
    let folder = tempfile::tempdir().expect("there is room");
    let path = folder.path().join("objects.yaml");
    fs::write(&path, objects).expect("there is room");
    let documents = files::read(&[path.display().to_string()], false).expect("the file is there");
    let now = Moment { wall: Timestamp::UNIX_EPOCH, mono: std::time::Duration::ZERO };
    let (scene, unreadable) = documents.into_scene("default", now);
    assert_eq!(unreadable, []);
    diagnose(&scene, Versions::default(), &BTreeSet::new()).findings
}

fn fits(finding: &Finding, expected: &str) -> bool {
    let mut parts = expected.splitn(3, ' ');
    parts.next() == Some(finding.severity.name())
        && parts.next() == Some(finding.rule.code)
        && parts.next().is_some_and(|text| finding.title.contains(text))
}

fn alarms(findings: &[Finding], expected: &[&str]) -> Vec<String> {
    let unexpected = findings.iter().filter(|finding| {
        finding.severity >= Severity::Error && !expected.iter().any(|line| fits(finding, line))
    });
    unexpected.map(|finding| format!("{} {}", finding.rule.code, finding.title)).collect()
}

#[test]
fn every_report_is_recognised_and_nothing_else() {
    let mut table = String::new();
    let (mut missed, mut false_alarms) = (0, 0);
    for case in cases() {
        let expected = fs::read_to_string(case.join("expected")).unwrap();
        let expected: Vec<&str> = expected.lines().collect();
        let findings = found(&side(&case, '-'));
        let name = case.file_name().unwrap().to_string_lossy();
        writeln!(table, "{name}").unwrap();
        for line in &expected {
            let finding = findings.iter().find(|finding| fits(finding, line));
            let told = finding.map_or("MISSED".to_owned(), |finding| finding.title.clone());
            missed += usize::from(finding.is_none());
            writeln!(table, "    {line}: {told}").unwrap();
        }
        for (side_name, findings, expected) in [
            ("reported", findings, expected.as_slice()),
            ("healthy twin", found(&side(&case, '+')), &[]),
        ] {
            for alarm in alarms(&findings, expected) {
                false_alarms += 1;
                writeln!(table, "    FALSE ALARM ({side_name}): {alarm}").unwrap();
            }
        }
    }
    writeln!(table, "{} set-ups, {missed} missed, {false_alarms} false alarms", cases().len())
        .unwrap();
    assert_eq!((missed, false_alarms), (0, 0), "{table}");
    insta::assert_snapshot!(table);
}

/// The twin of a faulty set-up must differ in what is found, not in nothing but the verdict.
#[test]
fn a_twin_has_none_of_the_expected_findings() {
    for case in cases() {
        let expected = fs::read_to_string(case.join("expected")).unwrap();
        let codes: Vec<&str> = expected.lines().filter_map(|line| line.split(' ').nth(1)).collect();
        let left: Vec<Finding> = found(&side(&case, '+'))
            .into_iter()
            .filter(|finding| codes.contains(&finding.rule.code))
            .collect();
        assert!(left.is_empty(), "{}: {:?}", case.display(), left[0].title);
    }
}
