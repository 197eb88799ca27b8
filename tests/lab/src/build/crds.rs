//! Custom resource definitions, kept as JSON: reading two megabytes of YAML would cost every start
//! of the lab more time than the API server takes to accept them.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

/// Name of the file with a component's definitions, a JSON list.
pub(crate) const FILE: &str = "crds.json";

/// Collects all definitions of the YAML files in a folder.
pub(super) fn convert(from: &Path, to: &Path) -> Result<()> {
    let mut all = Vec::new();
    for entry in fs::read_dir(from).with_context(|| format!("cannot list {}", from.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            let text = fs::read_to_string(&path)?;
            let documents: Vec<Value> = serde_saphyr::from_multiple(&text)
                .with_context(|| format!("cannot read {}", path.display()))?;
            all.extend(documents);
        }
    }
    all.retain(|object| object["kind"] == "CustomResourceDefinition");
    fs::write(to, serde_json::to_vec(&all)?)?;
    Ok(())
}
