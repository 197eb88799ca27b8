//! The documents of one file, each read for itself.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use serde_saphyr::Spanned;
use zone_rollout_core::scene::{Found, Unreadable};

use super::{Documents, at};

/// Reads all documents of a text.
pub(super) fn read(text: &str, path: &Arc<str>, documents: &mut Documents) {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim_start().starts_with('{') {
        read_json(text, path, documents);
    } else {
        for (line, document) in split(text) {
            read_yaml(document, path, line, documents);
        }
    }
}

/// A text's YAML documents with the line they start at. A line that begins with `---` always ends a
/// document, in block scalars as well; reading each alone keeps one fault from hiding the others.
fn split(text: &str) -> Vec<(usize, &str)> {
    let mut parts = Vec::new();
    let (mut start, mut first, mut offset) = (0, 1, 0);
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let ends = line
            .strip_prefix("---")
            .is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n']));
        if ends {
            parts.push((first, &text[start..offset]));
            // What follows the marker on its line belongs to the next document.
            (start, first) = (offset + 3, index + 1);
        }
        offset += line.len();
    }
    parts.push((first, &text[start..]));
    parts
}

/// The line of a document's first content, for people: comments and blank lines are skipped.
fn first_content(document: &str) -> usize {
    let is_content = |line: &str| {
        let line = line.trim();
        !line.is_empty() && !line.starts_with('#')
    };
    document.lines().position(is_content).unwrap_or(0)
}

fn read_yaml(document: &str, path: &Arc<str>, line: usize, documents: &mut Documents) {
    if document.lines().all(|line| line.trim().is_empty() || line.trim().starts_with('#')) {
        return;
    }
    let start = line + first_content(document);
    match serde_saphyr::from_str::<Value>(document) {
        Ok(value) if is_list(&value) => match serde_saphyr::from_str::<List>(document) {
            Ok(list) => {
                for item in list.items {
                    let at = usize::try_from(item.referenced.line()).unwrap_or(1).max(1);
                    add(of_list(item.value, &value), path, line + at - 1, documents);
                }
            }
            Err(error) => unreadable(&error, path, line, documents),
        },
        Ok(value) => add(value, path, start, documents),
        Err(error) => unreadable(&error, path, line, documents),
    }
}

fn unreadable(
    error: &serde_saphyr::Error,
    path: &Arc<str>,
    line: usize,
    documents: &mut Documents,
) {
    let place = error.location().and_then(|location| usize::try_from(location.line()).ok());
    let why = error.without_snippet().to_string();
    documents.unreadable.push(Unreadable {
        what: "a document".to_owned(),
        // The position in the text counts from the document; the one that is told, from the file.
        why: why.split(" at line ").next().unwrap_or_default().trim_end_matches(':').to_owned(),
        origin: at(path, line + place.unwrap_or(1).max(1) - 1),
    });
}

fn read_json(text: &str, path: &Arc<str>, documents: &mut Documents) {
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    loop {
        let begin = stream.byte_offset();
        let blank = text[begin..].len() - text[begin..].trim_start().len();
        let line = 1 + text[..begin + blank].matches('\n').count();
        match stream.next() {
            None => return,
            Some(Ok(Value::Object(mut fields)))
                if fields.get("items").is_some_and(Value::is_array) =>
            {
                let items = fields.remove("items");
                let list = Value::Object(fields);
                for item in items.as_ref().and_then(Value::as_array).into_iter().flatten() {
                    add(of_list(item.clone(), &list), path, line, documents);
                }
            }
            Some(Ok(value)) => add(value, path, line, documents),
            Some(Err(error)) => {
                documents.unreadable.push(Unreadable {
                    what: "a document".to_owned(),
                    why: error.to_string(),
                    origin: at(path, error.line().max(1)),
                });
                return;
            }
        }
    }
}

#[derive(Deserialize)]
struct List {
    items: Vec<Spanned<Value>>,
}

fn is_list(value: &Value) -> bool {
    let kind = value.get("kind").and_then(Value::as_str).unwrap_or_default();
    kind.ends_with("List") && value.get("items").is_some_and(Value::is_array)
}

/// An item of a list; in a list of one kind the items need not repeat it.
fn of_list(mut item: Value, list: &Value) -> Value {
    let kind = list["kind"].as_str().and_then(|kind| kind.strip_suffix("List"));
    if let (Some(fields), Some(kind)) = (item.as_object_mut(), kind.filter(|kind| !kind.is_empty()))
    {
        fields.entry("kind").or_insert_with(|| kind.into());
        fields.entry("apiVersion").or_insert_with(|| list["apiVersion"].clone());
    }
    item
}

/// Adds an object. What has neither metadata nor both a kind and a version is none of Kubernetes:
/// values, charts, lists of patches.
fn add(value: Value, path: &Arc<str>, line: usize, documents: &mut Documents) {
    let has = |field: &str| value.get(field).is_some_and(Value::is_string);
    let origin = at(path, line);
    match (value.is_object(), has("kind") && has("apiVersion"), value.get("metadata").is_some()) {
        (true, true, _) => documents.objects.push(Found { object: value, origin }),
        (true, false, false) => {}
        (false, _, _) if value.is_array() => {}
        _ => {
            let why =
                if value.is_object() { "it lacks kind or apiVersion" } else { "it is no object" };
            let what = "a document".to_owned();
            documents.unreadable.push(Unreadable { what, why: why.to_owned(), origin });
        }
    }
}

#[cfg(test)]
mod tests {
    use zone_rollout_core::scene::Origin;

    use super::*;

    fn told(text: &str) -> Vec<String> {
        let mut documents = Documents::default();
        read(text, &Arc::from("f"), &mut documents);
        let line = |origin: &Origin| match origin {
            Origin::File { line, .. } => *line,
            _ => 0,
        };
        let objects = documents.objects.iter().map(|found| {
            let (kind, name) = (&found.object["kind"], &found.object["metadata"]["name"]);
            format!("{} {kind} {name}", line(&found.origin)).replace('"', "")
        });
        let unreadable = documents.unreadable.iter();
        let unreadable = unreadable.map(|found| format!("{} ! {}", line(&found.origin), found.why));
        objects.chain(unreadable).collect()
    }

    #[test]
    fn documents_lists_and_comments_are_read_with_their_lines() {
        let text = "# Source: chart/a.yaml\n---\n# c\napiVersion: v1\nkind: A\nmetadata: {name: a}\n---\n\
                    apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: B\n  metadata: {name: b}\n\
                    - apiVersion: v1\n  kind: C\n  metadata: {name: c}\n---\n---\nvalues: 1\n";
        assert_eq!(told(text), ["4 A a", "11 B b", "14 C c"]);
    }

    #[test]
    fn a_broken_document_hides_no_other() {
        let text = "apiVersion: v1\nkind: A\nmetadata: {name: a}\n---\nkind: [\n---\napiVersion: v1\nkind: B\n\
                    metadata: {name: b}\n---\njust text\n";
        let told = told(text);
        assert_eq!(told[..2], ["1 A a", "7 B b"]);
        assert!(told[2].starts_with("5 ! ") || told[2].starts_with("6 ! "), "{told:?}");
        assert_eq!(told[3], "11 ! it is no object");
    }

    #[test]
    fn json_is_read_as_well() {
        let text = "{\"apiVersion\": \"v1\", \"kind\": \"List\", \"items\": [\n{\"apiVersion\": \"v1\", \
                    \"kind\": \"A\", \"metadata\": \
                        {\"name\": \"a\"}}]}\n{\"apiVersion\": \"v1\",\n\"kind\": \"B\"}\n{";
        let told = told(text);
        assert_eq!(told[..2], ["1 A a", "3 B null"]);
        assert!(told[2].starts_with("5 ! "), "{told:?}");
    }

    #[test]
    fn items_of_a_list_of_one_kind_need_not_repeat_it() {
        let text = "apiVersion: v1\nkind: PodList\nitems:\n- metadata: {name: a}\n";
        assert_eq!(told(text), ["4 Pod a"]);
    }
}
