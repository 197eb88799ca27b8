//! Credential plugins (`users[].user.exec`), run once for an invocation and again only when what they
//! gave expires; kube runs them three times to begin with. Their standard output is a secret.

use std::io::{self, IsTerminal};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::header::AUTHORIZATION;
use http::{HeaderValue, Request};
use jiff::{SignedDuration, Timestamp};
use kube::client::Body;
use kube::config::{AuthInfo, ExecAuthCluster, ExecConfig, ExecInteractiveMode};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;
use tower::BoxError;

use crate::error::Error;

/// How long before its end a token is replaced.
const EARLY: SignedDuration = SignedDuration::from_mins(1);

/// What is sent to a plugin in `KUBERNETES_EXEC_INFO`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Asked<'a> {
    api_version: &'a str,
    kind: &'static str,
    spec: AskedSpec<'a>,
}

#[derive(Serialize)]
struct AskedSpec<'a> {
    interactive: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<&'a ExecAuthCluster>,
}

/// What a plugin prints (`client.authentication.k8s.io`, kind `ExecCredential`).
#[derive(Deserialize)]
struct Printed {
    status: Option<Credential>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Credential {
    token: Option<SecretString>,
    client_certificate_data: Option<String>,
    client_key_data: Option<SecretString>,
    expiration_timestamp: Option<Timestamp>,
}

/// A token that is renewed before it expires.
#[derive(Clone)]
pub(super) struct Renewed {
    plugin: Arc<ExecConfig>,
    token: Arc<Mutex<(SecretString, Timestamp)>>,
}

/// Runs the credential plugin, if the user has one and nothing that goes before it, and puts what it
/// gave in its place. A token that expires is returned instead, to be renewed.
///
/// # Errors
/// If the plugin cannot be run, fails, or prints something else.
pub(super) fn obtain(user: &mut AuthInfo) -> Result<Option<Renewed>, Error> {
    let given = user.token.is_some() || user.token_file.is_some() || user.password.is_some();
    let Some(plugin) = user.exec.take().filter(|_| !given) else { return Ok(None) };
    let credential = run(&plugin)?;
    if let (Some(certificate), Some(key)) =
        (credential.client_certificate_data, credential.client_key_data)
    {
        user.client_certificate_data = Some(BASE64_STANDARD.encode(certificate));
        user.client_key_data = Some(BASE64_STANDARD.encode(key.expose_secret()).into());
    }
    let Some(token) = credential.token else { return Ok(None) };
    let Some(end) = credential.expiration_timestamp else {
        user.token = Some(token);
        return Ok(None);
    };
    Ok(Some(Renewed { plugin: Arc::new(plugin), token: Arc::new(Mutex::new((token, end))) }))
}

impl Renewed {
    /// Adds the token to a request.
    pub(super) async fn authorize(
        self,
        mut request: Request<Body>,
    ) -> Result<Request<Body>, BoxError> {
        let mut token = self.token.lock().await;
        if Timestamp::now() + EARLY >= token.1 {
            let plugin = Arc::clone(&self.plugin);
            let fresh = tokio::task::spawn_blocking(move || run(&plugin)).await??;
            if let (Some(text), Some(end)) = (fresh.token, fresh.expiration_timestamp) {
                *token = (text, end);
            }
        }
        let mut value = HeaderValue::try_from(format!("Bearer {}", token.0.expose_secret()))?;
        value.set_sensitive(true);
        request.headers_mut().insert(AUTHORIZATION, value);
        Ok(request)
    }
}

fn run(plugin: &ExecConfig) -> Result<Credential, Error> {
    let name = plugin.command.as_deref().unwrap_or_default();
    let failed = || {
        Error::unexpected(format!("credential plugin `{name}` gave no credentials"))
            .hint("see whether kubectl gets further: kubectl auth whoami")
    };
    let terminal = io::stdin().is_terminal();
    let interactive = match plugin.interactive_mode {
        Some(ExecInteractiveMode::Never) => false,
        Some(ExecInteractiveMode::Always) if !terminal => {
            return Err(failed().because("it needs a terminal, and standard input is none"));
        }
        _ => terminal,
    };
    let output = command(plugin, name, interactive)
        .and_then(|mut command| command.output())
        .map_err(|error| {
            let failed = failed().because(error.to_string());
            plugin.install_hint.iter().fold(failed, Error::hint)
        })?;
    if !output.status.success() {
        return Err(failed().because(ending(&output)));
    }
    // Its text may not show: it is the credential.
    let printed: Printed = serde_saphyr::from_slice(&output.stdout)
        .map_err(|_| failed().because("what it prints is no ExecCredential"))?;
    printed
        .status
        .filter(|status| status.token.is_some() || status.client_certificate_data.is_some())
        .ok_or_else(|| failed().because("what it prints has neither a token nor a certificate"))
}

fn command(plugin: &ExecConfig, name: &str, interactive: bool) -> io::Result<Command> {
    let asked = Asked {
        api_version: plugin.api_version.as_deref().unwrap_or_default(),
        kind: "ExecCredential",
        spec: AskedSpec { interactive, cluster: plugin.cluster.as_ref() },
    };
    let variables = plugin
        .env
        .iter()
        .flatten()
        .filter_map(|variable| variable.get("name").zip(variable.get("value")));
    let mut command = Command::new(name);
    command
        .args(plugin.args.iter().flatten())
        .envs(variables)
        .env("KUBERNETES_EXEC_INFO", serde_json::to_string(&asked)?)
        .stdin(if interactive { Stdio::inherit() } else { Stdio::null() });
    if interactive {
        // It may have to tell a person where to log in.
        command.stderr(Stdio::inherit());
    }
    Ok(command)
}

/// How a plugin ended, with what it said on standard error.
fn ending(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    match said.trim() {
        "" => output.status.to_string(),
        said => format!("{}: {said}", output.status),
    }
}
