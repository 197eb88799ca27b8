//! One zone of a group: the facts about it, its state, and what ails its pods.

mod facts;
mod forecast;
mod outage;
mod state;
mod trouble;

pub(crate) use facts::template_of;
pub use facts::{Workload, ZoneFacts};
pub use forecast::{Waypoint, forecast};
pub use outage::{Outage, outage};
pub(crate) use state::is_ours;
pub use state::{HOLD_ANNOTATION, ZoneState, target_template, zone_state};
pub use trouble::{Trouble, TroubleKind, trouble, worst_trouble};
