//! Keeps the components running: starts them, notices when one ends, and stops and starts them on
//! request.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::mem::replace;
use std::process::{ExitStatus, Stdio};

use anyhow::{Context, Result, bail};
use tokio::process::{Child, Command};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::boot::program::Program;
use crate::paths::RunDir;

/// A component that ended by itself.
#[derive(Debug)]
pub(crate) struct Death {
    pub(crate) component: &'static str,
    pub(crate) status: io::Result<ExitStatus>,
}

/// The components, running or stopped on purpose.
pub(crate) struct Supervisor {
    run: RunDir,
    components: RefCell<BTreeMap<&'static str, State>>,
    died: mpsc::UnboundedSender<Death>,
}

enum State {
    Running { stop: oneshot::Sender<()>, ended: JoinHandle<()> },
    Stopped,
}

impl Supervisor {
    pub(crate) fn new(run: RunDir, died: mpsc::UnboundedSender<Death>) -> Self {
        Self { run, components: RefCell::default(), died }
    }

    /// Starts a program without waiting until it is ready.
    pub(crate) fn start(&self, program: &Program) -> Result<()> {
        let component = program.component;
        if let Some(State::Running { .. }) = self.components.borrow().get(component) {
            bail!("`{component}` is running already");
        }
        let child = self.spawn(program).with_context(|| format!("cannot start `{component}`"))?;
        let (stop, stopped) = oneshot::channel();
        let ended = tokio::spawn(watch(component, child, stopped, self.died.clone()));
        self.components.borrow_mut().insert(component, State::Running { stop, ended });
        Ok(())
    }

    /// Starts a program and waits until it is ready.
    pub(crate) async fn start_ready(&self, program: Program) -> Result<()> {
        self.start(&program)?;
        program.ready.wait(&self.run, program.component).await
    }

    /// Kills a component and waits until it is gone.
    pub(crate) async fn stop(&self, component: &str) -> Result<()> {
        let state = self
            .components
            .borrow_mut()
            .get_mut(component)
            .map(|state| replace(state, State::Stopped));
        let Some(State::Running { stop, ended }) = state else {
            bail!("no component `{component}` is running");
        };
        // The task has ended already where the component died by itself a moment ago.
        let _ = stop.send(());
        ended.await.context("lost track of the component")
    }

    /// Components that were stopped and not started again.
    pub(crate) fn stopped(&self) -> Vec<&'static str> {
        let components = self.components.borrow();
        let stopped = components.iter().filter(|(_, state)| matches!(state, State::Stopped));
        stopped.map(|(&component, _)| component).collect()
    }

    fn spawn(&self, program: &Program) -> Result<Child> {
        let work = self.run.work(program.component);
        fs::create_dir_all(&work)?;
        let log =
            File::options().create(true).append(true).open(self.run.log(program.component))?;
        let child = Command::new(self.run.bin().join(program.file))
            .args(&program.args)
            .envs(program.env.iter().map(|(name, value)| (name, value)))
            .current_dir(work)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            // Ctrl-C is for the command in the lab, not for what it works against.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        Ok(child)
    }
}

async fn watch(
    component: &'static str,
    mut child: Child,
    stopped: oneshot::Receiver<()>,
    died: mpsc::UnboundedSender<Death>,
) {
    tokio::select! {
        status = child.wait() => {
            // Nobody listens any more when the lab is about to end anyway.
            let _ = died.send(Death { component, status });
        }
        _ = stopped => {
            let _ = child.kill().await;
        }
    }
}
