//! What the zones are to run in the end.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::group::{Group, Zone, ZoneId};
use crate::scene::{Rollout, Scene};
use crate::template::{ImageError, Images, difference, resolve_images, runs};
use crate::zone::target_template;

/// The version that a run brings to every zone.
#[derive(Debug, Clone)]
pub enum Goal {
    /// What the zones in flight already ask for.
    InFlight {
        /// The template of one of them.
        template: Value,
        /// That zone.
        zone: Zone,
    },
    /// Images that this run sets itself, zone by zone.
    Set(BTreeMap<ZoneId, Images>),
    /// Images that somebody else will set.
    Expected(BTreeMap<ZoneId, Images>),
    /// Templates that the zones had before, which this run sets again, zone by zone.
    Restored(BTreeMap<ZoneId, Value>),
}

impl Goal {
    /// The goal of a group whose zones are already asked to update; nothing if none is.
    pub fn in_flight(scene: &Scene, group: &Group) -> Option<Self> {
        target_template(scene, group).map(|(template, zone)| Self::InFlight {
            template: template.clone(),
            zone: zone.clone(),
        })
    }

    /// Images for each zone from what was typed: `IMAGE` or `CONTAINER=IMAGE`.
    ///
    /// # Errors
    /// The first zone whose template does not have the container.
    pub fn images(
        scene: &Scene,
        group: &Group,
        wanted: &[String],
    ) -> Result<BTreeMap<ZoneId, Images>, (ZoneId, ImageError)> {
        group
            .zones
            .iter()
            .filter_map(|zone| Some((zone, zone.rollout(scene)?)))
            .map(|(zone, rollout)| {
                resolve_images(&rollout.spec.template, wanted)
                    .map(|images| (zone.id.clone(), images))
                    .map_err(|error| (zone.id.clone(), error))
            })
            .collect()
    }

    /// True if zones go back to what they had: what is amiss with them now is why, and no reason not to.
    /// The controller may take them there without any step (`rollbackWindow`).
    pub fn goes_back(&self) -> bool {
        matches!(self, Self::Restored(_))
    }

    /// True if the zone's template is what the goal asks for.
    pub fn is_asked_for(&self, zone: &Zone, rollout: &Rollout) -> bool {
        let template = &rollout.spec.template;
        match self {
            Self::InFlight { template: wanted, zone: owner } => {
                difference((template, zone), (wanted, owner)).is_none()
            }
            Self::Set(images) | Self::Expected(images) => {
                images.get(&zone.id).is_some_and(|images| runs(template, images))
            }
            Self::Restored(templates) => templates.get(&zone.id) == Some(template),
        }
    }

    /// The version in people's words: `myapp:v2`.
    pub fn version(&self) -> String {
        match self {
            Self::InFlight { template, .. } => crate::template::version(template),
            Self::Restored(templates) => {
                templates.values().next().map_or_else(String::new, crate::template::version)
            }
            Self::Set(images) | Self::Expected(images) => {
                let short = |image: &String| image.rsplit('/').next().unwrap_or(image).to_owned();
                let all = images.values().next().into_iter().flat_map(BTreeMap::values);
                all.map(short).collect::<Vec<_>>().join(",")
            }
        }
    }
}
