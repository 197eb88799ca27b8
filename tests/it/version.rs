//! `version`: what is printed with and without a cluster.

use assert_cmd::Command;
use zone_stub::cases;

use crate::support::{self, program};

/// What is shown, whatever the version of this program is.
fn shown(command: &mut Command) -> String {
    support::shown(command).replace(concat!("v", env!("CARGO_PKG_VERSION")), "CLIENT")
}

#[test]
fn the_client_needs_no_cluster() {
    let home = tempfile::tempdir().unwrap();
    insta::assert_snapshot!(shown(program(home.path()).args(["version", "--client"])), @r"
    exit 0
    Client Version: CLIENT
    ---
    ");
    insta::assert_snapshot!(shown(program(home.path()).args(["version", "--client", "-o", "json"])), @r#"
    exit 0
    {
      "apiVersion": "zone-rollout.io/v1alpha1",
      "kind": "Versions",
      "clientVersion": {
        "gitVersion": "CLIENT"
      }
    }
    ---
    "#);
}

#[test]
fn without_a_cluster_the_client_is_printed_and_the_rest_is_an_error() {
    let home = tempfile::tempdir().unwrap();
    let mut command = program(home.path());
    insta::assert_snapshot!(shown(command.args(["version", "--server", "http://127.0.0.1:1"])), @r"
    exit 1
    Client Version: CLIENT
    ---
    error: cannot ask for the version at http://127.0.0.1:1
      caused by: Connection refused (os error 111)

    hint: see whether the server answers at all: kubectl cluster-info
    ");
}

#[test]
fn what_is_found_and_what_is_not() {
    let (bench, invocation) = cases()[0].set_up_now();
    let version = |output: &str| {
        let mut command = program(bench.home());
        command.envs(invocation.environment.iter().map(|(name, value)| (name, value)));
        shown(command.args(["version", "-o", output]))
    };
    insta::assert_snapshot!(version("text"), @r"
    exit 0
    Client Version: CLIENT
    Server Version: v1.34.1
    Argo Rollouts Version: not found (no Deployment has label app.kubernetes.io/component=rollouts-controller)
    Istio Version: 1.31.0 (istio-system/istiod)
    ---
    ");
    insta::assert_snapshot!(version("yaml"), @r#"
    exit 0
    apiVersion: zone-rollout.io/v1alpha1
    kind: Versions
    clientVersion:
      gitVersion: CLIENT
    serverVersion:
      gitVersion: v1.34.1
    argoRollouts:
      result: NotFound
      text: >-
        not found (no Deployment has label
        app.kubernetes.io/component=rollouts-controller)
      deployments: []
    istio:
      result: Found
      text: 1.31.0 (istio-system/istiod)
      deployments:
      - namespace: istio-system
        name: istiod
        version: "1.31.0"
    ---
    "#);
}
