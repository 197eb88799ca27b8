//! `version`: of this program, and of what runs in the cluster.

use crate::cli::{Connection, VersionArgs, VersionOutput};
use crate::cluster::{Versions, connect};
use crate::error::Error;
use crate::exit::Exit;
use crate::render::{Io, document, version};

/// As kubectl does it, this program's own version is printed before anything can fail.
pub(super) async fn run(
    connection: &Connection,
    args: &VersionArgs,
    io: &mut Io,
) -> Result<Exit, Error> {
    let versions = if args.client { Ok(None) } else { ask(connection, io).await.map(Some) };
    let found = versions.as_ref().ok().and_then(Option::as_ref);
    let text = match args.output {
        VersionOutput::Text => version::text(found),
        VersionOutput::Json => document::json(&document::versions(found))?,
        VersionOutput::Yaml => document::yaml(&document::versions(found))?,
    };
    io.result(&text);
    versions.map(|_| Exit::Done)
}

async fn ask(connection: &Connection, io: &Io) -> Result<Versions, Error> {
    connect(connection, io.voice()).await?.versions().await
}
