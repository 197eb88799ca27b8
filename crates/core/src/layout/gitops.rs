//! What a tool that applies Git again and again has to be told: the base rule has to be the oldest,
//! and what the Rollouts controller writes is not to be put back.

use serde_json::{Value, json};

use super::Spec;
use crate::diversion::ROUTE_PREFIX;

/// Order in which Argo CD applies: smaller first, each wave after the one before is healthy.
const WAVE: &str = "argocd.argoproj.io/sync-wave";
/// Lets Flux create an object and never change it again.
const FLUX_ONCE: &str = "kustomize.toolkit.fluxcd.io/ssa";

/// A GitOps tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GitOps {
    /// Argo CD.
    ArgoCd,
    /// Flux.
    Flux,
}

/// Annotates the objects for a GitOps tool.
///
/// Flux applies all objects at once, those of one kind by name: `NAME` before `NAME-a`, and of two
/// rules of the same second Istio takes the one with the smaller name as the older.
pub fn for_gitops(spec: &Spec, mut objects: Vec<Value>, tool: GitOps) -> Vec<Value> {
    for object in &mut objects {
        let is_base = object["metadata"]["name"] == spec.name;
        let annotation = match (tool, object["kind"].as_str().unwrap_or_default()) {
            (GitOps::ArgoCd, "DestinationRule") if is_base => (WAVE, "-2"),
            (GitOps::ArgoCd, "DestinationRule" | "VirtualService") => (WAVE, "-1"),
            (GitOps::Flux, "DestinationRule") if is_base => continue,
            (GitOps::Flux, "DestinationRule" | "VirtualService") => (FLUX_ONCE, "IfNotPresent"),
            _ => continue,
        };
        object["metadata"]["annotations"] = json!({annotation.0: annotation.1});
    }
    objects
}

/// What belongs into the `spec` of the Argo CD Application: a merge patch of it. It leaves the weights,
/// the hashes and an evacuation alone.
pub fn argo_cd_patch(spec: &Spec, objects: &[Value]) -> Value {
    let written = |object: &&Value| match object["kind"].as_str() {
        Some("VirtualService") => true,
        Some("DestinationRule") => object["metadata"]["name"] != spec.name,
        _ => false,
    };
    let ignored: Vec<Value> = objects.iter().filter(written).map(ignored).collect();
    json!({"spec": {
        "ignoreDifferences": ignored,
        "syncPolicy": {
            "syncOptions": ["ApplyOutOfSyncOnly=true", "RespectIgnoreDifferences=true"],
        },
    }})
}

fn ignored(object: &Value) -> Value {
    let paths = if object["kind"] == "VirtualService" {
        let evacuation =
            format!(r#".spec.http[] | select((.name // "") | startswith("{ROUTE_PREFIX}"))"#);
        vec![".spec.http[].route[].weight".to_owned(), evacuation]
    } else {
        vec![r#".spec.subsets[].labels."rollouts-pod-template-hash""#.to_owned()]
    };
    json!({
        "group": "networking.istio.io",
        "kind": object["kind"],
        "name": object["metadata"]["name"],
        "namespace": object["metadata"]["namespace"],
        "jqPathExpressions": paths,
    })
}
