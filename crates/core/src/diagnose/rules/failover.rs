//! Locality and failover, judged by where the requests go: the traffic core computes it.

use serde_json::json;

use std::collections::{BTreeMap, BTreeSet};

use crate::diagnose::command;
use crate::diagnose::context::{Context, in_namespace, listed};
use crate::diagnose::finding::{Effect, Found, Severity};
use crate::diagnose::outlook::{ClientOutlook, Outlook};
use crate::diagnose::rule::{Check, Rule};
use crate::diagnose::version::Version;
use crate::scene::{DestinationRule, LocalityLbSetting, OutlierDetection, TrafficPolicy};
use crate::traffic::{Client, Cluster, Loss, merged_rule};

/// A share under this is rounding.
const NOTHING: f64 = 0.005;

fn setting(policy: &TrafficPolicy) -> Option<&LocalityLbSetting> {
    let setting = policy.load_balancer.as_ref()?.locality_lb_setting.as_ref()?;
    (setting.enabled != Some(false)).then_some(setting)
}

fn zones_of<'a>(cluster: &'a Cluster<'_>) -> BTreeSet<&'a str> {
    cluster.members.iter().filter_map(|member| member.zone.as_deref()).collect()
}

/// The rule that gives a cluster this part of its policy, and the path of the part.
fn source<'a>(
    context: &Context<'a>,
    cluster: &Cluster<'_>,
    part: &str,
    has: impl Fn(&TrafficPolicy) -> bool,
) -> Option<(&'a DestinationRule, String)> {
    let merged = merged_rule(context.scene, &cluster.host);
    let own = merged.subset(&cluster.subset).and_then(|effective| {
        effective.subset.traffic_policy.as_ref().filter(|policy| has(policy))?;
        let index = effective.rule.spec.subsets.iter().position(|s| s.name == cluster.subset)?;
        Some((effective.rule, format!("spec.subsets[{index}].trafficPolicy.{part}")))
    });
    own.or_else(|| {
        let mut rules = merged.rules().iter().copied();
        let rule = rules.find(|rule| rule.spec.traffic_policy.as_ref().is_some_and(&has))?;
        Some((rule, format!("spec.trafficPolicy.{part}")))
    })
}

/// The clusters of all clients of all hosts.
fn clusters<'c, 'm>(
    context: &'c Context<'m>,
) -> impl Iterator<Item = (&'c Outlook<'m>, &'c ClientOutlook<'m>, &'c Cluster<'m>)> {
    context.outlooks.iter().flat_map(|outlook| {
        outlook.clients.iter().flat_map(move |client| {
            client.clusters.iter().map(move |(cluster, _)| (outlook, client, cluster))
        })
    })
}

/// The share of a client's requests to one cluster that is answered with an error.
fn errors(cluster: &Cluster<'_>, client: &Client, loss: Loss<'_>) -> f64 {
    cluster.answers(client, Some(loss)).1
}

pub(super) const DISTRIBUTE: Rule = Rule {
    code: "ZRI012",
    title: "distribute leaves nothing to fail over to",
    check: Check::Rules,
    effect: Effect::ZoneLoss,
    meaning: "When the zone that has all the weight is lost, its clients get 503, though other \
              zones have pods.",
    cause: "distribute is a fixed split, not a preference: localities that it does not name are \
            emptied for that client, so there is nowhere to go. outlierDetection changes nothing \
            about it.",
    fix: "Remove distribute: with outlierDetection clients use their own zone and fail over to \
          the others. For a preferred zone use failoverPriority with \
          topology.kubernetes.io/zone=ZONE (Istio 1.18).",
    verify: "kubectl zone-rollout diagnose traffic",
    example: include_str!("../examples/ZRI012.diff"),
    find: distribute,
};

fn distribute(context: &Context<'_>) -> Vec<Found> {
    let mut affected: BTreeMap<_, (Found, BTreeSet<&str>)> = BTreeMap::new();
    let uses = |policy: &TrafficPolicy| {
        setting(policy).is_some_and(|setting| !setting.distribute.is_empty())
    };
    for (outlook, client, cluster) in clusters(context) {
        if !uses(&cluster.policy) || outlook.zones.len() < 2 {
            continue;
        }
        // Judged over all pods of the host: a subset may leave one zone only for other reasons.
        let mut whole = context.mesh.cluster(&outlook.host, "");
        whole.policy = cluster.policy.clone();
        let all_lost =
            |zone: &&String| errors(&whole, &client.client, Loss::Zone(zone)) > 1.0 - NOTHING;
        let Some(lost) = outlook.zones.iter().find(all_lost) else { continue };
        let Some((rule, path)) = source(context, cluster, "loadBalancer.localityLbSetting", uses)
        else {
            continue;
        };
        let entry = affected.entry((rule.meta.key(), path.clone()));
        let (_, of) = entry.or_insert_with(|| (only(rule, &path, lost), BTreeSet::new()));
        of.insert(client.zone.as_str());
    }
    affected
        .into_values()
        .map(|(mut found, clients)| {
            found.title = format!("{} (clients in {})", found.title, listed(&clients));
            found
        })
        .collect()
}

fn only(rule: &DestinationRule, path: &str, lost: &str) -> Found {
    let key = rule.meta.key();
    Found::new(
        Severity::Error,
        format!(
            "DestinationRule {key} distributes 100 % to one zone: when {lost} is lost, requests \
             get 503 though other zones have pods"
        ),
    )
    .at("DestinationRule", &key, format!("{path}.distribute"), format!("100 % to {lost}"))
    .fix(super::locality::remove(&key, &format!("{path}.distribute")))
    .verify(format!("kubectl zone-rollout diagnose traffic{}", in_namespace(&key)))
}

pub(super) const NO_OUTLIER: Rule = Rule {
    code: "ZRI020",
    title: "Locality without outlierDetection",
    check: Check::Rules,
    effect: Effect::WrongPlace,
    meaning: "Requests are spread over all zones, and nothing fails over: a lost zone's share \
              keeps failing until its pods are gone.",
    cause: "istiod gives localities an order only if the merged policy has outlierDetection, or \
            the Service has trafficDistribution (sidecars from Istio 1.25). `enabled: true` is \
            the default and changes nothing.",
    fix: "Add outlierDetection with maxEjectionPercent 100.",
    verify: "kubectl zone-rollout diagnose traffic",
    example: include_str!("../examples/ZRI020.diff"),
    find: no_outlier,
};

fn no_outlier(context: &Context<'_>) -> Vec<Found> {
    let old = context.versions.istio.is_some_and(|istio| istio < Version::new(1, 25));
    let mut found: BTreeMap<_, Found> = BTreeMap::new();
    // Where no zone is known, the setting still asks for what it cannot get.
    let unplaced = context.outlooks.iter().filter(|outlook| outlook.clients.is_empty());
    let unplaced =
        unplaced.flat_map(|outlook| &outlook.elsewhere.clusters).map(|(cluster, _)| cluster);
    let leaves = |client: &ClientOutlook<'_>, cluster: &Cluster<'_>| {
        let zones = zones_of(cluster);
        let own = cluster.answers(&client.client, None).0.get(&client.zone).copied().unwrap_or(0.0);
        zones.len() > 1 && (!zones.contains(client.zone.as_str()) || own < 1.0 - NOTHING)
    };
    let placed = clusters(context).filter(|(_, client, cluster)| leaves(client, cluster));
    for cluster in placed.map(|(_, _, cluster)| cluster).chain(unplaced) {
        let wanted = setting(&cluster.policy).is_some_and(|setting| setting.distribute.is_empty());
        let near = cluster.near && !old;
        if !wanted || near || cluster.policy.outlier_detection.is_some() {
            continue;
        }
        let has = |policy: &TrafficPolicy| setting(policy).is_some();
        let Some((rule, path)) = source(context, cluster, "loadBalancer.localityLbSetting", has)
        else {
            continue;
        };
        found.entry(rule.meta.key()).or_insert_with(|| without_outlier(rule, &path, &cluster.host));
    }
    found.into_values().collect()
}

fn without_outlier(rule: &DestinationRule, path: &str, host: &str) -> Found {
    let key = rule.meta.key();
    Found::new(Severity::Error, format!("DestinationRule {key} sets locality load balancing \
                                         without outlierDetection: requests to {host} are spread \
                                         over all zones and nothing fails over"))
        .at("DestinationRule", &key, path, "set")
        .at("DestinationRule", &key, "spec.trafficPolicy.outlierDetection", "missing")
        .fix(command::set("DestinationRule", &key, "spec.trafficPolicy.outlierDetection", json!({"consecutive5xxErrors": 3, "interval": "5s", "baseEjectionTime": "30s", "maxEjectionPercent": 100})))
        .verify(format!("kubectl zone-rollout diagnose traffic{}", in_namespace(&key)))
}

pub(super) const EJECTION_LIMIT: Rule = Rule {
    code: "ZRI022",
    title: "Too few pods may be ejected",
    check: Check::Rules,
    effect: Effect::ZoneLoss,
    meaning: "When a zone's pods answer with errors, its clients keep getting them: what is \
              ejected is not enough to fail over.",
    cause: "Envoy ejects an endpoint only while the ejected share of all endpoints, over all \
            zones, stays within maxEjectionPercent; absent and 0 mean 10 %, which is none of \
            fewer than ten pods.",
    fix: "maxEjectionPercent: 100.",
    verify: "kubectl zone-rollout diagnose traffic",
    example: include_str!("../examples/ZRI022.diff"),
    find: ejection_limit,
};

fn ejection_limit(context: &Context<'_>) -> Vec<Found> {
    let always_one = context.versions.istio.is_some_and(|istio| istio < Version::new(1, 19));
    let mut found: BTreeMap<_, Found> = BTreeMap::new();
    for (_, client, cluster) in clusters(context) {
        let Some(outlier) = &cluster.policy.outlier_detection else { continue };
        let limit = outlier.ejection_limit();
        let zones = zones_of(cluster);
        let distributed =
            setting(&cluster.policy).is_some_and(|setting| !setting.distribute.is_empty());
        let own = zones.contains(client.zone.as_str());
        if limit >= 100 || zones.len() < 2 || distributed || !own {
            continue;
        }
        let largest = cluster
            .members
            .iter()
            .filter(|member| member.zone.as_deref() == Some(client.zone.as_str()))
            .count();
        let one_is_enough = always_one && largest == 1;
        if errors(cluster, &client.client, Loss::Failing(&client.zone)) <= NOTHING || one_is_enough
        {
            continue;
        }
        let has = |policy: &TrafficPolicy| policy.outlier_detection.is_some();
        let Some((rule, path)) = source(context, cluster, "outlierDetection", has) else {
            continue;
        };
        found.entry(rule.meta.key()).or_insert_with(|| {
            let title = format!(
                "DestinationRule {} ejects at most {limit} % of the pods of {}, but zone {} has \
                 {largest} of {}: when they fail, requests keep failing",
                rule.meta.key(),
                cluster.host,
                client.zone,
                cluster.members.len()
            );
            raise(rule, &path, Severity::Error, title, outlier.max_ejection_percent)
        });
    }
    for cluster in inert(context) {
        let has = |policy: &TrafficPolicy| policy.outlier_detection.is_some();
        let Some((rule, path)) = source(context, cluster, "outlierDetection", has) else {
            continue;
        };
        let outlier = cluster.policy.outlier_detection.clone().unwrap_or_default();
        found.entry(rule.meta.key()).or_insert_with(|| {
            let title = format!(
                "outlierDetection in DestinationRule {} never ejects anything: {} % of {} pods is \
                 less than one",
                rule.meta.key(),
                outlier.ejection_limit(),
                cluster.members.len()
            );
            raise(rule, &path, Severity::Error, title, outlier.max_ejection_percent)
        });
    }
    found.into_values().collect()
}

/// Clusters of one zone, or of none that is known, of which not even one pod may be ejected.
fn inert<'c>(context: &'c Context<'_>) -> Vec<&'c Cluster<'c>> {
    let always_one = context.versions.istio.is_some_and(|istio| istio < Version::new(1, 19));
    let clients = context
        .outlooks
        .iter()
        .flat_map(|outlook| outlook.clients.iter().chain([&outlook.elsewhere]));
    let all = clients.flat_map(|client| &client.clusters).map(|(cluster, _)| cluster);
    all.filter(|cluster| {
        let outlier = cluster.policy.outlier_detection.as_ref();
        let limit = outlier.map_or(100, OutlierDetection::ejection_limit);
        let count = cluster.members.len();
        !always_one && count > 0 && zones_of(cluster).len() < 2 && count * limit as usize / 100 == 0
    })
    .collect()
}

fn raise(
    rule: &DestinationRule,
    path: &str,
    severity: Severity,
    title: String,
    written: Option<u32>,
) -> Found {
    let key = rule.meta.key();
    let value = written.map_or_else(|| "missing: 10 %".to_owned(), |percent| percent.to_string());
    Found::new(severity, title)
        .at("DestinationRule", &key, format!("{path}.maxEjectionPercent"), value)
        .fix(command::add(
            "DestinationRule",
            &key,
            &format!("{path}.maxEjectionPercent"),
            &json!(100),
        ))
        .verify(format!("kubectl zone-rollout diagnose traffic{}", in_namespace(&key)))
}

pub(super) const PINNED: Rule = Rule {
    code: "ZRI030",
    title: "Failover is asked for, but each destination has pods in one zone only",
    check: Check::Rules,
    effect: Effect::ZoneLoss,
    meaning: "When a zone's pods are lost its clients get 503, though the rule asks for failover \
              and other zones have pods.",
    cause: "Priorities order the endpoints of one subset. The subset selects pods of one zone: by \
            a zone label, or by the template hash of one zone's Rollout, which the Rollouts \
            controller adds. There is nothing to fail over to.",
    fix: "Define the stable subset across zones in an older rule, by a label that all zones' \
          stable pods carry; or send the lost zone's clients elsewhere by a route of their own.",
    verify: "kubectl zone-rollout diagnose traffic",
    example: include_str!("../examples/ZRI030.diff"),
    find: pinned,
};

/// How strongly a policy asks for failover between zones.
fn promise(cluster: &Cluster<'_>) -> Option<Severity> {
    let setting = setting(&cluster.policy);
    let asked = setting.is_some_and(|setting| {
        !setting.failover_priority.is_empty() || !setting.failover.is_empty()
    });
    let hinted = setting.is_some_and(|setting| setting.enabled == Some(true));
    match (asked, hinted && cluster.policy.outlier_detection.is_some() || cluster.near) {
        (true, _) => Some(Severity::Error),
        (false, true) => Some(Severity::Warning),
        _ => None,
    }
}

fn pinned(context: &Context<'_>) -> Vec<Found> {
    let mut found: BTreeMap<_, (Found, BTreeSet<&str>)> = BTreeMap::new();
    for outlook in context.outlooks.iter().filter(|outlook| outlook.zones.len() > 1) {
        for client in &outlook.clients {
            let strongest = client
                .clusters
                .iter()
                .filter_map(|(cluster, _)| Some((promise(cluster)?, cluster)))
                .max_by_key(|(severity, _)| *severity);
            let Some((severity, cluster)) = strongest else { continue };
            let now = client.shares(None);
            let Some(main) = now.main().map(str::to_owned) else { continue };
            let lost = client.shares(Some(Loss::Zone(&main))).errors;
            let one_zone = client.clusters.iter().all(|(cluster, _)| zones_of(cluster).len() < 2);
            if lost < now.of(&main) - NOTHING || now.errors > NOTHING || !one_zone {
                continue;
            }
            let names: Vec<&String> =
                client.clusters.iter().map(|(cluster, _)| &cluster.subset).collect();
            let has = |policy: &TrafficPolicy| {
                setting(policy).is_some() || policy.outlier_detection.is_some()
            };
            let Some((rule, path)) =
                source(context, cluster, "loadBalancer.localityLbSetting", has)
            else {
                continue;
            };
            let entry = found.entry(rule.meta.key());
            let (finding, clients) = entry.or_insert_with(|| {
                (pinned_by(rule, &path, severity, &outlook.host), BTreeSet::new())
            });
            finding.severity = finding.severity.max(severity);
            clients.insert(client.zone.as_str());
            add_subsets(context, finding, &outlook.host, &names, &main);
        }
    }
    found
        .into_values()
        .map(|(mut found, clients)| {
            found.title = format!("{} (clients in {})", found.title, listed(&clients));
            found
        })
        .collect()
}

fn pinned_by(rule: &DestinationRule, path: &str, severity: Severity, host: &str) -> Found {
    let key = rule.meta.key();
    Found::new(
        severity,
        format!(
            "DestinationRule {key} asks for failover, but every destination of {host} has pods in \
             one zone only: when that zone is lost its clients get 503"
        ),
    )
    .at("DestinationRule", &key, path, "asks for failover")
    .fix(
        "define each zone's stable subset across zones, by a label that all stable pods carry \
         (stableMetadata), in a DestinationRule that is older than the Rollouts' own",
    )
    .verify(format!("kubectl zone-rollout diagnose traffic{}", in_namespace(&key)))
}

fn add_subsets(
    context: &Context<'_>,
    found: &mut Found,
    host: &str,
    names: &[&String],
    zone: &str,
) {
    let merged = merged_rule(context.scene, host);
    for name in names {
        if let Some(subset) = merged.subset(name) {
            let key = subset.rule.meta.key();
            let path = format!("spec.subsets ({name}).labels");
            let told = found
                .evidence
                .iter()
                .any(|evidence| evidence.path == path && evidence.object.key == key);
            if !told {
                found.add("DestinationRule", &key, path, format!("selects pods in {zone} only"));
            }
        }
    }
}

pub(super) const IMPLICIT: Rule = Rule {
    code: "ZRI026",
    title: "outlierDetection alone keeps requests in their zone",
    check: Check::Rules,
    effect: Effect::WrongPlace,
    meaning: "Clients use the pods of their own zone only, however few they are: one zone's pods \
              are busy, another's idle.",
    cause: "Locality load balancing is on by default, and outlierDetection is all it takes to \
            start it.",
    fix: "Give each zone pods for its clients, or switch it off: localityLbSetting: \
          {enabled: false}.",
    verify: "kubectl zone-rollout diagnose traffic",
    example: include_str!("../examples/ZRI026.diff"),
    find: implicit,
};

fn implicit(context: &Context<'_>) -> Vec<Found> {
    let mut found: BTreeMap<_, Found> = BTreeMap::new();
    for (_, _, cluster) in clusters(context) {
        let written = cluster
            .policy
            .load_balancer
            .as_ref()
            .is_some_and(|balancer| balancer.locality_lb_setting.is_some());
        let mut zones: BTreeMap<&str, usize> = BTreeMap::new();
        for zone in cluster.members.iter().filter_map(|member| member.zone.as_deref()) {
            *zones.entry(zone).or_default() += 1;
        }
        let (least, most) = (
            zones.values().min().copied().unwrap_or(0),
            zones.values().max().copied().unwrap_or(0),
        );
        if written || cluster.near || zones.len() < 2 || most < 2 * least {
            continue;
        }
        let has = |policy: &TrafficPolicy| policy.outlier_detection.is_some();
        let Some((rule, path)) = source(context, cluster, "outlierDetection", has) else {
            continue;
        };
        let counts = listed(zones.iter().map(|(zone, pods)| format!("{pods} in {zone}")));
        let key = rule.meta.key();
        found.entry(key.clone()).or_insert_with(|| {
            Found::new(
                Severity::Warning,
                format!(
                    "outlierDetection in DestinationRule {key} keeps the requests to {} in their \
                     zone, but its pods are uneven: {counts}",
                    cluster.host
                ),
            )
            .at("DestinationRule", &key, path, "set, without localityLbSetting")
            .fix(command::set(
                "DestinationRule",
                &key,
                "spec.trafficPolicy.loadBalancer.localityLbSetting.enabled",
                json!(false),
            ))
            .verify(format!("kubectl zone-rollout diagnose traffic{}", in_namespace(&key)))
        });
    }
    found.into_values().collect()
}
