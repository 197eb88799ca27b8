//! Objects that make the lab a cluster: nodes, custom resources, and Istio's configuration.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, Client, ResourceExt};
use serde_json::Value;

use crate::build::CRDS;
use crate::nodes;
use crate::object::{self, apply};
use crate::paths::RunDir;
use crate::wait;
use crate::zones::ZONES;

const WITHIN: Duration = Duration::from_mins(1);
const ISTIO: &str = include_str!("../../assets/istio.yaml");

/// Registers all nodes and waits until KWOK has made them Ready.
pub(super) async fn join_nodes(client: &Client) -> Result<()> {
    for zone in ZONES {
        nodes::register(client, zone).await?;
    }
    for zone in ZONES {
        nodes::await_status(client, zone, "True").await?;
    }
    Ok(())
}

/// Installs the custom resources and waits until the API server serves them: the Rollouts
/// controller looks for Istio's only once, when it starts.
pub(crate) async fn install_crds(run: &RunDir, client: &Client) -> Result<()> {
    let mut all: Vec<Value> = Vec::new();
    for component in ["argo-rollouts", "istio"] {
        let path = run.share(component).join(CRDS);
        let text = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        all.extend(serde_json::from_slice::<Vec<Value>>(&text)?);
    }
    try_join_all(all.iter().map(|crd| apply(client, crd, object::MANAGER))).await?;
    let served: Api<CustomResourceDefinition> = Api::all(client.clone());
    wait::until("custom resources to be served", WITHIN, async || {
        let crds = served.list(&kube::api::ListParams::default()).await?;
        let missing = crds.items.iter().find(|crd| !is_established(crd));
        ensure!(missing.is_none(), "{}", missing.map(ResourceExt::name_any).unwrap_or_default());
        Ok(Some(()))
    })
    .await
}

fn is_established(crd: &CustomResourceDefinition) -> bool {
    let conditions = crd.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|it| it.type_ == "Established" && it.status == "True")
}

/// Namespaces and what istiod reads when it starts.
pub(super) async fn configure_istio(client: &Client) -> Result<()> {
    for object in serde_saphyr::from_multiple::<Value>(ISTIO)? {
        apply(client, &object, object::MANAGER).await?;
    }
    Ok(())
}

/// istiod turns its webhook's failure policy to `Fail` once it can answer; before that, manifests
/// which a real cluster refuses would be accepted.
pub(super) async fn webhook_is_strict(client: &Client) -> Result<()> {
    let webhooks: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    wait::until("istiod's webhook to be in force", WITHIN, async || {
        let found = webhooks.get("istio-validator-istio-system").await?;
        let mut policies = found.webhooks.iter().flatten().map(|hook| &hook.failure_policy);
        Ok(policies.all(|policy| policy.as_deref() == Some("Fail")).then_some(()))
    })
    .await
}
