//! What is wrong with a kubeconfig.

use std::path::Path;

use kube::config::KubeconfigError;

use crate::error::Error;

/// An error in the kubeconfig as a whole.
pub(in crate::cluster) fn kubeconfig(error: &KubeconfigError, contexts: &[String]) -> Error {
    let broken = Error::unexpected("the kubeconfig cannot be used").because(reason(error));
    match error {
        KubeconfigError::CurrentContextNotSet | KubeconfigError::LoadContext(_)
            if !contexts.is_empty() =>
        {
            broken.hint(format!("choose one of {}: --context NAME", contexts.join(", ")))
        }
        KubeconfigError::ParseNoProxy(_) => Error::unexpected(
            "the environment variable NO_PROXY cannot be used",
        )
        .because("one of its entries is empty, or no host")
        .hint("take out what is between, before or after stray commas: echo $NO_PROXY $no_proxy"),
        _ => broken.hint("see what it says: kubectl config view"),
    }
}

/// An error in one kubeconfig file.
pub(in crate::cluster) fn kubeconfig_file(path: &Path, error: &KubeconfigError) -> Error {
    let broken = Error::unexpected(format!("kubeconfig `{}` cannot be used", path.display()))
        .because(reason(error));
    if let KubeconfigError::ReadConfig(..) = error {
        return broken.hint("see which files kubectl uses without --kubeconfig: echo $KUBECONFIG");
    }
    broken.hint(format!("see what it says: kubectl config view --kubeconfig {}", path.display()))
}

fn reason(error: &KubeconfigError) -> String {
    match error {
        // Its text shows the lines around the place, and with them what they hold.
        KubeconfigError::Parse(parse) => match parse.location() {
            Some(place) => {
                format!("it is not a kubeconfig (line {}, column {})", place.line(), place.column())
            }
            None => "it is not a kubeconfig".to_owned(),
        },
        KubeconfigError::ReadConfig(io, _) => io.to_string(),
        KubeconfigError::CurrentContextNotSet => NO_CONTEXT.to_owned(),
        KubeconfigError::LoadContext(name) if name.is_empty() => NO_CONTEXT.to_owned(),
        KubeconfigError::LoadContext(name) => format!("it has no context `{name}`"),
        KubeconfigError::LoadClusterOfContext(name) => format!("it has no cluster `{name}`"),
        KubeconfigError::MissingClusterUrl => "its cluster names no server".to_owned(),
        error => error.to_string(),
    }
}

const NO_CONTEXT: &str = "it names no current context";
