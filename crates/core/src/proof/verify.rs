//! The check of one zone: is the target in place, do its pods serve, and does traffic reach them.

use std::fmt;

use super::route::unmet_route;
use super::{Soak, Verdict};
use crate::group::{Zone, ZoneId};
use crate::scene::{Coverage, Key, Pod, Scene};
use crate::time::Moment;
use crate::traffic::RouteGap;
use crate::zone::{Trouble, Workload, ZoneFacts, trouble, worst_trouble};

/// What a zone is to be brought to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Template hash, pinned when the run saw it first.
    pub hash: String,
    /// Wanted pods at the time of the promotion; an autoscaler may grow the zone afterwards.
    pub replicas: u32,
    /// Whether the controller has called the zone Healthy on this template. It may take that back
    /// later for reasons that do not matter here, such as an eviction.
    pub healthy_seen: bool,
}

/// That a zone was verified at one moment. Only [`verify`] makes one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proof {
    zone: ZoneId,
    hash: String,
}

impl Proof {
    /// The zone.
    pub fn zone(&self) -> &ZoneId {
        &self.zone
    }

    /// The template hash that was found stable.
    pub fn hash(&self) -> &str {
        &self.hash
    }
}

/// What keeps a zone from being verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unmet {
    /// A kind of object could not be read.
    Unseen {
        /// The kind.
        kind: &'static str,
        /// Why.
        why: String,
    },
    /// The Rollout is missing.
    NoRollout,
    /// The target is not the stable template yet.
    NotPromoted,
    /// The template is not the target any more.
    HashChanged {
        /// What it is now.
        found: String,
    },
    /// The controller has not called the zone Healthy yet.
    NotHealthy {
        /// Phase.
        phase: String,
        /// The controller's reason.
        message: String,
    },
    /// No pod is wanted, so none can prove anything.
    NoPods,
    /// Too few pods are Ready.
    PodsShort {
        /// Ready pods.
        ready: u32,
        /// How many there have to be.
        wanted: u32,
        /// What ails the worst of them.
        trouble: Option<Trouble>,
    },
    /// A pod that had been Ready no longer is, although its node is.
    PodFailed(Trouble),
    /// A container was started again.
    PodRestarted {
        /// The pod.
        pod: Key,
        /// Restarts so far.
        restarts: u32,
    },
    /// A pod was not Ready for a moment.
    PodWavered {
        /// The pod.
        pod: Key,
    },
    /// The route cannot be told.
    Route(RouteGap),
    /// The route still gives the canary a share.
    Weight {
        /// In percent.
        in_force: u32,
    },
    /// Some of the zone's requests would be answered with an error.
    Unserved {
        /// In percent.
        percent: u32,
    },
    /// The route reaches pods of the zone that are not on the target.
    ReachesOthers {
        /// Which.
        pods: Vec<Key>,
    },
    /// The route does not reach all target pods.
    MissesPods {
        /// Which.
        pods: Vec<Key>,
    },
    /// The shared definition of the stable subset is younger than the Rollout's own, and without
    /// effect.
    BaseRuleShadowed {
        /// Subset.
        subset: String,
        /// The rule that should win.
        base: String,
        /// The rule that does.
        winner: String,
    },
    /// The `--check` command gave no verdict.
    CheckSilent {
        /// What it did instead.
        why: String,
    },
}

impl fmt::Display for Unmet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |pods: &[Key]| {
            pods.iter().map(|pod| format!("`{}`", pod.name)).collect::<Vec<_>>().join(", ")
        };
        match self {
            Self::Unseen { kind, why } => write!(f, "{kind} cannot be read ({why})"),
            Self::NoRollout => f.write_str("its Rollout is missing"),
            Self::NotPromoted => f.write_str("the new version is not stable yet"),
            Self::HashChanged { found } => write!(f, "its template changed to {found}"),
            Self::NotHealthy { phase, message } if message.is_empty() => {
                write!(f, "the controller calls it {phase}")
            }
            Self::NotHealthy { phase, message } => {
                write!(f, "the controller calls it {phase} ({message})")
            }
            Self::NoPods => f.write_str("it wants no pods, so nothing can be proven"),
            Self::PodsShort { ready, wanted, trouble } => {
                write!(f, "{ready} of {wanted} pods are Ready")?;
                trouble.as_ref().map_or(Ok(()), |trouble| write!(f, "; {trouble}"))
            }
            Self::PodFailed(trouble) => write!(f, "{trouble}"),
            Self::PodRestarted { pod, restarts } => {
                write!(f, "pod `{}` was restarted ({restarts} in all)", pod.name)
            }
            Self::PodWavered { pod } => {
                write!(f, "pod `{}` was not Ready for a moment", pod.name)
            }
            Self::Route(gap) => write!(f, "{gap}"),
            Self::Weight { in_force } => {
                write!(f, "the VirtualService gives the canary {in_force} %")
            }
            Self::Unserved { percent } => {
                write!(f, "{percent} % of its clients' requests reach no pod")
            }
            Self::ReachesOthers { pods } => {
                write!(f, "its route still reaches old pods: {}", names(pods))
            }
            Self::MissesPods { pods } => write!(f, "its route does not reach {}", names(pods)),
            Self::BaseRuleShadowed { subset, base, winner } => write!(
                f,
                "subset `{subset}` of DestinationRule `{base}` is without effect: \
                 `{winner}` is older, so there is no failover"
            ),
            Self::CheckSilent { why } => write!(f, "the check gave no verdict ({why})"),
        }
    }
}

/// Checks a zone against its target.
///
/// # Errors
/// Everything that is not met; never empty.
pub fn verify(scene: &Scene, zone: &Zone, target: &Target) -> Result<Proof, Vec<Unmet>> {
    let mut unmet = unseen(scene);
    let Some(facts) = ZoneFacts::gather(scene, zone) else {
        unmet.push(Unmet::NoRollout);
        return Err(unmet);
    };
    let status = &facts.rollout.status;
    if status.current_pod_hash != target.hash {
        unmet.push(Unmet::HashChanged { found: status.current_pod_hash.clone() });
        return Err(unmet);
    }
    let Some(workload) = facts.stable.as_ref().filter(|stable| stable.hash == target.hash) else {
        unmet.push(Unmet::NotPromoted);
        return Err(unmet);
    };
    if !target.healthy_seen && status.phase != "Healthy" {
        let (phase, message) = (status.phase.clone(), status.message.clone());
        unmet.push(Unmet::NotHealthy { phase, message });
    }
    unmet.extend(pods_short(&facts, workload, target));
    unmet.extend(unmet_route(scene, &facts, workload, &pods_of(scene, &facts)));
    if unmet.is_empty() {
        Ok(Proof { zone: zone.id.clone(), hash: target.hash.clone() })
    } else {
        Err(unmet)
    }
}

/// Kinds without which nothing can be proven. Nodes only tell why a pod is missing.
fn unseen(scene: &Scene) -> Vec<Unmet> {
    scene
        .gaps()
        .into_iter()
        .filter(|(kind, coverage)| {
            let absent = **coverage == Coverage::KindAbsent;
            *kind != "nodes" && *kind != "horizontalpodautoscalers" && !absent
        })
        .map(|(kind, coverage)| Unmet::Unseen { kind, why: coverage.to_string() })
        .collect()
}

fn pods_short(facts: &ZoneFacts<'_>, workload: &Workload<'_>, target: &Target) -> Option<Unmet> {
    let wanted = facts.rollout.replicas().min(target.replicas.max(1));
    if wanted == 0 {
        return Some(Unmet::NoPods);
    }
    let ready = workload.ready();
    (ready < wanted).then(|| Unmet::PodsShort {
        ready,
        wanted,
        trouble: worst_trouble(workload.pods.iter().copied()),
    })
}

fn pods_of(scene: &Scene, facts: &ZoneFacts<'_>) -> Vec<Key> {
    let owned: Vec<&str> = scene
        .replica_sets
        .iter()
        .map(|(_, replica_set)| &replica_set.meta)
        .filter(|meta| meta.is_owned_by(&facts.rollout.meta.uid))
        .map(|meta| meta.uid.as_str())
        .collect();
    scene
        .pods
        .iter()
        .filter(|(_, pod)| owned.iter().any(|uid| pod.meta.is_owned_by(uid)))
        .map(|(key, _)| key.clone())
        .collect()
}

impl Soak {
    /// Looks at the zone once and lets the soak take it in.
    ///
    /// Missing pods halt it: they were evicted, are pending, or an autoscaler asked for more. A
    /// restart, a pod that stops serving on a Ready node, or a wrong route break it.
    ///
    /// `silent` says why the check command, if there is one, has no good verdict.
    pub fn look(
        &mut self,
        scene: &Scene,
        zone: &Zone,
        target: &Target,
        silent: Option<Unmet>,
        now: Moment,
    ) {
        let verdict = match (self.judge(scene, zone, target), silent) {
            (Verdict::Counting, Some(silent)) => Verdict::Halted(silent),
            (verdict, _) => verdict,
        };
        self.observe(verdict, now);
    }

    fn judge(&mut self, scene: &Scene, zone: &Zone, target: &Target) -> Verdict {
        let facts = ZoneFacts::gather(scene, zone);
        let stable = facts.as_ref().and_then(|facts| facts.stable.as_ref());
        if let Some(stable) = stable.filter(|stable| stable.hash == target.hash) {
            let failed = self.failed(scene, &stable.pods).map(Unmet::PodFailed);
            let broken = self.relapse(&stable.pods).or(failed);
            self.remember(&stable.pods);
            if let Some(broken) = broken {
                return Verdict::Broken(broken);
            }
        }
        match verify(scene, zone, target) {
            Ok(_) => {
                facts.and_then(|facts| growing(&facts)).map_or(Verdict::Counting, Verdict::Halted)
            }
            Err(unmet) => worst(unmet),
        }
    }

    fn failed(&self, scene: &Scene, pods: &[&Pod]) -> Option<Trouble> {
        let node_is_ready = |pod: &Pod| {
            scene
                .nodes
                .get(&Key::new("", &pod.spec.node_name))
                .is_none_or(crate::scene::Node::is_ready)
        };
        pods.iter().filter(|pod| self.knows(pod) && node_is_ready(pod)).find_map(|pod| trouble(pod))
    }
}

/// More pods are wanted than are Ready, though enough are: an autoscaler asked for them.
fn growing(facts: &ZoneFacts<'_>) -> Option<Unmet> {
    let wanted = facts.rollout.replicas();
    let stable = facts.stable.as_ref()?;
    (stable.ready() < wanted).then(|| Unmet::PodsShort {
        ready: stable.ready(),
        wanted,
        trouble: worst_trouble(stable.pods.iter().copied()),
    })
}

fn worst(unmet: Vec<Unmet>) -> Verdict {
    let breaks = |unmet: &Unmet| {
        !matches!(
            unmet,
            Unmet::Unseen { .. }
                | Unmet::PodsShort { .. }
                | Unmet::NoPods
                | Unmet::NotHealthy { .. }
                | Unmet::CheckSilent { .. }
        )
    };
    let (mut breaking, halting): (Vec<Unmet>, Vec<Unmet>) = unmet.into_iter().partition(breaks);
    match breaking.pop() {
        Some(unmet) => Verdict::Broken(unmet),
        None => Verdict::Halted(halting.into_iter().next().unwrap_or(Unmet::NoRollout)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::group::find_groups;
    use crate::layout::{ring, zone_local};
    use crate::testing::{canary, now, object, promoted, running, scene_of, set_weight, spec};

    /// Zone a after its promotion to `v2`.
    fn after_promotion(layout: Vec<Value>) -> Vec<Value> {
        let mut objects = running(layout);
        canary(&mut objects, "a", 80, 3);
        promoted(&mut objects, "a");
        objects
    }

    fn verified(objects: &[Value]) -> String {
        let scene = scene_of(objects);
        let group = find_groups(&scene).remove(0);
        let target = Target { hash: "v2".to_owned(), replicas: 3, healthy_seen: false };
        match verify(&scene, &group.zones[0], &target) {
            Ok(proof) => format!("zone {} is proven on {}", proof.zone(), proof.hash()),
            Err(unmet) => unmet.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
        }
    }

    fn changed(change: impl Fn(&mut Vec<Value>)) -> String {
        let mut objects = after_promotion(ring(&spec()));
        change(&mut objects);
        verified(&objects)
    }

    #[test]
    fn a_promoted_zone_is_proven_in_each_layout() {
        let proven = "zone a is proven on v2";
        assert_eq!(verified(&after_promotion(ring(&spec()))), proven);
        assert_eq!(verified(&after_promotion(zone_local(&spec()))), proven);
    }

    #[test]
    fn each_thing_that_is_missing_is_named() {
        let not_ready = json!([{"type": "Ready", "status": "False"}]);
        insta::assert_snapshot!(
            changed(|objects| {
                object(objects, "Pod", "test-a-v2-0")["status"]["conditions"] = not_ready.clone();
            }),
            @"2 of 3 pods are Ready; pod `test-a-v2-0` is not Ready (condition Ready is False)"
        );
        insta::assert_snapshot!(
            changed(|objects| set_weight(objects, "a", 100)),
            @"the VirtualService gives the canary 100 %"
        );
        insta::assert_snapshot!(
            changed(|objects| {
                let status = &mut object(objects, "Rollout", "test-a")["status"];
                status["phase"] = json!("Progressing");
                status["message"] = json!("more replicas need to be updated");
            }),
            @"the controller calls it Progressing (more replicas need to be updated)"
        );
        insta::assert_snapshot!(
            changed(|objects| {
                object(objects, "Rollout", "test-a")["spec"]["replicas"] = json!(0);
            }),
            @"it wants no pods, so nothing can be proven"
        );
        insta::assert_snapshot!(
            changed(|objects| objects.retain(|object| object["kind"] != "VirtualService")),
            @"VirtualService `test` is missing"
        );
        insta::assert_snapshot!(
            changed(|objects| {
                let status = &mut object(objects, "Rollout", "test-a")["status"];
                status["stableRS"] = json!("v1");
            }),
            @"the new version is not stable yet"
        );
    }

    #[test]
    fn traffic_has_to_reach_the_new_pods_and_no_old_ones() {
        let old_pod = |objects: &mut Vec<Value>| {
            let template = object(objects, "Rollout", "test-a")["spec"]["template"].clone();
            objects.push(crate::testing::pod("a", "v1", 7, &template, "stable"));
        };
        insta::assert_snapshot!(
            changed(old_pod),
            @"its route still reaches old pods: `test-a-v1-7`"
        );
        insta::assert_snapshot!(
            changed(|objects| {
                let pod = object(objects, "Pod", "test-a-v2-1");
                pod["metadata"]["labels"]["zone-rollout.io/role"] = json!("canary");
            }),
            @"its route does not reach `test-a-v2-1`"
        );
        let mut local = after_promotion(zone_local(&spec()));
        let subsets = &mut object(&mut local, "DestinationRule", "test-a")["spec"]["subsets"];
        subsets[0]["labels"]["rollouts-pod-template-hash"] = json!("v1");
        insta::assert_snapshot!(
            verified(&local),
            @"100 % of its clients' requests reach no pod"
        );
    }

    #[test]
    fn a_base_rule_that_is_younger_is_no_failover() {
        insta::assert_snapshot!(
            changed(|objects| {
                object(objects, "DestinationRule", "test")["metadata"]["creationTimestamp"] =
                    json!("2026-11-02T00:00:00Z");
            }),
            @"subset `stable-a` of DestinationRule `test` is without effect: `test-a` is older, so there is no failover"
        );
    }

    #[test]
    fn what_cannot_be_read_proves_nothing() {
        let mut scene = scene_of(&after_promotion(ring(&spec())));
        let group = find_groups(&scene).remove(0);
        let target = Target { hash: "v2".to_owned(), replicas: 3, healthy_seen: false };
        scene.services.coverage = Coverage::Forbidden;
        let unmet = verify(&scene, &group.zones[0], &target).unwrap_err();
        assert_eq!(unmet[0].to_string(), "services cannot be read (not permitted)");
        scene.services.coverage = Coverage::Complete(now());
        scene.nodes.coverage = Coverage::Forbidden;
        assert!(verify(&scene, &group.zones[0], &target).is_ok(), "nodes only tell why");
    }
}
