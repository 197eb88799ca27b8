//! What a scene knows about one zone, gathered once for all that judge it.

use serde_json::Value;

use crate::group::Zone;
use crate::scene::{Pod, ReplicaSet, Rollout, Scene};
use crate::template::{images, version};
use crate::traffic::{InForce, RouteGap, weight_in_force};

/// The pods of one template in one zone.
#[derive(Debug, Clone)]
pub struct Workload<'a> {
    /// Template hash.
    pub hash: &'a str,
    /// The ReplicaSet, if it is known.
    pub replica_set: Option<&'a ReplicaSet>,
    /// Pods that neither ended nor are being deleted, by name.
    pub pods: Vec<&'a Pod>,
}

/// A zone's Rollout and everything that belongs to it.
#[derive(Debug, Clone)]
pub struct ZoneFacts<'a> {
    /// The zone.
    pub zone: &'a Zone,
    /// Its Rollout.
    pub rollout: &'a Rollout,
    /// The stable pods; nothing before the first deployment has finished.
    pub stable: Option<Workload<'a>>,
    /// The pods of the wanted template, if it is not the stable one.
    pub canary: Option<Workload<'a>>,
    /// Share of traffic that the VirtualServices give the canary.
    pub in_force: Result<InForce, RouteGap>,
    /// Whether the status still tells of an earlier template than the spec.
    is_stale: bool,
}

impl<'a> ZoneFacts<'a> {
    /// Gathers the facts; nothing if the scene has no such Rollout.
    pub fn gather(scene: &'a Scene, zone: &'a Zone) -> Option<Self> {
        let rollout = zone.rollout(scene)?;
        let status = &rollout.status;
        let workload = |hash: &'a str| Workload::gather(scene, rollout, hash);
        let stable = (!status.stable_rs.is_empty()).then(|| workload(&status.stable_rs));
        let moving = !status.current_pod_hash.is_empty() && !rollout.is_fully_promoted();
        Some(Self {
            zone,
            rollout,
            stable,
            canary: moving.then(|| workload(&status.current_pod_hash)),
            in_force: weight_in_force(scene, rollout),
            is_stale: is_stale(scene, rollout),
        })
    }

    /// True while the controller still has to notice something: see [`Rollout::awaits_controller`],
    /// and a status that tells of an earlier template.
    pub fn awaits_controller(&self) -> bool {
        self.rollout.awaits_controller() || self.is_stale
    }

    /// True once the status tells of the template that the spec asks for.
    pub fn is_observed(&self) -> bool {
        self.rollout.is_observed() && !self.is_stale
    }

    /// Version of the stable pods: `myapp:v1`.
    pub fn stable_version(&self) -> Option<String> {
        self.stable.as_ref().and_then(Workload::version)
    }

    /// Version of the canary. The Rollout's own template, since its ReplicaSet may not exist yet.
    pub fn canary_version(&self) -> Option<String> {
        self.canary.as_ref().map(|_| version(&self.rollout.spec.template))
    }

    /// Ready stable pods.
    pub fn stable_ready(&self) -> u32 {
        self.stable.as_ref().map_or(0, Workload::ready)
    }

    /// True while an update is between its start and its promotion.
    pub fn is_in_flight(&self) -> bool {
        self.stable.is_some() && self.canary.is_some()
    }

    /// True once an update has passed its gate, or the gate was opened: traffic or pods may move.
    pub fn has_started(&self) -> bool {
        let (status, index) = (&self.rollout.status, self.rollout.step_index());
        let opened = status.controller_pause && status.pause_conditions.is_empty();
        let passed = self.rollout.gate().is_none_or(|gate| index > gate || index == gate && opened);
        self.is_in_flight() && passed
    }
}

/// `observedGeneration` alone is not enough: on scaling events and manual pauses the controller writes
/// it a moment before it writes the hash of the new template (`syncReplicasOnly` in
/// `rollout/sync.go`), and until then a finished Rollout looks as if it had the new version already.
/// So the ReplicaSet of that hash has to run the images that the template asks for.
fn is_stale(scene: &Scene, rollout: &Rollout) -> bool {
    let hash = &rollout.status.current_pod_hash;
    if hash.is_empty() || rollout.spec.workload_ref.is_some() {
        return false;
    }
    match Workload::gather(scene, rollout, hash).template() {
        Some(template) => images(template) != images(&rollout.spec.template),
        None => scene.replica_sets.is_complete(),
    }
}

/// The template of the Rollout's ReplicaSet with this hash, if it is known.
pub(crate) fn template_of<'a>(
    scene: &'a Scene,
    rollout: &'a Rollout,
    hash: &'a str,
) -> Option<&'a Value> {
    Workload::gather(scene, rollout, hash).template()
}

impl<'a> Workload<'a> {
    fn gather(scene: &'a Scene, rollout: &'a Rollout, hash: &'a str) -> Self {
        let replica_set =
            scene.replica_sets.iter().map(|(_, replica_set)| replica_set).find(|candidate| {
                candidate.hash() == hash && candidate.meta.is_owned_by(&rollout.meta.uid)
            });
        let pods = scene
            .pods
            .iter()
            .map(|(_, pod)| pod)
            .filter(|pod| pod.is_active() && pod.hash() == hash)
            .filter(|pod| replica_set.is_some_and(|owner| pod.meta.is_owned_by(&owner.meta.uid)))
            .collect();
        Self { hash, replica_set, pods }
    }

    /// Ready pods.
    pub fn ready(&self) -> u32 {
        u32::try_from(self.pods.iter().filter(|pod| pod.is_ready()).count()).unwrap_or(u32::MAX)
    }

    /// Pods that neither ended nor are being deleted.
    pub fn count(&self) -> u32 {
        u32::try_from(self.pods.len()).unwrap_or(u32::MAX)
    }

    /// The template, if the ReplicaSet is known.
    pub fn template(&self) -> Option<&'a Value> {
        self.replica_set.map(|replica_set| &replica_set.spec.template)
    }

    /// Version of the template: `myapp:v1`.
    pub fn version(&self) -> Option<String> {
        self.template().map(version)
    }
}
