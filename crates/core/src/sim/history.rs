//! What has happened: for each object that a release moves, its face whenever that has changed.

use std::collections::BTreeMap;

use crate::scene::{DestinationRule, Key, POD_HASH_LABEL, ReplicaSet, Rollout, VirtualService};
use crate::time::Moment;

/// Who changed something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// The Rollouts controller.
    Controller,
    /// Kubernetes: the ReplicaSet controller, the scheduler, kubelet.
    Kubernetes,
    /// A person, or Git.
    Person,
    /// A [`Write`](crate::write::Write).
    Tool,
}

/// A change of one object.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// When.
    pub at: Moment,
    /// By whom.
    pub by: By,
    /// The object.
    pub object: Key,
    /// What it looks like from then on.
    pub face: Face,
}

/// What counts of an object. Faces of one object follow each other without repetition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Face {
    /// A Rollout.
    Rollout {
        /// `status.phase`.
        phase: String,
        /// `status.message`.
        message: String,
        /// `status.currentStepIndex`.
        step: Option<usize>,
        /// `status.stableRS`.
        stable: String,
        /// `status.currentPodHash`.
        current: String,
        /// How many entries `status.pauseConditions` has.
        pauses: usize,
        /// `status.abort`.
        abort: bool,
        /// `spec.paused`.
        held: bool,
    },
    /// A ReplicaSet.
    ReplicaSet {
        /// Wanted pods.
        wanted: u32,
        /// Pods.
        pods: u32,
        /// Available pods.
        available: u32,
    },
    /// A VirtualService: the weights of each route, in the order of its destinations.
    Route(Vec<(String, Vec<u32>)>),
    /// A DestinationRule: the template hash of each subset, or an empty one.
    Rule(Vec<(String, String)>),
}

/// The record of a world.
#[derive(Debug, Clone, Default)]
pub(super) struct History {
    changes: Vec<Change>,
    /// Index of the last change of each object; kinds are told apart by the face's own.
    last: BTreeMap<(u8, Key), usize>,
}

impl History {
    pub(super) fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// Records a face if it differs from the last one of that object.
    pub(super) fn record(&mut self, at: Moment, by: By, object: &Key, face: Face) {
        let kind = match face {
            Face::Rollout { .. } => 0,
            Face::ReplicaSet { .. } => 1,
            Face::Route(_) => 2,
            Face::Rule(_) => 3,
        };
        let slot = self.last.entry((kind, object.clone())).or_insert(usize::MAX);
        if self.changes.get(*slot).is_none_or(|before| before.face != face) {
            *slot = self.changes.len();
            self.changes.push(Change { at, by, object: object.clone(), face });
        }
    }
}

impl From<&Rollout> for Face {
    fn from(rollout: &Rollout) -> Self {
        let status = &rollout.status;
        Self::Rollout {
            phase: status.phase.clone(),
            message: status.message.clone(),
            step: status.current_step_index,
            stable: status.stable_rs.clone(),
            current: status.current_pod_hash.clone(),
            pauses: status.pause_conditions.len(),
            abort: status.abort,
            held: rollout.spec.paused,
        }
    }
}

impl From<&ReplicaSet> for Face {
    fn from(replica_set: &ReplicaSet) -> Self {
        Self::ReplicaSet {
            wanted: replica_set.wanted(),
            pods: replica_set.status.replicas.unwrap_or(0),
            available: replica_set.status.available_replicas,
        }
    }
}

impl From<&VirtualService> for Face {
    fn from(virtual_service: &VirtualService) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "weights are whole numbers from 0 to 100"
        )]
        let weight = |weight: Option<f64>| weight.unwrap_or(0.0) as u32;
        let routes = virtual_service.spec.http.iter().map(|route| {
            (route.name.clone(), route.destinations.iter().map(|to| weight(to.weight)).collect())
        });
        Self::Route(routes.collect())
    }
}

impl From<&DestinationRule> for Face {
    fn from(rule: &DestinationRule) -> Self {
        let hash = |labels: &BTreeMap<String, String>| labels.get(POD_HASH_LABEL).cloned();
        let subsets = rule.spec.subsets.iter();
        Self::Rule(
            subsets
                .map(|subset| (subset.name.clone(), hash(&subset.labels).unwrap_or_default()))
                .collect(),
        )
    }
}
