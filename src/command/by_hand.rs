//! `retry`, `hold`, `release`, and the way back of zones in flight for `undo`: one write a zone, under the
//! group's lease, and over once its effect was seen.

use std::time::Duration;

use zone_rollout_core::by_hand::{ByHand, End, Hands, Intervention};
use zone_rollout_core::group::Group;

use super::release::run_name;
use super::zones::Choice;
use super::{Context, permission};
use crate::cli::{ByHandArgs, ByHandOutput, HoldArgs, Telling, Zones};
use crate::cluster::Want;
use crate::driver::{Intervening, Keeper, Signals};
use crate::error::Error;
use crate::exit::Exit;
use crate::render::words::by_hand as words;
use crate::render::words::recalled::Told;
use crate::render::{Io, document};

const ABORTED: Choice =
    Choice { verb: "retry", what: "aborted", fits: |_, _, facts| facts.rollout.status.abort };
const MOVING: Choice = Choice {
    verb: "hold",
    what: "on their way",
    fits: |_, _, facts| facts.has_started() && !facts.rollout.status.abort,
};
const HELD: Choice =
    Choice { verb: "release", what: "held", fits: |_, _, facts| facts.rollout.spec.paused };

pub(super) async fn retry(
    context: &Context,
    args: &ByHandArgs,
    io: &mut Io,
) -> Result<Exit, Error> {
    let asked = Asked { zones: &args.zones, telling: args.telling, force: false };
    run(context, &asked, &ABORTED, ByHand::Retry, io).await
}

pub(super) async fn hold(context: &Context, args: &HoldArgs, io: &mut Io) -> Result<Exit, Error> {
    let what =
        ByHand::Hold { run: run_name(context.clock.now()), freeze_autoscaler: args.freeze_hpa };
    let asked = Asked { zones: &args.zones, telling: args.telling, force: args.force };
    run(context, &asked, &MOVING, what, io).await
}

pub(super) async fn release(
    context: &Context,
    args: &ByHandArgs,
    io: &mut Io,
) -> Result<Exit, Error> {
    let asked = Asked { zones: &args.zones, telling: args.telling, force: false };
    run(context, &asked, &HELD, ByHand::Release, io).await
}

/// What was typed, of all these verbs.
struct Asked<'a> {
    zones: &'a Zones,
    telling: Telling,
    force: bool,
}

async fn run(
    context: &Context,
    asked: &Asked<'_>,
    choice: &Choice,
    what: ByHand,
    io: &mut Io,
) -> Result<Exit, Error> {
    let want = Want { autoscalers: true, ..context.want(&asked.zones.which) };
    let scene = context.cluster.read(&want).await?;
    let (group, zones) = context.choose(&scene, asked.zones, choice)?;
    if zones.is_empty() {
        let nothing = format!("no zone is {}; nothing to {}", choice.what, choice.verb);
        io.result(&format!("group {}: {nothing}", group.name));
        return Ok(Exit::Done);
    }
    let kind = words::kind(&what);
    let hands = Hands::new(what, zones, asked.force);
    let (told, exit) = carry_out(context, want, &group, hands, asked.telling.timeout, io).await?;
    context.tell(kind, &group, &told, asked.telling.output, exit, io)?;
    Ok(exit)
}

/// Does it under the group's lease; what became of each zone.
pub(super) async fn carry_out(
    context: &Context,
    want: Want,
    group: &Group,
    mut hands: Hands,
    limit: Duration,
    io: &mut Io,
) -> Result<(Vec<Told>, Exit), Error> {
    permission::to_change(context, &group.namespace).await?;
    let mut signals = Signals::listen()?;
    let run = run_name(context.clock.now());
    let taking = Keeper::take(&*context.cluster, &group.namespace, &group.name, &run, io);
    let keeper = tokio::select! {
        taken = taking => taken?,
        _ = signals.next() => {
            let exit = Exit::Signal(signals.seen().unwrap_or_default());
            return Err(Error::new(exit, "interrupted before anything was written"));
        }
    };
    // What was true before the lease was had may not be now.
    let scene = context.cluster.read(&want).await?;
    let intervening = Intervening {
        cluster: &*context.cluster,
        clock: &*context.clock,
        want,
        group,
        signals: &mut signals,
        wrote: words::wrote,
    };
    let troubles = tokio::select! {
        troubles = intervening.carry_out(&mut hands, scene, limit, io) => troubles,
        never = keeper.renew() => match never {},
        holder = keeper.lost() => {
            return Err(Error::new(Exit::LostControl, "the lease of the group was lost")
                .because(format!("it is held by {holder}"))
                .hint(format!("see where it stands: kubectl zone-rollout status {}", group.name)));
        }
    };
    if let Err(error) = keeper.release().await {
        io.note(&format!("warning: the lease expires by itself: {}", error.one_line()));
    }
    let told = hands
        .ends()
        .map(|(zone, end)| {
            let trouble = troubles.get(zone).map(String::as_str);
            words::told(hands.what(), group, zone, end, trouble, &context.flags)
        })
        .collect();
    Ok((told, exit(&hands, signals.seen())))
}

/// A refusal is one only if nothing was written for any zone.
fn exit(hands: &Hands, signal: Option<u8>) -> Exit {
    let ends: Vec<Option<&End>> = hands.ends().map(|(_, end)| end).collect();
    let any = |test: fn(&End) -> bool| ends.iter().flatten().any(|end| test(end));
    let refused = any(|end| matches!(end, End::Refused(_)));
    let done = any(|end| matches!(end, End::Done(_)));
    match signal {
        _ if !refused && ends.iter().all(Option::is_some) => Exit::Done,
        Some(signal) => Exit::Signal(signal),
        None if refused && !done => Exit::Refused,
        None if refused => Exit::Failed,
        None => Exit::Stuck,
    }
}

impl Context {
    /// Says for each zone how it ended.
    pub(super) fn tell(
        &self,
        kind: &'static str,
        group: &Group,
        told: &[Told],
        output: ByHandOutput,
        exit: Exit,
        io: &mut Io,
    ) -> Result<(), Error> {
        match output {
            ByHandOutput::Text => io.result(&words::all(told)),
            ByHandOutput::Json => {
                let now = self.clock.now();
                io.result(&document::json(&document::by_hand(kind, group, told, exit, now))?);
            }
        }
        Ok(())
    }
}
