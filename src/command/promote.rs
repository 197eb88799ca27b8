//! `promote`: read, plan, ask, take the lease, drive, say how it ended.

use std::collections::BTreeSet;

use zone_rollout_core::group::{Group, ZoneId, resolve};
use zone_rollout_core::promote::{
    Blocker, Goal, OnFailure, Outcome, Pauses, Plan, Planned, Run, Settings, plan,
};
use zone_rollout_core::scene::Scene;

use super::{Cluster, Context};
use crate::cli::{OnFailureArg, PausesArg, PromoteArgs, PromoteOutput};
use crate::cluster::{KubeCluster, Permission, Want, clock};
use crate::driver::{Commands, Driver, Keeper, Signals, confirm};
use crate::error::Error;
use crate::exit::Exit;
use crate::render::report::{Bars, Lines, Quiet, Reporter, Stream};
use crate::render::words::ending::{self, Ending};
use crate::render::words::{self, blocked};
use crate::render::{Io, document, plan as plan_text};

pub(super) async fn run(
    context: &Context<'_>,
    args: &PromoteArgs,
    io: &mut Io,
) -> Result<Exit, Error> {
    let want = Want { autoscalers: args.hold, ..context.want(&args.which) };
    let scene = context.cluster.read(&want).await?;
    let (group, zone) = context.find(&scene, &args.which, args.address.as_deref())?;
    let settings = settings(args, &group, zone.as_ref(), io)?;
    let goal = goal(args, &scene, &group)?;
    match plan(&scene, &group, &settings, goal.as_ref(), clock::now()) {
        Planned::NothingToDo => nothing_to_do(context, args, &scene, &group, io),
        Planned::Refused(blockers) => refuse(context, args, &group, &blockers, io),
        Planned::Plan(plan) => {
            let text = plan_text::text(&plan, &group, &settings, io.terminal());
            if args.dry_run {
                io.result(&text);
                return Ok(Exit::Done);
            }
            if args.output == PromoteOutput::Text {
                io.note(&text);
            }
            permitted(context, &group, &plan, args).await?;
            if !args.yes && !agreed(io).await? {
                return Ok(finish(context, args, None, &Outcome::Declined, None, io));
            }
            let goal = goal.ok_or_else(|| Error::unexpected("there is no goal"))?;
            drive(context, args, want, settings, group, goal, io).await
        }
    }
}

/// What was asked for, with zones resolved against the group.
fn settings(
    args: &PromoteArgs,
    group: &Group,
    zone: Option<&ZoneId>,
    io: &Io,
) -> Result<Settings, Error> {
    let skipped: BTreeSet<ZoneId> = zones(group, &args.skip_zone)?.into_iter().collect();
    let order = order(args, group, zone, &skipped)?;
    if order.len() > 1 && !args.sequential {
        return Err(Error::usage(
            "several zones are promoted one after another only with --sequential",
        )
        .hint(format!(
            "kubectl zone-rollout promote {} --sequential, or one zone: \
                 kubectl zone-rollout promote {}/{}",
            group.name, group.name, order[0]
        )));
    }
    let pauses = match args.pauses {
        Some(PausesArg::Ask) if !io.terminal().can_ask => {
            return Err(Error::usage("--pauses ask needs a terminal to ask on"));
        }
        Some(PausesArg::Ask) => Pauses::Ask,
        Some(PausesArg::Open) => Pauses::Open,
        Some(PausesArg::Stop) => Pauses::Stop,
        None if io.terminal().can_ask => Pauses::Ask,
        None => Pauses::Stop,
    };
    Ok(Settings {
        run: run_name(),
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
        check: args.check.is_some(),
        stable_floor: args.stable_floor,
    })
}

/// The zones to drive, in order.
fn order(
    args: &PromoteArgs,
    group: &Group,
    zone: Option<&ZoneId>,
    skipped: &BTreeSet<ZoneId>,
) -> Result<Vec<ZoneId>, Error> {
    let mut order = zones(group, &args.order)?;
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
fn run_name() -> String {
    let at = clock::now().wall.strftime("%Y%m%dT%H%M%SZ");
    format!("{at}-{:x}", std::process::id())
}

fn goal(args: &PromoteArgs, scene: &Scene, group: &Group) -> Result<Option<Goal>, Error> {
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

fn nothing_to_do(
    context: &Context<'_>,
    args: &PromoteArgs,
    scene: &Scene,
    group: &Group,
    io: &mut Io,
) -> Result<Exit, Error> {
    if args.output == PromoteOutput::Text {
        let view = crate::render::GroupView::of(scene, group, clock::now());
        io.result(&crate::render::status::text(&view, false, &context.flags, io.terminal()));
        io.result("");
    }
    Ok(finish(context, args, None, &Outcome::NothingToDo, None, io))
}

fn refuse(
    context: &Context<'_>,
    args: &PromoteArgs,
    group: &Group,
    blockers: &[Blocker],
    io: &mut Io,
) -> Result<Exit, Error> {
    let now = clock::now();
    let lines: Vec<String> = blockers
        .iter()
        .flat_map(|blocker| blocked::lines(blocker, group, &context.flags, now))
        .collect();
    io.note(&format!("refused: {}", lines.join("\n")));
    Ok(finish(context, args, None, &Outcome::Refused(blockers.to_vec()), None, io))
}

/// Asks for every permission that the plan needs before anything is written.
async fn permitted(
    context: &Context<'_>,
    group: &Group,
    plan: &Plan,
    args: &PromoteArgs,
) -> Result<(), Error> {
    use zone_rollout_core::promote::ZoneWay;
    let rollouts = |subresource| Permission {
        verb: "patch",
        group: "argoproj.io",
        resource: "rollouts",
        subresource,
    };
    let lease = |verb| Permission {
        verb,
        group: "coordination.k8s.io",
        resource: "leases",
        subresource: "",
    };
    let mut needed = vec![rollouts("status"), lease("get"), lease("create"), lease("update")];
    let specs = |way: &ZoneWay| matches!(way, ZoneWay::SetImage | ZoneWay::Hold | ZoneWay::Release);
    if plan.zones.iter().any(|zone| specs(&zone.way)) {
        needed.push(rollouts(""));
    }
    if args.on_failure == OnFailureArg::AbortZone {
        needed.push(Permission {
            verb: "patch",
            group: "networking.istio.io",
            resource: "virtualservices",
            subresource: "",
        });
    }
    let lacking = context.cluster.lacks(&group.namespace, &needed).await?;
    if lacking.is_empty() {
        return Ok(());
    }
    let list: Vec<String> = lacking.iter().map(ToString::to_string).collect();
    Err(Error::refused(format!(
        "you may not {} in namespace `{}`",
        list.join(", "),
        group.namespace
    ))
    .hint(format!("see what you may do: kubectl auth can-i --list -n {}", group.namespace)))
}

async fn agreed(io: &mut Io) -> Result<bool, Error> {
    if !io.terminal().can_ask {
        return Err(Error::refused("nobody can be asked here whether to go on")
            .hint("say it on the command line: --yes"));
    }
    Ok(confirm(io, "\nGo on? [y/N] ").await)
}

async fn drive(
    context: &Context<'_>,
    args: &PromoteArgs,
    want: Want,
    settings: Settings,
    group: Group,
    goal: Goal,
    io: &mut Io,
) -> Result<Exit, Error> {
    let mut signals = Signals::listen()?;
    let keeper: Keeper<'_, KubeCluster> =
        Keeper::take(context.cluster, &group.namespace, &group.name, &settings.run, io).await?;
    let mut run = Run::new(settings, group, goal, clock::now());
    let commands = Commands { check: args.check.clone(), notify: args.notify.clone() };
    let driver = Driver {
        cluster: context.cluster,
        want,
        keeper: &keeper,
        commands: commands.clone(),
        signals: &mut signals,
    };
    let outcome = {
        let mut reporter = reporter(args.output, &run, io);
        tokio::select! {
            outcome = driver.drive(&mut run, reporter.as_mut()) => outcome,
            () = keeper.renew() => std::future::pending().await,
        }
    };
    if let Err(error) = keeper.release().await {
        io.note(&format!("warning: the lease expires by itself: {}", error.one_line()));
    }
    let exit = finish(context, args, Some(&run), &outcome, signals.seen(), io);
    let ending = ending(context, args, Some(&run), &outcome);
    let event = document::result(Some(&run), &outcome, &ending, exit, clock::now());
    if let Ok(event) = serde_json::to_value(event)
        && let Err(why) = commands.tell(&event).await
    {
        io.note(&format!("warning: {why}"));
    }
    Ok(exit)
}

fn reporter<'a>(output: PromoteOutput, run: &Run, io: &'a mut Io) -> Box<dyn Reporter + 'a> {
    match output {
        PromoteOutput::Text if io.terminal().live => Box::new(Bars::new(run, io.terminal())),
        PromoteOutput::Text => Box::new(Lines::new(io)),
        PromoteOutput::Json => Box::new(Quiet),
        PromoteOutput::Events => Box::new(Stream::begin(io, run)),
    }
}

fn ending(
    context: &Context<'_>,
    args: &PromoteArgs,
    run: Option<&Run>,
    outcome: &Outcome,
) -> Ending {
    let again = format!("kubectl zone-rollout {}", typed());
    match run {
        Some(run) => ending::ending(run, outcome, &again, &context.flags),
        None => {
            let text = match outcome {
                Outcome::Declined => "declined; nothing was written",
                Outcome::Refused(_) => "refused; nothing was written",
                _ if args.expect.is_empty() && args.image.is_empty() => {
                    "nothing to do: no zone is being updated"
                }
                _ => "nothing to do: every zone is there already",
            };
            Ending { text: text.to_owned(), next: Vec::new() }
        }
    }
}

/// The command line of this invocation, to be typed again.
fn typed() -> String {
    let quoted = |word: String| {
        let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_=./:,@%+".contains(letter);
        if !word.is_empty() && word.chars().all(plain) {
            word
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    };
    std::env::args().skip(1).map(quoted).collect::<Vec<_>>().join(" ")
}

/// Says how it ended, in the format that was asked for; returns the exit code.
fn finish(
    context: &Context<'_>,
    args: &PromoteArgs,
    run: Option<&Run>,
    outcome: &Outcome,
    signal: Option<u8>,
    io: &mut Io,
) -> Exit {
    let exit = ending::exit(outcome, signal);
    let ending = ending(context, args, run, outcome);
    match args.output {
        PromoteOutput::Text => {
            if let Some(run) = run {
                io.result(&summary(run));
            }
            io.result(&ending.text);
            if !ending.next.is_empty() {
                io.result(&format!("Next:\n  {}", ending.next.join("\n  ")));
            }
        }
        PromoteOutput::Json | PromoteOutput::Events => {
            let document = document::result(run, outcome, &ending, exit, clock::now());
            let text = if args.output == PromoteOutput::Json {
                serde_json::to_string_pretty(&document)
            } else {
                serde_json::to_string(&document)
            };
            if let Ok(text) = text {
                io.result(&text);
            }
        }
    }
    exit
}

/// When each zone was started, promoted and verified.
fn summary(run: &Run) -> String {
    use zone_rollout_core::time::{Moment, format_duration};
    let at = |moment: Option<Moment>| moment.map(|moment| words::clock(moment.wall));
    let lines = run.group().zones.iter().map(|zone| {
        let record = run.zone(&zone.id);
        let times = [
            ("started", at(record.started())),
            ("promoted", at(record.promoted())),
            ("verified", at(record.verified())),
        ];
        let told: Vec<String> = times
            .into_iter()
            .filter_map(|(what, at)| at.map(|at| format!("{what} {at}")))
            .collect();
        let took = record
            .started()
            .zip(record.verified())
            .map(|(from, to)| format!(" ({})", format_duration(to.mono.saturating_sub(from.mono))));
        let told = if told.is_empty() { "not started".to_owned() } else { told.join(", ") };
        format!("zone {}: {told}{}", zone.id, took.unwrap_or_default())
    });
    lines.collect::<Vec<_>>().join("\n")
}
