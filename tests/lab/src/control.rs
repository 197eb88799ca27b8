//! Commands to a running lab: one JSON line each way on a socket in its run directory. The socket
//! is a file, so it works across network namespaces.

use anyhow::{Context, Result, anyhow};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

use crate::paths::RunDir;
use crate::upstream::{Failure, Victims};

/// What a lab can be asked to do.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Request {
    /// Answer as soon as the lab is ready.
    AwaitReady,
    /// Kill a component; its end is no failure then.
    Stop { component: String },
    /// Start a stopped component and answer when it is ready.
    Start { component: String },
    /// Start every component that was stopped.
    StartAll,
    /// Make the application of some pods fail, or work again.
    Fail { victims: Victims, how: Option<Failure> },
    /// Delete a namespace in the background.
    DeleteNamespace { name: String },
    /// End the command with this signal, then the lab.
    ShutDown { signal: i32 },
}

pub(crate) type Answer = Result<(), String>;

/// Sends one request and waits for its answer.
pub(crate) async fn ask(run: &RunDir, request: &Request) -> Result<()> {
    let stream = connect(run).await?;
    let mut stream = BufReader::new(stream);
    let mut line = serde_json::to_string(request)?;
    line.push('\n');
    stream.write_all(line.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_line(&mut answer).await?;
    if answer.is_empty() {
        return Err(anyhow!("the lab ended before it answered {request:?}"));
    }
    serde_json::from_str::<Answer>(&answer)?.map_err(|why| anyhow!("{request:?} failed: {why}"))
}

/// The process that owns the lab's namespaces, as its number is seen from here.
pub(crate) async fn owner(run: &RunDir) -> Result<i32> {
    let credentials = connect(run).await?.peer_cred()?;
    credentials.pid().context("the kernel does not say who listens on the lab's socket")
}

async fn connect(run: &RunDir) -> Result<UnixStream> {
    let socket = run.socket();
    UnixStream::connect(&socket)
        .await
        .with_context(|| format!("no lab runs at {}; `lab up` starts one", socket.display()))
}
