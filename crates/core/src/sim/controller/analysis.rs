//! Analyses beside the steps and as steps of their own. A run has no measurements here: it ends a
//! while after it was started, with the verdict that was set for its Rollout.

use std::sync::Arc;
use std::time::Duration;

use super::Sync;
use super::pauses::INCONCLUSIVE;
use crate::scene::{AnalysisRunStatus, Key, Rollout, Step, StepKind};
use crate::sim::timers::Timer;
use crate::sim::{By, Verdict, World};

/// How long an analysis step takes.
const RUN: Duration = Duration::from_secs(5);
const RUNNING: &str = "Running";

impl Sync<'_> {
    /// `reconcileAnalysisRuns` (`rollout/analysis.go`).
    pub(super) fn reconcile_analyses(&mut self) {
        let status = &self.rollout.status;
        if self.is_aborted() || status.promote_full || status.stable_rs.is_empty() {
            return;
        }
        let canary = &status.canary;
        let (step, background) = (
            canary.current_step_analysis_run_status.clone(),
            canary.current_background_analysis_run_status.clone(),
        );
        let wants_step =
            matches!(self.rollout.current_step(), Some(Step::Other(StepKind::Analysis, _)));
        let wants_background = self.wants_background();
        let paused = !status.pause_conditions.is_empty();
        let inconclusive = status.pause_conditions.iter().any(|pause| pause.reason == INCONCLUSIVE);
        self.next.canary.current_step_analysis_run_status =
            if paused { step } else { self.follow(wants_step, step, "Step-based") };
        self.next.canary.current_background_analysis_run_status = if inconclusive {
            background
        } else {
            self.follow(wants_background, background, "Background")
        };
    }

    /// `reconcileBackgroundAnalysisRun`: from its first step on, until the promotion.
    fn wants_background(&self) -> bool {
        let status = &self.rollout.status;
        let analysis =
            self.rollout.spec.strategy.canary.as_ref().and_then(|canary| canary.analysis.as_ref());
        analysis.is_some_and(|analysis| self.rollout.step_index() >= analysis.starting_step)
            && !self.rollout.is_fully_promoted()
            && !status.current_pod_hash.is_empty()
    }

    /// Starts a run, or draws the conclusion from its end (`reconcileStepBasedAnalysisRun`).
    fn follow(
        &mut self,
        wanted: bool,
        run: Option<AnalysisRunStatus>,
        kind: &str,
    ) -> Option<AnalysisRunStatus> {
        if !wanted {
            return None;
        }
        // `needsNewAnalysisRun`: after a pause for an inconclusive one, another is started.
        let ended_unclear = |run: &AnalysisRunStatus| {
            run.status == "Inconclusive" && self.rollout.status.controller_pause
        };
        let Some(run) = run.filter(|run| !ended_unclear(run)) else {
            let name = format!("{}-{}", self.rollout.meta.name, self.target().hash());
            let at = self.world.now.mono + RUN;
            self.world.timers.set(at, Timer::Judged(self.rollout.meta.key()));
            return Some(AnalysisRunStatus {
                name,
                status: RUNNING.to_owned(),
                ..AnalysisRunStatus::default()
            });
        };
        match run.status.as_str() {
            "Inconclusive" => self.pauses.add = Some(INCONCLUSIVE),
            "Failed" | "Error" => {
                let why = format!("{kind} analysis phase error/failed: {}", run.message);
                self.pauses.abort = Some(why);
            }
            _ => {}
        }
        Some(run)
    }
}

impl World {
    /// Ends the running analyses of a Rollout. One beside the steps goes on for as long as all is well.
    pub(in crate::sim) fn end_analyses(&mut self, key: &Key) {
        let Some(rollout) = self.rollout(key) else { return };
        let verdict = self.verdicts.get(key).copied().unwrap_or_default();
        let mut changed: Rollout = Arc::unwrap_or_clone(Arc::clone(&rollout));
        let canary = &mut changed.status.canary;
        end(canary.current_step_analysis_run_status.as_mut(), verdict);
        if verdict != Verdict::Successful {
            end(canary.current_background_analysis_run_status.as_mut(), verdict);
        }
        if changed != *rollout {
            self.put_rollout(By::Kubernetes, changed);
        }
    }
}

fn end(run: Option<&mut AnalysisRunStatus>, verdict: Verdict) {
    let Some(run) = run.filter(|run| run.status == RUNNING) else { return };
    let (status, message) = match verdict {
        Verdict::Successful => ("Successful", ""),
        Verdict::Failed => {
            ("Failed", "Metric \"simulated\" assessed Failed due to failed (1) > failureLimit (0)")
        }
        Verdict::Inconclusive => (
            "Inconclusive",
            "Metric \"simulated\" assessed Inconclusive due to inconclusive (1) > inconclusiveLimit (0)",
        ),
    };
    status.clone_into(&mut run.status);
    message.clone_into(&mut run.message);
}
