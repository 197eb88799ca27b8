//! Commands that change one object, for people to paste.

use serde_json::{Value, json};

use super::context::in_namespace;
use crate::scene::Key;

/// Opens it in an editor.
pub(super) fn edit(kind: &str, key: &Key) -> String {
    format!("kubectl edit {} {}{}", kind.to_ascii_lowercase(), key.name, in_namespace(key))
}

/// Sets a field, given as a path of names: `spec.host`. What lies beside it stays.
pub(super) fn set(kind: &str, key: &Key, path: &str, value: Value) -> String {
    let nested = path.rsplit('.').fold(value, |value, name| json!({ name: value }));
    patch(kind, key, "merge", &nested)
}

/// Adds a field, or an item of a list: `spec.subsets[0].trafficPolicy`, `spec.subsets[-]`.
pub(super) fn add(kind: &str, key: &Key, path: &str, value: &Value) -> String {
    patch(kind, key, "json", &json!([{"op": "add", "path": pointer(path), "value": value}]))
}

/// Removes fields.
pub(super) fn remove(kind: &str, key: &Key, paths: &[&str]) -> String {
    let removals = paths.iter().map(|path| json!({"op": "remove", "path": pointer(path)}));
    patch(kind, key, "json", &removals.collect())
}

fn patch(kind: &str, key: &Key, how: &str, content: &Value) -> String {
    let kind = kind.to_ascii_lowercase();
    format!("kubectl patch {kind} {}{} --type={how} -p '{content}'", key.name, in_namespace(key))
}

/// A path as a JSON pointer. A name in brackets that is no number is one name, dots and all.
fn pointer(path: &str) -> String {
    let mut pointer = String::new();
    for (index, part) in path.split(['[', ']']).enumerate() {
        let names: Vec<&str> = if index % 2 == 1 { vec![part] } else { part.split('.').collect() };
        for name in names.into_iter().filter(|name| !name.is_empty()) {
            pointer.push('/');
            pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
        }
    }
    pointer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_patches() {
        let key = Key::new("shop", "web");
        insta::assert_snapshot!(
            set("Service", &key, "spec.selector.app", json!("web")),
            @r#"kubectl patch service web -n shop --type=merge -p '{"spec":{"selector":{"app":"web"}}}'"#
        );
        insta::assert_snapshot!(
            remove("Rollout", &key, &["spec.steps[0].pause", "metadata.labels[a.b/c]"]),
            @r#"kubectl patch rollout web -n shop --type=json -p '[{"op":"remove","path":"/spec/steps/0/pause"},{"op":"remove","path":"/metadata/labels/a.b~1c"}]'"#
        );
    }
}
