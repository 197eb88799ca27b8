//! `lab run`: a lab that lives as long as a command.

use std::ffi::OsString;
use std::process::{ExitCode, ExitStatus};

use anyhow::Result;

use crate::paths::RunDir;
use crate::{build, confine, rundir};

/// Exit code after Ctrl-C, which is no failure: nobody will look for its cause.
const INTERRUPTED: i32 = 130;

/// Exits as the command does.
pub(crate) async fn run(command: &[OsString], keep: bool) -> Result<ExitCode> {
    let built = build::build_all(false).await?;
    rundir::sweep();
    let run = RunDir::fresh()?;
    let _lock = run.hold()?;
    run.link(&built)?;
    let status = confine::run(&run, command).await?;
    let failed = !status.success() && status.code() != Some(INTERRUPTED);
    run.end(keep || failed)?;
    Ok(code(status))
}

/// The exit code to pass on; 1 stands for a lab that was killed.
pub(super) fn code(status: ExitStatus) -> ExitCode {
    match status.code().and_then(|code| u8::try_from(code).ok()) {
        Some(code) => code.into(),
        None => ExitCode::FAILURE,
    }
}
