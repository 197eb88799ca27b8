//! All DestinationRules of one host as istiod merges them.

use crate::scene::{DestinationRule, Scene, Subset, TrafficPolicy};
use crate::traffic::host::{is_host, service_of};

/// Namespace whose DestinationRules count for the whole mesh, unless the mesh says otherwise.
const ROOT_NAMESPACE: &str = "istio-system";

/// The rules of a host, oldest first.
#[derive(Debug)]
pub struct MergedRule<'a> {
    rules: Vec<&'a DestinationRule>,
}

/// A subset as it is in effect, with the rule that defined it.
#[derive(Debug)]
pub struct EffectiveSubset<'a> {
    /// The definition that won.
    pub subset: &'a Subset,
    /// The rule it stands in.
    pub rule: &'a DestinationRule,
    /// Younger rules that define the same subset and lost.
    pub shadowed: Vec<&'a DestinationRule>,
}

/// Merges the rules of a fully qualified host.
///
/// Mirrors `mergeDestinationRule` and `sortConfigBySelectorAndCreationTime` (istio
/// `pilot/pkg/model`): rules are taken by age, then name, then namespace; the first definition of a
/// subset wins, and the first top-level policy that is set. Rules with a workload selector replace
/// the others for some clients only; they are left out here.
pub fn merged_rule<'a>(scene: &'a Scene, host: &str) -> MergedRule<'a> {
    let mut rules = rules_for(scene, host);
    // A Service's own namespace goes before the mesh's root namespace, and that before others.
    let home = service_of(host).map(|key| key.namespace);
    let rank = |rule: &DestinationRule| match &rule.meta.namespace {
        namespace if home.is_none() || home.as_ref() == Some(namespace) => 0,
        namespace if namespace == ROOT_NAMESPACE => 1,
        _ => 2,
    };
    let nearest = rules.iter().map(|rule| rank(rule)).min();
    rules.retain(|rule| Some(rank(rule)) == nearest);
    rules.sort_by_key(|rule| (rule.meta.creation_timestamp, &rule.meta.name, &rule.meta.namespace));
    MergedRule { rules }
}

/// The rules with exactly this host, else those with the longest wildcard that covers it.
fn rules_for<'a>(scene: &'a Scene, host: &str) -> Vec<&'a DestinationRule> {
    let covering: Vec<(usize, &DestinationRule)> = scene
        .rules
        .iter()
        .map(|(_, rule)| rule)
        .filter(|rule| rule.spec.workload_selector.is_none())
        .filter_map(|rule| Some((closeness(&rule.spec.host, &rule.meta.namespace, host)?, rule)))
        .collect();
    let closest = covering.iter().map(|(closeness, _)| *closeness).max();
    covering
        .into_iter()
        .filter(|(closeness, _)| Some(*closeness) == closest)
        .map(|(_, rule)| rule)
        .collect()
}

/// How closely a rule's host names another; nothing if it does not cover it.
fn closeness(pattern: &str, namespace: &str, host: &str) -> Option<usize> {
    match pattern.strip_prefix('*') {
        Some(end) => host.ends_with(end).then_some(end.len()),
        None => is_host(pattern, namespace, host).then_some(usize::MAX),
    }
}

impl<'a> MergedRule<'a> {
    /// The subset in effect under this name.
    pub fn subset(&self, name: &str) -> Option<EffectiveSubset<'a>> {
        let mut defined = self.rules.iter().filter_map(|rule| {
            let subset = rule.spec.subsets.iter().find(|subset| subset.name == name)?;
            Some((subset, *rule))
        });
        let (subset, rule) = defined.next()?;
        Some(EffectiveSubset { subset, rule, shadowed: defined.map(|(_, rule)| rule).collect() })
    }

    /// The policy for a subset, or for the plain host: each part from the subset if it has it, else
    /// from the first rule with a top-level policy (`MergeTrafficPolicy`).
    pub fn policy(&self, subset: Option<&'a Subset>) -> TrafficPolicy {
        let top = self.rules.iter().find_map(|rule| rule.spec.traffic_policy.as_ref());
        let own = subset.and_then(|subset| subset.traffic_policy.as_ref());
        // A part that is only given for a port counts as given: which port is called is not asked.
        let ports = |policy: &'a TrafficPolicy| policy.port_level_settings.iter();
        let all: Vec<&TrafficPolicy> = [own, top]
            .into_iter()
            .flatten()
            .flat_map(|policy| [policy].into_iter().chain(ports(policy)))
            .collect();
        TrafficPolicy {
            load_balancer: all.iter().find_map(|policy| policy.load_balancer.clone()),
            outlier_detection: all.iter().find_map(|policy| policy.outlier_detection.clone()),
            connection_pool: all.iter().find_map(|policy| policy.connection_pool.clone()),
            port_level_settings: Vec::new(),
        }
    }

    /// The rules, oldest first.
    pub fn rules(&self) -> &[&'a DestinationRule] {
        &self.rules
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::scene_of;

    fn rule(name: &str, created: &str, label: &str) -> serde_json::Value {
        json!({
            "kind": "DestinationRule",
            "metadata": {"name": name, "namespace": "default", "creationTimestamp": created},
            "spec": {"host": "test", "subsets": [{"name": "stable-a", "labels": {"from": label}}]},
        })
    }

    #[test]
    fn the_oldest_definition_wins_and_names_break_ties() {
        let (early, late) = ("2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z");
        for (rules, winner) in [
            ([rule("a", late, "young"), rule("b", early, "old")], "old"),
            ([rule("test", early, "base"), rule("test-a", early, "argo")], "base"),
        ] {
            let scene = scene_of(&rules);
            let merged = merged_rule(&scene, "test.default.svc.cluster.local");
            let effective = merged.subset("stable-a").unwrap();
            assert_eq!(effective.subset.labels["from"], winner);
            assert_eq!(effective.shadowed.len(), 1);
            assert!(merged.subset("stable-b").is_none());
        }
    }
}
