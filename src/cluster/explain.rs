//! What the client library reports, in words for people and without secrets. kube's own error texts
//! show the lines around a YAML error and the output of a credential plugin: tokens, often.

use std::path::Path;

use kube::config::KubeconfigError;

use crate::error::Error;

/// What became of a request, as far as retrying it is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// It never reached the server.
    NotSent,
    /// The server turned it away before doing anything.
    TurnedAway,
    /// The server answered.
    Answered,
    /// The answer was lost.
    Lost,
}

/// What became of the request that failed like this.
pub(super) fn fate(error: &kube::Error) -> Fate {
    match error {
        kube::Error::Api(status) => match status.code {
            429 | 503 => Fate::TurnedAway,
            500 | 502 | 504 => Fate::Lost,
            _ => Fate::Answered,
        },
        kube::Error::Auth(_) | kube::Error::BuildRequest(_) => Fate::NotSent,
        error if is_connect(error) => Fate::NotSent,
        _ => Fate::Lost,
    }
}

fn is_connect(error: &kube::Error) -> bool {
    let kube::Error::Service(source) = error else { return false };
    let mut current: Option<&(dyn std::error::Error + 'static)> = Some(source.as_ref());
    while let Some(error) = current {
        if let Some(legacy) = error.downcast_ref::<hyper_util::client::legacy::Error>() {
            return legacy.is_connect();
        }
        current = error.source();
    }
    false
}

/// What failed, in a few words.
pub(super) fn reason(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if status.message.is_empty() => {
            format!("the server answered {}", status.code)
        }
        kube::Error::Api(status) => status.message.clone(),
        kube::Error::Auth(auth) => authentication(auth),
        kube::Error::SerdeError(_) => "the answer is not what was asked for".to_owned(),
        error => innermost(error),
    }
}

/// The deepest source says what happened; the layers above only say who noticed.
fn innermost(error: &kube::Error) -> String {
    let mut current: &dyn std::error::Error = error;
    while let Some(source) = current.source() {
        current = source;
    }
    current.to_string()
}

/// A credential plugin's standard output is a token; only its exit and its standard error may show.
fn authentication(error: &kube::client::AuthError) -> String {
    use kube::client::AuthError;
    match error {
        AuthError::AuthExecStart(io) => format!("the credential plugin cannot be started ({io})"),
        // The command's text has its environment in it, and with it secrets.
        AuthError::AuthExecRun { out, .. } => {
            let said = String::from_utf8_lossy(&out.stderr);
            let said = said.trim();
            let said = if said.is_empty() { String::new() } else { format!(": {said}") };
            format!("the credential plugin failed ({}){said}", out.status)
        }
        AuthError::AuthExecParse(_) => "the credential plugin's output cannot be read".to_owned(),
        AuthError::ReadTokenFile(io, path) => {
            format!("token file `{}` cannot be read ({io})", path.display())
        }
        _ => "the credentials in the kubeconfig cannot be used".to_owned(),
    }
}

/// An error of making the client.
pub(super) fn connecting(server: &str, error: &kube::Error) -> Error {
    Error::unexpected(format!("cannot prepare to connect to {server}")).because(reason(error))
}

/// An error of a request that is not about permissions or a missing kind.
pub(super) fn request(server: &str, what: &str, error: &kube::Error) -> Error {
    let failed = Error::unexpected(format!("cannot {what} at {server}")).because(reason(error));
    match error {
        kube::Error::Api(status) if status.code == 401 => {
            failed.hint("log in again, then see who you are: kubectl auth whoami")
        }
        error if is_connect(error) => {
            failed.hint("see whether the server answers at all: kubectl cluster-info")
        }
        _ => failed,
    }
}

/// An error in the kubeconfig as a whole.
pub(super) fn kubeconfig(error: &KubeconfigError, contexts: &[String]) -> Error {
    let broken =
        Error::unexpected("the kubeconfig cannot be used").because(kubeconfig_reason(error));
    match error {
        KubeconfigError::CurrentContextNotSet | KubeconfigError::LoadContext(_)
            if !contexts.is_empty() =>
        {
            broken.hint(format!("choose one of {}: --context NAME", contexts.join(", ")))
        }
        _ => broken.hint("see what it says: kubectl config view"),
    }
}

/// An error in one kubeconfig file.
pub(super) fn kubeconfig_file(path: &Path, error: &KubeconfigError) -> Error {
    Error::unexpected(format!("kubeconfig `{}` cannot be used", path.display()))
        .because(kubeconfig_reason(error))
        .hint(format!("see what it says: kubectl config view --kubeconfig {}", path.display()))
}

fn kubeconfig_reason(error: &KubeconfigError) -> String {
    match error {
        // Its text shows the lines around the place, and with them what they hold.
        KubeconfigError::Parse(parse) => match parse.location() {
            Some(place) => {
                format!("it is not a kubeconfig (line {}, column {})", place.line(), place.column())
            }
            None => "it is not a kubeconfig".to_owned(),
        },
        KubeconfigError::ReadConfig(io, _) => io.to_string(),
        KubeconfigError::CurrentContextNotSet => "it names no current context".to_owned(),
        KubeconfigError::LoadContext(name) => format!("it has no context `{name}`"),
        KubeconfigError::LoadClusterOfContext(name) => format!("it has no cluster `{name}`"),
        KubeconfigError::MissingClusterUrl => "its cluster names no server".to_owned(),
        error => error.to_string(),
    }
}
