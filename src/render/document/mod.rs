//! Machine-readable documents. Their shape is a contract: fields are added, never changed.

mod abort;
mod diagnosis;
mod promotion;
mod sarif;
mod status;

pub use abort::{AbortDocument, abort};
pub use diagnosis::{DiagnosisDocument, diagnosis};
pub use promotion::{ResultDocument, event_document, question, result};
pub use sarif::sarif;
pub use status::{StatusDocument, status};

/// `apiVersion` of all documents.
pub const API_VERSION: &str = "zone-rollout.io/v1alpha1";
