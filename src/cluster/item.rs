//! One object as the API server sends it: kube's metadata beside the domain's own, tolerant type.
//! An object that the domain cannot understand does not fail the whole list.

use std::borrow::Cow;

use kube::Resource;
use kube::api::ObjectMeta;
use kube::core::{ApiResource, DynamicResourceScope};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use zone_rollout_core::scene::Key;

/// An object of kind `T`.
#[derive(Debug, Clone)]
pub(super) struct Item<T> {
    metadata: ObjectMeta,
    /// The object, or why it cannot be understood.
    pub(super) object: Result<T, String>,
}

impl<T> Item<T> {
    pub(super) fn key(&self) -> Key {
        Key::new(
            self.metadata.namespace.as_deref().unwrap_or_default(),
            self.metadata.name.as_deref().unwrap_or_default(),
        )
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Item<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Metadata {
            metadata: ObjectMeta,
        }
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        let Metadata { metadata } = serde_json::from_str(raw.get()).map_err(D::Error::custom)?;
        let object = serde_json::from_str(raw.get()).map_err(|error| error.to_string());
        Ok(Self { metadata, object })
    }
}

impl<T> Resource for Item<T> {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn kind(resource: &ApiResource) -> Cow<'_, str> {
        resource.kind.as_str().into()
    }

    fn group(resource: &ApiResource) -> Cow<'_, str> {
        resource.group.as_str().into()
    }

    fn version(resource: &ApiResource) -> Cow<'_, str> {
        resource.version.as_str().into()
    }

    fn plural(resource: &ApiResource) -> Cow<'_, str> {
        resource.plural.as_str().into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[cfg(test)]
mod tests {
    use kube::api::WatchEvent;
    use kube::core::ObjectList;
    use zone_rollout_core::scene::VirtualService;

    use super::*;

    #[test]
    fn one_broken_object_does_not_hide_the_others() {
        let list = r#"{"apiVersion": "networking.istio.io/v1", "kind": "VirtualServiceList",
            "metadata": {"resourceVersion": "7"}, "items": [
            {"metadata": {"name": "good", "namespace": "d"}, "spec": {"hosts": ["a"]}},
            {"metadata": {"name": "bad", "namespace": "d"}, "spec": {"hosts": "a"}}]}"#;
        let list: ObjectList<Item<VirtualService>> = serde_json::from_str(list).unwrap();
        let told: Vec<(String, bool)> =
            list.items.iter().map(|item| (item.key().name, item.object.is_ok())).collect();
        assert_eq!(told, [("good".to_owned(), true), ("bad".to_owned(), false)]);
    }

    #[test]
    fn items_are_read_from_watch_events() {
        let line = r#"{"type":"ADDED","object":{"metadata":{"name":"x","namespace":"d"}}}"#;
        let event: WatchEvent<Item<VirtualService>> = serde_json::from_str(line).unwrap();
        assert!(matches!(event, WatchEvent::Added(item) if item.key() == Key::new("d", "x")));
    }
}
