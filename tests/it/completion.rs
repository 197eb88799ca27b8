//! Completion as kubectl asks for it: the same program under another name.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::pty::{OpenptFlags, openpt, ptsname, unlockpt};
use zone_stub::{Bench, Invocation, SECRET, cases};

use crate::support::{program, shown};

/// The program as kubectl asks it about these words.
fn asking(bench: &Bench, invocation: &Invocation, words: &[&str]) -> Command {
    let mut command = Command::new(program(bench.home()).get_program());
    command.arg0("/some/where/kubectl_complete-zone_rollout").args(words);
    command.env_clear().env("HOME", bench.home()).env("PATH", "/usr/bin:/bin");
    command.envs(invocation.environment.iter().map(|(name, value)| (name, value)));
    command
}

fn answered(command: &mut Command) -> String {
    let output = command.output().expect("the program runs");
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stderr.is_empty(), "it is silent");
    String::from_utf8(output.stdout).expect("output is UTF-8")
}

fn completed(bench: &Bench, invocation: &Invocation, words: &[&str]) -> String {
    answered(&mut asking(bench, invocation, words))
}

fn case(name: &str) -> (Bench, Invocation) {
    cases().into_iter().find(|case| case.name == name).expect("there is such a case").set_up_now()
}

#[test]
fn what_the_program_itself_knows() {
    let (bench, invocation) = case("a token");
    let completed = |words: &[&str]| completed(&bench, &invocation, words);
    insta::assert_snapshot!(completed(&[]), @r"
    status	Show the zones of a group, one row each
    plan	Show what `promote --sequential` would do, and when, without doing it
    promote	Bring a new version to the zones, one after another
    abort	Take zones in flight back to their stable version, and see that it took effect
    retry	Start zones again whose update was given up
    undo	Take zones back to the version before, one after another
    hold	Hold zones where they are (spec.paused) until they are released
    release	Release zones that this tool holds
    evacuate	Send the clients of a zone to the stable pods of another
    restore	Bring the clients of an evacuated zone back to it
    diagnose	Find what is wrong in files or in a namespace, name the cause, and say what to do
    explain	Explain a finding by its code
    manifests	Generate a layout that holds: Services, Rollouts, rules, routes; needs no cluster
    demo	Watch a release on a simulated cluster: nothing is installed, read or written
    version	Print the versions of this program, Kubernetes, Argo Rollouts and Istio
    completion	Explain how kubectl completes verbs, flags, groups and zones
    :4
    ");
    insta::assert_snapshot!(completed(&["promote", "--on"]), @r"
    --only	Only these zones
    --on-failure	What to do with a zone that failed
    :4
    ");
    insta::assert_snapshot!(completed(&["status", "-o", ""]), @r"
    table	A table
    wide	A table with whole images, nodes' zones and reasons
    json	One JSON document
    yaml	One YAML document
    name	The Rollouts' names
    :4
    ");
    insta::assert_snapshot!(completed(&["promote", "--soak", ""]), @":4");
}

#[test]
fn folders_are_completed_without_a_space() {
    let (bench, invocation) = case("a token");
    let home = bench.home().display().to_string();
    let completed = completed(&bench, &invocation, &["--kubeconfig", &home]);
    assert_eq!(completed, format!("{home}/\n:6\n"));
}

#[test]
fn what_the_kubeconfig_knows() {
    let (bench, invocation) = case("a token");
    insta::assert_snapshot!(completed(&bench, &invocation, &["--context", ""]), @r"
    main
    :4
    ");
    insta::assert_snapshot!(completed(&bench, &invocation, &["status", "--user", ""]), @r"
    kubeconfig
    :4
    ");
    assert_eq!(bench.observed(None).requests, 0, "no request is needed");
}

#[test]
fn what_the_cluster_knows() {
    let (bench, invocation) = case("a token");
    let completed = |words: &[&str]| completed(&bench, &invocation, words);
    insta::assert_snapshot!(completed(&["status", "-n", ""]), @r"
    default
    shop
    :4
    ");
    insta::assert_snapshot!(completed(&["status", ""]), @r"
    test	zones a, b
    test/a	Rollout test-a
    test/b	Rollout test-b
    :4
    ");
    insta::assert_snapshot!(completed(&["abort", "test/a", "test/b"]), @r"
    test/b	Rollout test-b
    :4
    ");
    // A layout is for zones that may not be there yet.
    assert_eq!(completed(&["manifests", "shop", "--order", ""]), ":4\n");
    insta::assert_snapshot!(completed(&["promote", "--order", "b,"]), @r"
    b,a	a
    b,b	b
    :4
    ");
    insta::assert_snapshot!(completed(&["status", "--rollouts", ""]), @r"
    test-a	group test
    test-b	group test
    :4
    ");
}

#[test]
fn flags_that_were_typed_lead_to_the_cluster() {
    let (bench, invocation) = case("a token");
    let elsewhere = bench.path("elsewhere");
    fs::rename(bench.path("config"), &elsewhere).unwrap();
    let elsewhere = elsewhere.to_str().unwrap();
    // The rest of the line need not make sense, or not yet.
    for rest in
        [&["-l", "app=test", ""][..], &["--hold", ""], &["--unknown", ""], &["--rollouts", ""]]
    {
        let words = [&["promote", "--kubeconfig", elsewhere], rest].concat();
        assert!(completed(&bench, &invocation, &words).starts_with("test"), "{rest:?}");
    }
}

#[test]
fn what_fails_is_silent_and_quick() {
    for case in cases() {
        let (bench, invocation) = case.set_up_now();
        let begun = Instant::now();
        let text = completed(&bench, &invocation, &["status", ""]);
        assert!(begun.elapsed() < Duration::from_secs(5), "{}: {:?}", case.name, begun.elapsed());
        assert!(text.ends_with(":4\n") && !text.contains(SECRET), "{}: {text}", case.name);
    }
}

#[test]
fn a_plugin_that_needs_a_person_is_not_run() {
    let (bench, invocation) = case("a credential plugin that needs a terminal, without one");
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    unlockpt(&terminal).unwrap();
    let shell = ptsname(&terminal, Vec::new()).unwrap().into_string().unwrap();
    let mut command = asking(&bench, &invocation, &["status", ""]);
    command.stdin(File::open(shell).unwrap());
    answered(&mut command);
    assert_eq!(bench.observed(None).plugin_runs, 0);
}

/// What `completion` says with these files in the only folder of `PATH`.
fn explained(folder: &Path) -> String {
    let mut command = program(folder);
    let text = shown(command.arg("completion").env("PATH", folder));
    text.replace(&folder.display().to_string(), "BIN")
}

#[test]
fn the_verb_explains_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    insta::assert_snapshot!(explained(folder.path()), @r"
    exit 0
    kubectl completes for plugins that it finds, and no folder in $PATH has kubectl-zone_rollout.
    ---
    ");
    fs::write(folder.path().join("kubectl-zone_rollout"), "").unwrap();
    insta::assert_snapshot!(explained(folder.path()), @r#"
    exit 0
    kubectl completes for a plugin by running another program. For this one it is the same program under the name
    kubectl_complete-zone_rollout, which neither krew nor cargo makes. This makes it:

      ln -s "kubectl-zone_rollout" "BIN/kubectl_complete-zone_rollout"

    Verbs, flags, contexts, namespaces, groups and zones are completed then,
    in shells where kubectl's own completion is on: kubectl completion --help
    ---
    "#);
    fs::write(folder.path().join("kubectl_complete-zone_rollout"), "").unwrap();
    insta::assert_snapshot!(explained(folder.path()), @r"
    exit 0
    kubectl completes for this plugin by running BIN/kubectl_complete-zone_rollout.
    Verbs, flags, contexts, namespaces, groups and zones are completed
    in shells where kubectl's own completion is on: kubectl completion --help
    ---
    ");
}
