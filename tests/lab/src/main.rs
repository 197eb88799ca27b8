//! The `lab` program: builds the lab and runs commands in it.

use std::process::ExitCode;

// One thread: the kernel ends the namespaces when the *thread* that started them ends.
#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    zone_lab::cli::main().await
}
