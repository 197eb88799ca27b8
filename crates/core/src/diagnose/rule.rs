//! What a rule is: a question to the scene, and everything that is said about its answer.

use super::context::Context;
use super::finding::{Effect, Found};

/// The named checks, each a set of rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Check {
    /// Zones, nodes and where pods run.
    Zones,
    /// VirtualServices and the routes in them.
    Routes,
    /// DestinationRules: subsets, locality, ejection.
    Rules,
    /// Disruption budgets.
    Budgets,
    /// Analysis, metrics and alerts.
    Analysis,
    /// Rollouts: steps, gates, references.
    Rollouts,
    /// Files and documents; always applied.
    Files,
}

impl Check {
    /// As it is typed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Zones => "zones",
            Self::Routes => "routes",
            Self::Rules => "rules",
            Self::Budgets => "budgets",
            Self::Analysis => "analysis",
            Self::Rollouts => "rollouts",
            Self::Files => "files",
        }
    }
}

/// A rule.
#[derive(Debug)]
pub struct Rule {
    /// Stable code: ZRI for Istio, ZRA for Argo Rollouts, ZRK for Kubernetes, ZRM for metrics.
    pub code: &'static str,
    /// What it is about, in a few words.
    pub title: &'static str,
    /// The check it belongs to.
    pub check: Check,
    /// What the fault does to traffic.
    pub effect: Effect,
    /// What happens, and to whom.
    pub meaning: &'static str,
    /// Why it happens, down to the program that makes it so.
    pub cause: &'static str,
    /// How it is cured in general.
    pub fix: &'static str,
    /// How to see that it is cured.
    pub verify: &'static str,
    /// Objects, as a difference: with the lines marked `-` the rule finds a fault, with those marked
    /// `+` in their place it does not.
    pub example: &'static str,
    pub(super) find: fn(&Context<'_>) -> Vec<Found>,
}

impl Rule {
    /// The example in which the rule finds a fault.
    pub fn failing_example(&self) -> String {
        chosen(self.example, '-')
    }

    /// The example in which it does not.
    pub fn passing_example(&self) -> String {
        chosen(self.example, '+')
    }
}

fn chosen(example: &str, side: char) -> String {
    let line = |line: &str| {
        let mut characters = line.chars();
        let mark = characters.next().unwrap_or(' ');
        (mark == ' ' || mark == side).then(|| format!("{}\n", characters.as_str()))
    };
    example.lines().filter_map(line).collect()
}
