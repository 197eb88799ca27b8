//! `abort`: give updates up, and see that the traffic went back.

use zone_rollout_core::by_hand::Intervention;
use zone_rollout_core::takeback::{Recall, RecallEnd};

use super::zones::Choice;
use super::{Context, permission};
use crate::cli::AbortArgs;
use crate::driver::{Intervening, Signals};
use crate::error::Error;
use crate::exit::Exit;
use crate::render::Io;
use crate::render::words::recalled;

/// Zones that have passed their gate and are not at rest.
const IN_FLIGHT: Choice = Choice {
    verb: "abort",
    what: "in flight",
    fits: |_, _, facts| facts.has_started() || facts.rollout.status.abort,
};

pub(super) async fn run(context: &Context, args: &AbortArgs, io: &mut Io) -> Result<Exit, Error> {
    let want = context.want(&args.zones.which);
    let scene = context.cluster.read(&want).await?;
    let (group, zones) = context.choose(&scene, &args.zones, &IN_FLIGHT)?;
    if zones.is_empty() {
        io.result(&format!("group {}: no zone is in flight; nothing to abort", group.name));
        return Ok(Exit::Done);
    }
    permission::to_abort(context, &group.namespace, io).await?;
    let mut recall = Recall::new(zones, args.stable_floor, args.force_weights);
    let mut signals = Signals::listen()?;
    let aborting = Intervening {
        cluster: &*context.cluster,
        clock: &*context.clock,
        want,
        group: &group,
        signals: &mut signals,
        wrote: recalled::wrote,
    };
    let troubles = aborting.carry_out(&mut recall, scene, args.telling.timeout, io).await;
    let told: Vec<recalled::Told> = recall
        .ends()
        .map(|(zone, end)| {
            let trouble = troubles.get(zone).map(String::as_str);
            recalled::told(&group, zone, end, trouble, &context.flags)
        })
        .collect();
    let exit = match signals.seen() {
        _ if recall.ends().all(|(_, end)| is_seen(end)) => Exit::Done,
        None => Exit::Failed,
        Some(signal) => Exit::Signal(signal),
    };
    context.tell("AbortResult", &group, &told, args.telling.output, exit, io)?;
    Ok(exit)
}

/// True if nothing of the zone's traffic goes to the new version, and that was seen.
fn is_seen(end: Option<&RecallEnd>) -> bool {
    matches!(
        end,
        Some(
            RecallEnd::TakenBack { .. } | RecallEnd::AlreadyStable { .. } | RecallEnd::NeverStarted
        )
    )
}
