//! Plain lines on standard error: one for each change, and a heartbeat that says what is awaited.

use zone_rollout_core::promote::{Event, Run};
use zone_rollout_core::scene::Scene;

use super::Reporter;
use crate::cluster::clock;
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

    fn say(&mut self, text: &str) {
        self.io.note(&format!("{} {text}", words::clock(clock::now().wall)));
    }
}

impl Reporter for Lines<'_> {
    fn event(&mut self, run: &Run, event: &Event) {
        if let Some(text) = happening::event(run, event) {
            self.say(&text);
        }
    }

    fn heartbeat(&mut self, run: &Run) {
        if let Some(missing) = run.scene().and_then(Scene::out_of_sight) {
            self.say(&happening::sight(Some(&missing)));
        }
        for awaited in run.awaited() {
            self.say(&happening::awaited(run, awaited, clock::now()));
        }
    }

    fn refresh(&mut self, _: &Run) {}

    fn is_closed(&self) -> bool {
        self.io.is_closed()
    }
}
