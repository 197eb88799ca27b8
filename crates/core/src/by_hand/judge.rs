//! What comes next in one zone, from what is seen of it.

use super::{ByHand, End, Refusal};
use crate::gitops;
use crate::group::{Group, ZoneId};
use crate::promote::{Clearance, autoscaler_of, clear_by_hand};
use crate::scene::Scene;
use crate::template::as_written;
use crate::time::Moment;
use crate::write::Action;
use crate::zone::{Workload, ZoneFacts, ZoneState, is_ours, zone_state};

/// What is looked at.
pub(super) struct View<'a> {
    pub(super) what: &'a ByHand,
    pub(super) force: bool,
    pub(super) scene: &'a Scene,
    pub(super) group: &'a Group,
    pub(super) now: Moment,
}

/// What comes next.
pub(super) enum Ahead {
    Write(Action),
    Wait,
    Over(End),
}

/// One zone of the view.
struct Zone<'a> {
    view: &'a View<'a>,
    id: &'a ZoneId,
    facts: ZoneFacts<'a>,
    state: ZoneState,
    /// Whether it was written already.
    wrote: bool,
}

/// Judges what comes next in a zone. `wrote` tells whether it was written here already.
pub(super) fn judge(view: &View<'_>, id: &ZoneId, wrote: bool) -> Ahead {
    let missing = || Ahead::Over(End::Refused(Refusal::State(ZoneState::Missing)));
    let Some(zone) = view.group.zone(id) else { return missing() };
    let state = zone_state(view.scene, view.group, zone, None, view.now);
    let Some(facts) = ZoneFacts::gather(view.scene, zone) else {
        return Ahead::Over(End::Refused(Refusal::State(state)));
    };
    if matches!(state, ZoneState::Unobserved) {
        return Ahead::Wait;
    }
    let zone = Zone { view, id, facts, state, wrote };
    match view.what {
        ByHand::Retry => zone.retry(),
        ByHand::RollBack => zone.roll_back(),
        ByHand::Hold { run, freeze_autoscaler } => zone.hold(run, *freeze_autoscaler),
        ByHand::Release => zone.release(),
    }
}

impl Zone<'_> {
    fn retry(self) -> Ahead {
        match self.state {
            ZoneState::Aborted { .. } => {
                let moves = self.facts.rollout.gate().is_none();
                self.cleared(moves, |clearance| Action::Retry { clearance })
            }
            ZoneState::Retrying => Ahead::Wait,
            ZoneState::Stepping { step } if self.facts.rollout.gate() == Some(step) => Ahead::Wait,
            _ => self.ended(),
        }
    }

    fn roll_back(self) -> Ahead {
        if self.facts.rollout.is_fully_promoted() {
            let remains = self.facts.in_force.as_ref().is_ok_and(|in_force| in_force.highest > 0);
            return if self.wrote && remains { Ahead::Wait } else { self.ended() };
        }
        let stable = self.facts.stable.as_ref().and_then(Workload::template);
        let Some(stable) = stable else { return refused(Refusal::NoStable) };
        if as_written(stable, self.facts.rollout) == self.facts.rollout.spec.template {
            return Ahead::Wait;
        }
        if let Some(owner) = self.owner() {
            return refused(Refusal::Owned(owner));
        }
        Ahead::Write(Action::RollBack { zone: self.id.clone() })
    }

    fn hold(self, run: &str, freeze_autoscaler: bool) -> Ahead {
        let rollout = self.facts.rollout;
        if rollout.spec.paused || matches!(self.state, ZoneState::Aborted { .. }) {
            return self.ended();
        }
        if let Some(autoscaler) = autoscaler_of(self.view.scene, rollout)
            && !freeze_autoscaler
        {
            return refused(Refusal::Freezes(autoscaler));
        }
        if let Some(owner) = self.owner() {
            return refused(Refusal::Owned(owner));
        }
        Ahead::Write(Action::Hold { zone: self.id.clone(), run: run.to_owned() })
    }

    fn release(self) -> Ahead {
        let rollout = self.facts.rollout;
        if !rollout.spec.paused {
            return self.ended();
        }
        if !is_ours(rollout) {
            return refused(Refusal::NotOurs);
        }
        let moves = self.facts.has_started() && !rollout.status.abort;
        self.cleared(moves, |clearance| Action::Release { clearance })
    }

    /// Nothing is left to write.
    fn ended(self) -> Ahead {
        Ahead::Over(if self.wrote { End::Done(self.state) } else { End::Already(self.state) })
    }

    /// Does what makes the zone move, or not, if the other zones allow it.
    fn cleared(self, moves: bool, action: impl FnOnce(Clearance) -> Action) -> Ahead {
        let view = self.view;
        match clear_by_hand(view.scene, view.group, self.id, moves, view.now) {
            Ok(clearance) => Ahead::Write(action(clearance)),
            Err(obstacles) => refused(Refusal::Others(obstacles)),
        }
    }

    /// Who would put the spec back, unless that was accepted.
    fn owner(&self) -> Option<gitops::GitOpsOwner> {
        gitops::owner(&self.facts.rollout.meta).filter(|_| !self.view.force)
    }
}

fn refused(refusal: Refusal) -> Ahead {
    Ahead::Over(End::Refused(refusal))
}
