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

/// How a run ended, in words.
pub(super) fn of_run(context: &Context, run: &Run, outcome: &Outcome) -> Ending {
    let again = format!("kubectl zone-rollout {}", typed(std::env::args().skip(1)));
    words_of::ending(run, outcome, &again, &context.flags)
}

/// How it ended before a run began. `reasons` are those of a refusal.
pub(super) fn without_run(args: &PromoteArgs, outcome: &Outcome, reasons: &[String]) -> Ending {
    let text = match outcome {
        Outcome::Refused(_) => format!("refused: {}\nnothing was written", reasons.join("\n")),
        Outcome::Interrupted { .. } => "interrupted before anything was written".to_owned(),
        Outcome::Declined => "declined; nothing was written".to_owned(),
        _ if args.expect.is_empty() && args.image.is_empty() => {
            "nothing to do: no zone is being updated".to_owned()
        }
        _ => "nothing to do: every zone is there already".to_owned(),
    };
    Ending { text, next: Vec::new() }
}

/// Flags whose value is a secret.
const SECRETS: [&str; 2] = ["--token", "--password"];

/// A command line, to be typed again: without secrets, quoted for a shell.
fn typed(words: impl Iterator<Item = String>) -> String {
    let mut told: Vec<String> = Vec::new();
    let mut hide = false;
    for word in words {
        let (flag, value) = word.split_once('=').unwrap_or((&word, ""));
        if std::mem::take(&mut hide) {
            told.push("...".to_owned());
        } else if SECRETS.contains(&flag) {
            hide = value.is_empty() && !word.contains('=');
            told.push(if hide { flag.to_owned() } else { format!("{flag}=...") });
        } else {
            told.push(quoted(&word));
        }
    }
    told.join(" ")
}

fn quoted(word: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_=./:,@%+".contains(letter);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Says how it ended, in the format that was asked for.
pub(super) fn say(
    args: &PromoteArgs,
    run: Option<&Run>,
    outcome: &Outcome,
    ending: &Ending,
    exit: Exit,
    io: &mut Io,
) {
    let document = || document::result(run, outcome, ending, exit, clock::now());
    let text = match args.output {
        PromoteOutput::Text => Ok(in_words(run, ending)),
        PromoteOutput::Json => serde_json::to_string_pretty(&document()),
        PromoteOutput::Events => serde_json::to_string(&document()),
    };
    match text {
        Ok(text) if exit == Exit::Refused && args.output == PromoteOutput::Text => io.note(&text),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_repeated_without_secrets() {
        let told = |words: &[&str]| typed(words.iter().map(|word| (*word).to_owned()));
        assert_eq!(
            told(&["promote", "--token", "s3cret", "--check", "curl -f x", "-n", "shop"]),
            "promote --token ... --check 'curl -f x' -n shop"
        );
        assert_eq!(told(&["promote", "--token=s3cret", "it's"]), r"promote --token=... 'it'\''s'");
    }
}
