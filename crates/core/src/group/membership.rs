//! Which Rollouts form a group, and which zone each serves.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Group, Zone, ZoneId};
use crate::scene::{Key, Rollout, Scene};
use crate::traffic;

/// Label on a Rollout that names its group.
pub const GROUP_LABEL: &str = "zone-rollout.io/group";
/// Label on a Rollout that names its zone (a value of `topology.kubernetes.io/zone`).
pub const ZONE_LABEL: &str = "zone-rollout.io/zone";

const TOPOLOGY_LABEL: &str = "topology.kubernetes.io/zone";

/// What makes two Rollouts members of the same group.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Bond {
    Label(String),
    Route { virtual_service: Key, host: String },
    AppAndStem { app: String, stem: String },
}

/// All groups of the scene: Rollouts that serve a zone, by what binds them together.
///
/// A Rollout that is neither labelled nor bound to a zone is left out, unless it is routed like those
/// of a group: then it was forgotten, and the group is told so.
pub fn find_groups(scene: &Scene) -> Vec<Group> {
    let mut members: BTreeMap<Bond, Vec<&Rollout>> = BTreeMap::new();
    let (bound, free): (Vec<&Rollout>, Vec<&Rollout>) =
        scene.rollouts.iter().map(|(_, rollout)| rollout).partition(|rollout| {
            topology_of(rollout).is_some() || rollout.meta.labels.contains_key(GROUP_LABEL)
        });
    for rollout in bound {
        members.entry(bond(scene, rollout)).or_default().push(rollout);
    }
    take_in(&mut members);
    for rollout in free {
        if let Some(members) = members.get_mut(&bond(scene, rollout)).filter(|_| is_routed(rollout))
        {
            members.push(rollout);
        }
    }
    let groups: Vec<(Bond, Group)> =
        members.into_iter().map(|(bond, members)| (bond, group(&members))).collect();
    distinct_names(groups)
}

/// One group of just these Rollouts, whatever binds them.
pub fn group_by_hand(scene: &Scene, names: &BTreeSet<String>) -> Option<Group> {
    let members: Vec<&Rollout> = scene
        .rollouts
        .iter()
        .map(|(_, rollout)| rollout)
        .filter(|rollout| names.contains(&rollout.meta.name))
        .collect();
    (!members.is_empty()).then(|| group(&members))
}

fn is_routed(rollout: &Rollout) -> bool {
    rollout.istio().is_some()
}

impl Bond {
    /// True if it names a service.
    fn is_whole(&self) -> bool {
        matches!(self, Self::Route { host, .. } if !host.is_empty())
    }
}

/// Rollouts whose route is missing or broken belong to the group of those that are named like them and
/// are routed, if there is one.
fn take_in(members: &mut BTreeMap<Bond, Vec<&Rollout>>) {
    let partial = |bond: &&Bond| !bond.is_whole() && !matches!(bond, Bond::Label(_));
    let lone: Vec<Bond> = members.keys().filter(partial).cloned().collect();
    for bond in lone {
        let Some(names) = members[&bond].first().map(|rollout| app_and_stem(rollout)) else {
            continue;
        };
        let mut alike = members.iter().filter(|(other, rollouts)| {
            other.is_whole() && rollouts.iter().any(|rollout| app_and_stem(rollout) == names)
        });
        let home = alike.next().map(|(home, _)| home.clone()).filter(|_| alike.next().is_none());
        if let Some(home) = home {
            let taken_in = members.remove(&bond).unwrap_or_default();
            members.entry(home).or_default().extend(taken_in);
        }
    }
}

fn bond(scene: &Scene, rollout: &Rollout) -> Bond {
    if let Some(label) = rollout.meta.labels.get(GROUP_LABEL) {
        return Bond::Label(label.clone());
    }
    if let Some(routed) = traffic::stable_destination(scene, rollout) {
        let short = own_short_name(rollout);
        return Bond::Route {
            virtual_service: routed.virtual_service,
            host: without_zone(&routed.host, short.as_deref()),
        };
    }
    app_and_stem(rollout)
}

fn app_and_stem(rollout: &Rollout) -> Bond {
    let short = own_short_name(rollout);
    Bond::AppAndStem {
        app: rollout
            .meta
            .labels
            .get("app")
            .or_else(|| pod_label(rollout, "app"))
            .cloned()
            .unwrap_or_default(),
        stem: stem_of(&rollout.meta.name, short.as_deref()),
    }
}

/// The name without its zone; if nothing names the zone, without its last part.
fn stem_of(name: &str, short: Option<&str>) -> String {
    match short {
        Some(_) => without_zone(name, short),
        None => name.rsplit_once('-').map_or(name, |(stem, _)| stem).to_owned(),
    }
}

fn group(members: &[&Rollout]) -> Group {
    let stem = common_stem(members);
    let mut zones: Vec<Zone> = members.iter().map(|rollout| zone(rollout, &stem)).collect();
    let ids: BTreeSet<ZoneId> = zones.iter().map(|zone| zone.id.clone()).collect();
    if ids.len() < zones.len() {
        // Short names that clash would be ambiguous; the Rollouts' names never are.
        for zone in &mut zones {
            zone.id = ZoneId(zone.rollout.name.clone());
        }
    }
    zones.sort_by(|one, other| one.id.cmp(&other.id));
    let name = members[0].meta.labels.get(GROUP_LABEL).cloned().unwrap_or(stem);
    Group { name, namespace: members[0].meta.namespace.clone(), zones }
}

fn zone(rollout: &Rollout, stem: &str) -> Zone {
    let rest = rollout.meta.name.strip_prefix(stem).map(|rest| rest.trim_start_matches('-'));
    let id = own_short_name(rollout)
        .or_else(|| rest.filter(|rest| !rest.is_empty()).map(str::to_owned))
        .unwrap_or_else(|| rollout.meta.name.clone());
    Zone { id: ZoneId(id), rollout: rollout.meta.key(), topology: topology_of(rollout) }
}

/// Two groups may end up with the same name (a stem is not unique); then the Rollouts' names decide.
fn distinct_names(groups: Vec<(Bond, Group)>) -> Vec<Group> {
    let mut count: BTreeMap<String, usize> = BTreeMap::new();
    for (_, group) in &groups {
        *count.entry(group.name.clone()).or_default() += 1;
    }
    groups
        .into_iter()
        .map(|(bond, mut group)| {
            if count[&group.name] > 1 {
                group.name = match bond {
                    Bond::Label(name) => name,
                    Bond::Route { virtual_service, .. } => virtual_service.name,
                    Bond::AppAndStem { .. } => group.zones[0].rollout.name.clone(),
                };
            }
            group
        })
        .collect()
}

/// The part that all names start with, up to the last hyphen in it: `test` for `test-a`, `test-b`.
fn common_stem(members: &[&Rollout]) -> String {
    let first = &members[0].meta.name;
    if members.len() == 1 {
        return stem_of(first, own_short_name(members[0]).as_deref());
    }
    let shared = members[1..].iter().fold(first.len(), |shared, rollout| {
        first
            .bytes()
            .zip(rollout.meta.name.bytes())
            .take(shared)
            .take_while(|(one, other)| one == other)
            .count()
    });
    let stem = first[..shared].rfind('-').map_or("", |end| &first[..end]);
    if stem.is_empty() { first.clone() } else { stem.to_owned() }
}

/// `test-a` without `-a`; also the first label of a host, and a value in between (`test-a-stable`).
fn without_zone(name: &str, short: Option<&str>) -> String {
    let Some(short) = short else { return name.to_owned() };
    let (first, domain) = name.split_once('.').unwrap_or((name, ""));
    let parts: Vec<&str> = first.split('-').collect();
    let kept: Vec<&str> = parts.iter().copied().filter(|part| *part != short).collect();
    let first = if kept.is_empty() { first.to_owned() } else { kept.join("-") };
    if domain.is_empty() { first } else { format!("{first}.{domain}") }
}

fn own_short_name(rollout: &Rollout) -> Option<String> {
    pod_label(rollout, "zone").cloned()
}

fn pod_label<'a>(rollout: &'a Rollout, key: &str) -> Option<&'a String> {
    match rollout.spec.template.pointer("/metadata/labels")?.get(key)? {
        Value::String(text) => Some(text),
        _ => None,
    }
}

/// The one zone a Rollout is bound to: its label, its pods' required affinity or node selector.
pub(crate) fn topology_of(rollout: &Rollout) -> Option<String> {
    rollout
        .meta
        .labels
        .get(ZONE_LABEL)
        .cloned()
        .or_else(|| zone_of_affinity(&rollout.spec.template))
        .or_else(|| {
            let selector = rollout.spec.template.pointer("/spec/nodeSelector")?;
            Some(selector.get(TOPOLOGY_LABEL)?.as_str()?.to_owned())
        })
}

/// Terms are alternatives: all of them have to name the same single zone.
fn zone_of_affinity(template: &Value) -> Option<String> {
    let terms = template
        .pointer(
            "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms",
        )?
        .as_array()?;
    let zones: BTreeSet<&str> = terms.iter().map(zone_of_term).collect::<Option<_>>()?;
    (zones.len() == 1).then(|| zones.into_iter().map(str::to_owned).collect())
}

fn zone_of_term(term: &Value) -> Option<&str> {
    term.get("matchExpressions")?.as_array()?.iter().find_map(|expression| {
        let values = expression.get("values")?.as_array()?;
        let named = expression["key"] == TOPOLOGY_LABEL && expression["operator"] == "In";
        if named && values.len() == 1 { values[0].as_str() } else { None }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::layout::{Spec, SpecZone, ring, zone_local};
    use crate::testing::{object, scene_of, spec};

    fn summary(scene: &Scene) -> Vec<String> {
        find_groups(scene)
            .iter()
            .map(|group| {
                let zones: Vec<String> = group
                    .zones
                    .iter()
                    .map(|zone| {
                        format!(
                            "{}={}@{}",
                            zone.id,
                            zone.rollout.name,
                            zone.topology.as_deref().unwrap_or("?")
                        )
                    })
                    .collect();
                format!("{}: {}", group.name, zones.join(" "))
            })
            .collect()
    }

    #[test]
    fn generated_layouts_are_one_group() {
        for objects in [ring(&spec()), zone_local(&spec())] {
            assert_eq!(
                summary(&scene_of(&objects)),
                ["test: a=test-a@us-east-1a b=test-b@us-east-1b c=test-c@us-east-1c"]
            );
        }
    }

    #[test]
    fn two_services_in_one_namespace_are_two_groups() {
        let other = Spec {
            name: "shop-web".to_owned(),
            zones: ["x1", "x2"]
                .map(|short| SpecZone { short: short.to_owned(), topology: short.to_owned() })
                .to_vec(),
            ..spec()
        };
        let objects = [ring(&spec()), ring(&other)].concat();
        assert_eq!(
            summary(&scene_of(&objects)),
            [
                "shop-web: x1=shop-web-x1@x1 x2=shop-web-x2@x2",
                "test: a=test-a@us-east-1a b=test-b@us-east-1b c=test-c@us-east-1c"
            ]
        );
    }

    #[test]
    fn per_zone_services_do_not_split_a_group() {
        let mut objects = zone_local(&spec());
        for object in &mut objects {
            if object["kind"] == "VirtualService" {
                for (zone, short) in ["a", "b", "c"].iter().enumerate() {
                    for (role, index) in [("stable", 0), ("canary", 1)] {
                        object["spec"]["http"][zone]["route"][index]["destination"] =
                            json!({"host": format!("test-{role}-{short}")});
                    }
                }
            }
            if object["kind"] == "Rollout" {
                let short = object["metadata"]["name"].as_str().unwrap().replace("test-", "");
                let canary = &mut object["spec"]["strategy"]["canary"];
                canary["stableService"] = json!(format!("test-stable-{short}"));
                canary["canaryService"] = json!(format!("test-canary-{short}"));
                canary["trafficRouting"]["istio"]
                    .as_object_mut()
                    .unwrap()
                    .remove("destinationRule");
            }
        }
        assert_eq!(
            summary(&scene_of(&objects)),
            ["test: a=test-a@us-east-1a b=test-b@us-east-1b c=test-c@us-east-1c"]
        );
    }

    #[test]
    fn a_zone_whose_route_or_affinity_is_gone_stays_in_its_group() {
        let all = ["test: a=test-a@us-east-1a b=test-b@us-east-1b c=test-c@us-east-1c"];
        let mut objects = ring(&spec());
        for object in &mut objects {
            if object["kind"] == "VirtualService" {
                object["spec"]["http"].as_array_mut().unwrap().remove(1);
            }
        }
        assert_eq!(summary(&scene_of(&objects)), all);
        let mut objects = ring(&spec());
        object(&mut objects, "Rollout", "test-c")["spec"]["strategy"] =
            json!({"blueGreen": {"activeService": "test"}});
        assert_eq!(summary(&scene_of(&objects)), all);
        let mut objects = ring(&spec());
        object(&mut objects, "Rollout", "test-c")["spec"]["template"]["spec"]["affinity"] =
            Value::Null;
        assert_eq!(
            summary(&scene_of(&objects)),
            ["test: a=test-a@us-east-1a b=test-b@us-east-1b c=test-c@?"]
        );
    }

    #[test]
    fn without_routing_the_app_and_the_stem_bind() {
        let rollout = |name: &str, zone: &str| {
            json!({
                "kind": "Rollout", "apiVersion": "argoproj.io/v1alpha1",
                "metadata": {"name": name, "namespace": "default", "labels": {"app": "kv"}},
                "spec": {"template": {"spec": {"nodeSelector": {TOPOLOGY_LABEL: zone}}}},
            })
        };
        let unbound = json!({
            "kind": "Rollout", "apiVersion": "argoproj.io/v1alpha1",
            "metadata": {"name": "single", "namespace": "default"}, "spec": {},
        });
        let objects = [rollout("kv-east", "e1"), rollout("kv-west", "w1"), unbound];
        assert_eq!(summary(&scene_of(&objects)), ["kv: east=kv-east@e1 west=kv-west@w1"]);
    }
}
