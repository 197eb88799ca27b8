//! `evacuate` and `restore`: a zone's clients to another zone, and back. Judged on what was read for the
//! purpose, written as one guarded patch, and seen before it is said.

use std::time::{Duration, Instant};

use zone_rollout_core::diversion::{
    Transfer, Unfit, diverted, next_zone, restoration, transfer, virtual_services,
};
use zone_rollout_core::gitops::{self, GitOpsOwner};
use zone_rollout_core::group::{Group, Zone};
use zone_rollout_core::scene::Scene;
use zone_rollout_core::write::{Action, Written, compile};

use super::{Context, permission};
use crate::cli::{EvacuateArgs, RestoreArgs, Which};
use crate::cluster::Want;
use crate::driver::Signals;
use crate::error::Error;
use crate::exit::Exit;
use crate::render::Io;
use crate::render::words::{diversion as words, recalled};

/// How often it is written, or looked, before it is given up.
const ATTEMPTS: u32 = 8;
/// Pause between two looks.
const AGAIN: Duration = Duration::from_millis(500);
/// How long it is watched whether a GitOps tool puts the route back.
const WATCH: Duration = Duration::from_mins(1);

pub(super) async fn evacuate(
    context: &Context,
    args: &EvacuateArgs,
    io: &mut Io,
) -> Result<Exit, Error> {
    let mut change = Change::begin(context, &args.which, &args.address, args.force).await?;
    let transfer = change.transfer(args)?;
    let (zone, to) = (change.zone.id.clone(), transfer.to.clone());
    let action = Action::Divert { zone: zone.clone(), to: to.clone() };
    if change.is_done(&action) {
        io.result(&format!("zone {zone}: its clients are sent to zone {to} already"));
        return Ok(Exit::Done);
    }
    for line in words::meaning(&zone, &transfer) {
        io.note(&line);
    }
    let owner = change.accept(&action, io).await?;
    change.write(&action).await?;
    io.result(&words::evacuated(&zone, &to));
    io.result(&format!("Next:\n  {}", words::restore(&change.group, &zone, &context.flags)));
    change.watch(owner, io).await
}

pub(super) async fn restore(
    context: &Context,
    args: &RestoreArgs,
    io: &mut Io,
) -> Result<Exit, Error> {
    let mut change = Change::begin(context, &args.which, &args.address, args.force).await?;
    let zone = change.zone.id.clone();
    let action = Action::EndDiversion { zone: zone.clone() };
    if change.is_done(&action) {
        io.result(&format!("zone {zone}: its clients are not sent elsewhere"));
        return Ok(Exit::Done);
    }
    let owner = change.accept(&action, io).await?;
    change.write(&action).await?;
    io.result(&words::restored(&zone, &restoration(&change.scene, &change.zone)));
    change.watch(owner, io).await
}

/// A change of where a zone's clients go.
struct Change<'a> {
    context: &'a Context,
    want: Want,
    which: &'a Which,
    /// What was read last.
    scene: Scene,
    group: Group,
    zone: Zone,
    force: bool,
}

impl<'a> Change<'a> {
    async fn begin(
        context: &'a Context,
        which: &'a Which,
        address: &str,
        force: bool,
    ) -> Result<Self, Error> {
        let want = context.want(which);
        let scene = context.cluster.read(&want).await?;
        let (group, zone) = context.find(&scene, which, Some(address))?;
        let zone = zone.and_then(|id| group.zone(&id).cloned());
        let zone = zone.ok_or_else(|| {
            Error::usage(format!("`{address}` is a group; name a zone of it"))
                .hint(format!("see its zones: kubectl zone-rollout status {address}"))
        })?;
        Ok(Self { context, want, which, scene, group, zone, force })
    }

    /// The zone that takes the clients, and what that means: the one that was named, else the one
    /// that has them, else the next that can.
    fn transfer(&self, args: &EvacuateArgs) -> Result<Transfer, Error> {
        let now = diverted(&self.scene, &self.group, &self.zone).and_then(|found| found.to);
        let to = match &args.to {
            Some(address) => Some(self.named(address)?),
            None => now.and_then(|to| self.group.zone(&to)),
        };
        let found = match to {
            Some(to) => Some(transfer(&self.scene, &self.group, &self.zone, to)),
            None => next_zone(&self.scene, &self.group, &self.zone),
        };
        found.ok_or_else(|| Error::refused("the group has no other zone"))
    }

    fn named(&self, address: &str) -> Result<&Zone, Error> {
        let (group, zone) = self.context.find(&self.scene, self.which, Some(address))?;
        let other = zone.and_then(|id| self.group.zone(&id));
        match other {
            Some(other) if group == self.group && other.id != self.zone.id => Ok(other),
            _ => Err(Error::usage(format!(
                "`{address}` is not another zone of group {}",
                self.group.name
            ))),
        }
    }

    /// Refuses what would harm clients, unless it is forced; then it is returned.
    fn judge(&self, action: &Action) -> Result<Vec<Unfit>, Error> {
        let zone = &self.zone.id;
        let (unfit, what) = if let Action::Divert { to, .. } = action {
            let other = self.group.zone(to);
            let found = other.map(|to| transfer(&self.scene, &self.group, &self.zone, to));
            let unfit = found.map_or_else(|| vec![Unfit::Unseen(to.clone())], |it| it.unfit);
            (unfit, format!("zone {to} cannot take the clients of zone {zone}"))
        } else {
            let unfit = restoration(&self.scene, &self.zone).unfit;
            (unfit, format!("zone {zone} cannot take its clients back"))
        };
        let hopeless = unfit.iter().any(Unfit::is_hopeless);
        if unfit.is_empty() || self.force && !hopeless {
            return Ok(unfit);
        }
        let reasons = unfit.iter().map(ToString::to_string);
        let error = reasons.fold(Error::refused(what), Error::because);
        Err(error.hint(if hopeless {
            format!("see what there is: kubectl zone-rollout status{}", self.context.flags.0)
        } else {
            "to do it all the same: --force".to_owned()
        }))
    }

    /// Everything that is asked before anything is written. Returns who may put the route back.
    async fn accept(&self, action: &Action, io: &mut Io) -> Result<Option<GitOpsOwner>, Error> {
        for risk in self.judge(action)? {
            io.note(&format!("warning: {risk}"));
        }
        let owner = self.accept_owner(io)?;
        permission::to_divert(self.context, &self.group.namespace).await?;
        Ok(owner)
    }

    /// Refuses to write a VirtualService that a GitOps tool owns, unless it is forced.
    fn accept_owner(&self, io: &mut Io) -> Result<Option<GitOpsOwner>, Error> {
        let keys = virtual_services(&self.scene, &self.zone);
        let found = keys
            .iter()
            .find_map(|key| Some((key, gitops::owner(&self.scene.routes.get(key)?.meta)?)));
        let Some((key, owner)) = found else { return Ok(None) };
        let stop = words::stop_self_heal(&owner);
        if !self.force {
            let what = format!(
                "VirtualService `{}` is owned by {owner}, which would put it back",
                key.name
            );
            return Err(Error::refused(what).hint(format!(
                "do it all the same with --force, and keep it from healing: {stop}"
            )));
        }
        io.note(&format!(
            "warning: {owner} owns VirtualService `{}`; to keep it from healing:",
            key.name
        ));
        io.note(&format!("  {stop}"));
        Ok(Some(owner))
    }

    /// Writes until nothing is left to write, and has seen that. A write that was refused is judged
    /// again: the weight that was in its way may be that of a zone that has just begun to move.
    async fn write(&mut self, action: &Action) -> Result<(), Error> {
        let mut trouble = "it did not stay".to_owned();
        let mut landed = false;
        for _ in 0..ATTEMPTS {
            if self.is_done(action) {
                return Ok(());
            }
            if !landed {
                self.judge(action)?;
            }
            let written = match compile(action, &self.scene, &self.group) {
                Ok(write) => self.context.cluster.write(&write).await,
                Err(drift) => Written::Refused(drift),
            };
            match written {
                Written::Landed { .. } => landed = true,
                Written::Refused(_) => trouble = recalled::failure(&written),
                Written::Invalid(_) | Written::Denied(_) => {
                    return Err(self.unwritten(&recalled::failure(&written), landed));
                }
                Written::NotSent(_) | Written::Unknown(_) => {
                    trouble = recalled::failure(&written);
                    tokio::time::sleep(AGAIN).await;
                }
            }
            self.look().await?;
        }
        if self.is_done(action) { Ok(()) } else { Err(self.unwritten(&trouble, landed)) }
    }

    fn unwritten(&self, trouble: &str, landed: bool) -> Error {
        let exit = if landed { Exit::Failed } else { Exit::Unexpected };
        Error::new(exit, format!("the route of zone {} could not be written", self.zone.id))
            .because(trouble)
            .hint(format!(
                "see where it stands: kubectl zone-rollout status {}{}",
                self.group.name, self.context.flags.0
            ))
    }

    fn is_done(&self, action: &Action) -> bool {
        let found = diverted(&self.scene, &self.group, &self.zone);
        match action {
            Action::Divert { to, .. } => {
                found.is_some_and(|found| found.complete && found.to.as_ref() == Some(to))
            }
            _ => found.is_none(),
        }
    }

    /// Reads again. A server that is away for a moment is asked again.
    async fn look(&mut self) -> Result<(), Error> {
        let mut left = ATTEMPTS;
        loop {
            match self.context.cluster.read(&self.want).await {
                Ok(scene) => {
                    self.scene = scene;
                    return Ok(());
                }
                Err(error) if left == 0 => return Err(error),
                Err(_) => left -= 1,
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// Watches whether the owner of the route puts it back; at once over if nobody owns it.
    async fn watch(&mut self, owner: Option<GitOpsOwner>, io: &mut Io) -> Result<Exit, Error> {
        let Some(owner) = owner else { return Ok(Exit::Done) };
        io.note(&format!("watching for {} s whether it stays", WATCH.as_secs()));
        let mut signals = Signals::listen()?;
        let wanted = diverted(&self.scene, &self.group, &self.zone);
        let end = Instant::now() + WATCH;
        while Instant::now() < end {
            tokio::select! {
                () = tokio::time::sleep(AGAIN) => {}
                _ = signals.next() => return Ok(Exit::Signal(signals.seen().unwrap_or_default())),
            }
            self.look().await?;
            if diverted(&self.scene, &self.group, &self.zone) != wanted {
                io.result(&words::put_back(&self.zone.id, self.last_writer(), &owner));
                io.result(&format!("Next:\n  {}", words::stop_self_heal(&owner)));
                return Ok(Exit::Failed);
            }
        }
        io.result(&format!("zone {}: it has stayed for {} s", self.zone.id, WATCH.as_secs()));
        Ok(Exit::Done)
    }

    fn last_writer(&self) -> Option<&str> {
        let keys = virtual_services(&self.scene, &self.zone);
        let routes = &self.scene.routes;
        keys.iter().find_map(|key| routes.get(key)?.meta.last_writer_of_spec())
    }
}
