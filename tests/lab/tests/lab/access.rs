//! Who asks for what: the audit log, users, GitOps, programs, and the way to the sidecars.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use zone_lab::kinds::ROLLOUT;
use zone_lab::{GITOPS_MANAGER, Lab, Signal};

use crate::{SOON, single};

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
    ensure!(!watching.finish().await?.status.success(), "the signal has not reached it");
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
