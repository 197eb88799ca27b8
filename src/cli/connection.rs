//! kubectl's connection flags. kubectl accepts none of them before a plugin's name, so all of them
//! are ours, and work anywhere after it. An empty value means "not set", as in kubectl.

use std::path::PathBuf;

use clap::Args;
use secrecy::SecretString;

use super::values;

/// How to reach the cluster.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Connection options")]
pub struct Connection {
    /// Namespace; default: the context's, else `default`
    #[arg(short, long, global = true, value_name = "NAME")]
    pub namespace: Option<String>,
    /// Context in the kubeconfig
    #[arg(long, global = true, value_name = "NAME")]
    pub context: Option<String>,
    /// Path of a kubeconfig file; default: the files in $KUBECONFIG, else ~/.kube/config
    #[arg(long, global = true, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Cluster in the kubeconfig
    #[arg(long, global = true, value_name = "NAME", hide_short_help = true)]
    pub cluster: Option<String>,
    /// User in the kubeconfig
    #[arg(long, global = true, value_name = "NAME", hide_short_help = true)]
    pub user: Option<String>,
    /// Address of the API server
    #[arg(short = 's', long, global = true, value_name = "URL", hide_short_help = true)]
    pub server: Option<String>,
    /// Name to check the server's certificate against
    #[arg(long, global = true, value_name = "NAME", hide_short_help = true)]
    pub tls_server_name: Option<String>,
    /// Do not check the server's certificate
    #[arg(long, global = true, hide_short_help = true)]
    pub insecure_skip_tls_verify: bool,
    /// Certificate authority file
    #[arg(long, global = true, value_name = "FILE", hide_short_help = true)]
    pub certificate_authority: Option<PathBuf>,
    /// Client certificate file
    #[arg(long, global = true, value_name = "FILE", hide_short_help = true)]
    pub client_certificate: Option<PathBuf>,
    /// Client key file
    #[arg(long, global = true, value_name = "FILE", hide_short_help = true)]
    pub client_key: Option<PathBuf>,
    /// Bearer token
    #[arg(long, global = true, value_name = "TOKEN", hide_short_help = true)]
    pub token: Option<SecretString>,
    /// Name for basic authentication
    #[arg(long, global = true, value_name = "NAME", hide = true)]
    pub username: Option<String>,
    /// Password for basic authentication
    #[arg(long, global = true, value_name = "PASSWORD", hide = true)]
    pub password: Option<SecretString>,
    /// User to impersonate
    #[arg(long = "as", global = true, value_name = "NAME", hide_short_help = true)]
    pub impersonate: Option<String>,
    /// Group to impersonate; may be repeated
    #[arg(long = "as-group", global = true, value_name = "NAME", hide_short_help = true)]
    pub impersonate_group: Vec<String>,
    /// UID to impersonate
    #[arg(long = "as-uid", global = true, value_name = "UID", hide_short_help = true)]
    pub impersonate_uid: Option<String>,
    /// Extra field of the user to impersonate, KEY=VALUE; may be repeated
    #[arg(
        long = "as-user-extra",
        global = true,
        value_name = "KEY=VALUE",
        value_parser = values::pair,
        hide_short_help = true
    )]
    pub impersonate_extra: Vec<(String, String)>,
    /// Limit for one request, such as 10s; 0 means none
    #[arg(long, global = true, value_name = "DURATION", hide_short_help = true)]
    pub request_timeout: Option<String>,
    /// Do not ask for compressed answers
    #[arg(long, global = true, hide_short_help = true)]
    pub disable_compression: bool,
    /// Accepted for kubectl's sake: nothing is cached
    #[arg(long, global = true, value_name = "DIR", hide = true)]
    pub cache_dir: Option<PathBuf>,
    /// What to say about requests: 6 and above shows each one
    #[arg(
        short,
        long = "v",
        global = true,
        value_name = "LEVEL",
        default_value_t = 0,
        hide_default_value = true,
        hide_short_help = true
    )]
    pub verbosity: u8,
    /// Nobody can be asked for a password or shown where to log in, as while a word is completed.
    #[arg(skip)]
    pub unattended: bool,
}
