//! Every layout, for any zones and steps: it refers to nothing that is not there, holds on the
//! simulated cluster, and does what it promises if a zone is lost.

use std::collections::BTreeSet;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::group::{Group, find_groups};
use crate::promote::{Blocker, Goal, Settings, blockers};
use crate::scene::Scene;
use crate::sim::World;
use crate::testing::{settings, spec};
use crate::traffic::{Client, Loss, flow};

fn named<'a>(objects: &'a [Value], kind: &str, name: &str) -> &'a Value {
    objects
        .iter()
        .find(|object| object["kind"] == kind && object["metadata"]["name"] == name)
        .unwrap_or_else(|| panic!("{kind} {name}"))
}

fn of_kind<'a>(objects: &'a [Value], kind: &str) -> Vec<&'a Value> {
    objects.iter().filter(|object| object["kind"] == kind).collect()
}

fn in_zones(count: usize) -> Spec {
    let zones = ('a'..='z')
        .take(count)
        .map(|short| SpecZone { short: short.to_string(), topology: format!("us-east-1{short}") });
    Spec { zones: zones.collect(), ..spec() }
}

/// The objects of a layout on a simulated cluster, after their deployment.
fn deployed(objects: &[Value]) -> World {
    let mut world = World::deploy(objects, crate::testing::now().wall, 1).unwrap();
    world.wait(Duration::from_mins(2));
    world
}

fn only_group(scene: &Scene) -> Group {
    let mut groups = find_groups(scene);
    assert_eq!(groups.len(), 1, "{groups:?}");
    groups.remove(0)
}

/// What forbids to bring `myapp:v2` to all zones.
fn forbidden(world: &World) -> Vec<Blocker> {
    let scene = world.scene();
    let group = only_group(&scene);
    let order = group.zones.iter().map(|zone| zone.id.clone()).collect();
    let goal = Goal::images(&scene, &group, &["myapp:v2".to_owned()]).map(Goal::Expected).unwrap();
    blockers(&scene, &group, &Settings { order, ..settings() }, &goal, world.now())
}

/// Whether all clients of a zone are served after the loss of another, or none of them.
fn served(scene: &Scene, host: &str, client: &SpecZone, lost: &SpecZone) -> bool {
    let client = Client::in_zone(scene, &client.topology);
    let unserved = flow(scene, host, &client, Some(Loss::Zone(&lost.topology))).unserved;
    assert!(!(0.001..=0.999).contains(&unserved), "{unserved} in part");
    unserved < 0.5
}

fn any_spec() -> impl Strategy<Value = Spec> {
    let shorts = proptest::collection::btree_set("[a-z0-9]{1,20}", 2..6).prop_shuffle_set();
    let weights = proptest::collection::btree_set(1_u32..=100, 1..6);
    (shorts, weights, 1_u32..5, any::<bool>()).prop_map(|(shorts, weights, replicas, gate)| Spec {
        zones: shorts
            .into_iter()
            .map(|short| SpecZone { topology: format!("region-{short}"), short })
            .collect(),
        weights: weights.into_iter().collect(),
        replicas,
        gate,
        ..spec()
    })
}

/// A set in any order.
trait Shuffled {
    fn prop_shuffle_set(self) -> BoxedStrategy<Vec<String>>;
}

impl<S: Strategy<Value = BTreeSet<String>> + 'static> Shuffled for S {
    fn prop_shuffle_set(self) -> BoxedStrategy<Vec<String>> {
        self.prop_map(Vec::from_iter).prop_shuffle().boxed()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_ring_serves_everybody_after_the_loss_of_a_zone(spec in any_spec()) {
        prop_assert_eq!(spec.check(), Ok(()));
        let world = deployed(&ring(&spec));
        let forbidden = forbidden(&world);
        let gate = |blocker: &Blocker| spec.gate || !matches!(blocker, Blocker::NoGate(_));
        prop_assert!(!forbidden.iter().any(gate), "{:?}", forbidden);
        let scene = world.scene();
        for client in &spec.zones {
            for lost in &spec.zones {
                prop_assert!(served(&scene, &spec.host(), client, lost));
            }
        }
    }

    #[test]
    fn any_zone_local_layout_loses_only_the_zone(spec in any_spec()) {
        let world = deployed(&zone_local(&spec));
        let scene = world.scene();
        for client in &spec.zones {
            for lost in &spec.zones {
                prop_assert_eq!(served(&scene, &spec.host(), client, lost), client != lost);
            }
        }
    }

    #[test]
    fn nothing_refers_to_what_is_not_there(spec in any_spec()) {
        for layout in [Layout::Ring, Layout::ZoneLocal, Layout::Plain] {
            let objects = with_metrics(&spec, layout.objects(&spec), "http://prometheus:9090");
            refers_to_what_is_there(&objects);
            prop_assert_eq!(&objects, &with_metrics(&spec, layout.objects(&spec), "http://prometheus:9090"));
        }
    }
}

/// Names and labels; that routes and subsets are there is a matter of blockers.
fn refers_to_what_is_there(objects: &[Value]) {
    let mut names = BTreeSet::new();
    for object in objects {
        let (kind, name) = (&object["kind"], &object["metadata"]["name"]);
        assert!(names.insert(format!("{kind} {name}")), "{kind} {name} is there twice");
    }
    for rollout in of_kind(objects, "Rollout") {
        let labels = &rollout["spec"]["template"]["metadata"]["labels"];
        assert_eq!(selected(&rollout["spec"]["selector"]["matchLabels"], labels), 2);
        let name = rollout["metadata"]["name"].as_str().unwrap();
        let budget = named(objects, "PodDisruptionBudget", name);
        assert_eq!(selected(&budget["spec"]["selector"]["matchLabels"], labels), 2);
        let canary = &rollout["spec"]["strategy"]["canary"];
        let template = canary["analysis"]["templates"][0]["templateName"].as_str().unwrap();
        let template = named(objects, "AnalysisTemplate", template);
        assert_eq!(template["spec"]["args"][0]["name"], canary["analysis"]["args"][0]["name"]);
        let first = canary["analysis"]["startingStep"].as_u64().unwrap();
        let before = &canary["steps"].as_array().unwrap()[..usize::try_from(first).unwrap()];
        assert!(before.iter().any(|step| step["setWeight"].is_u64()));
        for role in ["stable", "canary"] {
            let mut labels = labels.clone();
            labels[ROLE_LABEL] = canary[format!("{role}Metadata")]["labels"][ROLE_LABEL].clone();
            let services = of_kind(objects, "Service");
            let found = services
                .iter()
                .filter(|service| selected(&service["spec"]["selector"], &labels) == 3)
                .count();
            assert_eq!(found, 1, "Services of the {role} pods of {name}");
        }
    }
}

/// How many labels a selector asks for, or 0 if these are not them.
fn selected(selector: &Value, labels: &Value) -> usize {
    let selector = selector.as_object().unwrap();
    let all = selector.iter().all(|(label, value)| labels[label] == *value);
    if all { selector.len() } else { 0 }
}

#[test]
fn a_pod_carries_the_ring_labels_of_its_own_and_the_previous_zone() {
    for (zones, expected) in [
        (2, ["a-b b-a", "a-b b-a", ""]),
        (3, ["a-b c-a", "a-b b-c", "b-c c-a"]),
        (5, ["a-b e-a", "a-b b-c", "b-c c-d"]),
    ] {
        let objects = ring(&in_zones(zones));
        for (rollout, expected) in of_kind(&objects, "Rollout").into_iter().zip(expected) {
            let labels = rollout["spec"]["template"]["metadata"]["labels"].as_object().unwrap();
            let ring: Vec<&str> =
                labels.keys().filter_map(|key| key.strip_prefix(RING_LABEL_PREFIX)).collect();
            assert_eq!(ring.join(" "), expected);
        }
    }
}

#[test]
fn the_ring_prefers_the_next_zone_and_then_all_others() {
    let spec = in_zones(5);
    let scene = deployed(&ring(&spec)).scene();
    let zones_of = |lost: &[usize]| {
        let mut scene = scene.clone();
        let lost: Vec<String> =
            lost.iter().map(|index| format!("test-{}-", spec.zones[*index].short)).collect();
        scene.pods.items.retain(|key, _| !lost.iter().any(|name| key.name.starts_with(name)));
        let client = Client::in_zone(&scene, "us-east-1a");
        let flow = flow(&scene, &spec.host(), &client, None);
        let zones: BTreeSet<char> =
            flow.shares.keys().filter_map(|key| key.name.chars().nth(5)).collect();
        zones.into_iter().collect::<String>()
    };
    assert_eq!(zones_of(&[]), "a");
    assert_eq!(zones_of(&[0]), "b");
    assert_eq!(zones_of(&[0, 1]), "cde");
    assert_eq!(zones_of(&[1, 2]), "a");
}

#[test]
fn the_base_rule_comes_before_every_other_rule_and_its_name_too() {
    for layout in [Layout::Ring, Layout::ZoneLocal] {
        let objects = layout.objects(&spec());
        let rules: Vec<&str> = of_kind(&objects, "DestinationRule")
            .iter()
            .map(|rule| rule["metadata"]["name"].as_str().unwrap())
            .collect();
        assert_eq!(rules, ["test", "test-a", "test-b", "test-c"]);
        assert!(rules.is_sorted());
    }
    let plain = plain(&spec());
    assert_eq!(of_kind(&plain, "DestinationRule").len(), 1);
    assert!(of_kind(&plain, "VirtualService").is_empty());
}

#[test]
fn weights_of_the_catch_all_add_up() {
    for zones in 2..=7 {
        let objects = zone_local(&in_zones(zones));
        let http = named(&objects, "VirtualService", "test")["spec"]["http"].clone();
        let last = http.as_array().unwrap().last().unwrap();
        let weights = last["route"].as_array().unwrap().iter().map(|to| to["weight"].as_u64());
        assert_eq!(weights.sum::<Option<u64>>(), Some(100));
    }
}

#[test]
fn gitops_is_told_what_comes_first_and_what_is_not_its_own() {
    let spec = in_zones(2);
    let marks = |tool| {
        for_gitops(&spec, ring(&spec), tool)
            .iter()
            .filter_map(|object| {
                let marks = object["metadata"]["annotations"].as_object()?;
                let (mark, value) = marks.iter().next()?;
                let name = object["metadata"]["name"].as_str()?;
                let kind = object["kind"].as_str()?;
                Some(format!("{kind} {name} {}={}", mark.rsplit('/').next()?, value.as_str()?))
            })
            .collect::<Vec<_>>()
            .join("\n")
    };
    insta::assert_snapshot!(marks(GitOps::ArgoCd), @r"
    DestinationRule test sync-wave=-2
    DestinationRule test-a sync-wave=-1
    DestinationRule test-b sync-wave=-1
    VirtualService test sync-wave=-1
    ");
    insta::assert_snapshot!(marks(GitOps::Flux), @r"
    DestinationRule test-a ssa=IfNotPresent
    DestinationRule test-b ssa=IfNotPresent
    VirtualService test ssa=IfNotPresent
    ");
    let ignored = argo_cd_patch(&spec, &ring(&spec))["spec"]["ignoreDifferences"].clone();
    let paths = |index: usize| ignored[index]["jqPathExpressions"].clone();
    assert_eq!(paths(0), json!([r#".spec.subsets[].labels."rollouts-pod-template-hash""#]));
    assert_eq!(
        paths(2),
        json!([
            ".spec.http[].route[].weight",
            r#".spec.http[] | select((.name // "") | startswith("evacuate-"))"#,
        ])
    );
}
