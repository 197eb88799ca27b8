//! What clients received, and how to ask about it.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

use super::answer::Answer;
use crate::zones::Zone;

/// Width of a bucket.
const BUCKET: Duration = Duration::from_millis(100);

/// One request and its answer.
#[derive(Debug, Clone)]
pub struct Sample {
    /// When it was sent.
    pub sent: Instant,
    /// The zone of the client.
    pub client: Zone,
    /// What came back.
    pub answer: Answer,
}

/// The answers of all requests sent within a tenth of a second.
#[derive(Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Time from the first request of the tally to the start of the bucket.
    pub start: Duration,
    /// How often each answer came.
    pub answers: BTreeMap<String, usize>,
}

/// Requests and their answers, in the order in which they were sent.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    samples: Vec<Sample>,
}

impl Tally {
    pub(super) fn new(mut samples: Vec<Sample>) -> Self {
        samples.sort_by_key(|sample| sample.sent);
        Self { samples }
    }

    /// Every request.
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// Requests of one zone's clients.
    #[must_use]
    pub fn from_zone(&self, zone: Zone) -> Self {
        self.filter(|sample| sample.client == zone)
    }

    /// Requests sent at or after a moment.
    #[must_use]
    pub fn since(&self, moment: Instant) -> Self {
        self.filter(|sample| sample.sent >= moment)
    }

    /// Requests sent before a moment.
    #[must_use]
    pub fn until(&self, moment: Instant) -> Self {
        self.filter(|sample| sample.sent < moment)
    }

    fn filter(&self, keep: impl Fn(&Sample) -> bool) -> Self {
        Self { samples: self.samples.iter().filter(|sample| keep(sample)).cloned().collect() }
    }

    /// How many requests there were.
    pub fn total(&self) -> usize {
        self.samples.len()
    }

    /// How often an answer came, as it is written: `a/v1`, `503`, `timeout`.
    pub fn count(&self, answer: &str) -> usize {
        self.answers().get(answer).copied().unwrap_or_default()
    }

    /// The part of requests that got an answer, from 0 to 1; 0 where there were no requests.
    pub fn share(&self, answer: &str) -> f64 {
        if self.samples.is_empty() {
            return 0.0;
        }
        #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52 requests")]
        let share = self.count(answer) as f64 / self.total() as f64;
        share
    }

    /// How many requests were not answered by a pod.
    pub fn errors(&self) -> usize {
        self.samples.iter().filter(|sample| !sample.answer.is_pod()).count()
    }

    /// How often each answer came.
    pub fn answers(&self) -> BTreeMap<String, usize> {
        count(&self.samples)
    }

    /// The answers over time; tenths of seconds without requests are left out.
    pub fn buckets(&self) -> Vec<Bucket> {
        let Some(first) = self.samples.first().map(|sample| sample.sent) else { return Vec::new() };
        let index = |sample: &Sample| (sample.sent - first).as_millis() / BUCKET.as_millis();
        self.samples
            .chunk_by(|one, next| index(one) == index(next))
            .map(|samples| {
                let start = u32::try_from(index(&samples[0])).unwrap_or(u32::MAX);
                Bucket { start: BUCKET * start, answers: count(samples) }
            })
            .collect()
    }
}

fn count(samples: &[Sample]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for sample in samples {
        *counts.entry(sample.answer.to_string()).or_default() += 1;
    }
    counts
}

impl fmt::Display for Tally {
    /// A line for each tenth of a second whose answers differ from those before.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} requests, {} errors: {:?}", self.total(), self.errors(), self.answers())?;
        let mut before = Vec::new();
        for Bucket { start, answers } in self.buckets() {
            let kinds: Vec<String> = answers.keys().cloned().collect();
            if kinds != before {
                write!(f, "\n  from {:.1} s: {answers:?}", start.as_secs_f32())?;
                before = kinds;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(answers: &[(u64, &str, &str)]) -> (Instant, Tally) {
        let start = Instant::now();
        let sample = |&(millis, client, body): &(u64, &str, &str)| Sample {
            sent: start + Duration::from_millis(millis),
            client: Zone::named(client),
            answer: match body {
                "503" => Answer::Status(503),
                body => Answer::from(body),
            },
        };
        (start, Tally::new(answers.iter().map(sample).collect()))
    }

    #[test]
    fn parts_of_a_tally() {
        let (start, tally) =
            tally(&[(250, "a", "a/v2"), (0, "a", "a/v1"), (20, "b", "503"), (120, "a", "a/v1")]);
        assert_eq!((tally.total(), tally.errors(), tally.count("a/v1")), (4, 1, 2));
        assert_eq!(tally.from_zone(Zone::named("a")).errors(), 0);
        let late = tally.since(start + Duration::from_millis(120));
        assert_eq!((late.total(), late.count("a/v2")), (2, 1));
        assert!((late.share("a/v2") - 0.5).abs() < f64::EPSILON);
        assert_eq!(tally.until(start).total(), 0);
    }

    #[test]
    fn buckets_are_tenths_of_seconds() {
        let (_, tally) = tally(&[(0, "a", "a/v1"), (99, "b", "503"), (310, "a", "a/v2")]);
        let starts: Vec<u128> = tally.buckets().iter().map(|it| it.start.as_millis()).collect();
        assert_eq!(starts, [0, 300]);
        assert_eq!(tally.buckets()[0].answers.len(), 2);
    }
}
