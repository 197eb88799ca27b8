//! What `version` tells programs.

use serde::Serialize;

use super::API_VERSION;
use crate::cluster::{Found, Sighting, Versions};
use crate::render::version::{self, CLIENT};

/// What `version -o json` prints.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VersionDocument {
    api_version: &'static str,
    kind: &'static str,
    client_version: VersionOf,
    #[serde(skip_serializing_if = "Option::is_none")]
    server_version: Option<VersionOf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    argo_rollouts: Option<ComponentDocument>,
    #[serde(skip_serializing_if = "Option::is_none")]
    istio: Option<ComponentDocument>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct VersionOf {
    git_version: String,
}

#[derive(Debug, Serialize)]
struct ComponentDocument {
    /// One of a closed list.
    result: &'static str,
    text: String,
    deployments: Vec<DeploymentDocument>,
}

#[derive(Debug, Serialize)]
struct DeploymentDocument {
    namespace: String,
    name: String,
    version: Option<String>,
}

/// The document of what was found; without a cluster, of this program alone.
pub fn versions(found: Option<&Versions>) -> VersionDocument {
    VersionDocument {
        api_version: API_VERSION,
        kind: "Versions",
        client_version: VersionOf { git_version: CLIENT.to_owned() },
        server_version: found.map(|found| VersionOf { git_version: found.server.clone() }),
        argo_rollouts: found.map(|found| component(&found.argo_rollouts)),
        istio: found.map(|found| component(&found.istio)),
    }
}

fn component(sighting: &Sighting) -> ComponentDocument {
    let (installs, result) = match &sighting.found {
        Found::Everywhere(installs) | Found::InNamespace(installs) => {
            (installs.as_slice(), if installs.is_empty() { "NotFound" } else { "Found" })
        }
        Found::NotPermitted => (&[][..], "NotPermitted"),
        Found::Unread(_) => (&[][..], "Unknown"),
    };
    let deployments = installs.iter().map(|install| DeploymentDocument {
        namespace: install.namespace.clone(),
        name: install.name.clone(),
        version: install.version.clone(),
    });
    ComponentDocument { result, text: version::words(sighting), deployments: deployments.collect() }
}
