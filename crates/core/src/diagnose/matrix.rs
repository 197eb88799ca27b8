//! Where the requests to each host go: one row for each kind of client, now and after the loss of
//! each zone.

use super::outlook::{Outlook, Shares, shares};
use super::version::{Version, Versions};
use crate::scene::Scene;
use crate::traffic::{Client, Loss, Mesh, leads_to};

/// The rows of one host.
#[derive(Debug, Clone)]
pub struct HostMatrix {
    /// Fully qualified host.
    pub host: String,
    /// Zones in which it has pods.
    pub zones: Vec<String>,
    /// One row for each kind of client.
    pub rows: Vec<ClientRow>,
}

/// Where the requests of one kind of client go.
#[derive(Debug, Clone)]
pub struct ClientRow {
    /// Who: `us-east-1a`, `outside`, `gateway in us-east-1a`.
    pub client: String,
    /// As things are.
    pub now: Shares,
    /// With all pods of a zone gone, by zone.
    pub gone: Vec<(String, Shares)>,
    /// With all pods of a zone answering with errors, by zone, after those that may be are ejected.
    pub failing: Vec<(String, Shares)>,
}

/// The matrices of all hosts that have a rule, a route or a Rollout.
pub fn matrix(scene: &Scene, versions: Versions) -> Vec<HostMatrix> {
    let versions = versions.or_read_from(scene);
    let (complete, _) = scene.with_assumed_pods();
    let complete = complete.with_shared_rules_rewritten();
    let mesh = Mesh::of(&complete);
    let outlooks = Outlook::all(&complete, &mesh);
    outlooks.iter().map(|outlook| of_host(&complete, &mesh, outlook, versions)).collect()
}

fn of_host(
    scene: &Scene,
    mesh: &Mesh<'_>,
    outlook: &Outlook<'_>,
    versions: Versions,
) -> HostMatrix {
    let mut clients: Vec<(String, Client)> =
        outlook.clients.iter().map(|client| (client.zone.clone(), client.client.clone())).collect();
    clients.push(("outside".to_owned(), Client::outside()));
    let zones: Vec<&String> = outlook.clients.iter().map(|client| &client.zone).collect();
    if has_gateway(scene, &outlook.host) {
        let gateway = |zone: &&String| (format!("gateway in {zone}"), Client::gateway(scene, zone));
        clients.extend(zones.iter().map(gateway));
    }
    if super::rules::waypoint_of_host(scene, &outlook.host) {
        let old = versions.istio.is_some_and(|istio| istio < Version::new(1, 25));
        let waypoint =
            |zone: &&String| (format!("waypoint in {zone}"), Client::waypoint(scene, zone, old));
        clients.extend(zones.iter().map(waypoint));
    }
    let zones: Vec<String> = outlook.zones.iter().cloned().collect();
    let rows =
        clients.into_iter().map(|(name, client)| row(mesh, &outlook.host, name, &client, &zones));
    HostMatrix { host: outlook.host.clone(), rows: rows.collect(), zones }
}

fn row(mesh: &Mesh<'_>, host: &str, name: String, client: &Client, zones: &[String]) -> ClientRow {
    let clusters = mesh.clusters(host, client);
    let after = |loss: fn(&str) -> Loss<'_>| -> Vec<(String, Shares)> {
        let lost = |zone: &String| (zone.clone(), shares(&clusters, client, Some(loss(zone))));
        zones.iter().map(lost).collect()
    };
    ClientRow {
        client: name,
        now: shares(&clusters, client, None),
        gone: after(|zone| Loss::Zone(zone)),
        failing: after(|zone| Loss::Failing(zone)),
    }
}

fn has_gateway(scene: &Scene, host: &str) -> bool {
    scene.routes.iter().any(|(_, virtual_service)| {
        let outside = virtual_service.spec.gateways.iter().any(|name| name != "mesh");
        outside && leads_to(virtual_service, host)
    })
}
