//! Machine-readable documents. Their shape is a contract: fields are added, never changed.

mod by_hand;
mod diagnosis;
mod plan;
mod promotion;
mod sarif;
mod status;
mod version;

use serde::Serialize;

pub use by_hand::{ByHandDocument, by_hand};
pub use diagnosis::{DiagnosisDocument, diagnosis};
pub use plan::{PlanDocument, Preview, plan};
pub use promotion::{ResultDocument, event_document, question, result};
pub use sarif::sarif;
pub use status::{StatusDocument, status};
pub use version::{VersionDocument, versions};

use crate::error::Error;

/// `apiVersion` of all documents.
pub const API_VERSION: &str = "zone-rollout.io/v1alpha1";

/// A document as JSON.
///
/// # Errors
/// If it cannot be written as such.
pub fn json(document: &impl Serialize) -> Result<String, Error> {
    serde_json::to_string_pretty(document).map_err(|error| unprintable(&error))
}

/// A document as YAML.
///
/// # Errors
/// If it cannot be written as such.
pub fn yaml(document: &impl Serialize) -> Result<String, Error> {
    serde_saphyr::to_string(document).map_err(|error| unprintable(&error))
}

fn unprintable(error: &impl std::fmt::Display) -> Error {
    Error::unexpected("cannot write the document").because(error.to_string())
}
