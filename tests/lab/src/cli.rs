//! What can be typed after `lab`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::paths::{self, RunDir};
use crate::terminal::say;
use crate::verb::{deploy, enter, run, test, up};
use crate::{build, inner};

/// A real control plane on one machine: etcd, Kubernetes, KWOK, Argo Rollouts, istiod, and three
/// Envoys as the clients' sidecars.
#[derive(Debug, Parser)]
#[command(name = "lab")]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Build what is missing into the cache (`ZONE_LAB_CACHE` or ~/.cache/zone-rollout-lab).
    Build,
    /// Start a lab, run a command in it, and end the lab with the command.
    ///
    /// Exits as the command does, or with 125 if the lab itself failed.
    Run {
        /// Keep the run's directory with its logs, also after success.
        #[arg(long)]
        keep: bool,
        #[arg(last = true, required = true)]
        command: Vec<OsString>,
    },
    /// Start a lab in the background, with the Rollouts test-a, test-b and test-c.
    Up,
    /// Run a command, by default a shell, in the lab that is up.
    Enter {
        #[arg(last = true)]
        command: Vec<OsString>,
    },
    /// End the lab that is up.
    Down,
    /// Build the tests and the plugin, and run the tests in a new lab.
    Test {
        /// How many tests run at the same time.
        #[arg(long, default_value_t = 6)]
        test_threads: u32,
        /// Keep the run's directory with its logs, also after success.
        #[arg(long)]
        keep: bool,
        /// Run tests whose names contain one of these, by default all.
        filters: Vec<String>,
    },
    /// Deploy Rollouts into namespace `default` of the lab around.
    #[command(hide = true)]
    Deploy,
    /// Run test programs in the lab around.
    #[command(hide = true)]
    RunTests {
        #[arg(long)]
        test_threads: u32,
        #[arg(long)]
        filter: Vec<String>,
        programs: Vec<PathBuf>,
    },
    /// The inner half of a lab.
    #[command(hide = true)]
    Inside {
        run: PathBuf,
        #[arg(last = true)]
        command: Vec<OsString>,
    },
}

/// Runs what was typed.
pub async fn main() -> ExitCode {
    paths::program();
    match dispatch(Cli::parse().verb).await {
        Ok(code) => code,
        Err(error) => {
            say(format_args!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

async fn dispatch(verb: Verb) -> Result<ExitCode> {
    match verb {
        Verb::Build => build::build_all(true).await.map(|_| ExitCode::SUCCESS),
        Verb::Run { keep, command } => run::run(&command, keep).await,
        Verb::Up => up::up().await,
        Verb::Enter { command } => enter::enter(command).await,
        Verb::Down => up::down().await,
        Verb::Test { test_threads, keep, filters } => {
            test::test(test_threads, keep, &filters).await
        }
        Verb::Deploy => deploy::deploy().await,
        Verb::RunTests { test_threads, filter, programs } => {
            test::run_all(&programs, test_threads, &filter).await
        }
        Verb::Inside { run, command } => Ok(inner::run(RunDir::at(run), command).await),
    }
}
