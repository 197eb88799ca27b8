//! The program: complete a word, or parse, run, print an error, exit.

use std::env;
use std::process::ExitCode;

use clap::Parser;
use kubectl_zone_rollout::cli::Cli;
use kubectl_zone_rollout::render::Io;
use kubectl_zone_rollout::{completion, run};

fn main() -> ExitCode {
    let mut io = Io::system();
    let mut words = env::args_os();
    if words.next().is_some_and(|program| completion::is_asked(&program)) {
        io.result(&completion::answer(words.collect()));
        return ExitCode::SUCCESS;
    }
    let cli = Cli::parse();
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
