//! What `plan` tells programs.

use jiff::Timestamp;
use serde::Serialize;
use zone_rollout_core::exposure::Share;
use zone_rollout_core::group::Group;
use zone_rollout_core::promote::{Blocker, Planned};
use zone_rollout_core::rehearsal::{ExposurePoint, Timeline, ZoneTimeline};
use zone_rollout_core::time::Moment;

use super::API_VERSION;

/// What `plan -o json` prints.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanDocument {
    api_version: &'static str,
    kind: &'static str,
    time: Timestamp,
    namespace: String,
    group: String,
    /// One of a closed list.
    result: &'static str,
    /// What `promote --plan` insists on.
    hash: Option<String>,
    version: Option<String>,
    blockers: Vec<BlockerDocument>,
    /// How it ends, for people.
    ending: Option<String>,
    /// Why nothing can be foretold.
    unknown_because: Option<String>,
    zones: Vec<ZoneDocument>,
    exposure: Vec<ExposureDocument>,
}

#[derive(Debug, Serialize)]
struct BlockerDocument {
    code: &'static str,
    text: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ZoneDocument {
    zone: String,
    started_at: Option<Timestamp>,
    weights: Vec<WeightDocument>,
    promoted_at: Option<Timestamp>,
    verified_at: Option<Timestamp>,
}

#[derive(Debug, Serialize)]
struct WeightDocument {
    at: Timestamp,
    weight: u32,
}

#[derive(Debug, Serialize)]
struct ExposureDocument {
    at: Timestamp,
    now: ShareDocument,
    worst: Option<WorstDocument>,
}

#[derive(Debug, Serialize)]
struct ShareDocument {
    new: f64,
    unserved: f64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct WorstDocument {
    lost_zone: String,
    new: f64,
    unserved: f64,
}

/// What is known of the future.
#[derive(Debug, Default)]
pub struct Preview<'a> {
    /// The plan's hash.
    pub hash: Option<String>,
    /// What happens when.
    pub timeline: Option<&'a Timeline>,
    /// How it ends.
    pub ending: Option<String>,
    /// Why nothing can be foretold.
    pub unknown: Option<String>,
}

/// The document of a plan.
pub fn plan(group: &Group, planned: &Planned, preview: Preview<'_>, now: Moment) -> PlanDocument {
    let (result, version, blockers) = match planned {
        Planned::NothingToDo => ("NothingToDo", None, &[][..]),
        Planned::Plan(plan) => ("Planned", Some(plan.version.clone()), &[][..]),
        Planned::Refused(blockers) => ("Refused", None, &blockers[..]),
    };
    let timeline = preview.timeline;
    PlanDocument {
        api_version: API_VERSION,
        kind: "Plan",
        time: now.wall,
        namespace: group.namespace.clone(),
        group: group.name.clone(),
        result,
        hash: preview.hash,
        version,
        blockers: blockers.iter().map(blocker).collect(),
        ending: preview.ending,
        unknown_because: preview.unknown,
        zones: timeline.map(|it| it.zones.iter().map(zone).collect()).unwrap_or_default(),
        exposure: timeline.map(|it| it.exposure.iter().map(exposure).collect()).unwrap_or_default(),
    }
}

fn blocker(blocker: &Blocker) -> BlockerDocument {
    BlockerDocument { code: blocker.code(), text: blocker.to_string() }
}

fn zone(zone: &ZoneTimeline) -> ZoneDocument {
    let weight = |point: &zone_rollout_core::rehearsal::WeightPoint| WeightDocument {
        at: point.at,
        weight: point.weight,
    };
    ZoneDocument {
        zone: zone.zone.to_string(),
        started_at: zone.started,
        weights: zone.weights.iter().map(weight).collect(),
        promoted_at: zone.promoted,
        verified_at: zone.verified,
    }
}

fn exposure(point: &ExposurePoint) -> ExposureDocument {
    let Share { new, unserved } = point.now;
    ExposureDocument {
        at: point.at,
        now: ShareDocument { new, unserved },
        worst: point.worst.as_ref().map(|(zone, share)| WorstDocument {
            lost_zone: zone.to_string(),
            new: share.new,
            unserved: share.unserved,
        }),
    }
}
