//! The versions of what runs in the cluster, found by the Deployments that upstream makes. The lab's own
//! controllers are no pods, so there are none at first.

use anyhow::{Result, ensure};
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use zone_lab::{Lab, Namespace};

use crate::schemas::ensure_fits;
use crate::support::{ensure_code, ensure_says};

/// A Deployment without pods.
fn deployment(name: &str, labels: &Value, container: &str, image: &str) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": container, "image": image}]},
            },
        },
    })
}

/// As in Argo Rollouts' `manifests/install.yaml`.
fn argo_rollouts() -> Value {
    let labels = json!({
        "app.kubernetes.io/component": "rollouts-controller",
        "app.kubernetes.io/name": "argo-rollouts",
        "app.kubernetes.io/part-of": "argo-rollouts",
    });
    let image = "quay.io/argoproj/argo-rollouts:v1.9.1";
    deployment("argo-rollouts", &labels, "argo-rollouts", image)
}

/// As in Istio's chart, of a revision.
fn istiod() -> Value {
    let labels = json!({"app": "istiod", "istio.io/rev": "1-31", "istio": "pilot"});
    deployment("istiod-1-31", &labels, "discovery", "docker.io/istio/pilot:1.31.0-distroless")
}

async fn with_namespace(lab: &Lab, name: &str) -> Result<Namespace> {
    let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(lab.client());
    let manager = PatchParams::apply("stories").force();
    namespaces.patch(name, &manager, &Patch::Apply(&object)).await?;
    lab.existing_namespace(name)
}

#[tokio::test]
async fn versions_are_found_where_they_may_be_looked_for() -> Result<()> {
    let lab = Lab::connect().await?;
    let namespace = lab.namespace("version").await?;
    let argo = with_namespace(&lab, "argo-rollouts").await?;
    let istio = with_namespace(&lab, "istio-system").await?;

    let none = namespace.kubectl_plugin(["version"]).run().await?;
    ensure_code(&none, 0)?;
    ensure_says(&none, "Server Version: v1.34.4")?;
    ensure_says(&none, "Argo Rollouts Version: not found (no Deployment has label ")?;
    ensure_says(&none, "Istio Version: not found (no Deployment has label app=istiod)")?;

    argo.apply(&[argo_rollouts()]).await?;
    istio.apply(&[istiod()]).await?;
    let found = namespace.kubectl_plugin(["version"]).run().await?;
    ensure_says(&found, "Argo Rollouts Version: v1.9.1 (argo-rollouts/argo-rollouts)")?;
    ensure_says(&found, "Istio Version: 1.31.0-distroless (istio-system/istiod-1-31)")?;
    let json = namespace.kubectl_plugin(["version", "-o", "json"]).run().await?;
    let document = serde_json::from_str(&json.stdout)?;
    ensure_fits("version", &document)?;
    ensure!(document["istio"]["deployments"][0]["version"] == "1.31.0-distroless", "{document}");

    let rules = [json!({"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["list"]})];
    let operator = istio.user("operator", &rules, &[]).await?;
    let mark = lab.audit_mark()?;
    let partly = namespace.kubectl_plugin(["version"]).kubeconfig(&operator).run().await?;
    ensure_code(&partly, 0)?;
    ensure_says(&partly, "Argo Rollouts Version: not permitted (needs: list deployments.apps")?;
    ensure_says(&partly, "Istio Version: 1.31.0-distroless (istio-system/istiod-1-31)")?;
    let records = lab.audit_since(mark).await?;
    let asked: Vec<_> =
        records.iter().filter(|it| it.user.username == "operator-istio-system").collect();
    ensure!(asked.iter().all(|it| !it.is_write()), "it writes: {asked:?}");
    // Of the server once, and of each component everywhere, then where it usually is.
    ensure!(asked.len() == 5, "it asks {} times: {asked:?}", asked.len());
    Ok(())
}
