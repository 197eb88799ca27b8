//! One file a verb: what was typed in, an exit code out. The judging is in the core.

mod abort;
mod demo;
mod group;
mod permission;
mod promote;
mod status;
mod typed;

use crate::cli::{Cli, Connection, Verb};
use crate::cluster::{Clock, Port, SystemClock, connect};
use crate::error::Error;
use crate::exit::Exit;
use crate::render::Io;
use crate::render::words::Flags;

/// A cluster and what is known about the invocation.
pub(crate) struct Context<'a> {
    /// The cluster.
    pub(crate) cluster: &'a dyn Port,
    /// The clock to go by.
    pub(crate) clock: &'a dyn Clock,
    /// Namespace of the group.
    pub(crate) namespace: String,
    /// Flags to repeat in printed commands.
    pub(crate) flags: Flags,
    /// The command line without the program, to be typed again: without secrets.
    pub(crate) typed: String,
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
    if let Verb::Demo(args) = &cli.verb {
        return demo::run(args, io).await;
    }
    if cli.connection.verbosity > 0 {
        io.keep_lines();
    }
    let cluster = connect(&cli.connection, io.voice()).await?;
    let context = Context {
        namespace: cluster.default_namespace().to_owned(),
        cluster: &cluster,
        clock: &SystemClock,
        flags: repeated(&cli.connection),
        typed: typed::again(std::env::args().skip(1)),
    };
    match cli.verb {
        Verb::Status(args) => status::run(&context, &args, io).await,
        Verb::Promote(args) => promote::run(&context, &args, io).await,
        Verb::Abort(args) => abort::run(&context, &args, io).await,
        Verb::Demo(_) | Verb::Version => Ok(Exit::Done),
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
