//! The inner end of the control socket.

use std::rc::Rc;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::DeleteParams;
use rustix::process::Signal;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, watch};
use tokio::task::spawn_local;

use super::supervisor::Supervisor;
use crate::boot::program;
use crate::client;
use crate::control::{Answer, Request};
use crate::paths::RunDir;
use crate::upstream::Upstream;

/// What requests act upon.
#[derive(Clone)]
struct Lab {
    run: RunDir,
    supervisor: Rc<Supervisor>,
    ready: watch::Receiver<Option<Upstream>>,
    shut_down: mpsc::UnboundedSender<Signal>,
}

/// Serves requests until the lab ends.
pub(crate) fn listen(
    run: &RunDir,
    supervisor: Rc<Supervisor>,
    ready: watch::Receiver<Option<Upstream>>,
    shut_down: mpsc::UnboundedSender<Signal>,
) -> Result<()> {
    let listener = UnixListener::bind(run.socket())
        .with_context(|| format!("cannot listen on {}", run.socket().display()))?;
    let lab = Lab { run: run.clone(), supervisor, ready, shut_down };
    spawn_local(async move {
        while let Ok((stream, _)) = listener.accept().await {
            spawn_local(serve(stream, lab.clone()));
        }
    });
    Ok(())
}

async fn serve(stream: UnixStream, lab: Lab) {
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    if !matches!(stream.read_line(&mut line).await, Ok(1..)) {
        return;
    }
    let answer = match serde_json::from_str(&line) {
        Ok(request) => lab.fulfil(request).await.map_err(|error| format!("{error:#}")),
        Err(error) => Err(format!("unknown request: {error}")),
    };
    // Whoever asked may be gone by now.
    let _ = reply(stream, &answer).await;
}

async fn reply(mut stream: BufReader<UnixStream>, answer: &Answer) -> Result<()> {
    let mut line = serde_json::to_string(answer)?;
    line.push('\n');
    stream.write_all(line.as_bytes()).await?;
    Ok(())
}

impl Lab {
    async fn fulfil(mut self, request: Request) -> Result<()> {
        match request {
            Request::AwaitReady => self.upstream().await.map(drop),
            Request::Stop { component } => self.supervisor.stop(&component).await,
            Request::Start { component } => self.start(&component).await,
            Request::StartAll => self.start_all().await,
            Request::Fail { victims, how } => {
                self.upstream().await?.fail(victims, how);
                Ok(())
            }
            Request::DeleteNamespace { name } => {
                let client = client::from_file(&self.run.kubeconfig()).await?;
                let namespaces: Api<Namespace> = Api::all(client);
                namespaces.delete(&name, &DeleteParams::background()).await?;
                Ok(())
            }
            Request::ShutDown { signal } => {
                let signal = Signal::from_named_raw(signal).context("not a signal")?;
                Ok(self.shut_down.send(signal)?)
            }
        }
    }

    /// The application, which is there as soon as the lab is ready.
    async fn upstream(&mut self) -> Result<Upstream> {
        let ready = self.ready.wait_for(Option::is_some).await?;
        ready.clone().context("the lab is not ready")
    }

    async fn start(&self, component: &str) -> Result<()> {
        let program = program::named(&self.run, component)
            .with_context(|| format!("the lab has no component `{component}`"))?;
        self.supervisor.start_ready(program).await
    }

    async fn start_all(&self) -> Result<()> {
        for component in self.supervisor.stopped() {
            self.start(component).await?;
        }
        Ok(())
    }
}
