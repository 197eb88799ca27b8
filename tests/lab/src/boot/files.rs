//! Writes the configuration that the components read from files.

use std::fs;

use anyhow::Result;

use super::pki;
use crate::kwok;
use crate::paths::RunDir;

const AUDIT_POLICY: &str = include_str!("../../assets/audit-policy.yaml");

pub(super) fn write(run: &RunDir) -> Result<()> {
    fs::create_dir_all(run.config(""))?;
    fs::create_dir_all(run.logs())?;
    pki::write(run)?;
    fs::write(run.config("kwok.yaml"), kwok::configuration())?;
    fs::write(run.config("audit-policy.yaml"), AUDIT_POLICY)?;
    Ok(())
}
