//! Reporting a run while it goes on: live bars, plain lines, or a stream of events for programs. All
//! of them see the same events.

mod bars;
mod lines;
mod stream;

use zone_rollout_core::promote::{Event, Run};
use zone_rollout_core::time::Moment;

pub use bars::Bars;
pub use lines::Lines;
pub use stream::{Quiet, Stream};

/// Something that is told what happens in a run.
pub trait Reporter: Send {
    /// Something happened.
    fn event(&mut self, run: &Run, event: &Event, now: Moment);
    /// Nothing has happened for a while.
    fn heartbeat(&mut self, run: &Run, now: Moment);
    /// Time has passed.
    fn refresh(&mut self, run: &Run, now: Moment);
    /// Whether nobody reads the report any more.
    fn is_closed(&self) -> bool;
}
