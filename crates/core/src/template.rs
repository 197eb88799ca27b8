//! Pod templates of different zones: which version they run, and whether they are the same release.
//!
//! Hashes are never compared between zones: the templates differ by zone labels, affinity and
//! environment, so the same image has another hash in each zone.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::group::Zone;
use crate::layout::{RING_LABEL_PREFIX, ROLE_LABEL};
use crate::scene::{POD_HASH_LABEL, Rollout, ZONE_LABEL};

/// Images by container name, in the order of the template.
pub fn images(template: &Value) -> Vec<(String, String)> {
    template
        .pointer("/spec/containers")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|container| {
            let text = |field: &str| container.get(field)?.as_str().map(str::to_owned);
            Some((text("name")?, text("image")?))
        })
        .collect()
}

/// How people call the version of a template: the last part of its images (`myapp:v2`).
pub fn version(template: &Value) -> String {
    let short = |image: &str| image.rsplit('/').next().unwrap_or(image).to_owned();
    images(template).iter().map(|(_, image)| short(image)).collect::<Vec<_>>().join(",")
}

/// Where the templates of two zones differ, as a path (`spec.containers[0].image`); nothing if they
/// are the same release.
///
/// Left out are affinity, node selectors and spread, the labels that this project's layouts and the
/// controllers add, and any text that differs by nothing but the zone's own name.
pub fn difference(one: (&Value, &Zone), other: (&Value, &Zone)) -> Option<String> {
    let mut path = String::new();
    differs(one, other, &mut path).then(|| path.trim_start_matches('.').to_owned())
}

/// True if both values differ; `path` then ends at the first difference.
fn differs(one: (&Value, &Zone), other: (&Value, &Zone), path: &mut String) -> bool {
    match (one.0, other.0) {
        (Value::Object(fields), Value::Object(others)) => {
            let keys: std::collections::BTreeSet<&String> =
                fields.keys().chain(others.keys()).filter(|key| !is_of_zone(path, key)).collect();
            keys.into_iter().any(|key| {
                let length = path.len();
                path.push('.');
                path.push_str(key);
                let field = |fields: &serde_json::Map<String, Value>| fields.get(key).cloned();
                let (one_field, other_field) =
                    (field(fields).unwrap_or(Value::Null), field(others).unwrap_or(Value::Null));
                let found = differs((&one_field, one.1), (&other_field, other.1), path);
                if !found {
                    path.truncate(length);
                }
                found
            })
        }
        (Value::Array(items), Value::Array(others)) if items.len() == others.len() => {
            items.iter().zip(others).enumerate().any(|(index, (item, counterpart))| {
                let length = path.len();
                path.push('[');
                path.push_str(&index.to_string());
                path.push(']');
                let found = differs((item, one.1), (counterpart, other.1), path);
                if !found {
                    path.truncate(length);
                }
                found
            })
        }
        (Value::String(text), Value::String(counterpart)) => {
            text != counterpart && without_zone(text, one.1) != without_zone(counterpart, other.1)
        }
        (value, counterpart) => value != counterpart,
    }
}

/// The template of a ReplicaSet as it was written into its Rollout: without the hash, and without the
/// labels and annotations that the controller adds to stable and canary pods (`setTemplateMetadata` in
/// `utils/replicaset`). A Rollout that is given them back has a new template, and a new canary.
pub fn as_written(template: &Value, rollout: &Rollout) -> Value {
    let canary = rollout.spec.strategy.canary.as_ref();
    let added = || {
        let both = canary.map(|canary| [&canary.stable_metadata, &canary.canary_metadata]);
        both.into_iter().flatten().flatten()
    };
    let labels = added().flat_map(|metadata| metadata.labels.keys().map(String::as_str));
    let annotations = added().flat_map(|metadata| metadata.annotations.keys().map(String::as_str));
    let mut written = template.clone();
    drop_keys(&mut written, "labels", labels.chain([POD_HASH_LABEL]));
    drop_keys(&mut written, "annotations", annotations);
    // The API server adds it to every template in a ReplicaSet.
    if let Some(metadata) = written.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|field, value| field != "creationTimestamp" || !value.is_null());
    }
    written
}

/// Takes fields out of a map of the metadata; a map that is left empty goes as well.
fn drop_keys<'a>(template: &mut Value, map: &str, keys: impl Iterator<Item = &'a str>) {
    let Some(metadata) = template.get_mut("metadata").and_then(Value::as_object_mut) else {
        return;
    };
    let Some(fields) = metadata.get_mut(map).and_then(Value::as_object_mut) else { return };
    for key in keys {
        fields.remove(key);
    }
    if fields.is_empty() {
        metadata.remove(map);
    }
}

/// Parts of a template that belong to the zone and not to the release.
fn is_of_zone(path: &str, key: &str) -> bool {
    match path {
        ".spec" => matches!(key, "affinity" | "nodeSelector" | "topologySpreadConstraints"),
        ".metadata.labels" => {
            [POD_HASH_LABEL, ROLE_LABEL, ZONE_LABEL].contains(&key)
                || key.starts_with(RING_LABEL_PREFIX)
        }
        _ => false,
    }
}

/// The text with the zone's own names replaced: whole words only, so that `a` leaves `data` alone.
fn without_zone(text: &str, zone: &Zone) -> String {
    let text = match &zone.topology {
        Some(topology) => text.replace(topology.as_str(), "{zone}"),
        None => text.to_owned(),
    };
    let mut rest = text.as_str();
    let mut out = String::new();
    while !rest.is_empty() {
        let word = rest.find(|letter: char| !letter.is_alphanumeric()).unwrap_or(rest.len());
        if word > 0 {
            out.push_str(if rest[..word] == zone.id.0 { "{zone}" } else { &rest[..word] });
            rest = &rest[word..];
        } else {
            let gap = rest.find(char::is_alphanumeric).unwrap_or(rest.len());
            out.push_str(&rest[..gap]);
            rest = &rest[gap..];
        }
    }
    out
}

/// New images for a template, by container name.
pub type Images = BTreeMap<String, String>;

/// Why an image cannot be set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    /// There is no such container.
    #[error("no container is called `{name}`; there is {}", known.join(", "))]
    NoContainer {
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// Several containers, and the image does not say for which.
    #[error("several containers ({}): say which, as CONTAINER=IMAGE", .0.join(", "))]
    WhichContainer(Vec<String>),
}

/// Resolves `IMAGE` or `CONTAINER=IMAGE` against a template.
///
/// # Errors
/// If the container does not exist, or none is named and there are several.
pub fn resolve_images(template: &Value, wanted: &[String]) -> Result<Images, ImageError> {
    let known: Vec<String> = images(template).into_iter().map(|(name, _)| name).collect();
    let mut resolved = Images::new();
    for text in wanted {
        match text.split_once('=') {
            Some((name, image)) if known.iter().any(|known| known == name) => {
                resolved.insert(name.to_owned(), image.to_owned());
            }
            Some((name, _)) => {
                return Err(ImageError::NoContainer { name: name.to_owned(), known });
            }
            None => match known.as_slice() {
                [only] => {
                    resolved.insert(only.clone(), text.clone());
                }
                _ => return Err(ImageError::WhichContainer(known)),
            },
        }
    }
    Ok(resolved)
}

/// True if the template runs all of these images.
pub fn runs(template: &Value, wanted: &Images) -> bool {
    let current = images(template);
    wanted.iter().all(|(name, image)| {
        current.iter().any(|(container, running)| container == name && running == image)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::group::ZoneId;
    use crate::layout::ring;
    use crate::scene::Key;
    use crate::testing::{object, spec};

    fn zone(short: &str) -> Zone {
        Zone {
            id: ZoneId(short.to_owned()),
            rollout: Key::new("default", format!("test-{short}")),
            topology: Some(format!("us-east-1{short}")),
        }
    }

    fn template(short: &str, change: impl Fn(&mut Value)) -> Value {
        let mut objects = ring(&spec());
        let rollout = object(&mut objects, "Rollout", &format!("test-{short}"));
        let mut template = rollout["spec"]["template"].take();
        change(&mut template);
        template
    }

    #[test]
    fn zones_of_one_release_do_not_differ() {
        let settings = |short: &str| {
            template(short, |template| {
                template["spec"]["containers"][0]["args"] =
                    json!(["-a", format!("--peer=db-{short}.us-east-1{short}.internal")]);
            })
        };
        let (one, other) = (settings("a"), settings("b"));
        assert_eq!(difference((&one, &zone("a")), (&other, &zone("b"))), None);
    }

    #[test]
    fn a_real_difference_names_its_place() {
        let plain = template("a", |_| {});
        for (change, place) in [
            (("image", json!("myapp:v2")), "spec.containers[0].image"),
            (("command", json!(["sh"])), "spec.containers[0].command"),
        ] {
            let changed = template("b", |template| {
                template["spec"]["containers"][0][change.0] = change.1.clone();
            });
            let found = difference((&plain, &zone("a")), (&changed, &zone("b")));
            assert_eq!(found.as_deref(), Some(place));
        }
    }

    fn json_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "[a-c-]{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-d]", inner, 0..4)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_template_never_differs_from_itself(template in json_value()) {
            let (a, b) = (zone("a"), zone("b"));
            prop_assert_eq!(difference((&template, &a), (&template, &b)), None);
        }

        #[test]
        fn it_does_not_matter_which_comes_first(one in json_value(), other in json_value()) {
            let (a, b) = (zone("a"), zone("b"));
            let forth = difference((&one, &a), (&other, &b));
            let back = difference((&other, &b), (&one, &a));
            prop_assert_eq!(forth, back);
        }
    }

    #[test]
    fn an_image_needs_a_container_if_there_are_several() {
        let one = json!({"spec": {"containers": [{"name": "app", "image": "registry/myapp:v1"}]}});
        let two = json!({"spec": {"containers": [
            {"name": "app", "image": "myapp:v1"}, {"name": "proxy", "image": "proxy:1"},
        ]}});
        let wanted = |text: &str| vec![text.to_owned()];
        assert_eq!(version(&one), "myapp:v1");
        assert_eq!(resolve_images(&one, &wanted("m:v2")).unwrap()["app"], "m:v2");
        assert_eq!(resolve_images(&two, &wanted("proxy=p:2")).unwrap()["proxy"], "p:2");
        assert!(matches!(resolve_images(&two, &wanted("m")), Err(ImageError::WhichContainer(_))));
        assert!(matches!(
            resolve_images(&one, &wanted("web=m")),
            Err(ImageError::NoContainer { .. })
        ));
        assert!(runs(&two, &resolve_images(&two, &wanted("proxy=proxy:1")).unwrap()));
        assert!(!runs(&two, &resolve_images(&two, &wanted("proxy=proxy:2")).unwrap()));
    }
}
