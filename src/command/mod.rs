//! One file a verb: what was typed in, an exit code out. The judging is in the core.

mod abort;
mod by_hand;
mod completion;
mod demo;
mod diagnose;
mod evacuate;
mod explain;
mod group;
mod manifests;
mod permission;
mod plan;
mod promote;
mod release;
mod status;
mod typed;
mod undo;
mod version;
mod zones;

use std::sync::Arc;

use crate::cli::{Cli, Connection, Verb};
use crate::cluster::{Clock, Port, SystemClock, connect};
use crate::error::Error;
use crate::exit::Exit;
use crate::render::Io;
use crate::render::words::Flags;

/// A cluster and what is known about the invocation.
pub(crate) struct Context {
    /// The cluster.
    pub(crate) cluster: Arc<dyn Port>,
    /// The clock to go by.
    pub(crate) clock: Arc<dyn Clock>,
    /// Namespace of the group.
    pub(crate) namespace: String,
    /// Flags to repeat in printed commands.
    pub(crate) flags: Flags,
    /// The command line without the program, to be typed again: without secrets.
    pub(crate) typed: String,
}

impl Context {
    async fn connect(connection: &Connection, io: &Io) -> Result<Self, Error> {
        let cluster = connect(connection, io.voice()).await?;
        let namespace = cluster.default_namespace().to_owned();
        Ok(Self {
            cluster: Arc::new(cluster),
            clock: Arc::new(SystemClock),
            namespace,
            flags: repeated(connection),
            typed: typed::again(std::env::args().skip(1)),
        })
    }
}

/// Runs one invocation.
///
/// # Errors
/// What failed, with the exit code that fits.
pub(crate) async fn run(cli: Cli, io: &mut Io) -> Result<Exit, Error> {
    let connection = &cli.connection;
    if connection.verbosity > 0 {
        io.keep_lines();
    }
    match &cli.verb {
        Verb::Status(args) => status::run(&Context::connect(connection, io).await?, args, io).await,
        Verb::Plan(args) => plan::run(&Context::connect(connection, io).await?, args, io).await,
        Verb::Promote(args) => {
            promote::run(&Context::connect(connection, io).await?, args, io).await
        }
        Verb::Abort(args) => abort::run(&Context::connect(connection, io).await?, args, io).await,
        Verb::Retry(args) => {
            by_hand::retry(&Context::connect(connection, io).await?, args, io).await
        }
        Verb::Undo(args) => undo::run(&Context::connect(connection, io).await?, args, io).await,
        Verb::Hold(args) => by_hand::hold(&Context::connect(connection, io).await?, args, io).await,
        Verb::Release(args) => {
            by_hand::release(&Context::connect(connection, io).await?, args, io).await
        }
        Verb::Evacuate(args) => {
            evacuate::evacuate(&Context::connect(connection, io).await?, args, io).await
        }
        Verb::Restore(args) => {
            evacuate::restore(&Context::connect(connection, io).await?, args, io).await
        }
        Verb::Diagnose(args) if !args.filename.is_empty() => {
            diagnose::of_files(args, connection, io)
        }
        Verb::Diagnose(args) => {
            diagnose::of_cluster(&Context::connect(connection, io).await?, args, io).await
        }
        Verb::Explain(args) => explain::run(args, io),
        Verb::Manifests(args) => manifests::run(connection, args, io),
        Verb::Demo(args) => demo::run(args, io).await,
        Verb::Version(args) => version::run(connection, args, io).await,
        Verb::Completion => Ok(completion::run(io)),
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
