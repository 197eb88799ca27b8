//! Go tools: `go build` of everything that a `go.mod` names as a tool.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tokio::process::Command;

use super::component::{GoModule, Prefix};
use crate::command;

/// Builds all tools of the module in `sources` into `bin`.
pub(super) async fn build(sources: &Path, module: &GoModule, bin: &Path) -> Result<()> {
    // No symbol tables: they double the size of programs that nobody debugs here.
    let mut flags = "-s -w".to_owned();
    if !module.version_variables.is_empty() {
        let version = version(sources, module.main).await?;
        for (variable, prefix) in module.version_variables {
            let value = match prefix {
                Prefix::Kept => version.as_str(),
                Prefix::Stripped => version.trim_start_matches('v'),
            };
            flags.extend([" -X ", variable, "=", value]);
        }
    }
    let mut go = go(sources);
    // The trailing slash makes Go put every tool into the folder under its own name.
    go.args(["build", "-trimpath", "-ldflags", &flags, "-o"]).arg(bin.join("")).arg("tool");
    command::output(&mut go).await?;
    for (built, installed) in module.renamed {
        fs::rename(bin.join(built), bin.join(installed))
            .with_context(|| format!("cannot rename {built} to {installed}"))?;
    }
    Ok(())
}

/// Where Go keeps the sources of a module.
pub(super) async fn module_folder(sources: &Path, module: &str) -> Result<PathBuf> {
    Ok(list(sources, module, "{{.Dir}}").await?.into())
}

async fn version(sources: &Path, module: &str) -> Result<String> {
    list(sources, module, "{{.Version}}").await
}

async fn list(sources: &Path, module: &str, format: &str) -> Result<String> {
    let answer = command::output(go(sources).args(["list", "-m", "-f", format, module])).await?;
    Ok(answer.trim().to_owned())
}

fn go(sources: &Path) -> Command {
    let mut go = Command::new("go");
    // What is built must not depend on the person's own settings.
    go.current_dir(sources).env("GOFLAGS", "-mod=readonly").env("GOWORK", "off");
    go
}
