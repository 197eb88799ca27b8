//! Sending a zone's clients elsewhere, and back: the whole list of HTTP routes is compared and
//! replaced, so that no weight is lost that the Rollouts controller writes at the same time.

use serde_json::{Value, json};

use super::compile::same_object;
use super::{Drift, Guards, Op, Subresource, TargetKind, Write};
use crate::diversion::route_name;
use crate::group::ZoneId;
use crate::scene::{Key, Rollout, Scene};
use crate::traffic::{RolloutRoute, rollout_routes};

/// Where the list stands.
const HTTP: &str = "/spec/http";

/// Inserts before each of the zone's routes a copy of it that leads to the other zone's stable pods.
/// An earlier diversion is replaced. Only one VirtualService at a time: where the zone has routes in
/// several, the next write takes the next one.
pub(super) fn divert(
    scene: &Scene,
    zone: &ZoneId,
    rollout: &Rollout,
    to: &Rollout,
) -> Result<Write, Drift> {
    let stable = routes(scene, to)?.into_iter().next();
    let stable = stable.map(|route| route.route.raw_destinations()[route.stable].clone());
    let destination = json!([{
        "destination": stable.as_ref().map(|stable| &stable["destination"]),
        "weight": 100,
    }]);
    let name = route_name(zone);
    rewritten(scene, &routes(scene, rollout)?, |own, route| {
        if !own {
            return without(&name, route);
        }
        let mut diverted = route.clone();
        diverted["name"] = json!(name);
        diverted["route"] = destination.clone();
        vec![diverted, route]
    })
    .ok_or_else(|| Drift::new(format!("the clients of zone {zone} are sent there already")))
}

/// Takes the inserted routes out, in one VirtualService at a time.
pub(super) fn end_diversion(
    scene: &Scene,
    zone: &ZoneId,
    rollout: &Rollout,
) -> Result<Write, Drift> {
    let name = route_name(zone);
    rewritten(scene, &routes(scene, rollout)?, |_, route| without(&name, route))
        .ok_or_else(|| Drift::new(format!("the clients of zone {zone} are not sent elsewhere")))
}

fn without(name: &str, route: Value) -> Vec<Value> {
    if route["name"] == name { Vec::new() } else { vec![route] }
}

fn routes<'a>(scene: &'a Scene, rollout: &Rollout) -> Result<Vec<RolloutRoute<'a>>, Drift> {
    rollout_routes(scene, rollout).map_err(|gap| Drift::new(gap.to_string()))
}

/// The write for the first VirtualService of these routes in which `change` changes anything. It is
/// told of each route whether it is one of these.
fn rewritten(
    scene: &Scene,
    routes: &[RolloutRoute<'_>],
    change: impl Fn(bool, Value) -> Vec<Value>,
) -> Option<Write> {
    let keys = routes.iter().map(|route| &route.virtual_service);
    keys.filter_map(|key| Some((key, scene.routes.get(key)?))).find_map(|(key, found)| {
        let is_own = |index| {
            routes.iter().any(|route| route.virtual_service == *key && route.index == index)
        };
        let before: Vec<Value> = found.spec.http.iter().map(|route| route.raw.clone()).collect();
        let each = before.iter().cloned().enumerate();
        let after: Vec<Value> =
            each.flat_map(|(index, route)| change(is_own(index), route)).collect();
        (before != after).then(|| replace(key, &found.meta.uid, before, after))
    })
}

fn replace(key: &Key, uid: &str, before: Vec<Value>, after: Vec<Value>) -> Write {
    let guards: Guards = same_object(uid).and(HTTP, before);
    let change = Op::Replace(HTTP.to_owned(), Value::Array(after));
    Write::new(TargetKind::VirtualService, key.clone(), Subresource::Main, guards, vec![change])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::find_groups;
    use crate::layout::zone_local;
    use crate::testing::{object, scene_of, spec};
    use crate::write::{Action, compile};

    fn zone(name: &str) -> ZoneId {
        ZoneId(name.to_owned())
    }

    fn objects() -> Vec<Value> {
        let mut objects = zone_local(&spec());
        let virtual_service = object(&mut objects, "VirtualService", "test");
        virtual_service["metadata"]["uid"] = json!("vs");
        virtual_service["spec"]["http"][0]["retries"] = json!({"attempts": 2});
        objects
    }

    fn written(objects: &[Value], action: &Action) -> Result<Write, Drift> {
        let scene = scene_of(objects);
        compile(action, &scene, &find_groups(&scene)[0])
    }

    fn apply(objects: &mut [Value], action: &Action) {
        let write = written(objects, action).unwrap();
        write.apply_to(object(objects, "VirtualService", "test")).unwrap();
    }

    /// Names and first destinations of the routes.
    fn told(objects: &mut [Value]) -> String {
        let http = &object(objects, "VirtualService", "test")["spec"]["http"];
        let told = http.as_array().unwrap().iter().map(|route| {
            let subset = route["route"][0]["destination"]["subset"].as_str().unwrap();
            format!("{}>{subset}", route["name"].as_str().unwrap())
        });
        told.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_whole_list_is_compared_and_replaced() {
        let mut objects = objects();
        let action = Action::Divert { zone: zone("a"), to: zone("b") };
        let patch = written(&objects, &action).unwrap().patch();
        let http = object(&mut objects, "VirtualService", "test")["spec"]["http"].clone();
        assert_eq!(patch[0], json!({"op": "test", "path": "/metadata/uid", "value": "vs"}));
        assert_eq!(patch[1], json!({"op": "test", "path": "/spec/http", "value": http}));
        assert_eq!((&patch[2]["op"], &patch[2]["path"]), (&json!("replace"), &json!("/spec/http")));
        let inserted = &patch[2]["value"][0];
        insta::assert_snapshot!(
            inserted,
            @r#"{"match":[{"sourceLabels":{"topology.kubernetes.io/zone":"us-east-1a"}}],"name":"evacuate-a","retries":{"attempts":2},"route":[{"destination":{"host":"test.default.svc.cluster.local","subset":"stable-b"},"weight":100}]}"#
        );
        assert_eq!(patch[2]["value"].as_array().unwrap()[1..], http.as_array().unwrap()[..]);
        assert_eq!(patch.as_array().unwrap().len(), 3);
    }

    #[test]
    fn a_changed_weight_or_another_object_refuses_it() {
        let write =
            written(&objects(), &Action::Divert { zone: zone("a"), to: zone("b") }).unwrap();
        for change in [
            |service: &mut Value| service["metadata"]["uid"] = json!("another"),
            |service: &mut Value| service["spec"]["http"][2]["route"][0]["weight"] = json!(90),
            |service: &mut Value| service["spec"]["http"][0]["timeout"] = json!("1s"),
        ] {
            let mut objects = objects();
            let service = object(&mut objects, "VirtualService", "test");
            change(service);
            assert!(write.apply_to(service).is_err());
        }
    }

    #[test]
    fn there_and_back_again() {
        let mut objects = objects();
        let before = objects.clone();
        let divert = |to: &str| Action::Divert { zone: zone("a"), to: zone(to) };
        apply(&mut objects, &divert("b"));
        let own = "zone-a-route>stable-a zone-b-route>stable-b zone-c-route>stable-c \
                   catch-all>stable-a";
        assert_eq!(told(&mut objects), format!("evacuate-a>stable-b {own}"));
        assert!(written(&objects, &divert("b")).is_err(), "twice");
        apply(&mut objects, &divert("c"));
        assert_eq!(told(&mut objects), format!("evacuate-a>stable-c {own}"));
        let back = Action::EndDiversion { zone: zone("a") };
        apply(&mut objects, &back);
        assert_eq!(objects, before);
        assert!(written(&objects, &back).is_err(), "twice");
    }
}
