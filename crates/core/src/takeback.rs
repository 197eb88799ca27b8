//! Taking a zone back to its stable version: what comes next, judged from what is seen. An abort that
//! was accepted is not one that took effect: with stable pods missing, the controller leaves the
//! traffic on the canary (`checkReplicasAvailable` in `rollout/trafficrouting.go`).

use std::fmt;
use std::time::Duration;

use crate::by_hand::{Intervention, NOTICE_NEEDS};
use crate::gitops::{self, GitOpsOwner};
use crate::group::{Group, ZoneId};
use crate::scene::Scene;
use crate::template;
use crate::time::Moment;
use crate::traffic::{Client, Loss, flow, host_of};
use crate::write::Action;
use crate::zone::{Workload, ZoneFacts};

/// How long the controller may take to move the traffic after an abort that it can carry out.
pub(crate) const CONTROLLER_NEEDS: Duration = Duration::from_secs(5);

/// What comes next in taking a zone back.
#[derive(Debug, Clone, PartialEq)]
pub enum TakeBack {
    /// The zone is at rest on its version; going back from it is an update of its own.
    AlreadyStable,
    /// The zone waits at its gate: nothing has moved.
    NeverStarted,
    /// The update has to be given up.
    Abort,
    /// It was given up; the controller can move the traffic and is about to.
    AwaitController,
    /// It was given up, and the controller will leave the traffic where it is: it has to be written.
    WriteRoute {
        /// What the stable pods will have to carry.
        load: Load,
    },
    /// As before, but the stable pods cannot carry it.
    TooMuchLoad {
        /// What the stable pods would have to carry.
        load: Load,
    },
    /// No traffic goes to the canary.
    Done,
}

/// What taking all traffic back means for a zone's stable pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    /// Ready stable pods.
    pub ready: u32,
    /// Wanted stable pods.
    pub wanted: u32,
    /// Whether pods of other zones answer where the zone's own cannot.
    pub fails_over: bool,
}

impl Load {
    /// Load of each Ready pod compared with normal, if there is one.
    pub fn factor(&self) -> Option<f64> {
        (self.ready > 0).then(|| f64::from(self.wanted) / f64::from(self.ready))
    }

    /// Whether this is acceptable with a floor of this many percent of the wanted pods.
    pub fn is_bearable(&self, floor: u32) -> bool {
        let enough = u64::from(self.ready) * 100 >= u64::from(self.wanted) * u64::from(floor);
        (self.ready > 0 && enough) || self.fails_over
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} stable pods are Ready", self.ready, self.wanted)?;
        match self.factor() {
            None => f.write_str(" and would carry nothing")?,
            Some(factor) => write!(f, " and would carry {factor:.1} times their normal load")?,
        }
        if self.fails_over { f.write_str(", with failover to other zones") } else { Ok(()) }
    }
}

/// Decides what comes next. `floor` is the share of wanted pods, in percent, that suffices; `force`
/// lets any load pass.
pub fn take_back(scene: &Scene, facts: &ZoneFacts<'_>, floor: u32, force: bool) -> TakeBack {
    let rollout = facts.rollout;
    if rollout.is_fully_promoted() {
        return TakeBack::AlreadyStable;
    }
    let weight = facts.in_force.as_ref().map_or(0, |in_force| in_force.highest);
    let canary_ready = facts.canary.as_ref().map_or(0, Workload::ready);
    let canary_pods = facts.canary.as_ref().map_or(0, Workload::count);
    if !rollout.status.abort || rollout.status.promote_full {
        let untouched = !facts.has_started() && weight == 0 && canary_pods == 0;
        return if untouched { TakeBack::NeverStarted } else { TakeBack::Abort };
    }
    let routed = facts.in_force.is_ok();
    if rollout.status.aborted_at.is_none() {
        return TakeBack::AwaitController;
    }
    if routed && weight == 0 || !routed && canary_ready == 0 {
        return TakeBack::Done;
    }
    let load = load(scene, facts);
    if !routed || gives_back_by_itself(facts, load) {
        TakeBack::AwaitController
    } else if force || load.is_bearable(floor) {
        TakeBack::WriteRoute { load }
    } else {
        TakeBack::TooMuchLoad { load }
    }
}

/// The controller moves the traffic once all stable pods are available; with `dynamicStableScale` it
/// does so step by step as they come.
fn gives_back_by_itself(facts: &ZoneFacts<'_>, load: Load) -> bool {
    let dynamic = facts
        .rollout
        .spec
        .strategy
        .canary
        .as_ref()
        .is_some_and(|canary| canary.dynamic_stable_scale);
    dynamic || load.ready >= load.wanted
}

/// What the stable pods would have to carry.
pub fn load(scene: &Scene, facts: &ZoneFacts<'_>) -> Load {
    Load {
        ready: facts.stable_ready(),
        wanted: facts.rollout.replicas(),
        fails_over: fails_over(scene, facts).unwrap_or(false),
    }
}

/// Whether the zone's stable subset is answered by other zones if all its own pods are gone.
fn fails_over(scene: &Scene, facts: &ZoneFacts<'_>) -> Option<bool> {
    let topology = facts.zone.topology.as_deref()?;
    let host = host_of(scene, facts.rollout)?;
    let client = Client::in_zone(scene, topology);
    let before = flow(scene, &host, &client, None);
    let after = flow(scene, &host, &client, Some(Loss::Zone(topology)));
    // The canary's own share has no failover; what is left of the stable share has to be served.
    let canary = f64::from(facts.in_force.as_ref().map_or(0, |in_force| in_force.highest)) / 100.0;
    Some(before.unserved < 1.0 && after.unserved <= canary + 0.001 && canary < 1.0)
}

/// Taking several zones back, one write at a time.
#[derive(Debug, Clone)]
pub struct Recall {
    zones: Vec<(ZoneId, Recalled)>,
    floor: u32,
    force: bool,
}

/// Where the recall of one zone stands.
#[derive(Debug, Clone, Default)]
struct Recalled {
    gave_up: bool,
    wrote_route: Option<Load>,
    waiting_since: Option<Moment>,
    nudged: Option<Moment>,
    end: Option<RecallEnd>,
}

/// How the recall of one zone ended.
#[derive(Debug, Clone, PartialEq)]
pub enum RecallEnd {
    /// The VirtualService sends nothing to the new version; seen.
    TakenBack {
        /// Whether this recall gave the update up, or it had been already.
        gave_up: bool,
        /// What the stable pods had to carry when the route was written here; nothing if the
        /// controller moved the traffic itself.
        wrote_route: Option<Load>,
        /// Pods of the new version that are left.
        pods: u32,
        /// What is left to do where the Rollout comes from.
        in_git: Option<GitRevert>,
    },
    /// It is at rest on this version.
    AlreadyStable {
        /// The version.
        version: Option<String>,
    },
    /// It waits at its gate.
    NeverStarted,
    /// The update was given up, but the traffic stays: the stable pods cannot carry it.
    TooMuchLoad {
        /// What they would have to carry.
        load: Load,
        /// Share that stays on the new version, in percent.
        weight: u32,
    },
    /// Its Rollout is gone or cannot be read.
    Unknown,
}

/// A version that Git still asks for, though its update was given up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitRevert {
    /// Who applies what Git says.
    pub owner: GitOpsOwner,
    /// The version that Git asks for.
    pub from: String,
    /// The version that the zone runs.
    pub to: String,
}

impl GitRevert {
    fn of(facts: &ZoneFacts<'_>) -> Option<Self> {
        let owner = gitops::owner(&facts.rollout.meta)?;
        let from = template::version(&facts.rollout.spec.template);
        Some(Self { owner, from, to: facts.stable_version()? })
    }
}

impl Recall {
    /// A recall of these zones, in this order.
    pub fn new(zones: Vec<ZoneId>, floor: u32, force: bool) -> Self {
        let zones = zones.into_iter().map(|zone| (zone, Recalled::default())).collect();
        Self { zones, floor, force }
    }
}

impl Intervention for Recall {
    type End = RecallEnd;

    fn next(&mut self, scene: &Scene, group: &Group, now: Moment) -> Option<Action> {
        let (floor, force) = (self.floor, self.force);
        self.zones.iter_mut().filter(|(_, recalled)| recalled.end.is_none()).find_map(
            |(id, recalled)| {
                let facts = group.zone(id).and_then(|zone| ZoneFacts::gather(scene, zone));
                let Some(facts) = facts else {
                    recalled.end = Some(RecallEnd::Unknown);
                    return None;
                };
                recalled.next(scene, &facts, floor, force, now)
            },
        )
    }

    fn landed(&mut self, action: &Action, scene: &Scene, group: &Group) {
        let Some((id, recalled)) = self.zones.iter_mut().find(|(id, _)| id == action.zone()) else {
            return;
        };
        match action {
            Action::Abort { .. } => recalled.gave_up = true,
            Action::TrafficToStable { .. } => {
                let facts = group.zone(id).and_then(|zone| ZoneFacts::gather(scene, zone));
                recalled.wrote_route = facts.map(|facts| load(scene, &facts));
            }
            _ => {}
        }
    }

    fn ends(&self) -> impl Iterator<Item = (&ZoneId, Option<&RecallEnd>)> {
        self.zones.iter().map(|(id, recalled)| (id, recalled.end.as_ref()))
    }
}

impl Recalled {
    fn next(
        &mut self,
        scene: &Scene,
        facts: &ZoneFacts<'_>,
        floor: u32,
        force: bool,
        now: Moment,
    ) -> Option<Action> {
        let zone = facts.zone.id.clone();
        let end = match take_back(scene, facts, floor, force) {
            TakeBack::Abort => return Some(Action::Abort { zone }),
            TakeBack::WriteRoute { .. } => return Some(Action::TrafficToStable { zone }),
            TakeBack::AwaitController => {
                let since = *self.waiting_since.get_or_insert(now);
                let unheard = facts.rollout.status.aborted_at.is_none();
                let waited = now.mono.saturating_sub(self.nudged.unwrap_or(since).mono);
                if unheard && waited >= NOTICE_NEEDS {
                    self.nudged = Some(now);
                    return Some(Action::Nudge { zone });
                }
                let remains = facts.in_force.as_ref().is_ok_and(|in_force| in_force.highest > 0);
                let late = now.mono.saturating_sub(since.mono) >= CONTROLLER_NEEDS;
                return (late && remains && !unheard).then_some(Action::TrafficToStable { zone });
            }
            TakeBack::AlreadyStable => RecallEnd::AlreadyStable { version: facts.stable_version() },
            TakeBack::NeverStarted => RecallEnd::NeverStarted,
            TakeBack::TooMuchLoad { load } => {
                let weight = facts.in_force.as_ref().map_or(0, |in_force| in_force.highest);
                RecallEnd::TooMuchLoad { load, weight }
            }
            TakeBack::Done => RecallEnd::TakenBack {
                gave_up: self.gave_up,
                wrote_route: self.wrote_route,
                pods: facts.canary.as_ref().map_or(0, Workload::count),
                in_git: GitRevert::of(facts),
            },
        };
        self.end = Some(end);
        None
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::group::find_groups;
    use crate::layout::{ring, zone_local};
    use crate::testing::{canary, object, running, scene_of, spec};

    fn judged(layout: Vec<Value>, change: impl Fn(&mut Vec<Value>), force: bool) -> String {
        let mut objects = running(layout);
        change(&mut objects);
        let scene = scene_of(&objects);
        let groups = find_groups(&scene);
        let facts = ZoneFacts::gather(&scene, &groups[0].zones[0]).unwrap();
        match take_back(&scene, &facts, 50, force) {
            TakeBack::WriteRoute { load } => format!("write: {load}"),
            TakeBack::TooMuchLoad { load } => format!("too much: {load}"),
            other => format!("{other:?}"),
        }
    }

    fn aborted(objects: &mut Vec<Value>, unready: usize) {
        canary(objects, "a", 20, 1);
        let status = &mut object(objects, "Rollout", "test-a")["status"];
        status["abort"] = json!(true);
        status["abortedAt"] = json!("2026-11-30T11:59:30Z");
        status["currentStepIndex"] = json!(0);
        status["pauseConditions"] = json!([]);
        for index in 0..unready {
            let pod = object(objects, "Pod", &format!("test-a-v1-{index}"));
            pod["status"]["conditions"] = json!([{"type": "Ready", "status": "False"}]);
        }
    }

    #[test]
    fn each_stage_of_an_abort_is_told_apart() {
        assert_eq!(judged(ring(&spec()), |_| {}, false), "AlreadyStable");
        let at_gate = |objects: &mut Vec<Value>| canary(objects, "a", 0, 0);
        assert_eq!(judged(ring(&spec()), at_gate, false), "NeverStarted");
        let moving = |objects: &mut Vec<Value>| canary(objects, "a", 20, 1);
        assert_eq!(judged(ring(&spec()), moving, false), "Abort");
        let all_ready = |objects: &mut Vec<Value>| aborted(objects, 0);
        assert_eq!(judged(ring(&spec()), all_ready, false), "AwaitController");
        let off = |objects: &mut Vec<Value>| {
            aborted(objects, 0);
            let http = &mut object(objects, "VirtualService", "test")["spec"]["http"];
            http[0]["route"][0]["weight"] = json!(100);
            http[0]["route"][1]["weight"] = json!(0);
        };
        assert_eq!(judged(ring(&spec()), off, false), "Done");
    }

    #[test]
    fn traffic_that_stays_is_written_back_only_where_it_can_be_carried() {
        let short = |unready| move |objects: &mut Vec<Value>| aborted(objects, unready);
        insta::assert_snapshot!(
            judged(zone_local(&spec()), short(1), false),
            @"write: 2 of 3 stable pods are Ready and would carry 1.5 times their normal load"
        );
        insta::assert_snapshot!(
            judged(zone_local(&spec()), short(2), false),
            @"too much: 1 of 3 stable pods are Ready and would carry 3.0 times their normal load"
        );
        insta::assert_snapshot!(
            judged(zone_local(&spec()), short(2), true),
            @"write: 1 of 3 stable pods are Ready and would carry 3.0 times their normal load"
        );
        insta::assert_snapshot!(
            judged(ring(&spec()), short(3), false),
            @"write: 0 of 3 stable pods are Ready and would carry nothing, with failover to other zones"
        );
    }
}
