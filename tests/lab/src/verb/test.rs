//! `lab test`: builds the tests first, since nothing can be downloaded inside, then runs them.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tokio::process::Command;

use super::run;
use crate::paths;
use crate::terminal::say;

/// Tests in the target of this name start labs themselves and run outside of one.
const OUTSIDE: &str = "outside";

/// Runs the tests outside of a lab first, then all others in one lab.
pub(crate) async fn test(threads: u32, keep: bool, filters: &[String]) -> Result<ExitCode> {
    let start = Instant::now();
    build_plugin().await?;
    let tests = build_tests().await?;
    say(format_args!("tests are built after {:.1} s", start.elapsed().as_secs_f32()));
    let (outside, inside): (Vec<_>, Vec<_>) =
        tests.into_iter().partition(|test| test.name == OUTSIDE);
    let outside: Vec<PathBuf> = outside.into_iter().map(|test| test.program).collect();
    let first = run_all(&outside, 1, filters).await?;

    let mut command: Vec<OsString> = vec![paths::program().into(), "run-tests".into()];
    command.push(format!("--test-threads={threads}").into());
    command.extend(filters.iter().map(|filter| format!("--filter={filter}").into()));
    command.extend(inside.into_iter().map(|test| test.program.into()));
    let second = run::run(&command, keep).await?;
    say(format_args!("the tests took {:.1} s in all", start.elapsed().as_secs_f32()));
    Ok(if first == ExitCode::SUCCESS { second } else { first })
}

/// Runs test programs one after another; fails if any of them does.
pub(crate) async fn run_all(
    programs: &[PathBuf],
    threads: u32,
    filters: &[String],
) -> Result<ExitCode> {
    let mut failed = false;
    for program in programs {
        let status = Command::new(program)
            .arg(format!("--test-threads={threads}"))
            .args(filters)
            .current_dir(paths::sources())
            .status()
            .await
            .with_context(|| format!("cannot run {}", program.display()))?;
        failed |= !status.success();
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

struct Test {
    name: String,
    program: PathBuf,
}

/// The tests of this package, as Cargo reports them, one JSON line for each thing it made.
async fn build_tests() -> Result<Vec<Test>> {
    let mut build = cargo();
    build.args(["test", "--package=zone-lab", "--no-run", "--message-format=json"]);
    let output = build.stdout(Stdio::piped()).spawn()?.wait_with_output().await?;
    ensure!(output.status.success(), "the tests do not build");
    let lines = String::from_utf8(output.stdout)?;
    Ok(lines.lines().filter_map(|line| test_program(&serde_json::from_str(line).ok()?)).collect())
}

fn test_program(artifact: &Value) -> Option<Test> {
    let is_test = artifact["profile"]["test"] == true;
    let program = artifact["executable"].as_str().filter(|_| is_test)?;
    let name = artifact["target"]["name"].as_str()?;
    Some(Test { name: name.to_owned(), program: program.into() })
}

async fn build_plugin() -> Result<()> {
    let plugin = ["build", "--package=kubectl-zone-rollout", "--bin=kubectl-zone_rollout"];
    let status = cargo().args(plugin).status().await.context("cannot run cargo")?;
    ensure!(status.success(), "the plugin does not build");
    Ok(())
}

fn cargo() -> Command {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // Some build scripts would run again for what `cargo run` says about this program.
    let own = env::vars_os().map(|(name, _)| name).filter(|name| {
        let name = name.to_string_lossy();
        name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
    });
    for name in own {
        cargo.env_remove(name);
    }
    cargo.current_dir(workspace());
    cargo
}

fn workspace() -> &'static Path {
    paths::sources().ancestors().nth(2).expect("this package is in tests/lab of a workspace")
}
