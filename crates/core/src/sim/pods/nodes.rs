//! Nodes by zone: where pods are scheduled, and what a lost zone means to those that run there.

use std::sync::Arc;
use std::time::Duration;

use super::replica_set_of;
use crate::group::topology_of;
use crate::scene::{Condition, Key, Node, Origin, Pod};
use crate::sim::World;
use crate::sim::timers::Timer;

/// How long pods stay on a node that does not report: the toleration that every pod gets
/// (`DefaultTolerationSeconds` of Kubernetes).
const TOLERATED: Duration = Duration::from_mins(5);

impl World {
    pub(in crate::sim) fn schedule_soon(&mut self) {
        let at = self.now.mono + self.random.span(20, 80);
        self.timers.set(at, Timer::Schedule);
    }

    /// Gives every pod without a node one of its zone, or says that there is none.
    pub(in crate::sim) fn schedule_all(&mut self) {
        let waiting: Vec<Arc<Pod>> = self
            .scene
            .pods
            .items
            .values()
            .map(|seen| &seen.value)
            .filter(|pod| pod.spec.node_name.is_empty() && pod.is_active())
            .map(Arc::clone)
            .collect();
        for pod in waiting {
            let node = self.node_for(&pod);
            self.bind(Arc::unwrap_or_clone(pod), node);
        }
    }

    /// The node of the pod's zone that has the fewest pods.
    fn node_for(&self, pod: &Pod) -> Option<String> {
        let owner = replica_set_of(pod).and_then(|key| self.replica_set(&key))?;
        let rollout = self.owner_of(&owner).and_then(|key| self.rollout(&key))?;
        let zone = topology_of(&rollout);
        let load = |name: &str| {
            self.scene.pods.iter().filter(|(_, pod)| pod.spec.node_name == name).count()
        };
        let open = self.scene.nodes.iter().map(|(_, node)| node).filter(|node| {
            node.is_ready()
                && !node.spec.unschedulable
                && zone.as_deref().is_none_or(|zone| node.zone() == Some(zone))
        });
        open.map(|node| node.meta.name.clone()).min_by_key(|name| load(name))
    }

    fn bind(&mut self, mut pod: Pod, node: Option<String>) {
        let scheduled = node.is_some();
        pod.status.conditions.retain(|condition| condition.kind != "PodScheduled");
        pod.status.conditions.push(Condition {
            kind: "PodScheduled".to_owned(),
            status: if scheduled { "True" } else { "False" }.to_owned(),
            reason: if scheduled { "" } else { "Unschedulable" }.to_owned(),
            message: if scheduled { "" } else { "no node of its zone takes it" }.to_owned(),
            last_transition_time: Some(self.stamp()),
        });
        let key = pod.meta.key();
        pod.spec.node_name = node.unwrap_or_default();
        self.put_pod(pod);
        if scheduled {
            let at = self.now.mono + self.random.span(600, 1400);
            self.timers.set(at, Timer::Started(key));
        }
    }

    fn nodes_in(&self, zone: &str) -> Vec<Node> {
        let nodes = self.scene.nodes.iter().map(|(_, node)| node);
        nodes.filter(|node| node.zone() == Some(zone)).cloned().collect()
    }

    fn put_node(&mut self, node: Node) {
        self.scene.nodes.insert(node.meta.key(), node, Origin::Model);
    }

    /// A node that does not report is no longer Ready, nor are its pods; they go on running, as far as
    /// anybody can tell, and are replaced only after five minutes.
    pub(in crate::sim) fn set_nodes(&mut self, zone: &str, up: bool) {
        for mut node in self.nodes_in(zone) {
            for condition in &mut node.status.conditions {
                if condition.kind == "Ready" {
                    let (status, reason) = if up {
                        ("True", "KubeletReady")
                    } else {
                        ("Unknown", "NodeStatusUnknown")
                    };
                    status.clone_into(&mut condition.status);
                    reason.clone_into(&mut condition.reason);
                    condition.last_transition_time = Some(self.now.wall);
                }
            }
            let name = node.meta.name.clone();
            self.put_node(node);
            self.pods_on(&name, up);
        }
        self.schedule_soon();
    }

    fn pods_on(&mut self, node: &str, up: bool) {
        let pods: Vec<Pod> = self
            .scene
            .pods
            .iter()
            .map(|(_, pod)| pod)
            .filter(|pod| pod.spec.node_name == node)
            .cloned()
            .collect();
        for pod in pods {
            let key = pod.meta.key();
            if up {
                self.started(&key);
            } else {
                if pod.is_ready() {
                    self.ready(pod, false, "NodeNotReady");
                }
                self.timers.set(self.now.mono + TOLERATED, Timer::Evicted(key));
            }
        }
    }

    /// A pod that is still on a lost node is replaced.
    pub(in crate::sim) fn evicted(&mut self, key: &Key) {
        let lost = self.pod(key).is_some_and(|pod| self.is_on_lost_node(&pod));
        if lost {
            // It is there: it was just looked up.
            let _found = self.delete_pod(key);
        }
    }

    pub(super) fn is_on_lost_node(&self, pod: &Pod) -> bool {
        let node = Key::new("", pod.spec.node_name.clone());
        self.scene.nodes.get(&node).is_none_or(|node| !node.is_ready())
    }

    pub(in crate::sim) fn cordon(&mut self, zone: &str, open: bool) {
        for mut node in self.nodes_in(zone) {
            node.spec.unschedulable = !open;
            self.put_node(node);
        }
        self.schedule_soon();
    }
}
