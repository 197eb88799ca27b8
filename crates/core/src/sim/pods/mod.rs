//! ReplicaSets and their pods, as the ReplicaSet controller, the scheduler and kubelet treat them.

mod kubelet;
mod nodes;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::scene::{Condition, Key, Meta, OwnerReference, Pod, PodPhase, ReplicaSet};
use crate::sim::act::NoSuchObject;
use crate::sim::{By, World};

impl World {
    /// Scales a ReplicaSet and makes or takes away pods at once.
    pub(super) fn scale(&mut self, key: &Key, mut replica_set: ReplicaSet, wanted: u32) {
        replica_set.spec.replicas = Some(wanted);
        self.put_replica_set(By::Controller, replica_set);
        self.fill_up(key);
    }

    /// Brings the number of pods to what is wanted; unready and young pods go first
    /// (`ActivePods` in `pkg/controller/controller_utils.go` of Kubernetes).
    pub(super) fn fill_up(&mut self, key: &Key) {
        let Some(replica_set) = self.replica_set(key) else { return };
        let mut pods = self.pods_of(&replica_set);
        pods.sort_by_key(|pod| (pod.is_ready(), std::cmp::Reverse(pod.meta.creation_timestamp)));
        let wanted = replica_set.wanted() as usize;
        for pod in pods.iter().take(pods.len().saturating_sub(wanted)) {
            self.scene.pods.items.remove(&pod.meta.key());
        }
        for _ in pods.len()..wanted {
            self.make_pod(&replica_set);
        }
        if pods.len() < wanted {
            self.schedule_soon();
        }
        self.count(key);
    }

    pub(super) fn pods_of(&self, replica_set: &ReplicaSet) -> Vec<Arc<Pod>> {
        let of = |pod: &Pod| pod.is_active() && pod.meta.is_owned_by(&replica_set.meta.uid);
        let seen = self.scene.pods.items.values().filter(|seen| of(&seen.value));
        seen.map(|seen| Arc::clone(&seen.value)).collect()
    }

    fn make_pod(&mut self, replica_set: &ReplicaSet) {
        let name = format!("{}-{}", replica_set.meta.name, self.pod_suffix());
        let owner = OwnerReference {
            kind: "ReplicaSet".to_owned(),
            name: replica_set.meta.name.clone(),
            uid: replica_set.meta.uid.clone(),
        };
        let mut pod = Pod {
            meta: Meta {
                uid: name.clone(),
                name,
                namespace: replica_set.meta.namespace.clone(),
                labels: labels_of(replica_set),
                owner_references: vec![owner],
                creation_timestamp: Some(self.stamp()),
                ..Meta::default()
            },
            ..Pod::default()
        };
        pod.status.phase = PodPhase::Pending;
        self.put_pod(pod);
    }

    /// Pods are numbered; five letters and digits, as Kubernetes appends them.
    fn pod_suffix(&mut self) -> String {
        self.version += 1;
        super::controller::encoded(self.version.wrapping_mul(0x9e37_79b9_7f4a_7c15), 5)
    }

    /// Notes in the status of a ReplicaSet how many pods it has, and how many serve.
    pub(super) fn count(&mut self, key: &Key) {
        let Some(replica_set) = self.replica_set(key) else { return };
        let pods = self.pods_of(&replica_set);
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let all = number(pods.len());
        let available = number(pods.iter().filter(|pod| pod.is_ready()).count());
        let status = &replica_set.status;
        if (status.replicas, status.available_replicas) != (Some(all), available) {
            let mut replica_set = Arc::unwrap_or_clone(replica_set);
            replica_set.status.replicas = Some(all);
            replica_set.status.available_replicas = available;
            self.put_replica_set(By::Kubernetes, replica_set);
        }
    }

    fn count_around(&mut self, pod: &Pod) {
        if let Some(key) = replica_set_of(pod) {
            self.count(&key);
        }
    }

    pub(super) fn delete_pod(&mut self, key: &Key) -> Result<(), NoSuchObject> {
        let gone = self.scene.pods.items.remove(key).ok_or_else(|| NoSuchObject(key.clone()))?;
        if let Some(replica_set) = replica_set_of(&gone.value) {
            self.fill_up(&replica_set);
        }
        Ok(())
    }

    pub(super) fn set_ready(&mut self, key: &Key, ready: bool) -> Result<(), NoSuchObject> {
        let pod = self.pod(key).ok_or_else(|| NoSuchObject(key.clone()))?;
        let reason = if ready { "" } else { "ContainersNotReady" };
        self.ready(Arc::unwrap_or_clone(pod), ready, reason);
        Ok(())
    }

    /// Writes the condition Ready of a pod.
    fn ready(&mut self, mut pod: Pod, ready: bool, reason: &str) {
        let status = if ready { "True" } else { "False" };
        if pod.condition("Ready").is_none_or(|condition| condition.status != status) {
            pod.status.conditions.retain(|condition| condition.kind != "Ready");
            pod.status.conditions.push(Condition {
                kind: "Ready".to_owned(),
                status: status.to_owned(),
                reason: reason.to_owned(),
                message: String::new(),
                last_transition_time: Some(self.stamp()),
            });
            self.put_pod(pod.clone());
            self.count_around(&pod);
        } else {
            self.put_pod(pod);
        }
    }
}

fn labels_of(replica_set: &ReplicaSet) -> BTreeMap<String, String> {
    let labels = replica_set.spec.template.pointer("/metadata/labels");
    let pairs = labels.and_then(serde_json::Value::as_object).into_iter().flatten();
    pairs.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

fn replica_set_of(pod: &Pod) -> Option<Key> {
    let owner = pod.meta.owner_references.first()?;
    Some(Key::new(pod.meta.namespace.clone(), owner.name.clone()))
}
