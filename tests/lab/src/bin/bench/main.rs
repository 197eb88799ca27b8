//! Measures the plugin next to what users have today, in the same minute and on the same cluster, and
//! prints a table in Markdown. It fails on no figure: a slow machine is slow for all of them.

#![expect(clippy::print_stdout, reason = "its tables are its output")]

mod latency;
mod link;
mod measure;
mod scenes;

use std::time::Duration;

use anyhow::Result;
use zone_lab::Lab;

use link::Link;
use measure::{Program, compare};

/// What a request to a cluster in another region takes there and back.
const FAR: Duration = Duration::from_millis(50);
/// Pods that are none of the group's.
const CROWD: usize = 2000;

#[tokio::main]
async fn main() -> Result<()> {
    let lab = Lab::connect_alone().await?;
    let plugin = std::env::var("ZONE_ROLLOUT").unwrap_or("kubectl-zone_rollout".to_owned());
    print_binary(&plugin)?;

    let three = scenes::group(&lab, "three", 3).await?;
    let user = scenes::user(&three).await?;
    let near = Link::open(&user, Duration::ZERO).await?;
    let far = Link::open(&user, FAR).await?;
    let programs = programs(&plugin);
    compare("3 zones", &lab, &programs, &near).await?;
    compare("3 zones, 50 ms away", &lab, &programs, &far).await?;
    scenes::crowd(&three, CROWD).await?;
    compare(&format!("3 zones, {CROWD} other pods"), &lab, &programs, &near).await?;
    drop(three);

    let twelve = scenes::group(&lab, "twelve", 12).await?;
    let user = scenes::user(&twelve).await?;
    let near = Link::open(&user, Duration::ZERO).await?;
    compare("12 zones", &lab, &programs, &near).await?;
    drop(twelve);

    latency::measure(&scenes::group(&lab, "release", 3).await?, &plugin).await
}

/// The plugin's ways to read, and those that people use today. The first one of these is what the
/// others are compared with.
fn programs(plugin: &str) -> Vec<Program> {
    let argo = |words: &'static str| Program::new(format!("kubectl argo rollouts {words}"));
    vec![
        argo("get rollout test-a"),
        argo("status test-a"),
        argo("list rollouts"),
        Program::new("kubectl get rollouts"),
        Program::new("kubectl zone-rollout status"),
        Program::new("status").by(plugin),
        Program::new("status -o json").by(plugin),
        Program::new("diagnose").by(plugin),
        Program::new("--help").by(plugin),
    ]
}

fn print_binary(plugin: &str) -> Result<()> {
    let found = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
        .map(|folder| folder.join(plugin))
        .find(|path| path.is_file());
    if let Some(path) = found {
        let megabytes = measure::megabytes(std::fs::metadata(&path)?.len());
        println!("The program is {megabytes} MB.\n");
    }
    Ok(())
}
