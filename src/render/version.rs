//! What `version` shows to people, in the manner of `kubectl version`.

use crate::cluster::{Found, Install, Sighting, Versions};

/// This program's version, as tags and manifests write it.
pub const CLIENT: &str = concat!("v", env!("CARGO_PKG_VERSION"));

/// One line each; without a cluster only this program's.
pub fn text(versions: Option<&Versions>) -> String {
    let mut lines = vec![format!("Client Version: {CLIENT}")];
    if let Some(versions) = versions {
        lines.push(format!("Server Version: {}", versions.server));
        for sighting in [&versions.argo_rollouts, &versions.istio] {
            lines.push(format!("{} Version: {}", sighting.component.name, words(sighting)));
        }
    }
    lines.join("\n")
}

/// What was found of a component, and if nothing, why.
pub(super) fn words(sighting: &Sighting) -> String {
    let component = &sighting.component;
    match &sighting.found {
        Found::Everywhere(installs) if installs.is_empty() => {
            format!("not found (no Deployment has label {})", component.selector)
        }
        Found::InNamespace(installs) if installs.is_empty() => format!(
            "not found in namespace {}, and Deployments elsewhere may not be listed",
            component.namespace
        ),
        Found::Everywhere(installs) | Found::InNamespace(installs) => {
            installs.iter().map(install).collect::<Vec<_>>().join(", ")
        }
        Found::NotPermitted => format!(
            "not permitted (needs: list deployments.apps, at least in namespace {})",
            component.namespace
        ),
        Found::Unread(why) => format!("unknown ({why})"),
    }
}

fn install(install: &Install) -> String {
    let version = install.version.as_deref().unwrap_or("unknown");
    format!("{version} ({}/{})", install.namespace, install.name)
}
