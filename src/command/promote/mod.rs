//! `promote`: read, plan, ask, take the lease, drive, say how it ended.

mod ending;

use zone_rollout_core::group::Group;
use zone_rollout_core::promote::{Blocker, Goal, Outcome, Planned, Run, Settings};
use zone_rollout_core::scene::Scene;
use zone_rollout_core::time::Moment;

use super::release::{self, Judged, judge};
use super::{Context, permission};
use crate::cli::{PromoteArgs, PromoteOutput};
use crate::cluster::Want;
use crate::driver::{Commands, Driver, Keeper, Signals, confirm};
use crate::error::Error;
use crate::exit::Exit;
use crate::render::report::{Bars, Lines, Quiet, Reporter, Stream};
use crate::render::words::{self, blocked};
use crate::render::{Io, document, plan as plan_text};

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
                return Ok(without_run(context, args, &Outcome::Declined, &[], None, io));
            }
            let goal = goal.ok_or_else(|| Error::unexpected("there is no goal"))?;
            drive(context, args, want, settings, group, goal, io).await
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
    without_run(context, args, &Outcome::NothingToDo, &[], None, io)
}

fn refuse(
    context: &Context,
    args: &PromoteArgs,
    group: &Group,
    blockers: &[Blocker],
    io: &mut Io,
) -> Exit {
    let reasons = blocked::all(blockers, group, &context.flags, context.clock.now());
    without_run(context, args, &Outcome::Refused(blockers.to_vec()), &reasons, None, io)
}

/// Says how it ended before a run began.
fn without_run(
    context: &Context,
    args: &PromoteArgs,
    outcome: &Outcome,
    reasons: &[String],
    signal: Option<u8>,
    io: &mut Io,
) -> Exit {
    let exit = words::ending::exit(outcome, signal);
    let told = ending::without_run(args, outcome, reasons);
    ending::say(args, None, outcome, &told, exit, context.clock.now(), io);
    exit
}

async fn agreed(io: &mut Io) -> Result<bool, Error> {
    if !io.terminal().can_ask {
        return Err(Error::refused("nobody can be asked here whether to go on")
            .hint("say it on the command line: --yes"));
    }
    Ok(confirm(io, "\nGo on? [y/N] ").await)
}

async fn drive(
    context: &Context,
    args: &PromoteArgs,
    want: Want,
    settings: Settings,
    group: Group,
    goal: Goal,
    io: &mut Io,
) -> Result<Exit, Error> {
    let mut signals = Signals::listen()?;
    let taking = Keeper::take(&*context.cluster, &group.namespace, &group.name, &settings.run, io);
    let keeper = tokio::select! {
        taken = taking => taken?,
        _ = signals.next() => {
            let interrupted = Outcome::Interrupted { writing: None };
            return Ok(without_run(context, args, &interrupted, &[], signals.seen(), io));
        }
    };
    let mut run = Run::new(settings, group, goal, context.clock.now());
    let commands = Commands { check: args.check.clone(), notify: args.notify.clone() };
    let driver = Driver {
        cluster: &*context.cluster,
        clock: &*context.clock,
        want,
        keeper: &keeper,
        commands: commands.clone(),
        signals: &mut signals,
    };
    let outcome = {
        let mut reporter = reporter(args.output, &run, context.clock.now(), io);
        tokio::select! {
            outcome = driver.drive(&mut run, reporter.as_mut()) => outcome,
            never = keeper.renew() => match never {},
        }
    };
    if let Err(error) = keeper.release().await {
        io.note(&format!("warning: the lease expires by itself: {}", error.one_line()));
    }
    let exit = words::ending::exit(&outcome, signals.seen());
    let told = ending::of_run(context, &run, &outcome);
    ending::say(args, Some(&run), &outcome, &told, exit, context.clock.now(), io);
    let event = document::result(Some(&run), &outcome, &told, exit, context.clock.now());
    if let Ok(event) = serde_json::to_value(event)
        && let Err(why) = commands.tell(&event).await
    {
        io.note(&format!("warning: {why}"));
    }
    Ok(exit)
}

fn reporter<'a>(
    output: PromoteOutput,
    run: &Run,
    now: Moment,
    io: &'a mut Io,
) -> Box<dyn Reporter + 'a> {
    match output {
        PromoteOutput::Text if io.terminal().live => Box::new(Bars::new(run, io.terminal())),
        PromoteOutput::Text => Box::new(Lines::new(io)),
        PromoteOutput::Json => Box::new(Quiet),
        PromoteOutput::Events => Box::new(Stream::begin(io, run, now)),
    }
}
