//! The program: parse, run, print an error, exit.

use std::process::ExitCode;

use clap::Parser;
use kubectl_zone_rollout::cli::Cli;
use kubectl_zone_rollout::render::Io;
use kubectl_zone_rollout::run;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let mut io = Io::system();
    let runtime =
        match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => {
                io.note(&format!("error: cannot start: {error}"));
                return ExitCode::FAILURE;
            }
        };
    runtime.block_on(run(cli, &mut io)).into()
}
