//! The rules, by theme. Their codes are stable: a rule that is dropped leaves its code unused.

mod analysis;
mod budgets;
mod clients;
mod controller;
mod ejection;
mod failover;
mod hosts;
mod locality;
mod metrics;
mod placement;
mod references;
mod routes;
mod steps;
mod subsets;
mod weights;

pub(super) use clients::waypoint_of_host;

use super::rule::Rule;

/// All rules, in the order of their codes.
pub const RULES: &[&Rule] = &[
    &super::unread::UNREADABLE,
    &references::ROUTES_OMITTED,
    &references::ROUTE_MISSING,
    &references::DESTINATION_MISSING,
    &references::OBJECT_MISSING,
    &references::SERVICES,
    &controller::UNMANAGED_ROUTE,
    &controller::REFUSED,
    &steps::NO_GATE,
    &steps::STEPS_DIFFER,
    &steps::TEMPLATES_DIFFER,
    &steps::ROLE_IN_TEMPLATE,
    &steps::LAST_JUMP,
    &references::MANAGED_ROUTES,
    &weights::STRANGER,
    &references::ORPHANED_RULE,
    &references::INVALID_SPEC,
    &controller::FROZEN,
    &subsets::SHARED_RULE,
    &subsets::MISSING_SUBSET,
    &routes::SHARED_ROUTE,
    &routes::DUPLICATE_NAME,
    &hosts::HOST_UNKNOWN,
    &subsets::FOREIGN_SUBSET,
    &hosts::DESTINATION_UNKNOWN,
    &locality::BOTH,
    &locality::NO_REGION,
    &failover::DISTRIBUTE,
    &locality::GAP,
    &locality::PRIORITY_SHADOWED,
    &locality::PRIORITY_LABELS,
    &locality::RING,
    &failover::NO_OUTLIER,
    &ejection::OLD_COUNTER,
    &failover::EJECTION_LIMIT,
    &ejection::GATEWAY_COUNTER,
    &ejection::PANIC,
    &ejection::SLOW_CONNECT,
    &failover::IMPLICIT,
    &failover::PINNED,
    &subsets::SAME_SUBSETS,
    &subsets::STALE_HASH,
    &subsets::SHADOWED,
    &subsets::BASE_TOO_YOUNG,
    &subsets::HASH_SHADOWED,
    &controller::LATE_LABELS,
    &clients::UNKNOWN_LABEL,
    &clients::UNKNOWN_ZONE,
    &clients::NODE_WITHOUT_ZONE,
    &routes::NO_CATCH_ALL,
    &routes::GATEWAYS_HIDE_LABELS,
    &routes::GATEWAY_PAST_WEIGHTS,
    &clients::WAYPOINT,
    &routes::HOST_TWICE,
    &routes::UNREACHABLE,
    &clients::ZONE_WITHOUT_GATEWAY,
    &weights::DRIFT,
    &weights::IN_GIT,
    &weights::GUARD,
    &hosts::SERVED_VERSION,
    &budgets::SPANS,
    &budgets::BLOCKS,
    &budgets::DEADLOCK,
    &budgets::NONE,
    &budgets::EMPTY,
    &placement::MISMATCH,
    &placement::UNSCHEDULABLE,
    &placement::ONE_NODE,
    &placement::UNBOUND,
    &controller::NO_ROOM,
    &metrics::LABEL,
    &metrics::NO_SERIES,
    &analysis::UNGUARDED,
    &analysis::TOO_EARLY,
    &analysis::ENDLESS,
    &analysis::TEMPLATE_MISSING,
    &metrics::ALERT,
    &analysis::NO_VALUE,
];
