//! What a command in the lab finds in its environment.

use std::env;
use std::ffi::OsString;

use anyhow::{Context, Result};

use crate::paths::{self, RunDir};

/// The variables to set, on top of what the command inherits.
pub(crate) fn of(run: &RunDir) -> Result<Vec<(&'static str, OsString)>> {
    let plugins = paths::program().parent().context("the lab's program is in no folder")?;
    // Our kubectl first, then the plugin, which Cargo puts next to the lab.
    let mut path = vec![run.bin(), plugins.to_owned()];
    path.extend(env::split_paths(&env::var_os("PATH").unwrap_or_default()));
    Ok(vec![
        ("KUBECONFIG", run.kubeconfig().into()),
        ("PATH", env::join_paths(path)?),
        ("ZONE_LAB", run.path().into()),
        // A failed test is to show its message, not where in the lab's code it was made.
        ("RUST_LIB_BACKTRACE", "0".into()),
        // Every lab has the same address: what kubectl remembers of one must not reach the next.
        ("KUBECACHEDIR", run.work("kubectl").into()),
    ])
}
