//! How a lab ends: its command ends, a component dies, or somebody asks it to.

use std::ffi::OsString;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::supervisor::Death;
use crate::environment;
use crate::paths::RunDir;

/// How long a command may take to end after it was asked to.
const PATIENCE: Duration = Duration::from_secs(10);
/// Lines of a dead component's log that are worth showing.
const LOG_TAIL: usize = 15;

/// Why the lab is to end.
#[derive(Debug)]
pub(super) enum End {
    Died(Death, RunDir),
    ShutDown(Signal),
}

/// Waits for reasons to end.
pub(super) struct Ends {
    run: RunDir,
    deaths: mpsc::UnboundedReceiver<Death>,
    requests: mpsc::UnboundedReceiver<Signal>,
}

impl Ends {
    pub(super) fn new(
        run: RunDir,
        deaths: mpsc::UnboundedReceiver<Death>,
        requests: mpsc::UnboundedReceiver<Signal>,
    ) -> Self {
        Self { run, deaths, requests }
    }

    /// The next reason to end.
    pub(super) async fn next(&mut self) -> End {
        tokio::select! {
            Some(death) = self.deaths.recv() => End::Died(death, self.run.clone()),
            Some(signal) = self.requests.recv() => End::ShutDown(signal),
        }
    }

    /// Runs the command to its end, or to the lab's.
    pub(super) async fn during(&mut self, command: &[OsString]) -> Result<u8> {
        let mut child = spawn(&self.run, command)?;
        tokio::select! {
            status = child.wait() => Ok(code(status?)),
            end = self.next() => match end {
                End::ShutDown(signal) => {
                    stop(&mut child, signal).await?;
                    end.code()
                }
                End::Died(..) => end.code(),
            },
        }
    }
}

impl End {
    /// The exit code, or the error that ended the lab.
    pub(super) fn code(self) -> Result<u8> {
        match self {
            End::ShutDown(signal) => Ok(signal_code(signal.as_raw())),
            End::Died(death, run) => Err(anyhow!(
                "`{}` ended by itself ({}); the end of its log:\n{}",
                death.component,
                death.status.map_or_else(|error| error.to_string(), |status| status.to_string()),
                tail(&run, death.component),
            )),
        }
    }
}

fn spawn(run: &RunDir, command: &[OsString]) -> Result<Child> {
    let (program, arguments) = command.split_first().context("no command to run")?;
    Command::new(program)
        .args(arguments)
        .envs(environment::of(run)?)
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("cannot run {}", program.display()))
}

async fn stop(child: &mut Child, signal: Signal) -> Result<()> {
    let pid = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
    if let Some(pid) = pid {
        kill_process(pid, signal)?;
        // The namespace goes in any case, and the command with it.
        let _ = timeout(PATIENCE, child.wait()).await;
    }
    Ok(())
}

fn code(status: ExitStatus) -> u8 {
    match status.code() {
        Some(code) => u8::try_from(code).unwrap_or(u8::MAX),
        None => signal_code(status.signal().unwrap_or_default()),
    }
}

/// As shells report it.
fn signal_code(signal: i32) -> u8 {
    u8::try_from(128 + signal).unwrap_or(u8::MAX)
}

fn tail(run: &RunDir, component: &str) -> String {
    let log = fs::read(run.log(component)).unwrap_or_default();
    let log = String::from_utf8_lossy(&log);
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(LOG_TAIL)..].join("\n")
}
