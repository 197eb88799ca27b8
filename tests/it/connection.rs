//! How the program connects, case by case, and what it says when it cannot. Nothing it prints, at any
//! verbosity, contains a credential.

use std::fmt::Write;
use std::fs;

use zone_stub::{Bench, Invocation, SECRET, cases};

use crate::support::{program, shown};

/// Runs `status` as a case wants it; exit code, standard output and standard error.
fn status(bench: &Bench, invocation: &Invocation, more: &[&str]) -> (Option<i32>, String) {
    let mut command = program(bench.home());
    command.arg("status").args(&invocation.flags).args(more).env("PATH", "/usr/bin:/bin");
    command.envs(invocation.environment.iter().map(|(name, value)| (name, value)));
    let output = command.output().expect("the program runs");
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(text).expect("output is UTF-8"))
}

/// What a reading of a namespace asks for, all at the same time: any of them can be the first to fail.
const KINDS: [&str; 7] =
    ["rollouts", "replicasets", "pods", "nodes", "services", "virtualservices", "destinationrules"];

/// What differs from run to run is left out.
fn normal(text: &str, bench: &Bench) -> String {
    let address = bench.url();
    let address = address.trim_start_matches("https://").trim_start_matches("http://");
    let text = KINDS.iter().fold(text.to_owned(), |text, kind| {
        text.replace(&format!("cannot list {kind}"), "cannot list KIND")
    });
    text.replace(&bench.home().display().to_string(), "HOME")
        .replace(&bench.named_url(), "https://NAME")
        .replace(address, "ADDRESS")
}

#[test]
fn every_way_to_connect() {
    let mut told = String::new();
    for case in cases() {
        let (name, (bench, invocation)) = (case.name, case.set_up_now());
        let (code, text) = status(&bench, &invocation, &[]);
        let observed = bench.observed(code);
        assert!(!text.contains(SECRET), "{name}: {text}");
        writeln!(told, "{name}\n    {observed}").unwrap();
        if code != Some(0) {
            for line in normal(&text, &bench).lines() {
                writeln!(told, "    | {line}").unwrap();
            }
        }
    }
    insta::assert_snapshot!(told);
}

#[test]
fn no_verbosity_shows_a_credential() {
    for case in cases() {
        let (name, (bench, invocation)) = (case.name, case.set_up_now());
        let (_, text) = status(&bench, &invocation, &["-v", "10"]);
        assert!(!text.contains(SECRET), "{name}: {text}");
    }
}

#[test]
fn requests_are_shown_if_they_are_asked_for() {
    let (bench, invocation) = cases()[0].set_up_now();
    let (_, text) = status(&bench, &invocation, &["-v=6"]);
    let wanted = "GET /apis/argoproj.io/v1alpha1/namespaces/default/rollouts?&limit=500 200 OK in ";
    assert!(text.contains(wanted), "{text}");
}

#[test]
fn requests_name_this_tool_and_ask_for_compression() {
    let (bench, invocation) = cases()[0].set_up_now();
    let (code, _) = status(&bench, &invocation, &[]);
    let observed = bench.observed(code);
    let agent = format!("kubectl-zone_rollout/{} (linux/", env!("CARGO_PKG_VERSION"));
    assert!(observed.agent.starts_with(&agent), "{}", observed.agent);
    assert_eq!(observed.encoding, "gzip");
    assert_eq!(observed.requests, 7);
    let (bench, invocation) = cases()[0].set_up_now();
    let (code, _) = status(&bench, &invocation, &["--disable-compression"]);
    assert_eq!(bench.observed(code).encoding, "");
}

#[test]
fn what_is_tried_again_is_said() {
    let busy = cases().into_iter().find(|case| case.name == "the server answers 503").unwrap();
    let (bench, invocation) = busy.set_up_now();
    let (code, text) = status(&bench, &invocation, &[]);
    assert_eq!(code, Some(1));
    assert_eq!(text.matches("trying again").count(), 3, "{text}");
}

#[test]
fn no_kubeconfig() {
    let home = tempfile::tempdir().unwrap();
    insta::assert_snapshot!(shown(program(home.path()).arg("status")), @r"
    exit 1
    ---
    error: there is no kubeconfig, and this is not a pod
      caused by: neither $KUBECONFIG nor ~/.kube/config names a file that exists

    hint: see which one kubectl uses: kubectl config view
    ");
}

#[test]
fn a_broken_kubeconfig_shows_its_place_and_not_its_secrets() {
    let (bench, invocation) = cases()[0].set_up_now();
    let path = bench.path("config");
    let good = fs::read_to_string(&path).unwrap();
    for broken in
        [good.clone() + "  broken: [", good.replace("\"name\": \"main\"", "\"name\": [7]")]
    {
        fs::write(&path, broken).unwrap();
        for more in [&[][..], &["--kubeconfig", path.to_str().unwrap()]] {
            let (code, text) = status(&bench, &invocation, more);
            assert_eq!(code, Some(1), "{text}");
            assert!(text.contains("it is not a kubeconfig (line "), "{text}");
            assert!(!text.contains(SECRET), "{text}");
        }
    }
}

#[test]
fn an_unknown_context_lists_the_known_ones() {
    let (bench, invocation) = cases()[0].set_up_now();
    let (code, text) = status(&bench, &invocation, &["--context", "production"]);
    assert_eq!(code, Some(1));
    insta::assert_snapshot!(text, @r"
    error: the kubeconfig cannot be used
      caused by: it has no context `production`

    hint: choose one of main: --context NAME
    ");
}
