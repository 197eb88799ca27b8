//! Where the lab keeps what: its sources, the cache of built programs, and the directory of a run.

use std::env;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use anyhow::{Context, Result};

/// The folder with the `go.mod` files, as it was when this program was compiled.
pub(crate) fn sources() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

static PROGRAM: LazyLock<PathBuf> =
    LazyLock::new(|| env::current_exe().expect("the kernel knows what it runs"));

/// The path of this program. Asked for first thing: once Cargo has replaced the file, the kernel
/// no longer tells it.
pub(crate) fn program() -> &'static Path {
    &PROGRAM
}

/// The folder of built programs, shared by all runs and work trees.
pub(crate) fn cache() -> Result<PathBuf> {
    if let Some(chosen) = env::var_os("ZONE_LAB_CACHE") {
        return Ok(chosen.into());
    }
    let home = env::var_os("HOME")
        .context("cannot tell where to keep built programs: set HOME or ZONE_LAB_CACHE")?;
    Ok(PathBuf::from(home).join(".cache/zone-rollout-lab"))
}

/// The folder that holds one directory for each run of this user.
pub(crate) fn runs() -> PathBuf {
    env::temp_dir().join(format!("zone-lab-{}", rustix::process::getuid().as_raw()))
}

/// The directory of one run: everything that a running lab writes is in it.
#[derive(Debug, Clone)]
pub(crate) struct RunDir(PathBuf);

impl RunDir {
    pub(crate) fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Links to all built programs.
    pub(crate) fn bin(&self) -> PathBuf {
        self.0.join("bin")
    }

    /// Links to the other files that a component was built with.
    pub(crate) fn share(&self, component: &str) -> PathBuf {
        self.0.join("share").join(component)
    }

    /// Certificates, keys and configuration files.
    pub(crate) fn config(&self, name: &str) -> PathBuf {
        self.0.join("config").join(name)
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.0.join("kubeconfig")
    }

    pub(crate) fn logs(&self) -> PathBuf {
        self.0.join("log")
    }

    pub(crate) fn log(&self, component: &str) -> PathBuf {
        self.logs().join(format!("{component}.log"))
    }

    pub(crate) fn audit_log(&self) -> PathBuf {
        self.logs().join("audit.log")
    }

    /// Scratch space and working directory of a component.
    pub(crate) fn work(&self, component: &str) -> PathBuf {
        self.0.join("work").join(component)
    }

    /// The socket on which the lab takes commands.
    pub(crate) fn socket(&self) -> PathBuf {
        self.0.join("control")
    }

    /// Locked for as long as the lab runs, whatever becomes of the process that started it.
    pub(crate) fn lock(&self) -> PathBuf {
        self.0.join("lock")
    }
}
