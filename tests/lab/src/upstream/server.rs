//! The server: HTTP/1.1 on the application's port of every address in the cluster.

use std::cell::RefCell;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::pin::pin;
use std::rc::Rc;

use anyhow::{Context, Result};
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::spawn_local;

use super::directory::Directory;

/// The port of the containers.
const PORT: u16 = 9090;

type Shared = Rc<RefCell<Directory>>;

pub(super) async fn listen(directory: Shared) -> Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, PORT))
        .await
        .context("cannot listen on the application's port")?;
    spawn_local(async move {
        loop {
            // Only a lack of file descriptors makes this fail; the next one may work.
            if let Ok((stream, _)) = listener.accept().await {
                let _ = take(stream, &directory);
            }
        }
    });
    Ok(())
}

fn take(stream: TcpStream, directory: &Shared) -> io::Result<()> {
    let address = stream.local_addr()?.ip();
    let Some(present) = directory.borrow().door(address) else {
        // Closing with this option set resets the connection, as where nobody listens.
        return stream.set_zero_linger();
    };
    stream.set_nodelay(true)?;
    spawn_local(serve(stream, address, present, Rc::clone(directory)));
    Ok(())
}

async fn serve(
    stream: TcpStream,
    address: IpAddr,
    mut present: watch::Receiver<()>,
    directory: Shared,
) {
    let answer = service_fn(|_: Request<Incoming>| {
        let answer = directory.borrow().answer(address);
        async move { respond(answer) }
    });
    let mut connection = pin!(http1::Builder::new().serve_connection(TokioIo::new(stream), answer));
    // How a client ends a connection is its own business.
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = present.changed() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

/// An error closes the connection without an answer.
fn respond(answer: Option<(u16, String)>) -> io::Result<Response<Full<Bytes>>> {
    let (status, body) = answer.ok_or(io::ErrorKind::ConnectionReset)?;
    let mut response = Response::new(Full::from(body));
    *response.status_mut() = StatusCode::from_u16(status).map_err(io::Error::other)?;
    Ok(response)
}
