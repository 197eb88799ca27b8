//! `status`: one row a zone, what is awaited, and the next command.

use futures::StreamExt;
use zone_rollout_core::group::{Group, ZoneId};
use zone_rollout_core::scene::Scene;
use zone_rollout_core::zone::ZoneState;

use super::Context;
use crate::cli::{StatusArgs, StatusOutput};
use crate::error::Error;
use crate::exit::Exit;
use crate::render::{GroupView, Io, ZoneView, document, status};

pub(super) async fn run(context: &Context, args: &StatusArgs, io: &mut Io) -> Result<Exit, Error> {
    let want = context.want(&args.which);
    let scene = context.cluster.read(&want).await?;
    let (group, zone) = context.find(&scene, &args.which, args.address.as_deref())?;
    let mut shown = show(context, args, &scene, &group, zone.as_ref(), None, io)?;
    if args.watch {
        let mut observations = context.cluster.watch(&want);
        while let Some(observation) = observations.next().await {
            let scene = &observation.scene;
            shown = show(context, args, scene, &group, zone.as_ref(), Some(&shown), io)?;
            if io.is_closed() {
                break;
            }
        }
    }
    Ok(if args.exit_code { shown.exit } else { Exit::Done })
}

/// What was printed last.
struct Shown {
    text: String,
    exit: Exit,
}

fn show(
    context: &Context,
    args: &StatusArgs,
    scene: &Scene,
    group: &Group,
    zone: Option<&ZoneId>,
    before: Option<&Shown>,
    io: &mut Io,
) -> Result<Shown, Error> {
    let mut view = GroupView::of(scene, group, context.clock.now());
    view.zones.retain(|shown| zone.is_none_or(|zone| shown.zone.id == *zone));
    let text = format(context, args, &view, io)?;
    let changed = before.is_none_or(|before| before.text != text);
    if changed {
        if before.is_some() && matches!(args.output, StatusOutput::Table | StatusOutput::Wide) {
            io.result("");
        }
        io.result(&text);
    }
    Ok(Shown { text, exit: verdict(&view) })
}

fn format(
    context: &Context,
    args: &StatusArgs,
    view: &GroupView,
    io: &Io,
) -> Result<String, Error> {
    let flags = &context.flags;
    Ok(match args.output {
        StatusOutput::Table => status::text(view, false, flags, io.terminal()),
        StatusOutput::Wide => status::text(view, true, flags, io.terminal()),
        StatusOutput::Json => document::json(&document::status(view, flags))?,
        StatusOutput::Yaml => document::yaml(&document::status(view, flags))?,
        StatusOutput::Name => view
            .zones
            .iter()
            .map(|zone| format!("rollout.argoproj.io/{}", zone.zone.rollout.name))
            .collect::<Vec<_>>()
            .join("\n"),
    })
}

/// The exit code for a group: the worst of its zones.
fn verdict(view: &GroupView) -> Exit {
    let verdicts: Vec<Exit> = view.zones.iter().map(zone_verdict).collect();
    [Exit::Failed, Exit::Stuck, Exit::Unexpected, Exit::Outstanding]
        .into_iter()
        .find(|exit| verdicts.contains(exit))
        .unwrap_or(Exit::Done)
}

fn zone_verdict(zone: &ZoneView) -> Exit {
    if zone.outage.is_some() {
        return Exit::Failed;
    }
    match &zone.state {
        ZoneState::Stable | ZoneState::Promoted | ZoneState::Soaking | ZoneState::Verified
            if zone.late.is_none() =>
        {
            Exit::Done
        }
        ZoneState::Missing
        | ZoneState::Deleting
        | ZoneState::Unsupported { .. }
        | ZoneState::InvalidSpec { .. }
        | ZoneState::Aborted { .. }
        | ZoneState::Unproven { .. } => Exit::Failed,
        ZoneState::Unknown { .. } => Exit::Unexpected,
        ZoneState::NeverReconciled | ZoneState::NotReady { .. } => Exit::Stuck,
        _ if zone.late.is_some() => Exit::Stuck,
        _ => Exit::Outstanding,
    }
}
