//! The driver of a promotion: it feeds the machine with what is seen, does what the machine asks for,
//! and tells the reporter what happened. It decides nothing.

mod commands;
mod intervention;
mod keeper;
mod prompt;
mod signals;

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use tokio::sync::mpsc;
use zone_rollout_core::promote::{
    CheckRequest, Event, Input, Outcome, Question, Run, Step, StopLevel, step,
};
use zone_rollout_core::write::{Write, Written};

use crate::cluster::{Clock, Cluster, Want};
use crate::render::document;
use crate::render::report::Reporter;

pub use commands::Commands;
pub use intervention::{Intervening, Troubles};
pub use keeper::{Keeper, Keeping};
pub use prompt::confirm;
pub use signals::Signals;

/// How often people are told what is awaited if nothing changes.
const HEARTBEAT: Duration = Duration::from_secs(30);

/// Everything a drive needs besides the run itself.
pub struct Driver<'a> {
    /// The cluster.
    pub cluster: &'a dyn Cluster,
    /// The clock to go by.
    pub clock: &'a dyn Clock,
    /// What to read of it.
    pub want: Want,
    /// The lease.
    pub keeper: &'a Keeper<'a>,
    /// The check and notify commands.
    pub commands: Commands,
    /// Signals, second and first.
    pub signals: &'a mut Signals,
}

impl Driver<'_> {
    /// Drives a run to its end.
    pub async fn drive(mut self, run: &mut Run, reporter: &mut dyn Reporter) -> Outcome {
        let (sender, mut inputs) = mpsc::channel::<Input>(64);
        let mut observations = self.cluster.watch(&self.want);
        let beat = HEARTBEAT * self.clock.pace();
        let mut heartbeat = self.clock.now().after(beat);
        let mut next = step(run, Input::Tick, self.clock.now());
        loop {
            for event in &next.events {
                reporter.event(run, event, self.clock.now());
            }
            if let Some(outcome) = next.end {
                return outcome;
            }
            if let Some(input) = self.carry_out(run, &mut next, &sender).await {
                next = step(run, input, self.clock.now());
                continue;
            }
            let wake = next.wake.unwrap_or_else(|| self.clock.now());
            let until = if wake.mono < heartbeat.mono { wake } else { heartbeat };
            let input = tokio::select! {
                biased;
                level = self.signals.next() => Input::Stop(level),
                Some(input) = inputs.recv() => input,
                holder = self.keeper.lost() => Input::LeaseLost(holder),
                Some(seen) = observations.next() => {
                    Input::Seen { scene: seen.scene, unwatched: seen.unwatched }
                }
                () = self.clock.until(until) => {
                    if until == heartbeat {
                        heartbeat = heartbeat.after(beat);
                        self.beat(run, reporter);
                    }
                    Input::Tick
                }
            };
            next = step(run, input, self.clock.now());
            reporter.refresh(run, self.clock.now());
            if reporter.is_closed() {
                next = step(run, Input::Stop(StopLevel::AfterRequest), self.clock.now());
            }
        }
    }

    /// Tells people what is awaited, and what ails the lease.
    fn beat(&self, run: &Run, reporter: &mut dyn Reporter) {
        let now = self.clock.now();
        if let Some(why) = self.keeper.trouble() {
            reporter.event(run, &Event::NotRead(why), now);
        }
        reporter.heartbeat(run, now);
    }

    /// Does what the machine wants. Returns the answer to what has to be answered at once.
    async fn carry_out(
        &mut self,
        run: &Run,
        step: &mut Step,
        sender: &mpsc::Sender<Input>,
    ) -> Option<Input> {
        for check in step.checks.drain(..) {
            self.check(run, check, sender.clone());
        }
        if let Some(question) = step.ask.take() {
            self.tell_of(run, &question);
            ask(&question, sender.clone());
        }
        if let Some(write) = step.write.take() {
            return Some(self.send(&write).await);
        }
        if step.confirm {
            return Some(self.confirm().await);
        }
        None
    }

    /// The request is not cut off by the first signal, only by the second.
    async fn send(&mut self, write: &Write) -> Input {
        if !self.keeper.is_fresh() {
            return Input::Written(Written::NotSent("the lease could not be renewed".to_owned()));
        }
        let request = self.cluster.write(write);
        tokio::select! {
            written = request => Input::Written(written),
            () = self.signals.second() => Input::Stop(StopLevel::Now),
        }
    }

    /// Reads the lease and everything else anew.
    async fn confirm(&mut self) -> Input {
        let reading = async { tokio::join!(self.keeper.keeping(), self.cluster.read(&self.want)) };
        tokio::select! {
            (keeping, scene) = reading => match (keeping, scene) {
                (Ok(Keeping::Lost(holder)), _) => Input::LeaseLost(holder),
                (Ok(Keeping::Ours), Ok(scene)) => Input::Confirmed(Arc::new(scene)),
                (Err(error), _) | (_, Err(error)) => Input::NotConfirmed(error.one_line()),
            },
            level = self.signals.next() => Input::Stop(level),
        }
    }

    /// Tells the notify command that a person is waited for. What it answers changes nothing.
    fn tell_of(&self, run: &Run, question: &Question) {
        let (commands, event) = (self.commands.clone(), document::question(run, question));
        tokio::spawn(async move {
            let _unreported = commands.tell(&event).await;
        });
    }

    fn check(&self, run: &Run, request: CheckRequest, sender: mpsc::Sender<Input>) {
        let Some(check) = self.commands.check(run, &request) else { return };
        tokio::spawn(async move {
            let verdict = check.await;
            // A run that has ended needs no verdict.
            let _unread = sender.send(Input::Checked(request.zone, verdict)).await;
        });
    }
}

fn ask(question: &Question, sender: mpsc::Sender<Input>) {
    let Question::Continue { zone, step } = question;
    let text = format!("Zone {zone} is at step {step}, a pause for a person. Go on? [y/N] ");
    prompt::ask(text, move |yes| {
        let _unread = sender.blocking_send(Input::Answered(yes));
    });
}
