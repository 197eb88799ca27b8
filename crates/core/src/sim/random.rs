//! Chance that is the same for the same seed.

use std::time::Duration;

/// A generator of numbers (`SplitMix64`).
#[derive(Debug, Clone)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A span between these two, in milliseconds; the upper one is left out.
    pub(super) fn span(&mut self, from: u64, below: u64) -> Duration {
        Duration::from_millis(from + self.next() % (below - from))
    }
}
