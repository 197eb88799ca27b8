//! KWOK's configuration: how nodes and pods behave, and where connections to pods go.
//!
//! An ordinary pod is Ready at once. Parts of an image's tag ask for something else:
//!
//! | tag contains | the pod |
//! |---|---|
//! | `never-ready` | runs, and never gets Ready |
//! | `slow` | runs, and gets Ready after ten seconds |
//! | `crash-loop` | crashes a second after each start |
//! | `pull-fail` | waits for an image that does not exist |
//!
//! A pod that lost Ready gets it back after a second while its node is in contact, unless it
//! carries the annotation [`HOLD_UNREADY`].

mod fragments;
mod node;
mod pod;
mod proxies;

use serde_json::{Value, json};

/// While a pod has this annotation, it does not get Ready back by itself.
pub(crate) const HOLD_UNREADY: &str = "lab.zone-rollout.io/hold-unready";

/// All objects of KWOK's configuration file.
pub(crate) fn configuration() -> String {
    let objects = node::stages().into_iter().chain(pod::stages()).chain(proxies::all());
    let documents: Vec<String> = objects.map(|object| object.to_string()).collect();
    documents.join("\n---\n")
}

/// A stage: when `matches` holds for an object, `next` happens after `delay` milliseconds.
fn stage(kind: &str, name: &str, matches: &[Value], delay: u64, next: &Value) -> Value {
    json!({
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": name},
        "spec": {
            "resourceRef": {"apiGroup": "v1", "kind": kind},
            "selector": {"matchExpressions": matches},
            "delay": {"durationMilliseconds": delay},
            "next": next,
        },
    })
}

/// The jq expression finds something.
fn exists(jq: &str) -> Value {
    json!({"key": jq, "operator": "Exists"})
}

/// The jq expression finds nothing.
fn absent(jq: &str) -> Value {
    json!({"key": jq, "operator": "DoesNotExist"})
}
