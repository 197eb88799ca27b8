//! `kubectl zone-rollout`: releases a service zone by zone. This crate is the plugin around the pure
//! domain in `zone-rollout-core`: what was typed, the cluster, the driver and the output.

pub mod cli;
pub mod cluster;
mod command;
pub mod completion;
pub mod driver;
pub mod error;
pub mod exit;
pub mod files;
pub mod render;

use cli::Cli;
use exit::Exit;
use render::Io;

/// Runs one invocation and prints its error, if there is one.
pub async fn run(cli: Cli, io: &mut Io) -> Exit {
    match command::run(cli, io).await {
        Ok(exit) => exit,
        Err(error) => {
            io.note(&error.to_string());
            error.exit()
        }
    }
}
