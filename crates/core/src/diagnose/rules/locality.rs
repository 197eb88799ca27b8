//! `localityLbSetting`: combinations that Istio refuses, ignores, or reads in another way.

use std::collections::BTreeSet;

use crate::diagnose::command;
use crate::diagnose::context::{Context, in_namespace, listed};
use crate::diagnose::finding::{Effect, Found, Severity};
use crate::diagnose::rule::{Check, Rule};
use crate::scene::{Key, LocalityLbSetting, labels_of, template_of};
use crate::traffic::{Client, fully_qualified, service_of};

/// A setting, the rule it stands in and its path.
pub(super) fn settings<'a>(
    context: &Context<'a>,
) -> impl Iterator<Item = (&'a Key, &'a str, String, &'a LocalityLbSetting)> {
    context.policies().filter_map(|(key, rule, path, policy)| {
        let setting = policy.load_balancer.as_ref()?.locality_lb_setting.as_ref()?;
        let path = format!("{path}.loadBalancer.localityLbSetting");
        Some((key, rule.spec.host.as_str(), path, setting))
    })
}

pub(super) fn remove(key: &Key, path: &str) -> String {
    command::remove("DestinationRule", key, &[path])
}

pub(super) fn show(key: &Key) -> String {
    format!("kubectl get destinationrule {}{} -o yaml", key.name, in_namespace(key))
}

pub(super) const BOTH: Rule = Rule {
    code: "ZRI010",
    title: "distribute and failover together",
    check: Check::Rules,
    effect: Effect::Release,
    meaning: "Istio's webhook refuses the rule. Where it got in without the webhook, distribute \
              alone counts, there is no failover, and every later write of the Rollouts \
              controller is refused.",
    cause: "Istio's validation: can not simultaneously specify 'distribute' and 'failover'.",
    fix: "Remove distribute: own zone first, then the others, is the default with \
          outlierDetection.",
    verify: "istioctl validate -f FILE",
    example: include_str!("../examples/ZRI010.diff"),
    find: |context| {
        let both = settings(context).filter(|(_, _, _, setting)| {
            !setting.distribute.is_empty() && !setting.failover.is_empty()
        });
        both.map(|(key, _, path, _)| {
            Found::new(
                Severity::Error,
                format!(
                    "DestinationRule {key} sets both distribute and failover; Istio refuses it, \
                     and where it is in force there is no failover"
                ),
            )
            .at("DestinationRule", key, format!("{path}.distribute"), "set")
            .at("DestinationRule", key, format!("{path}.failover"), "set")
            .fix(remove(key, &format!("{path}.distribute")))
            .verify(show(key))
        })
        .collect()
    },
};

pub(super) const NO_REGION: Rule = Rule {
    code: "ZRI011",
    title: "failover between zones",
    check: Check::Rules,
    effect: Effect::ZoneLoss,
    meaning: "The entry has no effect, or the rule is refused: requests do not fail over as it \
              says.",
    cause: "`failover` knows regions only: Istio compares `from` with the client's region. A `/` \
            in it is refused (locality lb failover only specify region), a zone's name is \
            accepted and never matches. There is no failover from zone to zone.",
    fix: "Remove failover. With outlierDetection, clients use their own zone first and then the \
          others of the region; an order among them needs failoverPriority.",
    verify: "istioctl validate -f FILE",
    example: include_str!("../examples/ZRI011.diff"),
    find: no_region,
};

fn no_region(context: &Context<'_>) -> Vec<Found> {
    let zones = known_zones(context);
    let mut found = Vec::new();
    for (key, _, path, setting) in settings(context) {
        let wrong = |name: &String| name.contains(['/', '*']) || zones.contains(name.as_str());
        let entries: Vec<String> = setting
            .failover
            .iter()
            .filter(|entry| wrong(&entry.from) || wrong(&entry.to) || entry.from == entry.to)
            .map(|entry| format!("{} → {}", entry.from, entry.to))
            .collect();
        if !entries.is_empty() {
            found.push(
                Found::new(
                    Severity::Error,
                    format!(
                        "failover in DestinationRule {key} names {}; it knows regions only, and \
                         has no effect between zones",
                        listed(&entries)
                    ),
                )
                .at("DestinationRule", key, format!("{path}.failover"), entries.join(", "))
                .fix(remove(key, &format!("{path}.failover")))
                .verify(show(key)),
            );
        }
    }
    found
}

fn known_zones<'a>(context: &Context<'a>) -> BTreeSet<&'a str> {
    context.scene.nodes.iter().filter_map(|(_, node)| node.zone()).collect()
}

pub(super) const GAP: Rule = Rule {
    code: "ZRI013",
    title: "distribute leaves a zone out",
    check: Check::Rules,
    effect: Effect::WrongPlace,
    meaning: "Clients in that zone use all zones alike, or a share is meant for a zone without \
              pods.",
    cause: "distribute counts for clients whose locality matches a `from` (region/zone/subzone). \
            Where none matches, or a part of it is no region, there is no preference at all.",
    fix: "Add an entry for the zone, or replace distribute by the default with outlierDetection.",
    verify: "kubectl zone-rollout diagnose traffic",
    example: include_str!("../examples/ZRI013.diff"),
    find: gap,
};

fn gap(context: &Context<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    for (key, host, path, setting) in
        settings(context).filter(|(_, _, _, s)| !s.distribute.is_empty())
    {
        let full = fully_qualified(host, &key.namespace);
        let zones = known_zones(context);
        let uncovered: Vec<&str> = zones
            .iter()
            .copied()
            .filter(|zone| {
                let client = Client::in_zone(context.scene, zone);
                !setting.distribute.iter().any(|entry| client.is_in(&entry.from))
            })
            .collect();
        if !uncovered.is_empty() {
            found.push(
                Found::new(
                    Severity::Warning,
                    format!(
                        "distribute in DestinationRule {key} has no entry for clients in {}; they \
                         use all zones alike",
                        listed(&uncovered)
                    ),
                )
                .at(
                    "DestinationRule",
                    key,
                    format!("{path}.distribute"),
                    listed(setting.distribute.iter().map(|entry| &entry.from)),
                )
                .fix(remove(key, &format!("{path}.distribute")))
                .verify(show(key)),
            );
        }
        let served = context.outlooks.iter().find(|outlook| outlook.host == full);
        let served: Vec<Client> = served
            .map(|outlook| {
                outlook.zones.iter().map(|zone| Client::in_zone(context.scene, zone)).collect()
            })
            .unwrap_or_default();
        let targets: BTreeSet<&String> =
            setting.distribute.iter().flat_map(|entry| entry.to.keys()).collect();
        let empty: Vec<&String> = targets
            .into_iter()
            .filter(|target| !served.iter().any(|place| place.is_in(target)))
            .collect();
        if !served.is_empty() && !empty.is_empty() {
            found.push(
                Found::new(
                    Severity::Warning,
                    format!(
                        "distribute in DestinationRule {key} sends a share to {}, where {host} \
                         has no pods",
                        listed(&empty)
                    ),
                )
                .at("DestinationRule", key, format!("{path}.distribute"), listed(&empty))
                .fix(command::edit("DestinationRule", key))
                .verify(show(key)),
            );
        }
    }
    found
}

pub(super) const PRIORITY_SHADOWED: Rule = Rule {
    code: "ZRI014",
    title: "failoverPriority beside distribute",
    check: Check::Rules,
    effect: Effect::ZoneLoss,
    meaning: "failoverPriority has no effect.",
    cause: "Istio accepts both and looks at distribute alone.",
    fix: "Remove distribute.",
    verify: "kubectl get destinationrule NAME -o yaml",
    example: include_str!("../examples/ZRI014.diff"),
    find: |context| {
        let both = settings(context).filter(|(_, _, _, setting)| {
            !setting.distribute.is_empty() && !setting.failover_priority.is_empty()
        });
        both.map(|(key, _, path, setting)| {
            Found::new(
                Severity::Warning,
                format!(
                    "failoverPriority in DestinationRule {key} has no effect: distribute is set"
                ),
            )
            .at(
                "DestinationRule",
                key,
                format!("{path}.failoverPriority"),
                setting.failover_priority.join(", "),
            )
            .fix(remove(key, &format!("{path}.distribute")))
            .verify(show(key))
        })
        .collect()
    },
};

pub(super) const PRIORITY_LABELS: Rule = Rule {
    code: "ZRI015",
    title: "failoverPriority names labels that nobody has, or twice",
    check: Check::Rules,
    effect: Effect::ZoneLoss,
    meaning: "The order of failover is another than the list says.",
    cause: "An entry counts only if the client's and the endpoint's labels agree, and all entries \
            before it as well. Of entries with the same key Istio keeps the last.",
    fix: "Use each key once, and only labels that the pods carry.",
    verify: "kubectl get pods --show-labels",
    example: include_str!("../examples/ZRI015.diff"),
    find: priority_labels,
};

fn priority_labels(context: &Context<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    for (key, host, path, setting) in settings(context) {
        let path = format!("{path}.failoverPriority");
        let keys: Vec<&str> = setting
            .failover_priority
            .iter()
            .map(|entry| entry.split('=').next().unwrap_or(entry))
            .collect();
        let twice = keys.iter().enumerate().find(|(index, key)| keys[..*index].contains(key));
        if let Some((_, twice)) = twice {
            found.push(
                Found::new(
                    Severity::Warning,
                    format!(
                        "failoverPriority in DestinationRule {key} names {twice} twice; Istio \
                         keeps the last"
                    ),
                )
                .at("DestinationRule", key, &path, setting.failover_priority.join(", "))
                .fix(command::edit("DestinationRule", key))
                .verify(show(key)),
            );
        }
        let Some(labels) = pod_labels(context, &fully_qualified(host, &key.namespace)) else {
            continue;
        };
        let topology =
            |label: &str| label.starts_with("topology.") || label == "kubernetes.io/hostname";
        let unknown: BTreeSet<&str> =
            keys.into_iter().filter(|label| !topology(label) && !labels.contains(*label)).collect();
        if !unknown.is_empty() {
            found.push(
                Found::new(
                    Severity::Warning,
                    format!(
                        "failoverPriority in DestinationRule {key} names {}, which no pod of \
                         {host} carries",
                        listed(&unknown)
                    ),
                )
                .at("DestinationRule", key, &path, setting.failover_priority.join(", "))
                .fix(command::edit("DestinationRule", key))
                .verify(format!("kubectl get pods{} --show-labels", in_namespace(key))),
            );
        }
    }
    found
}

/// Keys of the labels on the pods of a host; nothing if it has none.
fn pod_labels(context: &Context<'_>, host: &str) -> Option<BTreeSet<String>> {
    let service = context.scene.services.get(&service_of(host)?)?;
    let pods = context.scene.pods.iter().filter(|(key, pod)| {
        let labels = &pod.meta.labels;
        key.namespace == service.meta.namespace
            && service.spec.selector.iter().all(|(label, value)| labels.get(label) == Some(value))
    });
    let keys: BTreeSet<String> =
        pods.flat_map(|(_, pod)| pod.meta.labels.keys().cloned()).collect();
    let templates = context
        .rollouts()
        .flat_map(|rollout| labels_of(template_of(context.scene, rollout)).into_keys());
    (!keys.is_empty()).then(|| keys.into_iter().chain(templates).collect())
}

pub(super) const RING: Rule = Rule {
    code: "ZRI016",
    title: "A ring of zones cannot be written with failover",
    check: Check::Rules,
    effect: Effect::ZoneLoss,
    meaning: "The zones do not fail over in the order of the ring.",
    cause: "One list of priorities cannot describe a ring: it orders by what clients and \
            endpoints have in common, and then a is nearer to b than to c, b to c than to a, c to \
            a than to b has no solution.",
    fix: "Give each zone's subset a failoverPriority of its own, in one rule that spans the \
          zones; or take the default, in which both other zones share the load.",
    verify: "kubectl zone-rollout diagnose traffic",
    example: include_str!("../examples/ZRI016.diff"),
    find: ring,
};

fn ring(context: &Context<'_>) -> Vec<Found> {
    let is_ring = |setting: &LocalityLbSetting| {
        let sources: BTreeSet<&String> = setting.failover.iter().map(|entry| &entry.from).collect();
        let targets: BTreeSet<&String> = setting.failover.iter().map(|entry| &entry.to).collect();
        sources.len() > 2 && sources == targets && sources.iter().all(|place| place.contains('/'))
    };
    settings(context)
        .filter(|(_, _, _, setting)| is_ring(setting))
        .map(|(key, _, path, setting)| {
            let ring = listed(
                setting.failover.iter().map(|entry| format!("{} → {}", entry.from, entry.to)),
            );
            Found::new(
                Severity::Info,
                format!(
                    "DestinationRule {key} asks for a ring of zones, which failover cannot express"
                ),
            )
            .at("DestinationRule", key, format!("{path}.failover"), ring)
            .fix(
                "give each zone's stable subset a failoverPriority of its own in one rule that \
                 spans the zones",
            )
            .verify(show(key))
        })
        .collect()
}
