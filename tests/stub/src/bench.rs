//! What one case needs: a server, a proxy, and a home with kubeconfigs, certificates and plugins.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;

use crate::SECRET;
use crate::authority::{Authority, Identity, self_signed};
use crate::observed::Observed;
use crate::proxy::Proxy;
use crate::server::{Running, Script};

/// The name in certificates that are not for 127.0.0.1.
pub(crate) const NAME: &str = "api.stub.test";

/// What the server is like.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Server {
    /// It answers, and its certificate is in order.
    #[default]
    Proper,
    /// Its certificate is for another name.
    Named,
    /// Its certificate was issued by an authority that the kubeconfig does not know.
    Unknown,
    /// Its certificate has expired.
    Expired,
    /// Its certificate is an authority's own.
    SelfSigned,
    /// It speaks plain HTTP.
    Plain,
    /// It answers 401.
    Unauthorized,
    /// It answers 503.
    Busy,
    /// It answers 429 and asks to come again after a second.
    ComeAgain,
    /// It never answers.
    Silent,
}

/// How a user proves who it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum User {
    /// Not at all.
    Nobody,
    /// By a token.
    Token,
    /// By a file with a token.
    TokenFile,
    /// By a certificate.
    Certificate,
    /// By a plugin that gives a token.
    Plugin,
    /// By a plugin that gives a token which expires in an hour.
    ExpiringPlugin,
    /// By a plugin that gives a certificate.
    CertificatePlugin,
    /// By a plugin that prints a token and fails.
    FailingPlugin,
    /// By a plugin that is not installed.
    AbsentPlugin,
    /// By a plugin that needs a terminal.
    InteractivePlugin,
}

/// What is added to a command.
#[derive(Debug, Clone, Default)]
pub struct Invocation {
    /// Flags.
    pub flags: Vec<String>,
    /// Environment, besides `HOME` and `PATH`.
    pub environment: Vec<(String, String)>,
}

/// Everything that one case needs. All of it goes away with it.
pub struct Bench {
    home: TempDir,
    authority: Authority,
    server: Running,
    proxy: Proxy,
    issued: Vec<(String, Vec<u8>)>,
    scheme: &'static str,
}

impl Bench {
    /// Starts a server and a proxy.
    ///
    /// # Errors
    /// When a port, a file or a certificate cannot be had.
    pub fn new(kind: Server) -> Result<Self> {
        let home = tempfile::tempdir()?;
        let authority = Authority::new("stub")?;
        let identity = match kind {
            Server::Plain => None,
            Server::Named => Some(authority.issue("server", &[NAME])?),
            Server::Unknown => Some(Authority::new("other")?.issue("server", &["127.0.0.1"])?),
            Server::Expired => Some(authority.issue_until("server", &["127.0.0.1"], 2020)?),
            Server::SelfSigned => Some(self_signed(&["127.0.0.1"])?),
            _ => Some(authority.issue("server", &["127.0.0.1", NAME])?),
        };
        let script = match kind {
            Server::Unauthorized => Script::Unauthorized,
            Server::Busy => Script::Busy,
            Server::ComeAgain => Script::ComeAgain,
            Server::Silent => Script::Silent,
            _ => Script::Answers,
        };
        let trusted = match &identity {
            Some(own) if kind == Server::SelfSigned => own.certificate.clone(),
            _ => authority.pem.clone(),
        };
        fs::write(home.path().join("ca.crt"), trusted)?;
        let server = Running::start(script, identity.as_ref(), &authority.pem)?;
        let proxy = Proxy::start(server.address)?;
        let scheme = if identity.is_some() { "https" } else { "http" };
        Ok(Self { home, authority, server, proxy, issued: Vec::new(), scheme })
    }

    /// A home without anything of the machine's.
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// The server's URL, by its address.
    pub fn url(&self) -> String {
        format!("{}://{}", self.scheme, self.server.address)
    }

    /// The server's URL, by a name that only the proxy knows.
    pub fn named_url(&self) -> String {
        format!("{}://{NAME}:{}", self.scheme, self.server.address.port())
    }

    /// The proxy's URL.
    pub fn proxy(&self) -> String {
        format!("http://{}", self.proxy.address)
    }

    /// Path of a file in the home.
    pub fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// A kubeconfig with one context, `main`, for a user of this name.
    ///
    /// # Errors
    /// When a file or a certificate cannot be written.
    pub fn kubeconfig(&mut self, name: &str, user: User) -> Result<Value> {
        let user = self.user(name, user)?;
        Ok(json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "main",
            "contexts": [{"name": "main", "context": {"cluster": "main", "user": name}}],
            "clusters": [{"name": "main", "cluster": {
                "server": self.url(),
                "certificate-authority": self.path("ca.crt"),
            }}],
            "users": [{"name": name, "user": user}],
        }))
    }

    /// Writes a kubeconfig into the home; returns its path as text.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, name: &str, kubeconfig: &Value) -> Result<String> {
        let path = self.path(name);
        fs::write(&path, serde_json::to_vec_pretty(kubeconfig)?)?;
        path.into_os_string().into_string().ok().context("a path that is not UTF-8")
    }

    /// Issues a client certificate; returns the paths of certificate and key.
    ///
    /// # Errors
    /// When it cannot be issued or written.
    pub fn certificate(&mut self, name: &str) -> Result<(PathBuf, PathBuf)> {
        let identity = self.issue(name)?;
        let paths = (self.path(&format!("{name}.crt")), self.path(&format!("{name}.key")));
        fs::write(&paths.0, identity.certificate)?;
        fs::write(&paths.1, identity.key)?;
        Ok(paths)
    }

    fn issue(&mut self, name: &str) -> Result<Identity> {
        let identity = self.authority.issue(name, &[])?;
        let der = CertificateDer::from_pem_slice(identity.certificate.as_bytes())?.to_vec();
        self.issued.push((name.to_owned(), der));
        Ok(identity)
    }

    fn user(&mut self, name: &str, user: User) -> Result<Value> {
        let token = format!("{SECRET}-{name}");
        let gives = |status: Value| json!({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status});
        Ok(match user {
            User::Nobody => json!({}),
            User::Token => json!({"token": token}),
            User::TokenFile => {
                fs::write(self.path("token"), token)?;
                json!({"tokenFile": self.path("token")})
            }
            User::Certificate => {
                let (certificate, key) = self.certificate(name)?;
                json!({"client-certificate": certificate, "client-key": key})
            }
            User::Plugin => self.plugin(&gives(json!({"token": token})), "exit 0", "Never")?,
            User::ExpiringPlugin => {
                let status = json!({"token": token, "expirationTimestamp": "2099-01-01T00:00:00Z"});
                self.plugin(&gives(status), "exit 0", "IfAvailable")?
            }
            User::CertificatePlugin => {
                let identity = self.issue(name)?;
                let status = json!({
                    "clientCertificateData": identity.certificate, "clientKeyData": identity.key,
                });
                self.plugin(&gives(status), "exit 0", "Never")?
            }
            User::FailingPlugin => {
                let status = json!({"token": token});
                self.plugin(&gives(status), "echo log in first >&2; exit 3", "Never")?
            }
            User::AbsentPlugin => json!({"exec": {
                "apiVersion": "client.authentication.k8s.io/v1",
                "command": "absent-plugin",
                "installHint": "get it from the platform team",
                "interactiveMode": "Never",
            }}),
            User::InteractivePlugin => {
                self.plugin(&gives(json!({"token": token})), "exit 0", "Always")?
            }
        })
    }

    fn plugin(&self, prints: &Value, then: &str, mode: &str) -> Result<Value> {
        fs::write(self.path("credential.json"), prints.to_string())?;
        let home = self.home.path().display();
        let script = format!("echo run >> {home}/runs; cat {home}/credential.json; {then}");
        Ok(json!({"exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": "sh",
            "args": ["-c", script],
            "interactiveMode": mode,
        }}))
    }

    /// What the other end saw of a program that ended with this code.
    pub fn observed(&self, code: Option<i32>) -> Observed {
        let runs = fs::read_to_string(self.path("runs")).unwrap_or_default().lines().count();
        Observed::new(code, &self.server.seen(), &self.proxy.tunnels(), &self.issued, runs)
    }
}
