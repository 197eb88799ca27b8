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

impl Write {
    /// Changes an object as the API server does: all of it, or nothing if a guard fails.
    ///
    /// # Errors
    /// If a guard fails, or a value that is to be changed is not there.
    pub fn apply_to(&self, object: &mut Value) -> Result<(), Drift> {
        let differs = || Drift::new("the object is not as it was seen");
        if self.guards.0.iter().any(|(pointer, value)| object.pointer(pointer) != Some(value)) {
            return Err(differs());
        }
        let mut changed = object.clone();
        for op in &self.ops {
            change(&mut changed, op).ok_or_else(differs)?;
        }
        *object = changed;
        Ok(())
    }
}

/// Nothing if there is no such place.
fn change(object: &mut Value, op: &Op) -> Option<()> {
    match op {
        Op::Replace(pointer, value) => *object.pointer_mut(pointer)? = value.clone(),
        Op::Add(pointer, value) => {
            let (parent, field) = place(pointer)?;
            object.pointer_mut(parent)?.as_object_mut()?.insert(field, value.clone());
        }
        Op::Remove(pointer) => {
            let (parent, field) = place(pointer)?;
            object.pointer_mut(parent)?.as_object_mut()?.remove(&field)?;
        }
    }
    Some(())
}

/// The pointer to the object around a field, and the field's name. Lists are only replaced as a whole.
fn place(pointer: &str) -> Option<(&str, String)> {
    let (parent, field) = pointer.rsplit_once('/')?;
    Some((parent, field.replace("~1", "/").replace("~0", "~")))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(guards: Guards, ops: Vec<Op>) -> Result<Value, Drift> {
        let key = Key::new("default", "test");
        let write = Write::new(TargetKind::Rollout, key, Subresource::Main, guards, ops);
        let mut object = json!({"metadata": {"uid": "u"}, "status": {"list": [1]}});
        write.apply_to(&mut object).map(|()| object)
    }

    #[test]
    fn a_patch_applies_as_a_whole_or_not_at_all() {
        let uid = || Guards::new("/metadata/uid", "u");
        let remove = || Op::Remove("/status/list".to_owned());
        let add = Op::Add("/metadata/a~1b".to_owned(), json!(true));
        assert_eq!(
            applied(uid(), vec![remove(), add]),
            Ok(json!({"metadata": {"uid": "u", "a/b": true}, "status": {}}))
        );
        assert!(applied(uid().and("/status/list/0", 2), vec![remove()]).is_err());
        assert!(applied(uid(), vec![remove(), remove()]).is_err());
        assert!(applied(uid(), vec![Op::Replace("/spec/paused".to_owned(), json!(1))]).is_err());
    }
}
