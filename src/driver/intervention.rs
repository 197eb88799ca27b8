//! What people do to zones by hand, carried out: read, judge, write, and look until the effect is seen. It
//! decides nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::StreamExt;
use zone_rollout_core::by_hand::Intervention;
use zone_rollout_core::group::{Group, ZoneId};
use zone_rollout_core::scene::Scene;
use zone_rollout_core::write::{Action, Written, compile};

use super::Signals;
use crate::cluster::{Clock, Cluster, Want};
use crate::render::{Io, words::recalled};

/// How often a write may be refused before the zone counts as contested.
const REFUSALS: u32 = 5;
/// Pause between two looks, if no watch shows a change before.
const AGAIN: Duration = Duration::from_millis(500);

/// Everything that carrying out needs besides the intervention itself.
pub struct Intervening<'a> {
    /// The cluster.
    pub cluster: &'a dyn Cluster,
    /// The clock to go by.
    pub clock: &'a dyn Clock,
    /// What to read of it.
    pub want: Want,
    /// The group.
    pub group: &'a Group,
    /// Signals, second and first.
    pub signals: &'a mut Signals,
    /// Words for a write that has landed.
    pub wrote: fn(&Action) -> String,
}

/// Writes that could not be done, by zone.
pub type Troubles = BTreeMap<ZoneId, String>;

impl Intervening<'_> {
    /// Goes on until every zone has ended, or cannot be written, or the time is over, or a signal comes. A
    /// signal cuts a write off only the second time.
    pub async fn carry_out(
        mut self,
        intervention: &mut impl Intervention,
        first: Scene,
        limit: Duration,
        io: &mut Io,
    ) -> Troubles {
        let (mut scene, mut troubles) = (first, Troubles::new());
        let end = self.clock.now().after(limit);
        let mut refusals = 0;
        let mut observations = self.cluster.watch(&self.want);
        loop {
            // Writes are judged on what was read for the purpose, never on what a watch said.
            while let Some(action) = intervention.next(&scene, self.group, self.clock.now()) {
                match self.write(&action, &scene).await {
                    Written::Landed { .. } => {
                        intervention.landed(&action, &scene, self.group);
                        io.note(&(self.wrote)(&action));
                    }
                    Written::Refused(_) if refusals < REFUSALS => refusals += 1,
                    Written::NotSent(_) | Written::Unknown(_) if refusals < REFUSALS => {
                        refusals += 1;
                        self.clock.until(self.clock.now().after(AGAIN)).await;
                    }
                    failed => {
                        troubles.insert(action.zone().clone(), recalled::failure(&failed));
                        return troubles;
                    }
                }
                if self.signals.seen().is_some() {
                    return troubles;
                }
                if let Some(fresh) = self.read(io).await {
                    scene = fresh;
                }
            }
            let now = self.clock.now();
            if intervention.is_over() || now.mono >= end.mono {
                return troubles;
            }
            tokio::select! {
                Some(_) = observations.next() => {}
                () = self.clock.until(now.after(AGAIN)) => {}
                _ = self.signals.next() => return troubles,
            }
            if let Some(fresh) = self.read(io).await {
                scene = fresh;
            }
        }
    }

    async fn write(&mut self, action: &Action, scene: &Scene) -> Written {
        let write = match compile(action, scene, self.group) {
            Ok(write) => write,
            Err(drift) => return Written::Refused(drift),
        };
        tokio::select! {
            written = self.cluster.write(&write) => written,
            () = self.signals.second() => Written::Unknown("interrupted".to_owned()),
        }
    }

    async fn read(&self, io: &mut Io) -> Option<Scene> {
        match self.cluster.read(&self.want).await {
            Ok(scene) => Some(scene),
            Err(error) => {
                io.note(&format!("warning: {}; trying again", error.one_line()));
                None
            }
        }
    }
}
