//! The server: one scripted answer to everything, and a memory of what was asked, by whom.

use std::net::{SocketAddr, TcpListener as StdListener};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use anyhow::{Context, Result};
use http::{HeaderMap, Request, Response, StatusCode, Uri};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

use crate::authority::Identity;

/// How the server answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Script {
    /// As an API server with a group of two zones.
    #[default]
    Answers,
    /// It does not know who asks.
    Unauthorized,
    /// It is overloaded.
    Busy,
    /// It asks to come again in a second.
    ComeAgain,
    /// It takes requests and never answers.
    Silent,
}

/// A request as the server saw it.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) headers: HeaderMap,
    /// Of the client, in PEM.
    pub(crate) certificate: Option<Vec<u8>>,
}

/// A running server; it ends when it goes out of scope.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    _stop: oneshot::Sender<()>,
}

impl Running {
    /// Starts a server; without an identity it speaks plain HTTP.
    pub(crate) fn start(
        script: Script,
        identity: Option<&Identity>,
        clients: &str,
    ) -> Result<Self> {
        let acceptor = identity.map(|identity| acceptor(identity, clients)).transpose()?;
        let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
        let handler = Handler { script, seen: Arc::clone(&seen) };
        let (address, stop) = listen(move |stream| {
            let (acceptor, handler) = (acceptor.clone(), handler.clone());
            async move {
                match acceptor {
                    None => handler.serve(stream, None).await,
                    Some(acceptor) => {
                        let Ok(stream) = acceptor.accept(stream).await else { return };
                        let certificates = stream.get_ref().1.peer_certificates();
                        let certificate =
                            certificates.and_then(|chain| Some(chain.first()?.to_vec()));
                        handler.serve(stream, certificate).await;
                    }
                }
            }
        })?;
        Ok(Self { address, seen, _stop: stop })
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Listens on a port of this machine, in a thread of its own, until the sender is dropped.
pub(crate) fn listen<F>(
    handle: impl Fn(TcpStream) -> F + Send + 'static,
) -> Result<(SocketAddr, oneshot::Sender<()>)>
where
    F: Future<Output = ()> + 'static,
{
    let listener = StdListener::bind(("127.0.0.1", 0))?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let (stop, mut stopped) = oneshot::channel();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    thread::spawn(move || {
        let connections = tokio::task::LocalSet::new();
        connections.block_on(&runtime, async move {
            let Ok(listener) = TcpListener::from_std(listener) else { return };
            loop {
                tokio::select! {
                    _ = &mut stopped => return,
                    Ok((stream, _)) = listener.accept() => {
                        tokio::task::spawn_local(handle(stream));
                    }
                }
            }
        });
    });
    Ok((address, stop))
}

fn acceptor(identity: &Identity, clients: &str) -> Result<TlsAcceptor> {
    let provider = Arc::new(ring::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(clients.as_bytes()).context("no authority")?)?;
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
            .allow_unauthenticated()
            .build()?;
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(verifier)
        .with_single_cert(
            vec![CertificateDer::from_pem_slice(identity.certificate.as_bytes())?],
            PrivateKeyDer::from_pem_slice(identity.key.as_bytes())?,
        )?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

#[derive(Clone)]
struct Handler {
    script: Script,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Handler {
    async fn serve<S>(&self, stream: S, certificate: Option<Vec<u8>>)
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let service = service_fn(|request: Request<Incoming>| {
            let seen =
                Seen { headers: request.headers().clone(), certificate: certificate.clone() };
            self.seen.lock().unwrap_or_else(PoisonError::into_inner).push(seen);
            self.answer(request.uri().clone())
        });
        // A client that goes away in the middle is none of the server's business.
        let _ended = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
    }

    async fn answer(&self, uri: Uri) -> Result<Response<Full<Bytes>>, http::Error> {
        let refused = |code: u16, reason: &str| {
            json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason,
                "message": reason})
        };
        let (code, body) = match self.script {
            Script::Answers => (StatusCode::OK, content(&uri)),
            Script::Unauthorized => (StatusCode::UNAUTHORIZED, refused(401, "Unauthorized")),
            Script::Busy => (StatusCode::SERVICE_UNAVAILABLE, refused(503, "the server is busy")),
            Script::ComeAgain => {
                let mut body = refused(429, "TooManyRequests");
                body["details"] = json!({"retryAfterSeconds": 1});
                (StatusCode::TOO_MANY_REQUESTS, body)
            }
            Script::Silent => std::future::pending().await,
        };
        let mut answer =
            Response::builder().status(code).header("content-type", "application/json");
        if self.script == Script::ComeAgain {
            answer = answer.header("retry-after", "1");
        }
        answer.body(Full::new(body.to_string().into()))
    }
}

/// What is asked for: a version, or a list of which most are empty.
fn content(uri: &Uri) -> Value {
    let path = uri.path();
    if path == "/version" {
        return version();
    }
    let of_istio = uri.query().is_some_and(|query| query.contains("istiod"));
    let items = match path.rsplit('/').next() {
        Some("rollouts") => vec![rollout("a"), rollout("b")],
        Some("namespaces") => vec![named("default"), named("shop")],
        Some("deployments") if of_istio => vec![istiod()],
        _ => Vec::new(),
    };
    json!({"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": items})
}

fn version() -> Value {
    json!({
        "major": "1", "minor": "34", "gitVersion": "v1.34.1", "gitCommit": "", "gitTreeState": "clean",
        "buildDate": "", "goVersion": "", "compiler": "gc", "platform": "linux/amd64",
    })
}

fn named(name: &str) -> Value {
    json!({"metadata": {"name": name}})
}

fn istiod() -> Value {
    json!({
        "metadata": {"name": "istiod", "namespace": "istio-system"},
        "spec": {"template": {"spec": {"containers": [
            {"name": "discovery", "image": "docker.io/istio/pilot:1.31.0"},
        ]}}},
    })
}

fn rollout(zone: &str) -> Value {
    json!({
        "metadata": {
            "name": format!("test-{zone}"), "namespace": "default", "uid": zone, "generation": 1,
            "labels": {"app": "test", "zone-rollout.io/zone": zone},
        },
        "spec": {"replicas": 1, "strategy": {"canary": {}}, "template": {"metadata": {}, "spec": {}}},
        "status": {},
    })
}
