//! What `abort`, `retry`, `undo`, `hold` and `release` tell programs.

use jiff::Timestamp;
use serde::Serialize;
use zone_rollout_core::group::Group;
use zone_rollout_core::time::Moment;

use super::API_VERSION;
use crate::exit::Exit;
use crate::render::words::recalled::Told;

/// What a verb by hand prints with `-o json`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ByHandDocument {
    api_version: &'static str,
    kind: &'static str,
    time: Timestamp,
    namespace: String,
    group: String,
    exit_code: u8,
    zones: Vec<ZoneResult>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ZoneResult {
    zone: String,
    /// One of a closed list.
    result: &'static str,
    text: String,
    next_commands: Vec<String>,
}

/// The document of a verb by hand; `kind` names the verb.
pub fn by_hand(
    kind: &'static str,
    group: &Group,
    told: &[Told],
    exit: Exit,
    now: Moment,
) -> ByHandDocument {
    let zone = |told: &Told| ZoneResult {
        zone: told.zone.to_string(),
        result: told.result,
        text: told.text.clone(),
        next_commands: told.next.clone(),
    };
    ByHandDocument {
        api_version: API_VERSION,
        kind,
        time: now.wall,
        namespace: group.namespace.clone(),
        group: group.name.clone(),
        exit_code: exit.code(),
        zones: told.iter().map(zone).collect(),
    }
}
