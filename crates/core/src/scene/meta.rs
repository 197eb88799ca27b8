//! The part of `metadata` that the domain reads.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Key;

/// Metadata of an object, without the fields nobody reads here.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Meta {
    /// Name.
    pub name: String,
    /// Namespace, or empty for cluster-scoped kinds.
    pub namespace: String,
    /// Set by the API server; empty in files.
    pub uid: String,
    /// Set by the API server; empty in files.
    pub resource_version: String,
    /// Counts changes of the spec.
    pub generation: i64,
    /// When the object was created. The age of DestinationRules decides which subset wins.
    pub creation_timestamp: Option<Timestamp>,
    /// Set while the object is being deleted.
    pub deletion_timestamp: Option<Timestamp>,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Owners.
    pub owner_references: Vec<OwnerReference>,
    /// Who wrote which part.
    pub managed_fields: Vec<ManagedFields>,
}

impl Meta {
    /// Namespace and name.
    pub fn key(&self) -> Key {
        Key::new(&self.namespace, &self.name)
    }

    /// The field manager that changed the object last, not counting its subresources.
    pub fn last_writer_of_spec(&self) -> Option<&str> {
        let of_spec = self.managed_fields.iter().filter(|entry| entry.subresource.is_empty());
        of_spec.max_by_key(|entry| entry.time).map(|entry| entry.manager.as_str())
    }

    /// True if the object is owned by the object with this uid.
    pub fn is_owned_by(&self, uid: &str) -> bool {
        !uid.is_empty() && self.owner_references.iter().any(|owner| owner.uid == uid)
    }
}

/// One entry of `metadata.ownerReferences`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct OwnerReference {
    /// Kind of the owner.
    pub kind: String,
    /// Name of the owner.
    pub name: String,
    /// Uid of the owner.
    pub uid: String,
}

/// One entry of `metadata.managedFields`, without the list of fields.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct ManagedFields {
    /// Name of the field manager, such as `argocd-controller`.
    pub manager: String,
    /// Subresource it wrote to; empty for the main resource.
    pub subresource: String,
    /// When it last changed a field.
    pub time: Option<Timestamp>,
}
