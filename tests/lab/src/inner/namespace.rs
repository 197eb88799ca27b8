//! Makes sure that the lab is alone, and prepares its network.

use std::fs;

use anyhow::{Context, Result, ensure};
use tokio::process::Command;

use crate::command;

/// Addresses of pods, nodes and Services are all in here.
const CLUSTER: &str = "10.0.0.0/8";

/// Refuses to go on anywhere but in fresh namespaces: the routes set here would break a machine.
pub(crate) async fn claim() -> Result<()> {
    ensure!(
        std::process::id() == 1 && interfaces()? == ["lo"],
        "not in namespaces of its own: `lab inside` is for `lab run` and `lab up` only",
    );
    command::output(Command::new("ip").args(["link", "set", "lo", "up"])).await?;
    // Every address of the cluster is answered here: one server can stand for all pods.
    let route = ["route", "replace", "local", CLUSTER, "dev", "lo"];
    command::output(Command::new("ip").args(route)).await?;
    Ok(())
}

fn interfaces() -> Result<Vec<String>> {
    let table = fs::read_to_string("/proc/net/dev").context("cannot list network interfaces")?;
    let names = table.lines().filter_map(|line| line.split_once(':'));
    Ok(names.map(|(name, _)| name.trim().to_owned()).collect())
}
