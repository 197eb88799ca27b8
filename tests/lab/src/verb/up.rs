//! `lab up` and `lab down`: a lab that stays.

use std::fs::{self, File};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, anyhow};
use rustix::process::Signal;
use tokio::process::Command;

use super::enter;
use crate::control::Request;
use crate::paths::{self, RunDir};
use crate::terminal::{print, say};
use crate::{build, command, confine, control, environment, rundir, wait};

/// Starts a lab with Rollouts in it and tells how to get in.
pub(crate) async fn up() -> Result<ExitCode> {
    let built = build::build_all(false).await?;
    rundir::sweep();
    let run = RunDir::create_up()?;
    run.link(&built)?;
    fs::create_dir_all(run.logs())?;
    let log = run.log("lab");
    if let Err(error) = start(&run, &log).await {
        let log = fs::read_to_string(&log).unwrap_or_default();
        // Nothing is left running where only the Rollouts did not get Healthy.
        let _ = shut_down(&run).await;
        run.end(true)?;
        return Err(anyhow!("{error:#}\n{log}"));
    }
    let line = enter::line(&run).await?.join(" ");
    say("the lab is up; `lab enter -- COMMAND` runs a command in it, `lab down` ends it");
    say(format_args!("without `lab`: {line} COMMAND"));
    print(format_args!("KUBECONFIG={}", run.kubeconfig().display()));
    Ok(ExitCode::SUCCESS)
}

async fn start(run: &RunDir, log: &Path) -> Result<()> {
    confine::detach(run, File::create(log)?).await?;
    let line = enter::line(run).await?;
    let deploy = [paths::program().display().to_string(), "deploy".to_owned()];
    let mut enter = Command::new(&line[0]);
    enter.args(&line[1..]).arg("--").args(deploy).envs(environment::of(run)?);
    command::output(&mut enter).await?;
    Ok(())
}

/// Ends the lab and removes everything that it wrote.
pub(crate) async fn down() -> Result<ExitCode> {
    let run = RunDir::up();
    shut_down(&run).await?;
    run.end(false)?;
    Ok(ExitCode::SUCCESS)
}

async fn shut_down(run: &RunDir) -> Result<()> {
    let owner = control::owner(run).await?;
    control::ask(run, &Request::ShutDown { signal: Signal::TERM.as_raw() }).await?;
    // It is there until the kernel has ended every process in its namespace.
    let process = format!("/proc/{owner}");
    wait::until("the lab to end", Duration::from_secs(30), async || {
        Ok((!fs::exists(&process)?).then_some(()))
    })
    .await
}
