//! Callers, and which of a VirtualService's routes count for them.

use std::collections::BTreeMap;

use super::locality::{Labels, matches_locality};
use crate::scene::{HttpMatch, HttpRoute, REGION_LABEL, Scene, VirtualService, ZONE_LABEL};

/// A caller, known by the labels that istiod gives its proxy.
#[derive(Debug, Clone)]
pub struct Client {
    pub(super) labels: Labels,
    pub(super) proxy: Proxy,
}

/// Which proxy sends a caller's requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Proxy {
    /// Its own sidecar.
    Sidecar,
    /// A gateway.
    Gateway,
    /// A waypoint, which does not know the caller's labels.
    Waypoint {
        /// Up to Istio 1.24 it takes routes with source labels as if they had none; newer ones drop
        /// these routes.
        ignores_labels: bool,
    },
}

impl Client {
    /// A client with a sidecar on a node of this zone.
    pub fn in_zone(scene: &Scene, zone: &str) -> Self {
        let mut labels = Labels::from([(ZONE_LABEL.to_owned(), zone.to_owned())]);
        let region = scene
            .nodes
            .iter()
            .filter(|(_, node)| node.zone() == Some(zone))
            .find_map(|(_, node)| node.meta.labels.get(REGION_LABEL));
        labels.extend(region.map(|region| (REGION_LABEL.to_owned(), region.clone())));
        Self { labels, proxy: Proxy::Sidecar }
    }

    /// A client with a sidecar on a node without a zone.
    pub fn outside() -> Self {
        Self { labels: BTreeMap::new(), proxy: Proxy::Sidecar }
    }

    /// A gateway on a node of this zone.
    pub fn gateway(scene: &Scene, zone: &str) -> Self {
        Self { proxy: Proxy::Gateway, ..Self::in_zone(scene, zone) }
    }

    /// A waypoint on a node of this zone.
    pub fn waypoint(scene: &Scene, zone: &str, ignores_labels: bool) -> Self {
        Self { proxy: Proxy::Waypoint { ignores_labels }, ..Self::in_zone(scene, zone) }
    }

    /// True if it is in this locality: `region/zone/subzone`, where `*` is anything.
    pub fn is_in(&self, locality: &str) -> bool {
        matches_locality(locality, &self.labels)
    }

    /// The first route whose conditions depend on nothing but the caller, and hold.
    pub(super) fn route<'a>(&self, virtual_service: &'a VirtualService) -> Option<&'a HttpRoute> {
        virtual_service.spec.http.iter().find(|route| {
            route.matches.is_empty() || route.matches.iter().any(|entry| self.applies(entry))
        })
    }

    /// Mirrors `sourceMatchHTTP` (istio `pilot/pkg/networking/core/route`): with gateways set, source
    /// labels are not looked at.
    fn applies(&self, entry: &HttpMatch) -> bool {
        if !entry.request.is_empty() {
            return false;
        }
        if !entry.gateways.is_empty() {
            let of_mesh = entry.gateways.iter().any(|name| name == "mesh");
            return of_mesh == (self.proxy != Proxy::Gateway);
        }
        let all = |labels: &Labels| {
            entry.source_labels.iter().all(|(label, value)| labels.get(label) == Some(value))
        };
        match self.proxy {
            Proxy::Waypoint { ignores_labels } => ignores_labels || entry.source_labels.is_empty(),
            Proxy::Sidecar | Proxy::Gateway => all(&self.labels),
        }
    }
}
