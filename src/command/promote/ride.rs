//! From a plan that was agreed to, to its end: take the lease, drive, say how it ended.

use zone_rollout_core::group::Group;
use zone_rollout_core::promote::{Goal, Outcome, Run, Settings};
use zone_rollout_core::time::Moment;

use super::ending;
use crate::cli::PromoteOutput;
use crate::cluster::Want;
use crate::command::Context;
use crate::driver::{Commands, Driver, Keeper, Signals, confirm};
use crate::error::Error;
use crate::exit::Exit;
use crate::render::report::{Bars, Lines, Quiet, Reporter, Stream};
use crate::render::words;
use crate::render::{Io, document};

/// Asks whether to go on.
pub(in crate::command) async fn agreed(io: &mut Io) -> Result<bool, Error> {
    if !io.terminal().can_ask {
        return Err(Error::refused("nobody can be asked here whether to go on")
            .hint("say it on the command line: --yes"));
    }
    Ok(confirm(io, "\nGo on? [y/N] ").await)
}

/// A run that is about to begin.
pub(in crate::command) struct Ride {
    pub(in crate::command) want: Want,
    pub(in crate::command) settings: Settings,
    pub(in crate::command) group: Group,
    pub(in crate::command) goal: Goal,
    pub(in crate::command) commands: Commands,
    pub(in crate::command) output: PromoteOutput,
}

impl Ride {
    /// Takes the lease, drives, and says how it ended.
    pub(in crate::command) async fn drive(
        self,
        context: &Context,
        io: &mut Io,
    ) -> Result<Exit, Error> {
        let Self { want, settings, group, goal, commands, output } = self;
        let mut signals = Signals::listen()?;
        let taking =
            Keeper::take(&*context.cluster, &group.namespace, &group.name, &settings.run, io);
        let keeper = tokio::select! {
            taken = taking => taken?,
            _ = signals.next() => {
                let exit = words::ending::exit(&Outcome::Interrupted { writing: None }, signals.seen());
                return Ok(ending::interrupted(output, exit, context.clock.now(), io));
            }
        };
        let mut run = Run::new(settings, group, goal, context.clock.now());
        let driver = Driver {
            cluster: &*context.cluster,
            clock: &*context.clock,
            want,
            keeper: &keeper,
            commands: commands.clone(),
            signals: &mut signals,
        };
        let outcome = {
            let mut reporter = reporter(output, &run, context.clock.now(), io);
            tokio::select! {
                outcome = driver.drive(&mut run, reporter.as_mut()) => outcome,
                never = keeper.renew() => match never {},
            }
        };
        if let Err(error) = keeper.release().await {
            io.note(&format!("warning: the lease expires by itself: {}", error.one_line()));
        }
        let exit = words::ending::exit(&outcome, signals.seen());
        let told = ending::of_run(context, &run, &outcome);
        ending::say(output, Some(&run), &outcome, &told, exit, context.clock.now(), io);
        let event = document::result(Some(&run), &outcome, &told, exit, context.clock.now());
        if let Ok(event) = serde_json::to_value(event)
            && let Err(why) = commands.tell(&event).await
        {
            io.note(&format!("warning: {why}"));
        }
        Ok(exit)
    }
}

fn reporter<'a>(
    output: PromoteOutput,
    run: &Run,
    now: Moment,
    io: &'a mut Io,
) -> Box<dyn Reporter + 'a> {
    match output {
        PromoteOutput::Text if io.terminal().live => Box::new(Bars::new(run, io.terminal())),
        PromoteOutput::Text => Box::new(Lines::new(io)),
        PromoteOutput::Json => Box::new(Quiet),
        PromoteOutput::Events => Box::new(Stream::begin(io, run, now)),
    }
}
