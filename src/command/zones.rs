//! Which zones a verb by hand is about: those that were named, or the one that it can be about.

use zone_rollout_core::group::{Group, ZoneId};
use zone_rollout_core::scene::Scene;
use zone_rollout_core::zone::ZoneFacts;

use super::Context;
use crate::cli::Zones;
use crate::error::Error;

/// How a verb chooses zones that were not named.
pub(super) struct Choice {
    /// The verb.
    pub(super) verb: &'static str,
    /// What is true of them: `in flight`.
    pub(super) what: &'static str,
    /// Whether it is true.
    pub(super) fits: fn(&Scene, &Group, &ZoneFacts<'_>) -> bool,
}

impl Context {
    /// The group, and its zones that are meant, the newest first.
    pub(super) fn choose(
        &self,
        scene: &Scene,
        args: &Zones,
        choice: &Choice,
    ) -> Result<(Group, Vec<ZoneId>), Error> {
        let mut group: Option<Group> = None;
        let mut zones: Vec<ZoneId> = Vec::new();
        for address in &args.zones {
            let (found, zone) = self.find(scene, &args.which, Some(address))?;
            if group.as_ref().is_some_and(|group| *group != found) {
                return Err(Error::usage(format!(
                    "the zones belong to different groups; {} them one by one",
                    choice.verb
                )));
            }
            match zone {
                Some(zone) => zones.push(zone),
                None => zones.extend(fitting(scene, &found, choice)),
            }
            group = Some(found);
        }
        if let Some(group) = group {
            return Ok((group, zones));
        }
        let (group, _) = self.find(scene, &args.which, None)?;
        let fitting = fitting(scene, &group, choice);
        if fitting.len() > 1 && !args.all {
            let names: Vec<&str> = fitting.iter().map(|zone| zone.0.as_str()).collect();
            let what = format!("several zones are {}: {}", choice.what, names.join(", "));
            return Err(Error::usage(what).hint(format!(
                "name them, or take all: kubectl zone-rollout {} --all{}",
                choice.verb, self.flags.0
            )));
        }
        Ok((group, fitting))
    }
}

/// The zones of which it is true, the newest first.
fn fitting(scene: &Scene, group: &Group, choice: &Choice) -> Vec<ZoneId> {
    let mut fitting: Vec<(Option<jiff::Timestamp>, ZoneId)> = group
        .zones
        .iter()
        .filter_map(|zone| ZoneFacts::gather(scene, zone))
        .filter(|facts| (choice.fits)(scene, group, facts))
        .map(|facts| (born(&facts), facts.zone.id.clone()))
        .collect();
    fitting.sort_by(|one, other| other.cmp(one));
    fitting.into_iter().map(|(_, zone)| zone).collect()
}

/// When the zone's latest template came to it.
fn born(facts: &ZoneFacts<'_>) -> Option<jiff::Timestamp> {
    let latest = facts.canary.as_ref().or(facts.stable.as_ref())?;
    latest.replica_set?.meta.creation_timestamp
}
