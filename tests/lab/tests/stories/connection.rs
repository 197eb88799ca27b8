//! How this program connects, next to kubectl, case by case: the table in docs/connection.md is what
//! the other end saw of each.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use zone_lab::Lab;
use zone_stub::{Bench, Case, Invocation, SECRET, cases};

const PAGE: &str = include_str!("../../../../docs/connection.md");
const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/connection.md");
/// Set to anything, it writes what was seen into the page instead of comparing.
const UPDATE: &str = "ZONE_LAB_UPDATE_DOCS";

/// Runs a program as a case wants it; what the other end saw.
fn seen(program: &str, words: &[&str], case: &Case) -> Result<String> {
    let (bench, Invocation { flags, environment }) = case.set_up_now();
    let path = std::env::var("PATH").context("no PATH")?;
    let output = Command::new(program)
        .args(words)
        .args(&flags)
        .env_clear()
        .env("HOME", bench.home())
        .env("PATH", path)
        .envs(environment)
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run {program}"))?;
    let code = output.status.code();
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    ensure!(program == "kubectl" || !text.contains(SECRET), "{}: {text}", case.name);
    Ok(told(&bench, code))
}

fn told(bench: &Bench, code: Option<i32>) -> String {
    bench.observed(code).to_string()
}

fn rows() -> Result<Vec<String>> {
    let row = |case: Case| {
        let kubectl = seen("kubectl", &["get", "--raw", "/version"], &case)?;
        let own = seen("kubectl-zone_rollout", &["status"], &case)?;
        let own = if own == kubectl { "the same".to_owned() } else { own };
        Ok(format!("| {} | {kubectl} | {own} |", case.name))
    };
    cases().into_iter().map(row).collect()
}

#[tokio::test]
async fn connecting_as_kubectl_does() -> Result<()> {
    let _lab = Lab::connect().await?;
    let seen = tokio::task::spawn_blocking(rows).await??;
    let head = "| case | `kubectl` | `kubectl zone-rollout` |\n|---|---|---|\n";
    let (before, rest) = PAGE.split_once(head).context("the page has no table")?;
    let end = rest.find("\n\n").context("nothing follows the table")?;
    if std::env::var_os(UPDATE).is_some() {
        std::fs::write(PATH, format!("{before}{head}{}{}", seen.join("\n"), &rest[end..]))?;
        return Ok(());
    }
    let documented: Vec<&str> = rest[..end].lines().collect();
    for (seen, documented) in seen.iter().zip(&documented) {
        ensure!(seen == documented, "seen: {seen}\npage: {documented}");
    }
    ensure!(
        seen.len() == documented.len(),
        "the page has {} rows of {}",
        documented.len(),
        seen.len()
    );
    Ok(())
}
