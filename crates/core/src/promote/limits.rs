//! How long things may take before a run gives up on them.

use std::time::Duration;

use crate::group::ZoneId;
use crate::promote::Outcome;
use crate::promote::decide::{CONTROLLER, PATIENCE, past, state_of, weight};
use crate::promote::run::Run;
use crate::proof::{Soak, Verdict};
use crate::scene::{Rollout, Scene, Step, StepKind};
use crate::time::Moment;
use crate::zone::ZoneState;

/// What is added to a Rollout's own deadline before its lack of progress counts as ours.
const DEADLINE_MARGIN: Duration = Duration::from_secs(10);
/// The controller's default for `progressDeadlineSeconds`.
const DEFAULT_DEADLINE: Duration = Duration::from_mins(10);

/// Whether something has taken longer than it may.
pub(super) fn out_of_time(run: &Run, scene: &Scene, now: Moment) -> Option<Outcome> {
    if run.is_out_of_time(now) {
        let on_its_way = |id: &&ZoneId| {
            let record = run.zone(id);
            record.started.is_some() && record.verified.is_none()
        };
        let zone = run.settings().order.iter().find(on_its_way);
        return Some(Outcome::Stuck {
            zone: zone.cloned(),
            what: "the limit for the whole run has passed".to_owned(),
            weight: zone.and_then(|id| weight(run, scene, id)),
        });
    }
    run.settings().order.iter().find_map(|id| {
        let what = slow(run, scene, id, now)?;
        Some(Outcome::Stuck { zone: Some(id.clone()), what, weight: weight(run, scene, id) })
    })
}

/// What a zone waits for, if it has waited for too long.
fn slow(run: &Run, scene: &Scene, id: &ZoneId, now: Moment) -> Option<String> {
    let record = run.zone(id);
    let soak = record.witness.soak.as_ref();
    // A zone that was verified once is looked at again when the next one is to start.
    if let Some(halted) = soak.and_then(Soak::halted_since)
        && record.verified.is_none()
        && past(halted, PATIENCE, now)
    {
        return match soak.and_then(Soak::verdict) {
            Some(Verdict::Halted(unmet) | Verdict::Broken(unmet)) => Some(unmet.to_string()),
            _ => None,
        };
    }
    let state = state_of(run, scene, id, now);
    let zone = run.group().zone(id)?;
    let rollout = zone.rollout(scene)?;
    let (limit, what) = match &state {
        ZoneState::Unobserved
        | ZoneState::Resuming
        | ZoneState::Retrying
        | ZoneState::NeverReconciled => {
            (CONTROLLER, "the Rollouts controller does not react".to_owned())
        }
        ZoneState::Unknown { why } => (PATIENCE, why.clone()),
        ZoneState::TimedPause { until: Some(until), .. } if now.since(*until) >= CONTROLLER => {
            (Duration::ZERO, "the Rollouts controller does not end a pause that is over".to_owned())
        }
        ZoneState::Stepping { step } => match rollout.steps().get(*step) {
            // Nobody knows how long these take; the controller has no deadline for them either.
            Some(Step::Other(StepKind::Analysis | StepKind::Experiment | StepKind::Plugin, _)) => {
                return None;
            }
            step => {
                let label = step.map_or_else(String::new, Step::label);
                (progress_limit(rollout), format!("step `{label}` makes no progress"))
            }
        },
        ZoneState::Deploying => (progress_limit(rollout), "it is still being deployed".to_owned()),
        ZoneState::Finishing => {
            (progress_limit(rollout), "the new pods are not all available".to_owned())
        }
        _ => return None,
    };
    past(run.quiet_since(scene, zone, now)?, limit, now).then_some(what)
}

/// How long a step may go on without any change.
///
/// The controller has a deadline of its own, but cannot be relied on for it: without stable and canary
/// Services, a ReplicaSet that is not fully available ends each reconcile before the deadline is
/// looked at (`shouldDelayDestinationRuleUpdate` in `rollout/trafficrouting/istio/istio.go`).
pub(super) fn progress_limit(rollout: &Rollout) -> Duration {
    let deadline = rollout
        .spec
        .progress_deadline_seconds
        .map_or(DEFAULT_DEADLINE, |seconds| Duration::from_secs(seconds.into()));
    deadline + DEADLINE_MARGIN
}
