//! Manifests as YAML, with comments that say what each is for.

mod comments;

use std::path::Path;

use serde_json::{Value, json};
use zone_rollout_core::layout::{Layout, Spec};

use super::document;
use super::words::count;
use crate::error::Error;

/// An object with its comment above.
///
/// # Errors
/// If it cannot be written as YAML.
pub fn object(layout: Layout, spec: &Spec, object: &Value) -> Result<String, Error> {
    let about = comments::about(layout, spec, object);
    Ok(format!("{}{}", aside(&about), document::yaml(object)?))
}

/// All documents in one stream.
pub fn stream<'a>(documents: impl Iterator<Item = &'a str>) -> String {
    documents.flat_map(|text| ["---\n", text]).collect()
}

/// What is no object, for the end of a stream of objects.
pub fn aside(text: &str) -> String {
    text.lines().flat_map(|line| ["# ", line, "\n"]).collect()
}

/// The list of files for kustomize, in their order.
///
/// # Errors
/// If it cannot be written as YAML.
pub fn kustomization(files: &[String]) -> Result<String, Error> {
    let list = json!({
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": files,
        "sortOptions": {"order": "fifo"},
    });
    let about =
        aside("Keeps the order of the files: the base DestinationRule has to be the oldest.");
    Ok(format!("{about}{}", document::yaml(&list)?))
}

/// The patch for the Argo CD Application.
///
/// # Errors
/// If it cannot be written as YAML.
pub fn argo_cd(patch: &Value) -> Result<String, Error> {
    Ok(format!("{}{}", aside(comments::ARGO_CD), document::yaml(patch)?))
}

/// What was written, and what to type next.
pub fn written(folder: &Path, objects: usize, kustomize: bool) -> String {
    let how = if kustomize { "-k" } else { "-f" };
    let folder = folder.display();
    format!(
        "{} in {folder}\nNext:\n  kubectl apply --server-side {how} {folder}",
        count(objects, "object", "objects")
    )
}
