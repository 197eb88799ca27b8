//! Documents that cannot be read, as findings: what they hold is not checked.

use super::finding::{Effect, Evidence, Finding, ObjectRef, Severity};
use super::rule::{Check, Rule};
use crate::scene::{Key, Origin, Unreadable};

/// The rule that stands for documents that cannot be read; whoever reads the files applies it.
pub const UNREADABLE: Rule = Rule {
    code: "ZRF001",
    title: "A document cannot be read",
    check: Check::Files,
    effect: Effect::Blind,
    meaning: "Nothing in it is checked, and what is said about the other objects may lack \
              something.",
    cause: "It is no YAML or JSON, has no kind or name, or a field has another type than the \
            schema says.",
    fix: "Correct it at the line that is named. Templates have to be rendered first (helm \
          template, kustomize build).",
    verify: "kubectl apply --dry-run=server -f FILE",
    example: include_str!("examples/ZRF001.diff"),
    find: |_| Vec::new(),
};

/// Findings for these documents.
pub fn unreadable(documents: &[Unreadable]) -> Vec<Finding> {
    let finding = |document: &Unreadable| {
        let path = match &document.origin {
            Origin::File { path, .. } => path.to_string(),
            Origin::Live | Origin::Model => "the cluster".to_owned(),
        };
        Finding {
            rule: &UNREADABLE,
            severity: Severity::Error,
            title: format!("{} cannot be read: {}", document.what, document.why),
            evidence: vec![Evidence {
                object: ObjectRef { kind: "File", key: Key::new("", path) },
                path: String::new(),
                value: document.why.clone(),
                origin: Some(document.origin.clone()),
            }],
            fix: "correct the document at this line, or render the template first".to_owned(),
            verify: "kubectl apply --dry-run=server -f FILE".to_owned(),
        }
    };
    documents.iter().map(finding).collect()
}
