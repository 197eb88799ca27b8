//! Labels that pods carry for as long as they are stable or canary (`stableMetadata`,
//! `canaryMetadata`).

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;

use super::Sync;
use super::template::{EPHEMERAL, ephemeral_labels};
use crate::scene::{Key, PodMetadata};
use crate::sim::{By, World};

impl Sync<'_> {
    /// `reconcileEphemeralMetadata` (`rollout/ephemeralmetadata.go`).
    pub(super) fn reconcile_ephemeral_metadata(&mut self) {
        let Some(canary) = &self.rollout.spec.strategy.canary else { return };
        let labels = |metadata: &Option<PodMetadata>| {
            metadata.as_ref().map(|metadata| metadata.labels.clone()).unwrap_or_default()
        };
        let (of_stable, of_canary) =
            (labels(&canary.stable_metadata), labels(&canary.canary_metadata));
        let status = &self.rollout.status;
        let at_rest = status.stable_rs.is_empty() || status.stable_rs == self.target().hash();
        let new = self.target.clone();
        self.world.label(&new, if at_rest { &of_stable } else { &of_canary });
        if let Some(stable) = self.stable.clone().filter(|_| !at_rest) {
            self.world.label(&stable, &of_stable);
        }
        for other in self.others() {
            self.world.label(&other, &BTreeMap::new());
        }
    }
}

impl World {
    /// Replaces the labels of a role, on a ReplicaSet and then on its pods (`syncEphemeralMetadata`).
    fn label(&mut self, key: &Key, labels: &BTreeMap<String, String>) {
        let Some(replica_set) = self.replica_set(key) else { return };
        let before = ephemeral_labels(&replica_set);
        if before == *labels {
            return;
        }
        let mut replica_set = Arc::unwrap_or_clone(replica_set);
        if let Some(all) = replica_set.spec.template["metadata"]["labels"].as_object_mut() {
            all.retain(|label, _| !before.contains_key(label));
            all.extend(labels.iter().map(|(label, value)| (label.clone(), json!(value))));
        }
        let note = json!({ "labels": labels }).to_string();
        replica_set.meta.annotations.insert(EPHEMERAL.to_owned(), note);
        for pod in self.pods_of(&replica_set) {
            let mut pod = Arc::unwrap_or_clone(pod);
            pod.meta.labels.retain(|label, _| !before.contains_key(label));
            pod.meta.labels.extend(labels.clone());
            self.put_pod(pod);
        }
        self.put_replica_set(By::Controller, replica_set);
    }
}
