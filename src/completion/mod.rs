//! Completion in kubectl's manner: kubectl runs this same program under another name with the words
//! after the plugin's, the last one being completed, and reads one candidate a line, then a directive.
//! It writes nothing, asks nobody, and is silent about whatever fails.

mod values;

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use clap::{CommandFactory, FromArgMatches};
use clap_complete::CompletionCandidate;
use clap_complete::engine::complete;

use crate::cli::{Cli, Connection};

/// The name under which kubectl asks, without the `.exe` of Windows.
pub const NAME: &str = "kubectl_complete-zone_rollout";

/// Directive: no files where there is no candidate.
const NO_FILES: u8 = 4;
/// Directive: no space after the candidate.
const NO_SPACE: u8 = 2;

/// True if the program was called to complete.
pub fn is_asked(program: &OsStr) -> bool {
    Path::new(program).file_stem().is_some_and(|name| name == NAME)
}

/// The answer to these words.
pub fn answer(words: Vec<OsString>) -> String {
    let mut line = vec![OsString::from(NAME)];
    line.extend(words);
    if line.len() == 1 {
        line.push(OsString::new());
    }
    let last = line.len() - 1;
    let wants_flag = begins_flag(&line[last]);
    let mut command = values::offer(Cli::command(), &connection(&line[..last]));
    let folder = env::current_dir().ok();
    let found = complete(&mut command, line, last, folder.as_deref()).unwrap_or_default();
    // As in kubectl, flags are shown to those who began one.
    let fits = |candidate: &&CompletionCandidate| wants_flag || !begins_flag(candidate.get_value());
    written(found.iter().filter(fits))
}

fn begins_flag(word: &OsStr) -> bool {
    word.to_string_lossy().starts_with('-')
}

/// The connection flags among these words; the rest of the line need not make sense yet.
fn connection(line: &[OsString]) -> Connection {
    let matches = Cli::command().ignore_errors(true).try_get_matches_from(line);
    let typed = matches.and_then(|matches| Connection::from_arg_matches(&matches));
    Connection { unattended: true, ..typed.unwrap_or_default() }
}

fn written<'a>(candidates: impl Iterator<Item = &'a CompletionCandidate>) -> String {
    let mut lines = Vec::new();
    let mut only_folders = true;
    for candidate in candidates {
        let value = candidate.get_value().to_string_lossy();
        only_folders &= value.ends_with('/');
        let help = candidate.get_help().map(ToString::to_string).unwrap_or_default();
        lines.push(match help.lines().next() {
            Some(help) => format!("{value}\t{help}"),
            None => value.into_owned(),
        });
    }
    let space = if only_folders && !lines.is_empty() { NO_SPACE } else { 0 };
    lines.push(format!(":{}", NO_FILES | space));
    lines.join("\n")
}
