//! Generated layouts: what is printed, what is written, and what is refused.

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use serde_json::Value;

use crate::support::{program, shown};

const ZONES: [&str; 3] = [
    "us-east-1a,us-east-1b",
    "us-east-1a,us-east-1b,us-east-1c",
    "us-east-1a,us-east-1b,us-east-1c,us-east-1d,us-east-1e",
];
/// Everything that can be added.
const ALL: [&str; 4] = ["--prometheus", "http://prometheus.monitoring:9090", "--gitops", "argocd"];

/// `manifests` for two zones, with a kubeconfig that would be an error if it was read.
fn manifests(home: &Path) -> Command {
    fs::create_dir_all(home.join(".kube")).expect("a folder");
    fs::write(home.join(".kube/config"), "not: [yaml").expect("a file");
    let mut command = program(home);
    command.current_dir(home).args(["manifests", "shop", "--image", "shop:v1", "--zones"]);
    command
}

/// The documents of a stream.
fn documents(stream: &[u8]) -> Vec<Value> {
    let stream = std::str::from_utf8(stream).expect("output is UTF-8");
    let documents = stream.split("---\n").skip(1);
    documents.map(|text| serde_saphyr::from_str(text).expect("YAML")).collect()
}

#[test]
fn each_layout_in_two_three_and_five_zones() {
    let home = tempfile::tempdir().unwrap();
    for layout in ["ring", "zone-local", "plain"] {
        for zones in ZONES {
            let count = zones.split(',').count();
            let shown = shown(manifests(home.path()).args([zones, "--layout", layout]));
            insta::assert_snapshot!(format!("{layout}-{count}"), shown);
        }
    }
}

#[test]
fn metrics_and_gitops_are_added() {
    let home = tempfile::tempdir().unwrap();
    let all = shown(manifests(home.path()).arg(ZONES[0]).args(ALL));
    insta::assert_snapshot!("argocd", all);
    let flux = ["--layout", "zone-local", "--gitops", "flux", "--istio-version", "1.21"];
    insta::assert_snapshot!("flux", shown(manifests(home.path()).arg(ZONES[0]).args(flux)));
}

/// What is printed is what the core has tested, whatever YAML makes of it.
#[test]
fn what_is_printed_is_the_layout() {
    use zone_rollout_core::layout::{self, GitOps, Layout, Spec};

    let home = tempfile::tempdir().unwrap();
    let printed = manifests(home.path()).arg(ZONES[1]).args(ALL).output().unwrap();
    let zones: Vec<String> = ZONES[1].split(',').map(str::to_owned).collect();
    let spec = Spec {
        name: "shop".to_owned(),
        namespace: "default".to_owned(),
        image: "shop:v1".to_owned(),
        zones: layout::zones(&zones).unwrap(),
        replicas: 3,
        port: 8080,
        target_port: 8080,
        gate: true,
        weights: vec![10, 20, 50, 80],
        pause: "5m".to_owned(),
        progress_deadline_seconds: 600,
        istio_api_version: "v1".to_owned(),
    };
    let objects = layout::with_metrics(&spec, Layout::Ring.objects(&spec), ALL[1]);
    let objects = layout::for_gitops(&spec, objects, GitOps::ArgoCd);
    assert_eq!(documents(&printed.stdout), objects);
}

#[test]
fn each_flag_has_its_effect() {
    let home = tempfile::tempdir().unwrap();
    let with = |flags: &[&str], kind: &str| {
        let output = manifests(home.path()).arg(ZONES[1]).args(flags).output().unwrap();
        let found = documents(&output.stdout).into_iter().find(|object| object["kind"] == kind);
        found.unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&output.stderr)))
    };
    let rollout = |flags: &[&str]| with(flags, "Rollout");
    assert_eq!(rollout(&["--replicas", "7"])["spec"]["replicas"], 7);
    assert_eq!(rollout(&["--order", "c,a,b"])["metadata"]["name"], "shop-c");
    assert_eq!(rollout(&["-n", "prod"])["metadata"]["namespace"], "prod");
    let steps =
        rollout(&["--steps", "5,60", "--pause", "2h5m7s"])["spec"]["strategy"]["canary"]["steps"]
            .clone();
    assert_eq!(
        steps.to_string(),
        r#"[{"pause":{}},{"setWeight":5},{"pause":{"duration":"7507s"}},{"setWeight":60},{"pause":{"duration":"7507s"}}]"#
    );
    let ports =
        with(&["--port", "80", "--target-port", "9090"], "Service")["spec"]["ports"].clone();
    assert_eq!(ports.to_string(), r#"[{"name":"http","port":80,"targetPort":9090}]"#);
    let rule = with(&["--istio-version", "1.21", "--layout", "plain"], "DestinationRule");
    assert_eq!(rule["apiVersion"], "networking.istio.io/v1beta1");
}

#[test]
fn files_are_numbered_and_never_written_over() {
    let home = tempfile::tempdir().unwrap();
    let run =
        |more: &[&str]| shown(manifests(home.path()).arg(ZONES[0]).args(["-o", "out"]).args(more));
    insta::assert_snapshot!(run(&["--kustomize", "--gitops", "argocd"]), @r"
    exit 0
    ---
    13 objects in out
    Next:
      kubectl apply --server-side -k out
    ");
    let out = home.path().join("out");
    let mut names: Vec<String> = fs::read_dir(&out)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    insta::assert_snapshot!(names.join("\n"), @r"
    01-service-shop.yaml
    02-service-shop-stable-a.yaml
    03-service-shop-canary-a.yaml
    04-service-shop-stable-b.yaml
    05-service-shop-canary-b.yaml
    06-destinationrule-shop.yaml
    07-destinationrule-shop-a.yaml
    08-destinationrule-shop-b.yaml
    09-virtualservice-shop.yaml
    10-rollout-shop-a.yaml
    11-poddisruptionbudget-shop-a.yaml
    12-rollout-shop-b.yaml
    13-poddisruptionbudget-shop-b.yaml
    argocd-application.patch
    kustomization.yaml
    ");
    let list: Value =
        serde_saphyr::from_str(&fs::read_to_string(out.join("kustomization.yaml")).unwrap())
            .unwrap();
    let listed: Vec<&str> =
        list["resources"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    assert_eq!(listed, names[..13], "only the objects, in their order");
    let changed = out.join("09-virtualservice-shop.yaml");
    fs::write(&changed, "mine").unwrap();
    fs::remove_file(out.join("01-service-shop.yaml")).unwrap();
    insta::assert_snapshot!(run(&[]), @r"
    exit 5
    ---
    error: `out/02-service-shop-stable-a.yaml` is there already

    hint: to write over the files that are there: --force
    ");
    assert!(!out.join("01-service-shop.yaml").exists(), "something was written all the same");
    assert_eq!(fs::read_to_string(&changed).unwrap(), "mine");
    assert!(run(&["--force"]).starts_with("exit 0\n"));
    assert!(fs::read_to_string(&changed).unwrap().contains("kind: VirtualService"));
}

#[test]
fn bad_input_is_refused_and_nothing_is_written() {
    let home = tempfile::tempdir().unwrap();
    let ab = ZONES[0];
    for (zones, more) in [
        ("us-east-1a", &[][..]),
        ("us-east-1a,us-east-1a", &[]),
        ("us-east-1a,us-west-2a", &[]),
        ("us-east-1a,", &[]),
        ("us-east-1a,us/east", &[]),
        (ab, &["--order", "a"]),
        (ab, &["--order", "a,c"]),
        (ab, &["--steps", "20,10"]),
        (ab, &["--steps", "10,10"]),
        (ab, &["--steps", "0,10"]),
        (ab, &["--steps", "10,101"]),
        (ab, &["--pause", "0"]),
        (ab, &["--pause", "soon"]),
        (ab, &["--replicas", "0"]),
        (ab, &["--port", "0"]),
        (ab, &["--image", "a b"]),
        (ab, &["--prometheus", "prometheus"]),
        (ab, &["--istio-version", "two"]),
        (ab, &["--istio-version", "1.21"]),
        (ab, &["--istio-version", "1.17", "--layout", "plain"]),
        (ab, &["-n", "No_Namespace"]),
    ] {
        let mut command = manifests(home.path());
        let output = command.args([zones, "-o", "out"]).args(more).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{zones} {more:?}");
        assert!(output.stdout.is_empty() && !output.stderr.is_empty(), "{zones} {more:?}");
        assert!(!home.path().join("out").exists(), "{zones} {more:?}");
    }
    let named = ["manifests", "Shop", "--image", "shop:v1", "--zones", ab];
    assert_eq!(program(home.path()).args(named).output().unwrap().status.code(), Some(2));
    for alone in ["--kustomize", "--force"] {
        let output = manifests(home.path()).args([ab, alone]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{alone}");
    }
    insta::assert_snapshot!(shown(manifests(home.path()).args([ab, "--istio-version", "1.21"])), @r"
    exit 2
    ---
    error: this layout needs Istio 1.22 or newer, not 1.21

    hint: take the one without failover: --layout zone-local
    ");
}
