//! A line to the API server that counts what goes through it and can be as long as one to another
//! region. It passes TLS on as it is.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

/// A line. It is cut when it goes out of scope.
pub(crate) struct Link {
    kubeconfig: PathBuf,
    user: String,
    bytes: Arc<AtomicU64>,
    task: JoinHandle<()>,
}

impl Link {
    /// A line for the user of a kubeconfig, so long that an answer takes `there_and_back` to come.
    pub(crate) async fn open(kubeconfig: &Path, there_and_back: Duration) -> Result<Self> {
        let mut config: Value = serde_json::from_slice(&fs::read(kubeconfig)?)?;
        let user = config["users"][0]["name"].as_str().context("no user")?.to_owned();
        let server = &mut config["clusters"][0]["cluster"]["server"];
        let target = server.as_str().and_then(|url| url.strip_prefix("https://"));
        let target = target.context("no server")?.to_owned();
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        *server = json!(format!("https://{}", listener.local_addr()?));
        let kubeconfig = kubeconfig.with_extension(format!("{}ms", there_and_back.as_millis()));
        fs::write(&kubeconfig, config.to_string())?;
        let bytes = Arc::new(AtomicU64::new(0));
        let task = tokio::spawn(listen(listener, target, there_and_back / 2, Arc::clone(&bytes)));
        Ok(Self { kubeconfig, user, bytes, task })
    }

    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    pub(crate) fn user(&self) -> &str {
        &self.user
    }

    /// Bytes so far, in both directions.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn listen(listener: TcpListener, target: String, one_way: Duration, bytes: Arc<AtomicU64>) {
    while let Ok((client, _)) = listener.accept().await {
        let (target, bytes) = (target.clone(), Arc::clone(&bytes));
        tokio::spawn(async move {
            // A connection takes a round trip of its own before anything can be sent.
            sleep_until(Instant::now() + one_way * 2).await;
            let Ok(server) = TcpStream::connect(target).await else { return };
            let (from_client, to_client) = client.into_split();
            let (from_server, to_server) = server.into_split();
            tokio::join!(
                carry(from_client, to_server, one_way, &bytes),
                carry(from_server, to_client, one_way, &bytes),
            );
        });
    }
}

/// Passes on what comes, each piece a little later than it came.
async fn carry(
    mut from: impl AsyncReadExt + Unpin,
    mut to: impl AsyncWriteExt + Unpin,
    late: Duration,
    bytes: &AtomicU64,
) {
    let (sender, mut pieces) = mpsc::unbounded_channel::<(Instant, Vec<u8>)>();
    let read = async move {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(count @ 1..) = from.read(&mut buffer).await {
            bytes.fetch_add(count as u64, Ordering::Relaxed);
            if sender.send((Instant::now() + late, buffer[..count].to_vec())).is_err() {
                return;
            }
        }
    };
    let write = async {
        while let Some((due, piece)) = pieces.recv().await {
            sleep_until(due).await;
            if to.write_all(&piece).await.is_err() {
                return;
            }
        }
        // The other end may have gone first.
        let _closed = to.shutdown().await;
    };
    tokio::join!(read, write);
}
