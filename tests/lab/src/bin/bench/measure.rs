//! Runs programs in turn, so that whatever slows the machine down slows all of them, and prints medians.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use comfy_table::Table;
use comfy_table::presets::ASCII_MARKDOWN;
use wait4::Wait4;
use zone_lab::Lab;

use crate::link::Link;

/// How often each program is run and counted; once more before that, for caches.
const ROUNDS: usize = 15;

/// A diagnosis with findings has done its work.
const FINDINGS: i32 = 3;

/// A program to measure.
pub(crate) struct Program {
    /// As it is typed.
    name: String,
    words: Vec<String>,
}

/// What one run took.
#[derive(Clone, Copy)]
struct Sample {
    time: Duration,
    cpu: Duration,
    /// Bytes.
    memory: u64,
}

impl Program {
    pub(crate) fn new(line: impl Into<String>) -> Self {
        let name: String = line.into();
        let words = name.split(' ').map(str::to_owned).collect();
        Self { name, words }
    }

    /// Arguments of this program, called without kubectl.
    pub(crate) fn by(mut self, program: &str) -> Self {
        self.words.insert(0, program.to_owned());
        self.name = format!("kubectl-zone_rollout {}", self.name);
        self
    }

    fn run(&self, link: &Link) -> Result<Sample> {
        let mut command = Command::new(&self.words[0]);
        command.args(&self.words[1..]).env("KUBECONFIG", link.kubeconfig());
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let begun = Instant::now();
        let child = command.spawn().with_context(|| format!("cannot run {}", self.name))?;
        let ended = child.wait4()?;
        let time = begun.elapsed();
        let code = ended.status.code();
        ensure!(matches!(code, Some(0 | FINDINGS)), "{} failed: {}", self.name, ended.status);
        let usage = ended.rusage;
        Ok(Sample { time, cpu: usage.utime + usage.stime, memory: usage.maxrss })
    }
}

/// Measures all programs and prints a table; the first is what the others are compared with.
pub(crate) async fn compare(
    scene: &str,
    lab: &Lab,
    programs: &[Program],
    link: &Link,
) -> Result<()> {
    let mut samples: Vec<Vec<Sample>> = vec![Vec::new(); programs.len()];
    for round in 0..=ROUNDS {
        for (program, samples) in programs.iter().zip(&mut samples) {
            let sample = tokio::task::block_in_place(|| program.run(link))?;
            if round > 0 {
                samples.push(sample);
            }
        }
    }
    let mut table = Table::new();
    table.load_style(ASCII_MARKDOWN);
    table.set_header([scene, "ms", "ratio", "CPU ms", "MB", "requests", "KB"]);
    let reference = median(&samples[0], |sample| sample.time);
    for (program, samples) in programs.iter().zip(&samples) {
        let (requests, bytes) = traffic(lab, program, link).await?;
        let time = median(samples, |sample| sample.time);
        table.add_row([
            format!("`{}`", program.name),
            format!("{:.1}", milliseconds(time)),
            format!("{:.2}", time.as_secs_f64() / reference.as_secs_f64()),
            format!("{:.1}", milliseconds(median(samples, |sample| sample.cpu))),
            megabytes(median(samples, |sample| sample.memory)),
            requests.to_string(),
            (bytes / 1000).to_string(),
        ]);
    }
    println!("{table}\n");
    Ok(())
}

/// Requests and bytes of one more run.
async fn traffic(lab: &Lab, program: &Program, link: &Link) -> Result<(usize, u64)> {
    let (mark, before) = (lab.audit_mark()?, link.bytes());
    tokio::task::block_in_place(|| program.run(link))?;
    let records = lab.audit_since(mark).await?;
    let ours = records.iter().filter(|record| record.user.username == link.user());
    Ok((ours.count(), link.bytes() - before))
}

fn median<T: Ord + Copy>(samples: &[Sample], of: impl Fn(&Sample) -> T) -> T {
    let mut values: Vec<T> = samples.iter().map(of).collect();
    values.sort_unstable();
    values[values.len() / 2]
}

/// The value below which this many percent of the values are.
pub(crate) fn percentile(values: &mut [Duration], percent: usize) -> Result<Duration> {
    ensure!(!values.is_empty(), "nothing was measured");
    values.sort_unstable();
    Ok(values[(values.len() * percent / 100).min(values.len() - 1)])
}

pub(crate) fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

pub(crate) fn megabytes(bytes: u64) -> String {
    format!("{}.{}", bytes / 1_000_000, bytes / 100_000 % 10)
}
