//! Saying how a promotion ended, in the format that was asked for.

use zone_rollout_core::promote::{Outcome, Run};
use zone_rollout_core::time::{Moment, format_duration};

use crate::cli::{PromoteArgs, PromoteOutput};
use crate::cluster::clock;
use crate::command::Context;
use crate::exit::Exit;
use crate::render::words;
use crate::render::words::ending::{self as words_of, Ending};
use crate::render::{Io, document};

/// How it ended, in words.
pub(super) fn ending(
    context: &Context<'_>,
    args: &PromoteArgs,
    run: Option<&Run>,
    outcome: &Outcome,
) -> Ending {
    let again = format!("kubectl zone-rollout {}", typed());
    if let Some(run) = run {
        words_of::ending(run, outcome, &again, &context.flags)
    } else {
        let text = match outcome {
            Outcome::Declined => "declined; nothing was written",
            Outcome::Refused(_) => "refused; nothing was written",
            _ if args.expect.is_empty() && args.image.is_empty() => {
                "nothing to do: no zone is being updated"
            }
            _ => "nothing to do: every zone is there already",
        };
        Ending { text: text.to_owned(), next: Vec::new() }
    }
}

/// The command line of this invocation, to be typed again.
fn typed() -> String {
    let quoted = |word: String| {
        let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_=./:,@%+".contains(letter);
        if !word.is_empty() && word.chars().all(plain) {
            word
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    };
    std::env::args().skip(1).map(quoted).collect::<Vec<_>>().join(" ")
}

/// Says how it ended, in the format that was asked for; returns the exit code.
pub(super) fn finish(
    context: &Context<'_>,
    args: &PromoteArgs,
    run: Option<&Run>,
    outcome: &Outcome,
    signal: Option<u8>,
    io: &mut Io,
) -> Exit {
    let exit = words_of::exit(outcome, signal);
    let ending = ending(context, args, run, outcome);
    match args.output {
        PromoteOutput::Text => {
            if let Some(run) = run {
                io.result(&summary(run));
            }
            io.result(&ending.text);
            if !ending.next.is_empty() {
                io.result(&format!("Next:\n  {}", ending.next.join("\n  ")));
            }
        }
        PromoteOutput::Json | PromoteOutput::Events => {
            let document = document::result(run, outcome, &ending, exit, clock::now());
            let text = if args.output == PromoteOutput::Json {
                serde_json::to_string_pretty(&document)
            } else {
                serde_json::to_string(&document)
            };
            if let Ok(text) = text {
                io.result(&text);
            }
        }
    }
    exit
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
