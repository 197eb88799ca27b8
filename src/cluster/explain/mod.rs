//! What the client library reports, in words for people and without secrets. kube's own error texts
//! show the lines around a YAML error and the output of a credential plugin: tokens, often.

mod kubeconfig;
mod tls;

use std::time::Duration;

pub(super) use self::kubeconfig::{kubeconfig, kubeconfig_file};
use crate::error::Error;

const NO_ANSWER: &str = "see whether the server answers at all: kubectl cluster-info";

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

/// True for a read that may work a moment later. A server that cannot be reached, or does not answer
/// within the limit, is not: kubectl says so at once, too.
pub(super) fn is_passing(error: &kube::Error) -> bool {
    matches!(fate(error), Fate::TurnedAway | Fate::Lost)
        && !matches!(error, kube::Error::SerdeError(_))
        && own(error).is_none()
}

/// What the server asked for in `Retry-After`.
pub(super) fn retry_after(error: &kube::Error) -> Duration {
    let kube::Error::Api(status) = error else { return Duration::ZERO };
    let seconds = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
    Duration::from_secs(u64::from(seconds))
}

/// An error of ours that has passed through the client, such as that of a credential plugin.
fn own(error: &kube::Error) -> Option<&Error> {
    sources(error).find_map(|source| source.downcast_ref::<Error>())
}

/// What went wrong, from the outside to the inside.
fn sources(error: &kube::Error) -> impl Iterator<Item = &(dyn std::error::Error + 'static)> {
    std::iter::successors(Some(error as &(dyn std::error::Error + 'static)), |error| error.source())
}

fn is_connect(error: &kube::Error) -> bool {
    sources(error)
        .find_map(|source| source.downcast_ref::<hyper_util::client::legacy::Error>())
        .is_some_and(hyper_util::client::legacy::Error::is_connect)
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
    match own(error) {
        Some(own) => own.one_line(),
        None => match tls::refused(sources(error)) {
            Some(refused) => refused.to_string(),
            None => sources(error).last().map(ToString::to_string).unwrap_or_default(),
        },
    }
}

/// Credentials that the kubeconfig itself has; its texts could show them.
fn authentication(error: &kube::client::AuthError) -> String {
    match error {
        kube::client::AuthError::ReadTokenFile(io, path) => {
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
        kube::Error::Api(_) => {
            failed.hint("see how the server is: kubectl get --raw '/readyz?verbose'")
        }
        error if own(error).is_some() => failed.hint(NO_ANSWER),
        error if is_connect(error) => {
            let refused = tls::refused(sources(error));
            failed.hint(refused.and_then(|refused| refused.hint()).unwrap_or(NO_ANSWER.to_owned()))
        }
        _ => failed,
    }
}
