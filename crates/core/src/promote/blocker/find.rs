//! Finding the blockers of a run: everything that is looked at before anything is written.

use std::collections::{BTreeMap, BTreeSet};

use super::Blocker;
use crate::diversion::diverted;
use crate::gitops;
use crate::group::{Group, Zone, ZoneId};
use crate::promote::clearance::not_serving;
use crate::promote::{Goal, Settings};
use crate::proof::Unmet;
use crate::scene::{Coverage, Key, Rollout, Scene, Step};
use crate::template::difference;
use crate::time::Moment;
use crate::traffic::{RouteGap, dead_routes, merged_rule, rollout_routes};
use crate::write::FIELD_MANAGER;
use crate::zone::{ZoneFacts, ZoneState, forecast, outage, zone_state};

/// Everything that forbids this run now; empty if it may start.
pub fn blockers(
    scene: &Scene,
    group: &Group,
    settings: &Settings,
    goal: &Goal,
    now: Moment,
) -> Vec<Blocker> {
    let view = View { scene, group, settings, goal, now };
    let mut found = view.unseen();
    found.extend(view.unbound());
    found.extend(view.sharing());
    found.extend(view.routes());
    found.extend(view.evacuations());
    found.extend(view.states());
    found.extend(view.targets());
    found.extend(view.leaks());
    found.extend(view.specs());
    found
}

/// Zones whose spec the controller has not looked at.
pub(in crate::promote) fn unheard(
    scene: &Scene,
    group: &Group,
    settings: &Settings,
    now: Moment,
) -> Vec<Blocker> {
    let zones = group.zones.iter().filter(|zone| !settings.skipped.contains(&zone.id));
    zones
        .map(|zone| (zone, zone_state(scene, group, zone, None, now)))
        .filter(|(zone, state)| is_unheard(scene, zone, state))
        .map(|(zone, state)| Blocker::State(zone.id.clone(), state))
        .collect()
}

/// What a run of this tool has written is no reason not to go on with it: a controller that missed it
/// is touched.
fn is_unheard(scene: &Scene, zone: &Zone, state: &ZoneState) -> bool {
    let writer = zone.rollout(scene).and_then(|rollout| rollout.meta.last_writer_of_spec());
    match state {
        ZoneState::NeverReconciled => true,
        ZoneState::Unobserved => writer != Some(FIELD_MANAGER),
        _ => false,
    }
}

struct View<'a> {
    scene: &'a Scene,
    group: &'a Group,
    settings: &'a Settings,
    goal: &'a Goal,
    now: Moment,
}

impl<'a> View<'a> {
    fn rollouts(&self) -> impl Iterator<Item = (&'a Zone, &'a Rollout)> + use<'a> {
        let scene = self.scene;
        self.group.zones.iter().filter_map(|zone| Some((zone, zone.rollout(scene)?)))
    }

    /// The same without the zones that are left out by name.
    fn driven(&self) -> impl Iterator<Item = (&'a Zone, &'a Rollout)> {
        self.rollouts().filter(|(zone, _)| !self.settings.skipped.contains(&zone.id))
    }

    fn state(&self, zone: &Zone) -> ZoneState {
        zone_state(self.scene, self.group, zone, None, self.now)
    }

    fn unseen(&self) -> Vec<Blocker> {
        let routed = self.rollouts().any(|(_, rollout)| rollout.istio().is_some());
        self.scene
            .gaps()
            .into_iter()
            .filter(|(kind, _)| match *kind {
                "nodes" => false,
                "horizontalpodautoscalers" => self.settings.hold,
                "virtualservices" | "destinationrules" => routed,
                _ => true,
            })
            .filter(|(kind, coverage)| {
                *kind != "horizontalpodautoscalers" || **coverage != Coverage::KindAbsent
            })
            .map(|(kind, coverage)| Blocker::Unseen { kind, coverage: coverage.clone() })
            .collect()
    }

    fn sharing(&self) -> Vec<Blocker> {
        let mut by_rule: BTreeMap<String, Vec<ZoneId>> = BTreeMap::new();
        let mut by_route: BTreeMap<(Key, String), Vec<ZoneId>> = BTreeMap::new();
        for (zone, rollout) in self.rollouts() {
            if let Some(rule) = rollout.destination_rule() {
                by_rule.entry(rule.name.clone()).or_default().push(zone.id.clone());
            }
            for route in rollout_routes(self.scene, rollout).into_iter().flatten() {
                let key = (route.virtual_service, route.route.name.clone());
                by_route.entry(key).or_default().push(zone.id.clone());
            }
        }
        let rules = by_rule
            .into_iter()
            .filter(|(_, zones)| zones.len() > 1)
            .map(|(rule, zones)| Blocker::SharedRule { rule, zones });
        let routes = by_route.into_iter().filter(|(_, zones)| zones.len() > 1).map(
            |((virtual_service, route), zones)| Blocker::SharedRoute {
                virtual_service,
                route,
                zones,
            },
        );
        rules.chain(routes).collect()
    }

    fn routes(&self) -> Vec<Blocker> {
        if !self.scene.routes.is_complete() || !self.scene.rules.is_complete() {
            return Vec::new();
        }
        let mut found: Vec<Blocker> =
            self.rollouts().flat_map(|(zone, rollout)| self.routes_of(zone, rollout)).collect();
        // What is wrong with a zone's own route is told by its zone.
        if found.is_empty() {
            found.extend(self.dead_routes());
        }
        found
    }

    fn dead_routes(&self) -> Vec<Blocker> {
        let routes = self.rollouts().flat_map(|(_, rollout)| rollout_routes(self.scene, rollout));
        let shared: BTreeSet<Key> = routes.flatten().map(|route| route.virtual_service).collect();
        let dead = |virtual_service: &Key| {
            let virtual_service = virtual_service.clone();
            dead_routes(self.scene, &virtual_service).into_iter().map(move |dead| {
                Blocker::DeadRoute { virtual_service: virtual_service.clone(), dead }
            })
        };
        shared.iter().flat_map(dead).collect()
    }

    /// Zones that are bound to no zone of nodes, where others are.
    fn unbound(&self) -> Vec<Blocker> {
        let (bound, free): (Vec<&Zone>, Vec<&Zone>) =
            self.group.zones.iter().partition(|zone| zone.topology.is_some());
        let free = free.into_iter().filter(|_| !bound.is_empty());
        let left = free.filter(|zone| !self.settings.skipped.contains(&zone.id));
        left.map(|zone| Blocker::NoZone(zone.id.clone())).collect()
    }

    fn routes_of(&self, zone: &Zone, rollout: &Rollout) -> Vec<Blocker> {
        let routes = match rollout_routes(self.scene, rollout) {
            Ok(routes) => routes,
            Err(RouteGap::NotRouted) => return Vec::new(),
            Err(gap) => return vec![Blocker::Route(zone.id.clone(), gap)],
        };
        let Some(own) = rollout.destination_rule() else { return Vec::new() };
        let mut found = Vec::new();
        for route in routes {
            let merged = merged_rule(self.scene, &route.host);
            for name in [&own.stable_subset_name, &own.canary_subset_name] {
                match merged.subset(name) {
                    None => found.push(Blocker::NoSubset(zone.id.clone(), name.clone())),
                    Some(effective) => {
                        let base = effective.shadowed.first();
                        if let Some(base) = base.filter(|_| effective.rule.meta.name == own.name) {
                            found.push(Blocker::BaseRuleShadowed {
                                zone: zone.id.clone(),
                                subset: name.clone(),
                                base: base.meta.name.clone(),
                                winner: own.name.clone(),
                            });
                        }
                    }
                }
            }
        }
        found
    }

    /// Zones that would be promoted while their clients are elsewhere.
    fn evacuations(&self) -> Vec<Blocker> {
        let zones = self.settings.order.iter().filter(|id| !self.settings.skipped.contains(id));
        let evacuated = |id: &ZoneId| {
            let found = diverted(self.scene, self.group, self.group.zone(id)?)?;
            Some(Blocker::Evacuated(id.clone(), found.to))
        };
        zones.filter_map(evacuated).collect()
    }

    fn states(&self) -> Vec<Blocker> {
        let waiting = not_serving(self.scene, self.group);
        let no_pods = |zone: &Zone| {
            waiting.iter().any(|(id, unmet)| *id == zone.id && *unmet == Unmet::NoPods)
        };
        let mut found = Vec::new();
        for zone in &self.group.zones {
            if self.settings.skipped.contains(&zone.id) {
                continue;
            }
            let state = self.state(zone);
            if is_unheard(self.scene, zone, &state) {
                found.push(Blocker::State(zone.id.clone(), state));
                continue;
            }
            let facts = ZoneFacts::gather(self.scene, zone);
            let hopeless = matches!(
                state,
                ZoneState::Missing
                    | ZoneState::Deleting
                    | ZoneState::Unknown { .. }
                    | ZoneState::Unsupported { .. }
                    | ZoneState::InvalidSpec { .. }
                    | ZoneState::Aborted { .. }
                    | ZoneState::PromotingFull
                    | ZoneState::Inconclusive { .. }
                    | ZoneState::Held { ours: false }
            );
            if hopeless {
                found.push(Blocker::State(zone.id.clone(), state));
            } else if let Some(outage) = facts.as_ref().and_then(|facts| outage(self.scene, facts))
            {
                found.push(Blocker::Lost(zone.id.clone(), outage));
            } else if no_pods(zone) {
                found.push(Blocker::Parked(zone.id.clone()));
            } else if matches!(state, ZoneState::Held { ours: true })
                && facts.is_some_and(|facts| facts.canary.is_some_and(|canary| canary.count() > 0))
            {
                found.push(Blocker::HeldMidway(zone.id.clone()));
            }
        }
        found
    }

    /// All zones that are asked to update have to be asked for the same, by the same steps.
    fn targets(&self) -> Vec<Blocker> {
        let mut found = Vec::new();
        let moving: Vec<(&Zone, &Rollout)> = self
            .driven()
            .filter(|(zone, _)| {
                ZoneFacts::gather(self.scene, zone).is_some_and(|facts| facts.is_in_flight())
            })
            .collect();
        if let Some(((first, template), rest)) = moving
            .split_first()
            .map(|((zone, rollout), rest)| ((*zone, &rollout.spec.template), rest))
        {
            found.extend(rest.iter().filter_map(|(zone, rollout)| {
                let place = difference((template, first), (&rollout.spec.template, zone))?;
                let (one, other) = (first.id.clone(), zone.id.clone());
                Some(Blocker::DifferentTargets { one, other, place })
            }));
        }
        let mut driven = self.driven();
        if let Some((first, rollout)) = driven.next() {
            found.extend(
                driven
                    .filter(|(_, other)| other.steps() != rollout.steps())
                    .map(|(zone, _)| Blocker::DifferentSteps(first.id.clone(), zone.id.clone())),
            );
        }
        found
    }

    /// One zone may be on its way: an earlier run was interrupted. Two are no order.
    fn leaks(&self) -> Vec<Blocker> {
        let moving: Vec<(&Zone, &Rollout)> =
            self.rollouts().filter(|(zone, _)| self.moves(zone)).collect();
        let ours = |zone: &Zone| self.settings.order.contains(&zone.id);
        let leak = moving.len() > 1 || moving.iter().any(|(zone, _)| !ours(zone));
        let mut found = Vec::new();
        if leak {
            let ways = moving
                .iter()
                .map(|(zone, rollout)| (zone.id.clone(), forecast(rollout, self.now)))
                .collect();
            found.push(Blocker::Leak(ways));
        }
        if matches!(self.goal, Goal::Expected(_)) && !self.settings.hold {
            let open: Vec<ZoneId> = self
                .rollouts()
                .filter(|(zone, rollout)| {
                    rollout.gate().is_none() && !self.goal.is_asked_for(zone, rollout)
                })
                .map(|(zone, _)| zone.id.clone())
                .collect();
            if !open.is_empty() {
                found.push(Blocker::NoGate(open));
            }
        }
        found
    }

    fn moves(&self, zone: &Zone) -> bool {
        let held = matches!(self.state(zone), ZoneState::Held { .. });
        ZoneFacts::gather(self.scene, zone).is_some_and(|facts| facts.has_started() && !held)
    }

    /// What would be changed in specs, and what the specs themselves get wrong.
    fn specs(&self) -> Vec<Blocker> {
        let mut found = Vec::new();
        for (zone, rollout) in self.driven() {
            if has_early_analysis(rollout) {
                found.push(Blocker::EarlyAnalysis(zone.id.clone()));
            }
            let holds = self.settings.hold && needs_hold(rollout);
            let sets = matches!(self.goal, Goal::Set(_) | Goal::Restored(_))
                && self.settings.order.contains(&zone.id)
                && !self.goal.is_asked_for(zone, rollout);
            if let Some(owner) = gitops::owner(&rollout.meta)
                && (holds || sets)
                && !self.settings.force
            {
                found.push(Blocker::OwnedByGitOps(zone.id.clone(), owner));
            }
            if holds && !self.settings.freeze_autoscaler {
                found.extend(
                    autoscaler_of(self.scene, rollout).map(|autoscaler| Blocker::HoldFreezes {
                        zone: zone.id.clone(),
                        autoscaler,
                    }),
                );
            }
        }
        found
    }
}

/// The autoscaler that scales a Rollout, if there is one.
pub fn autoscaler_of(scene: &Scene, rollout: &Rollout) -> Option<String> {
    scene
        .autoscalers
        .iter()
        .map(|(_, autoscaler)| autoscaler)
        .find(|autoscaler| {
            let target = &autoscaler.spec.scale_target_ref;
            target.kind == "Rollout" && target.name == rollout.meta.name
        })
        .map(|autoscaler| autoscaler.meta.name.clone())
}

/// A zone without a gate starts by itself when its template changes; a zone held already does not.
pub(in crate::promote) fn needs_hold(rollout: &Rollout) -> bool {
    rollout.gate().is_none() && !rollout.spec.paused
}

/// Background analysis has to skip the gate and the first weight (`rollout/analysis.go` starts it as
/// soon as the step index reaches `startingStep`, pauses included).
fn has_early_analysis(rollout: &Rollout) -> bool {
    let first_weight = rollout
        .steps()
        .iter()
        .position(|step| matches!(step, Step::SetWeight(weight) if *weight > 0));
    rollout
        .spec
        .strategy
        .canary
        .as_ref()
        .and_then(|canary| canary.analysis.as_ref())
        .zip(first_weight)
        .is_some_and(|(analysis, first)| analysis.starting_step <= first)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::group::find_groups;
    use crate::layout::{Spec, ring};
    use crate::testing::{canary, now, object, running, scene_of, settings, spec};

    /// What blocks a run that brings what is in flight, or the expected `myapp:v2`.
    fn blocked(objects: &[Value], change: impl Fn(&mut Settings)) -> String {
        let scene = scene_of(objects);
        let group = find_groups(&scene).remove(0);
        let mut settings = settings();
        change(&mut settings);
        let expected =
            || Goal::images(&scene, &group, &["myapp:v2".to_owned()]).map(Goal::Expected).unwrap();
        let goal = Goal::in_flight(&scene, &group).unwrap_or_else(expected);
        let found = blockers(&scene, &group, &settings, &goal, now());
        found.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    }

    fn at_the_gates() -> Vec<Value> {
        let mut objects = running(ring(&spec()));
        for zone in ["a", "b", "c"] {
            canary(&mut objects, zone, 0, 0);
        }
        objects
    }

    fn changed(change: impl Fn(&mut Vec<Value>)) -> String {
        let mut objects = at_the_gates();
        change(&mut objects);
        blocked(&objects, |_| {})
    }

    #[test]
    fn a_change_that_the_controller_has_not_seen_is_refused_unless_it_is_ours() {
        let unseen = |manager: &str| {
            let mut objects = running(ring(&spec()));
            let metadata = &mut object(&mut objects, "Rollout", "test-a")["metadata"];
            metadata["generation"] = json!(9);
            metadata["managedFields"] = json!([
                {"manager": "kubectl", "time": "2026-11-30T11:00:00Z"},
                {"manager": manager, "time": "2026-11-30T11:00:01Z"},
                {"manager": "x", "subresource": "status", "time": "2026-11-30T11:00:02Z"},
            ]);
            let scene = scene_of(&objects);
            let group = find_groups(&scene).remove(0);
            let planned = crate::promote::plan(&scene, &group, &settings(), None, now());
            (planned.awaits_controller(), blocked(&objects, |_| {}))
        };
        let told = "zone a has a change that the Rollouts controller has not seen; is it running?";
        assert_eq!(unseen("argocd-controller"), (true, told.to_owned()));
        assert_eq!(unseen(FIELD_MANAGER), (false, String::new()));
    }

    #[test]
    fn a_zone_that_is_not_bound_and_a_route_that_leads_nowhere_are_refused() {
        let told = changed(|objects| {
            let rollout = object(objects, "Rollout", "test-c");
            rollout["spec"]["template"]["spec"]["affinity"] = Value::Null;
        });
        assert!(
            told.contains("the Rollout of zone c is not bound to one zone, as the others are"),
            "{told}"
        );
        let told = changed(|objects| {
            objects
                .retain(|it| it["kind"] != "DestinationRule" || it["metadata"]["name"] != "test");
        });
        assert_eq!(
            told,
            "route `catch-all` of VirtualService `test` leads nowhere: no DestinationRule defines \
             subset `stable-any`"
        );
    }

    #[test]
    fn nothing_blocks_zones_at_their_gates_or_one_on_its_way() {
        assert_eq!(changed(|_| {}), "");
        assert_eq!(changed(|objects| canary(objects, "b", 20, 1)), "");
    }

    #[test]
    fn broken_layouts_block() {
        insta::assert_snapshot!(
            changed(|objects| {
                for zone in ["a", "b"] {
                    let rollout = object(objects, "Rollout", &format!("test-{zone}"));
                    rollout["spec"]["strategy"]["canary"]["trafficRouting"]["istio"]["destinationRule"]["name"] =
                        json!("test-a");
                }
            }),
            @"the Rollouts of zones a, b share DestinationRule `test-a`: each erases the subsets of the others"
        );
        insta::assert_snapshot!(
            changed(|objects| {
                object(objects, "DestinationRule", "test-c")["spec"]["subsets"] = json!([]);
            }),
            @"the route of zone c leads nowhere: no DestinationRule defines subset `canary-c`"
        );
        insta::assert_snapshot!(
            changed(|objects| {
                object(objects, "DestinationRule", "test")["metadata"]["creationTimestamp"] =
                    json!("2026-11-02T00:00:00Z");
            }),
            @"
        zone a has no failover: subset `stable-a` of DestinationRule `test` is without effect, because `test-a` is older and defines it too
        zone b has no failover: subset `stable-b` of DestinationRule `test` is without effect, because `test-b` is older and defines it too
        zone c has no failover: subset `stable-c` of DestinationRule `test` is without effect, because `test-c` is older and defines it too
        "
        );
    }

    #[test]
    fn zones_that_cannot_be_driven_block() {
        let status = |name: &'static str, field: &'static str, value: Value| {
            move |objects: &mut Vec<Value>| {
                object(objects, "Rollout", name)["status"][field] = value.clone();
            }
        };
        insta::assert_snapshot!(
            changed(status("test-b", "abort", json!(true))),
            @"zone b is aborted"
        );
        insta::assert_snapshot!(
            changed(status("test-b", "promoteFull", json!(true))),
            @"zone b is being promoted in full by somebody else"
        );
        insta::assert_snapshot!(
            changed(|objects| object(objects, "Rollout", "test-c")["status"] = json!({})),
            @"zone c was never seen by the Rollouts controller; is it running?"
        );
        insta::assert_snapshot!(
            changed(|objects| {
                let rollout = object(objects, "Rollout", "test-a");
                rollout["spec"]["strategy"]["blueGreen"] = json!({});
            }),
            @"zone a is not supported: strategy blueGreen has no steps to order; only canary is driven"
        );
        insta::assert_snapshot!(
            changed(|objects| {
                object(objects, "Node", "node-c1")["status"]["conditions"][0]["status"] =
                    json!("Unknown");
            }),
            @"zone c is lost: the zone's only node is not Ready"
        );
        insta::assert_snapshot!(
            changed(|objects| {
                object(objects, "Rollout", "test-b")["spec"]["replicas"] = json!(0);
            }),
            @"zone b is parked at 0 replicas: no pod there can prove the new version"
        );
    }

    #[test]
    fn zones_that_disagree_block() {
        insta::assert_snapshot!(
            changed(|objects| {
                let rollout = object(objects, "Rollout", "test-c");
                rollout["spec"]["template"]["spec"]["containers"][0]["command"] = json!(["x"]);
            }),
            @"zones a and c are being updated to different templates: they differ at spec.containers[0].command"
        );
        insta::assert_snapshot!(
            changed(|objects| {
                let rollout = object(objects, "Rollout", "test-b");
                rollout["spec"]["strategy"]["canary"]["steps"][1] = json!({"setWeight": 5});
            }),
            @"zones a and b have different steps"
        );
    }

    #[test]
    fn zones_that_move_by_themselves_block() {
        let two = changed(|objects| {
            canary(objects, "a", 20, 1);
            canary(objects, "c", 10, 1);
        });
        assert_eq!(two, "zones a, c are moving at the same time");
        let mut objects = at_the_gates();
        canary(&mut objects, "c", 10, 1);
        let without_c = blocked(&objects, |settings| settings.order.truncate(2));
        assert_eq!(without_c, "zone c is moving outside this run");
        let ungated = running(ring(&Spec { gate: false, ..spec() }));
        assert_eq!(
            blocked(&ungated, |_| {}),
            "zones a, b, c have no gate: they would all start by themselves when the version arrives"
        );
        assert_eq!(blocked(&ungated, |settings| settings.hold = true), "");
    }

    #[test]
    fn specs_of_others_and_early_analyses_block() {
        let mut owned = running(ring(&Spec { gate: false, ..spec() }));
        object(&mut owned, "Rollout", "test-a")["metadata"]["annotations"]["argocd.argoproj.io/tracking-id"] =
            json!("shop:x");
        let told = blocked(&owned, |settings| settings.hold = true);
        assert_eq!(
            told,
            "the spec of zone a is owned by Argo CD (argocd.argoproj.io/tracking-id: shop:x), \
             which would put it back"
        );
        assert_eq!(blocked(&owned, |s| (s.hold, s.force) = (true, true)), "");
        let early = changed(|objects| {
            let rollout = object(objects, "Rollout", "test-b");
            rollout["spec"]["strategy"]["canary"]["analysis"] = json!({"startingStep": 1});
        });
        assert_eq!(
            early,
            "the analysis of zone b starts before its first weight: there is nothing to measure, \
             and no data aborts the update"
        );
    }

    #[test]
    fn a_zone_that_is_left_out_need_not_be_well() {
        let mut objects = at_the_gates();
        object(&mut objects, "Rollout", "test-b")["status"]["abort"] = json!(true);
        let told = blocked(&objects, |settings| {
            settings.skipped.insert(ZoneId("b".to_owned()));
            settings.order.remove(1);
        });
        assert_eq!(told, "");
    }
}
