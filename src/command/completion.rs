//! `completion`: how kubectl gets to complete, and whether it does already.

use std::env;
use std::path::{Path, PathBuf};

use crate::completion;
use crate::exit::Exit;
use crate::render::{Io, completion as words};

/// The file that kubectl runs as this plugin.
const PLUGIN: &str = "kubectl-zone_rollout";

pub(super) fn run(io: &mut Io) -> Exit {
    let link = file_name(completion::NAME);
    let text = match (on_path(&link), on_path(&file_name(PLUGIN))) {
        (Some(found), _) => words::present(&found),
        (None, Some(plugin)) => words::absent(&plugin, &plugin.with_file_name(link)),
        (None, None) => words::no_plugin(PLUGIN),
    };
    io.result(&text);
    Exit::Done
}

fn file_name(program: &str) -> String {
    format!("{program}{}", env::consts::EXE_SUFFIX)
}

/// Where kubectl finds a program.
fn on_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join(name)).find(|file| Path::is_file(file))
}
