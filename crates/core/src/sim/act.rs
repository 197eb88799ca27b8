//! What people and faults do to the cluster.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::scene::{Key, Rollout, Step};
use crate::sim::controller::template_hash_removed;
use crate::sim::{By, World};

/// Something that is done to the cluster, by somebody other than the tool.
#[derive(Debug, Clone, PartialEq)]
pub enum Act {
    /// A new image in the first container of a Rollout, as Git or `set image` does it.
    SetImage(Key, String),
    /// `kubectl argo rollouts promote`: ends the pause, or skips the current step.
    Promote(Key),
    /// `kubectl argo rollouts promote --full`
    PromoteFull(Key),
    /// `kubectl argo rollouts abort`
    Abort(Key),
    /// `kubectl argo rollouts retry rollout`
    Retry(Key),
    /// `kubectl argo rollouts undo`: the template of the revision before this one.
    Undo(Key),
    /// `kubectl argo rollouts pause`, or the end of it: `spec.paused`.
    Pause(Key, bool),
    /// `kubectl scale`, or an autoscaler.
    Scale(Key, u32),
    /// What becomes of pods that run this image from now on.
    Image(String, ImageFate),
    /// How the analyses of a Rollout end from now on, the running ones among them.
    Judge(Key, Verdict),
    /// A pod loses or regains its readiness.
    Ready(Key, bool),
    /// A pod is deleted.
    DeletePod(Key),
    /// The nodes of a zone stop reporting, or report again.
    Nodes {
        /// Value of `topology.kubernetes.io/zone`.
        zone: String,
        /// Whether they report.
        up: bool,
    },
    /// The nodes of a zone are cordoned, or uncordoned.
    Cordon {
        /// Value of `topology.kubernetes.io/zone`.
        zone: String,
        /// Whether pods may be scheduled.
        open: bool,
    },
    /// The Rollouts controller ends, or starts again.
    Controller(bool),
}

/// What becomes of the pods that run an image.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ImageFate {
    /// They get Ready.
    #[default]
    Good,
    /// It cannot be pulled.
    Missing,
    /// Its container ends as soon as it was started.
    Crashes,
    /// They run and never get Ready.
    NeverReady,
    /// They get Ready and end after this long.
    EndsAfter(Duration),
}

/// How an analysis ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Verdict {
    /// `Successful`
    #[default]
    Successful,
    /// `Failed`
    Failed,
    /// `Inconclusive`
    Inconclusive,
}

/// There is nothing of this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no `{0}`")]
pub struct NoSuchObject(pub Key);

impl World {
    /// Does something to the cluster. What it leads to comes as time passes.
    ///
    /// # Errors
    /// If the object does not exist.
    pub fn act(&mut self, act: Act) -> Result<(), NoSuchObject> {
        match act {
            Act::SetImage(key, image) => self.change(&key, |rollout| set_image(rollout, image)),
            Act::Promote(key) => self.change(&key, promote),
            Act::PromoteFull(key) => self.change(&key, promote_full),
            Act::Abort(key) => self.change(&key, |rollout| rollout.status.abort = true),
            Act::Retry(key) => self.change(&key, |rollout| rollout.status.abort = false),
            Act::Undo(key) => self.undo(&key),
            Act::Pause(key, paused) => self.change(&key, |rollout| rollout.spec.paused = paused),
            Act::Scale(key, to) => self.change(&key, |rollout| rollout.spec.replicas = Some(to)),
            Act::Image(image, fate) => {
                self.images.insert(image, fate);
                Ok(())
            }
            Act::Judge(key, verdict) => {
                self.rollout(&key).ok_or_else(|| NoSuchObject(key.clone()))?;
                self.verdicts.insert(key.clone(), verdict);
                self.end_analyses(&key);
                Ok(())
            }
            Act::Ready(pod, ready) => self.set_ready(&pod, ready),
            Act::DeletePod(pod) => self.delete_pod(&pod),
            Act::Nodes { zone, up } => {
                self.set_nodes(&zone, up);
                Ok(())
            }
            Act::Cordon { zone, open } => {
                self.cordon(&zone, open);
                Ok(())
            }
            Act::Controller(up) => {
                self.set_controller(up);
                Ok(())
            }
        }
    }

    fn change(&mut self, key: &Key, change: impl FnOnce(&mut Rollout)) -> Result<(), NoSuchObject> {
        let mut rollout =
            Arc::unwrap_or_clone(self.rollout(key).ok_or_else(|| NoSuchObject(key.clone()))?);
        change(&mut rollout);
        self.put_rollout(By::Person, rollout);
        Ok(())
    }

    /// The template of the second highest revision, with all that the controller has put into it but
    /// its hash (`undo.go` in `cmd/undo`).
    fn undo(&mut self, key: &Key) -> Result<(), NoSuchObject> {
        let rollout = self.rollout(key).ok_or_else(|| NoSuchObject(key.clone()))?;
        let mut revisions: Vec<_> = self
            .replica_sets_of(&rollout)
            .iter()
            .filter_map(|key| self.replica_set(key))
            .map(|replica_set| (replica_set.revision(), replica_set))
            .collect();
        revisions.sort_by_key(|(revision, _)| *revision);
        let before = revisions.len().checked_sub(2).and_then(|index| revisions.get(index));
        let (_, before) = before.ok_or_else(|| NoSuchObject(key.clone()))?;
        let template = template_hash_removed(before.spec.template.clone());
        self.change(key, |rollout| rollout.spec.template = template)
    }
}

fn set_image(rollout: &mut Rollout, image: String) {
    if let Some(container) = rollout.spec.template.pointer_mut("/spec/containers/0") {
        container["image"] = Value::String(image);
    }
}

/// Which patch is sent when (`getPatches` in `cmd/promote/promote.go`): at a pause it is ended,
/// elsewhere the current step is skipped.
fn promote(rollout: &mut Rollout) {
    rollout.spec.paused = false;
    let steps = rollout.steps().len();
    let next = (rollout.step_index() + 1).min(steps);
    let inconclusive = rollout
        .status
        .canary
        .current_step_analysis_run_status
        .as_ref()
        .is_some_and(|run| run.status == "Inconclusive");
    let status = &mut rollout.status;
    let paused = !status.pause_conditions.is_empty();
    if paused && inconclusive && status.controller_pause {
        status.controller_pause = false;
        status.current_step_index = Some(next);
    } else if !paused && steps > 0 {
        status.current_step_index = Some(next);
    }
    status.pause_conditions.clear();
}

fn promote_full(rollout: &mut Rollout) {
    rollout.spec.paused = false;
    if !rollout.is_fully_promoted() {
        rollout.status.promote_full = true;
    }
}

impl Rollout {
    /// Pods that `setCanaryScale` asks for at this step: a number, or the share of traffic to size
    /// the canary for. Mirrors `UseSetCanaryScale` (`utils/replicaset/canary.go`).
    pub(super) fn canary_scale(&self) -> Option<&Value> {
        if self.status.abort {
            return None;
        }
        let steps = self.steps().get(..=self.step_index())?;
        let scale = steps.iter().rev().find_map(|step| match step {
            Step::Other(crate::scene::StepKind::SetCanaryScale, scale) => Some(scale),
            _ => None,
        })?;
        (scale["matchTrafficWeight"] != json!(true)).then_some(scale)
    }
}
