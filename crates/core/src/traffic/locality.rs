//! Which endpoints of a cluster a client prefers by locality.

use std::collections::BTreeMap;

use crate::scene::{LocalityDistribute, LocalityLbSetting, TrafficPolicy};

/// Labels of proxies and endpoints, with the topology labels that istiod adds (`AugmentLabels`).
pub(super) type Labels = BTreeMap<String, String>;

const REGION: &str = "topology.kubernetes.io/region";
const ZONE: &str = "topology.kubernetes.io/zone";

/// The share of each endpoint in a client's traffic; they add up to 1, or to 0 if there is none.
///
/// Mirrors `ApplyLocalityLoadBalancer` (istio `pilot/pkg/networking/core/loadbalancer`), for
/// endpoints that are all healthy: `distribute` excludes everything else, failover needs outlier
/// detection, and all traffic goes to the lowest priority that has an endpoint.
pub(super) fn shares(policy: &TrafficPolicy, client: &Labels, endpoints: &[&Labels]) -> Vec<f64> {
    let default = LocalityLbSetting::default();
    let setting = policy
        .load_balancer
        .as_ref()
        .and_then(|balancer| balancer.locality_lb_setting.as_ref())
        .unwrap_or(&default);
    if setting.enabled == Some(false) {
        return even(&vec![true; endpoints.len()]);
    }
    if !setting.distribute.is_empty() {
        return match distribution(&setting.distribute, client) {
            Some(entry) => distributed(entry, endpoints),
            None => even(&vec![true; endpoints.len()]),
        };
    }
    if policy.outlier_detection.is_none() {
        return even(&vec![true; endpoints.len()]);
    }
    let priorities: Vec<usize> =
        endpoints.iter().map(|endpoint| priority(setting, client, endpoint)).collect();
    let lowest = priorities.iter().min().copied();
    even(&priorities.iter().map(|priority| Some(*priority) == lowest).collect::<Vec<_>>())
}

fn even(chosen: &[bool]) -> Vec<f64> {
    let count = chosen.iter().filter(|chosen| **chosen).count();
    #[expect(clippy::cast_precision_loss, reason = "no cluster has 2^52 endpoints")]
    let share = if count == 0 { 0.0 } else { 1.0 / count as f64 };
    chosen.iter().map(|chosen| if *chosen { share } else { 0.0 }).collect()
}

fn priority(setting: &LocalityLbSetting, client: &Labels, endpoint: &Labels) -> usize {
    if setting.failover_priority.is_empty() {
        locality_priority(setting, client, endpoint)
    } else {
        label_priority(&setting.failover_priority, client, endpoint)
    }
}

/// `LbPriority`: same zone, same region, elsewhere; `failover` prefers one of the other regions.
fn locality_priority(setting: &LocalityLbSetting, client: &Labels, endpoint: &Labels) -> usize {
    let same = |label: &str| client.get(label) == endpoint.get(label);
    match (same(REGION), same(ZONE)) {
        (true, true) => 0,
        (true, false) => 1,
        (false, _) => {
            let wanted = setting
                .failover
                .iter()
                .find(|entry| Some(&entry.from) == client.get(REGION))
                .map(|entry| &entry.to);
            if wanted.is_some() && wanted == endpoint.get(REGION) { 2 } else { 3 }
        }
    }
}

/// `applyFailoverPriorityPerLocality`: each leading entry that matches makes an endpoint nearer.
fn label_priority(entries: &[String], client: &Labels, endpoint: &Labels) -> usize {
    let matched = entries
        .iter()
        .take_while(|entry| match entry.split_once('=') {
            Some((label, value)) => endpoint.get(label).is_some_and(|found| found == value),
            None => client.get(entry.as_str()) == endpoint.get(entry.as_str()),
        })
        .count();
    entries.len() - matched
}

fn distribution<'a>(
    entries: &'a [LocalityDistribute],
    client: &Labels,
) -> Option<&'a LocalityDistribute> {
    entries.iter().find(|entry| matches_locality(&entry.from, client))
}

/// `applyLocalityWeights`: a weight is spread over the endpoints it names; the rest get nothing.
fn distributed(entry: &LocalityDistribute, endpoints: &[&Labels]) -> Vec<f64> {
    let mut shares = vec![0.0; endpoints.len()];
    for (locality, weight) in &entry.to {
        let named: Vec<bool> =
            endpoints.iter().map(|endpoint| matches_locality(locality, endpoint)).collect();
        for (share, part) in shares.iter_mut().zip(even(&named)) {
            *share += part * f64::from(*weight);
        }
    }
    let total: f64 = shares.iter().sum();
    if total > 0.0 {
        for share in &mut shares {
            *share /= total;
        }
    }
    shares
}

/// `LocalityMatch`: a `*` or a missing part matches anything.
fn matches_locality(pattern: &str, labels: &Labels) -> bool {
    let mut parts = pattern.split('/');
    [REGION, ZONE].iter().all(|label| match parts.next() {
        None | Some("*" | "") => true,
        Some(part) => labels.get(*label).is_some_and(|value| value == part),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn at(zone: &str, ring: &[&str]) -> Labels {
        let mut labels = Labels::from([
            (REGION.to_owned(), "us-east-1".to_owned()),
            (ZONE.to_owned(), format!("us-east-1{zone}")),
        ]);
        labels.extend(ring.iter().map(|label| ((*label).to_owned(), "true".to_owned())));
        labels
    }

    /// Shares, in percent, of zones a, b and c for a client in zone a.
    fn percent(policy: serde_json::Value, present: &str) -> [i64; 3] {
        let policy: TrafficPolicy = serde_json::from_value(policy).unwrap();
        let zones = [at("a", &["ab", "ca"]), at("b", &["ab", "bc"]), at("c", &["bc", "ca"])];
        let index = |zone: char| "abc".find(zone).unwrap();
        let endpoints: Vec<&Labels> = present.chars().map(|zone| &zones[index(zone)]).collect();
        let mut found = [0; 3];
        let shares = shares(&policy, &at("a", &[]), &endpoints);
        for (zone, share) in present.chars().zip(shares) {
            #[expect(clippy::cast_possible_truncation)]
            let share = (share * 100.0).round() as i64;
            found[index(zone)] = share;
        }
        found
    }

    #[test]
    fn the_ring_goes_to_the_next_zone_and_then_to_the_rest() {
        let ring = json!({
            "outlierDetection": {},
            "loadBalancer": {"localityLbSetting": {
                "failoverPriority": ["ab=true", "topology.kubernetes.io/zone=us-east-1a"],
            }},
        });
        assert_eq!(percent(ring.clone(), "abc"), [100, 0, 0]);
        assert_eq!(percent(ring.clone(), "bc"), [0, 100, 0]);
        assert_eq!(percent(ring, "c"), [0, 0, 100]);
    }

    #[test]
    fn without_outlier_detection_there_is_no_preference() {
        assert_eq!(percent(json!({}), "abc"), [33, 33, 33]);
        assert_eq!(percent(json!({"outlierDetection": {}}), "abc"), [100, 0, 0]);
        assert_eq!(percent(json!({"outlierDetection": {}}), "bc"), [0, 50, 50]);
        let off = json!({"localityLbSetting": {"enabled": false}});
        assert_eq!(
            percent(json!({"outlierDetection": {}, "loadBalancer": off}), "ab"),
            [50, 50, 0]
        );
    }

    proptest::proptest! {
        /// Whatever the policy, all traffic goes somewhere, unless there is nowhere to go.
        #[test]
        fn shares_add_up(
            zones in proptest::collection::vec("[abcd]", 0..9),
            outlier in proptest::bool::ANY,
            priority in proptest::collection::vec("(ab|bc|ca)=true", 0..3),
            distribute in proptest::collection::btree_map("[abc]", 1..100_u32, 0..3),
        ) {
            let to: BTreeMap<String, u32> = distribute
                .into_iter()
                .map(|(zone, weight)| (format!("us-east-1/us-east-1{zone}/*"), weight))
                .collect();
            let entries = if to.is_empty() { json!([]) } else { json!([{"from": "*", "to": to}]) };
            let mut policy = json!({"loadBalancer": {"localityLbSetting": {
                "failoverPriority": priority, "distribute": entries,
            }}});
            if outlier {
                policy["outlierDetection"] = json!({});
            }
            let policy: TrafficPolicy = serde_json::from_value(policy).unwrap();
            let labels: Vec<Labels> = zones.iter().map(|zone| at(zone, &["ab"])).collect();
            let endpoints: Vec<&Labels> = labels.iter().collect();
            let shares = shares(&policy, &at("a", &[]), &endpoints);
            let sum: f64 = shares.iter().sum();
            let named = |zone: &String| to.contains_key(&format!("us-east-1/us-east-1{zone}/*"));
            let nowhere = zones.is_empty() || !to.is_empty() && !zones.iter().any(named);
            let expected = if nowhere { 0.0 } else { 1.0 };
            proptest::prop_assert!((sum - expected).abs() < 1e-9, "{shares:?}");
            proptest::prop_assert!(shares.iter().all(|share| *share >= 0.0));
        }
    }

    #[test]
    fn distribute_excludes_failover() {
        let only_own = json!({"localityLbSetting": {"distribute": [
            {"from": "us-east-1/us-east-1a/*", "to": {"us-east-1/us-east-1a/*": 100}},
        ]}});
        let policy = json!({"outlierDetection": {}, "loadBalancer": only_own});
        assert_eq!(percent(policy.clone(), "abc"), [100, 0, 0]);
        assert_eq!(percent(policy, "bc"), [0, 0, 0]);
        let others = json!({"localityLbSetting": {"distribute": [
            {"from": "us-east-1/us-east-1b/*", "to": {"us-east-1/us-east-1b/*": 100}},
        ]}});
        let policy = json!({"outlierDetection": {}, "loadBalancer": others});
        assert_eq!(percent(policy, "abc"), [33, 33, 33], "no entry for zone a: no preference");
    }
}
