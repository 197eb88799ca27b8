//! Writes the man pages, one for each verb, into a folder: `cargo run --example man -- FOLDER`.

use std::env;
use std::fs;
use std::io;

use clap::CommandFactory;
use kubectl_zone_rollout::cli::Cli;

fn main() -> io::Result<()> {
    let folder = env::args_os().nth(1).ok_or_else(|| io::Error::other("name a folder"))?;
    fs::create_dir_all(&folder)?;
    // `man` finds no name with a space in it, and has room for what `-h` leaves out.
    let command = Cli::command()
        .display_name("kubectl-zone-rollout")
        .mut_args(|argument| argument.hide_short_help(false));
    clap_mangen::generate_to(command, folder)
}
