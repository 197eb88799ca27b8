//! What forbids a run before it has written anything.

mod find;

use std::fmt;

use crate::gitops::GitOpsOwner;
use crate::group::ZoneId;
use crate::scene::{Coverage, Key};
use crate::traffic::{DeadRoute, RouteGap};
use crate::zone::{Outage, Waypoint, ZoneState};

pub use find::{autoscaler_of, blockers};
pub(super) use find::{needs_hold, unheard};

/// One thing that forbids a run.
#[derive(Debug, Clone, PartialEq)]
pub enum Blocker {
    /// A kind of object that a judgement needs cannot be read.
    Unseen {
        /// The kind.
        kind: &'static str,
        /// Why.
        coverage: Coverage,
    },
    /// The zone's Rollout is not bound to one zone of nodes, as the others are.
    NoZone(ZoneId),
    /// A route of the group's VirtualService leads to a subset that no rule defines.
    DeadRoute {
        /// The VirtualService.
        virtual_service: Key,
        /// The route.
        dead: DeadRoute,
    },
    /// Several Rollouts rewrite one DestinationRule; each drops the subsets of the others.
    SharedRule {
        /// The rule.
        rule: String,
        /// The zones.
        zones: Vec<ZoneId>,
    },
    /// Several Rollouts weigh one route.
    SharedRoute {
        /// VirtualService.
        virtual_service: Key,
        /// Route.
        route: String,
        /// The zones.
        zones: Vec<ZoneId>,
    },
    /// The shared definition of a stable subset is younger than the Rollout's own.
    BaseRuleShadowed {
        /// The zone.
        zone: ZoneId,
        /// Subset.
        subset: String,
        /// The rule that should win.
        base: String,
        /// The rule that does.
        winner: String,
    },
    /// A zone's route or subset is missing.
    Route(ZoneId, RouteGap),
    /// A subset of a zone's route is defined by no DestinationRule.
    NoSubset(ZoneId, String),
    /// The clients of a zone are sent to another; nothing if it cannot be told to which.
    Evacuated(ZoneId, Option<ZoneId>),
    /// A zone is in a state in which nothing can be driven.
    State(ZoneId, ZoneState),
    /// A zone is lost.
    Lost(ZoneId, Outage),
    /// A zone that waits wants no pods.
    Parked(ZoneId),
    /// Two zones have other steps.
    DifferentSteps(ZoneId, ZoneId),
    /// Two zones are being updated to different templates.
    DifferentTargets {
        /// One zone.
        one: ZoneId,
        /// The other.
        other: ZoneId,
        /// Where the templates differ.
        place: String,
    },
    /// Zones that go on by themselves.
    Leak(Vec<(ZoneId, Vec<Waypoint>)>),
    /// Zones that would go on by themselves as soon as the expected version arrives.
    NoGate(Vec<ZoneId>),
    /// A zone was held in the middle of an update.
    HeldMidway(ZoneId),
    /// An analysis starts before the first weight and has nothing to measure.
    EarlyAnalysis(ZoneId),
    /// A hold would freeze an autoscaler.
    HoldFreezes {
        /// The zone.
        zone: ZoneId,
        /// The autoscaler.
        autoscaler: String,
    },
    /// GitOps owns a spec that would be changed.
    OwnedByGitOps(ZoneId, GitOpsOwner),
}

impl Blocker {
    /// Its name in machine-readable output.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unseen { .. } => "Unseen",
            Self::NoZone(..) => "NoZone",
            Self::DeadRoute { .. } => "DeadRoute",
            Self::SharedRule { .. } => "SharedRule",
            Self::SharedRoute { .. } => "SharedRoute",
            Self::BaseRuleShadowed { .. } => "BaseRuleShadowed",
            Self::Route(..) => "Route",
            Self::NoSubset(..) => "NoSubset",
            Self::Evacuated(..) => "Evacuated",
            Self::State(..) => "State",
            Self::Lost(..) => "Lost",
            Self::Parked(..) => "Parked",
            Self::DifferentSteps(..) => "DifferentSteps",
            Self::DifferentTargets { .. } => "DifferentTargets",
            Self::Leak(..) => "Leak",
            Self::NoGate(..) => "NoGate",
            Self::HeldMidway(..) => "HeldMidway",
            Self::EarlyAnalysis(..) => "EarlyAnalysis",
            Self::HoldFreezes { .. } => "HoldFreezes",
            Self::OwnedByGitOps(..) => "OwnedByGitOps",
        }
    }
}

impl fmt::Display for Blocker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |zones: &[ZoneId]| {
            zones.iter().map(|zone| zone.0.as_str()).collect::<Vec<_>>().join(", ")
        };
        match self {
            Self::NoZone(zone) => {
                write!(f, "the Rollout of zone {zone} is not bound to one zone, as the others are")
            }
            Self::DeadRoute { virtual_service, dead: DeadRoute { route, subset } } => write!(
                f,
                "route `{route}` of VirtualService `{}` leads nowhere: no DestinationRule defines \
                 subset `{subset}`",
                virtual_service.name
            ),
            Self::Unseen { kind, coverage } => write!(f, "{kind} cannot be read ({coverage})"),
            Self::SharedRule { rule, zones } => write!(
                f,
                "the Rollouts of zones {} share DestinationRule `{rule}`: each erases the \
                 subsets of the others",
                list(zones)
            ),
            Self::SharedRoute { virtual_service, route, zones } => write!(
                f,
                "the Rollouts of zones {} share route `{route}` of VirtualService `{}`: each \
                 removes the destinations of the others",
                list(zones),
                virtual_service.name
            ),
            Self::BaseRuleShadowed { zone, subset, base, winner } => write!(
                f,
                "zone {zone} has no failover: subset `{subset}` of DestinationRule `{base}` is \
                 without effect, because `{winner}` is older and defines it too"
            ),
            Self::Route(zone, gap) => write!(f, "the route of zone {zone} is broken: {gap}"),
            Self::NoSubset(zone, subset) => write!(
                f,
                "the route of zone {zone} leads nowhere: no DestinationRule defines subset \
                 `{subset}`"
            ),
            Self::Evacuated(zone, to) => {
                let to = to.as_ref().map_or("elsewhere".to_owned(), |to| format!("to zone {to}"));
                write!(
                    f,
                    "the clients of zone {zone} are sent {to}: in zone {zone} nobody would use the new \
                     version"
                )
            }
            Self::State(zone, state) => write!(f, "zone {zone} {}", in_words(state)),
            Self::Lost(zone, outage) => write!(f, "zone {zone} is lost: {outage}"),
            Self::Parked(zone) => write!(
                f,
                "zone {zone} is parked at 0 replicas: no pod there can prove the new version"
            ),
            Self::DifferentSteps(one, other) => {
                write!(f, "zones {one} and {other} have different steps")
            }
            Self::DifferentTargets { one, other, place } => write!(
                f,
                "zones {one} and {other} are being updated to different templates: they differ \
                 at {place}"
            ),
            Self::Leak(zones) => {
                let zones: Vec<ZoneId> = zones.iter().map(|(zone, _)| zone.clone()).collect();
                match zones.as_slice() {
                    [zone] => write!(f, "zone {zone} is moving outside this run"),
                    _ => write!(f, "zones {} are moving at the same time", list(&zones)),
                }
            }
            Self::NoGate(zones) => write!(
                f,
                "zones {} have no gate: they would all start by themselves when the version \
                 arrives",
                list(zones)
            ),
            Self::HeldMidway(zone) => {
                write!(f, "zone {zone} was held in the middle of its update by an earlier run")
            }
            Self::EarlyAnalysis(zone) => write!(
                f,
                "the analysis of zone {zone} starts before its first weight: there is nothing to \
                 measure, and no data aborts the update"
            ),
            Self::HoldFreezes { zone, autoscaler } => write!(
                f,
                "HorizontalPodAutoscaler `{autoscaler}` scales zone {zone}, and a hold would \
                 freeze it"
            ),
            Self::OwnedByGitOps(zone, owner) => {
                write!(f, "the spec of zone {zone} is owned by {owner}, which would put it back")
            }
        }
    }
}

fn in_words(state: &ZoneState) -> String {
    match state {
        ZoneState::Missing => "has no Rollout any more".to_owned(),
        ZoneState::Deleting => "is being deleted".to_owned(),
        ZoneState::Unknown { why } => format!("cannot be judged: {why}"),
        ZoneState::Unsupported { why } => format!("is not supported: {why}"),
        ZoneState::NeverReconciled => {
            "was never seen by the Rollouts controller; is it running?".to_owned()
        }
        ZoneState::Unobserved => {
            "has a change that the Rollouts controller has not seen; is it running?".to_owned()
        }
        ZoneState::InvalidSpec { message } => format!("has an invalid spec: {message}"),
        ZoneState::Aborted { message, .. } if message.is_empty() => "is aborted".to_owned(),
        ZoneState::Aborted { message, .. } => format!("is aborted: {message}"),
        ZoneState::PromotingFull => "is being promoted in full by somebody else".to_owned(),
        ZoneState::Held { .. } => "is paused by spec.paused, not by this tool".to_owned(),
        ZoneState::Inconclusive { reason } => format!("waits for a person ({reason})"),
        state => format!("is in state {}", state.name()),
    }
}
