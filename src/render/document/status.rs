//! What `status` tells programs.

use jiff::Timestamp;
use serde::Serialize;

use super::API_VERSION;
use crate::render::view::{GroupView, VersionView, ZoneView};
use crate::render::words::{self, Flags};

/// What `status -o json` prints.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusDocument {
    api_version: &'static str,
    kind: &'static str,
    /// When it was seen.
    observed_at: Timestamp,
    namespace: String,
    group: String,
    zones: Vec<ZoneDocument>,
    /// Kinds that could not be read.
    not_seen: Vec<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ZoneDocument {
    zone: String,
    topology: Option<String>,
    rollout: String,
    /// One of a closed list.
    state: &'static str,
    state_in_words: String,
    step: usize,
    steps: usize,
    step_label: Option<String>,
    weight: WeightDocument,
    replicas: u32,
    stable: Option<VersionDocument>,
    canary: Option<VersionDocument>,
    since: Option<Timestamp>,
    awaited: Option<String>,
    next_command: Option<String>,
    trouble: Option<String>,
    outage: Option<String>,
    /// The zone to which `evacuate` has sent the clients, or `elsewhere`; null if they are at home.
    evacuated_to: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct WeightDocument {
    /// In percent.
    wanted: u32,
    /// In percent, by the VirtualServices; null if it cannot be told.
    in_force: Option<u32>,
    /// Why it cannot be told.
    unknown_because: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct VersionDocument {
    version: String,
    images: Vec<ImageDocument>,
    pod_template_hash: String,
    /// Null if they cannot be seen.
    pods: Option<u32>,
    ready_pods: Option<u32>,
}

#[derive(Debug, Serialize)]
struct ImageDocument {
    container: String,
    image: String,
}

/// The document of a group.
pub fn status(view: &GroupView, flags: &Flags) -> StatusDocument {
    StatusDocument {
        api_version: API_VERSION,
        kind: "GroupStatus",
        observed_at: view.at.wall,
        namespace: view.group.namespace.clone(),
        group: view.group.name.clone(),
        zones: view.zones.iter().map(|zone| zone_document(view, zone, flags)).collect(),
        not_seen: view.gaps.clone(),
    }
}

fn zone_document(view: &GroupView, zone: &ZoneView, flags: &Flags) -> ZoneDocument {
    let advice = words::advice(view, zone, flags);
    ZoneDocument {
        zone: zone.zone.id.to_string(),
        topology: zone.zone.topology.clone(),
        rollout: zone.zone.rollout.name.clone(),
        state: zone.state.name(),
        state_in_words: words::state(zone, view.at),
        step: zone.step,
        steps: zone.steps,
        step_label: zone.label.clone(),
        weight: WeightDocument {
            wanted: zone.wanted,
            in_force: zone.in_force.as_ref().ok().map(|in_force| in_force.highest),
            unknown_because: zone.in_force.as_ref().err().map(ToString::to_string),
        },
        replicas: zone.replicas,
        stable: zone.stable.as_ref().map(version_document),
        canary: zone.canary.as_ref().map(version_document),
        since: zone.since,
        awaited: advice.as_ref().map(|advice| advice.awaited.clone()),
        next_command: advice.and_then(|advice| advice.command),
        trouble: zone.trouble.as_ref().map(ToString::to_string),
        outage: zone.outage.as_ref().map(ToString::to_string),
        evacuated_to: zone.diverted.as_ref().map(|diverted| {
            diverted.to.as_ref().map_or_else(|| "elsewhere".to_owned(), ToString::to_string)
        }),
    }
}

fn version_document(version: &VersionView) -> VersionDocument {
    VersionDocument {
        version: version.version.clone(),
        images: version
            .images
            .iter()
            .map(|(container, image)| ImageDocument {
                container: container.clone(),
                image: image.clone(),
            })
            .collect(),
        pod_template_hash: version.hash.clone(),
        pods: version.pods.map(|pods| pods.all),
        ready_pods: version.pods.map(|pods| pods.ready),
    }
}
