//! The inner half of the lab: process 1 of its own namespaces. It owns every other process in them;
//! when it ends, for whatever reason, the kernel ends them all.

mod end;
mod namespace;
pub(crate) mod socket;
pub(crate) mod supervisor;

use std::ffi::OsString;
use std::process::ExitCode;
use std::rc::Rc;

use anyhow::Result;
use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, watch};
use tokio::task::LocalSet;

use crate::boot;
use crate::paths::RunDir;
use crate::terminal::say;
use end::{End, Ends};
use supervisor::Supervisor;

/// Exit code for a failure of the lab itself, as opposed to one of the command that runs in it.
const LAB_FAILED: u8 = 125;

/// Starts the lab, then runs `command` in it or, without one, waits to be shut down.
pub(crate) async fn run(run: RunDir, command: Vec<OsString>) -> ExitCode {
    match LocalSet::new().run_until(live(run, command)).await {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            say(format_args!("error: {error:#}"));
            ExitCode::from(LAB_FAILED)
        }
    }
}

async fn live(run: RunDir, command: Vec<OsString>) -> Result<u8> {
    namespace::claim().await?;
    let _lock = run.hold()?;
    let (died, deaths) = mpsc::unbounded_channel();
    let (shut_down, requests) = mpsc::unbounded_channel();
    let (ready, is_ready) = watch::channel(None);
    let supervisor = Rc::new(Supervisor::new(run.clone(), died));
    let mut ends = Ends::new(run.clone(), deaths, requests);
    let mut interrupts = signal(SignalKind::interrupt())?;
    socket::listen(&run, Rc::clone(&supervisor), is_ready, shut_down)?;

    tokio::select! {
        booted = boot::boot(&run, &supervisor) => {
            ready.send_replace(Some(booted?));
        }
        end = ends.next() => return end.code(),
        // Once the command runs, Ctrl-C reaches it too, and it decides what to do.
        _ = interrupts.recv() => return End::ShutDown(Signal::INT).code(),
    }
    if command.is_empty() {
        return ends.next().await.code();
    }
    ends.during(&command).await
}
