//! From what was typed to what the run is to do.

use std::collections::BTreeSet;

use zone_rollout_core::group::{Group, ZoneId, resolve};
use zone_rollout_core::promote::{Goal, OnFailure, Pauses, Settings};
use zone_rollout_core::scene::Scene;
use zone_rollout_core::time::Moment;

use crate::cli::{OnFailureArg, PausesArg, ReleaseArgs};
use crate::error::Error;
use crate::render::Io;

/// What was asked for, with zones resolved against the group.
pub(super) fn settings(
    args: &ReleaseArgs,
    group: &Group,
    zone: Option<&ZoneId>,
    now: Moment,
    io: &Io,
) -> Result<Settings, Error> {
    let skipped: BTreeSet<ZoneId> = zones(group, &args.skip_zone)?.into_iter().collect();
    let order = order(args, group, zone, &skipped)?;
    let pauses = match args.pauses {
        Some(PausesArg::Ask) if !io.terminal().can_ask => {
            return Err(Error::usage("--pauses ask needs a terminal to ask on"));
        }
        Some(PausesArg::Ask) => Pauses::Ask,
        Some(PausesArg::Open) => Pauses::Open,
        None if io.terminal().can_ask => Pauses::Ask,
        Some(PausesArg::Stop) | None => Pauses::Stop,
    };
    Ok(Settings {
        run: run_name(now),
        order,
        skipped,
        soak: args.soak,
        first_soak: args.first_soak,
        wait_sync: args.wait_sync,
        hold: args.hold,
        freeze_autoscaler: args.freeze_hpa,
        force: args.force,
        pauses,
        on_failure: match args.on_failure {
            OnFailureArg::Leave => OnFailure::Leave,
            OnFailureArg::AbortZone => OnFailure::AbortZone,
        },
        timeout: args.timeout,
        check: false,
        stable_floor: args.stable_floor,
    })
}

/// The zones to drive, in order.
fn order(
    args: &ReleaseArgs,
    group: &Group,
    zone: Option<&ZoneId>,
    skipped: &BTreeSet<ZoneId>,
) -> Result<Vec<ZoneId>, Error> {
    let mut order = zones(group, &args.order)?;
    if let Some(twice) = (1..order.len()).find(|at| order[..*at].contains(&order[*at])) {
        return Err(Error::usage(format!("--order names zone `{}` twice", order[twice])));
    }
    order.extend(
        group
            .zones
            .iter()
            .map(|zone| zone.id.clone())
            .filter(|id| !order.contains(id))
            .collect::<Vec<_>>(),
    );
    if let Some(from) = &args.from {
        let from = zones(group, std::slice::from_ref(from))?;
        let start = order.iter().position(|id| Some(id) == from.first()).unwrap_or(0);
        order.drain(..start);
    }
    let only = zones(group, &args.only)?;
    order.retain(|id| only.is_empty() || only.contains(id));
    order.retain(|id| zone.is_none_or(|zone| id == zone));
    order.retain(|id| !skipped.contains(id));
    if order.is_empty() {
        return Err(Error::usage("no zone is left to be promoted"));
    }
    Ok(order)
}

/// Zones by any of their names.
fn zones(group: &Group, names: &[String]) -> Result<Vec<ZoneId>, Error> {
    names
        .iter()
        .map(|name| {
            let found = resolve(std::slice::from_ref(group), Some(name));
            found.ok().and_then(|found| found.zone).ok_or_else(|| {
                let known: Vec<&str> = group.zones.iter().map(|zone| zone.id.0.as_str()).collect();
                Error::usage(format!(
                    "group `{}` has no zone `{name}`; it has {}",
                    group.name,
                    known.join(", ")
                ))
            })
        })
        .collect()
}

/// A name that sorts by time and differs between processes.
pub(in crate::command) fn run_name(now: Moment) -> String {
    let at = now.wall.strftime("%Y%m%dT%H%M%SZ");
    format!("{at}-{:x}", std::process::id())
}

/// The version to bring, if one is asked for or under way.
pub(super) fn goal(
    args: &ReleaseArgs,
    scene: &Scene,
    group: &Group,
) -> Result<Option<Goal>, Error> {
    let images = |wanted: &[String]| {
        Goal::images(scene, group, wanted)
            .map_err(|(zone, error)| Error::usage(format!("zone {zone}: {error}")))
    };
    if !args.image.is_empty() {
        return images(&args.image).map(Goal::Set).map(Some);
    }
    if !args.expect.is_empty() {
        return images(&args.expect).map(Goal::Expected).map(Some);
    }
    Ok(Goal::in_flight(scene, group))
}
