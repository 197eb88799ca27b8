//! What a zone ran before: the templates that its ReplicaSets still have.

use serde_json::Value;

use crate::group::{Group, Zone};
use crate::scene::{ReplicaSet, Scene};
use crate::template::{as_written, difference};
use crate::zone::{ZoneFacts, target_template};

/// Annotation with the number that the controller gives each template (`utils/annotations`).
const REVISION: &str = "rollout.argoproj.io/revision";

/// A template that a zone had before.
#[derive(Debug, Clone, PartialEq)]
pub struct Earlier {
    /// Its number.
    pub revision: u64,
    /// The template, as it was written into the Rollout.
    pub template: Value,
}

/// The revision with this number, or else the one before the one the zone asks for now; nothing if no
/// ReplicaSet of it is left (`spec.revisionHistoryLimit`).
pub fn earlier(scene: &Scene, zone: &Zone, revision: Option<u64>) -> Option<Earlier> {
    let rollout = zone.rollout(scene)?;
    let owned = scene
        .replica_sets
        .iter()
        .map(|(_, replica_set)| replica_set)
        .filter(|replica_set| replica_set.meta.is_owned_by(&rollout.meta.uid))
        .filter(|replica_set| replica_set.hash() != rollout.status.current_pod_hash);
    let (revision, found) = owned
        .filter_map(|replica_set| Some((number(replica_set)?, replica_set)))
        .filter(|(number, _)| revision.is_none_or(|wanted| wanted == *number))
        .max_by_key(|(number, _)| *number)?;
    Some(Earlier { revision, template: as_written(&found.spec.template, rollout) })
}

/// True of a zone that is in flight, or at rest on the version that came to the group last.
pub fn is_of_release(scene: &Scene, group: &Group, facts: &ZoneFacts<'_>) -> bool {
    let newest = target_template(scene, group).or_else(|| newest_template(scene, group));
    let same = |(template, zone): (&Value, &Zone)| {
        difference((&facts.rollout.spec.template, facts.zone), (template, zone)).is_none()
    };
    facts.is_in_flight() || newest.is_some_and(same)
}

/// The template of the zone whose ReplicaSet is the youngest.
fn newest_template<'a>(scene: &'a Scene, group: &'a Group) -> Option<(&'a Value, &'a Zone)> {
    let zones = group.zones.iter().filter_map(|zone| ZoneFacts::gather(scene, zone));
    let born = zones.filter_map(|facts| {
        let replica_set = facts.stable.as_ref()?.replica_set?;
        let template = &facts.rollout.spec.template;
        Some((replica_set.meta.creation_timestamp, template, facts.zone))
    });
    born.max_by_key(|(born, ..)| *born).map(|(_, template, zone)| (template, zone))
}

fn number(replica_set: &ReplicaSet) -> Option<u64> {
    replica_set.meta.annotations.get(REVISION)?.parse().ok()
}
