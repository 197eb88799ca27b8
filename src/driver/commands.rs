//! The commands a person supplies: `--check` judges a zone, `--notify` is told what happens.

use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use zone_rollout_core::promote::{CheckRequest, CheckResult, CheckStage, Run};

/// How long a command may take.
const LIMIT: Duration = Duration::from_mins(1);

/// The commands of one run.
#[derive(Debug, Clone, Default)]
pub struct Commands {
    /// `--check`
    pub check: Option<String>,
    /// `--notify`
    pub notify: Option<String>,
}

impl Commands {
    /// The check of one zone, ready to be awaited; nothing without a command.
    pub(super) fn check(
        &self,
        run: &Run,
        request: &CheckRequest,
    ) -> Option<impl Future<Output = CheckResult> + Send + 'static> {
        let stage = match request.stage {
            CheckStage::Pause => "pause",
            CheckStage::Soak => "soak",
        };
        let mut command = shell(self.check.as_deref()?);
        command
            .env("ZR_GROUP", &run.group().name)
            .env("ZR_NAMESPACE", &run.group().namespace)
            .env("ZR_ZONE", &request.zone.0)
            .env("ZR_STAGE", stage)
            .env("ZR_IMAGE", run.goal().version())
            .stdin(Stdio::null());
        Some(judge(command))
    }

    /// Runs the notify command with this event on its standard input, and waits for it.
    ///
    /// # Errors
    /// What went wrong, for people. It never changes how a run ends.
    pub async fn tell(&self, event: &Value) -> Result<(), String> {
        let Some(text) = &self.notify else { return Ok(()) };
        let mut command = shell(text);
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        let told = async {
            let mut child = command.spawn()?;
            if let Some(mut stdin) = child.stdin.take() {
                // A command that does not read its input is none of our business.
                let _unread = stdin.write_all(format!("{event}\n").as_bytes()).await;
            }
            child.wait().await
        };
        match tokio::time::timeout(LIMIT, told).await {
            Ok(Ok(status)) if status.success() => Ok(()),
            Ok(Ok(status)) => Err(format!("the notify command failed ({status})")),
            Ok(Err(error)) => Err(format!("the notify command cannot be run ({error})")),
            Err(_) => Err(format!("the notify command took longer than {}s", LIMIT.as_secs())),
        }
    }
}

fn shell(text: &str) -> Command {
    let mut command = Command::new("sh");
    command.arg("-c").arg(text).kill_on_drop(true);
    command
}

async fn judge(mut command: Command) -> CheckResult {
    let output = match tokio::time::timeout(LIMIT, command.output()).await {
        Ok(Ok(output)) => output,
        Ok(Err(error)) => return CheckResult::Silent(format!("it cannot be run: {error}")),
        Err(_) => {
            return CheckResult::Silent(format!("it took longer than {}s", LIMIT.as_secs()));
        }
    };
    let said = [&output.stderr, &output.stdout]
        .into_iter()
        .find_map(|text| {
            let text = String::from_utf8_lossy(text);
            let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
            Some(line.to_owned())
        })
        .unwrap_or_else(|| output.status.to_string());
    match output.status.code() {
        Some(0) => CheckResult::Good,
        Some(1) => CheckResult::Bad(said),
        _ => CheckResult::Silent(said),
    }
}
