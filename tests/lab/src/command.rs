//! Runs a short-lived program of another project and turns its failure into an error that says why.

use anyhow::{Context, Result, bail};
use tokio::process::Command;

/// Standard output of a program that has to succeed.
pub(crate) async fn output(command: &mut Command) -> Result<String> {
    let shown = format!("{:?}", command.as_std());
    let output = command
        .kill_on_drop(true)
        .output()
        .await
        .with_context(|| format!("cannot run {shown}: is the program installed?"))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        bail!("{shown} failed ({}):\n{}", output.status, stderr.trim_end());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
