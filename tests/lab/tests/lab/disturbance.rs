//! What disturbs every other test: lost nodes and stopped components.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use zone_lab::kinds::ROLLOUT;
use zone_lab::{Lab, ZONES};

use crate::traffic::await_answer;
use crate::{a, container, is_ready, pod_that, single};

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
