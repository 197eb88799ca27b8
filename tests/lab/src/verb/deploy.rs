//! `lab deploy`, inside a lab: something to look at in namespace `default`.

use std::process::ExitCode;

use anyhow::Result;

use crate::Lab;

/// Deploys test-a, test-b and test-c in the ring layout and waits until they are Healthy.
pub(crate) async fn deploy() -> Result<ExitCode> {
    let lab = Lab::connect().await?;
    let namespace = lab.existing_namespace("default")?;
    namespace.deploy(&namespace.ring("myapp:v1")).await?;
    Ok(ExitCode::SUCCESS)
}
