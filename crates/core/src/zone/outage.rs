//! Telling a lost zone from a bad release: nodes that are gone, or old pods that fail as well.

use std::fmt;

use super::ZoneFacts;
use crate::scene::Scene;

/// Why a zone counts as lost, whatever version it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outage {
    /// The zone has no node.
    NoNodes,
    /// None of the zone's nodes is Ready.
    NodesNotReady {
        /// How many nodes the zone has.
        nodes: usize,
    },
    /// No stable pod is Ready although the zone wants some.
    NoStablePods {
        /// How many stable pods there are.
        pods: u32,
    },
}

impl fmt::Display for Outage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoNodes => f.write_str("the zone has no node"),
            Self::NodesNotReady { nodes: 1 } => f.write_str("the zone's only node is not Ready"),
            Self::NodesNotReady { nodes } => write!(f, "none of the zone's {nodes} nodes is Ready"),
            Self::NoStablePods { pods: 0 } => f.write_str("the zone has no stable pod"),
            Self::NoStablePods { pods } => {
                write!(f, "none of the zone's {pods} stable pods is Ready")
            }
        }
    }
}

/// Whether the zone is lost. Nodes only count if they could be read.
pub fn outage(scene: &Scene, facts: &ZoneFacts<'_>) -> Option<Outage> {
    if facts.rollout.replicas() == 0 {
        return None;
    }
    lost_nodes(scene, facts).or_else(|| {
        // Where the steps themselves take the stable pods away, their absence says nothing.
        let keeps_stable =
            facts.rollout.spec.strategy.canary.as_ref().is_some_and(|canary| {
                canary.traffic_routing.is_some() && !canary.dynamic_stable_scale
            });
        let stable = facts.stable.as_ref().filter(|_| keeps_stable)?;
        let seen = scene.pods.is_complete() && scene.replica_sets.is_complete();
        (seen && stable.ready() == 0).then(|| Outage::NoStablePods { pods: stable.count() })
    })
}

fn lost_nodes(scene: &Scene, facts: &ZoneFacts<'_>) -> Option<Outage> {
    let topology = facts.zone.topology.as_deref().filter(|_| scene.nodes.is_complete())?;
    let nodes = || scene.nodes.iter().filter(|(_, node)| node.zone() == Some(topology));
    match nodes().count() {
        0 => Some(Outage::NoNodes),
        count if nodes().all(|(_, node)| !node.is_ready()) => {
            Some(Outage::NodesNotReady { nodes: count })
        }
        _ => None,
    }
}
