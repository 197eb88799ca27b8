//! The soak: for how long a promoted zone has been verified without a break. Time in which nobody
//! looked, or in which pods were missing for reasons outside the release, does not count; a pod that
//! fails starts it again, also if it failed while nobody looked.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use super::Unmet;
use crate::scene::Pod;
use crate::time::Moment;

/// Two looks that lie further apart than this leave a gap that does not count.
const LONGEST_GAP: Duration = Duration::from_secs(10);

/// What one look at a zone means for its soak.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// All is well: the clock runs.
    Counting,
    /// Something outside the release is missing: the clock stands.
    Halted(Unmet),
    /// The release itself failed a check: the clock starts again.
    Broken(Unmet),
}

/// A zone's soak on one template.
#[derive(Debug, Clone)]
pub struct Soak {
    hash: String,
    required: Duration,
    done: Duration,
    last: Option<(Moment, Verdict)>,
    halted_since: Option<Moment>,
    /// What was seen of the pods that have been Ready, by uid.
    pods: BTreeMap<String, Known>,
    begun: bool,
    breaks: u32,
}

/// What a pod looked like when it was Ready.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Known {
    restarts: u32,
    ready_since: Option<Timestamp>,
}

impl Soak {
    /// Starts a soak of the zone's stable template.
    pub fn new(hash: &str, required: Duration) -> Self {
        Self {
            hash: hash.to_owned(),
            required,
            done: Duration::ZERO,
            last: None,
            halted_since: None,
            pods: BTreeMap::new(),
            begun: false,
            breaks: 0,
        }
    }

    /// The template hash it is about.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// How long it has to last.
    pub fn required(&self) -> Duration {
        self.required
    }

    /// How long it has lasted.
    pub fn done(&self) -> Duration {
        self.done
    }

    /// How often it had to start again.
    pub fn breaks(&self) -> u32 {
        self.breaks
    }

    /// True once it has lasted long enough and the last look found nothing wrong.
    pub fn is_over(&self) -> bool {
        self.done >= self.required && matches!(self.last, Some((_, Verdict::Counting)))
    }

    /// True once a look has found nothing wrong. Before that, the route is still following the
    /// promotion.
    pub fn has_begun(&self) -> bool {
        self.begun
    }

    /// What the last look found.
    pub fn verdict(&self) -> Option<&Verdict> {
        self.last.as_ref().map(|(_, verdict)| verdict)
    }

    /// Since when the clock has been standing, if it is.
    pub fn halted_since(&self) -> Option<Moment> {
        self.halted_since
    }

    /// The moment at which it will be over if nothing happens.
    pub fn wake(&self) -> Option<Moment> {
        match &self.last {
            Some((at, Verdict::Counting)) => {
                Some(at.after(self.required.saturating_sub(self.done)))
            }
            _ => None,
        }
    }

    /// Takes in one look.
    ///
    /// The time since the last look counts only if both looks found nothing wrong and it was short
    /// enough for nothing to have gone by unseen.
    pub fn observe(&mut self, verdict: Verdict, now: Moment) {
        let gap = self.last.as_ref().map(|(at, _)| now.mono.saturating_sub(at.mono));
        let was_counting = matches!(self.last, Some((_, Verdict::Counting)));
        match &verdict {
            Verdict::Counting => {
                self.begun = true;
                if let Some(gap) = gap.filter(|gap| was_counting && *gap <= LONGEST_GAP) {
                    self.done = (self.done + gap).min(self.required);
                }
                self.halted_since = None;
            }
            Verdict::Halted(_) => {
                self.halted_since.get_or_insert(now);
            }
            Verdict::Broken(_) => {
                self.breaks += u32::from(was_counting);
                self.done = Duration::ZERO;
                self.halted_since.get_or_insert(now);
            }
        }
        self.last = Some((now, verdict));
    }

    /// Takes back what was counted in the last `span`: changes may have been missed in it.
    pub fn unwatched(&mut self, span: Duration) {
        self.done = self.done.saturating_sub(span);
    }

    /// What befell one of these pods since it was seen Ready, if anything did: a restart, or a moment
    /// in which it was not Ready, which its condition remembers.
    pub(crate) fn relapse(&self, pods: &[&Pod]) -> Option<Unmet> {
        pods.iter().find_map(|pod| {
            let known = self.pods.get(&pod.meta.uid)?;
            let key = pod.meta.key();
            if pod.restarts() > known.restarts {
                return Some(Unmet::PodRestarted { pod: key, restarts: pod.restarts() });
            }
            let wavered = pod.is_ready() && pod.ready_since() != known.ready_since;
            wavered.then_some(Unmet::PodWavered { pod: key })
        })
    }

    /// Remembers the pods that are Ready. Those that are not, because their node is lost, are
    /// forgotten: they may come back.
    pub(super) fn remember(&mut self, pods: &[&Pod]) {
        for pod in pods {
            let uid = &pod.meta.uid;
            if pod.is_ready() {
                let known = Known { restarts: pod.restarts(), ready_since: pod.ready_since() };
                self.pods.insert(uid.clone(), known);
            } else {
                self.pods.remove(uid);
            }
        }
    }

    /// True if this pod was Ready at the last look.
    pub(super) fn knows(&self, pod: &Pod) -> bool {
        self.pods.contains_key(&pod.meta.uid)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::now;

    #[test]
    fn only_an_unbroken_and_watched_time_counts() {
        let mut soak = Soak::new("v2", Duration::from_secs(20));
        let missing = || Verdict::Halted(Unmet::NoPods);
        let broken = || Verdict::Broken(Unmet::Weight { in_force: 10 });
        let looks = [
            (0, Verdict::Counting, 0),
            (5, Verdict::Counting, 5),
            (8, missing(), 5),
            (12, Verdict::Counting, 5),
            (17, Verdict::Counting, 10),
            (40, Verdict::Counting, 10),
            (45, Verdict::Counting, 15),
            (46, broken(), 0),
            (47, Verdict::Counting, 0),
            (50, Verdict::Counting, 3),
        ];
        for (second, verdict, done) in looks {
            soak.observe(verdict, now().after(Duration::from_secs(second)));
            assert_eq!(soak.done(), Duration::from_secs(done), "at {second} s");
        }
        assert_eq!(soak.breaks(), 1);
    }

    proptest! {
        #[test]
        fn it_is_never_over_early(looks in prop::collection::vec((0..15_u64, 0..4_u8), 1..60)) {
            let required = Duration::from_secs(30);
            let mut soak = Soak::new("v2", required);
            let (mut at, mut good, mut was_good) = (now(), Duration::ZERO, false);
            for (seconds, kind) in looks {
                at = at.after(Duration::from_secs(seconds));
                let verdict = match kind {
                    0 => Verdict::Halted(Unmet::NoPods),
                    1 => Verdict::Broken(Unmet::NotPromoted),
                    _ => Verdict::Counting,
                };
                let counts = verdict == Verdict::Counting;
                if counts && was_good && seconds <= LONGEST_GAP.as_secs() {
                    good += Duration::from_secs(seconds);
                }
                if kind == 1 {
                    good = Duration::ZERO;
                }
                was_good = counts;
                soak.observe(verdict, at);
                prop_assert_eq!(soak.is_over(), counts && good >= required);
            }
        }
    }
}
