//! The outer half of the lab: starts the inner one in network, process and mount namespaces of its
//! own, passes signals on, and cleans up.

use std::ffi::OsString;
use std::fs::File;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::Signal;
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::timeout;

use crate::control::{self, Request};
use crate::paths::{self, RunDir};
use crate::wait;

/// Runs a command in a new lab to its end.
pub(crate) async fn run(run: &RunDir, command: &[OsString]) -> Result<ExitStatus> {
    // SIGKILL to this process ends `unshare`, which ends process 1 inside, which ends everything.
    let mut confined = Command::new("setpriv");
    confined.args(["--pdeathsig", "KILL", "--"]).args(inside(run)).arg("--").args(command);
    let mut child = confined.kill_on_drop(true).spawn().context("cannot run `setpriv`")?;
    passing_signals(&mut child, run).await
}

/// Starts a lab that outlives this process, and waits until it is ready.
pub(crate) async fn detach(run: &RunDir, log: File) -> Result<()> {
    let mut child = Command::new("setsid")
        .args(inside(run))
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()
        .context("cannot run `setsid`")?;
    let socket = run.socket();
    let up = wait::until("the lab to start", Duration::from_secs(10), async || {
        Ok(socket.exists().then_some(()))
    });
    tokio::select! {
        up = up => up?,
        status = child.wait() => bail!("the lab ended at once ({})", status?),
    }
    control::ask(run, &Request::AwaitReady).await
}

/// The command line that starts the inner half.
fn inside(run: &RunDir) -> Vec<OsString> {
    let mut line = vec!["unshare"];
    if !rustix::process::geteuid().is_root() {
        // In a user namespace of their own, everybody is root of the other namespaces.
        line.extend(["--user", "--map-root-user"]);
    }
    line.extend(["--net", "--pid", "--fork", "--kill-child", "--mount-proc", "--"]);
    let mut line: Vec<OsString> = line.into_iter().map(Into::into).collect();
    line.extend([paths::program().into(), "inside".into(), run.path().into()]);
    line
}

async fn passing_signals(child: &mut Child, run: &RunDir) -> Result<ExitStatus> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    // Ctrl-C reaches the command inside by itself. Here it must only not end the lab before it.
    let _interrupt = signal(SignalKind::interrupt())?;
    let mut asked = false;
    loop {
        let signal = tokio::select! {
            status = child.wait() => return Ok(status?),
            _ = terminate.recv() => Signal::TERM,
            _ = hang_up.recv() => Signal::HUP,
        };
        let request = Request::ShutDown { signal: signal.as_raw() };
        let told = timeout(Duration::from_secs(2), control::ask(run, &request)).await;
        if asked || !matches!(told, Ok(Ok(()))) {
            child.start_kill()?;
        }
        asked = true;
    }
}
