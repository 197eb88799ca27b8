//! What people do to single zones by hand: retry, roll back, hold, release. One write a zone, judged from
//! what is seen, and over once its effect is seen. An abort takes more than one write
//! ([`crate::takeback`]), but is carried out in the same way: as an [`Intervention`].

mod judge;
mod revision;
#[cfg(test)]
mod tests;

use std::fmt;
use std::time::Duration;

use crate::gitops::GitOpsOwner;
use crate::group::{Group, ZoneId};
use crate::promote::Obstacle;
use crate::scene::Scene;
use crate::time::Moment;
use crate::write::Action;
use crate::zone::{ZoneFacts, ZoneState};

pub use revision::{Earlier, earlier, is_of_release};

use judge::{Ahead, View, judge};

/// How long the controller may take to notice a change before the Rollout is touched.
pub(crate) const NOTICE_NEEDS: Duration = Duration::from_secs(2);

/// Something done to several zones, one write at a time, each judged from what is seen.
pub trait Intervention {
    /// How it ends for a zone.
    type End;

    /// What to write next, judged from this scene; nothing if everything there is to do is to wait, or
    /// all zones have ended.
    fn next(&mut self, scene: &Scene, group: &Group, now: Moment) -> Option<Action>;

    /// Remembers that a write for a zone has landed.
    fn landed(&mut self, action: &Action, scene: &Scene, group: &Group);

    /// How each zone ended; nothing for one that has not.
    fn ends(&self) -> impl Iterator<Item = (&ZoneId, Option<&Self::End>)>;

    /// True once every zone has ended.
    fn is_over(&self) -> bool {
        self.ends().all(|(_, end)| end.is_some())
    }
}

/// What is done by hand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ByHand {
    /// Start an update again that was given up.
    Retry,
    /// Take an update that is in flight back, by asking for the stable template again.
    RollBack,
    /// Hold the zone where it is.
    Hold {
        /// Who holds it, for the annotation.
        run: String,
        /// Hold it although that freezes an autoscaler.
        freeze_autoscaler: bool,
    },
    /// Release a hold of this tool.
    Release,
}

/// One thing done by hand to several zones, in this order.
#[derive(Debug, Clone)]
pub struct Hands {
    what: ByHand,
    /// Whether specs may be changed that GitOps owns.
    force: bool,
    zones: Vec<(ZoneId, Progress)>,
}

/// Where it stands in one zone.
#[derive(Debug, Clone, Default)]
struct Progress {
    wrote: bool,
    unheard: Option<Moment>,
    end: Option<End>,
}

/// How it ended in one zone.
#[derive(Debug, Clone, PartialEq)]
pub enum End {
    /// It was written, and its effect was seen: what the zone does now.
    Done(ZoneState),
    /// There was nothing to write: what the zone does.
    Already(ZoneState),
    /// It may not be done.
    Refused(Refusal),
}

/// Why something may not be done by hand.
#[derive(Debug, Clone, PartialEq)]
pub enum Refusal {
    /// The zone is in a state in which it makes no sense.
    State(ZoneState),
    /// The zone would move while these are not well.
    Others(Vec<Obstacle>),
    /// Somebody else set `spec.paused`.
    NotOurs,
    /// It would freeze this autoscaler.
    Freezes(String),
    /// GitOps owns the spec.
    Owned(GitOpsOwner),
    /// There is no stable version to go back to, or it cannot be seen.
    NoStable,
}

impl Hands {
    /// To do this to these zones. `force` allows to change specs that GitOps owns.
    pub fn new(what: ByHand, zones: Vec<ZoneId>, force: bool) -> Self {
        let zones = zones.into_iter().map(|zone| (zone, Progress::default())).collect();
        Self { what, force, zones }
    }

    /// What is done.
    pub fn what(&self) -> &ByHand {
        &self.what
    }
}

impl Intervention for Hands {
    type End = End;

    fn next(&mut self, scene: &Scene, group: &Group, now: Moment) -> Option<Action> {
        let view = View { what: &self.what, force: self.force, scene, group, now };
        self.zones
            .iter_mut()
            .filter(|(_, progress)| progress.end.is_none())
            .find_map(|(id, progress)| progress.next(&view, id))
    }

    fn landed(&mut self, action: &Action, _: &Scene, _: &Group) {
        let mut zones = self.zones.iter_mut();
        if let Some((_, progress)) = zones.find(|(id, _)| id == action.zone()) {
            progress.wrote |= !matches!(action, Action::Nudge { .. });
        }
    }

    fn ends(&self) -> impl Iterator<Item = (&ZoneId, Option<&End>)> {
        self.zones.iter().map(|(id, progress)| (id, progress.end.as_ref()))
    }
}

impl Progress {
    fn next(&mut self, view: &View<'_>, id: &ZoneId) -> Option<Action> {
        match judge(view, id, self.wrote) {
            Ahead::Write(action) => Some(action),
            Ahead::Wait => self.touch(view, id),
            Ahead::Over(end) => {
                self.end = Some(end);
                None
            }
        }
    }

    /// A controller that leaves a change unnoticed is touched, and again if it still does.
    fn touch(&mut self, view: &View<'_>, id: &ZoneId) -> Option<Action> {
        let zone = view.group.zone(id)?;
        let facts = ZoneFacts::gather(view.scene, zone)?;
        if !facts.awaits_controller() {
            self.unheard = None;
            return None;
        }
        let since = *self.unheard.get_or_insert(view.now);
        let late = view.now.mono.saturating_sub(since.mono) >= NOTICE_NEEDS;
        late.then(|| {
            self.unheard = Some(view.now);
            Action::Nudge { zone: id.clone() }
        })
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::State(state) => write!(f, "it is in state {}", state.name()),
            Self::Others(obstacles) => {
                f.write_str("it would move while another zone does, or is not well: ")?;
                let all: Vec<String> = obstacles.iter().map(ToString::to_string).collect();
                f.write_str(&all.join("; "))
            }
            Self::NotOurs => f.write_str("it is paused by spec.paused, not by this tool"),
            Self::Freezes(autoscaler) => write!(
                f,
                "HorizontalPodAutoscaler `{autoscaler}` scales it, and a hold would freeze it"
            ),
            Self::Owned(owner) => {
                write!(f, "its spec is owned by {owner}, which would put it back")
            }
            Self::NoStable => f.write_str("there is no stable version that it could go back to"),
        }
    }
}
