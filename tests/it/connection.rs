//! What is wrong with a kubeconfig, said without showing what is in it.

use std::fs;

use crate::support::{program, shown};

const SECRET: &str = "SUPERSECRETTOKEN";

fn kubeconfig(server: &str) -> String {
    format!(
        r#"apiVersion: v1
kind: Config
current-context: lab
contexts:
- name: lab
  context: {{cluster: lab, user: me}}
clusters:
- name: lab
  cluster: {{server: "{server}"}}
users:
- name: me
  user:
    token: {SECRET}
"#
    )
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
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("config");
    for broken in [
        kubeconfig("https://127.0.0.1:1") + "  broken: [",
        kubeconfig("https://127.0.0.1:1").replace("user: me", "user: [me]"),
    ] {
        fs::write(&path, broken).unwrap();
        let text = shown(program(home.path()).arg("status").arg("--kubeconfig").arg(&path));
        assert!(text.starts_with("exit 1\n"), "{text}");
        assert!(text.contains("it is not a kubeconfig (line "), "{text}");
        assert!(!text.contains(SECRET), "{text}");
    }
}

#[test]
fn an_unknown_context_lists_the_known_ones() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("config");
    fs::write(&path, kubeconfig("https://127.0.0.1:1")).unwrap();
    let mut command = program(home.path());
    command.args(["status", "--context", "production"]).env("KUBECONFIG", &path);
    insta::assert_snapshot!(shown(&mut command), @r"
    exit 1
    ---
    error: the kubeconfig cannot be used
      caused by: it has no context `production`

    hint: choose one of lab: --context NAME
    ");
}

#[test]
fn a_missing_file_in_the_list_is_skipped() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("config");
    fs::write(&path, kubeconfig("https://127.0.0.1:1")).unwrap();
    let list = format!("{}:{}", home.path().join("missing").display(), path.display());
    let mut command = program(home.path());
    command.args(["status", "--request-timeout", "2s"]).env("KUBECONFIG", list);
    let text = shown(&mut command);
    assert!(text.contains("at https://127.0.0.1:1"), "{text}");
    assert!(text.contains("Connection refused"), "{text}");
    assert!(!text.contains(SECRET), "{text}");
}

#[test]
fn a_credential_plugin_that_fails_shows_no_token() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("config");
    let exec = format!(
        "    exec:\n      apiVersion: client.authentication.k8s.io/v1\n      command: sh\n      \
         interactiveMode: Never\n      args: [\"-c\", \"echo {SECRET}; echo no login >&2; exit 3\"]\n"
    );
    let config =
        kubeconfig("https://127.0.0.1:1").replace(&format!("    token: {SECRET}\n"), &exec);
    fs::write(&path, config).unwrap();
    let mut command = program(home.path());
    command.arg("status").env("KUBECONFIG", &path).env("PATH", "/usr/bin:/bin");
    let text = shown(&mut command);
    assert!(text.starts_with("exit 1\n"), "{text}");
    assert!(text.contains("the credential plugin failed (exit status: 3): no login"), "{text}");
    assert!(!text.contains(SECRET), "{text}");
}
