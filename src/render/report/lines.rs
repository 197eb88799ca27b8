//! Plain lines on standard error: one for each change, and a heartbeat that says what is awaited.

use zone_rollout_core::promote::{Event, Run};
use zone_rollout_core::scene::Scene;
use zone_rollout_core::time::Moment;

use super::Reporter;
use crate::render::io::Io;
use crate::render::words::{self, happening};

/// Plain lines.
pub struct Lines<'a> {
    io: &'a mut Io,
}

impl<'a> Lines<'a> {
    /// Lines on this standard error.
    pub fn new(io: &'a mut Io) -> Self {
        Self { io }
    }

    fn say(&mut self, text: &str, now: Moment) {
        self.io.note(&format!("{} {text}", words::clock(now.wall)));
    }
}

impl Reporter for Lines<'_> {
    fn event(&mut self, run: &Run, event: &Event, now: Moment) {
        if let Some(text) = happening::event(run, event, now) {
            self.say(&text, now);
        }
    }

    fn heartbeat(&mut self, run: &Run, now: Moment) {
        if let Some(missing) = run.scene().and_then(Scene::out_of_sight) {
            self.say(&happening::sight(Some(&missing)), now);
        }
        for awaited in run.awaited() {
            self.say(&happening::awaited(run, awaited, now), now);
        }
    }

    fn refresh(&mut self, _: &Run, _: Moment) {}

    fn is_closed(&self) -> bool {
        self.io.is_closed()
    }
}
