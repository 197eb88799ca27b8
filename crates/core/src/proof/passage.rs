//! The weights an update went through, as they were seen in the VirtualService. The step index is
//! no evidence: with stable pods missing, the controller walks on through its steps and leaves the
//! traffic where it was (`checkReplicasAvailable` in `rollout/trafficrouting.go`).

use std::collections::BTreeSet;
use std::time::Duration;

use crate::scene::{Rollout, Step};
use crate::time::Moment;

/// How long the VirtualService may be behind the step index. Both are written in one reconcile, but
/// a conflict on a shared VirtualService costs the controller a retry, at most 10 s apart.
const GRACE: Duration = Duration::from_secs(12);

/// A weight that should have been in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lag {
    /// The weight, in percent.
    pub wanted: u32,
    /// The weight that is in force instead.
    pub in_force: u32,
    /// Since when.
    pub since: Moment,
}

/// The weights of one update in one zone.
#[derive(Debug, Clone, Default)]
pub struct Passage {
    hash: String,
    /// Steps before this one were carried out while nobody watched.
    from: usize,
    seen: BTreeSet<u32>,
    lag: Option<Lag>,
}

impl Passage {
    /// Takes in what is seen now. `in_force` is nothing if the Rollout steers no traffic.
    pub fn observe(&mut self, rollout: &Rollout, in_force: Option<u32>, now: Moment) {
        let index = rollout.step_index();
        if self.hash != rollout.status.current_pod_hash || index < self.from {
            *self = Self {
                hash: rollout.status.current_pod_hash.clone(),
                from: index,
                ..Self::default()
            };
        }
        let Some(in_force) = in_force else { return };
        self.seen.insert(in_force);
        self.lag = match self.behind(rollout, in_force) {
            None => None,
            Some(wanted) => Some(match self.lag {
                Some(lag) if lag.wanted == wanted => Lag { in_force, ..lag },
                _ => Lag { wanted, in_force, since: now },
            }),
        };
    }

    /// Forgets what was seen, because something may have been missed.
    pub fn interrupt(&mut self) {
        *self = Self::default();
    }

    /// The first completed weight that was never in force, or the current one if it no longer is.
    fn behind(&self, rollout: &Rollout, in_force: u32) -> Option<u32> {
        if rollout.status.abort || rollout.is_fully_promoted() {
            return None;
        }
        let completed = rollout.steps().iter().take(rollout.step_index()).enumerate();
        let weights = completed.filter_map(|(index, step)| match step {
            Step::SetWeight(weight) => Some((index, *weight)),
            _ => None,
        });
        let weights: Vec<(usize, u32)> = weights.collect();
        let missed = weights
            .iter()
            .find(|(index, weight)| *index >= self.from && !self.seen.contains(weight))
            .map(|(_, weight)| *weight);
        // While a `setWeight` is being carried out, the one before it and its own are both right.
        let carried_out = matches!(rollout.current_step(), None | Some(Step::SetWeight(_)));
        let current = weights.last().map(|(_, weight)| *weight);
        missed.or_else(|| current.filter(|weight| !carried_out && *weight != in_force))
    }

    /// The lag, once it has lasted for longer than the controller may need.
    pub fn unproven(&self, now: Moment) -> Option<Lag> {
        self.lag.filter(|lag| now.mono.saturating_sub(lag.since.mono) >= GRACE)
    }

    /// When [`Passage::unproven`] will have to be asked again if nothing changes.
    pub fn wake(&self) -> Option<Moment> {
        self.lag.map(|lag| lag.since.after(GRACE))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::now;

    fn rollout(index: usize) -> Rollout {
        serde_json::from_value(json!({
            "spec": {"strategy": {"canary": {"steps": [
                {"pause": {}}, {"setWeight": 10}, {"pause": {"duration": "20s"}},
                {"setWeight": 20}, {"pause": {"duration": "20s"}},
                {"setWeight": 50}, {"pause": {"duration": "20s"}},
            ]}}},
            "status": {"currentPodHash": "v2", "stableRS": "v1", "currentStepIndex": index},
        }))
        .unwrap()
    }

    /// Walks through (second, step index, weight in force) and tells when it is unproven.
    fn walk(seen: &[(u64, usize, u32)]) -> Vec<Option<(u32, u32)>> {
        let mut passage = Passage::default();
        seen.iter()
            .map(|(second, index, in_force)| {
                let at = now().after(Duration::from_secs(*second));
                passage.observe(&rollout(*index), Some(*in_force), at);
                passage.unproven(at).map(|lag| (lag.wanted, lag.in_force))
            })
            .collect()
    }

    #[test]
    fn weights_that_follow_the_steps_are_proven() {
        let calm =
            [(0, 0, 0), (1, 1, 0), (2, 1, 10), (2, 2, 10), (22, 3, 10), (23, 3, 20), (23, 4, 20)];
        assert!(walk(&calm).iter().all(Option::is_none));
    }

    #[test]
    fn a_late_weight_is_forgiven_and_a_missing_one_is_not() {
        assert_eq!(walk(&[(0, 0, 0), (1, 2, 0), (10, 2, 10), (40, 2, 10)]), [None; 4]);
        let stuck = [(0, 0, 0), (2, 2, 10), (22, 4, 10), (30, 4, 10), (34, 4, 10)];
        assert_eq!(walk(&stuck), [None, None, None, None, Some((20, 10))]);
    }

    #[test]
    fn a_weight_that_was_skipped_stays_unproven_after_the_next_one_is_in_force() {
        let skipped = [(0, 0, 0), (2, 2, 10), (22, 4, 10), (23, 6, 50), (40, 6, 50)];
        assert_eq!(walk(&skipped).last().unwrap(), &Some((20, 50)));
    }

    #[test]
    fn steps_before_the_first_look_are_not_asked_for() {
        assert_eq!(walk(&[(0, 4, 20), (60, 4, 20)]), [None, None]);
    }

    #[test]
    fn a_weight_that_is_taken_away_again_counts() {
        let reverted = [(0, 0, 0), (2, 2, 10), (5, 2, 0), (20, 2, 0)];
        assert_eq!(walk(&reverted).last().unwrap(), &Some((10, 0)));
    }
}
