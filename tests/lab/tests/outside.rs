//! The life of a lab, seen from outside of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, ChildStderr, Command};

const STARTED: Duration = Duration::from_mins(2);
const ENDED: Duration = Duration::from_secs(20);

/// A lab whose command has told where its run directory is.
struct Started {
    lab: Child,
    stderr: ChildStderr,
    run: PathBuf,
}

/// Starts a lab whose command prints the run directory and goes on as told.
async fn start(then: &str) -> Result<Started> {
    let mut lab = Command::new(env!("CARGO_BIN_EXE_lab"))
        .args(["run", "--", "sh", "-c", &format!("echo $ZONE_LAB; {then}")])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let stdout = lab.stdout.take().context("no standard output")?;
    let stderr = lab.stderr.take().context("no standard error")?;
    let mut lines = BufReader::new(stdout).lines();
    let first = tokio::time::timeout(STARTED, lines.next_line()).await??;
    let run = first.context("the lab ended before its command ran")?.into();
    Ok(Started { lab, stderr, run })
}

impl Started {
    fn signal(&self, signal: Signal) -> Result<()> {
        let pid = self.lab.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        Ok(kill_process(pid.context("the lab has ended")?, signal)?)
    }

    async fn code(&mut self) -> Result<Option<i32>> {
        Ok(tokio::time::timeout(ENDED, self.lab.wait()).await??.code())
    }

    async fn is_gone(&self) -> Result<()> {
        zone_lab::until("every process of the lab to be gone", ENDED, async || {
            let left = processes(&self.run)?;
            ensure!(left.is_empty(), "still there: {left:?}");
            Ok(Some(()))
        })
        .await
    }
}

/// Command lines of all processes that name a run directory or work in it.
fn processes(run: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for process in fs::read_dir("/proc")?.filter_map(Result::ok).map(|entry| entry.path()) {
        // Processes end while this looks at them.
        let line = fs::read(process.join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        let works_there = fs::read_link(process.join("cwd")).is_ok_and(|it| it.starts_with(run));
        if works_there || line.contains(&*run.to_string_lossy()) {
            found.push(line);
        }
    }
    Ok(found)
}

#[tokio::test]
async fn kill_9_leaves_nothing_behind() -> Result<()> {
    let mut killed = start("sleep 1000").await?;
    ensure!(processes(&killed.run)?.len() > 8, "a lab has more processes");
    killed.signal(Signal::KILL)?;
    assert_eq!(killed.code().await?, None);
    killed.is_gone().await?;

    let mut next = start("exit 0").await?;
    assert_eq!(next.code().await?, Some(0));
    ensure!(!killed.run.exists(), "the next run removes what a killed one has left");
    ensure!(!next.run.exists(), "a run removes its own directory");
    Ok(())
}

#[tokio::test]
async fn a_failed_command_keeps_its_exit_code_and_logs() -> Result<()> {
    let mut failed = start("exit 7").await?;
    assert_eq!(failed.code().await?, Some(7));
    failed.is_gone().await?;
    ensure!(failed.run.join("log/istiod.log").exists(), "the logs are gone");
    fs::remove_dir_all(&failed.run)?;
    Ok(())
}

#[tokio::test]
async fn sigterm_reaches_the_command_and_ends_the_lab() -> Result<()> {
    let command = "trap 'touch $ZONE_LAB/log/told; exit' TERM; touch $ZONE_LAB/log/ready; \
                   sleep 1000 & wait";
    let mut stopped = start(command).await?;
    let ready = stopped.run.join("log/ready");
    zone_lab::until("the command to listen", ENDED, async || Ok(ready.exists().then_some(())))
        .await?;
    stopped.signal(Signal::TERM)?;
    assert_eq!(stopped.code().await?, Some(143));
    stopped.is_gone().await?;
    ensure!(stopped.run.join("log/told").exists(), "the command was not told");
    fs::remove_dir_all(&stopped.run)?;
    Ok(())
}

#[tokio::test]
async fn a_dead_component_ends_the_lab_and_shows_its_log() -> Result<()> {
    let mut failed = start("kill -9 $(pidof kwok); sleep 1000").await?;
    assert_eq!(failed.code().await?, Some(125));
    failed.is_gone().await?;
    let mut said = String::new();
    failed.stderr.read_to_string(&mut said).await?;
    let (_, log) =
        said.split_once("`kwok` ended by itself (signal: 9 (SIGKILL))").context(said.clone())?;
    ensure!(log.contains(r#""level":"INFO""#), "the end of its log is missing: {said}");
    fs::remove_dir_all(&failed.run)?;
    Ok(())
}

#[tokio::test]
async fn a_test_without_lab_says_what_it_needs() {
    let error = zone_lab::Lab::connect().await.err().expect("this does not run in a lab");
    assert!(error.to_string().starts_with("not in a lab; this test needs one"), "{error}");
}
