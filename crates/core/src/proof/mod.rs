//! Proof that a zone holds: the check itself, the soak that repeats it for a while, and the passage
//! through the weights that leads there.

mod passage;
mod route;
mod soak;
mod verify;

pub use passage::{Lag, Passage};
pub use soak::{Soak, Verdict};
pub use verify::{Proof, Target, Unmet, verify};

/// What a run has seen of a zone with its own eyes.
#[derive(Debug, Clone, Default)]
pub struct Witness {
    /// The soak, once the zone is promoted.
    pub soak: Option<Soak>,
    /// The weights that were seen in force.
    pub passage: Passage,
}
