//! Groups: the Rollouts of one service, one per zone. Which Rollouts belong together and which zone
//! each serves is read from their labels, affinity and routing; nothing has to be configured.

mod address;
mod membership;

use std::fmt;

use serde::Serialize;

pub use address::{AddressError, Selection, resolve};
pub(crate) use membership::topology_of;
pub use membership::{GROUP_LABEL, ZONE_LABEL, find_groups, group_by_hand};

use crate::scene::{Key, Rollout, Scene};

/// Short name of a zone within its group: `a`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct ZoneId(pub String);

impl fmt::Display for ZoneId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The Rollouts of one service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Name, unique in its namespace.
    pub name: String,
    /// Namespace of all its Rollouts.
    pub namespace: String,
    /// Its zones, by short name.
    pub zones: Vec<Zone>,
}

/// One zone of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zone {
    /// Short name.
    pub id: ZoneId,
    /// The Rollout that serves the zone.
    pub rollout: Key,
    /// Value of `topology.kubernetes.io/zone`; absent if the Rollout is not bound to one zone.
    pub topology: Option<String>,
}

impl Group {
    /// The zone with this short name.
    pub fn zone(&self, id: &ZoneId) -> Option<&Zone> {
        self.zones.iter().find(|zone| zone.id == *id)
    }

    /// All zones but this one.
    pub fn others<'a>(&'a self, id: &'a ZoneId) -> impl Iterator<Item = &'a Zone> {
        self.zones.iter().filter(move |zone| zone.id != *id)
    }
}

impl Zone {
    /// The zone's Rollout, if the scene has it.
    pub fn rollout<'a>(&self, scene: &'a Scene) -> Option<&'a Rollout> {
        scene.rollouts.get(&self.rollout)
    }
}
