//! What the stories have in common: groups at their gates, and the cluster's own history.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Result, ensure};
use futures::StreamExt;
use kube::api::DynamicObject;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, watcher};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use zone_lab::kinds::{ROLLOUT, VIRTUAL_SERVICE};
use zone_lab::{AuditMark, AuditRecord, Finished, Lab, Namespace, ZONES, Zone};
use zone_rollout_core::layout::{self, Spec};

/// How long one promotion may take in these tests.
pub(crate) const LONG: Duration = Duration::from_mins(4);
/// How long the controllers may take for one thing.
pub(crate) const SOON: Duration = Duration::from_secs(30);
/// Soaks short enough for tests.
pub(crate) const SOAKS: [&str; 4] = ["--soak", "3s", "--first-soak", "3s"];
/// What `promote` is called with everywhere.
pub(crate) const PROMOTE: [&str; 3] = ["promote", "--sequential", "--yes"];

/// Start of the user agent of the plugin.
const AGENT: &str = "kubectl-zone_rollout/";

pub(crate) fn zone(short: &str) -> Zone {
    Zone::named(short)
}

/// A namespace with three zones on `myapp:v1`, served.
pub(crate) async fn group(lab: &Lab, stem: &str, layout: Layout) -> Result<Namespace> {
    let namespace = lab.namespace(stem).await?;
    namespace.deploy(&layout.objects(&namespace, "myapp:v1")).await?;
    namespace.await_served().await?;
    Ok(namespace)
}

/// Which layout, and how it differs from the usual one.
#[derive(Clone, Copy)]
pub(crate) struct Layout {
    pub(crate) ring: bool,
    pub(crate) gate: bool,
    pub(crate) pause: &'static str,
    pub(crate) deadline: u32,
    pub(crate) weights: &'static [u32],
}

pub(crate) const RING: Layout =
    Layout { ring: true, gate: true, pause: "2s", deadline: 60, weights: &[10, 20, 50, 80] };
pub(crate) const ZONE_LOCAL: Layout = Layout { ring: false, ..RING };

impl Layout {
    pub(crate) fn objects(self, namespace: &Namespace, image: &str) -> Vec<Value> {
        let spec = Spec {
            gate: self.gate,
            pause: self.pause.to_owned(),
            progress_deadline_seconds: self.deadline,
            weights: self.weights.to_vec(),
            ..namespace.spec(image)
        };
        if self.ring { layout::ring(&spec) } else { layout::zone_local(&spec) }
    }
}

/// Asks all zones for this image and waits until they are at their gates.
pub(crate) async fn ask_all(namespace: &Namespace, image: &str) -> Result<()> {
    for zone in ZONES {
        namespace.set_image(&rollout(zone), image).await?;
    }
    for zone in ZONES {
        let name = rollout(zone);
        let what = format!("{name} to be at its gate with {image}");
        namespace
            .until(what, SOON, async || {
                Ok(at_gate(&namespace.get(ROLLOUT, &name).await?).then_some(()))
            })
            .await?;
    }
    Ok(())
}

pub(crate) fn rollout(zone: Zone) -> String {
    format!("test-{}", zone.short)
}

pub(crate) fn at_gate(rollout: &Value) -> bool {
    let status = &rollout["status"];
    let generation = rollout["metadata"]["generation"].to_string();
    status["observedGeneration"].as_str() == Some(&generation)
        && status["currentStepIndex"] == 0
        && status["pauseConditions"][0]["reason"] == "CanaryPauseStep"
}

/// Waits until this is true of a zone's Rollout.
pub(crate) async fn until_rollout(
    namespace: &Namespace,
    zone: Zone,
    what: &str,
    is: impl Fn(&Value) -> bool,
) -> Result<Value> {
    let name = rollout(zone);
    namespace
        .until(format!("{name}: {what}"), LONG, async || {
            let rollout = namespace.get(ROLLOUT, &name).await?;
            Ok(is(&rollout).then_some(rollout))
        })
        .await
}

/// Makes stable pods of a zone fail their readiness probes, and waits until their ReplicaSet says so: what
/// the Rollouts controller does next rests on that.
pub(crate) async fn lose_ready(namespace: &Namespace, zone: Zone, pods: &[String]) -> Result<()> {
    let ready = async || {
        let replica_set = stable_replica_set(namespace, zone).await?;
        Ok::<_, anyhow::Error>(replica_set["status"]["readyReplicas"].as_u64().unwrap_or(0))
    };
    let left = ready().await?.saturating_sub(pods.len() as u64);
    for pod in pods {
        namespace.hold_unready(pod).await?;
    }
    let what = format!("{left} stable pods of zone {} Ready in their ReplicaSet", zone.short);
    namespace.until(what, SOON, async || Ok((ready().await? == left).then_some(()))).await
}

async fn stable_replica_set(namespace: &Namespace, zone: Zone) -> Result<Value> {
    let rollout = namespace.get(ROLLOUT, &rollout(zone)).await?;
    let stable = &rollout["status"]["stableRS"];
    let name = format!("test-{}-{}", zone.short, stable.as_str().unwrap_or_default());
    namespace.get(zone_lab::kinds::REPLICA_SET, &name).await
}

/// The image that a zone's stable pods run.
pub(crate) async fn stable_image(namespace: &Namespace, zone: Zone) -> Result<String> {
    let replica_set = stable_replica_set(namespace, zone).await?;
    let image = &replica_set["spec"]["template"]["spec"]["containers"][0]["image"];
    Ok(image.as_str().unwrap_or_default().to_owned())
}

/// Fails unless every zone is on this image.
pub(crate) async fn ensure_all_on(namespace: &Namespace, image: &str) -> Result<()> {
    for zone in ZONES {
        ensure!(stable_image(namespace, zone).await? == image, "zone {}", zone.short);
    }
    Ok(())
}

/// The canary's weight in the route of a zone.
pub(crate) async fn weight(namespace: &Namespace, zone: Zone) -> Result<u64> {
    let virtual_service = namespace.get(VIRTUAL_SERVICE, "test").await?;
    Ok(canary_weight(&virtual_service, zone))
}

/// Opens a zone's gate as people do, and waits until its canary has this weight.
pub(crate) async fn open_gate(namespace: &Namespace, zone: Zone, wanted: u64) -> Result<()> {
    let name = rollout(zone);
    ensure_code(&namespace.argo(["promote", &name]).run().await?, 0)?;
    let reached = async || Ok((weight(namespace, zone).await? == wanted).then_some(()));
    until_touched(namespace, &name, format!("{name} at {wanted} %"), reached).await
}

/// Waits for what the controller is to do with a Rollout. One that was just writing may have missed the
/// change, and is touched until it looks.
pub(crate) async fn until_touched<T>(
    namespace: &Namespace,
    name: &str,
    what: String,
    mut look: impl AsyncFnMut() -> Result<Option<T>>,
) -> Result<T> {
    let mut looks = 0;
    namespace
        .until(what, SOON, async || {
            looks += 1;
            if looks % 20 == 0 {
                let touch = json!({"metadata": {"annotations": {"touched": looks.to_string()}}});
                namespace.patch(ROLLOUT, name, &touch).await?;
            }
            look().await
        })
        .await
}

fn canary_weight(virtual_service: &Value, zone: Zone) -> u64 {
    let name = format!("zone-{}-route", zone.short);
    virtual_service["spec"]["http"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|route| route["name"] == name)
        .and_then(|route| route["route"][1]["weight"].as_u64())
        .unwrap_or(0)
}

/// Fails with everything that was printed unless the run ended with this code.
pub(crate) fn ensure_code(finished: &Finished, code: i32) -> Result<()> {
    ensure!(finished.code() == Some(code), "exit code is not {code}: {finished}");
    Ok(())
}

/// Fails with everything that was printed unless some output has this text.
pub(crate) fn ensure_says(finished: &Finished, text: &str) -> Result<()> {
    let said = finished.stdout.contains(text) || finished.stderr.contains(text);
    ensure!(said, "it does not say `{text}`: {finished}");
    Ok(())
}

/// What the plugin wrote to Rollouts and VirtualServices of a namespace since a mark.
pub(crate) async fn writes(
    lab: &Lab,
    namespace: &Namespace,
    since: AuditMark,
) -> Result<Vec<AuditRecord>> {
    let records = lab.audit_since(since).await?;
    Ok(records
        .into_iter()
        .filter(|record| record.object.namespace == namespace.name())
        .filter(|record| record.user_agent.starts_with(AGENT) && record.is_write())
        .filter(|record| record.object.resource != "leases")
        .collect())
}

/// The Rollouts whose status the plugin has changed since a mark, in order: gates that it opened, and
/// updates that it gave up. A controller that missed a change may have been touched besides.
pub(crate) async fn told_to_move(
    lab: &Lab,
    namespace: &Namespace,
    since: AuditMark,
) -> Result<Vec<String>> {
    let landed = writes(lab, namespace, since)
        .await?
        .into_iter()
        .filter(|write| write.response.code == 200 && write.object.subresource == "status");
    Ok(landed.map(|write| write.object.name).collect())
}

/// Every state of the group that the API server has told, in order.
pub(crate) struct History {
    seen: Arc<Mutex<Vec<Moment>>>,
    watches: Vec<JoinHandle<()>>,
}

/// The group after one change.
#[derive(Clone, Default)]
struct Moment {
    rollouts: [Value; 3],
    virtual_service: Value,
}

impl History {
    /// Begins to record.
    pub(crate) fn record(namespace: &Namespace) -> Self {
        let seen = Arc::new(Mutex::new(vec![Moment::default()]));
        let watches = [ROLLOUT, VIRTUAL_SERVICE]
            .into_iter()
            .map(|kind| {
                let api: kube::Api<DynamicObject> = namespace.objects(kind);
                let seen = Arc::clone(&seen);
                tokio::spawn(async move {
                    let events = watcher(api, watcher::Config::default());
                    let mut objects = std::pin::pin!(events.default_backoff().applied_objects());
                    while let Some(object) = objects.next().await {
                        let Ok(object) = object.map(serde_json::to_value) else {
                            continue;
                        };
                        let mut seen = seen.lock().expect("no watch panics");
                        let next = seen.last().cloned().unwrap_or_default();
                        seen.push(next.with(object.expect("an object is JSON")));
                    }
                })
            })
            .collect();
        Self { seen, watches }
    }

    /// Fails if two zones were ever on their way at the same time, or their canaries took traffic.
    pub(crate) fn ensure_one_at_a_time(&self) -> Result<()> {
        for moment in self.seen.lock().expect("no watch panics").iter() {
            let moving = moment.moving();
            ensure!(moving.len() <= 1, "zones {moving:?} moved at the same time");
            let loaded: Vec<&str> = ZONES
                .into_iter()
                .filter(|zone| canary_weight(&moment.virtual_service, *zone) > 0)
                .map(|zone| zone.short)
                .collect();
            ensure!(loaded.len() <= 1, "canaries of {loaded:?} had traffic at the same time");
        }
        Ok(())
    }

    /// The order in which zones were seen on their way.
    pub(crate) fn order(&self) -> Vec<String> {
        let mut order: Vec<String> = Vec::new();
        for moment in self.seen.lock().expect("no watch panics").iter() {
            for zone in moment.moving() {
                if order.last() != Some(&zone) {
                    order.push(zone);
                }
            }
        }
        order
    }

    /// The weights that a zone's canary had in its route, in order: without the 0 at both ends, and the
    /// 100 in the moment of its promotion.
    pub(crate) fn weights(&self, zone: Zone) -> Vec<u64> {
        let mut weights: Vec<u64> = Vec::new();
        for moment in self.seen.lock().expect("no watch panics").iter() {
            let weight = canary_weight(&moment.virtual_service, zone);
            if weights.last() != Some(&weight) {
                weights.push(weight);
            }
        }
        weights.retain(|weight| (1..100).contains(weight));
        weights
    }

    /// The step indices that a zone went through.
    pub(crate) fn steps(&self, zone: Zone) -> Vec<u64> {
        let index = ZONES.into_iter().position(|other| other.short == zone.short).unwrap_or(0);
        let mut steps: Vec<u64> = Vec::new();
        for moment in self.seen.lock().expect("no watch panics").iter() {
            let status = &moment.rollouts[index]["status"];
            if let Some(step) = status["currentStepIndex"].as_u64()
                && steps.last() != Some(&step)
            {
                steps.push(step);
            }
        }
        steps
    }
}

impl Drop for History {
    fn drop(&mut self) {
        for watch in &self.watches {
            watch.abort();
        }
    }
}

impl Moment {
    fn with(mut self, object: Value) -> Self {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        match ZONES.into_iter().position(|zone| rollout(zone) == name) {
            Some(index) => self.rollouts[index] = object,
            None => self.virtual_service = object,
        }
        self
    }

    /// Zones that have passed their gate and are not at rest.
    fn moving(&self) -> Vec<String> {
        ZONES
            .into_iter()
            .zip(&self.rollouts)
            .filter(|(_, rollout)| {
                let status = &rollout["status"];
                let generation = rollout["metadata"]["generation"].to_string();
                let observed = status["observedGeneration"] == generation;
                let in_flight = status["stableRS"] != status["currentPodHash"];
                let gated = rollout["spec"]["strategy"]["canary"]["steps"][0]["pause"].is_object();
                let held = rollout["spec"]["paused"] == true && status["currentStepIndex"] == 0;
                let waits = held || gated && status["currentStepIndex"] == 0;
                observed && in_flight && !waits
            })
            .map(|(zone, _)| zone.short.to_owned())
            .collect()
    }
}
