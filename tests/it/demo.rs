//! The demo: the same output every time, and nothing outside the process.

use std::fs;
use std::path::Path;
use std::process::Command;

const README: &str = include_str!("../../README.md");

/// What a demo shows, both outputs as a terminal would, as fast as it can.
fn shown(home: &Path, arguments: &str) -> String {
    let program = assert_cmd::cargo::cargo_bin("kubectl-zone_rollout");
    let output = Command::new("/bin/sh")
        .args(["-c", &format!("\"$0\" demo {arguments} 2>&1"), &program.to_string_lossy()])
        .env_clear()
        .env("HOME", home)
        .current_dir(home)
        .output()
        .expect("a shell");
    let text = String::from_utf8(output.stdout).expect("output is UTF-8");
    format!("exit {}\n{text}", output.status.code().expect("no signal"))
}

/// A home in which a kubeconfig that is read would be an error.
fn home() -> tempfile::TempDir {
    let home = tempfile::tempdir().expect("a directory");
    fs::create_dir(home.path().join(".kube")).expect("it is new");
    fs::write(home.path().join(".kube/config"), "not: [yaml").expect("it is new");
    home
}

#[test]
fn each_scenario_shows_the_same_every_time() {
    for scenario in
        ["healthy", "bad-release", "zone-outage", "stable-short", "self-advancing", "shared-rule"]
    {
        let home = home();
        let text = shown(home.path(), &format!("{scenario} --speed 100000"));
        insta::assert_snapshot!(scenario, text);
        let left: Vec<_> = fs::read_dir(home.path()).unwrap().collect();
        assert_eq!(left.len(), 1, "{scenario} left something behind");
    }
}

#[test]
fn the_number_of_zones_is_free() {
    let home = home();
    let text = shown(home.path(), "--zones 5 --speed 100000");
    assert!(text.contains("done: zones a, b, c, d, e on myapp:v2, verified"), "{text}");
    assert!(shown(home.path(), "--zones 1").starts_with("exit 2\n"));
}

#[test]
fn the_readme_shows_what_the_demo_shows() {
    let after = README.split("$ make demo\n```\n\n```text\n").nth(1).expect("there is a demo");
    let block = after.split("```").next().unwrap();
    let text =
        shown(home().path(), "--speed 100000").replace("here is 100000 there", "here is 200 there");
    assert_eq!(text.strip_prefix("exit 0\n").unwrap(), block);
}
