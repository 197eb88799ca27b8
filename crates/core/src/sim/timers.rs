//! What is going to happen, in order.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::scene::Key;

/// Something that happens at a certain time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Timer {
    /// The controller looks at a Rollout that has changed.
    Reconcile(Key),
    /// The controller looks at a Rollout again.
    Again(Key),
    /// The analysis of a Rollout has a verdict.
    Judged(Key),
    /// The scheduler looks at the pods without a node.
    Schedule,
    /// The containers of a pod were started.
    Started(Key),
    /// A container of a pod ends.
    Crashed(Key),
    /// A pod has been on a lost node for too long.
    Evicted(Key),
}

/// Timers by the time at which they are due, and by age where that is the same.
#[derive(Debug, Clone, Default)]
pub(super) struct Timers {
    due: BTreeMap<(Duration, u64), Timer>,
    set: u64,
}

impl Timers {
    pub(super) fn set(&mut self, at: Duration, timer: Timer) {
        self.set += 1;
        self.due.insert((at, self.set), timer);
    }

    pub(super) fn next(&self) -> Option<Duration> {
        self.due.first_key_value().map(|((at, _), _)| *at)
    }

    /// Takes the first timer that is due by then.
    pub(super) fn pop(&mut self, by: Duration) -> Option<(Duration, Timer)> {
        let first = self.due.first_entry().filter(|first| first.key().0 <= by)?;
        let ((at, _), timer) = first.remove_entry();
        Some((at, timer))
    }
}
