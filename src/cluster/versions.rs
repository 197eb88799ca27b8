//! The versions of what runs in the cluster. Kubernetes tells its own; Argo Rollouts and Istio are
//! known by the Deployments that their manifests and charts make.

use std::collections::BTreeMap;

use futures::future::join3;
use kube::Api;
use kube::api::ListParams;
use serde::Deserialize;

use super::connect::KubeCluster;
use super::explain;
use super::item::Item;
use super::kinds::DEPLOYMENTS;
use crate::error::Error;

/// Label in which charts repeat the version; for images that are named by a digest alone.
const VERSION_LABEL: &str = "app.kubernetes.io/version";

/// A program that is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Component {
    /// Its name, for people.
    pub name: &'static str,
    /// Label of its Deployments, wherever they are.
    pub selector: &'static str,
    /// Where it is looked for if nothing but single namespaces may be read.
    pub namespace: &'static str,
    container: &'static str,
}

const ARGO_ROLLOUTS: Component = Component {
    name: "Argo Rollouts",
    selector: "app.kubernetes.io/component=rollouts-controller",
    namespace: "argo-rollouts",
    container: "argo-rollouts",
};
const ISTIO: Component = Component {
    name: "Istio",
    selector: "app=istiod",
    namespace: "istio-system",
    container: "discovery",
};

/// All versions that could be found.
#[derive(Debug, Clone)]
pub struct Versions {
    /// Of Kubernetes.
    pub server: String,
    /// Of Argo Rollouts.
    pub argo_rollouts: Sighting,
    /// Of Istio.
    pub istio: Sighting,
}

/// What was found of a component.
#[derive(Debug, Clone)]
pub struct Sighting {
    /// What was looked for.
    pub component: Component,
    /// What is there.
    pub found: Found,
}

/// What is there of a component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// These Deployments; none means that there are none.
    Everywhere(Vec<Install>),
    /// These in its usual namespace; others may not be read.
    InNamespace(Vec<Install>),
    /// Not even its usual namespace may be read.
    NotPermitted,
    /// It could not be read, for this reason.
    Unread(String),
}

/// One Deployment of a component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Install {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Tag of its image, or else its label for versions; absent if there is neither.
    pub version: Option<String>,
}

/// As much of a Deployment as tells a version.
#[derive(Debug, Clone, Deserialize)]
struct Deployment {
    metadata: Metadata,
    spec: Spec,
}

#[derive(Debug, Clone, Deserialize)]
struct Metadata {
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Deserialize)]
struct Spec {
    template: Template,
}

#[derive(Debug, Clone, Deserialize)]
struct Template {
    spec: Pod,
}

#[derive(Debug, Clone, Deserialize)]
struct Pod {
    containers: Vec<Container>,
}

#[derive(Debug, Clone, Deserialize)]
struct Container {
    name: String,
    image: String,
}

impl KubeCluster {
    /// Asks for all versions at the same time.
    ///
    /// # Errors
    /// If the server does not tell its own version.
    pub async fn versions(&self) -> Result<Versions, Error> {
        let server = self.limited(self.client.apiserver_version());
        let (server, argo_rollouts, istio) =
            join3(server, self.sighting(ARGO_ROLLOUTS), self.sighting(ISTIO)).await;
        let server = server
            .map_err(|error| explain::request(&self.server, "ask for the version", &error))?
            .git_version;
        Ok(Versions { server, argo_rollouts, istio })
    }

    async fn sighting(&self, component: Component) -> Sighting {
        let found = match self.installs(component, None).await {
            Err(error) if is_forbidden(&error) => {
                let usual = self.installs(component, Some(component.namespace)).await;
                usual.map_or_else(|error| unread(&error), Found::InNamespace)
            }
            all => all.map_or_else(|error| unread(&error), Found::Everywhere),
        };
        Sighting { component, found }
    }

    async fn installs(
        &self,
        component: Component,
        namespace: Option<&str>,
    ) -> kube::Result<Vec<Install>> {
        let resource = DEPLOYMENTS.resource(DEPLOYMENTS.version);
        let api: Api<Item<Deployment>> = match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        };
        let params = ListParams::default().labels(component.selector);
        let deployments = self.limited(api.list(&params)).await?;
        let install = |item: Item<Deployment>| {
            let key = item.key();
            let version = item.object.ok().and_then(|found| version(&found, component.container));
            Install { namespace: key.namespace, name: key.name, version }
        };
        Ok(deployments.into_iter().map(install).collect())
    }
}

fn unread(error: &kube::Error) -> Found {
    if is_forbidden(error) { Found::NotPermitted } else { Found::Unread(explain::reason(error)) }
}

fn is_forbidden(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 403)
}

fn version(deployment: &Deployment, container: &str) -> Option<String> {
    let containers = &deployment.spec.template.spec.containers;
    let image = containers.iter().find(|other| other.name == container)?.image.as_str();
    let label = || deployment.metadata.labels.get(VERSION_LABEL).cloned();
    tag(image).map(str::to_owned).or_else(label)
}

/// The tag of an image: a colon before the last slash belongs to a port of the registry.
fn tag(image: &str) -> Option<&str> {
    let (image, _digest) = image.split_once('@').unwrap_or((image, ""));
    let (_, name) = image.rsplit_once('/').unwrap_or(("", image));
    name.split_once(':').map(|(_, tag)| tag)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(image: &str) -> Option<String> {
        let deployment = json!({
            "metadata": {"labels": {"app.kubernetes.io/version": "1.30.0"}},
            "spec": {"template": {"spec": {"containers": [
                {"name": "proxy", "image": "proxy:7"},
                {"name": "discovery", "image": image},
            ]}}},
        });
        version(&serde_json::from_value(deployment).unwrap(), "discovery")
    }

    #[test]
    fn the_tag_is_the_version_and_the_label_stands_in_for_it() {
        let digest = "@sha256:a88a3ed5";
        for (image, version) in [
            ("docker.io/istio/pilot:1.31.0", "1.31.0"),
            ("pilot:1.31.0-distroless", "1.31.0-distroless"),
            ("registry.local:5000/istio/pilot:1.31.0", "1.31.0"),
            (&format!("istio/pilot:1.31.0{digest}"), "1.31.0"),
            ("registry.local:5000/istio/pilot", "1.30.0"),
            (&format!("registry.local:5000/istio/pilot{digest}"), "1.30.0"),
        ] {
            assert_eq!(told(image).as_deref(), Some(version), "{image}");
        }
    }
}
