//! Reading kubeconfig files and laying the flags over them.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};

use http::Uri;
use kube::Config;
use kube::config::{
    AuthInfo, Cluster, Context, ExecInteractiveMode, KubeConfigOptions, Kubeconfig, NamedCluster,
    NamedContext,
};

use secrecy::{ExposeSecret, SecretString};

use super::proxy::Proxies;

use crate::cli::Connection;
use crate::cluster::explain;
use crate::error::Error;

/// Loads what the files say, or else the surrounding pod, under the flags.
pub(super) async fn load(flags: &Connection) -> Result<Config, Error> {
    let options = KubeConfigOptions {
        context: set(flags.context.as_ref()),
        cluster: set(flags.cluster.as_ref()),
        user: set(flags.user.as_ref()),
    };
    let mut config = match read(flags)?.or_else(|| of_flags(flags)) {
        Some(kubeconfig) => of_kubeconfig(kubeconfig, &options, flags).await?,
        None => Config::incluster().map_err(|_| no_kubeconfig())?,
    };
    override_user(&mut config.auth_info, flags)?;
    if flags.unattended {
        keep_from_asking(&mut config.auth_info);
    }
    if config.cluster_url.scheme_str() == Some("http") {
        // As client-go: nobody's credentials go over the wire in the clear.
        replace_credentials(&mut config.auth_info);
    }
    Ok(config)
}

/// What the kubeconfig has names for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KubeconfigNames {
    /// Its contexts.
    pub contexts: Vec<String>,
    /// Its clusters.
    pub clusters: Vec<String>,
    /// Its users.
    pub users: Vec<String>,
}

/// The names in the kubeconfig.
///
/// # Errors
/// If a file cannot be read.
pub fn names(flags: &Connection) -> Result<KubeconfigNames, Error> {
    let kubeconfig = read(flags)?.unwrap_or_default();
    Ok(KubeconfigNames {
        contexts: kubeconfig.contexts.into_iter().map(|named| named.name).collect(),
        clusters: kubeconfig.clusters.into_iter().map(|named| named.name).collect(),
        users: kubeconfig.auth_infos.into_iter().map(|named| named.name).collect(),
    })
}

async fn of_kubeconfig(
    mut kubeconfig: Kubeconfig,
    options: &KubeConfigOptions,
    flags: &Connection,
) -> Result<Config, Error> {
    let proxies = Proxies::new(proxy_of(&kubeconfig, options));
    for cluster in kubeconfig.clusters.iter_mut().filter_map(|named| named.cluster.as_mut()) {
        cluster.proxy_url = None;
        override_cluster(cluster, flags);
    }
    let contexts: Vec<String> =
        kubeconfig.contexts.iter().map(|context| context.name.clone()).collect();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, options)
        .await
        .map_err(|error| explain::kubeconfig(&error, &contexts))?;
    let no_url = |url: &str| Error::unexpected(format!("`{url}` is no URL of a proxy"));
    config.proxy_url = proxies
        .for_server(&config.cluster_url)
        .map(|url| url.parse::<Uri>().map_err(|_| no_url(url)))
        .transpose()?;
    Ok(config)
}

fn set(text: Option<&String>) -> Option<String> {
    text.filter(|text| !text.is_empty()).cloned()
}

fn set_path(path: Option<&PathBuf>) -> Option<&Path> {
    path.map(PathBuf::as_path).filter(|path| !path.as_os_str().is_empty())
}

/// The merged kubeconfig; nothing if there is no file at all.
fn read(flags: &Connection) -> Result<Option<Kubeconfig>, Error> {
    let read = |path: &Path| {
        Kubeconfig::read_from(path).map_err(|error| explain::kubeconfig_file(path, &error))
    };
    if let Some(path) = set_path(flags.kubeconfig.as_ref()) {
        return read(path).map(Some);
    }
    let files: Vec<PathBuf> = match env::var_os("KUBECONFIG").filter(|list| !list.is_empty()) {
        Some(list) => env::split_paths(&list).filter(|path| !path.as_os_str().is_empty()).collect(),
        None => env::home_dir().map(|home| home.join(".kube/config")).into_iter().collect(),
    };
    let mut merged: Option<Kubeconfig> = None;
    for path in files.iter().filter(|path| path.exists()) {
        let next = read(path)?;
        merged = Some(match merged {
            None => next,
            Some(merged) => {
                merged.merge(next).map_err(|error| explain::kubeconfig_file(path, &error))?
            }
        });
    }
    Ok(merged)
}

/// Without any file, `--server` alone names a cluster.
fn of_flags(flags: &Connection) -> Option<Kubeconfig> {
    set(flags.server.as_ref())?;
    let name = "flags".to_owned();
    let context = Context { cluster: name.clone(), ..Context::default() };
    Some(Kubeconfig {
        clusters: vec![NamedCluster {
            name: name.clone(),
            cluster: Some(Cluster::default()),
            ..NamedCluster::default()
        }],
        contexts: vec![NamedContext {
            name: name.clone(),
            context: Some(context),
            ..NamedContext::default()
        }],
        current_context: Some(name),
        ..Kubeconfig::default()
    })
}

fn no_kubeconfig() -> Error {
    Error::unexpected("there is no kubeconfig, and this is not a pod")
        .because("neither $KUBECONFIG nor ~/.kube/config names a file that exists")
        .hint("see which one kubectl uses: kubectl config view")
}

/// `proxy-url` of the cluster that will be used.
fn proxy_of(kubeconfig: &Kubeconfig, options: &KubeConfigOptions) -> Option<String> {
    let context = options.context.as_ref().or(kubeconfig.current_context.as_ref());
    let of_context = context.and_then(|name| {
        let named = kubeconfig.contexts.iter().find(|context| context.name == *name)?;
        Some(named.context.as_ref()?.cluster.clone())
    });
    let name = options.cluster.clone().or(of_context)?;
    let named = kubeconfig.clusters.iter().find(|cluster| cluster.name == name)?;
    named.cluster.as_ref()?.proxy_url.clone().filter(|url| !url.is_empty())
}

fn override_cluster(cluster: &mut Cluster, flags: &Connection) {
    if let Some(server) = set(flags.server.as_ref()) {
        cluster.server = Some(server);
    }
    if let Some(path) = set_path(flags.certificate_authority.as_ref()) {
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

fn override_user(user: &mut AuthInfo, flags: &Connection) -> Result<(), Error> {
    let given = |secret: &&SecretString| !secret.expose_secret().is_empty();
    if let Some(token) = flags.token.as_ref().filter(given) {
        replace_credentials(user);
        user.token = Some(token.clone());
    }
    if let (Some(name), Some(password)) = (set(flags.username.as_ref()), &flags.password) {
        replace_credentials(user);
        (user.username, user.password) = (Some(name), Some(password.clone()));
    }
    if let Some(path) = set_path(flags.client_certificate.as_ref()) {
        user.client_certificate = Some(path.display().to_string());
        user.client_certificate_data = None;
    }
    if let Some(path) = set_path(flags.client_key.as_ref()) {
        (user.client_key, user.client_key_data) = (Some(path.display().to_string()), None);
    }
    impersonate(user, flags);
    let more = user.impersonate_uid.is_some()
        || user.impersonate_groups.is_some()
        || user.impersonate_user_extra.is_some();
    if more && user.impersonate.is_none() {
        return Err(Error::usage("a group, uid or extra field is impersonated without a user")
            .hint("name the user as well: --as USER"));
    }
    Ok(())
}

/// A plugin that must ask is not run, and the others are told not to.
fn keep_from_asking(user: &mut AuthInfo) {
    user.exec.take_if(|plugin| plugin.interactive_mode == Some(ExecInteractiveMode::Always));
    if let Some(plugin) = &mut user.exec {
        plugin.interactive_mode = Some(ExecInteractiveMode::Never);
    }
}

/// Credentials on the command line replace all others; who is impersonated stays.
fn replace_credentials(user: &mut AuthInfo) {
    *user = AuthInfo {
        impersonate: user.impersonate.take(),
        impersonate_groups: user.impersonate_groups.take(),
        impersonate_uid: user.impersonate_uid.take(),
        impersonate_user_extra: user.impersonate_user_extra.take(),
        ..AuthInfo::default()
    };
}

fn impersonate(user: &mut AuthInfo, flags: &Connection) {
    if let Some(name) = set(flags.impersonate.as_ref()) {
        user.impersonate = Some(name);
    }
    if !flags.impersonate_group.is_empty() {
        user.impersonate_groups = Some(flags.impersonate_group.clone());
    }
    if let Some(uid) = set(flags.impersonate_uid.as_ref()) {
        user.impersonate_uid = Some(uid);
    }
    if !flags.impersonate_extra.is_empty() {
        let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (key, value) in &flags.impersonate_extra {
            extra.entry(key.clone()).or_default().push(value.clone());
        }
        user.impersonate_user_extra = Some(extra.into_iter().collect());
    }
}
