//! All DestinationRules of one host as istiod merges them.

use crate::scene::{DestinationRule, Scene, Subset, TrafficPolicy};
use crate::traffic::host::fully_qualified;

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
    let mut rules: Vec<&DestinationRule> = scene
        .rules
        .iter()
        .map(|(_, rule)| rule)
        .filter(|rule| rule.spec.workload_selector.is_none())
        .filter(|rule| fully_qualified(&rule.spec.host, &rule.meta.namespace) == host)
        .collect();
    rules.sort_by_key(|rule| (rule.meta.creation_timestamp, &rule.meta.name, &rule.meta.namespace));
    MergedRule { rules }
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
    pub(super) fn policy(&self, subset: Option<&Subset>) -> TrafficPolicy {
        let top = self.rules.iter().find_map(|rule| rule.spec.traffic_policy.as_ref());
        let own = subset.and_then(|subset| subset.traffic_policy.as_ref());
        TrafficPolicy {
            load_balancer: own
                .and_then(|policy| policy.load_balancer.clone())
                .or_else(|| top.and_then(|policy| policy.load_balancer.clone())),
            outlier_detection: own
                .and_then(|policy| policy.outlier_detection.clone())
                .or_else(|| top.and_then(|policy| policy.outlier_detection.clone())),
        }
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
