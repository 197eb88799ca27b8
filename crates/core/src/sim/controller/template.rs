//! Pod templates: their hash, and what the controller adds to them in a ReplicaSet.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::scene::{POD_HASH_LABEL, ReplicaSet};

/// Annotation of a ReplicaSet that lists the labels which come and go with its role.
pub(super) const EPHEMERAL: &str = "rollout.argoproj.io/ephemeral-metadata";

/// Letters and digits that spell no words (`rand.SafeEncodeString` of Kubernetes).
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// A number in letters and digits, this many of them.
pub(in crate::sim) fn encoded(mut number: u64, length: usize) -> String {
    let mut text = String::new();
    for _ in 0..length {
        let index = number % ALPHABET.len() as u64;
        number /= ALPHABET.len() as u64;
        text.push(char::from(ALPHABET[usize::try_from(index).unwrap_or(0)]));
    }
    text
}

/// A hash of a template. It is not the controller's, and as little comparable between zones.
pub(super) fn template_hash(template: &Value) -> String {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in template.to_string().bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    encoded(hash, 10)
}

/// A template without the label that names its ReplicaSet.
pub(in crate::sim) fn template_hash_removed(mut template: Value) -> Value {
    remove_label(&mut template, POD_HASH_LABEL);
    template
}

/// The template that a ReplicaSet was made from: without its hash and the labels of its role.
pub(in crate::sim) fn without_additions(replica_set: &ReplicaSet) -> Value {
    let mut template = template_hash_removed(replica_set.spec.template.clone());
    for label in ephemeral_labels(replica_set).keys() {
        remove_label(&mut template, label);
    }
    template
}

fn remove_label(template: &mut Value, label: &str) {
    if let Some(labels) = template.pointer_mut("/metadata/labels").and_then(Value::as_object_mut) {
        labels.remove(label);
    }
}

/// The labels that the controller has added for the role of a ReplicaSet.
pub(super) fn ephemeral_labels(replica_set: &ReplicaSet) -> BTreeMap<String, String> {
    let annotation = replica_set.meta.annotations.get(EPHEMERAL);
    let metadata: Option<Value> = annotation.and_then(|text| serde_json::from_str(text).ok());
    metadata
        .and_then(|mut metadata| serde_json::from_value(metadata["labels"].take()).ok())
        .unwrap_or_default()
}
