//! Values that only the kubeconfig or the cluster knows.

use std::collections::BTreeMap;
use std::io;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use clap::{Arg, Command};
use clap_complete::{ArgValueCandidates, CompletionCandidate};
use tokio::runtime::Builder;
use zone_rollout_core::group::{Group, find_groups};

use crate::cli::Connection;
use crate::cluster::{KubeCluster, KubeconfigNames, Want, connect, kubeconfig_names};
use crate::error::Error;
use crate::render::{Io, Terminal};

/// How long a person waits for a candidate from the cluster.
const LIMIT: Duration = Duration::from_millis(1500);

type Candidates = Vec<CompletionCandidate>;

/// The command line with candidates for the values of its arguments.
pub(super) fn offer(command: Command, connection: &Connection) -> Command {
    let offer = |arg| offer_values(arg, connection);
    // A layout is generated for zones that no cluster has to know.
    command.mut_args(offer).mut_subcommands(|verb| match verb.get_name() {
        "manifests" => verb,
        _ => verb.mut_args(offer),
    })
}

fn offer_values(arg: Arg, connection: &Connection) -> Arg {
    let values: fn(&Connection) -> Candidates = match arg.get_id().as_str() {
        "context" => |connection| of_kubeconfig(connection, |names| names.contexts),
        "cluster" => |connection| of_kubeconfig(connection, |names| names.clusters),
        "user" => |connection| of_kubeconfig(connection, |names| names.users),
        "namespace" => namespaces,
        "address" | "zones" => |connection| of_groups(connection, addresses),
        "order" | "from" | "only" | "skip_zone" | "to" => |connection| of_groups(connection, zones),
        "rollouts" => |connection| of_groups(connection, rollouts),
        _ => return arg,
    };
    let connection = connection.clone();
    arg.add(ArgValueCandidates::new(move || values(&connection)))
}

fn of_kubeconfig(
    connection: &Connection,
    choose: fn(KubeconfigNames) -> Vec<String>,
) -> Candidates {
    let names = kubeconfig_names(connection).map(choose).unwrap_or_default();
    names.into_iter().map(CompletionCandidate::new).collect()
}

fn namespaces(connection: &Connection) -> Candidates {
    let names = ask(connection, async |cluster| cluster.namespaces().await);
    names.unwrap_or_default().into_iter().map(CompletionCandidate::new).collect()
}

fn of_groups(
    connection: &Connection,
    candidates: fn(&[Group]) -> BTreeMap<String, String>,
) -> Candidates {
    let groups = ask(connection, async |cluster| {
        let namespace = cluster.default_namespace().to_owned();
        let want = Want { namespace, ..Want::default() };
        Ok(find_groups(&cluster.read_names(&want).await?))
    });
    let candidate =
        |(value, help): (String, String)| CompletionCandidate::new(value).help(Some(help.into()));
    candidates(&groups.unwrap_or_default()).into_iter().map(candidate).collect()
}

fn addresses(groups: &[Group]) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for group in groups {
        let zones: Vec<&str> = group.zones.iter().map(|zone| zone.id.0.as_str()).collect();
        all.insert(group.name.clone(), format!("zones {}", zones.join(", ")));
        for zone in &group.zones {
            let address = format!("{}/{}", group.name, zone.id);
            all.insert(address, format!("Rollout {}", zone.rollout.name));
        }
    }
    all
}

fn zones(groups: &[Group]) -> BTreeMap<String, String> {
    let zones = groups.iter().flat_map(|group| &group.zones);
    zones.map(|zone| (zone.id.0.clone(), zone.topology.clone().unwrap_or_default())).collect()
}

fn rollouts(groups: &[Group]) -> BTreeMap<String, String> {
    let of_group = |group: &Group| {
        let help = format!("group {}", group.name);
        let names = group.zones.iter().map(|zone| zone.rollout.name.clone());
        names.map(|name| (name, help.clone())).collect::<Vec<_>>()
    };
    groups.iter().flat_map(of_group).collect()
}

/// Asks the cluster; nothing if it fails or takes too long. It is asked on a thread that is left
/// alone then: a credential plugin, for one, cannot be interrupted.
fn ask<T: Send + 'static>(
    connection: &Connection,
    question: impl AsyncFnOnce(KubeCluster) -> Result<T, Error> + Send + 'static,
) -> Option<T> {
    let connection = connection.clone();
    let (sender, answer) = mpsc::channel();
    thread::spawn(move || {
        let voice =
            Io::new(Box::new(io::sink()), Box::new(io::sink()), Terminal::default()).voice();
        let runtime = Builder::new_current_thread().enable_all().build().ok()?;
        let answered =
            runtime.block_on(async move { question(connect(&connection, voice).await?).await });
        sender.send(answered.ok()?).ok()
    });
    answer.recv_timeout(LIMIT).ok()
}
