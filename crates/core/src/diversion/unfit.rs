//! Why a zone cannot take clients.

use std::fmt;

use crate::group::ZoneId;
use crate::traffic::RouteGap;
use crate::zone::Outage;

/// One reason why a zone cannot take clients. `--force` overrides all but the first two.
#[derive(Debug, Clone, PartialEq)]
pub enum Unfit {
    /// Its Rollout cannot be seen.
    Unseen(ZoneId),
    /// Its Rollout has no route, or a broken one.
    Route(ZoneId, RouteGap),
    /// The zone is lost.
    Lost(ZoneId, Outage),
    /// It is in the middle of an update.
    Moving(ZoneId),
    /// Its own clients are sent elsewhere.
    Diverted(ZoneId),
    /// Its pods would have to carry too much.
    Overloaded {
        /// The zone.
        zone: ZoneId,
        /// Ready stable pods.
        ready: u32,
        /// Wanted stable pods.
        wanted: u32,
        /// Load of each Ready pod compared with normal; nothing if there is none.
        factor: Option<f64>,
    },
    /// Clients would be on the new version at once.
    Canary {
        /// The zone.
        zone: ZoneId,
        /// Share of the new version, in percent.
        weight: u32,
    },
}

impl Unfit {
    /// True if no force helps: there is nothing to write.
    pub fn is_hopeless(&self) -> bool {
        matches!(self, Self::Unseen(_) | Self::Route(..))
    }
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unseen(zone) => write!(f, "the Rollout of zone {zone} cannot be seen"),
            Self::Route(zone, RouteGap::NotRouted) => {
                write!(f, "the Rollout of zone {zone} steers no traffic through Istio")
            }
            Self::Route(zone, gap) => write!(f, "the route of zone {zone} is broken: {gap}"),
            Self::Lost(zone, outage) => write!(f, "zone {zone} is lost: {outage}"),
            Self::Moving(zone) => write!(f, "zone {zone} is in the middle of an update"),
            Self::Diverted(zone) => {
                write!(f, "the clients of zone {zone} are themselves sent elsewhere")
            }
            Self::Overloaded { zone, ready, wanted, factor } => {
                write!(f, "in zone {zone}, {ready} of {wanted} pods are Ready")?;
                match factor {
                    Some(factor) => {
                        write!(f, " and would each carry {factor:.1} times their normal load")
                    }
                    None => f.write_str(" and would carry nothing"),
                }
            }
            Self::Canary { zone, weight } => {
                write!(f, "{weight} % of the clients of zone {zone} would be on a new version")
            }
        }
    }
}
