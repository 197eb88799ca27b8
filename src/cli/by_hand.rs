//! `abort`, `retry`, `undo`, `hold` and `release`: which zones, and what may be risked.

use std::time::Duration;

use clap::{Args, ValueEnum};

use super::{Which, values};

/// Zones that something is done to by hand.
#[derive(Debug, Args)]
pub struct Zones {
    /// Zones, as GROUP/ZONE or a zone alone; default: the one that it can be about
    #[arg(value_name = "ZONE")]
    pub zones: Vec<String>,
    /// Which Rollouts.
    #[command(flatten)]
    pub which: Which,
    /// All zones that it can be about, the newest first
    #[arg(long, conflicts_with = "zones")]
    pub all: bool,
}

/// How long the effect is waited for, and how it is told.
#[derive(Debug, Clone, Copy, Args)]
pub struct Telling {
    /// How long to wait for the effect
    #[arg(long, value_name = "DURATION", value_parser = values::duration, default_value = "2m")]
    pub timeout: Duration,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    pub output: ByHandOutput,
}

/// `abort`
#[derive(Debug, Args)]
pub struct AbortArgs {
    /// Which zones; default: the one in flight.
    #[command(flatten)]
    pub zones: Zones,
    /// Share of a zone's stable pods, in percent, that may take all its traffic back
    #[arg(long, value_name = "PERCENT", default_value_t = 50, value_parser = clap::value_parser!(u32).range(0..=100))]
    pub stable_floor: u32,
    /// Take the traffic back even if too few stable pods are Ready
    #[arg(long)]
    pub force_weights: bool,
    /// How the effect is awaited and told.
    #[command(flatten)]
    pub telling: Telling,
}

/// `retry` and `release`
#[derive(Debug, Args)]
pub struct ByHandArgs {
    /// Which zones; default: the one that is aborted, or held.
    #[command(flatten)]
    pub zones: Zones,
    /// How the effect is awaited and told.
    #[command(flatten)]
    pub telling: Telling,
}

/// `undo`
#[derive(Debug, Args)]
pub struct UndoArgs {
    /// Which zones; default: the one on the newest version.
    #[command(flatten)]
    pub zones: Zones,
    /// Revision to go back to, of one finished zone; default: the one before
    #[arg(long, value_name = "NUMBER")]
    pub to_revision: Option<u64>,
    /// How long each finished zone is watched after it went back
    #[arg(long, value_name = "DURATION", value_parser = values::duration, default_value = "0s")]
    pub soak: Duration,
    /// Change specs even where GitOps owns them
    #[arg(long)]
    pub force: bool,
    /// Do not ask before zones at rest go back
    #[arg(short, long)]
    pub yes: bool,
    /// How long to wait for a zone in flight to go back
    #[arg(long, value_name = "DURATION", value_parser = values::duration, default_value = "2m")]
    pub timeout: Duration,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    pub output: ByHandOutput,
}

/// `hold`
#[derive(Debug, Args)]
pub struct HoldArgs {
    /// Which zones; default: the one on its way.
    #[command(flatten)]
    pub zones: Zones,
    /// Hold them even where that freezes a HorizontalPodAutoscaler
    #[arg(long)]
    pub freeze_hpa: bool,
    /// Change specs even where GitOps owns them
    #[arg(long)]
    pub force: bool,
    /// How the effect is awaited and told.
    #[command(flatten)]
    pub telling: Telling,
}

/// Formats of verbs by hand.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum ByHandOutput {
    /// For people
    #[default]
    Text,
    /// One JSON document at the end
    Json,
}
