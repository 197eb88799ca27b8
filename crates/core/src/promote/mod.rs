//! The promotion of a group, zone after zone, as a state machine without I/O: [`step`] takes what
//! was seen and says what to do next. It acts only on a scene that was read for that purpose, at most
//! once per reading, and only with every other zone's clearance in hand.

mod blocker;
mod clearance;
mod decide;
mod event;
mod failure;
mod goal;
mod limits;
mod lost;
mod machine;
mod outcome;
mod plan;
#[cfg(test)]
mod properties;
mod run;
mod settings;
#[cfg(test)]
mod tests;

pub use blocker::{Blocker, autoscaler_of, blockers};
pub use clearance::{Clearance, Obstacle, Standing, clear, clear_by_hand};
pub use decide::{Awaited, Question};
pub use event::{Event, SoakChange, ZoneGlimpse};
pub use goal::Goal;
pub use machine::{CheckRequest, CheckResult, CheckStage, Input, Step, StopLevel, step};
pub use outcome::{Failure, LostControl, Outcome};
pub(crate) use plan::targets;
pub use plan::{Plan, Planned, PlannedZone, ZoneWay, plan};
pub use run::{Run, ZoneRun};
pub use settings::{OnFailure, Pauses, Settings};
