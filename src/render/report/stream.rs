//! Events for programs: one JSON object a line on standard output, a version line first and the
//! outcome last.

use serde::Serialize;
use serde_json::json;
use zone_rollout_core::promote::{Event, Run};
use zone_rollout_core::time::Moment;

use super::Reporter;
use crate::render::document::{API_VERSION, event_document};
use crate::render::io::Io;
use crate::render::words::happening;

/// A stream of events.
pub struct Stream<'a> {
    io: &'a mut Io,
}

impl<'a> Stream<'a> {
    /// Begins a stream with its version line.
    pub fn begin(io: &'a mut Io, run: &Run, now: Moment) -> Self {
        let mut stream = Self { io };
        stream.line(&json!({
            "apiVersion": API_VERSION,
            "kind": "PromotionEvents",
            "time": now.wall,
            "run": run.settings().run,
            "namespace": run.group().namespace,
            "group": run.group().name,
            "version": run.goal().version(),
        }));
        stream
    }

    fn line(&mut self, event: &impl Serialize) {
        if let Ok(text) = serde_json::to_string(event) {
            self.io.result(&text);
        }
    }
}

impl Reporter for Stream<'_> {
    fn event(&mut self, run: &Run, event: &Event, now: Moment) {
        // The outcome is told once, by the verb, with the exit code.
        if !matches!(event, Event::Ended(_)) {
            let text = happening::event(run, event, now);
            self.line(&event_document(run, event, text.as_deref(), now));
        }
    }

    fn heartbeat(&mut self, run: &Run, now: Moment) {
        let awaited: Vec<String> =
            run.awaited().iter().map(|awaited| happening::awaited(run, awaited, now)).collect();
        self.line(&json!({"time": now.wall, "type": "Heartbeat", "awaited": awaited}));
    }

    fn refresh(&mut self, _: &Run, _: Moment) {}

    fn is_closed(&self) -> bool {
        self.io.is_closed()
    }
}

/// Says nothing: the result is one document at the end.
pub struct Quiet;

impl Reporter for Quiet {
    fn event(&mut self, _: &Run, _: &Event, _: Moment) {}

    fn heartbeat(&mut self, _: &Run, _: Moment) {}

    fn refresh(&mut self, _: &Run, _: Moment) {}

    fn is_closed(&self) -> bool {
        false
    }
}
