//! A scene from plain objects, as they stand in files.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Coverage, Key, Kind, Meta, Origin, Scene};
use crate::time::Moment;

/// An object and where it was found.
#[derive(Debug, Clone)]
pub struct Found {
    /// The object.
    pub object: Value,
    /// Where it was found.
    pub origin: Origin,
}

/// An object that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// Kind and name, as far as they can be told.
    pub what: String,
    /// Why.
    pub why: String,
    /// Where it was found.
    pub origin: Origin,
}

impl Scene {
    /// The scene of these objects as of `now`. Kinds that the domain does not know are left out;
    /// objects without a namespace are put into this one. A kind that is there at all counts as
    /// complete: files that are checked together are applied together.
    pub fn of_objects(found: Vec<Found>, namespace: &str, now: Moment) -> (Self, Vec<Unreadable>) {
        let mut scene = Self::default();
        let mut unreadable = Vec::new();
        for Found { mut object, origin } in found {
            let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
            let (api_version, kind) = (text("apiVersion").to_owned(), text("kind").to_owned());
            let group = api_version.split_once('/').map_or("", |(group, _)| group);
            if let Err(why) = scene.put(group, &kind, &mut object, namespace, &origin, now) {
                let name = object.pointer("/metadata/name").and_then(Value::as_str);
                let what = format!("{kind} {}", name.unwrap_or("without a name"));
                unreadable.push(Unreadable { what, why, origin });
            }
        }
        (scene, unreadable)
    }

    /// Objects that were sent by a cluster and cannot be understood.
    pub fn broken(&self) -> Vec<Unreadable> {
        let of = |kind: &str, broken: &BTreeMap<Key, String>| -> Vec<Unreadable> {
            let told = |(key, why): (&Key, &String)| Unreadable {
                what: format!("{kind} {key}"),
                why: why.clone(),
                origin: Origin::Live,
            };
            broken.iter().map(told).collect()
        };
        [
            of("Rollout", &self.rollouts.broken),
            of("Service", &self.services.broken),
            of("VirtualService", &self.routes.broken),
            of("DestinationRule", &self.rules.broken),
            of("AnalysisTemplate", &self.analysis_templates.broken),
            of("ClusterAnalysisTemplate", &self.cluster_analysis_templates.broken),
            of("PodDisruptionBudget", &self.budgets.broken),
        ]
        .concat()
    }

    fn put(
        &mut self,
        group: &str,
        kind: &str,
        object: &mut Value,
        namespace: &str,
        origin: &Origin,
        now: Moment,
    ) -> Result<(), String> {
        let mut put = Put { object, namespace, origin, now };
        match (group, kind) {
            ("argoproj.io", "Rollout") => put.into(&mut self.rollouts),
            ("argoproj.io", "AnalysisTemplate") => put.into(&mut self.analysis_templates),
            ("argoproj.io", "ClusterAnalysisTemplate") => {
                put.namespace = "";
                put.into(&mut self.cluster_analysis_templates)
            }
            ("argoproj.io", "Application") => put.into(&mut self.applications),
            ("apps", "ReplicaSet") => put.into(&mut self.replica_sets),
            ("apps", "Deployment") => put.into(&mut self.deployments),
            ("apps", "StatefulSet") => put.into(&mut self.stateful_sets),
            ("", "Pod") => put.into(&mut self.pods),
            ("", "Service") => put.into(&mut self.services),
            ("", "Node" | "Namespace") => {
                put.namespace = "";
                if kind == "Node" {
                    put.into(&mut self.nodes)
                } else {
                    put.into(&mut self.namespaces)
                }
            }
            ("networking.istio.io", "VirtualService") => put.into(&mut self.routes),
            ("networking.istio.io", "DestinationRule") => put.into(&mut self.rules),
            ("networking.istio.io", "Gateway") => put.into(&mut self.gateways),
            ("telemetry.istio.io", "Telemetry") => put.into(&mut self.telemetries),
            ("monitoring.coreos.com", "PrometheusRule") => put.into(&mut self.alerts),
            ("autoscaling", "HorizontalPodAutoscaler") => put.into(&mut self.autoscalers),
            ("policy", "PodDisruptionBudget") => put.into(&mut self.budgets),
            _ => Ok(()),
        }
    }
}

/// One object on its way into its kind.
struct Put<'a> {
    object: &'a mut Value,
    namespace: &'a str,
    origin: &'a Origin,
    now: Moment,
}

impl Put<'_> {
    fn into<T: DeserializeOwned>(self, kind: &mut Kind<T>) -> Result<(), String> {
        let metadata = self.object.get_mut("metadata").and_then(Value::as_object_mut);
        let metadata = metadata.ok_or("it has no metadata")?;
        if metadata.get("namespace").is_none_or(|namespace| namespace == "") {
            metadata.insert("namespace".to_owned(), self.namespace.into());
        }
        let meta = Value::Object(metadata.clone());
        let meta: Meta = serde_json::from_value(meta).map_err(|error| error.to_string())?;
        if meta.name.is_empty() {
            return Err("it has no metadata.name".to_owned());
        }
        let value = T::deserialize(&*self.object).map_err(|error| error.to_string())?;
        kind.coverage = Coverage::Complete(self.now);
        kind.insert(Key::new(meta.namespace, meta.name), value, self.origin.clone());
        Ok(())
    }
}
