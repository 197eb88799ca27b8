//! Which endpoints of a cluster a client prefers by locality.

use std::collections::BTreeMap;

use crate::scene::{LocalityDistribute, LocalityLbSetting, OutlierDetection, TrafficPolicy};

/// Labels of proxies and endpoints, with the topology labels that istiod adds (`AugmentLabels`).
pub(super) type Labels = BTreeMap<String, String>;

const REGION: &str = "topology.kubernetes.io/region";
const ZONE: &str = "topology.kubernetes.io/zone";

/// How an endpoint answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Health {
    /// Well.
    Good,
    /// With errors, until it is ejected.
    Failing,
}

/// The place of an endpoint in a client's list: lower priorities are used first.
type Place = Option<(usize, f64)>;

/// The share of each endpoint in a client's traffic; they add up to 1, or to 0 if there is none.
///
/// Mirrors `ApplyLocalityLoadBalancer` (istio `pilot/pkg/networking/core/loadbalancer`) and Envoy's
/// choice of a priority: `distribute` excludes everything else, failover needs outlier detection or
/// a Service that prefers near endpoints, failing endpoints are ejected up to the policy's limit,
/// and a priority takes all traffic while at least 1/1.4 of its endpoints are left.
pub(super) fn shares(
    policy: &TrafficPolicy,
    near: bool,
    client: &Labels,
    endpoints: &[(&Labels, Health)],
) -> Vec<f64> {
    let labels: Vec<&Labels> = endpoints.iter().map(|(labels, _)| *labels).collect();
    let places = places(policy, near, client, &labels);
    spread(&places, &kept(policy, endpoints))
}

fn places(
    policy: &TrafficPolicy,
    near: bool,
    client: &Labels,
    endpoints: &[&Labels],
) -> Vec<Place> {
    let default = LocalityLbSetting::default();
    let written =
        policy.load_balancer.as_ref().and_then(|balancer| balancer.locality_lb_setting.as_ref());
    let setting = written.unwrap_or(&default);
    let level = vec![Some((0, 1.0)); endpoints.len()];
    if setting.enabled == Some(false) {
        return level;
    }
    if !setting.distribute.is_empty() {
        return match distribution(&setting.distribute, client) {
            Some(entry) => distributed(entry, endpoints),
            None => level,
        };
    }
    if policy.outlier_detection.is_none() && !near {
        return level;
    }
    endpoints.iter().map(|endpoint| Some((priority(setting, client, endpoint), 1.0))).collect()
}

/// The endpoints that are not ejected. Envoy from 1.27 ejects one only while the ejected ones stay
/// within the limit, counted over all endpoints of the cluster.
fn kept(policy: &TrafficPolicy, endpoints: &[(&Labels, Health)]) -> Vec<bool> {
    let limit = policy.outlier_detection.as_ref().map_or(0, OutlierDetection::ejection_limit);
    let mut allowed = endpoints.len() * limit.min(100) as usize / 100;
    let keep = |(_, health): &(&Labels, Health)| {
        let ejected = *health == Health::Failing && allowed > 0;
        allowed -= usize::from(ejected);
        !ejected
    };
    endpoints.iter().map(keep).collect()
}

/// Envoy's overprovisioning: a priority is worth 1.4 times its remaining share, at most all.
fn spread(places: &[Place], kept: &[bool]) -> Vec<f64> {
    const OVERPROVISIONING: f64 = 1.4;
    let mut weights: BTreeMap<usize, (f64, f64)> = BTreeMap::new();
    for (place, kept) in places.iter().zip(kept) {
        if let Some((priority, weight)) = place {
            let (all, left) = weights.entry(*priority).or_default();
            *all += weight;
            *left += if *kept { *weight } else { 0.0 };
        }
    }
    let worth = |(all, left): &(f64, f64)| {
        if *all > 0.0 { (OVERPROVISIONING * left / all).min(1.0) } else { 0.0 }
    };
    let total: f64 = weights.values().map(worth).sum::<f64>().min(1.0);
    let mut rest = 1.0;
    let mut loads: BTreeMap<usize, f64> = BTreeMap::new();
    for (priority, weight) in &weights {
        let load = if total > 0.0 { (worth(weight) / total).min(rest) } else { 0.0 };
        rest -= load;
        loads.insert(*priority, load);
    }
    let share = |(place, kept): (&Place, &bool)| match place {
        Some((priority, weight)) if *kept && weights[priority].1 > 0.0 => {
            loads[priority] * weight / weights[priority].1
        }
        _ => 0.0,
    };
    places.iter().zip(kept).map(share).collect()
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
fn distributed(entry: &LocalityDistribute, endpoints: &[&Labels]) -> Vec<Place> {
    let mut weights = vec![0.0; endpoints.len()];
    for (locality, weight) in &entry.to {
        let named: Vec<bool> =
            endpoints.iter().map(|endpoint| matches_locality(locality, endpoint)).collect();
        let count: f64 = named.iter().map(|named| f64::from(u8::from(*named))).sum();
        for (share, named) in weights.iter_mut().zip(named) {
            *share += if named { f64::from(*weight) / count } else { 0.0 };
        }
    }
    weights.into_iter().map(|weight| (weight > 0.0).then_some((0, weight))).collect()
}

/// `LocalityMatch`: a `*` or a missing part matches anything.
pub(super) fn matches_locality(pattern: &str, labels: &Labels) -> bool {
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
        let health = |zone: char| if zone.is_uppercase() { Health::Failing } else { Health::Good };
        let present: Vec<(char, Health)> =
            present.chars().map(|zone| (zone.to_ascii_lowercase(), health(zone))).collect();
        let endpoints: Vec<(&Labels, Health)> =
            present.iter().map(|(zone, health)| (&zones[index(*zone)], *health)).collect();
        let mut found = [0; 3];
        let shares = shares(&policy, false, &at("a", &[]), &endpoints);
        for ((zone, _), share) in present.into_iter().zip(shares) {
            #[expect(clippy::cast_possible_truncation)]
            let share = (share * 100.0).round() as i64;
            found[index(zone)] += share;
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
            let endpoints: Vec<(&Labels, Health)> =
                labels.iter().map(|labels| (labels, Health::Good)).collect();
            let shares = shares(&policy, false, &at("a", &[]), &endpoints);
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

    /// Upper case: the endpoint answers with errors.
    #[test]
    fn failing_endpoints_are_ejected_up_to_the_limit() {
        let limit = |percent: u32| json!({"outlierDetection": {"maxEjectionPercent": percent}});
        assert_eq!(percent(limit(100), "AAAbbbccc"), [0, 51, 51], "rounded a pod at a time");
        assert_eq!(percent(limit(34), "AAAbbbccc"), [0, 51, 51]);
        assert_eq!(percent(limit(33), "AAAbbbccc")[0], 47, "one of three keeps 1.4/3 of the load");
        assert_eq!(
            percent(limit(0), "AAAbbbccc")[0],
            99,
            "the default of 10 % ejects none of nine"
        );
    }

    #[test]
    fn a_priority_is_left_for_the_next_when_less_than_two_thirds_remain() {
        let policy = json!({"outlierDetection": {"maxEjectionPercent": 100}});
        assert_eq!(percent(policy.clone(), "Aaabbb"), [94, 6, 0]);
        assert_eq!(percent(policy, "AAabbb"), [47, 54, 0]);
    }
}
