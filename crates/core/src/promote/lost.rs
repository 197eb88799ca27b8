//! Whether somebody else changed what a run is about.

use crate::gitops;
use crate::group::ZoneId;
use crate::promote::LostControl;
use crate::promote::decide::{has_started, state_of};
use crate::promote::run::Run;
use crate::scene::{Meta, Scene};
use crate::time::Moment;
use crate::zone::ZoneState;

/// Whether somebody else changed what this run is about.
pub(super) fn lost_control(run: &Run, scene: &Scene, now: Moment) -> Option<LostControl> {
    run.group()
        .zones
        .iter()
        .filter(|zone| !run.settings().skipped.contains(&zone.id))
        .find_map(|zone| lost_zone(run, scene, &zone.id, now))
}

fn lost_zone(run: &Run, scene: &Scene, id: &ZoneId, now: Moment) -> Option<LostControl> {
    let record = run.zone(id);
    let zone = run.group().zone(id)?;
    let Some(rollout) = zone.rollout(scene) else {
        let gone =
            scene.rollouts.is_complete() && !scene.rollouts.broken.contains_key(&zone.rollout);
        return gone.then(|| LostControl::Deleted(id.clone()));
    };
    if record.template_set && !run.goal().is_asked_for(zone, rollout) {
        return Some(LostControl::Reverted { zone: id.clone(), by: suspect(&rollout.meta) });
    }
    let changed = record.target.as_ref().is_some_and(|target| {
        rollout.is_observed() && rollout.status.current_pod_hash != target.hash
    });
    if changed {
        let version = crate::template::version(&rollout.spec.template);
        return Some(LostControl::TargetChanged { zone: id.clone(), version });
    }
    if record.held && record.started.is_none() && !rollout.spec.paused {
        let by = suspect(&rollout.meta);
        return Some(LostControl::ReleasedElsewhere { zone: id.clone(), by });
    }
    match state_of(run, scene, id, now) {
        ZoneState::Aborted { message, .. } if message.is_empty() && !record.aborted => {
            Some(LostControl::AbortedElsewhere(id.clone()))
        }
        ZoneState::PromotingFull => Some(LostControl::PromotedElsewhere(id.clone())),
        _ if record.started.is_none() && went_on(run, scene, id) => {
            Some(LostControl::PromotedElsewhere(id.clone()))
        }
        _ => None,
    }
}

/// Who probably changed a spec: the GitOps tool that owns it, or else its last writer.
fn suspect(meta: &Meta) -> Option<String> {
    let last = || meta.last_writer_of_spec().map(str::to_owned);
    gitops::owner(meta).map(|owner| owner.to_string()).or_else(last)
}

/// True if a zone that this run has not started is on its way, or has arrived.
fn went_on(run: &Run, scene: &Scene, id: &ZoneId) -> bool {
    if has_started(run, scene, id) {
        return true;
    }
    let arrived = || {
        let rollout = run.group().zone(id)?.rollout(scene)?;
        let target = run.zone(id).target.as_ref()?;
        Some(rollout.is_observed() && rollout.status.stable_rs == target.hash)
    };
    arrived().unwrap_or(false)
}
