//! The life of run directories: made for a lab, held while it runs, removed when it has ended.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::process;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};

use crate::build::Built;
use crate::paths::{self, RunDir};
use crate::terminal::say;

/// Marks a directory whose logs somebody may still want to read.
const KEPT: &str = "kept";
/// The one lab that `lab up` leaves running has a fixed place, where `lab enter` finds it.
const UP: &str = "up";

impl RunDir {
    /// A new directory with a name that no other run has.
    pub(crate) fn fresh() -> Result<Self> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
        Self::create(&format!("{}-{}", now.as_secs(), process::id()))
    }

    /// The directory of the lab that `lab up` starts.
    pub(crate) fn up() -> Self {
        Self::at(paths::runs().join(UP))
    }

    /// Makes that directory anew.
    pub(crate) fn create_up() -> Result<Self> {
        let up = Self::up();
        if up.path().exists() {
            anyhow::ensure!(!up.is_held()?, "a lab is up already: `lab down` ends it");
            fs::remove_dir_all(up.path())?;
        }
        Self::create(UP)
    }

    fn create(name: &str) -> Result<Self> {
        let path = paths::runs().join(name);
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&path)
            .with_context(|| format!("cannot create {}", path.display()))?;
        let run = Self::at(path);
        File::create(run.lock())?;
        Ok(run)
    }

    /// Links the built components into the directory.
    pub(crate) fn link(&self, built: &[Built]) -> Result<()> {
        fs::create_dir_all(self.bin())?;
        fs::create_dir_all(self.share(""))?;
        for component in built {
            symlink(component.folder.join("share"), self.share(component.name))?;
            for program in fs::read_dir(component.folder.join("bin"))? {
                let program = program?;
                symlink(program.path(), self.bin().join(program.file_name()))?;
            }
        }
        Ok(())
    }

    /// Marks the directory as in use until the returned file is closed, at the latest when the
    /// kernel closes it for a process that was killed.
    pub(crate) fn hold(&self) -> Result<File> {
        let lock = File::open(self.lock())?;
        lock.lock_shared()?;
        Ok(lock)
    }

    fn is_held(&self) -> Result<bool> {
        let Ok(lock) = File::open(self.lock()) else { return Ok(false) };
        match lock.try_lock() {
            Ok(()) => Ok(false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(error)) => Err(error.into()),
        }
    }

    /// Removes the directory, or keeps what helps to find out what went wrong.
    pub(crate) fn end(&self, keep: bool) -> Result<()> {
        if !keep {
            fs::remove_dir_all(self.path())?;
            return Ok(());
        }
        File::create(self.path().join(KEPT))?;
        // The data of etcd is large and tells nothing that the logs do not.
        let _ = fs::remove_dir_all(self.work(""));
        say(format_args!("logs are in {}", self.logs().display()));
        Ok(())
    }
}

/// Removes what labs left behind that were killed together with the process that started them.
pub(crate) fn sweep() {
    let Ok(runs) = fs::read_dir(paths::runs()) else { return };
    for run in runs.filter_map(Result::ok).map(|entry| RunDir::at(entry.path())) {
        let dead = matches!(run.is_held(), Ok(false)) && run.lock().exists();
        if dead && !run.path().join(KEPT).exists() {
            // Another `lab run` may be doing the same right now.
            let _ = fs::remove_dir_all(run.path());
        }
    }
}
