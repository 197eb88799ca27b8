//! What a command in the lab finds in its environment.

use std::env;
use std::ffi::OsString;

use anyhow::{Context, Result};

use crate::paths::RunDir;

/// The variables to set, on top of what the command inherits.
pub(crate) fn of(run: &RunDir) -> Result<Vec<(&'static str, OsString)>> {
    let lab = env::current_exe().context("cannot tell where the lab's program is")?;
    let plugins = lab.parent().context("the lab's program is in no folder")?;
    // Our kubectl first, then the plugin, which Cargo puts next to the lab.
    let mut path = vec![run.bin(), plugins.to_owned()];
    path.extend(env::split_paths(&env::var_os("PATH").unwrap_or_default()));
    Ok(vec![
        ("KUBECONFIG", run.kubeconfig().into()),
        ("PATH", env::join_paths(path)?),
        ("ZONE_LAB", run.path().into()),
        // Every lab has the same address: what kubectl remembers of one must not reach the next.
        ("KUBECACHEDIR", run.work("kubectl").into()),
    ])
}
