//! The state of a zone: one closed list, decided by one function that every verb uses.

use jiff::Timestamp;
use serde_json::Value;

use super::{Trouble, ZoneFacts, worst_trouble};
use crate::group::{Group, Zone};
use crate::proof::Witness;
use crate::scene::{Rollout, Scene, Step};
use crate::template::difference;
use crate::time::Moment;

/// Annotation on a Rollout that this tool holds by `spec.paused`; its value names the run.
pub const HOLD_ANNOTATION: &str = "zone-rollout.io/hold";

/// What a zone is doing. The list is closed; [`ZoneState::name`] gives the documented names.
#[derive(Debug, Clone, PartialEq)]
pub enum ZoneState {
    /// It cannot be told, because something could not be read.
    Unknown {
        /// What could not be read, and why.
        why: String,
    },
    /// The Rollout does not exist.
    Missing,
    /// The Rollout is being deleted.
    Deleting,
    /// The strategy is not one that this tool drives.
    Unsupported {
        /// Why not.
        why: String,
    },
    /// The controller has never written a status.
    NeverReconciled,
    /// The controller has not seen the latest change of the spec.
    Unobserved,
    /// The controller refuses the spec.
    InvalidSpec {
        /// Its reason.
        message: String,
    },
    /// The update was given up; the template still asks for it.
    Aborted {
        /// The controller's reason; empty if a person did it.
        message: String,
        /// Since when.
        at: Option<Timestamp>,
    },
    /// The abort was taken back, and the controller has not started again yet.
    Retrying,
    /// The first deployment, which knows no steps.
    Deploying,
    /// No pods are wanted.
    Parked,
    /// At rest on its template; no other zone is being updated.
    Stable,
    /// At rest on a template that is not the one the other zones are updated to.
    AwaitingSync,
    /// On the new template, at rest; whether it holds has not been watched.
    Promoted,
    /// On the new template, being watched.
    Soaking,
    /// On the new template, watched for long enough.
    Verified,
    /// At rest on its template, but not all its pods serve.
    NotReady {
        /// Ready pods.
        ready: u32,
        /// Wanted pods.
        wanted: u32,
        /// What ails the worst of them.
        trouble: Option<Trouble>,
    },
    /// All remaining steps are being skipped; this cannot be aborted by the ordinary way.
    PromotingFull,
    /// Paused by `spec.paused`.
    Held {
        /// Held by this tool, which may release it.
        ours: bool,
    },
    /// A pause was ended, and the controller has not gone on yet.
    Resuming,
    /// An analysis ended without a verdict; a person has to decide.
    Inconclusive {
        /// The controller's reason for the pause.
        reason: String,
    },
    /// Waiting before its first weight, to be opened.
    Gate {
        /// Index of the step.
        step: usize,
    },
    /// Waiting for a timed pause to end.
    TimedPause {
        /// Index of the step.
        step: usize,
        /// When it ends.
        until: Option<Timestamp>,
    },
    /// Waiting at a pause without a duration, after traffic has moved.
    Waiting {
        /// Index of the step.
        step: usize,
    },
    /// All steps are done; the controller is about to make it stable.
    Finishing,
    /// A step is being carried out.
    Stepping {
        /// Index of the step.
        step: usize,
    },
    /// Its steps went past a weight that was not in force.
    Unproven {
        /// Index of the step it is at.
        step: usize,
        /// Weight that should have been in force.
        wanted: u32,
        /// Weight that was.
        in_force: u32,
    },
}

impl ZoneState {
    /// The name of the state in machine-readable output.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Unknown { .. } => "Unknown",
            Self::Missing => "Missing",
            Self::Deleting => "Deleting",
            Self::Unsupported { .. } => "Unsupported",
            Self::NeverReconciled => "NeverReconciled",
            Self::Unobserved => "Unobserved",
            Self::InvalidSpec { .. } => "InvalidSpec",
            Self::Aborted { .. } => "Aborted",
            Self::Retrying => "Retrying",
            Self::Deploying => "Deploying",
            Self::Parked => "Parked",
            Self::Stable => "Stable",
            Self::AwaitingSync => "AwaitingSync",
            Self::Promoted => "Promoted",
            Self::Soaking => "Soaking",
            Self::Verified => "Verified",
            Self::NotReady { .. } => "NotReady",
            Self::PromotingFull => "PromotingFull",
            Self::Held { .. } => "Held",
            Self::Resuming => "Resuming",
            Self::Inconclusive { .. } => "Inconclusive",
            Self::Gate { .. } => "Gate",
            Self::TimedPause { .. } => "TimedPause",
            Self::Waiting { .. } => "Waiting",
            Self::Finishing => "Finishing",
            Self::Stepping { .. } => "Stepping",
            Self::Unproven { .. } => "Unproven",
        }
    }

    /// All names, in the order of the list.
    pub const NAMES: [&'static str; 27] = [
        "Unknown",
        "Missing",
        "Deleting",
        "Unsupported",
        "NeverReconciled",
        "Unobserved",
        "InvalidSpec",
        "Aborted",
        "Retrying",
        "Deploying",
        "Parked",
        "Stable",
        "AwaitingSync",
        "Promoted",
        "Soaking",
        "Verified",
        "NotReady",
        "PromotingFull",
        "Held",
        "Resuming",
        "Inconclusive",
        "Gate",
        "TimedPause",
        "Waiting",
        "Finishing",
        "Stepping",
        "Unproven",
    ];
}

/// Decides the state of a zone. `witness` is what this run has seen of the zone, if it drives it.
pub fn zone_state(
    scene: &Scene,
    group: &Group,
    zone: &Zone,
    witness: Option<&Witness>,
    now: Moment,
) -> ZoneState {
    if let Some(why) = scene.rollouts.broken.get(&zone.rollout) {
        return ZoneState::Unknown { why: why.clone() };
    }
    let Some(facts) = ZoneFacts::gather(scene, zone) else {
        return if scene.rollouts.is_complete() {
            ZoneState::Missing
        } else {
            ZoneState::Unknown { why: "the Rollout cannot be read".to_owned() }
        };
    };
    before_the_update(&facts)
        .or_else(|| at_rest(scene, group, &facts, witness))
        .unwrap_or_else(|| in_flight(&facts, witness, now))
}

/// States in which the status says nothing about an update, or an update is given up.
fn before_the_update(facts: &ZoneFacts<'_>) -> Option<ZoneState> {
    let rollout = facts.rollout;
    let status = &rollout.status;
    if rollout.meta.deletion_timestamp.is_some() {
        return Some(ZoneState::Deleting);
    }
    if let Some(why) = unsupported(rollout) {
        return Some(ZoneState::Unsupported { why });
    }
    if status.phase.is_empty() && status.current_pod_hash.is_empty() && status.conditions.is_empty()
    {
        return Some(ZoneState::NeverReconciled);
    }
    if !facts.is_observed() {
        return Some(ZoneState::Unobserved);
    }
    if let Some(invalid) = rollout.condition("InvalidSpec") {
        return Some(ZoneState::InvalidSpec { message: invalid.message.clone() });
    }
    if status.abort {
        let message = abort_reason(rollout);
        return Some(ZoneState::Aborted { message, at: status.aborted_at });
    }
    let aborted = rollout
        .condition("Progressing")
        .is_some_and(|progressing| progressing.reason == "RolloutAborted");
    if aborted && facts.is_in_flight() {
        return Some(ZoneState::Retrying);
    }
    status.stable_rs.is_empty().then_some(ZoneState::Deploying)
}

fn unsupported(rollout: &Rollout) -> Option<String> {
    let strategy = &rollout.spec.strategy;
    if strategy.blue_green.is_some() {
        return Some("strategy blueGreen has no steps to order; only canary is driven".to_owned());
    }
    if rollout.spec.workload_ref.is_some() {
        return Some("its template lives in another object (workloadRef)".to_owned());
    }
    let routing = strategy.canary.as_ref().and_then(|canary| canary.traffic_routing.as_ref())?;
    let router = routing.others.keys().find(|name| *name != "managedRoutes")?;
    Some(format!("traffic is steered by `{router}`, not by Istio"))
}

/// The reason after the controller's `Rollout aborted update to revision N: `; empty without one.
fn abort_reason(rollout: &Rollout) -> String {
    rollout
        .condition("Progressing")
        .and_then(|progressing| progressing.message.split_once(": "))
        .map_or_else(String::new, |(_, reason)| reason.to_owned())
}

/// States of a zone whose wanted template is the stable one.
fn at_rest(
    scene: &Scene,
    group: &Group,
    facts: &ZoneFacts<'_>,
    witness: Option<&Witness>,
) -> Option<ZoneState> {
    let rollout = facts.rollout;
    if !rollout.is_fully_promoted() {
        return None;
    }
    if rollout.replicas() == 0 {
        return Some(ZoneState::Parked);
    }
    if rollout.spec.paused {
        return Some(ZoneState::Held { ours: is_ours(rollout) });
    }
    let stable = facts.stable.as_ref()?;
    if scene.pods.is_complete() && stable.ready() < rollout.replicas() {
        return Some(ZoneState::NotReady {
            ready: stable.ready(),
            wanted: rollout.replicas(),
            trouble: worst_trouble(stable.pods.iter().copied()),
        });
    }
    let soak = witness.and_then(|witness| witness.soak.as_ref());
    if let Some(soak) = soak.filter(|soak| soak.hash() == stable.hash) {
        // The scene may be fresher than the last look of the soak.
        let holds = soak.is_over() && soak.relapse(&stable.pods).is_none();
        return Some(if holds { ZoneState::Verified } else { ZoneState::Soaking });
    }
    Some(match target_template(scene, group) {
        None => ZoneState::Stable,
        Some((template, owner)) => {
            let own = (&rollout.spec.template, facts.zone);
            match difference(own, (template, owner)) {
                None => ZoneState::Promoted,
                Some(_) => ZoneState::AwaitingSync,
            }
        }
    })
}

/// The template that the group is being updated to: the one of the first zone in flight.
pub fn target_template<'a>(scene: &'a Scene, group: &'a Group) -> Option<(&'a Value, &'a Zone)> {
    group.zones.iter().find_map(|zone| {
        let facts = ZoneFacts::gather(scene, zone)?;
        facts.is_in_flight().then_some((&facts.rollout.spec.template, zone))
    })
}

/// True of a Rollout whose `spec.paused` was set by this tool.
pub(crate) fn is_ours(rollout: &Rollout) -> bool {
    rollout.meta.annotations.contains_key(HOLD_ANNOTATION)
}

/// States of an update between its start and its promotion.
fn in_flight(facts: &ZoneFacts<'_>, witness: Option<&Witness>, now: Moment) -> ZoneState {
    let rollout = facts.rollout;
    let status = &rollout.status;
    let step = rollout.step_index();
    if status.promote_full {
        return ZoneState::PromotingFull;
    }
    if rollout.spec.paused {
        return ZoneState::Held { ours: is_ours(rollout) };
    }
    if let Some(lag) = witness.and_then(|witness| witness.passage.unproven(now)) {
        return ZoneState::Unproven { step, wanted: lag.wanted, in_force: lag.in_force };
    }
    if let Some(pause) = status.pause_conditions.first() {
        return match (pause.reason.as_str(), rollout.current_step()) {
            ("CanaryPauseStep", Some(Step::Pause(None))) if rollout.gate() == Some(step) => {
                ZoneState::Gate { step }
            }
            ("CanaryPauseStep", Some(Step::Pause(Some(duration)))) => {
                let until = pause
                    .start_time
                    .map(|start| Moment { wall: start, mono: now.mono }.after(*duration).wall);
                ZoneState::TimedPause { step, until }
            }
            ("CanaryPauseStep", _) => ZoneState::Waiting { step },
            (reason, _) => ZoneState::Inconclusive { reason: reason.to_owned() },
        };
    }
    if status.controller_pause {
        return ZoneState::Resuming;
    }
    match rollout.current_step() {
        None => ZoneState::Finishing,
        Some(_) => ZoneState::Stepping { step },
    }
}

impl Step {
    /// What the step does, in the words of the manifest.
    pub fn label(&self) -> String {
        match self {
            Self::SetWeight(weight) => format!("setWeight {weight}"),
            Self::Pause(None) => "pause".to_owned(),
            Self::Pause(Some(duration)) => {
                format!("pause {}", crate::time::format_duration(*duration))
            }
            Self::Other(kind, _) => kind.field().to_owned(),
        }
    }
}
