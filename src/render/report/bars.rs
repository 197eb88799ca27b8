//! Live bars on a terminal: one for each zone, with the lines of what happened above them.

use std::collections::BTreeMap;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use zone_rollout_core::group::ZoneId;
use zone_rollout_core::promote::{Event, Run};
use zone_rollout_core::time::Moment;

use super::Reporter;
use crate::render::io::Terminal;
use crate::render::words::{self, happening};

/// Redraws in a second, at the most.
const REDRAWS: u8 = 5;

/// Live bars.
pub struct Bars {
    all: MultiProgress,
    zones: BTreeMap<ZoneId, ProgressBar>,
}

impl Bars {
    /// Bars for the zones of a run.
    pub fn new(run: &Run, terminal: Terminal) -> Self {
        let all = MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(REDRAWS));
        let letters = if terminal.unicode { "█▉▊▋▌▍▎▏ " } else { "=> " };
        let style = ProgressStyle::with_template("{prefix:>12} {bar:24} {wide_msg}")
            .unwrap_or_else(|_| ProgressStyle::default_bar())
            .progress_chars(letters);
        let zones = run
            .group()
            .zones
            .iter()
            .map(|zone| {
                let bar = all.add(ProgressBar::new(1).with_style(style.clone()));
                bar.set_prefix(format!("zone {}", zone.id));
                (zone.id.clone(), bar)
            })
            .collect();
        Self { all, zones }
    }

    fn say(&self, text: &str, now: Moment) {
        // A terminal that cannot be written to any more is no reason to stop.
        let _unreported = self.all.println(format!("{} {text}", words::clock(now.wall)));
    }
}

impl Reporter for Bars {
    fn event(&mut self, run: &Run, event: &Event, now: Moment) {
        if let Some(text) = happening::event(run, event, now) {
            self.say(&text, now);
        }
        if let Event::Ended(_) = event {
            for bar in self.zones.values() {
                bar.abandon();
            }
        }
    }

    fn heartbeat(&mut self, _: &Run, _: Moment) {}

    fn refresh(&mut self, run: &Run, now: Moment) {
        let Some(scene) = run.scene() else { return };
        for zone in &run.group().zones {
            let (Some(bar), Some(glimpse)) =
                (self.zones.get(&zone.id), run.glimpse(scene, zone, now))
            else {
                continue;
            };
            let (done, all) = happening::progress(run, &glimpse);
            bar.set_length(all);
            bar.set_position(done);
            bar.set_message(happening::glimpse(run, &glimpse, now));
        }
    }

    fn is_closed(&self) -> bool {
        false
    }
}
