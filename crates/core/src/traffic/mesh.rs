//! The endpoints of a scene as istiod knows them, and the clusters that clients send to.

use std::collections::BTreeMap;

use super::client::{Client, Proxy};
use super::flow::Loss;
use super::host::{fully_qualified, is_host, service_of};
use super::locality::{self, Health, Labels};
use super::merge::merged_rule;
use crate::group::topology_of;
use crate::scene::{Key, Pod, Scene, Service, Subset, TrafficPolicy, VirtualService};

/// A Ready pod with the labels that istiod sees on it.
#[derive(Debug)]
pub struct Endpoint<'a> {
    /// The pod.
    pub key: &'a Key,
    /// The zone it runs in, if that is known.
    pub zone: Option<String>,
    labels: Labels,
}

/// The endpoints of a scene, by namespace.
pub struct Mesh<'a> {
    scene: &'a Scene,
    endpoints: BTreeMap<&'a str, Vec<Endpoint<'a>>>,
}

/// One cluster in Envoy's sense.
#[derive(Debug)]
pub struct Cluster<'m> {
    /// Fully qualified host.
    pub host: String,
    /// Empty for the plain host.
    pub subset: String,
    /// False if no DestinationRule has the subset: Envoy has no such cluster and answers 503 (NC).
    pub exists: bool,
    /// Its endpoints.
    pub members: Vec<&'m Endpoint<'m>>,
    /// The merged policy.
    pub policy: TrafficPolicy,
    /// Whether the Service itself prefers near endpoints.
    pub near: bool,
}

impl<'a> Mesh<'a> {
    /// All endpoints of a scene.
    pub fn of(scene: &'a Scene) -> Self {
        let mut places: BTreeMap<String, Labels> = BTreeMap::new();
        let mut endpoints: BTreeMap<&str, Vec<Endpoint<'_>>> = BTreeMap::new();
        for (key, pod) in scene.pods.iter().filter(|(_, pod)| pod.is_ready()) {
            let zone = pod_zone(scene, pod);
            let mut labels = pod.meta.labels.clone();
            if let Some(zone) = &zone {
                let place = places.entry(zone.clone());
                let place = place.or_insert_with(|| Client::in_zone(scene, zone).labels);
                labels.extend(place.iter().map(|(key, value)| (key.clone(), value.clone())));
            }
            endpoints.entry(&key.namespace).or_default().push(Endpoint { key, zone, labels });
        }
        Self { scene, endpoints }
    }

    /// The clusters a client's requests go to, with weights that add up to 1.
    ///
    /// A client that no route matches is not refused: istiod then installs the plain route of the
    /// Service (`BuildSidecarOutboundVirtualHosts`).
    pub fn clusters(&self, host: &str, client: &Client) -> Vec<(Cluster<'_>, f64)> {
        let plain = || vec![(self.cluster(host, ""), 1.0)];
        let Some(virtual_service) = self.virtual_service(host, client) else { return plain() };
        let Some(route) = client.route(virtual_service) else { return plain() };
        let weight = |weight: Option<f64>| match route.destinations.len() {
            1 => 1.0,
            _ => weight.unwrap_or(0.0),
        };
        let total: f64 = route.destinations.iter().map(|to| weight(to.weight)).sum();
        let taken = route.destinations.iter().filter(|to| weight(to.weight) > 0.0);
        taken
            .map(|to| {
                let host = fully_qualified(&to.destination.host, &virtual_service.meta.namespace);
                (self.cluster(&host, &to.destination.subset), weight(to.weight) / total)
            })
            .collect()
    }

    /// The cluster of a host, or of a subset of it.
    pub fn cluster(&self, host: &str, subset: &str) -> Cluster<'_> {
        let merged = merged_rule(self.scene, host);
        let defined = merged.subset(subset).map(|effective| effective.subset);
        let exists = subset.is_empty() || defined.is_some();
        let service = service_of(host).and_then(|key| self.scene.services.get(&key));
        let members = if exists { self.members(host, defined) } else { Vec::new() };
        Cluster {
            host: host.to_owned(),
            subset: subset.to_owned(),
            exists,
            members,
            policy: merged.policy(defined),
            near: service.is_some_and(Service::prefers_near),
        }
    }

    fn members(&self, host: &str, subset: Option<&Subset>) -> Vec<&Endpoint<'a>> {
        let key = service_of(host);
        let service = key.as_ref().and_then(|key| self.scene.services.get(key));
        let wanted = subset.map(|subset| &subset.labels).into_iter().flatten();
        let selector = service.map(|service| &service.spec.selector).into_iter().flatten();
        let wanted: Vec<(&String, &String)> = wanted.chain(selector).collect();
        let namespace = key.as_ref().map_or("", |key| key.namespace.as_str());
        let there = self.endpoints.get(namespace).into_iter().flatten();
        there
            .filter(|endpoint| {
                wanted.iter().all(|(label, value)| endpoint.labels.get(*label) == Some(*value))
            })
            .collect()
    }

    /// The VirtualService a proxy uses for a host. Sidecars do not merge several, they use the
    /// oldest; a gateway's is found by where its routes lead, since its hosts are public names.
    fn virtual_service(&self, host: &str, client: &Client) -> Option<&'a VirtualService> {
        let of_mesh = |name: &String| name == "mesh";
        let serves = |virtual_service: &VirtualService| {
            let (spec, namespace) = (&virtual_service.spec, &virtual_service.meta.namespace);
            if client.proxy == Proxy::Gateway {
                return spec.gateways.iter().any(|name| !of_mesh(name))
                    && leads_to(virtual_service, host);
            }
            let in_mesh = spec.gateways.is_empty() || spec.gateways.iter().any(of_mesh);
            in_mesh && spec.hosts.iter().any(|name| is_host(name, namespace, host))
        };
        self.scene
            .routes
            .iter()
            .map(|(_, virtual_service)| virtual_service)
            .filter(|virtual_service| serves(virtual_service))
            .min_by_key(|virtual_service| {
                (virtual_service.meta.creation_timestamp, &virtual_service.meta.name)
            })
    }
}

/// True if a route of the VirtualService has a destination on this host.
pub(crate) fn leads_to(virtual_service: &VirtualService, host: &str) -> bool {
    let namespace = &virtual_service.meta.namespace;
    let mut destinations = virtual_service.spec.http.iter().flat_map(|route| &route.destinations);
    destinations.any(|to| is_host(&to.destination.host, namespace, host))
}

impl Cluster<'_> {
    /// The share of a client's requests that pods of each zone answer, and the share that is answered
    /// with an error. Pods whose zone is not known are under an empty name.
    pub fn answers(&self, client: &Client, loss: Option<Loss<'_>>) -> (BTreeMap<String, f64>, f64) {
        let mut zones: BTreeMap<String, f64> = BTreeMap::new();
        for (endpoint, share) in self.shares(client, loss) {
            let zone = endpoint.zone.as_deref().unwrap_or_default();
            if share > 0.0 && loss != Some(Loss::Failing(zone)) {
                *zones.entry(zone.to_owned()).or_default() += share;
            }
        }
        let served: f64 = zones.values().sum();
        (zones, (1.0 - served).max(0.0))
    }

    /// The share of each endpoint that is left in a client's traffic.
    pub(super) fn shares(
        &self,
        client: &Client,
        loss: Option<Loss<'_>>,
    ) -> Vec<(&Endpoint<'_>, f64)> {
        let gone = |endpoint: &Endpoint<'_>| matches!(loss, Some(Loss::Zone(zone)) if endpoint.zone.as_deref() == Some(zone));
        let health = |endpoint: &Endpoint<'_>| match loss {
            Some(Loss::Failing(zone)) if endpoint.zone.as_deref() == Some(zone) => Health::Failing,
            _ => Health::Good,
        };
        let left: Vec<&Endpoint<'_>> =
            self.members.iter().copied().filter(|endpoint| !gone(endpoint)).collect();
        let endpoints: Vec<(&Labels, Health)> =
            left.iter().map(|endpoint| (&endpoint.labels, health(endpoint))).collect();
        let shares = locality::shares(&self.policy, self.near, &client.labels, &endpoints);
        left.into_iter().zip(shares).collect()
    }
}

/// The zone a pod runs in: its node's, or the one its Rollout is bound to if the node is unknown.
pub fn pod_zone(scene: &Scene, pod: &Pod) -> Option<String> {
    let node = scene.nodes.get(&Key::new("", &pod.spec.node_name));
    node.and_then(|node| node.zone().map(str::to_owned)).or_else(|| {
        let replica_set = scene
            .replica_sets
            .iter()
            .map(|(_, replica_set)| replica_set)
            .find(|replica_set| pod.meta.is_owned_by(&replica_set.meta.uid))?;
        let rollout = scene
            .rollouts
            .iter()
            .map(|(_, rollout)| rollout)
            .find(|rollout| replica_set.meta.is_owned_by(&rollout.meta.uid))?;
        topology_of(rollout)
    })
}
