//! What `abort` tells programs.

use jiff::Timestamp;
use serde::Serialize;
use zone_rollout_core::group::Group;
use zone_rollout_core::time::Moment;

use super::API_VERSION;
use crate::exit::Exit;
use crate::render::words::recalled::Told;

/// What `abort -o json` prints.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AbortDocument {
    api_version: &'static str,
    kind: &'static str,
    time: Timestamp,
    namespace: String,
    group: String,
    exit_code: u8,
    zones: Vec<RecalledZone>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct RecalledZone {
    zone: String,
    /// One of a closed list.
    result: &'static str,
    text: String,
    next_commands: Vec<String>,
}

/// The document of an abort.
pub fn abort(group: &Group, told: &[Told], exit: Exit, now: Moment) -> AbortDocument {
    let zone = |told: &Told| RecalledZone {
        zone: told.zone.to_string(),
        result: told.result,
        text: told.text.clone(),
        next_commands: told.next.clone(),
    };
    AbortDocument {
        api_version: API_VERSION,
        kind: "AbortResult",
        time: now.wall,
        namespace: group.namespace.clone(),
        group: group.name.clone(),
        exit_code: exit.code(),
        zones: told.iter().map(zone).collect(),
    }
}
