//! `evacuate` and `restore`: which zone, and what may be risked.

use clap::Args;

use super::Which;

/// `evacuate`
#[derive(Debug, Args)]
pub struct EvacuateArgs {
    /// The zone, as GROUP/ZONE or alone
    #[arg(value_name = "ZONE")]
    pub address: String,
    /// Which Rollouts.
    #[command(flatten)]
    pub which: Which,
    /// Zone that takes the clients; default: the next that can
    #[arg(long, value_name = "ZONE")]
    pub to: Option<String>,
    /// Send them even where too few pods would answer, or GitOps owns the route
    #[arg(long)]
    pub force: bool,
}

/// `restore`
#[derive(Debug, Args)]
pub struct RestoreArgs {
    /// The zone, as GROUP/ZONE or alone
    #[arg(value_name = "ZONE")]
    pub address: String,
    /// Which Rollouts.
    #[command(flatten)]
    pub which: Which,
    /// Bring them back even where too few pods would answer, or GitOps owns the route
    #[arg(long)]
    pub force: bool,
}
