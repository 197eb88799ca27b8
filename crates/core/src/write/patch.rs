//! Guarded JSON patches.

use serde_json::{Value, json};

use super::Drift;
use crate::scene::Key;

/// Kinds of objects that are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetKind {
    /// `rollouts.argoproj.io`.
    Rollout,
    /// `virtualservices.networking.istio.io`.
    VirtualService,
}

/// Which part of an object is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subresource {
    /// The object itself.
    Main,
    /// `/status`.
    Status,
}

/// What must still be true for a write to apply: JSON patch `test` operations, at least one.
#[derive(Debug, Clone, PartialEq)]
pub struct Guards(Vec<(String, Value)>);

impl Guards {
    /// The first guard: the value at a JSON pointer.
    pub fn new(pointer: impl Into<String>, value: impl Into<Value>) -> Self {
        Self(vec![(pointer.into(), value.into())])
    }

    /// One more guard.
    #[must_use]
    pub fn and(mut self, pointer: impl Into<String>, value: impl Into<Value>) -> Self {
        self.0.push((pointer.into(), value.into()));
        self
    }
}

/// A change of one value.
#[derive(Debug, Clone, PartialEq)]
pub enum Op {
    /// Sets a value, whether it was there or not; its parent has to be there.
    Add(String, Value),
    /// Sets a value that is there.
    Replace(String, Value),
    /// Takes a value away.
    Remove(String),
}

/// One guarded patch of one object.
#[derive(Debug, Clone, PartialEq)]
pub struct Write {
    /// Kind of the object.
    pub kind: TargetKind,
    /// The object.
    pub key: Key,
    /// The part of it.
    pub subresource: Subresource,
    guards: Guards,
    ops: Vec<Op>,
}

impl Write {
    pub(super) fn new(
        kind: TargetKind,
        key: Key,
        subresource: Subresource,
        guards: Guards,
        ops: Vec<Op>,
    ) -> Self {
        Self { kind, key, subresource, guards, ops }
    }

    /// The JSON patch (RFC 6902): tests first, then the changes.
    pub fn patch(&self) -> Value {
        let tests = self
            .guards
            .0
            .iter()
            .map(|(pointer, value)| json!({"op": "test", "path": pointer, "value": value}));
        let changes = self.ops.iter().map(|op| match op {
            Op::Add(pointer, value) => json!({"op": "add", "path": pointer, "value": value}),
            Op::Replace(pointer, value) => {
                json!({"op": "replace", "path": pointer, "value": value})
            }
            Op::Remove(pointer) => json!({"op": "remove", "path": pointer}),
        });
        tests.chain(changes).collect()
    }
}

/// What became of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Written {
    /// It applied; the object has this resource version now.
    Landed {
        /// `metadata.resourceVersion` after the write.
        resource_version: String,
    },
    /// A guard failed, or somebody wrote at the same time: nothing changed.
    Refused(Drift),
    /// The server or a webhook finds the result invalid: nothing changed.
    Invalid(String),
    /// The user may not do this: nothing changed.
    Denied(String),
    /// It never reached the server: nothing changed.
    NotSent(String),
    /// The answer was lost; it may have applied or not.
    Unknown(String),
}
