//! Scenes for tests: built from plain objects, with the statuses that the controllers and kubelet
//! really write.

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

use crate::group::ZoneId;
use crate::layout::{Spec, SpecZone};
use crate::promote::{OnFailure, Pauses, Settings};
use crate::scene::{Coverage, Key, Kind, Meta, Origin, Scene};
use crate::time::Moment;

/// The moment at which every test scene is complete.
pub(crate) fn now() -> Moment {
    let wall: Timestamp = "2026-11-30T12:00:00Z".parse().unwrap();
    Moment { wall, mono: Duration::from_secs(1000) }
}

/// Three zones a, b, c with three pods each and a gate.
pub(crate) fn spec() -> Spec {
    let zone =
        |short: &str| SpecZone { short: short.to_owned(), topology: format!("us-east-1{short}") };
    Spec {
        name: "test".to_owned(),
        namespace: "default".to_owned(),
        image: "myapp:v1".to_owned(),
        zones: vec![zone("a"), zone("b"), zone("c")],
        replicas: 3,
        port: 8080,
        target_port: 9090,
        gate: true,
        weights: vec![10, 20, 50, 80],
        pause: "5m".to_owned(),
        progress_deadline_seconds: 600,
        istio_api_version: "v1".to_owned(),
    }
}

/// A complete scene of these objects; kinds that the domain does not know are ignored.
pub(crate) fn scene_of(objects: &[Value]) -> Scene {
    let mut scene = Scene::default();
    fill(&mut scene.rollouts, objects, "Rollout");
    fill(&mut scene.replica_sets, objects, "ReplicaSet");
    fill(&mut scene.pods, objects, "Pod");
    fill(&mut scene.nodes, objects, "Node");
    fill(&mut scene.services, objects, "Service");
    fill(&mut scene.routes, objects, "VirtualService");
    fill(&mut scene.rules, objects, "DestinationRule");
    fill(&mut scene.autoscalers, objects, "HorizontalPodAutoscaler");
    scene
}

fn fill<T: DeserializeOwned>(kind: &mut Kind<T>, objects: &[Value], name: &str) {
    kind.coverage = Coverage::Complete(now());
    for object in objects.iter().filter(|object| object["kind"] == name) {
        let meta: Meta = serde_json::from_value(object["metadata"].clone()).unwrap();
        let key = Key::new(meta.namespace, meta.name);
        kind.insert(key, serde_json::from_value(object.clone()).unwrap(), Origin::Model);
    }
}

/// The object of this kind and name, to be changed.
pub(crate) fn object<'a>(objects: &'a mut [Value], kind: &str, name: &str) -> &'a mut Value {
    objects
        .iter_mut()
        .find(|object| object["kind"] == kind && object["metadata"]["name"] == name)
        .unwrap_or_else(|| panic!("{kind} {name}"))
}

/// A layout as it is after its first deployment: everything Healthy on the template hash `v1`.
pub(crate) fn running(mut objects: Vec<Value>) -> Vec<Value> {
    let mut added = Vec::new();
    for zone in ["a", "b", "c"] {
        added.push(node(zone));
        let uid = format!("rollout-{zone}");
        let mut replicas = None;
        for rollout in objects.iter_mut().filter(|object| object["kind"] == "Rollout") {
            if rollout["metadata"]["name"] == format!("test-{zone}") {
                let steps =
                    rollout["spec"]["strategy"]["canary"]["steps"].as_array().unwrap().len();
                rollout["metadata"]["uid"] = json!(uid);
                rollout["metadata"]["generation"] = json!(1);
                rollout["metadata"]["annotations"] = json!({"rollout.argoproj.io/revision": "1"});
                rollout["status"] = healthy(steps);
                replicas = rollout["spec"]["replicas"].as_u64();
                added.push(replica_set(rollout, "v1", replicas.unwrap()));
            }
        }
        let template = added.last().unwrap()["spec"]["template"].clone();
        for index in 0..replicas.unwrap_or(0) {
            added.push(pod(zone, "v1", index, &template, "stable"));
        }
    }
    for rule in objects.iter_mut().filter(|object| object["kind"] == "DestinationRule") {
        let base = rule["metadata"]["name"] == "test";
        rule["metadata"]["creationTimestamp"] =
            json!(if base { "2026-11-01T00:00:00Z" } else { "2026-11-01T00:00:01Z" });
        if !base {
            for subset in rule["spec"]["subsets"].as_array_mut().unwrap() {
                subset["labels"]["rollouts-pod-template-hash"] = json!("v1");
            }
        }
    }
    objects.extend(added);
    objects
}

/// Puts a zone into mid-canary on the template hash `v2` with image `myapp:v2`: paused after this
/// weight, which is in force, with this many canary pods.
pub(crate) fn canary(objects: &mut Vec<Value>, zone: &str, weight: u32, pods: u64) {
    let name = format!("test-{zone}");
    let rollout = object(objects, "Rollout", &name);
    rollout["spec"]["template"]["spec"]["containers"][0]["image"] = json!("myapp:v2");
    rollout["metadata"]["generation"] = json!(2);
    let steps = rollout["spec"]["strategy"]["canary"]["steps"].as_array().unwrap();
    let index =
        steps.iter().position(|step| step["setWeight"] == weight).map_or(0, |step| step + 1);
    let status = &mut rollout["status"];
    status["currentPodHash"] = json!("v2");
    status["observedGeneration"] = json!("2");
    status["currentStepIndex"] = json!(index);
    status["phase"] = json!("Paused");
    status["message"] = json!("CanaryPauseStep");
    status["controllerPause"] = json!(true);
    status["pauseConditions"] =
        json!([{"reason": "CanaryPauseStep", "startTime": "2026-11-30T11:59:00Z"}]);
    let rollout = rollout.clone();
    objects.push(replica_set(&rollout, "v2", pods));
    for number in 0..pods {
        objects.push(pod(zone, "v2", number, &rollout["spec"]["template"], "canary"));
    }
    set_weight(objects, zone, weight);
    let subsets =
        &mut object(objects, "DestinationRule", &format!("test-{zone}"))["spec"]["subsets"];
    subsets[1]["labels"]["rollouts-pod-template-hash"] = json!("v2");
}

/// `status` of a finished Rollout as controller v1.9.1 writes it.
pub(crate) fn healthy(steps: usize) -> Value {
    json!({
        "HPAReplicas": 3, "availableReplicas": 3, "blueGreen": {},
        "canary": {"weights": {
            "canary": {"podTemplateHash": "v1", "weight": 0},
            "stable": {"podTemplateHash": "v1", "weight": 100},
        }},
        "conditions": [
            condition("Available", "True", "AvailableReason"),
            condition("Completed", "True", "RolloutCompleted"),
            condition("Progressing", "True", "NewReplicaSetAvailable"),
            condition("Healthy", "True", "RolloutHealthy"),
        ],
        "currentPodHash": "v1", "currentStepIndex": steps, "observedGeneration": "1",
        "phase": "Healthy", "readyReplicas": 3, "replicas": 3, "stableRS": "v1",
        "updatedReplicas": 3,
    })
}

fn condition(kind: &str, status: &str, reason: &str) -> Value {
    json!({
        "type": kind, "status": status, "reason": reason, "message": "",
        "lastUpdateTime": "2026-11-30T11:00:00Z", "lastTransitionTime": "2026-11-30T11:00:00Z",
    })
}

fn node(zone: &str) -> Value {
    json!({
        "kind": "Node",
        "metadata": {"name": format!("node-{zone}1"), "labels": {
            "topology.kubernetes.io/region": "us-east-1",
            "topology.kubernetes.io/zone": format!("us-east-1{zone}"),
        }},
        "status": {"conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]},
    })
}

/// A ReplicaSet of a Rollout's template under this hash.
pub(crate) fn replica_set(rollout: &Value, hash: &str, replicas: u64) -> Value {
    let name = format!("{}-{hash}", rollout["metadata"]["name"].as_str().unwrap());
    let mut template = rollout["spec"]["template"].clone();
    template["metadata"]["labels"]["rollouts-pod-template-hash"] = json!(hash);
    json!({
        "kind": "ReplicaSet",
        "metadata": {
            "name": name, "namespace": "default", "uid": name,
            "creationTimestamp": "2026-11-30T11:00:00Z",
            "labels": {"rollouts-pod-template-hash": hash},
            "ownerReferences": [{
                "kind": "Rollout", "name": rollout["metadata"]["name"],
                "uid": rollout["metadata"]["uid"],
            }],
        },
        "spec": {"replicas": replicas, "template": template},
        "status": {"replicas": replicas, "readyReplicas": replicas, "availableReplicas": replicas},
    })
}

/// A Ready pod on the zone's node.
pub(crate) fn pod(zone: &str, hash: &str, index: u64, template: &Value, role: &str) -> Value {
    let replica_set = format!("test-{zone}-{hash}");
    let mut labels = template["metadata"]["labels"].clone();
    labels["rollouts-pod-template-hash"] = json!(hash);
    labels["zone-rollout.io/role"] = json!(role);
    json!({
        "kind": "Pod",
        "metadata": {
            "name": format!("{replica_set}-{index}"), "namespace": "default",
            "uid": format!("{replica_set}-{index}"), "labels": labels,
            "creationTimestamp": "2026-11-30T11:00:00Z",
            "ownerReferences": [{"kind": "ReplicaSet", "name": replica_set, "uid": replica_set}],
        },
        "spec": {"nodeName": format!("node-{zone}1")},
        "status": {
            "phase": "Running",
            "conditions": [{
                "type": "Ready", "status": "True", "lastTransitionTime": "2026-11-30T11:00:00Z",
            }],
            "containerStatuses": [{
                "name": "app", "ready": true, "restartCount": 0, "started": true,
                "state": {"running": {"startedAt": "2026-11-30T11:00:00Z"}}, "lastState": {},
            }],
        },
    })
}

/// Brings a zone that [`canary`] put into mid-canary to its end: promoted to `v2`, all of it Ready.
pub(crate) fn promoted(objects: &mut Vec<Value>, zone: &str) {
    let name = format!("test-{zone}");
    objects.retain(|object| {
        object["kind"] != "Pod"
            || !object["metadata"]["name"].as_str().is_some_and(|pod| pod.starts_with(&name))
    });
    let rollout = object(objects, "Rollout", &name);
    let steps = rollout["spec"]["strategy"]["canary"]["steps"].as_array().unwrap().len();
    let generation = rollout["metadata"]["generation"].to_string();
    rollout["status"] = healthy(steps);
    rollout["status"]["currentPodHash"] = json!("v2");
    rollout["status"]["stableRS"] = json!("v2");
    rollout["status"]["observedGeneration"] = json!(generation);
    let template = rollout["spec"]["template"].clone();
    for number in 0..3 {
        objects.push(pod(zone, "v2", number, &template, "stable"));
    }
    set_weight(objects, zone, 0);
    let subsets = &mut object(objects, "DestinationRule", &name)["spec"]["subsets"];
    for subset in subsets.as_array_mut().unwrap() {
        subset["labels"]["rollouts-pod-template-hash"] = json!("v2");
    }
}

/// Writes the canary's weight into the zone's route.
pub(crate) fn set_weight(objects: &mut [Value], zone: &str, weight: u32) {
    let name = json!(format!("zone-{zone}-route"));
    let http = &mut object(objects, "VirtualService", "test")["spec"]["http"];
    let mut routes = http.as_array_mut().unwrap().iter_mut();
    let route = routes.find(|route| route["name"] == name).unwrap();
    route["route"][0]["weight"] = json!(100 - weight);
    route["route"][1]["weight"] = json!(weight);
}

/// A promotion of all three zones that only uses what it has to.
pub(crate) fn settings() -> Settings {
    Settings {
        run: "r1".to_owned(),
        order: ["a", "b", "c"].map(|zone| ZoneId(zone.to_owned())).to_vec(),
        skipped: BTreeSet::new(),
        soak: Duration::from_secs(20),
        first_soak: Duration::from_secs(30),
        wait_sync: Duration::from_mins(15),
        hold: false,
        freeze_autoscaler: false,
        force: false,
        pauses: Pauses::Stop,
        on_failure: OnFailure::Leave,
        timeout: None,
        check: false,
        stable_floor: 50,
    }
}
