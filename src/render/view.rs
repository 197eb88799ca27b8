//! What is shown of a group: the facts of each zone, ready to be put into words or a document.

use jiff::Timestamp;
use zone_rollout_core::diversion::{Diverted, diverted};
use zone_rollout_core::group::{Group, Zone};
use zone_rollout_core::scene::{Rollout, Scene, Step};
use zone_rollout_core::template::images;
use zone_rollout_core::time::Moment;
use zone_rollout_core::traffic::{InForce, RouteGap};
use zone_rollout_core::zone::{
    Outage, Trouble, Workload, ZoneFacts, ZoneState, outage, worst_trouble, zone_state,
};

/// What is shown of a group.
#[derive(Debug, Clone)]
pub struct GroupView {
    /// The group.
    pub group: Group,
    /// Its zones.
    pub zones: Vec<ZoneView>,
    /// Kinds that could not be read: `nodes: not permitted`.
    pub gaps: Vec<String>,
    /// When it was seen.
    pub at: Moment,
}

/// What is shown of a zone.
#[derive(Debug, Clone)]
pub struct ZoneView {
    /// The zone.
    pub zone: Zone,
    /// Its state.
    pub state: ZoneState,
    /// Index of the current step.
    pub step: usize,
    /// Number of steps.
    pub steps: usize,
    /// What the current step does.
    pub label: Option<String>,
    /// Share of traffic the new version should have, in percent; nothing without routing.
    pub wanted: u32,
    /// Share of traffic the VirtualServices give it.
    pub in_force: Result<InForce, RouteGap>,
    /// Wanted pods.
    pub replicas: u32,
    /// The stable version.
    pub stable: Option<VersionView>,
    /// The new version while it is in flight.
    pub canary: Option<VersionView>,
    /// Since when the zone is in this state, if it can be told.
    pub since: Option<Timestamp>,
    /// What ails the zone's pods most.
    pub trouble: Option<Trouble>,
    /// Whether the zone is lost.
    pub outage: Option<Outage>,
    /// The controller's message if its deadline for progress has passed.
    pub late: Option<String>,
    /// Where the zone's clients are sent instead of to the zone.
    pub diverted: Option<Diverted>,
}

/// What is shown of one version in a zone.
#[derive(Debug, Clone)]
pub struct VersionView {
    /// What people call it: `myapp:v1`.
    pub version: String,
    /// Images by container.
    pub images: Vec<(String, String)>,
    /// Template hash.
    pub hash: String,
    /// Its pods, if they can be seen.
    pub pods: Option<PodsView>,
}

/// Pods of a version.
#[derive(Debug, Clone, Copy)]
pub struct PodsView {
    /// Those that are Ready.
    pub ready: u32,
    /// All of them.
    pub all: u32,
}

impl GroupView {
    /// The view of a group in a scene.
    pub fn of(scene: &Scene, group: &Group, at: Moment) -> Self {
        let gaps = scene.gaps();
        Self {
            zones: group.zones.iter().map(|zone| ZoneView::of(scene, group, zone, at)).collect(),
            group: group.clone(),
            gaps: gaps.iter().map(|(kind, coverage)| format!("{kind}: {coverage}")).collect(),
            at,
        }
    }
}

impl ZoneView {
    fn of(scene: &Scene, group: &Group, zone: &Zone, at: Moment) -> Self {
        let state = zone_state(scene, group, zone, None, at);
        let Some(facts) = ZoneFacts::gather(scene, zone) else {
            return Self::unseen(zone, state);
        };
        let rollout = facts.rollout;
        let seen = scene.pods.is_known() && scene.replica_sets.is_known();
        let version = |workload: &Option<Workload<'_>>, wanted| {
            workload.as_ref().map(|workload| VersionView::of(workload, rollout, wanted, seen))
        };
        let all_pods = [&facts.stable, &facts.canary].into_iter().flatten();
        Self {
            zone: zone.clone(),
            step: rollout.step_index(),
            steps: rollout.steps().len(),
            label: rollout.current_step().map(Step::label),
            wanted: if facts.is_in_flight() { rollout.desired_weight() } else { 0 },
            in_force: facts.in_force.clone(),
            replicas: rollout.replicas(),
            stable: version(&facts.stable, false),
            canary: version(&facts.canary, true),
            since: since(rollout, &state),
            trouble: worst_trouble(all_pods.flat_map(|workload| workload.pods.iter().copied())),
            outage: outage(scene, &facts),
            late: rollout
                .condition("Progressing")
                .filter(|progressing| progressing.reason == "ProgressDeadlineExceeded")
                .map(|progressing| progressing.message.clone()),
            diverted: diverted(scene, group, zone),
            state,
        }
    }

    fn unseen(zone: &Zone, state: ZoneState) -> Self {
        Self {
            zone: zone.clone(),
            state,
            step: 0,
            steps: 0,
            label: None,
            wanted: 0,
            in_force: Err(RouteGap::Unreadable),
            replicas: 0,
            stable: None,
            canary: None,
            since: None,
            trouble: None,
            outage: None,
            late: None,
            diverted: None,
        }
    }
}

impl VersionView {
    fn of(workload: &Workload<'_>, rollout: &Rollout, wanted: bool, seen: bool) -> Self {
        // The ReplicaSet of the wanted template may not exist yet; the Rollout has it in any case.
        let template = if wanted { Some(&rollout.spec.template) } else { workload.template() };
        Self {
            version: template.map_or_else(|| "?".to_owned(), zone_rollout_core::template::version),
            images: template.map(images).unwrap_or_default(),
            hash: workload.hash.to_owned(),
            pods: seen.then(|| PodsView { ready: workload.ready(), all: workload.count() }),
        }
    }
}

/// Pauses and aborts say when they began; otherwise the last progress counts.
fn since(rollout: &Rollout, state: &ZoneState) -> Option<Timestamp> {
    let transition =
        |kind: &str| rollout.condition(kind).and_then(|found| found.last_transition_time);
    match state {
        ZoneState::Aborted { at, .. } => *at,
        ZoneState::Stable | ZoneState::Promoted | ZoneState::AwaitingSync => {
            transition("Completed")
        }
        ZoneState::NotReady { .. } => transition("Healthy").or_else(|| transition("Available")),
        ZoneState::InvalidSpec { .. } => transition("InvalidSpec"),
        _ => {
            rollout.status.pause_conditions.first().and_then(|pause| pause.start_time).or_else(
                || rollout.condition("Progressing").and_then(|found| found.last_update_time),
            )
        }
    }
}
