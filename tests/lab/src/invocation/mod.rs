//! Runs the plugin (or kubectl) as a person does, and watches what it prints.

mod lines;

use std::fmt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use rustix::process::{Pid, kill_process};
use tokio::process::{Child, Command};
use tokio::time::timeout;

pub use rustix::process::Signal;

use crate::namespace::Namespace;
use crate::wait;
use lines::Lines;

/// How long a run may take unless a test says otherwise.
const DEADLINE: Duration = Duration::from_mins(1);

/// A run of the plugin or of kubectl, yet to start.
pub struct Invocation {
    command: Command,
    deadline: Duration,
}

impl Namespace {
    /// `kubectl zone-rollout ARGUMENTS -n NAMESPACE`.
    pub fn kubectl_plugin<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Invocation {
        self.through_kubectl(["zone-rollout"].into_iter().chain(arguments))
    }

    /// `kubectl argo rollouts ARGUMENTS -n NAMESPACE`.
    pub fn argo<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Invocation {
        self.through_kubectl(["argo", "rollouts"].into_iter().chain(arguments))
    }

    /// kubectl takes no flags before the name of a plugin.
    fn through_kubectl<'a>(&self, words: impl IntoIterator<Item = &'a str>) -> Invocation {
        let mut invocation = Invocation::new(Command::new(self.run.bin().join("kubectl")));
        invocation.command.args(words).args(["-n", self.name()]);
        invocation
    }

    /// The plugin without kubectl in front of it.
    pub fn plugin<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Invocation {
        let mut invocation = Invocation::new(Command::new("kubectl-zone_rollout"));
        invocation.command.args(arguments).args(["-n", self.name()]);
        invocation
    }

    /// `kubectl -n NAMESPACE ARGUMENTS`.
    pub fn kubectl<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Invocation {
        let mut invocation = Invocation::new(Command::new(self.run.bin().join("kubectl")));
        invocation.command.args(["-n", self.name()]).args(arguments);
        invocation
    }

    /// Any other program, in the lab's environment.
    pub fn command<'a>(
        &self,
        program: &str,
        arguments: impl IntoIterator<Item = &'a str>,
    ) -> Invocation {
        let mut invocation = Invocation::new(Command::new(program));
        invocation.command.args(arguments);
        invocation
    }
}

impl Invocation {
    fn new(mut command: Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.kill_on_drop(true);
        Self { command, deadline: DEADLINE }
    }

    /// Kills the run and fails if it takes longer.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Sets a variable of its environment.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    /// Runs it in this folder.
    #[must_use]
    pub fn folder(mut self, path: &Path) -> Self {
        self.command.current_dir(path);
        self
    }

    /// Uses another kubeconfig, such as a user's of [`Namespace::user`].
    #[must_use]
    pub fn kubeconfig(mut self, path: &Path) -> Self {
        self.command.env("KUBECONFIG", path);
        self
    }

    /// Runs it to its end.
    ///
    /// # Errors
    ///
    /// When it cannot be started or does not end in time. Any exit code is fine.
    pub async fn run(self) -> Result<Finished> {
        self.start()?.finish().await
    }

    /// Starts it.
    ///
    /// # Errors
    ///
    /// When it cannot be started.
    pub fn start(mut self) -> Result<Running> {
        let shown = format!("{:?}", self.command.as_std());
        let mut child = self.command.spawn().with_context(|| format!("cannot run {shown}"))?;
        let stdout = Lines::read(child.stdout.take().context("standard output is not piped")?);
        let stderr = Lines::read(child.stderr.take().context("standard error is not piped")?);
        Ok(Running { shown, child, stdout, stderr, deadline: self.deadline })
    }
}

/// A run that goes on. It is killed when it goes out of scope.
pub struct Running {
    shown: String,
    child: Child,
    stdout: Lines,
    stderr: Lines,
    deadline: Duration,
}

impl Running {
    /// Waits until a line with this text was printed, to whichever stream, and returns it.
    ///
    /// # Errors
    ///
    /// When no such line comes in time; the message shows what was printed.
    pub async fn line(&mut self, text: &str) -> Result<String> {
        let what = format!("`{text}` in the output of {}", self.shown);
        let found = wait::until(what, self.deadline, async || {
            // Looked at before the lines, so that none can come after it.
            let over = self.stdout.is_over() && self.stderr.is_over();
            let line = self.stdout.with(text).or_else(|| self.stderr.with(text));
            Ok((over || line.is_some()).then_some(line))
        });
        let missing = || anyhow!("{} ended without saying `{text}`", self.shown);
        found.await.and_then(|line| line.ok_or_else(missing)).map_err(|error| self.told(&error))
    }

    /// Sends a signal.
    ///
    /// # Errors
    ///
    /// When the run has ended.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        let pid = self.child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        kill_process(pid.context("the run has ended already")?, signal)?;
        Ok(())
    }

    /// Ends it with SIGKILL.
    ///
    /// # Errors
    ///
    /// When it cannot be killed.
    pub async fn kill(mut self) -> Result<Finished> {
        self.child.start_kill()?;
        self.finish().await
    }

    /// Waits until it ends.
    ///
    /// # Errors
    ///
    /// When it does not end in time: it is killed then, and the message shows what was printed.
    pub async fn finish(mut self) -> Result<Finished> {
        let Ok(status) = timeout(self.deadline, self.child.wait()).await else {
            self.child.kill().await?;
            let limit = self.deadline.as_secs_f32();
            return Err(self.told(&anyhow!("{} did not end in {limit} s", self.shown)));
        };
        Ok(Finished {
            status: status?,
            stdout: self.stdout.all().await?,
            stderr: self.stderr.all().await?,
        })
    }

    fn told(&self, error: &anyhow::Error) -> anyhow::Error {
        anyhow!(
            "{error:#}\nstandard output:\n{}\nstandard error:\n{}",
            self.stdout.so_far(),
            self.stderr.so_far(),
        )
    }
}

/// A run that has ended.
#[derive(Debug)]
pub struct Finished {
    /// How it ended.
    pub status: ExitStatus,
    /// All of its standard output.
    pub stdout: String,
    /// All of its standard error.
    pub stderr: String,
}

impl Finished {
    /// The exit code; none if a signal ended it.
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }
}

impl fmt::Display for Finished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { status, stdout, stderr } = self;
        write!(f, "{status}\nstandard output:\n{stdout}\nstandard error:\n{stderr}")
    }
}
