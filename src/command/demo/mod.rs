//! `demo`: the real driver on a simulated cluster. Nothing is read or written outside this process.

mod scenario;

use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use jiff::Timestamp;
use zone_rollout_core::group::find_groups;
use zone_rollout_core::sim::{Act, World};

use self::scenario::Scenario;
use super::{Context, promote, status};
use crate::cli::{Cli, DemoArgs, Verb};
use crate::cluster::SimulatedCluster;
use crate::error::Error;
use crate::exit::Exit;
use crate::render::Io;
use crate::render::words::Flags;

/// A Monday morning.
const START: &str = "2026-01-05T09:00:00Z";
/// How long the first deployment and the arrival of the new image take, at most.
const SETTLED: Duration = Duration::from_mins(2);
const SEED: u64 = 1;
const YOUR_OWN: &str = "\
On your own cluster, both read only:
  kubectl zone-rollout status
  kubectl zone-rollout promote --sequential --dry-run";

pub(super) async fn run(args: &DemoArgs, io: &mut Io) -> Result<Exit, Error> {
    let scenario = scenario::of(args.scenario, args.zones);
    let world = prepared(&scenario)?;
    // What is said by cues comes between the lines of the run.
    io.keep_lines();
    let speed = args.speed.unwrap_or(scenario.speed);
    let cluster = Arc::new(SimulatedCluster::new(world, scenario.cues, speed, io.voice()));
    io.note(&format!(
        "A simulated cluster of {} zones; one second here is {} there. Nothing is installed, read or \
         written.\n{}",
        args.zones, speed, scenario.scene
    ));
    for command in scenario.commands {
        io.note(&format!("\n$ kubectl zone-rollout {command}"));
        let exit = carry_out(&cluster, command, io).await?;
        if let Exit::Signal(_) = exit {
            return Ok(exit);
        }
        if exit != Exit::Done {
            io.note(&format!("(exit code {})", exit.code()));
        }
    }
    io.note(&format!("\n{}\n{}", scenario.lesson, YOUR_OWN));
    Ok(Exit::Done)
}

/// The group at rest, and then given a new image.
fn prepared(scenario: &Scenario) -> Result<World, Error> {
    let broken = |why: String| Error::unexpected("the demo cannot begin").because(why);
    let start: Timestamp = START.parse().map_err(|why: jiff::Error| broken(why.to_string()))?;
    let mut world = World::deploy(&scenario.manifests, start, SEED)
        .map_err(|unmodelled| broken(unmodelled.to_string()))?;
    world.wait(SETTLED);
    let rollouts: Vec<_> = find_groups(&world.scene())
        .into_iter()
        .flat_map(|group| group.zones)
        .map(|zone| zone.rollout)
        .collect();
    let images = rollouts.into_iter().map(|key| Act::SetImage(key, scenario::NEW.to_owned()));
    for act in scenario.faults.iter().cloned().chain(images) {
        world.act(act).map_err(|gone| broken(gone.to_string()))?;
    }
    world.wait(scenario.head_start);
    Ok(world)
}

/// Runs a command as it would be typed.
async fn carry_out(
    cluster: &Arc<SimulatedCluster>,
    command: &str,
    io: &mut Io,
) -> Result<Exit, Error> {
    let words = ["kubectl-zone_rollout"].into_iter().chain(command.split_whitespace());
    let cli = Cli::try_parse_from(words)
        .map_err(|error| Error::unexpected("the demo types nonsense").because(error.to_string()))?;
    let context = Context {
        cluster: Arc::<SimulatedCluster>::clone(cluster),
        clock: Arc::<SimulatedCluster>::clone(cluster),
        namespace: "default".to_owned(),
        flags: Flags::default(),
        typed: command.to_owned(),
    };
    match &cli.verb {
        Verb::Promote(args) => promote::run(&context, args, io).await,
        Verb::Status(args) => status::run(&context, args, io).await,
        _ => Err(Error::unexpected("the demo types nonsense")),
    }
}
