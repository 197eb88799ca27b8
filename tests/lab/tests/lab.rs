//! Every ability of the lab, shown to work.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use zone_lab::kinds::{DESTINATION_RULE, ROLLOUT, VIRTUAL_SERVICE};
use zone_lab::{Answer, Failure, GITOPS_MANAGER, Lab, Namespace, Signal, ZONES, Zone};

const SOON: Duration = Duration::from_secs(30);

fn a() -> Zone {
    Zone::named("a")
}

/// One Rollout in zone a, without mesh and steps.
fn single(image: &str, replicas: u32) -> Value {
    let labels = json!({"app": "single", "zone": "a"});
    json!({
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Rollout",
        "metadata": {"name": "single"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "strategy": {"canary": {}},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "nodeSelector": {"topology.kubernetes.io/zone": "us-east-1a"},
                    "containers": [{"name": "app", "image": image}],
                },
            },
        },
    })
}

/// The only pod of [`single`] as soon as `is` holds for its status.
async fn pod_that(
    namespace: &Namespace,
    what: &str,
    is: impl Fn(&Value) -> bool,
) -> Result<(String, Value)> {
    namespace
        .until(what, SOON, async || {
            let pods = namespace.pods(a()).await?;
            let pod = pods.first().context("no pod yet")?;
            let status = serde_json::to_value(&pod.status)?;
            Ok(is(&status).then(|| (pod.name_any(), status)))
        })
        .await
}

fn condition<'a>(status: &'a Value, kind: &str) -> &'a Value {
    let conditions = status["conditions"].as_array().expect("a pod has conditions");
    conditions.iter().find(|it| it["type"] == kind).expect("the condition is there")
}

fn is_ready(status: &Value) -> bool {
    status["conditions"].is_array() && condition(status, "Ready")["status"] == "True"
}

fn container(status: &Value) -> &Value {
    &status["containerStatuses"][0]
}

#[tokio::test]
async fn ring_is_served_in_each_zone_and_promotes() -> Result<()> {
    let lab = Lab::connect().await?;
    let namespace = lab.namespace("ring").await?;
    namespace.deploy(&namespace.ring("myapp:v1")).await?;
    namespace.await_served().await?;
    for zone in ZONES {
        let own = Answer::from(&*format!("{}/v1", zone.short));
        ensure!(namespace.ask(zone).await == own, "zone {} is not served by itself", zone.short);
    }
    namespace.set_image("test-a", "myapp:v2").await?;
    namespace.await_phase("test-a", "Paused").await?;
    let load = namespace.load(&[a()], 50)?;
    namespace
        .patch_status(ROLLOUT, "test-a", &json!({"status": {"pauseConditions": null}}))
        .await?;
    namespace.await_phase("test-a", "Healthy").await?;
    let tally = load.stop().await?;
    ensure!(tally.errors() == 0 && tally.count("a/v1") > 0 && tally.count("a/v2") > 0, "{tally}");
    ensure!(
        namespace.get(VIRTUAL_SERVICE, "test").await?["spec"]["http"][0]["route"][0]["weight"]
            == 100
    );
    let subsets = &namespace.get(DESTINATION_RULE, "test").await?["spec"]["subsets"];
    ensure!(
        subsets.as_array().is_some_and(|all| all.len() == 4),
        "the base rule has changed: {subsets}"
    );
    Ok(())
}

#[tokio::test]
async fn never_ready_runs_without_ready() -> Result<()> {
    let lab = Lab::connect().await?;
    let namespace = lab.namespace("never").await?;
    namespace.apply(&[single("myapp:v1-never-ready", 1)]).await?;
    let (_, status) =
        pod_that(&namespace, "a running pod", |status| status["phase"] == "Running").await?;
    for kind in ["Ready", "ContainersReady"] {
        let condition = condition(&status, kind);
        assert_eq!(condition["status"], "False");
        assert_eq!(condition["reason"], "ContainersNotReady");
        assert_eq!(condition["message"], "containers with unready status: [app]");
    }
    assert_eq!(condition(&status, "Initialized")["status"], "True");
    assert_eq!(container(&status)["started"], true);
    assert_eq!(container(&status)["ready"], false);
    Ok(())
}

#[tokio::test]
async fn slow_gets_ready_after_ten_seconds() -> Result<()> {
    let lab = Lab::connect().await?;
    let namespace = lab.namespace("slow").await?;
    namespace.apply(&[single("myapp:slow", 1)]).await?;
    pod_that(&namespace, "a running pod", |status| status["phase"] == "Running").await?;
    let start = Instant::now();
    pod_that(&namespace, "a Ready pod", is_ready).await?;
    let took = start.elapsed().as_secs_f32();
    ensure!((8.0..20.0).contains(&took), "Ready after {took} s");
    namespace.await_phase("single", "Healthy").await
}

#[tokio::test]
async fn crash_loop_restarts_and_backs_off() -> Result<()> {
    let lab = Lab::connect().await?;
    let namespace = lab.namespace("crash").await?;
    namespace.apply(&[single("myapp:crash-loop", 1)]).await?;
    let (_, status) = pod_that(&namespace, "three restarts and a pause", |status| {
        let container = container(status);
        container["restartCount"].as_i64() >= Some(3)
            && container["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    })
    .await?;
    let container = container(&status);
    assert_eq!(container["lastState"]["terminated"]["exitCode"], 1);
    assert_eq!(container["lastState"]["terminated"]["reason"], "Error");
    assert_eq!(container["ready"], false);
    assert_eq!(container["started"], false);
    let message = container["state"]["waiting"]["message"].as_str().unwrap_or_default();
    ensure!(message.contains("restarting failed container=app pod=single-"), "{message}");
    assert_eq!(condition(&status, "Ready")["status"], "False");
    assert_eq!(status["phase"], "Running");
    Ok(())
}

#[tokio::test]
async fn pull_fail_waits_for_its_image() -> Result<()> {
    let lab = Lab::connect().await?;
    let namespace = lab.namespace("pull").await?;
    namespace.apply(&[single("registry.example/myapp:pull-fail", 1)]).await?;
    let (_, status) = pod_that(&namespace, "a pod without image", |status| {
        container(status)["state"]["waiting"]["reason"] == "ImagePullBackOff"
    })
    .await?;
    assert_eq!(status["phase"], "Pending");
    assert_eq!(container(&status)["image"], "registry.example/myapp:pull-fail");
    assert_eq!(condition(&status, "Ready")["reason"], "ContainersNotReady");
    Ok(())
}

#[tokio::test]
async fn ready_is_held_and_given_back() -> Result<()> {
    let lab = Lab::connect().await?;
    let namespace = lab.namespace("hold").await?;
    namespace.deploy(&[single("myapp:v1", 2)]).await?;
    let pods = namespace.pods(a()).await?;
    let [held, restarted] = [pods[0].name_any(), pods[1].name_any()];
    namespace.hold_unready(&held).await?;
    namespace.restart(&restarted).await?;
    // Whatever gives Ready back to one pod had the same time for the other.
    let status = namespace
        .until("the restarted pod to be Ready again", SOON, async || {
            let status = status(&namespace, &restarted).await?;
            Ok(is_ready(&status).then_some(status))
        })
        .await?;
    assert_eq!(container(&status)["restartCount"], 1);
    assert_eq!(container(&status)["lastState"]["terminated"]["exitCode"], 137);
    let now = self::status(&namespace, &held).await?;
    assert_eq!(condition(&now, "Ready")["reason"], "ContainersNotReady");
    assert_eq!(container(&now)["ready"], false);
    namespace.release_ready(&held).await?;
    assert!(is_ready(&self::status(&namespace, &held).await?));
    Ok(())
}

async fn status(namespace: &Namespace, pod: &str) -> Result<Value> {
    Ok(serde_json::to_value(namespace.api::<Pod>().get(pod).await?.status)?)
}

#[tokio::test]
async fn evictions_heed_disruption_budgets() -> Result<()> {
    let lab = Lab::connect().await?;
    let namespace = lab.namespace("evict").await?;
    let budget = json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "single"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "single"}}},
    });
    namespace.deploy(&[single("myapp:v1", 2), budget]).await?;
    let pods = namespace.pods(a()).await?;
    namespace
        .until("an eviction", SOON, async || namespace.evict(&pods[0].name_any()).await.map(Some))
        .await?;
    namespace.patch(ROLLOUT, "single", &json!({"spec": {"replicas": 1}})).await?;
    namespace
        .until("one pod", SOON, async || Ok((namespace.pods(a()).await?.len() == 1).then_some(())))
        .await?;
    let last = namespace.pods(a()).await?[0].name_any();
    let refused = namespace.evict(&last).await.expect_err("the budget forbids it");
    ensure!(format!("{refused:#}").contains("disruption budget"), "{refused:#}");
    Ok(())
}

#[tokio::test]
async fn applications_fail_on_request() -> Result<()> {
    let lab = Lab::connect().await?;
    let namespace = lab.namespace("fail").await?;
    namespace.deploy(&namespace.zone_local("myapp:v1")).await?;
    namespace.await_served().await?;
    for (how, expected) in [(Failure::Http500, 500), (Failure::Refused, 503)] {
        namespace.fail(a(), Some("v1"), Some(how)).await?;
        await_answer(&namespace, a(), &Answer::Status(expected)).await?;
        let other = namespace.ask(Zone::named("b")).await;
        ensure!(other.is_pod(), "zone b answers {other}");
        // Of another version there is no pod to fail.
        namespace.fail(a(), Some("v1"), None).await?;
        namespace.fail(a(), Some("v2"), Some(how)).await?;
        namespace.await_served().await?;
    }
    Ok(())
}

async fn await_answer(namespace: &Namespace, zone: Zone, expected: &Answer) -> Result<()> {
    let what = format!("the answer {expected}");
    namespace
        .until(&what, SOON, async || {
            let answer = namespace.ask(zone).await;
            if answer == *expected { Ok(Some(())) } else { Err(anyhow!("it was {answer}")) }
        })
        .await
}

#[tokio::test]
async fn requests_are_audited() -> Result<()> {
    let lab = Lab::connect().await?;
    let namespace = lab.namespace("audit").await?;
    let mark = lab.audit_mark()?;
    namespace.apply(&[single("myapp:v1", 1)]).await?;
    let listed = namespace.kubectl(["get", "rollouts"]).run().await?;
    ensure!(listed.code() == Some(0), "{listed}");
    let records = namespace.audit().await?;
    let find = |verb: &str, user: &str| {
        records.iter().find(|it| {
            it.object.resource == "rollouts" && it.verb == verb && it.user.username == user
        })
    };
    let write = find("patch", "admin").context("the write is missing")?;
    assert!(write.is_write());
    assert_eq!(write.object.name, "single");
    assert_eq!(write.response.code, 201);
    assert_eq!(write.body.as_ref().context("no body")?["kind"], "Rollout");
    let read = find("list", "admin").context("the read is missing")?;
    ensure!(read.user_agent.starts_with("kubectl/v1.34.4"), "{}", read.user_agent);
    assert!(read.body.is_none() && !read.is_write());
    let all = lab.audit_since(mark).await?;
    ensure!(all.iter().any(|it| it.uri == write.uri), "the write is not in the whole log");
    Ok(())
}

#[tokio::test]
async fn users_have_the_rights_that_they_were_given() -> Result<()> {
    let lab = Lab::connect().await?;
    let namespace = lab.namespace("user").await?;
    namespace.apply(&[single("myapp:v1", 1)]).await?;
    let read =
        json!({"apiGroups": ["argoproj.io"], "resources": ["rollouts"], "verbs": ["get", "list"]});
    let nodes = json!({"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]});
    let user = namespace.user("reader", &[read], &[nodes]).await?;
    namespace
        .until("the rights to be in force", SOON, async || {
            let nodes = namespace.kubectl(["get", "nodes"]).kubeconfig(&user).run().await?;
            Ok((nodes.code() == Some(0)).then_some(()))
        })
        .await?;
    let read = namespace.kubectl(["get", "rollouts"]).kubeconfig(&user).run().await?;
    ensure!(read.stdout.contains("single"), "{read}");
    let write = ["delete", "rollout", "single"];
    let write = namespace.kubectl(write).kubeconfig(&user).run().await?;
    ensure!(write.code() == Some(1) && write.stderr.contains("Forbidden"), "{write}");
    Ok(())
}

#[tokio::test]
async fn gitops_puts_manifests_back() -> Result<()> {
    let lab = Lab::connect().await?;
    let namespace = lab.namespace("gitops").await?;
    let manifests = vec![single("myapp:v1", 1)];
    let gitops = namespace.gitops(manifests, Duration::from_secs(1)).await?;
    namespace.patch(ROLLOUT, "single", &json!({"spec": {"replicas": 3}})).await?;
    let rollout = namespace
        .until("one replica again", SOON, async || {
            let rollout = namespace.get(ROLLOUT, "single").await?;
            Ok((rollout["spec"]["replicas"] == 1).then_some(rollout))
        })
        .await?;
    let managers = rollout["metadata"]["managedFields"].as_array().context("no managers")?;
    assert!(managers.iter().any(|it| it["manager"] == GITOPS_MANAGER));
    drop(gitops);
    Ok(())
}

#[tokio::test]
async fn programs_are_watched_signalled_and_killed() -> Result<()> {
    let lab = Lab::connect().await?;
    let namespace = lab.namespace("program").await?;
    namespace.apply(&[single("myapp:v1", 1)]).await?;
    let watch = ["get", "rollouts", "--watch"];
    let mut watching = namespace.kubectl(watch).start()?;
    ensure!(watching.line("single").await?.starts_with("single"));
    watching.signal(Signal::INT)?;
    assert_eq!(watching.finish().await?.code(), Some(1), "kubectl ends a watch so");
    let mut watching = namespace.kubectl(watch).start()?;
    watching.line("single").await?;
    let killed = watching.kill().await?;
    ensure!(killed.code().is_none() && killed.stdout.contains("single"), "{killed}");
    let deadline = Duration::from_secs(1);
    let late = namespace.kubectl(watch).deadline(deadline).run().await.expect_err("it never ends");
    ensure!(late.to_string().contains("did not end in 1 s"), "{late}");
    ensure!(late.to_string().contains("AVAILABLE"), "what was printed is missing: {late}");
    let plugin = namespace.kubectl_plugin(["--version"]).run().await?;
    ensure!(
        !plugin.stderr.contains("unknown command"),
        "kubectl does not find the plugin: {plugin}"
    );
    Ok(())
}

#[tokio::test]
async fn kubectl_reaches_the_clients_sidecars() -> Result<()> {
    let lab = Lab::connect().await?;
    let clients = lab.existing_namespace("clients")?;
    let echo = clients.kubectl(["exec", "client-b", "--", "echo", "from inside"]).run().await?;
    ensure!(echo.stdout == "from inside\n", "{echo}");
    let mut forward = clients.kubectl(["port-forward", "pod/client-a", "17000:15000"]).start()?;
    forward.line("Forwarding from 127.0.0.1:17000").await?;
    fetch("127.0.0.1:17000", "/server_info", "client-a.clients").await?;
    let clusters = ["proxy-config", "clusters", "client-c.clients"];
    let clusters = tokio::process::Command::new("istioctl").args(clusters).output().await?;
    ensure!(clusters.status.success(), "{}", String::from_utf8_lossy(&clusters.stderr));
    Ok(())
}

/// Reads what is at a path until a text comes.
async fn fetch(address: &str, path: &str, text: &str) -> Result<()> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    while !String::from_utf8_lossy(&answer).contains(text) {
        let read = timeout(SOON, stream.read_buf(&mut answer)).await;
        ensure!(read?? > 0, "no `{text}` in {}", String::from_utf8_lossy(&answer));
    }
    Ok(())
}

#[tokio::test]
async fn a_lost_zone_fails_over_and_returns() -> Result<()> {
    let lab = Lab::connect_alone().await?;
    let namespace = lab.namespace("gone").await?;
    namespace.deploy(&namespace.ring("myapp:v1")).await?;
    namespace.await_served().await?;
    let load = namespace.load(&ZONES, 50)?;
    lab.nodes_gone(a()).await?;
    await_answer(&namespace, a(), &"b/v1".into()).await?;
    let lost = Instant::now();
    for pod in namespace.pods(a()).await? {
        let node = pod.spec.and_then(|spec| spec.node_name);
        ensure!(node.is_none(), "a pod of the lost zone runs on {node:?}");
    }
    lab.nodes_back(a()).await?;
    await_answer(&namespace, a(), &"a/v1".into()).await?;
    let back = Instant::now();
    let tally = load.stop().await?.from_zone(a());
    let during = tally.since(lost + Duration::from_secs(1)).until(back);
    ensure!(during.errors() == 0, "{tally}");
    ensure!(tally.count("a/v1") > 0 && tally.count("b/v1") > 0, "{tally}");
    namespace.await_healthy().await
}

#[tokio::test]
async fn nodes_out_of_contact_take_ready_from_their_pods() -> Result<()> {
    let lab = Lab::connect_alone().await?;
    let namespace = lab.namespace("notready").await?;
    namespace.deploy(&[single("myapp:v1", 1)]).await?;
    let (pod, _) = pod_that(&namespace, "a Ready pod", is_ready).await?;
    lab.nodes_not_ready(a()).await?;
    let (same, status) = pod_that(&namespace, "a pod without Ready", |it| !is_ready(it)).await?;
    assert_eq!(same, pod);
    assert_eq!(container(&status)["ready"], true, "its container has not changed");
    lab.nodes_back(a()).await?;
    pod_that(&namespace, "a Ready pod", is_ready).await?;
    Ok(())
}

#[tokio::test]
async fn components_stop_and_start() -> Result<()> {
    let lab = Lab::connect_alone().await?;
    let namespace = lab.namespace("restart").await?;
    namespace.deploy(&namespace.ring("myapp:v1")).await?;
    namespace.await_served().await?;
    lab.stop("rollouts-controller").await?;
    lab.stop("istiod").await?;
    lab.stop("kube-apiserver").await?;
    lab.stop("etcd").await?;
    ensure!(namespace.get(ROLLOUT, "test-a").await.is_err(), "the API server still answers");
    let served = namespace.ask(a()).await;
    ensure!(served.is_pod(), "requests need the control plane: {served}");
    for component in ["etcd", "kube-apiserver", "istiod", "rollouts-controller"] {
        lab.start(component).await?;
    }
    namespace.set_image("test-b", "myapp:v2").await?;
    namespace.await_phase("test-b", "Paused").await?;
    let lost = lab.stop("nothing").await.expect_err("there is no such component");
    ensure!(format!("{lost:#}").contains("no component `nothing`"), "{lost:#}");
    Ok(())
}
