//! `undo`: zones in flight go back to their stable version at once; zones at rest go back to the version
//! before by an update of its own, one zone after another, the newest first, driven as a promotion is.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;
use zone_rollout_core::by_hand::{ByHand, Hands, earlier, is_of_release};
use zone_rollout_core::group::{Group, ZoneId};
use zone_rollout_core::promote::{Goal, OnFailure, Pauses, Plan, Planned, Settings, plan};
use zone_rollout_core::rehearsal::rehearse;
use zone_rollout_core::scene::Scene;
use zone_rollout_core::zone::ZoneFacts;

use super::promote::{Ride, agreed};
use super::release::run_name;
use super::zones::Choice;
use super::{Context, by_hand, permission};
use crate::cli::{ByHandOutput, PromoteOutput, UndoArgs};
use crate::cluster::Want;
use crate::driver::Commands;
use crate::error::Error;
use crate::exit::Exit;
use crate::render::words::{blocked, by_hand as words};
use crate::render::{Io, plan as plan_text, timeline};

const NEW: Choice = Choice { verb: "undo", what: "on the newest version", fits: is_of_release };

/// Share of a zone's stable pods, in percent, that may take its traffic back; nothing is taken back here.
const STABLE_FLOOR: u32 = 50;

pub(super) async fn run(context: &Context, args: &UndoArgs, io: &mut Io) -> Result<Exit, Error> {
    let want = context.want(&args.zones.which);
    let scene = context.cluster.read(&want).await?;
    let (group, zones) = context.choose(&scene, &args.zones, &NEW)?;
    let (moving, resting): (Vec<ZoneId>, Vec<ZoneId>) =
        zones.into_iter().partition(|id| is_moving(&scene, &group, id));
    // Found before anything is written: a way back that is not there is no half of one.
    let templates = templates(context, &scene, &group, &resting, args)?;
    if !moving.is_empty() {
        let hands = Hands::new(ByHand::RollBack, moving, args.force);
        let limit = args.timeout;
        let (told, exit) =
            by_hand::carry_out(context, want.clone(), &group, hands, limit, io).await?;
        if exit != Exit::Done || resting.is_empty() {
            let kind = words::kind(&ByHand::RollBack);
            context.tell(kind, &group, &told, args.output, exit, io)?;
            return Ok(exit);
        }
        for told in &told {
            io.note(&told.text);
        }
    }
    go_back(context, args, want, group, resting, templates, io).await
}

fn is_moving(scene: &Scene, group: &Group, id: &ZoneId) -> bool {
    let facts = group.zone(id).and_then(|zone| ZoneFacts::gather(scene, zone));
    facts.is_some_and(|facts| facts.is_in_flight())
}

/// What each zone ran before.
fn templates(
    context: &Context,
    scene: &Scene,
    group: &Group,
    zones: &[ZoneId],
    args: &UndoArgs,
) -> Result<BTreeMap<ZoneId, Value>, Error> {
    if args.to_revision.is_some() && zones.len() != 1 {
        return Err(Error::usage("--to-revision is about one zone at rest: each counts its own")
            .hint("name one zone"));
    }
    let of_zone = |id: &ZoneId| {
        let zone = group.zone(id)?;
        let found = earlier(scene, zone, args.to_revision)?;
        Some((id.clone(), found.template))
    };
    zones
        .iter()
        .map(|id| {
            of_zone(id).ok_or_else(|| {
                let rollout = group.zone(id).map_or("", |zone| zone.rollout.name.as_str());
                Error::refused(format!("zone {id} has no such earlier version left"))
                    .because("a Rollout keeps as many as spec.revisionHistoryLimit says")
                    .hint(format!(
                        "see which there are: kubectl argo rollouts get rollout {rollout}{}",
                        context.flags.0
                    ))
            })
        })
        .collect()
}

/// Zones at rest, one after another.
async fn go_back(
    context: &Context,
    args: &UndoArgs,
    want: Want,
    group: Group,
    zones: Vec<ZoneId>,
    templates: BTreeMap<ZoneId, Value>,
    io: &mut Io,
) -> Result<Exit, Error> {
    if zones.is_empty() {
        io.result(&format!("group {}: no zone is on a newer version; nothing to undo", group.name));
        return Ok(Exit::Done);
    }
    let scene = context.cluster.read(&want).await?;
    let settings = settings(context, args, zones);
    let goal = Goal::Restored(templates);
    let now = context.clock.now();
    match plan(&scene, &group, &settings, Some(&goal), now) {
        Planned::NothingToDo => {
            io.result("nothing to do: every zone is there already");
            Ok(Exit::Done)
        }
        Planned::Refused(blockers) => {
            let reasons = blocked::all(&blockers, &group, &context.flags, now);
            Err(Error::refused(reasons.join("\n")))
        }
        Planned::Plan(plan) => {
            io.note(&announced(&plan, &scene, &group, &settings, &goal, io));
            permission::to_change(context, &group.namespace).await?;
            if !args.yes && !agreed(io).await? {
                io.note("declined; nothing was written");
                return Ok(Exit::Declined);
            }
            let output = match args.output {
                ByHandOutput::Text => PromoteOutput::Text,
                ByHandOutput::Json => PromoteOutput::Json,
            };
            let ride = Ride { want, settings, group, goal, commands: Commands::default(), output };
            ride.drive(context, io).await
        }
    }
}

/// What would be done, and how long that takes.
fn announced(
    plan: &Plan,
    scene: &Scene,
    group: &Group,
    settings: &Settings,
    goal: &Goal,
    io: &Io,
) -> String {
    let text = plan_text::text(plan, group, settings, io.terminal());
    let time = match rehearse(scene, group, settings, goal) {
        Ok(rehearsal) => timeline::ending(&rehearsal),
        Err(unmodelled) => format!("How long it takes is not known: {unmodelled}."),
    };
    format!("{text}\n\n{time}")
}

fn settings(context: &Context, args: &UndoArgs, order: Vec<ZoneId>) -> Settings {
    Settings {
        run: run_name(context.clock.now()),
        order,
        skipped: BTreeSet::new(),
        soak: args.soak,
        first_soak: args.soak,
        wait_sync: Duration::ZERO,
        hold: false,
        freeze_autoscaler: false,
        force: args.force,
        // Whoever takes a version back wants it off at every step.
        pauses: Pauses::Open,
        on_failure: OnFailure::Leave,
        timeout: None,
        check: false,
        stable_floor: STABLE_FLOOR,
    }
}
