//! A proxy between a program and the API server that breaks requests and answers as it is told. It
//! speaks plain HTTP and forwards everything as the administrator, so nothing is hidden from it.

mod stream;

use std::convert::Infallible;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use http::request::Parts;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::Client;
use kube::client::Body;
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::namespace::Namespace;
use stream::Streamed;

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The server answers with this status; of 429 and 503 optionally with `Retry-After`, in seconds.
    Answer(u16, Option<u32>),
    /// The connection ends before the request is forwarded.
    Drop,
    /// The request is forwarded, and the connection ends without an answer.
    LoseAnswer,
    /// The request is forwarded, and the answer ends in its middle.
    Cut,
    /// Each piece of the answer is this late.
    Slow(Duration),
    /// The request is never answered.
    Hang,
    /// A watch ends, as it does when the server restarts.
    EndWatch,
    /// A watch goes on without a word.
    Silence,
    /// A watch tells that its resource version is too old.
    Gone,
}

/// Which requests go wrong.
#[derive(Debug, Clone)]
pub struct When {
    method: Option<Method>,
    watch: Option<bool>,
    path: String,
}

impl When {
    /// Changes of objects whose path contains this.
    pub fn patch(path: &str) -> Self {
        Self { method: Some(Method::PATCH), watch: None, path: path.to_owned() }
    }

    /// Lists and reads of objects whose path contains this.
    pub fn read(path: &str) -> Self {
        Self { method: Some(Method::GET), watch: Some(false), path: path.to_owned() }
    }

    /// Watches of objects whose path contains this; also those that are under way.
    pub fn watch(path: &str) -> Self {
        Self { method: Some(Method::GET), watch: Some(true), path: path.to_owned() }
    }

    /// Everything.
    pub fn any() -> Self {
        Self { method: None, watch: None, path: String::new() }
    }

    fn is(&self, request: &Asked) -> bool {
        self.method.as_ref().is_none_or(|method| *method == request.method)
            && self.watch.is_none_or(|watch| watch == request.is_watch)
            && request.path.contains(&self.path)
    }
}

/// A request, as far as rules look at it.
#[derive(Debug, Clone)]
struct Asked {
    method: Method,
    path: String,
    is_watch: bool,
}

impl Asked {
    fn of(parts: &Parts) -> Self {
        let query = parts.uri.query().unwrap_or_default();
        Self {
            method: parts.method.clone(),
            path: parts.uri.path().to_owned(),
            is_watch: query.split('&').any(|pair| pair == "watch=true"),
        }
    }
}

struct Rule {
    when: When,
    fault: Fault,
    left: usize,
    met: usize,
}

#[derive(Clone)]
struct Rules {
    all: Arc<Mutex<Vec<Rule>>>,
    changed: watch::Sender<()>,
}

impl Rules {
    /// The fault that this request meets, among those that `fits`; it is used up.
    fn take(&self, request: &Asked, fits: impl Fn(Fault) -> bool) -> Option<Fault> {
        let mut rules = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let rule = rules
            .iter_mut()
            .find(|rule| rule.left > 0 && fits(rule.fault) && rule.when.is(request))?;
        rule.left -= 1;
        rule.met += 1;
        Some(rule.fault)
    }
}

/// The proxy. It ends when it goes out of scope, and all connections with it.
pub struct Faults {
    kubeconfig: PathBuf,
    rules: Rules,
    server: JoinHandle<()>,
}

impl Namespace {
    /// Starts a proxy in front of the API server. Nothing goes wrong until it is told to.
    ///
    /// # Errors
    ///
    /// When no port or file can be had.
    pub async fn faults(&self) -> Result<Faults> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let kubeconfig = self.run.config(&format!("faults-{}.kubeconfig", self.name()));
        write_kubeconfig(&kubeconfig, listener.local_addr()?, self.name())?;
        let rules = Rules { all: Arc::default(), changed: watch::Sender::new(()) };
        let proxy = Proxy { client: self.client.clone(), rules: rules.clone() };
        let server = tokio::spawn(proxy.listen(listener));
        Ok(Faults { kubeconfig, rules, server })
    }
}

fn write_kubeconfig(path: &Path, address: SocketAddr, namespace: &str) -> Result<()> {
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "lab", "cluster": {"server": format!("http://{address}")}}],
        "users": [],
        "contexts": [{"name": "lab", "context": {"cluster": "lab", "namespace": namespace}}],
        "current-context": "lab",
    });
    Ok(fs::write(path, serde_json::to_vec_pretty(&config)?)?)
}

impl Faults {
    /// The kubeconfig that leads through it.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Lets the next `times` requests like this go wrong.
    pub fn add(&self, when: When, fault: Fault, times: usize) {
        let rule = Rule { when, fault, left: times, met: 0 };
        self.rules.all.lock().unwrap_or_else(PoisonError::into_inner).push(rule);
        self.rules.changed.send_replace(());
    }

    /// Lets everything go right again.
    pub fn clear(&self) {
        for rule in self.rules.all.lock().unwrap_or_else(PoisonError::into_inner).iter_mut() {
            rule.left = 0;
        }
        self.rules.changed.send_replace(());
    }

    /// How many requests have gone wrong.
    pub fn met(&self) -> usize {
        let rules = self.rules.all.lock().unwrap_or_else(PoisonError::into_inner);
        rules.iter().map(|rule| rule.met).sum()
    }
}

impl Drop for Faults {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// Why a connection ends without an answer.
#[derive(Debug)]
struct Broken;

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("broken on purpose")
    }
}

impl std::error::Error for Broken {}

#[derive(Clone)]
struct Proxy {
    client: Client,
    rules: Rules,
}

impl Proxy {
    async fn listen(self, listener: TcpListener) {
        let mut connections = tokio::task::JoinSet::new();
        loop {
            tokio::select! {
                Ok((stream, _)) = listener.accept() => {
                    connections.spawn(self.clone().serve(stream));
                }
                Some(_) = connections.join_next() => {}
            }
        }
    }

    async fn serve(self, stream: TcpStream) {
        let service = service_fn(|request| self.answer(request));
        // Connections are meant to break.
        let _ended = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
    }

    async fn answer(&self, request: Request<Incoming>) -> Result<Response<Streamed>, Broken> {
        let (parts, body) = request.into_parts();
        let asked = Asked::of(&parts);
        let before = |fault| matches!(fault, Fault::Answer(..) | Fault::Drop | Fault::Hang);
        match self.rules.take(&asked, before) {
            Some(Fault::Answer(code, retry)) => return Ok(refusal(code, retry)),
            Some(Fault::Drop) => return Err(Broken),
            Some(_) => return std::future::pending().await,
            None => {}
        }
        let body = body.collect().await.map_err(|_| Broken)?.to_bytes();
        let answer = self.forward(parts, body).await?;
        match self.rules.take(&asked, |fault| fault == Fault::LoseAnswer) {
            Some(_) => Err(Broken),
            None => Ok(answer.map(|body| Streamed::new(body, asked, self.rules.clone()))),
        }
    }

    async fn forward(&self, mut parts: Parts, body: Bytes) -> Result<Response<Body>, Broken> {
        parts.headers.remove(header::HOST);
        let request = Request::from_parts(parts, Body::from(body.to_vec()));
        let mut answer = self.client.send(request).await.map_err(|_| Broken)?;
        // The client has decompressed it.
        for name in [header::CONTENT_ENCODING, header::CONTENT_LENGTH] {
            answer.headers_mut().remove(name);
        }
        Ok(answer)
    }
}

fn refusal(code: u16, retry: Option<u32>) -> Response<Streamed> {
    let reason = StatusCode::from_u16(code).ok().and_then(|status| status.canonical_reason());
    let body = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
        "message": format!("{} on purpose", reason.unwrap_or_default().to_lowercase()),
        "details": {"retryAfterSeconds": retry.unwrap_or(0)},
    });
    let body: Full<Bytes> = Full::new(body.to_string().into());
    let mut answer = Response::new(Streamed::whole(body));
    *answer.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::IM_A_TEAPOT);
    if let Some(seconds) = retry {
        answer.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    answer
}

impl From<Infallible> for Broken {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}
