//! Beginning: from what was read, or from manifests that nobody has applied yet.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::group;
use crate::scene::{
    Condition, Coverage, Key, Kind, Meta, Node, Origin, REGION_LABEL, Rollout, Scene, ZONE_LABEL,
};
use crate::sim::controller::without_additions;
use crate::sim::{Face, Unmodelled, World};
use crate::time::Moment;

/// Nodes that a new world has in each zone.
const NODES: usize = 2;

impl World {
    /// A world with two nodes in each zone, in which these manifests are applied in their order.
    /// Kinds that the domain does not read are left out.
    ///
    /// # Errors
    /// If a manifest cannot be understood, or asks for something that is not modelled.
    pub fn deploy(manifests: &[Value], at: Timestamp, seed: u64) -> Result<Self, Unmodelled> {
        let now = Moment { wall: at, mono: Duration::ZERO };
        let mut scene = Scene::default();
        fill(&mut scene.rollouts, manifests, "Rollout", now, |rollout| &mut rollout.meta)?;
        fill(&mut scene.services, manifests, "Service", now, |service| &mut service.meta)?;
        fill(&mut scene.routes, manifests, "VirtualService", now, |route| &mut route.meta)?;
        fill(&mut scene.rules, manifests, "DestinationRule", now, |rule| &mut rule.meta)?;
        for coverage in [
            &mut scene.replica_sets.coverage,
            &mut scene.pods.coverage,
            &mut scene.autoscalers.coverage,
        ] {
            *coverage = Coverage::Complete(now);
        }
        scene.nodes = nodes(&scene.rollouts, now);
        Self::from_scene(&scene, seed)
    }

    /// Takes over what is there already: which template each ReplicaSet was made from, how many of
    /// its pods serve, and what the controller would be busy with.
    pub(super) fn adopt(&mut self) {
        let replica_sets: Vec<Key> = self.scene.replica_sets.items.keys().cloned().collect();
        for key in replica_sets {
            if let Some(replica_set) = self.replica_set(&key) {
                self.templates.insert(key.clone(), without_additions(&replica_set));
                self.count(&key);
            }
        }
        self.adopt_templates();
        for (key, virtual_service) in self.scene.routes.iter() {
            self.history.record(self.now, super::By::Person, key, Face::from(virtual_service));
        }
        for (key, rule) in self.scene.rules.iter() {
            self.history.record(self.now, super::By::Person, key, Face::from(rule));
        }
        let rollouts: Vec<Key> = self.scene.rollouts.items.keys().cloned().collect();
        for key in &rollouts {
            self.wake(key);
        }
        self.schedule_soon();
    }

    /// The API server fills in defaults in the template of a ReplicaSet, but not in a Rollout's.
    /// Where the controller has seen the Rollout's template, its ReplicaSet is known by its hash.
    fn adopt_templates(&mut self) {
        let observed = self.scene.rollouts.iter().filter(|(_, rollout)| rollout.is_observed());
        let known: Vec<(Key, Value)> = observed
            .filter_map(|(_, rollout)| {
                let current = &rollout.status.current_pod_hash;
                let key = self.replica_sets_of(rollout).into_iter().find(|key| {
                    self.replica_set(key).is_some_and(|candidate| candidate.hash() == current)
                })?;
                Some((key, rollout.spec.template.clone()))
            })
            .collect();
        self.templates.extend(known);
    }
}

fn fill<T: DeserializeOwned>(
    kind: &mut Kind<T>,
    manifests: &[Value],
    name: &str,
    now: Moment,
    meta_of: fn(&mut T) -> &mut Meta,
) -> Result<(), Unmodelled> {
    kind.coverage = Coverage::Complete(now);
    for (index, manifest) in manifests.iter().enumerate() {
        if manifest["kind"] != name {
            continue;
        }
        let mut object: T = serde_json::from_value(manifest.clone()).map_err(|error| {
            let called = manifest["metadata"]["name"].as_str().unwrap_or_default();
            Unmodelled::Broken {
                kind: name.to_owned(),
                name: called.to_owned(),
                why: error.to_string(),
            }
        })?;
        let meta = meta_of(&mut object);
        meta.uid = format!("{}-{}", name.to_lowercase(), meta.name);
        meta.generation = 1;
        "1".clone_into(&mut meta.resource_version);
        // One second apart, so that the oldest one can be told.
        let age = Duration::from_secs((manifests.len() - index) as u64);
        meta.creation_timestamp = now.wall.checked_sub(age).ok();
        kind.insert(meta.key(), object, Origin::Model);
    }
    Ok(())
}

fn nodes(rollouts: &Kind<Rollout>, now: Moment) -> Kind<Node> {
    let zones: BTreeSet<String> =
        rollouts.iter().filter_map(|(_, rollout)| group::topology_of(rollout)).collect();
    let mut nodes = Kind { coverage: Coverage::Complete(now), ..Kind::default() };
    for zone in &zones {
        for number in 1..=NODES {
            let name = format!("node-{zone}-{number}");
            nodes.insert(Key::new("", name.clone()), node(zone, name, now), Origin::Model);
        }
    }
    nodes
}

fn node(zone: &str, name: String, now: Moment) -> Node {
    let region = zone.trim_end_matches(|letter: char| letter.is_ascii_lowercase());
    let labels = BTreeMap::from([
        (ZONE_LABEL.to_owned(), zone.to_owned()),
        (REGION_LABEL.to_owned(), region.to_owned()),
    ]);
    let ready = Condition {
        kind: "Ready".to_owned(),
        status: "True".to_owned(),
        reason: "KubeletReady".to_owned(),
        last_transition_time: Some(now.wall),
        ..Condition::default()
    };
    Node {
        meta: Meta { name, labels, ..Meta::default() },
        status: crate::scene::NodeStatus { conditions: vec![ready] },
        ..Node::default()
    }
}
