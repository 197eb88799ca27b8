//! Everything that can be wrong with a group, a request or a user's rights: what is said, which exit
//! code it has, and that nothing was written. The snapshots show each as people see it.

use std::fmt::Write;
use std::path::PathBuf;

use anyhow::{Result, ensure};
use futures::{StreamExt, TryStreamExt};
use serde_json::{Value, json};
use zone_lab::kinds::{DESTINATION_RULE, Kind, ROLLOUT, VIRTUAL_SERVICE};
use zone_lab::{Lab, Namespace, ZONES};

use crate::support::{
    LONG, Layout, RING, ask_all, at_gate, group, open_gate, rollout, until_touched, writes, zone,
};

/// What is not refused by mistake ends soon, and shows.
const PROMOTE: &[&str] =
    &["promote", "--sequential", "--yes", "--first-soak", "1s", "--soak", "1s"];
/// Refused for whatever right is missing: with `abort-zone`, a promotion may need them all.
const PROMOTE_OR_ABORT: &[&str] =
    &["promote", "a", "--yes", "--first-soak", "1s", "--on-failure", "abort-zone"];
const STATUS: &[&str] = &["status"];
/// How many groups are set up at the same time.
const AT_ONCE: usize = 4;
const ISTIO: &str = "networking.istio.io/v1";

/// Runs the plugin; what was typed, the exit code, and everything it printed.
async fn told(
    namespace: &Namespace,
    arguments: &[&str],
    kubeconfig: Option<&PathBuf>,
) -> Result<String> {
    let mut run = namespace.plugin(arguments.iter().copied()).deadline(LONG);
    if let Some(kubeconfig) = kubeconfig {
        run = run.kubeconfig(kubeconfig);
    }
    let finished = run.run().await?;
    let code = finished.code().map_or_else(|| "signal".to_owned(), |code| code.to_string());
    let mut told = format!("$ kubectl zone-rollout {}\nexit {code}\n", arguments.join(" "));
    for line in finished.stdout.lines().chain(finished.stderr.lines()) {
        writeln!(told, "    {line}")?;
    }
    Ok(told.replace(namespace.name(), "NAMESPACE"))
}

/// Compares with the snapshot, but for what differs from run to run.
fn assert_told(name: &str, told: &str) {
    insta::with_settings!({
        prepend_module_to_snapshot => false,
        omit_expression => true,
        filters => vec![
            (r"\d{4}-\d\d-\d\dT[\d:.]+Z|\d\d:\d\d:\d\dZ", "TIME"),
            (r"(test-[a-d])-[0-9a-f]{6,10}\b", "$1-HASH"),
            // The last column of a table of zones is an age.
            (r"(?m)( {2,})(\d+m)?\d+s$", "${1}AGE"),
            (r"https?://127\.0\.0\.1:\d+", "SERVER"),
            (r"[ \t]+\n", "\n"),
            // Whether the controller misses a change is chance.
            (r"(?m)^.*touched it: the controller has missed.*\n", ""),
        ],
    }, {
        insta::assert_snapshot!(name, told);
    });
}

/// Fails if the plugin has written anything in a namespace, even a lease.
async fn ensure_untouched(namespace: &Namespace) -> Result<()> {
    for record in namespace.audit().await? {
        let ours = record.user_agent.starts_with("kubectl-zone_rollout/");
        ensure!(!(ours && record.is_write()), "it wrote: {record:?}");
    }
    Ok(())
}

#[tokio::test]
async fn addresses_and_flags_that_fit_nothing() -> Result<()> {
    let lab = Lab::connect().await?;
    let namespace = group(&lab, "addresses", RING).await?;
    let lines: [&[&str]; 21] = [
        &["status", "shop"],
        &["status", "test/d"],
        &["status", "-l", "app=shop"],
        &["status", "--rollouts", "test-a,test-x"],
        &["promote", "d", "--yes"],
        &["promote", "shop", "--sequential", "--yes"],
        &["promote", "--yes"],
        &["promote", "--sequential", "--yes", "--rollouts", "test-a"],
        &["promote", "--sequential", "--yes", "--only", "d"],
        &["promote", "--sequential", "--yes", "--skip-zone", "d"],
        &["promote", "--sequential", "--yes", "--skip-zone", "a,b,c"],
        &["promote", "--sequential", "--yes", "--order", "a,b"],
        &["promote", "--sequential", "--yes", "--order", "a,a,b,c"],
        &["promote", "--sequential", "--yes", "--from", "d"],
        &["promote", "--sequential", "--yes", "--image", "web=myapp:v2"],
        &["promote", "--sequential", "--yes", "--image", ""],
        &["promote", "--sequential", "--soak", "soon"],
        &["promote", "--sequential", "--hold"],
        &["promote", "--sequential", "--image", "myapp:v2"],
        &["abort", "d"],
        &["abort", "--all", "a"],
    ];
    let mut all = String::new();
    for line in lines {
        writeln!(all, "{}", told(&namespace, line, None).await?)?;
    }
    assert_told("addresses", &all);
    ensure_untouched(&namespace).await
}

#[tokio::test]
async fn nothing_to_work_on() -> Result<()> {
    let lab = Lab::connect().await?;
    let namespace = lab.namespace("empty").await?;
    let mut all = String::new();
    for line in [STATUS, PROMOTE, &["abort"]] {
        writeln!(all, "{}", told(&namespace, line, None).await?)?;
    }
    let absent = lab.existing_namespace("absent")?;
    for line in [STATUS, PROMOTE] {
        writeln!(all, "{}", told(&absent, line, None).await?)?;
    }
    assert_told("nothing", &all.replace("absent", "NAMESPACE"));
    ensure_untouched(&namespace).await
}

#[tokio::test]
async fn several_groups() -> Result<()> {
    let lab = Lab::connect().await?;
    let namespace = group(&lab, "groups", RING).await?;
    let other =
        zone_rollout_core::layout::Spec { name: "shop".to_owned(), ..namespace.spec("myapp:v1") };
    namespace.deploy(&zone_rollout_core::layout::zone_local(&other)).await?;
    let mut all = String::new();
    let lines: [&[&str]; 5] =
        [STATUS, PROMOTE, &["abort"], &["promote", "a", "--yes"], &["abort", "shop/a", "test/a"]];
    for line in lines {
        writeln!(all, "{}", told(&namespace, line, None).await?)?;
    }
    assert_told("groups", &all);
    ensure_untouched(&namespace).await
}

/// One step of breaking a group whose zones are at their gates.
enum Break {
    Delete(Kind, &'static str),
    Patch(Kind, &'static str, Value),
    Apply(fn(&Namespace) -> Value),
    /// Somebody gives its update up, and the controller has seen that.
    Abort(&'static str),
    /// The controller has seen it and calls the Rollout invalid.
    Invalid(&'static str),
    /// Another template or other steps, and it waits at its gate with them.
    Update(&'static str, Value),
    /// The controller has seen the latest spec and has nothing left to do.
    Healthy(&'static str),
}

impl Break {
    async fn carry_out(self, namespace: &Namespace) -> Result<()> {
        match self {
            Self::Delete(kind, name) => namespace.delete(kind, name).await,
            Self::Patch(kind, name, patch) => namespace.patch(kind, name, &patch).await,
            Self::Apply(object) => namespace.apply(&[object(namespace)]).await,
            Self::Invalid(name) => until_seen(namespace, name, "invalid", is_invalid).await,
            Self::Abort(name) => {
                namespace.patch_status(ROLLOUT, name, &json!({"abort": true})).await?;
                let aborted = |rollout: &Value| rollout["status"]["abortedAt"].is_string();
                until_seen(namespace, name, "aborted", aborted).await
            }
            Self::Update(name, patch) => {
                let before = asked_for(&namespace.get(ROLLOUT, name).await?);
                namespace.patch(ROLLOUT, name, &patch).await?;
                let again = |rollout: &Value| at_gate(rollout) && asked_for(rollout) != before;
                until_seen(namespace, name, "at its gate again", again).await
            }
            Self::Healthy(name) => until_seen(namespace, name, "healthy", is_healthy).await,
        }
    }
}

async fn until_seen(
    namespace: &Namespace,
    name: &str,
    what: &str,
    is: impl Fn(&Value) -> bool,
) -> Result<()> {
    let look = async || Ok(is(&namespace.get(ROLLOUT, name).await?).then_some(()));
    until_touched(namespace, name, format!("{name} to be {what}"), look).await
}

/// The hashes of the template and the steps that the controller has seen last. Until they change, a status
/// is about what was asked for before.
fn asked_for(rollout: &Value) -> [Value; 2] {
    ["currentPodHash", "currentStepHash"].map(|hash| rollout["status"][hash].clone())
}

fn is_invalid(rollout: &Value) -> bool {
    let conditions = rollout["status"]["conditions"].as_array();
    conditions.into_iter().flatten().any(|it| it["type"] == "InvalidSpec")
}

fn is_healthy(rollout: &Value) -> bool {
    let generation = rollout["metadata"]["generation"].to_string();
    rollout["status"]["observedGeneration"].as_str() == Some(&generation)
        && rollout["status"]["phase"] == "Healthy"
}

/// A change of a Rollout's canary strategy.
fn canary(canary: &Value) -> Value {
    json!({"spec": {"strategy": {"canary": canary}}})
}

/// What is wrong with routes and rules.
fn broken_mesh() -> Vec<(&'static str, Vec<Break>)> {
    use Break::{Apply, Delete, Invalid, Patch};
    vec![
        (
            "the VirtualService is missing",
            vec![
                Delete(VIRTUAL_SERVICE, "test"),
                Invalid("test-a"),
                Invalid("test-b"),
                Invalid("test-c"),
            ],
        ),
        ("zone b's DestinationRule is missing", vec![Delete(DESTINATION_RULE, "test-b")]),
        ("the base DestinationRule is missing", vec![Delete(DESTINATION_RULE, "test")]),
        (
            "the base DestinationRule is younger than the others",
            vec![
                Delete(DESTINATION_RULE, "test"),
                Apply(|namespace| {
                    let mut objects = RING.objects(namespace, "myapp:v1");
                    let base = objects.iter().position(|it| {
                        it["kind"] == "DestinationRule" && it["metadata"]["name"] == "test"
                    });
                    base.map_or(Value::Null, |base| objects.swap_remove(base))
                }),
            ],
        ),
        (
            "two zones share a DestinationRule",
            vec![Patch(
                ROLLOUT,
                "test-b",
                canary(&json!({"trafficRouting": {"istio": {
                    "destinationRule": {"name": "test-a"},
                }}})),
            )],
        ),
        (
            "the VirtualService has no route for zone b",
            vec![
                Apply(|namespace| {
                    let host = format!("test.{}.svc.cluster.local", namespace.name());
                    let route = |zone: &str| {
                        let to = |role: &str, weight: u32| {
                            let subset = format!("{role}-{zone}");
                            json!({"destination": {"host": host, "subset": subset}, "weight": weight})
                        };
                        json!({
                            "name": format!("zone-{zone}-route"),
                            "match": [{"sourceLabels": {
                                "topology.kubernetes.io/zone": format!("us-east-1{zone}"),
                            }}],
                            "route": [to("stable", 100), to("canary", 0)],
                        })
                    };
                    json!({
                        "apiVersion": ISTIO,
                        "kind": "VirtualService",
                        "metadata": {"name": "test"},
                        "spec": {"hosts": [host], "http": [route("a"), route("c")]},
                    })
                }),
                Invalid("test-b"),
            ],
        ),
    ]
}

/// What is wrong with Rollouts.
fn broken_rollouts() -> Vec<(&'static str, Vec<Break>)> {
    use Break::{Abort, Healthy, Invalid, Patch, Update};
    vec![
        (
            "zone b's steps are invalid",
            vec![
                Patch(ROLLOUT, "test-b", canary(&json!({"steps": [{"setWeight": 120}]}))),
                Invalid("test-b"),
            ],
        ),
        (
            "zone b has other steps",
            vec![Update(
                "test-b",
                canary(&json!({"steps": [
                    {"pause": {}}, {"setWeight": 30}, {"pause": {"duration": "2s"}},
                ]})),
            )],
        ),
        (
            "zone b has another template",
            vec![Update(
                "test-b",
                json!({"spec": {"template": {"spec": {"containers": [
                    {"name": "app", "image": "myapp:v2", "env": [{"name": "MODE", "value": "fast"}]},
                ]}}}}),
            )],
        ),
        (
            "zone b has another version",
            vec![Update(
                "test-b",
                json!({"spec": {"template": {"spec": {"containers": [
                    {"name": "app", "image": "myapp:v3"},
                ]}}}}),
            )],
        ),
        (
            "zone c's Rollout names no zone",
            vec![Update("test-c", json!({"spec": {"template": {"spec": {"affinity": null}}}}))],
        ),
        (
            "zone c's Rollout is blueGreen",
            vec![
                Patch(
                    ROLLOUT,
                    "test-c",
                    json!({"spec": {"strategy": {
                        "canary": null, "blueGreen": {"activeService": "test"},
                    }}}),
                ),
                Healthy("test-c"),
            ],
        ),
        (
            "an analysis of zone b starts before its first weight",
            vec![
                Patch(
                    ROLLOUT,
                    "test-b",
                    canary(&json!({"analysis": {"templates": [{"templateName": "errors"}]}})),
                ),
                Invalid("test-b"),
            ],
        ),
        ("zone a was aborted", vec![Abort("test-a")]),
    ]
}

/// A group with zones at their gates, broken; what `status` and `promote` say to it.
async fn told_of_broken(lab: &Lab, name: &str, breaks: Vec<Break>) -> Result<String> {
    let namespace = group(lab, "broken", RING).await?;
    ask_all(&namespace, "myapp:v2").await?;
    for step in breaks {
        step.carry_out(&namespace).await?;
    }
    let mut all = format!("## {name}\n\n");
    for line in [STATUS, PROMOTE] {
        writeln!(all, "{}", told(&namespace, line, None).await?)?;
    }
    if let Err(wrote) = ensure_untouched(&namespace).await {
        writeln!(all, "{wrote}")?;
    }
    Ok(all)
}

#[tokio::test]
async fn broken_layouts_are_refused() -> Result<()> {
    let lab = Lab::connect().await?;
    let told: Vec<String> =
        futures::stream::iter(broken_mesh().into_iter().chain(broken_rollouts()))
            .map(|(name, breaks)| told_of_broken(&lab, name, breaks))
            .buffered(AT_ONCE)
            .try_collect()
            .await?;
    assert_told("broken", &told.concat());
    ensure!(!told.iter().any(|told| told.contains("it wrote: ")), "some wrote");
    Ok(())
}

/// What a user needs for everything that the plugin does: API group, resource, verbs.
const RIGHTS: [(&str, &str, &[&str]); 8] = [
    ("argoproj.io", "rollouts", &["get", "list", "watch", "patch"]),
    ("argoproj.io", "rollouts/status", &["patch"]),
    ("apps", "replicasets", &["list", "watch"]),
    ("", "pods", &["list", "watch"]),
    ("", "services", &["list", "watch"]),
    ("networking.istio.io", "virtualservices", &["list", "watch", "patch"]),
    ("networking.istio.io", "destinationrules", &["list", "watch"]),
    ("coordination.k8s.io", "leases", &["get", "create", "update"]),
];

/// The rights without one verb of one resource.
fn without(resource: &str, verb: &str) -> Vec<Value> {
    RIGHTS
        .iter()
        .map(|(group, name, verbs)| {
            let kept = |it: &&&str| *name != resource || **it != verb;
            let verbs: Vec<&&str> = verbs.iter().filter(kept).collect();
            json!({"apiGroups": [group], "resources": [name], "verbs": verbs})
        })
        .filter(|rule| rule["verbs"] != json!([]))
        .collect()
}

#[tokio::test]
async fn each_missing_right_is_named() -> Result<()> {
    let lab = Lab::connect().await?;
    let namespace = group(&lab, "rights", Layout { pause: "10m", ..RING }).await?;
    ask_all(&namespace, "myapp:v2").await?;
    let nodes = [json!({"apiGroups": [""], "resources": ["nodes"], "verbs": ["list", "watch"]})];
    let mut all = String::new();
    for (_, resource, verbs) in RIGHTS {
        for verb in verbs.iter().filter(|verb| !["watch", "get"].contains(verb)) {
            let name = format!("no-{}-{verb}", resource.replace('/', "-"));
            let user = namespace.user(&name, &without(resource, verb), &nodes).await?;
            writeln!(all, "## {verb} {resource}\n")?;
            for line in [STATUS, PROMOTE_OR_ABORT] {
                writeln!(all, "{}", told(&namespace, line, Some(&user)).await?)?;
            }
        }
    }
    assert_told("rights", &all);
    ensure_untouched(&namespace).await
}

/// An abort that cannot begin is refused; one that may not get to its end is begun, with a warning.
#[tokio::test]
async fn rights_that_an_abort_lacks() -> Result<()> {
    let lab = Lab::connect().await?;
    let namespace = group(&lab, "helpless", Layout { pause: "10m", ..RING }).await?;
    ask_all(&namespace, "myapp:v2").await?;
    open_gate(&namespace, zone("a"), 10).await?;
    let mut all = String::new();
    let nodes = [json!({"apiGroups": [""], "resources": ["nodes"], "verbs": ["list", "watch"]})];
    let mark = lab.audit_mark()?;
    for resource in ["rollouts/status", "virtualservices"] {
        let name = format!("no-{}", resource.replace('/', "-"));
        let user = namespace.user(&name, &without(resource, "patch"), &nodes).await?;
        writeln!(all, "## patch {resource}\n")?;
        writeln!(all, "{}", told(&namespace, &["abort", "a"], Some(&user)).await?)?;
        if resource == "rollouts/status" {
            ensure!(writes(&lab, &namespace, mark).await?.is_empty(), "it wrote");
        }
    }
    assert_told("helpless", &all);
    Ok(())
}

/// Without a controller nothing happens, and the outputs say so. Alone in the lab.
#[tokio::test]
async fn a_controller_that_is_not_there() -> Result<()> {
    let lab = Lab::connect_alone().await?;
    let namespace = group(&lab, "headless", RING).await?;
    lab.stop("rollouts-controller").await?;
    for zone in ZONES {
        namespace.set_image(&rollout(zone), "myapp:v2").await?;
    }
    let fresh = lab.namespace("never").await?;
    fresh.apply(&RING.objects(&fresh, "myapp:v1")).await?;
    let mut all = String::new();
    for (name, namespace) in
        [("a change that nobody has seen", &namespace), ("Rollouts that nobody has seen", &fresh)]
    {
        writeln!(all, "## {name}\n")?;
        for line in [STATUS, PROMOTE] {
            writeln!(all, "{}", told(namespace, line, None).await?)?;
        }
    }
    lab.start("rollouts-controller").await?;
    assert_told("headless", &all);
    ensure_untouched(&namespace).await?;
    ensure_untouched(&fresh).await
}

/// Custom resources that are absent, or served in an older version only. Alone in the lab.
#[tokio::test]
async fn custom_resources_of_another_age() -> Result<()> {
    let lab = Lab::connect_alone().await?;
    let namespace = group(&lab, "crds", RING).await?;
    ask_all(&namespace, "myapp:v2").await?;
    // Whether it hears of what is removed, and calls the Rollouts invalid, is chance.
    lab.stop("rollouts-controller").await?;
    let told = told_without_crds(&lab, &namespace).await;
    lab.restore_crds().await?;
    assert_told("crds", &told?);
    ensure_untouched(&namespace).await
}

async fn told_without_crds(lab: &Lab, namespace: &Namespace) -> Result<String> {
    const ISTIOS: [&str; 2] =
        ["virtualservices.networking.istio.io", "destinationrules.networking.istio.io"];
    const DRY_RUN: &[&str] = &["promote", "--sequential", "--dry-run"];
    let mut all = String::new();
    for version in ["v1beta1", "v1alpha3"] {
        for crd in ISTIOS {
            lab.serve_only(crd, version).await?;
        }
        served(namespace, version).await?;
        writeln!(all, "## Istio in {version} only\n")?;
        for line in [STATUS, DRY_RUN] {
            writeln!(all, "{}", told(namespace, line, None).await?)?;
        }
    }
    for crd in ISTIOS {
        lab.remove_crd(crd).await?;
    }
    writeln!(all, "## no Istio\n")?;
    for line in [STATUS, PROMOTE] {
        writeln!(all, "{}", told(namespace, line, None).await?)?;
    }
    lab.remove_crd("rollouts.argoproj.io").await?;
    writeln!(all, "## no Argo Rollouts\n")?;
    for line in [STATUS, PROMOTE, &["abort"]] {
        writeln!(all, "{}", told(namespace, line, None).await?)?;
    }
    Ok(all)
}

/// Waits until kubectl finds the group's VirtualService in this version and in no other.
async fn served(namespace: &Namespace, version: &str) -> Result<()> {
    namespace
        .until(format!("Istio to be served in {version} only"), LONG, async || {
            let listed = namespace.kubectl(["api-resources", "--api-group=networking.istio.io"]);
            let listed = listed.run().await?.stdout;
            let of_kinds =
                |line: &&str| line.contains("virtualservices") || line.contains("destinationrules");
            let mut lines = listed.lines().filter(of_kinds);
            Ok(lines.all(|line| line.contains(&format!("/{version}"))).then_some(()))
        })
        .await
}
