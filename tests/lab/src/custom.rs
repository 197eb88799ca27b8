//! Custom resources that a cluster lacks, or serves in other versions.

use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{DeleteParams, PostParams};

use crate::boot::install_crds;
use crate::lab::Lab;
use crate::wait;

const WITHIN: Duration = Duration::from_mins(1);
/// Components that read custom resources, and lose sight of them when they change.
const READERS: [&str; 2] = ["rollouts-controller", "istiod"];

impl Lab {
    /// Removes a custom resource and all its objects, as on a cluster that never had it.
    ///
    /// # Errors
    ///
    /// When it is not gone in a minute.
    pub async fn remove_crd(&self, name: &str) -> Result<()> {
        let api = self.crds();
        let spec = api.get(name).await.with_context(|| format!("no {name}"))?.spec;
        api.delete(name, &DeleteParams::default()).await?;
        // The API server goes on to serve it for a moment.
        let gone = async || {
            let mut served = false;
            for version in &spec.versions {
                let path = format!("/apis/{}/{}/{}", spec.group, version.name, spec.names.plural);
                served |= self
                    .client()
                    .request_text(http::Request::get(path).body(vec![])?)
                    .await
                    .is_ok();
            }
            Ok((!served).then_some(()))
        };
        wait::until(format!("{name} to be gone"), WITHIN, gone).await
    }

    /// Serves a custom resource in this version alone. Its objects stay.
    ///
    /// # Errors
    ///
    /// When the API server refuses.
    pub async fn serve_only(&self, name: &str, version: &str) -> Result<()> {
        let api = self.crds();
        let mut crd = api.get(name).await?;
        for each in &mut crd.spec.versions {
            each.served = each.name == version;
        }
        api.replace(name, &PostParams::default(), &crd).await?;
        Ok(())
    }

    /// Makes all custom resources what they were when the lab started, and restarts what reads them.
    ///
    /// # Errors
    ///
    /// When they are not served in a minute.
    pub async fn restore_crds(&self) -> Result<()> {
        install_crds(&self.run, &self.client()).await?;
        for component in READERS {
            // It may be stopped already.
            drop(self.stop(component).await);
            self.start(component).await?;
        }
        Ok(())
    }

    fn crds(&self) -> Api<CustomResourceDefinition> {
        Api::all(self.client())
    }
}
