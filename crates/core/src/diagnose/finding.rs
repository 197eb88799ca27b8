//! What a rule has found: what is wrong, where that stands, and what to do about it.

use std::fmt;

use serde::Serialize;

use super::rule::Rule;
use crate::scene::{Key, Origin};

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing; nothing has to be done.
    Info,
    /// A surprise that is waiting: an update out of order, an alert that cannot fire.
    Warning,
    /// Something that is meant to work does not, or a loss of one zone is an outage.
    Error,
    /// Requests fail, now or with the next reconcile.
    Critical,
}

impl Severity {
    /// In lower case, as it is typed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
        }
    }
}

/// What a fault does to traffic, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Effect {
    /// Requests fail without anything else going wrong.
    RequestsFail,
    /// Requests fail when a zone is lost or its pods fail.
    ZoneLoss,
    /// Requests go elsewhere than the objects seem to say: to other zones, past the weights.
    WrongPlace,
    /// A release stops, is rolled back, or runs without an order.
    Release,
    /// Nodes cannot be drained, or pods not be scheduled.
    Pods,
    /// Nobody would notice.
    Blind,
}

impl Effect {
    /// As a heading.
    pub fn heading(self) -> &'static str {
        match self {
            Self::RequestsFail => "Requests fail",
            Self::ZoneLoss => "Requests fail when a zone does",
            Self::WrongPlace => "Requests go elsewhere than it looks",
            Self::Release => "Releases stop, are rolled back, or run out of order",
            Self::Pods => "Nodes cannot be drained, or pods not be scheduled",
            Self::Blind => "Nobody would notice",
        }
    }
}

/// Kind, namespace and name of an object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectRef {
    /// Kind.
    pub kind: &'static str,
    /// Namespace and name.
    pub key: Key,
}

impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.key)
    }
}

/// A field of an object that shows the fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    /// The object.
    pub object: ObjectRef,
    /// Path of the field: `spec.http[2].name`. Empty for the whole object.
    pub path: String,
    /// What stands there, or what is missing.
    pub value: String,
    /// Where the object was read.
    pub origin: Option<Origin>,
}

/// One fault in one place.
#[derive(Debug, Clone)]
pub struct Finding {
    /// The rule that found it.
    pub rule: &'static Rule,
    /// How bad it is here.
    pub severity: Severity,
    /// What is wrong, in one sentence with names.
    pub title: String,
    /// Where that stands, the most telling first; never empty.
    pub evidence: Vec<Evidence>,
    /// What to change, ending in something to paste where that can be.
    pub fix: String,
    /// A command that shows whether it is cured.
    pub verify: String,
}

/// A finding in the making.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) severity: Severity,
    pub(super) title: String,
    pub(super) evidence: Vec<Evidence>,
    pub(super) fix: String,
    pub(super) verify: String,
}

impl Found {
    pub(super) fn new(severity: Severity, title: impl Into<String>) -> Self {
        Self {
            severity,
            title: title.into(),
            evidence: Vec::new(),
            fix: String::new(),
            verify: String::new(),
        }
    }

    /// Adds what stands in a field.
    pub(super) fn at(
        mut self,
        kind: &'static str,
        key: &Key,
        path: impl Into<String>,
        value: impl fmt::Display,
    ) -> Self {
        self.add(kind, key, path, value);
        self
    }

    /// Adds what stands in one more field.
    pub(super) fn add(
        &mut self,
        kind: &'static str,
        key: &Key,
        path: impl Into<String>,
        value: impl fmt::Display,
    ) {
        self.evidence.push(Evidence {
            object: ObjectRef { kind, key: key.clone() },
            path: path.into(),
            value: value.to_string(),
            origin: None,
        });
    }

    /// Says what to change.
    pub(super) fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = fix.into();
        self
    }

    /// Says how to see that it is cured.
    pub(super) fn verify(mut self, verify: impl Into<String>) -> Self {
        self.verify = verify.into();
        self
    }
}
