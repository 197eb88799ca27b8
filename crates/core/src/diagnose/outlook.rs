//! Where the requests to each host go, now and after each zone's loss.

use std::collections::{BTreeMap, BTreeSet};

use crate::scene::Scene;
use crate::traffic::{Client, Cluster, Loss, Mesh, fully_qualified, rollout_routes, service_of};

/// The outlook of one host.
pub(super) struct Outlook<'m> {
    /// Fully qualified host.
    pub host: String,
    /// Zones in which it has pods.
    pub zones: BTreeSet<String>,
    /// Its clients in each zone that has nodes.
    pub clients: Vec<ClientOutlook<'m>>,
    /// Its clients on nodes without a zone.
    pub elsewhere: ClientOutlook<'m>,
}

/// The outlook of the clients in one zone.
pub(super) struct ClientOutlook<'m> {
    /// The zone they are in.
    pub zone: String,
    /// The clusters they send to, with weights that add up to 1.
    pub clusters: Vec<(Cluster<'m>, f64)>,
    /// They themselves.
    pub client: Client,
}

/// Shares of a client's requests by the zone that answers, and the share answered with an error.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Shares {
    /// By zone; pods whose zone is not known are under an empty name.
    pub zones: BTreeMap<String, f64>,
    /// Answered with an error.
    pub errors: f64,
}

impl Shares {
    /// The share that this zone answers.
    pub fn of(&self, zone: &str) -> f64 {
        self.zones.get(zone).copied().unwrap_or(0.0)
    }

    /// The zone that answers most.
    pub fn main(&self) -> Option<&str> {
        let most = self.zones.iter().max_by(|one, other| one.1.total_cmp(other.1));
        most.map(|(zone, _)| zone.as_str())
    }
}

impl<'m> Outlook<'m> {
    /// The outlooks of all hosts that a rule, a route or a Rollout is about.
    pub(super) fn all(scene: &Scene, mesh: &'m Mesh<'m>) -> Vec<Self> {
        let zones: BTreeSet<String> =
            scene.nodes.iter().filter_map(|(_, node)| node.zone().map(str::to_owned)).collect();
        hosts(scene).into_iter().map(|host| Self::of(scene, mesh, host, &zones)).collect()
    }

    fn of(scene: &Scene, mesh: &'m Mesh<'m>, host: String, zones: &BTreeSet<String>) -> Self {
        let members = mesh.cluster(&host, "").members;
        let own = members.iter().filter_map(|member| member.zone.clone()).collect();
        let of = |zone: &str, client: Client| {
            let clusters = mesh.clusters(&host, &client);
            ClientOutlook { zone: zone.to_owned(), clusters, client }
        };
        let clients = zones.iter().map(|zone| of(zone, Client::in_zone(scene, zone))).collect();
        let elsewhere = of("", Client::outside());
        Self { zones: own, clients, elsewhere, host }
    }
}

impl ClientOutlook<'_> {
    /// Where its requests go.
    pub(super) fn shares(&self, loss: Option<Loss<'_>>) -> Shares {
        shares(&self.clusters, &self.client, loss)
    }
}

/// Where requests over these clusters go, by zone.
pub(super) fn shares(
    clusters: &[(Cluster<'_>, f64)],
    client: &Client,
    loss: Option<Loss<'_>>,
) -> Shares {
    let mut all = Shares::default();
    for (cluster, weight) in clusters {
        let (zones, errors) = cluster.answers(client, loss);
        all.errors += weight * errors;
        for (zone, share) in zones {
            *all.zones.entry(zone).or_default() += weight * share;
        }
    }
    all
}

fn hosts(scene: &Scene) -> BTreeSet<String> {
    let known =
        |host: &String| service_of(host).is_some_and(|key| scene.services.get(&key).is_some());
    let routed = scene.routes.iter().flat_map(|(key, virtual_service)| {
        virtual_service.spec.hosts.iter().map(|host| fully_qualified(host, &key.namespace))
    });
    let ruled = scene.rules.iter().flat_map(|(key, rule)| match rule.spec.host.strip_prefix('*') {
        None => vec![fully_qualified(&rule.spec.host, &key.namespace)],
        Some(end) => covered(scene, end),
    });
    let rolled = scene.rollouts.iter().flat_map(|(_, rollout)| {
        rollout_routes(scene, rollout).unwrap_or_default().into_iter().map(|route| route.host)
    });
    routed.chain(ruled).chain(rolled).filter(known).collect()
}

fn covered(scene: &Scene, end: &str) -> Vec<String> {
    let hosts = scene.services.iter().map(|(key, _)| fully_qualified(&key.name, &key.namespace));
    hosts.filter(|host| host.ends_with(end)).collect()
}
