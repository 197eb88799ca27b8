//! What was seen of a zone in a story, in a form in which two tellings can be compared.

use serde::{Deserialize, Serialize};

use super::{ROLLOUT, Story};
use crate::sim::Face;

/// What a zone looked like, one field after another, without repetitions. Templates are numbered in
/// the order in which they came.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// `currentStepIndex`.
    pub steps: Vec<usize>,
    /// `phase`.
    pub phases: Vec<String>,
    /// Number of the stable template.
    pub stable: Vec<usize>,
    /// Weight of the canary in the route, in percent.
    pub weights: Vec<u32>,
    /// Templates that the stable and the canary subset point to; empty if the subset is gone.
    pub subsets: Vec<Vec<usize>>,
    /// Wanted pods of each template, from the first on.
    pub pods: Vec<Vec<u32>>,
}

fn push<T: PartialEq>(list: &mut Vec<T>, item: T) {
    if list.last() != Some(&item) {
        list.push(item);
    }
}

/// Makes a record of what is seen of zone a.
#[derive(Debug)]
pub struct Recorder {
    /// The DestinationRule whose subsets count.
    rule: &'static str,
    record: Record,
    /// Template hashes in the order in which they came.
    hashes: Vec<String>,
}

impl Recorder {
    /// A recorder for this story.
    pub fn of(story: &Story) -> Self {
        let rule = if story.shared { "test" } else { ROLLOUT };
        Self { rule, record: Record::default(), hashes: Vec::new() }
    }

    /// Takes in what an object of this name looks like now.
    pub fn take(&mut self, name: &str, face: &Face) {
        match face {
            Face::Rollout { phase, step, stable, .. } if name == ROLLOUT && !stable.is_empty() => {
                let stable = self.number(stable);
                push(&mut self.record.steps, step.unwrap_or(0));
                push(&mut self.record.phases, phase.clone());
                push(&mut self.record.stable, stable);
            }
            Face::Route(routes) => {
                let weights = routes.iter().find(|(route, _)| route == "zone-a-route");
                push(&mut self.record.weights, weights.map_or(0, |(_, weights)| weights[1]));
            }
            Face::Rule(subsets) if name == self.rule => {
                let own = subsets.iter().filter(|(_, hash)| !hash.is_empty());
                let numbers = own.map(|(_, hash)| self.number(hash)).collect();
                push(&mut self.record.subsets, numbers);
            }
            Face::ReplicaSet { wanted, .. } => {
                let Some(hash) = name.strip_prefix("test-a-") else { return };
                let number = self.number(hash);
                let pods = &mut self.record.pods;
                pods.resize_with(pods.len().max(number + 1), Vec::new);
                push(&mut pods[number], *wanted);
            }
            _ => {}
        }
    }

    fn number(&mut self, hash: &str) -> usize {
        self.hashes.iter().position(|known| known == hash).unwrap_or_else(|| {
            self.hashes.push(hash.to_owned());
            self.hashes.len() - 1
        })
    }

    /// Forgets how it came to be as it is now.
    pub fn begin(&mut self) {
        fn last<T>(list: &mut Vec<T>) {
            list.drain(..list.len().saturating_sub(1));
        }
        last(&mut self.record.steps);
        last(&mut self.record.phases);
        last(&mut self.record.stable);
        last(&mut self.record.weights);
        last(&mut self.record.subsets);
        self.record.pods.iter_mut().for_each(last);
    }

    /// What was seen so far.
    pub fn record(&self) -> &Record {
        &self.record
    }
}
