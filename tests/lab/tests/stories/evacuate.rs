//! `evacuate` and `restore`: clients of a zone to another and back, without one being dropped.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::Value;
use zone_lab::kinds::VIRTUAL_SERVICE;
use zone_lab::{Lab, Load, Namespace, ZONES};

use crate::schemas::ensure_fits;
use crate::support::{
    LONG, Layout, PROMOTE, RING, SOAKS, SOON, ZONE_LOCAL, ask_all, at_gate, ensure_code,
    ensure_says, group, open_gate, until_rollout, writes, zone,
};

/// Waits until the clients under load have had nothing but this answer for a while.
async fn until_all(namespace: &Namespace, load: &Load, answer: &str) -> Result<()> {
    let mut since = Instant::now();
    namespace
        .until(format!("all clients to be answered by {answer}"), SOON, async || {
            let latest = load.so_far().since(since);
            if latest.count(answer) < latest.total() {
                since = Instant::now();
            }
            Ok((latest.total() > 50 && latest.count(answer) == latest.total()).then_some(()))
        })
        .await
}

/// There and back, under load, in both layouts with routes.
async fn there_and_back(layout: Layout, stem: &str) -> Result<()> {
    let lab = Lab::connect().await?;
    let namespace = group(&lab, stem, layout).await?;
    let load = namespace.load(&[zone("a")], 100)?;
    until_all(&namespace, &load, "a/v1").await?;
    let mark = lab.audit_mark()?;

    let sent = namespace.kubectl_plugin(["evacuate", "a"]).run().await?;
    ensure_code(&sent, 0)?;
    ensure_says(&sent, "zone b: each Ready pod will carry 2.0 times its normal load")?;
    ensure_says(&sent, "sends its clients to the stable pods of zone b")?;
    until_all(&namespace, &load, "b/v1").await?;
    let status = namespace.plugin(["status"]).run().await?;
    ensure_says(&status, "stable; clients sent to zone b")?;
    ensure_says(&status, "kubectl zone-rollout restore ")?;
    let json = namespace.plugin(["status", "-o", "json"]).run().await?;
    let json: Value = serde_json::from_str(&json.stdout)?;
    ensure_fits("status", &json)?;
    ensure!(json["zones"][0]["evacuatedTo"] == "b", "{json}");
    let again = namespace.plugin(["evacuate", "a"]).run().await?;
    ensure_code(&again, 0)?;
    ensure_says(&again, "already")?;

    let back = namespace.kubectl_plugin(["restore", "a"]).run().await?;
    ensure_code(&back, 0)?;
    ensure_says(&back, "sends its clients to zone a again; 3 of 3 stable pods are Ready there")?;
    until_all(&namespace, &load, "a/v1").await?;
    let again = namespace.plugin(["restore", "a"]).run().await?;
    ensure_says(&again, "its clients are not sent elsewhere")?;

    let tally = load.stop().await?;
    ensure!(tally.errors() == 0, "clients were dropped: {tally}");
    let writes = writes(&lab, &namespace, mark).await?;
    ensure!(writes.len() == 2, "{writes:?}");
    ensure!(writes.iter().all(|write| write.object.resource == "virtualservices"), "{writes:?}");
    Ok(())
}

#[tokio::test]
async fn an_evacuated_zone_local_zone_comes_back_without_an_error() -> Result<()> {
    there_and_back(ZONE_LOCAL, "sent").await
}

#[tokio::test]
async fn an_evacuated_zone_of_the_ring_comes_back_without_an_error() -> Result<()> {
    there_and_back(RING, "ringsent").await
}

/// A zone without pods answers 503 in this layout, until its clients are sent elsewhere; the updates
/// of other zones go on meanwhile, and the one of the zone itself is refused.
#[tokio::test]
async fn an_evacuation_outlives_the_updates_of_other_zones() -> Result<()> {
    let lab = Lab::connect().await?;
    let namespace = group(&lab, "outlives", ZONE_LOCAL).await?;
    ensure_code(&namespace.plugin(["evacuate", "a", "--to", "c"]).run().await?, 0)?;
    ask_all(&namespace, "myapp:v2").await?;
    let refused = namespace.plugin(PROMOTE.into_iter().chain(SOAKS)).run().await?;
    ensure_code(&refused, 5)?;
    ensure_says(&refused, "the clients of zone a are sent to zone c")?;
    ensure_says(&refused, "kubectl zone-rollout restore ")?;
    let load = namespace.load(&[zone("a")], 100)?;
    let others = PROMOTE.into_iter().chain(SOAKS).chain(["--skip-zone", "a"]);
    let promoted = namespace.plugin(others).deadline(LONG).run().await?;
    ensure_code(&promoted, 0)?;
    let tally = load.stop().await?;
    ensure!(tally.errors() == 0 && tally.count("a/v1") == 0, "{tally}");
    // On the other version by now, which is said.
    let moved = namespace.plugin(["evacuate", "a", "--to", "b"]).run().await?;
    ensure_code(&moved, 0)?;
    ensure_says(&moved, "clients on myapp:v2: 100 % now, 100 % then")?;
    ensure_code(&namespace.plugin(["restore", "a"]).run().await?, 0)
}

/// A zone that cannot take clients is refused, with the reasons, and another one is chosen.
#[tokio::test]
async fn a_zone_that_cannot_take_them_is_refused() -> Result<()> {
    let lab = Lab::connect().await?;
    let layout = Layout { pause: "10m", weights: &[20], ..ZONE_LOCAL };
    let namespace = group(&lab, "unfit", layout).await?;
    let pods = namespace.pods(zone("b")).await?;
    let name = pods.first().and_then(|pod| pod.metadata.name.clone()).unwrap_or_default();
    namespace.hold_unready(&name).await?;
    namespace.set_image("test-c", "myapp:v2").await?;
    until_rollout(&namespace, zone("c"), "at its gate", at_gate).await?;
    open_gate(&namespace, zone("c"), 20).await?;

    let mark = lab.audit_mark()?;
    let short = namespace.plugin(["evacuate", "a"]).run().await?;
    ensure_code(&short, 5)?;
    ensure_says(&short, "2 of 3 pods are Ready and would each carry 3.0 times their normal load")?;
    let moving = namespace.plugin(["evacuate", "a", "--to", "c"]).run().await?;
    ensure_code(&moving, 5)?;
    ensure_says(&moving, "zone c is in the middle of an update")?;
    for (line, code) in [(&["evacuate", "test"][..], 2), (&["evacuate", "a", "--to", "a"], 2)] {
        ensure_code(&namespace.plugin(line.iter().copied()).run().await?, code)?;
    }
    ensure!(writes(&lab, &namespace, mark).await?.is_empty(), "refused, and written");

    let forced = namespace.plugin(["evacuate", "a", "--to", "b", "--force"]).run().await?;
    ensure_code(&forced, 0)?;
    ensure_says(&forced, "warning: in zone b, 2 of 3 pods are Ready")?;
    // The zone itself has all its pods, so it takes its clients back.
    ensure_code(&namespace.plugin(["restore", "a"]).run().await?, 0)
}

/// A route that Git owns needs `--force`; who puts it back is named.
#[tokio::test]
async fn a_route_that_git_puts_back_is_named() -> Result<()> {
    let lab = Lab::connect().await?;
    let namespace = lab.namespace("gitroute").await?;
    let objects = RING.objects(&namespace, "myapp:v1");
    let git = namespace.gitops(objects.clone(), Duration::from_mins(10)).await?;
    namespace.await_healthy().await?;
    namespace.await_served().await?;
    let refused = namespace.plugin(["evacuate", "a"]).run().await?;
    ensure_code(&refused, 5)?;
    ensure_says(&refused, "is owned by Argo CD (field manager argocd-controller)")?;
    ensure_says(&refused, "kubectl patch application NAME")?;

    let mut forced = namespace.plugin(["evacuate", "a", "--force"]).deadline(LONG).start()?;
    forced.line("watching for 60 s").await?;
    drop(git);
    let routes: Vec<Value> =
        objects.into_iter().filter(|object| object["kind"] == "VirtualService").collect();
    let _git = namespace.gitops(routes, Duration::from_mins(10)).await?;
    let put_back = forced.finish().await?;
    ensure_code(&put_back, 3)?;
    ensure_says(&put_back, "zone a: the route was put back by `argocd-controller`")?;
    let service = namespace.get(VIRTUAL_SERVICE, "test").await?;
    let routes = service["spec"]["http"].as_array().map_or(0, Vec::len);
    ensure!(routes == ZONES.len() + 1, "{service}");
    Ok(())
}
