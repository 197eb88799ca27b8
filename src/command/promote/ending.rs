//! Saying how a promotion ended, in the format that was asked for.

use zone_rollout_core::promote::{Outcome, Run};
use zone_rollout_core::time::{Moment, format_duration};

use crate::cli::PromoteOutput;
use crate::command::Context;
use crate::exit::Exit;
use crate::render::words;
use crate::render::words::ending::{self as words_of, Ending};
use crate::render::{Io, document};

/// How a run ended, in words.
pub(super) fn of_run(context: &Context, run: &Run, outcome: &Outcome) -> Ending {
    let again = format!("kubectl zone-rollout {}", context.typed);
    words_of::ending(run, outcome, &again, &context.flags)
}

/// How it ended before a run began. `reasons` are those of a refusal; `asked_for` tells whether a version
/// was asked for.
pub(super) fn without_run(outcome: &Outcome, reasons: &[String], asked_for: bool) -> Ending {
    let text = match outcome {
        Outcome::Refused(_) => format!("refused: {}\nnothing was written", reasons.join("\n")),
        Outcome::Interrupted { .. } => "interrupted before anything was written".to_owned(),
        Outcome::Declined => "declined; nothing was written".to_owned(),
        _ if !asked_for => "nothing to do: no zone is being updated".to_owned(),
        _ => "nothing to do: every zone is there already".to_owned(),
    };
    Ending { text, next: Vec::new() }
}

/// Says how it ended before a run began.
pub(super) fn say_without_run(
    output: PromoteOutput,
    outcome: &Outcome,
    ending: &Ending,
    now: Moment,
    io: &mut Io,
) -> Exit {
    let exit = words_of::exit(outcome, None);
    say(output, None, outcome, ending, exit, now, io);
    exit
}

/// Says that a signal came while the lease was waited for.
pub(super) fn interrupted(output: PromoteOutput, exit: Exit, now: Moment, io: &mut Io) -> Exit {
    let outcome = Outcome::Interrupted { writing: None };
    let ending = without_run(&outcome, &[], false);
    say(output, None, &outcome, &ending, exit, now, io);
    exit
}

/// Says how it ended, in the format that was asked for.
pub(super) fn say(
    output: PromoteOutput,
    run: Option<&Run>,
    outcome: &Outcome,
    ending: &Ending,
    exit: Exit,
    now: Moment,
    io: &mut Io,
) {
    let document = || document::result(run, outcome, ending, exit, now);
    let text = match output {
        PromoteOutput::Text => Ok(in_words(run, ending)),
        PromoteOutput::Json => serde_json::to_string_pretty(&document()),
        PromoteOutput::Events => serde_json::to_string(&document()),
    };
    match text {
        Ok(text) if exit == Exit::Refused && output == PromoteOutput::Text => io.note(&text),
        Ok(text) => io.result(&text),
        Err(error) => io.note(&format!("warning: cannot write the result: {error}")),
    }
}

fn in_words(run: Option<&Run>, ending: &Ending) -> String {
    let mut parts: Vec<String> = run.map(summary).into_iter().collect();
    parts.push(ending.text.clone());
    if !ending.next.is_empty() {
        parts.push(format!("Next:\n  {}", ending.next.join("\n  ")));
    }
    parts.join("\n")
}

/// When each zone was started, promoted and verified.
fn summary(run: &Run) -> String {
    let at = |moment: Option<Moment>| moment.map(|moment| words::clock(moment.wall));
    let lines = run.group().zones.iter().map(|zone| {
        let record = run.zone(&zone.id);
        let times = [
            ("started", at(record.started())),
            ("promoted", at(record.promoted())),
            ("verified", at(record.verified())),
        ];
        let told: Vec<String> = times
            .into_iter()
            .filter_map(|(what, at)| at.map(|at| format!("{what} {at}")))
            .collect();
        let took = record
            .started()
            .zip(record.verified())
            .map(|(from, to)| format!(" ({})", format_duration(to.mono.saturating_sub(from.mono))));
        let told = if told.is_empty() { "not started".to_owned() } else { told.join(", ") };
        format!("zone {}: {told}{}", zone.id, took.unwrap_or_default())
    });
    lines.collect::<Vec<_>>().join("\n")
}
