//! A proxy that is asked with CONNECT, and leads every tunnel to the same server: names need no DNS.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, copy_bidirectional};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

use crate::server::listen;

/// A running proxy; it ends when it goes out of scope.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    tunnels: Arc<Mutex<Vec<Tunnel>>>,
    _stop: oneshot::Sender<()>,
}

/// A tunnel that was asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tunnel {
    pub(crate) authorization: Option<String>,
}

impl Proxy {
    pub(crate) fn start(server: SocketAddr) -> Result<Self> {
        let tunnels: Arc<Mutex<Vec<Tunnel>>> = Arc::default();
        let memory = Arc::clone(&tunnels);
        let (address, stop) = listen(move |stream| {
            let memory = Arc::clone(&memory);
            async move {
                // A client that goes away in the middle is none of the proxy's business.
                let _ended = tunnel(stream, server, &memory).await;
            }
        })?;
        Ok(Self { address, tunnels, _stop: stop })
    }

    pub(crate) fn tunnels(&self) -> Vec<Tunnel> {
        self.tunnels.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn tunnel(
    stream: TcpStream,
    server: SocketAddr,
    memory: &Mutex<Vec<Tunnel>>,
) -> std::io::Result<()> {
    let mut client = BufReader::new(stream);
    let mut tunnel = Tunnel::default();
    let mut line = String::new();
    while client.read_line(&mut line).await? > 2 {
        let header = line.trim_end().split_once(": ");
        if let Some((name, value)) = header
            && name.eq_ignore_ascii_case("proxy-authorization")
        {
            tunnel.authorization = Some(value.to_owned());
        }
        line.clear();
    }
    memory.lock().unwrap_or_else(PoisonError::into_inner).push(tunnel);
    client.write_all(b"HTTP/1.1 200 Connected\r\n\r\n").await?;
    let mut server = TcpStream::connect(server).await?;
    copy_bidirectional(&mut client, &mut server).await?;
    Ok(())
}
