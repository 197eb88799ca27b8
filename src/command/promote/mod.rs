//! `promote`: read, plan, ask, take the lease, drive, say how it ended.

mod ending;
mod ride;

use zone_rollout_core::group::Group;
use zone_rollout_core::promote::{Blocker, Outcome, Planned, Settings};
use zone_rollout_core::scene::Scene;

use super::release::{self, Judged, judge};
use super::{Context, permission};
use crate::cli::{PromoteArgs, PromoteOutput};
use crate::driver::Commands;
use crate::error::Error;
use crate::exit::Exit;
use crate::render::words::blocked;
use crate::render::{Io, plan as plan_text};

pub(super) use ride::{Ride, agreed};

pub(super) async fn run(context: &Context, args: &PromoteArgs, io: &mut Io) -> Result<Exit, Error> {
    let want = release::want(context, &args.release);
    let judged = judge(context, &args.release, &want, io).await?;
    let Judged { scene, group, mut settings, goal, planned } = judged;
    settings.check = args.check.is_some();
    if settings.order.len() > 1 && !args.sequential {
        return Err(not_sequential(&group, &settings));
    }
    match planned {
        Planned::NothingToDo => Ok(nothing_to_do(context, args, &scene, &group, io)),
        Planned::Refused(blockers) => Ok(refuse(context, args, &group, &blockers, io)),
        Planned::Plan(plan) => {
            if let Some(wanted) = &args.plan {
                let now = release::hash(&plan, &scene, &group, &settings);
                release::ensure_same(wanted, &now, &group, &context.flags)?;
            }
            let text = plan_text::text(&plan, &group, &settings, io.terminal());
            if args.dry_run {
                io.result(&text);
                return Ok(Exit::Done);
            }
            if args.output == PromoteOutput::Text {
                io.note(&text);
            }
            permission::to_promote(context, &group, args).await?;
            if !args.yes && !agreed(io).await? {
                return Ok(without_run(context, args, &Outcome::Declined, &[], io));
            }
            let goal = goal.ok_or_else(|| Error::unexpected("there is no goal"))?;
            let commands = Commands { check: args.check.clone(), notify: args.notify.clone() };
            Ride { want, settings, group, goal, commands, output: args.output }
                .drive(context, io)
                .await
        }
    }
}

fn not_sequential(group: &Group, settings: &Settings) -> Error {
    Error::usage("several zones are promoted one after another only with --sequential").hint(
        format!(
            "kubectl zone-rollout promote {} --sequential, or one zone: \
             kubectl zone-rollout promote {}/{}",
            group.name, group.name, settings.order[0]
        ),
    )
}

fn nothing_to_do(
    context: &Context,
    args: &PromoteArgs,
    scene: &Scene,
    group: &Group,
    io: &mut Io,
) -> Exit {
    if args.output == PromoteOutput::Text {
        let view = crate::render::GroupView::of(scene, group, context.clock.now());
        io.result(&crate::render::status::text(&view, false, &context.flags, io.terminal()));
        io.result("");
    }
    without_run(context, args, &Outcome::NothingToDo, &[], io)
}

fn refuse(
    context: &Context,
    args: &PromoteArgs,
    group: &Group,
    blockers: &[Blocker],
    io: &mut Io,
) -> Exit {
    let reasons = blocked::all(blockers, group, &context.flags, context.clock.now());
    without_run(context, args, &Outcome::Refused(blockers.to_vec()), &reasons, io)
}

/// Says how it ended before a run began.
fn without_run(
    context: &Context,
    args: &PromoteArgs,
    outcome: &Outcome,
    reasons: &[String],
    io: &mut Io,
) -> Exit {
    let asked_for = !args.release.expect.is_empty() || !args.release.image.is_empty();
    let told = ending::without_run(outcome, reasons, asked_for);
    ending::say_without_run(args.output, outcome, &told, context.clock.now(), io)
}
