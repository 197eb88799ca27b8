//! From kubeconfig and flags to a client, with kubectl's manners: a missing file in `KUBECONFIG` is
//! skipped, `NO_PROXY` is compared with the API server's host, a credential plugin runs once,
//! requests name this tool, and nothing is repeated behind the user's back.

mod credentials;
mod kubeconfig;
mod proxy;

use std::env;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use http::{HeaderValue, Request, Response, header};
use kube::client::Body;
use kube::{Client, Config};
use tower::BoxError;

pub use kubeconfig::{KubeconfigNames, names as kubeconfig_names};

use super::explain;
use crate::cli::Connection;
use crate::error::Error;
use crate::render::Voice;

/// Limit for one request if `--request-timeout` says nothing. kubectl has none, and hangs.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// From this verbosity on every request is shown, as kubectl does.
const SHOW_REQUESTS: u8 = 6;

/// A cluster that was connected to.
pub struct KubeCluster {
    pub(super) client: Client,
    pub(super) server: String,
    pub(super) timeout: Option<Duration>,
    /// Where to say that something is tried again.
    pub(super) voice: Voice,
    /// The served version of Istio's API, once it was looked up.
    pub(super) istio_version: Arc<OnceLock<String>>,
    namespace: String,
}

impl KubeCluster {
    /// The namespace that is meant if none is named.
    pub fn default_namespace(&self) -> &str {
        &self.namespace
    }
}

/// Connects. No request is made yet, but a credential plugin runs.
///
/// # Errors
/// If the kubeconfig or a flag makes no sense, or the plugin fails. No error shows the kubeconfig's
/// contents.
pub async fn connect(flags: &Connection, voice: Voice) -> Result<KubeCluster, Error> {
    let timeout = request_timeout(flags)?;
    let mut config = kubeconfig::load(flags).await?;
    config.default_retry = false;
    config.headers.push((header::USER_AGENT, user_agent()));
    let server = config.cluster_url.to_string().trim_end_matches('/').to_owned();
    let namespace = flags.namespace.clone().filter(|name| !name.is_empty());
    let namespace = namespace.unwrap_or_else(|| config.default_namespace.clone());
    let shown = (flags.verbosity >= SHOW_REQUESTS).then(|| voice.clone());
    let client = client(config, &server, shown)?;
    Ok(KubeCluster { client, server, timeout, voice, istio_version: Arc::default(), namespace })
}

fn request_timeout(flags: &Connection) -> Result<Option<Duration>, Error> {
    match flags.request_timeout.as_deref() {
        None | Some("") => Ok(Some(REQUEST_TIMEOUT)),
        Some("0") => Ok(None),
        Some(text) => crate::cli::duration(text)
            .map(Some)
            .map_err(|error| Error::usage(format!("--request-timeout: {error}"))),
    }
}

fn user_agent() -> HeaderValue {
    let text = format!(
        "kubectl-zone_rollout/{} ({}/{})",
        env!("CARGO_PKG_VERSION"),
        env::consts::OS,
        env::consts::ARCH
    );
    HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static("kubectl-zone_rollout"))
}

/// kube's client without its way to run credential plugins, and with a word about each request if
/// they are to be shown.
fn client(mut config: Config, server: &str, shown: Option<Voice>) -> Result<Client, Error> {
    let token = credentials::obtain(&mut config.auth_info)?;
    let namespace = config.default_namespace.clone();
    let inner = Client::try_from(config).map_err(|error| explain::connecting(server, &error))?;
    if token.is_none() && shown.is_none() {
        return Ok(inner);
    }
    let service = tower::service_fn(move |request: Request<Body>| {
        let (inner, token, shown) = (inner.clone(), token.clone(), shown.clone());
        async move {
            let request = match token {
                Some(token) => token.authorize(request).await?,
                None => request,
            };
            send(&inner, request, shown).await.map_err(BoxError::from)
        }
    });
    Ok(Client::new(service, namespace))
}

/// Sends a request; says its method, path, status and time, but no header and no body.
async fn send(
    inner: &Client,
    request: Request<Body>,
    shown: Option<Voice>,
) -> kube::Result<Response<Body>> {
    let what = format!("{} {}", request.method(), request.uri());
    let started = Instant::now();
    let answer = inner.send(request).await;
    if let Some(voice) = shown {
        let how = answer.as_ref().map_or("failed".to_owned(), |answer| answer.status().to_string());
        voice.note(&format!("{what} {how} in {} ms", started.elapsed().as_millis()));
    }
    answer
}
