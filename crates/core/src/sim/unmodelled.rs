//! What cannot be played, and why. A wrong guess would be worse than none.

use serde_json::Value;

use crate::scene::{Coverage, Kind, Rollout, Scene, Step, StepKind};
use crate::time::Moment;

/// Something that the simulated cluster does not know how to play.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unmodelled {
    /// A kind of object that could not be read.
    #[error("the {kind} are not known: {why}")]
    NotRead {
        /// Plural of the kind.
        kind: &'static str,
        /// Why not.
        why: String,
    },
    /// An object that cannot be understood.
    #[error("{kind} `{name}`: {why}")]
    Broken {
        /// Kind of the object.
        kind: String,
        /// Its name.
        name: String,
        /// Why not.
        why: String,
    },
    /// A feature of a Rollout.
    #[error("Rollout `{rollout}` uses {feature}, which is not simulated")]
    Feature {
        /// Name of the Rollout.
        rollout: String,
        /// As it is called in the manifest.
        feature: String,
    },
}

/// Checks a scene; returns the moment at which it was read.
pub(super) fn check(scene: &Scene) -> Result<Moment, Unmodelled> {
    let at = complete("Rollouts", &scene.rollouts)?;
    complete("ReplicaSets", &scene.replica_sets)?;
    complete("pods", &scene.pods)?;
    complete("nodes", &scene.nodes)?;
    complete("VirtualServices", &scene.routes)?;
    complete("DestinationRules", &scene.rules)?;
    for (_, rollout) in scene.rollouts.iter() {
        supported(rollout)?;
    }
    Ok(at)
}

fn complete<T>(kind: &'static str, objects: &Kind<T>) -> Result<Moment, Unmodelled> {
    if let Some((key, why)) = objects.broken.first_key_value() {
        let (kind, name, why) = (kind.to_owned(), key.name.clone(), why.clone());
        return Err(Unmodelled::Broken { kind, name, why });
    }
    match &objects.coverage {
        Coverage::Complete(at) => Ok(*at),
        other => Err(Unmodelled::NotRead { kind, why: other.to_string() }),
    }
}

fn supported(rollout: &Rollout) -> Result<(), Unmodelled> {
    match unsupported(rollout) {
        None => Ok(()),
        Some(feature) => Err(Unmodelled::Feature { rollout: rollout.meta.name.clone(), feature }),
    }
}

/// The first feature that is not modelled.
fn unsupported(rollout: &Rollout) -> Option<String> {
    let spec = &rollout.spec;
    let Some(canary) = &spec.strategy.canary else { return Some("no canary strategy".to_owned()) };
    let others = canary.traffic_routing.as_ref().and_then(|routing| routing.others.keys().next());
    let features = [
        ("strategy.blueGreen", spec.strategy.blue_green.is_some()),
        ("workloadRef", spec.workload_ref.is_some()),
        ("minReadySeconds", spec.min_ready_seconds > 0),
        ("progressDeadlineAbort", spec.progress_deadline_abort),
        ("rollbackWindow", spec.rollback_window.is_some()),
        ("dynamicStableScale", canary.dynamic_stable_scale),
        ("minPodsPerReplicaSet", canary.min_pods_per_replica_set.is_some()),
        ("replicaProgressThreshold", canary.replica_progress_threshold.is_some()),
        ("no trafficRouting.istio.destinationRule", rollout.destination_rule().is_none()),
    ];
    others
        .map(|router| format!("trafficRouting.{router}"))
        .or_else(|| features.into_iter().find(|(_, used)| *used).map(|(name, _)| name.to_owned()))
        .or_else(|| canary.steps.iter().find_map(unsupported_step))
}

fn unsupported_step(step: &Step) -> Option<String> {
    let Step::Other(kind, content) = step else { return None };
    let known = match kind {
        StepKind::Analysis => true,
        StepKind::SetCanaryScale => content.as_object().is_some_and(|fields| {
            fields.keys().all(|key| ["replicas", "weight", "matchTrafficWeight"].contains(&&**key))
        }),
        _ => false,
    };
    (!known).then(|| match content {
        Value::Null => "a step of an unknown kind".to_owned(),
        _ => format!("a step `{}`", kind.field()),
    })
}
