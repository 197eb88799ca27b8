//! `lab enter`: a command in the lab that is up.

use std::env;
use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::{Context, Result};
use tokio::process::Command;

use super::run::code;
use crate::paths::RunDir;
use crate::{control, environment};

/// Exits as the command does.
pub(crate) async fn enter(mut command: Vec<OsString>) -> Result<ExitCode> {
    let run = RunDir::up();
    if command.is_empty() {
        command.push(env::var_os("SHELL").unwrap_or_else(|| "sh".into()));
    }
    let line = line(&run).await?;
    let status = Command::new(&line[0])
        .args(&line[1..])
        .arg(format!("--wdns={}", env::current_dir()?.display()))
        .arg("--")
        .args(command)
        .envs(environment::of(&run)?)
        .status()
        .await
        .context("cannot run `nsenter`")?;
    Ok(code(status))
}

/// The command line that enters the lab's namespaces, up to the command to run there.
pub(super) async fn line(run: &RunDir) -> Result<Vec<String>> {
    let owner = control::owner(run).await?.to_string();
    let mut line = vec!["nsenter", "--target", &owner, "--net", "--pid", "--mount"];
    if !rustix::process::geteuid().is_root() {
        line.extend(["--user", "--preserve-credentials"]);
    }
    Ok(line.into_iter().map(str::to_owned).collect())
}
