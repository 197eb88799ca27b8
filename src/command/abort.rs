//! `abort`: give updates up, and see that the traffic went back.

use std::collections::BTreeMap;

use futures::StreamExt;
use zone_rollout_core::group::{Group, ZoneId};
use zone_rollout_core::scene::Scene;
use zone_rollout_core::takeback::{Recall, RecallEnd};
use zone_rollout_core::write::{Action, Written, compile};
use zone_rollout_core::zone::ZoneFacts;

use super::{Context, permission};
use crate::cli::{AbortArgs, AbortOutput};
use crate::cluster::Want;
use crate::driver::Signals;
use crate::error::Error;
use crate::exit::Exit;
use crate::render::{Io, document, words::recalled};

/// How often a write may be refused before the zone counts as contested.
const REFUSALS: u32 = 5;

pub(super) async fn run(context: &Context, args: &AbortArgs, io: &mut Io) -> Result<Exit, Error> {
    let want = context.want(&args.which);
    let scene = context.cluster.read(&want).await?;
    let (group, zones) = chosen(context, args, &scene)?;
    if zones.is_empty() {
        io.result(&format!("group {}: no zone is in flight; nothing to abort", group.name));
        return Ok(Exit::Done);
    }
    permission::to_abort(context, &group.namespace, io).await?;
    let recall = Recall::new(zones, args.stable_floor, args.force_weights);
    let signals = Signals::listen()?;
    let mut aborting =
        Aborting { context, want, group, recall, troubles: BTreeMap::new(), signals };
    let limit = tokio::time::sleep(args.timeout);
    tokio::select! {
        () = aborting.all(scene, io) => {}
        () = limit => {}
    }
    Ok(aborting.tell(args, io))
}

/// The group, and its zones to be taken back, the newest first.
fn chosen(
    context: &Context,
    args: &AbortArgs,
    scene: &Scene,
) -> Result<(Group, Vec<ZoneId>), Error> {
    let mut group: Option<Group> = None;
    let mut zones: Vec<ZoneId> = Vec::new();
    for address in &args.zones {
        let (found, zone) = context.find(scene, &args.which, Some(address))?;
        if group.as_ref().is_some_and(|group| *group != found) {
            return Err(Error::usage(
                "the zones belong to different groups; abort them one by one",
            ));
        }
        match zone {
            Some(zone) => zones.push(zone),
            None => zones.extend(in_flight(scene, &found)),
        }
        group = Some(found);
    }
    if let Some(group) = group {
        return Ok((group, zones));
    }
    let (group, _) = context.find(scene, &args.which, None)?;
    let moving = in_flight(scene, &group);
    if moving.len() > 1 && !args.all {
        let names: Vec<&str> = moving.iter().map(|zone| zone.0.as_str()).collect();
        return Err(Error::usage(format!("several zones are in flight: {}", names.join(", ")))
            .hint(format!(
                "name them, or take all back: kubectl zone-rollout abort --all{}",
                context.flags.0
            )));
    }
    Ok((group, moving))
}

/// Zones that have passed their gate and are not at rest, the newest first.
fn in_flight(scene: &Scene, group: &Group) -> Vec<ZoneId> {
    let mut moving: Vec<(Option<jiff::Timestamp>, ZoneId)> = group
        .zones
        .iter()
        .filter_map(|zone| ZoneFacts::gather(scene, zone))
        .filter(|facts| facts.has_started() || facts.rollout.status.abort)
        .map(|facts| {
            let canary = facts.canary.as_ref().and_then(|canary| canary.replica_set);
            let born = canary.and_then(|replica_set| replica_set.meta.creation_timestamp);
            (born, facts.zone.id.clone())
        })
        .collect();
    moving.sort_by(|one, other| other.cmp(one));
    moving.into_iter().map(|(_, zone)| zone).collect()
}

/// An abort under way.
struct Aborting<'a> {
    context: &'a Context,
    want: Want,
    group: Group,
    recall: Recall,
    /// Writes that could not be done, by zone.
    troubles: BTreeMap<ZoneId, String>,
    signals: Signals,
}

impl Aborting<'_> {
    /// Goes on until every zone has ended, or cannot be written, or a signal comes. A signal cuts a
    /// write off only the second time.
    async fn all(&mut self, first: Scene, io: &mut Io) {
        let mut scene = first;
        let mut refusals = 0;
        let mut observations = self.context.cluster.watch(&self.want);
        loop {
            // Writes are judged on what was read for the purpose, never on what a watch said.
            while let Some(action) = self.recall.next(&scene, &self.group, self.context.clock.now())
            {
                let zone = action.zone().clone();
                match self.write(&action, &scene).await {
                    Written::Landed { .. } => {
                        self.recall.landed(&action, &scene, &self.group);
                        io.note(&recalled::wrote(&action));
                    }
                    Written::Refused(_) if refusals < REFUSALS => refusals += 1,
                    Written::NotSent(_) | Written::Unknown(_) if refusals < REFUSALS => {
                        refusals += 1;
                        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
                    }
                    failed => {
                        self.troubles.insert(zone, recalled::failure(&failed));
                        return;
                    }
                }
                if self.signals.seen().is_some() {
                    return;
                }
                if let Some(fresh) = self.read(io).await {
                    scene = fresh;
                }
            }
            if self.recall.is_over() {
                return;
            }
            let again = tokio::time::sleep(std::time::Duration::from_millis(500));
            tokio::select! {
                seen = observations.next() => {
                    if seen.is_none() {
                        return;
                    }
                }
                () = again => {}
                _ = self.signals.next() => return,
            }
            if let Some(fresh) = self.read(io).await {
                scene = fresh;
            }
        }
    }

    async fn write(&mut self, action: &Action, scene: &Scene) -> Written {
        let write = match compile(action, scene, &self.group) {
            Ok(write) => write,
            Err(drift) => return Written::Refused(drift),
        };
        tokio::select! {
            written = self.context.cluster.write(&write) => written,
            () = self.signals.second() => Written::Unknown("interrupted".to_owned()),
        }
    }

    async fn read(&self, io: &mut Io) -> Option<Scene> {
        match self.context.cluster.read(&self.want).await {
            Ok(scene) => Some(scene),
            Err(error) => {
                io.note(&format!("warning: {}; trying again", error.one_line()));
                None
            }
        }
    }

    /// Says for each zone how it ended.
    fn tell(&self, args: &AbortArgs, io: &mut Io) -> Exit {
        let told: Vec<recalled::Told> = self
            .recall
            .ends()
            .map(|(zone, end)| {
                let trouble = self.troubles.get(zone).map(String::as_str);
                recalled::told(&self.group, zone, end, trouble, &self.context.flags)
            })
            .collect();
        let seen = |end: Option<&RecallEnd>| {
            matches!(
                end,
                Some(
                    RecallEnd::TakenBack { .. }
                        | RecallEnd::AlreadyStable { .. }
                        | RecallEnd::NeverStarted
                )
            )
        };
        let all = self.recall.ends().all(|(_, end)| seen(end));
        let exit = match self.signals.seen() {
            _ if all => Exit::Done,
            None => Exit::Failed,
            Some(signal) => Exit::Signal(signal),
        };
        match args.output {
            AbortOutput::Text => {
                for told in &told {
                    io.result(&told.text);
                }
                let next: Vec<&String> = told.iter().flat_map(|told| &told.next).collect();
                if !next.is_empty() {
                    io.result("Next:");
                }
                for command in next {
                    io.result(&format!("  {command}"));
                }
            }
            AbortOutput::Json => {
                let document = document::abort(&self.group, &told, exit, self.context.clock.now());
                if let Ok(text) = serde_json::to_string_pretty(&document) {
                    io.result(&text);
                }
            }
        }
        exit
    }
}
