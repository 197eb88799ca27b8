//! What helps against each blocker.

use zone_rollout_core::group::Group;
use zone_rollout_core::promote::Blocker;
use zone_rollout_core::scene::Coverage;
use zone_rollout_core::time::Moment;
use zone_rollout_core::traffic::RouteGap;
use zone_rollout_core::zone::ZoneState;

use super::{Flags, clock};

/// Shows whether the Rollouts controller runs.
const CONTROLLER: &str =
    "kubectl get pods --all-namespaces -l app.kubernetes.io/name=argo-rollouts";

/// All of them, in lines.
pub fn all(blockers: &[Blocker], group: &Group, flags: &Flags, now: Moment) -> Vec<String> {
    blockers.iter().flat_map(|blocker| lines(blocker, group, flags, now)).collect()
}

/// The blocker in one or more lines: what it is, where self-advancing zones will be, and what helps.
fn lines(blocker: &Blocker, group: &Group, flags: &Flags, now: Moment) -> Vec<String> {
    let mut lines = vec![blocker.to_string()];
    if let Blocker::Leak(zones) = blocker {
        for (zone, waypoints) in zones {
            let way: Vec<String> = waypoints
                .iter()
                .map(|point| {
                    let when =
                        if point.at <= now.wall { "now".to_owned() } else { clock(point.at) };
                    format!("{} % at {when}", point.weight)
                })
                .collect();
            let way = if way.is_empty() { "waits for a person".to_owned() } else { way.join(", ") };
            lines.push(format!("  zone {zone} by itself, at the earliest: {way}"));
        }
    }
    lines.push(format!("  {}", help(blocker, group, flags)));
    lines
}

/// What to do about it; ends in a command where one helps.
fn help(blocker: &Blocker, group: &Group, flags: &Flags) -> String {
    let flags = &flags.0;
    let name = &group.name;
    let rollout = |zone: &zone_rollout_core::group::ZoneId| {
        group.zone(zone).map_or_else(String::new, |zone| zone.rollout.name.clone())
    };
    let abort = |zone| format!("kubectl zone-rollout abort {name}/{zone}{flags}");
    match blocker {
        Blocker::Unseen { kind, coverage: Coverage::Forbidden } => {
            format!("see whether you may: kubectl auth can-i list {kind}{flags}")
        }
        Blocker::Unseen { kind, .. } => {
            format!("see whether the cluster has them: kubectl get {kind}{flags}")
        }
        Blocker::SharedRule { .. } => {
            "give each Rollout a DestinationRule of its own, for the same host".to_owned()
        }
        Blocker::SharedRoute { .. } => "give each Rollout a named route of its own".to_owned(),
        Blocker::BaseRuleShadowed { winner, .. } => format!(
            "make the base rule the older one: delete and apply `{winner}` again: \
             kubectl get destinationrule {winner}{flags} -o yaml"
        ),
        Blocker::Evacuated(zone, _) => format!(
            "bring them back: kubectl zone-rollout restore {name}/{zone}{flags}; or leave the zone \
             out: --skip-zone {zone}"
        ),
        Blocker::Route(_, RouteGap::NoVirtualService(_)) => {
            format!("see which there are: kubectl get virtualservices{flags}")
        }
        Blocker::DeadRoute { .. } => {
            format!("see which rules there are: kubectl get destinationrules{flags} -o yaml")
        }
        Blocker::NoZone(zone) => format!(
            "bind its pods by nodeAffinity, or name the zone: kubectl label rollout {} \
             zone-rollout.io/zone=ZONE{flags}; or leave it out: --skip-zone {zone}",
            rollout(zone)
        ),
        Blocker::Route(zone, _) | Blocker::NoSubset(zone, _) => {
            format!("compare with: kubectl get rollout {}{flags} -o yaml", rollout(zone))
        }
        Blocker::State(zone, ZoneState::Aborted { .. }) => format!(
            "bring another version, or start it again: kubectl zone-rollout retry {name}/{zone}{flags}"
        ),
        Blocker::State(_, ZoneState::NeverReconciled) => CONTROLLER.to_owned(),
        Blocker::State(zone, ZoneState::Unobserved) => format!(
            "{CONTROLLER}; if it is, let it look again: kubectl annotate rollout {} \
             zone-rollout.io/nudge=again --overwrite{flags}",
            rollout(zone)
        ),
        Blocker::State(zone, ZoneState::PromotingFull) => format!("to stop it: {}", abort(zone)),
        Blocker::State(zone, _) => format!("kubectl describe rollout {}{flags}", rollout(zone)),
        Blocker::Lost(zone, _) | Blocker::Parked(zone) => {
            format!("to go on without it: --skip-zone {zone}")
        }
        Blocker::DifferentSteps(one, other) | Blocker::DifferentTargets { one, other, .. } => {
            format!(
                "compare: kubectl get rollout {} {}{flags} -o yaml",
                rollout(one),
                rollout(other)
            )
        }
        Blocker::Leak(_) => format!(
            "to stop them: kubectl zone-rollout abort {name} --all{flags}; next time use \
             `pause: {{}}` as first step, or --hold --expect IMAGE before the image changes"
        ),
        Blocker::NoGate(_) => {
            "to hold them until their turn: --hold (or use `pause: {}` as first step)".to_owned()
        }
        Blocker::HeldMidway(zone) => format!(
            "to go on: kubectl zone-rollout release {name}/{zone}{flags}; to take it back: {}",
            abort(zone)
        ),
        Blocker::EarlyAnalysis(_) => {
            "set analysis.startingStep behind the first setWeight (indices begin at 0)".to_owned()
        }
        Blocker::HoldFreezes { .. } => "to hold it all the same: --freeze-hpa".to_owned(),
        Blocker::OwnedByGitOps(..) => {
            "change it in Git instead, or do it all the same: --force".to_owned()
        }
    }
}
