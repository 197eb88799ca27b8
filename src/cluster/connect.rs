//! From kubeconfig and flags to a client, with kubectl's manners: a missing file in `KUBECONFIG` is
//! skipped, `NO_PROXY` is compared with the API server's host, an exec plugin runs once, requests
//! name this tool, and nothing is repeated behind the user's back.

use std::env;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http::{HeaderValue, Uri, header};
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::rt::TokioExecutor;
use kube::client::{ClientBuilder, ConfigExt};
use kube::config::{AuthInfo, Cluster, KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tower::ServiceBuilder;

use super::explain;
use crate::cli::Connection;
use crate::error::Error;

/// Limit for one request if `--request-timeout` says nothing. kubectl has none, and hangs.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// A cluster that was connected to.
pub struct KubeCluster {
    pub(super) client: Client,
    pub(super) server: String,
    pub(super) timeout: Option<Duration>,
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

/// Connects. No request is made yet, but an exec credential plugin runs.
///
/// # Errors
/// If the kubeconfig or a flag makes no sense. No error shows the kubeconfig's contents.
pub async fn connect(flags: &Connection) -> Result<KubeCluster, Error> {
    let mut config = load(flags).await?;
    apply_identity(&mut config.auth_info, flags);
    config.default_retry = false;
    config.headers.push((header::USER_AGENT, user_agent()));
    let timeout = match &flags.request_timeout {
        None => Some(REQUEST_TIMEOUT),
        Some(text) if text == "0" || text.is_empty() => None,
        Some(text) => Some(
            crate::cli::duration(text)
                .map_err(|error| Error::usage(format!("--request-timeout: {error}")))?,
        ),
    };
    let server = config.cluster_url.to_string().trim_end_matches('/').to_owned();
    let namespace = flags.namespace.clone().filter(|name| !name.is_empty());
    let namespace = namespace.unwrap_or_else(|| config.default_namespace.clone());
    let client = client(config).map_err(|error| explain::connecting(&server, &error))?;
    Ok(KubeCluster { client, server, timeout, istio_version: Arc::default(), namespace })
}

async fn load(flags: &Connection) -> Result<Config, Error> {
    let options = KubeConfigOptions {
        context: set(flags.context.as_ref()),
        cluster: set(flags.cluster.as_ref()),
        user: set(flags.user.as_ref()),
    };
    let Some(mut kubeconfig) = read_kubeconfig(flags)? else {
        return Config::incluster().map_err(|_| no_kubeconfig());
    };
    // kube compares NO_PROXY with the proxy's own host, so the proxy is chosen here instead.
    let chosen_proxy = proxy(&kubeconfig, &options);
    for cluster in kubeconfig.clusters.iter_mut().filter_map(|named| named.cluster.as_mut()) {
        cluster.proxy_url = None;
        override_cluster(cluster, flags);
    }
    let contexts: Vec<String> =
        kubeconfig.contexts.iter().map(|context| context.name.clone()).collect();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .map_err(|error| explain::kubeconfig(&error, &contexts))?;
    let server_host = config.cluster_url.host().unwrap_or_default().to_owned();
    config.proxy_url = chosen_proxy
        .for_host(&server_host)
        .map(|url| {
            url.parse::<Uri>().map_err(|_| Error::unexpected(format!("`{url}` is no proxy URL")))
        })
        .transpose()?;
    Ok(config)
}

fn set(text: Option<&String>) -> Option<String> {
    text.filter(|text| !text.is_empty()).cloned()
}

/// The merged kubeconfig; nothing if there is no file at all.
fn read_kubeconfig(flags: &Connection) -> Result<Option<Kubeconfig>, Error> {
    if let Some(path) = flags.kubeconfig.as_ref().filter(|path| !path.as_os_str().is_empty()) {
        return Kubeconfig::read_from(path)
            .map(Some)
            .map_err(|error| explain::kubeconfig_file(path, &error));
    }
    let files: Vec<PathBuf> = match env::var_os("KUBECONFIG").filter(|list| !list.is_empty()) {
        Some(list) => env::split_paths(&list).filter(|path| !path.as_os_str().is_empty()).collect(),
        None => env::home_dir().map(|home| home.join(".kube/config")).into_iter().collect(),
    };
    let mut merged: Option<Kubeconfig> = None;
    for path in files.iter().filter(|path| path.exists()) {
        let next =
            Kubeconfig::read_from(path).map_err(|error| explain::kubeconfig_file(path, &error))?;
        merged = Some(match merged {
            None => next,
            Some(merged) => {
                merged.merge(next).map_err(|error| explain::kubeconfig_file(path, &error))?
            }
        });
    }
    Ok(merged)
}

fn no_kubeconfig() -> Error {
    Error::unexpected("there is no kubeconfig, and this is not a pod")
        .because("neither $KUBECONFIG nor ~/.kube/config names a file that exists")
        .hint("see which one kubectl uses: kubectl config view")
}

/// A proxy from the kubeconfig counts always, one from the environment unless `NO_PROXY` excludes
/// the server.
struct Proxy {
    configured: Option<String>,
    from_environment: Option<String>,
    exceptions: String,
}

fn proxy(kubeconfig: &Kubeconfig, options: &KubeConfigOptions) -> Proxy {
    let context = options.context.as_ref().or(kubeconfig.current_context.as_ref());
    let of_context = context.and_then(|name| {
        let named = kubeconfig.contexts.iter().find(|context| context.name == *name)?;
        Some(named.context.as_ref()?.cluster.clone())
    });
    let cluster = options.cluster.clone().or(of_context);
    let configured = cluster.and_then(|name| {
        let named = kubeconfig.clusters.iter().find(|cluster| cluster.name == name)?;
        named.cluster.as_ref()?.proxy_url.clone().filter(|url| !url.is_empty())
    });
    let variable = |upper: &str, lower: &str| {
        [upper, lower]
            .into_iter()
            .find_map(|name| env::var(name).ok().filter(|value| !value.is_empty()))
    };
    Proxy {
        configured,
        from_environment: variable("HTTPS_PROXY", "https_proxy"),
        exceptions: variable("NO_PROXY", "no_proxy").unwrap_or_default(),
    }
}

impl Proxy {
    fn for_host(&self, host: &str) -> Option<&str> {
        let environment = self.from_environment.as_deref().filter(|_| !self.excepts(host));
        self.configured.as_deref().or(environment)
    }

    /// As Go's `httpproxy` reads `NO_PROXY`: names with all their subdomains, addresses, `*`.
    fn excepts(&self, host: &str) -> bool {
        let host = host.trim_matches(['[', ']']);
        self.exceptions.split(',').map(str::trim).filter(|entry| !entry.is_empty()).any(|entry| {
            let name = entry.trim_start_matches('.');
            let suffix = host.strip_suffix(name).is_some_and(|rest| rest.ends_with('.'));
            entry == "*" || host == name || suffix || in_network(host, entry)
        })
    }
}

/// True if an address lies in a network written as `10.0.0.0/8`.
fn in_network(host: &str, network: &str) -> bool {
    let parsed = || {
        let (base, bits) = network.split_once('/')?;
        let base: std::net::Ipv4Addr = base.parse().ok()?;
        let host: std::net::Ipv4Addr = host.parse().ok()?;
        let bits: u32 = bits.parse().ok().filter(|bits| *bits <= 32)?;
        let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
        Some(u32::from(base) & mask == u32::from(host) & mask)
    };
    parsed().unwrap_or(false)
}

fn override_cluster(cluster: &mut Cluster, flags: &Connection) {
    if let Some(server) = set(flags.server.as_ref()) {
        cluster.server = Some(server);
    }
    if let Some(path) = &flags.certificate_authority {
        cluster.certificate_authority = Some(path.display().to_string());
        cluster.certificate_authority_data = None;
    }
    if let Some(name) = set(flags.tls_server_name.as_ref()) {
        cluster.tls_server_name = Some(name);
    }
    if flags.insecure_skip_tls_verify {
        cluster.insecure_skip_tls_verify = Some(true);
    }
    if flags.disable_compression {
        cluster.disable_compression = Some(true);
    }
}

fn apply_identity(auth: &mut AuthInfo, flags: &Connection) {
    if let Some(token) = set(flags.token.as_ref()) {
        // As in client-go, a token on the command line replaces every other way to authenticate.
        *auth = AuthInfo { token: Some(token.into()), ..AuthInfo::default() };
    }
    let path = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
    if let Some(certificate) = path(&flags.client_certificate) {
        (auth.client_certificate, auth.client_certificate_data) = (Some(certificate), None);
    }
    if let Some(key) = path(&flags.client_key) {
        (auth.client_key, auth.client_key_data) = (Some(key), None);
    }
    if let Some(user) = set(flags.impersonate.as_ref()) {
        auth.impersonate = Some(user);
    }
    if !flags.impersonate_group.is_empty() {
        auth.impersonate_groups = Some(flags.impersonate_group.clone());
    }
    if let Some(uid) = set(flags.impersonate_uid.as_ref()) {
        auth.impersonate_uid = Some(uid);
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

/// kube's own stack runs an exec plugin three times. Ours runs it once; a plugin that returns a
/// client certificate, and proxies, need kube's.
fn client(config: Config) -> kube::Result<Client> {
    let exec = config.auth_info.exec.is_some();
    if config.proxy_url.is_some() || !exec {
        return ClientBuilder::try_from(config).map(ClientBuilder::build);
    }
    let mut tls = config.clone();
    tls.auth_info.exec = None;
    let https = tls.rustls_https_connector()?;
    let http: HttpClient<_, kube::client::Body> =
        HttpClient::builder(TokioExecutor::new()).build(https);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(tower::BoxError::from)
        .service(http);
    Ok(Client::new(service, config.default_namespace))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_proxy_is_compared_with_the_server() {
        let proxy = |exceptions: &str| Proxy {
            configured: None,
            from_environment: Some("http://proxy:3128".to_owned()),
            exceptions: exceptions.to_owned(),
        };
        for (exceptions, host, used) in [
            ("", "api.example.com", true),
            ("api.example.com", "api.example.com", false),
            (".example.com", "api.example.com", false),
            ("example.com,", "api.example.com", false),
            ("ample.com", "api.example.com", true),
            ("localhost,127.0.0.1,", "127.0.0.1", false),
            ("10.0.0.0/8", "10.1.2.3", false),
            ("10.0.0.0/8", "11.1.2.3", true),
            ("*", "anything", false),
        ] {
            assert_eq!(proxy(exceptions).for_host(host).is_some(), used, "{exceptions} {host}");
        }
    }

    #[test]
    fn a_configured_proxy_ignores_no_proxy() {
        let proxy = Proxy {
            configured: Some("http://corporate:8080".to_owned()),
            from_environment: None,
            exceptions: "*".to_owned(),
        };
        assert_eq!(proxy.for_host("api"), Some("http://corporate:8080"));
    }
}
