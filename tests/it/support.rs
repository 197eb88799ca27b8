//! Running the program with an environment of its own.

use std::path::Path;

use assert_cmd::Command;

/// The program with nothing of this machine's environment.
pub(crate) fn program(home: &Path) -> Command {
    let mut command = Command::cargo_bin("kubectl-zone_rollout").expect("the program is built");
    command.env_clear().env("HOME", home).env("LC_ALL", "C.UTF-8");
    command
}

/// Exit code, standard output and standard error, for a snapshot.
pub(crate) fn shown(command: &mut Command) -> String {
    let output = command.output().expect("the program runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("output is UTF-8");
    let (stdout, stderr) = (text(output.stdout), text(output.stderr));
    format!("exit {}\n{stdout}---\n{stderr}", output.status.code().expect("no signal"))
}
