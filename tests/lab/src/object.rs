//! Kubernetes objects as plain JSON.

use anyhow::{Context, Result};
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams};
use kube::{Api, Client};
use serde_json::Value;

/// Field manager of what the lab itself applies.
pub(crate) const MANAGER: &str = "zone-lab";

/// Applies an object by server-side apply and takes over the fields of other managers.
pub(crate) async fn apply(client: &Client, object: &Value, manager: &str) -> Result<()> {
    let what = || describe(object);
    let name = object["metadata"]["name"].as_str().with_context(|| format!("no name: {object}"))?;
    api(client, object)
        .with_context(what)?
        .patch(name, &PatchParams::apply(manager).force(), &Patch::Apply(object))
        .await
        .with_context(|| format!("cannot apply {}", what()))?;
    Ok(())
}

/// The API for an object: of its namespace, or of the cluster where it names none.
fn api(client: &Client, object: &Value) -> Result<Api<DynamicObject>> {
    let resource = resource(
        object["apiVersion"].as_str().context("no `apiVersion`")?,
        object["kind"].as_str().context("no `kind`")?,
    );
    Ok(match object["metadata"]["namespace"].as_str() {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    })
}

/// The resource of a kind; its plural is guessed, which is right for every kind used here.
pub(crate) fn resource(api_version: &str, kind: &str) -> ApiResource {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind))
}

/// `Rollout test-a`, for messages.
fn describe(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
    format!("{} {}", text(&object["kind"]), text(&object["metadata"]["name"]))
}
