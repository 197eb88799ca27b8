//! One file a verb: what was typed in, an exit code out. The judging is in the core.

mod abort;
mod diagnose;
mod explain;
mod group;
mod permission;
mod promote;
mod status;

use crate::cli::{Cli, Connection, Verb};
use crate::cluster::{Cluster, KubeCluster, connect};
use crate::error::Error;
use crate::exit::Exit;
use crate::render::Io;
use crate::render::words::Flags;

/// A cluster and what is known about the invocation.
pub(crate) struct Context<'a> {
    /// The cluster.
    pub(crate) cluster: &'a KubeCluster,
    /// Namespace of the group.
    pub(crate) namespace: String,
    /// Flags to repeat in printed commands.
    pub(crate) flags: Flags,
}

/// Runs one invocation.
///
/// # Errors
/// What failed, with the exit code that fits.
pub(crate) async fn run(cli: Cli, io: &mut Io) -> Result<Exit, Error> {
    if let Verb::Version = cli.verb {
        io.result(&format!("kubectl-zone_rollout {}", env!("CARGO_PKG_VERSION")));
        return Ok(Exit::Done);
    }
    match &cli.verb {
        Verb::Explain(args) => return explain::run(args, io),
        Verb::Diagnose(args) if !args.filename.is_empty() => {
            return diagnose::of_files(args, &cli.connection, io);
        }
        _ => {}
    }
    if cli.connection.verbosity > 0 {
        io.keep_lines();
    }
    let cluster = connect(&cli.connection, io.voice()).await?;
    let context = Context {
        namespace: cluster.default_namespace().to_owned(),
        cluster: &cluster,
        flags: repeated(&cli.connection),
    };
    match cli.verb {
        Verb::Status(args) => status::run(&context, &args, io).await,
        Verb::Promote(args) => promote::run(&context, &args, io).await,
        Verb::Abort(args) => abort::run(&context, &args, io).await,
        Verb::Diagnose(args) => diagnose::of_cluster(&context, &args, io).await,
        Verb::Explain(_) | Verb::Version => Ok(Exit::Done),
    }
}

fn repeated(connection: &Connection) -> Flags {
    let mut flags = String::new();
    let mut repeat = |flag: &str, value: Option<&str>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            for part in [" ", flag, " ", value] {
                flags.push_str(part);
            }
        }
    };
    repeat("--context", connection.context.as_deref());
    repeat("-n", connection.namespace.as_deref());
    Flags(flags)
}
