//! A scene as it will be once its objects are applied. Files hold no pods; what traffic does can
//! still be told if each workload's pods are assumed: as many as it wants, in the zones that its
//! affinity allows, evenly, Ready and stable, with the template hash and the ephemeral labels that
//! the Rollouts controller gives them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{
    DestinationRule, Key, Kind, Node, Origin, POD_HASH_LABEL, Pod, REGION_LABEL, Rollout, Scene,
    Workload, ZONE_LABEL, labels_of,
};
use std::sync::Arc;

/// More pods than this of one workload change no share that is worth showing.
const MOST_PODS: u32 = 60;

impl Scene {
    /// The scene with pods, and true if they had to be assumed.
    #[must_use]
    pub fn with_assumed_pods(&self) -> (Self, bool) {
        if self.pods.is_known() {
            return (self.clone(), false);
        }
        let mut assumed = Assumed { nodes: nodes_by_zone(self), scene: self.clone() };
        for (_, rollout) in self.rollouts.iter() {
            assumed.add_rollout(rollout);
        }
        let owned: BTreeSet<Key> =
            self.rollouts.iter().filter_map(|(_, r)| workload_ref(r)).collect();
        for (key, workload) in self.deployments.iter().filter(|(key, _)| !owned.contains(key)) {
            assumed.add(
                key,
                workload.spec.replicas.unwrap_or(1),
                &workload.spec.template,
                &BTreeMap::new(),
            );
        }
        for (key, workload) in self.stateful_sets.iter() {
            assumed.add(
                key,
                workload.spec.replicas.unwrap_or(1),
                &workload.spec.template,
                &BTreeMap::new(),
            );
        }
        (assumed.scene, true)
    }
}

impl Scene {
    /// The scene after the Rollouts controller has been at the DestinationRules that several Rollouts
    /// refer to: each Rollout drops the subsets that are not its own (`UpdateHash`).
    #[must_use]
    pub fn with_shared_rules_rewritten(&self) -> Self {
        let mut scene = self.clone();
        for (_, rollout) in self.rollouts.iter() {
            let Some(own) = rollout.destination_rule() else { continue };
            let key = Key::new(&rollout.meta.namespace, &own.name);
            change(&mut scene.rules, &key, |rule: &mut DestinationRule| {
                let names = [&own.stable_subset_name, &own.canary_subset_name];
                rule.spec.subsets.retain(|subset| names.contains(&&subset.name));
            });
        }
        scene
    }
}

/// The pod template of a Rollout, wherever it lives.
pub fn template_of<'a>(scene: &'a Scene, rollout: &'a Rollout) -> &'a Value {
    let referred = workload_ref(rollout).and_then(|key| scene.deployments.get(&key));
    referred.map_or(&rollout.spec.template, |workload: &Workload| &workload.spec.template)
}

fn workload_ref(rollout: &Rollout) -> Option<Key> {
    let reference = rollout.spec.workload_ref.as_ref()?;
    (reference["kind"] == "Deployment").then_some(())?;
    Some(Key::new(&rollout.meta.namespace, reference["name"].as_str()?))
}

/// The zones in which pods of a template may run; nothing if any will do.
pub fn allowed_zones(template: &Value) -> Option<BTreeSet<String>> {
    let selected =
        template.pointer("/spec/nodeSelector").and_then(|selector| selector.get(ZONE_LABEL));
    if let Some(zone) = selected.and_then(Value::as_str) {
        return Some(BTreeSet::from([zone.to_owned()]));
    }
    let terms = template
        .pointer(
            "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms",
        )?
        .as_array()?;
    let zones = terms.iter().map(zones_of_term).collect::<Option<Vec<_>>>()?;
    Some(zones.into_iter().flatten().collect())
}

fn zones_of_term(term: &Value) -> Option<BTreeSet<String>> {
    term.get("matchExpressions")?.as_array()?.iter().find_map(|expression| {
        let named = expression["key"] == ZONE_LABEL && expression["operator"] == "In";
        let values = expression.get("values")?.as_array()?;
        named.then(|| values.iter().filter_map(Value::as_str).map(str::to_owned).collect())
    })
}

fn nodes_by_zone(scene: &Scene) -> BTreeMap<String, Vec<String>> {
    let mut nodes: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (key, node) in scene.nodes.iter() {
        if let Some(zone) = node.zone().filter(|_| !node.spec.unschedulable) {
            nodes.entry(zone.to_owned()).or_default().push(key.name.clone());
        }
    }
    nodes
}

struct Assumed {
    scene: Scene,
    nodes: BTreeMap<String, Vec<String>>,
}

impl Assumed {
    fn add_rollout(&mut self, rollout: &Rollout) {
        let key = rollout.meta.key();
        let canary = rollout.spec.strategy.canary.as_ref();
        let stable = canary.and_then(|canary| canary.stable_metadata.as_ref());
        let mut labels = stable.map(|stable| stable.labels.clone()).unwrap_or_default();
        let hash = match rollout.status.stable_rs.as_str() {
            "" => format!("hash-of-{}", key.name),
            written => written.to_owned(),
        };
        labels.insert(POD_HASH_LABEL.to_owned(), hash.clone());
        let template = template_of(&self.scene, rollout).clone();
        self.add(&key, rollout.replicas(), &template, &labels);
        self.pin_rule(rollout, &hash);
        self.pin_services(rollout, &hash);
    }

    /// The controller adds the hash to the two subsets of the Rollout's own rule.
    fn pin_rule(&mut self, rollout: &Rollout, hash: &str) {
        let Some(reference) = rollout.destination_rule() else { return };
        let key = Key::new(&rollout.meta.namespace, &reference.name);
        change(&mut self.scene.rules, &key, |rule: &mut DestinationRule| {
            for subset in &mut rule.spec.subsets {
                let own = [&reference.stable_subset_name, &reference.canary_subset_name];
                if own.contains(&&subset.name) {
                    subset
                        .labels
                        .entry(POD_HASH_LABEL.to_owned())
                        .or_insert_with(|| hash.to_owned());
                }
            }
        });
    }

    /// The controller adds the hash to the selectors of the stable and the canary Service.
    fn pin_services(&mut self, rollout: &Rollout, hash: &str) {
        let canary = rollout.spec.strategy.canary.as_ref();
        let names = canary.map(|canary| [&canary.stable_service, &canary.canary_service]);
        for name in names.into_iter().flatten().flatten() {
            let key = Key::new(&rollout.meta.namespace, name);
            change(&mut self.scene.services, &key, |service| {
                let selector = &mut service.spec.selector;
                selector.entry(POD_HASH_LABEL.to_owned()).or_insert_with(|| hash.to_owned());
            });
        }
    }

    fn add(&mut self, owner: &Key, wanted: u32, template: &Value, more: &BTreeMap<String, String>) {
        let mut labels = labels_of(template);
        labels.extend(more.iter().map(|(key, value)| (key.clone(), value.clone())));
        let zones: Vec<String> = match allowed_zones(template) {
            Some(zones) => zones.into_iter().collect(),
            None => self.nodes.keys().cloned().collect(),
        };
        for index in 0..wanted.min(MOST_PODS) as usize {
            let zone = zones.get(index % zones.len().max(1));
            let node =
                zone.map(|zone| self.node(zone, index / zones.len().max(1))).unwrap_or_default();
            let name = format!("{}-{index}", owner.name);
            let pod = json!({
                "metadata": {"name": name, "namespace": owner.namespace, "labels": labels},
                "spec": {"nodeName": node},
                "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
            });
            if let Ok(pod) = serde_json::from_value::<Pod>(pod) {
                self.scene.pods.insert(Key::new(&owner.namespace, name), pod, Origin::Model);
            }
        }
    }

    /// A node of the zone; one is assumed where none is known.
    fn node(&mut self, zone: &str, index: usize) -> String {
        if let Some(nodes) = self.nodes.get(zone) {
            return nodes[index % nodes.len()].clone();
        }
        let name = format!("node-in-{zone}");
        let mut node = Node::default();
        node.meta.name.clone_from(&name);
        node.meta.labels.insert(ZONE_LABEL.to_owned(), zone.to_owned());
        let region = region_of(&self.scene, zone);
        node.meta.labels.extend(region.map(|region| (REGION_LABEL.to_owned(), region)));
        self.scene.nodes.insert(Key::new("", &name), node, Origin::Model);
        self.nodes.insert(zone.to_owned(), vec![name.clone()]);
        name
    }
}

/// The region of a zone without a node, as the localities in DestinationRules name it.
fn region_of(scene: &Scene, zone: &str) -> Option<String> {
    let policies = scene.rules.iter().flat_map(|(_, rule)| {
        let subsets = rule.spec.subsets.iter().filter_map(|subset| subset.traffic_policy.as_ref());
        rule.spec.traffic_policy.iter().chain(subsets)
    });
    let settings =
        policies.filter_map(|policy| policy.load_balancer.as_ref()?.locality_lb_setting.as_ref());
    let mut localities = settings.flat_map(|setting| {
        setting.distribute.iter().flat_map(|entry| [&entry.from].into_iter().chain(entry.to.keys()))
    });
    localities.find_map(|locality| {
        let (region, rest) = locality.split_once('/')?;
        (rest.split('/').next() == Some(zone)).then(|| region.to_owned())
    })
}

fn change<T: Clone>(kind: &mut Kind<T>, key: &Key, change: impl FnOnce(&mut T)) {
    if let Some(seen) = kind.items.get_mut(key) {
        change(Arc::make_mut(&mut seen.value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::ring;
    use crate::testing::{scene_of, spec};

    #[test]
    fn pods_are_assumed_where_their_affinity_puts_them() {
        let mut scene = scene_of(&ring(&spec()));
        scene.pods = Kind::default();
        scene.replica_sets = Kind::default();
        let (scene, assumed) = scene.with_assumed_pods();
        assert!(assumed);
        assert_eq!(scene.pods.items.len(), 9);
        let pod = scene.pods.get(&Key::new("default", "test-b-2")).unwrap();
        assert_eq!(pod.spec.node_name, "node-in-us-east-1b");
        assert_eq!(pod.meta.labels["zone-rollout.io/role"], "stable");
        let rule = scene.rules.get(&Key::new("default", "test-b")).unwrap();
        assert_eq!(rule.spec.subsets[0].labels[POD_HASH_LABEL], "hash-of-test-b");
    }
}
