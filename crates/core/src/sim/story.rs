//! Stories: what is done to zone a of a group, and when, as data. The same story is played here and on
//! the real controllers (`tests/lab`), and what they recorded is compared.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::layout::{Spec, SpecZone, ring};
use crate::scene::{Key, Rollout};
use crate::sim::{Act, Face, ImageFate, Verdict, World, shared_rule};
use crate::traffic::weight_in_force;

/// The Rollout that a story is about, and its DestinationRule.
const ROLLOUT: &str = "test-a";
/// How long a beat is awaited.
pub const LONG: Duration = Duration::from_mins(2);
/// How long a condition has been true when something is done. A controller up to v1.9.1 may miss what
/// is done while it writes itself (argo-rollouts#4694).
pub const SETTLED: Duration = Duration::from_millis(1500);
/// How long a story is watched after its end.
pub const REST: Duration = Duration::from_secs(4);

/// A story.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Story {
    /// Its name; also of the file with its recording.
    pub name: &'static str,
    /// Whether all Rollouts share one DestinationRule.
    pub shared: bool,
    /// How an analysis ends that takes the place of the pause at 10 %, if there is one.
    pub analysis: Option<Verdict>,
    /// What is done, in order.
    pub beats: Vec<Beat>,
    /// What has to be reached at the end.
    pub end: When,
}

/// One thing that is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beat {
    /// When: as soon as this is true after the beat before.
    pub when: When,
    /// What.
    pub deed: Deed,
}

/// A condition on zone a.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// At once.
    Now,
    /// It waits in the pause at this step.
    Pause(usize),
    /// `currentStepIndex` is this.
    Step(usize),
    /// The controller says this of the current spec.
    Phase(&'static str),
    /// This weight is in its route.
    Weight(u32),
    /// So many seconds have passed since the beat before.
    After(u64),
}

/// Something done to zone a.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deed {
    /// A new image. Its tag says how its pods behave: `crash-loop`, `pull-fail`, `never-ready`.
    Image(&'static str),
    /// `kubectl argo rollouts promote`
    Promote,
    /// `kubectl argo rollouts promote --full`
    PromoteFull,
    /// `kubectl argo rollouts abort`
    Abort,
    /// `kubectl argo rollouts retry rollout`
    Retry,
    /// `kubectl argo rollouts undo`
    Undo,
    /// `spec.paused`
    Hold(bool),
    /// `spec.replicas`
    Scale(u32),
    /// So many stable pods are not Ready any more.
    Unready(usize),
    /// All pods are Ready again.
    ReadyAgain,
}

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

/// What every story begins with: two zones of three pods, a gate, 10 and 50 % for 5 s each.
pub fn beginning(story: &Story, namespace: &str) -> Vec<Value> {
    let zone = |short: &str, topology: &str| SpecZone {
        short: short.to_owned(),
        topology: topology.to_owned(),
    };
    let spec = Spec {
        name: "test".to_owned(),
        namespace: namespace.to_owned(),
        image: "myapp:v1".to_owned(),
        zones: vec![zone("a", "us-east-1a"), zone("b", "us-east-1b")],
        replicas: 3,
        port: 8080,
        target_port: 9090,
        gate: true,
        weights: vec![10, 50],
        pause: "5s".to_owned(),
        progress_deadline_seconds: 60,
        istio_api_version: "v1".to_owned(),
    };
    let mut manifests = if story.shared { shared_rule(&spec) } else { ring(&spec) };
    if let Some(verdict) = story.analysis {
        for rollout in manifests.iter_mut().filter(|manifest| manifest["kind"] == "Rollout") {
            rollout["spec"]["strategy"]["canary"]["steps"][2] =
                json!({"analysis": {"templates": [{"templateName": "judge"}]}});
        }
        manifests.insert(0, judge(verdict, namespace));
    }
    manifests
}

/// Asks the API server for its major version, which is 1, and ends as it is to end.
fn judge(verdict: Verdict, namespace: &str) -> Value {
    let is = |major: &str| json!(format!("result == \"{major}\""));
    let (success, failure) = match verdict {
        Verdict::Successful => (is("1"), is("2")),
        Verdict::Failed => (is("2"), is("1")),
        Verdict::Inconclusive => (is("2"), is("2")),
    };
    json!({
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "AnalysisTemplate",
        "metadata": {"name": "judge", "namespace": namespace},
        "spec": {"metrics": [{
            "name": "version",
            "successCondition": success,
            "failureCondition": failure,
            "provider": {"web": {
                "url": "https://127.0.0.1:6443/version",
                "insecure": true,
                "jsonPath": "{$.major}",
            }},
        }]},
    })
}

/// All stories.
pub fn stories() -> Vec<Story> {
    use Deed::{Abort, Hold, Image, Promote, PromoteFull, ReadyAgain, Retry, Scale, Undo, Unready};
    use When::{After, Now, Pause, Phase, Step, Weight};
    let v2 = (Now, Image("myapp:v2"));
    let open = (Pause(0), Promote);
    let tale = |name, beats: &[(When, Deed)], end| Story {
        name,
        shared: false,
        analysis: None,
        beats: beats.iter().map(|(when, deed)| Beat { when: *when, deed: *deed }).collect(),
        end,
    };
    vec![
        tale("gate-and-promote", &[v2, open], Phase("Healthy")),
        tale("waits-at-its-gate", &[v2, (Pause(0), Hold(false))], After(8)),
        tale("abort-midway", &[v2, open, (Weight(50), Abort)], Weight(0)),
        tale("abort-at-the-gate", &[v2, (Pause(0), Abort)], Phase("Degraded")),
        tale("retry", &[v2, open, (Weight(10), Abort), (Weight(0), Retry)], Pause(0)),
        tale(
            "abort-with-a-stable-pod-missing",
            &[v2, open, (Pause(2), Unready(1)), (After(1), Abort), (After(5), ReadyAgain)],
            Weight(0),
        ),
        tale("undo-after-the-end", &[v2, open, (Phase("Healthy"), Undo), open], Phase("Healthy")),
        tale("undo-midway", &[v2, open, (Pause(2), Undo)], Pause(0)),
        tale("image-that-cannot-be-pulled", &[(Now, Image("myapp:v2-pull-fail")), open], After(8)),
        tale(
            "new-image-over-a-canary",
            &[v2, open, (Pause(2), Image("myapp:v3")), open],
            Phase("Healthy"),
        ),
        tale(
            "back-to-the-stable-image",
            &[v2, open, (Pause(4), Image("myapp:v1"))],
            Phase("Healthy"),
        ),
        tale("scaled-midway", &[v2, open, (Pause(2), Scale(5))], Phase("Healthy")),
        tale(
            "held",
            &[(Now, Hold(true)), (After(1), Image("myapp:v2")), (After(5), Hold(false)), open],
            Phase("Healthy"),
        ),
        tale("promote-full", &[v2, (Pause(0), PromoteFull)], Phase("Healthy")),
        tale(
            "promote-full-and-abort",
            &[(Now, Image("myapp:v2-never-ready")), (Pause(0), PromoteFull), (After(3), Abort)],
            After(5),
        ),
        tale(
            "stable-pods-lost",
            &[v2, open, (Pause(2), Unready(3)), (Step(3), ReadyAgain)],
            Phase("Healthy"),
        ),
        Story { shared: true, ..tale("shared-rule", &[(Now, Hold(false))], After(5)) },
        Story {
            analysis: Some(Verdict::Successful),
            ..tale("analysis-that-succeeds", &[v2, open], Phase("Healthy"))
        },
        Story {
            analysis: Some(Verdict::Failed),
            ..tale("analysis-that-fails", &[v2, open], Phase("Degraded"))
        },
        Story {
            analysis: Some(Verdict::Inconclusive),
            ..tale("analysis-without-a-verdict", &[v2, open, (Pause(2), Promote)], Phase("Healthy"))
        },
    ]
}

/// Plays a story in a world and records it.
///
/// # Errors
/// The beat that never came.
pub fn play(story: &Story, seed: u64) -> Result<Record, String> {
    let manifests = beginning(story, "default");
    let mut world = World::deploy(&manifests, Timestamp::UNIX_EPOCH, seed)
        .map_err(|unmodelled| unmodelled.to_string())?;
    for (tag, fate) in [
        ("myapp:v2-pull-fail", ImageFate::Missing),
        ("myapp:v2-never-ready", ImageFate::NeverReady),
    ] {
        world.act(Act::Image(tag.to_owned(), fate)).map_err(|gone| gone.to_string())?;
    }
    if let Some(verdict) = story.analysis {
        world.act(Act::Judge(zone_a(), verdict)).map_err(|gone| gone.to_string())?;
    }
    world.wait(Duration::from_mins(1));
    let from = world.history().len();
    for beat in &story.beats {
        wait(&mut world, beat.when).ok_or_else(|| format!("{}: {beat:?}", story.name))?;
        world.wait(SETTLED);
        do_it(&mut world, beat.deed);
    }
    wait(&mut world, story.end).ok_or_else(|| format!("{}: no end", story.name))?;
    world.wait(REST);
    let mut recorder = Recorder::of(story);
    let (before, told) = world.history().split_at(from);
    for change in before {
        recorder.take(&change.object.name, &change.face);
    }
    recorder.begin();
    for change in told {
        recorder.take(&change.object.name, &change.face);
    }
    Ok(recorder.record)
}

fn zone_a() -> Key {
    Key::new("default", ROLLOUT)
}

fn wait(world: &mut World, when: When) -> Option<()> {
    let start = world.now();
    while !is(world, when, world.now().mono.saturating_sub(start.mono)) {
        if world.now().mono.saturating_sub(start.mono) > LONG {
            return None;
        }
        world.wait(Duration::from_millis(50));
    }
    Some(())
}

fn is(world: &World, when: When, waited: Duration) -> bool {
    let scene = world.scene();
    let Some(rollout) = scene.rollouts.get(&zone_a()) else { return false };
    match when {
        When::Now => true,
        When::After(seconds) => waited >= Duration::from_secs(seconds),
        When::Weight(weight) => {
            weight_in_force(&scene, rollout).is_ok_and(|in_force| in_force.highest == weight)
        }
        _ => rollout_is(rollout, when),
    }
}

/// Whether a condition that is about the Rollout alone is true.
pub fn rollout_is(rollout: &Rollout, when: When) -> bool {
    let status = &rollout.status;
    match when {
        When::Pause(step) => {
            rollout.is_observed()
                && status.current_step_index == Some(step)
                && !status.pause_conditions.is_empty()
        }
        When::Step(step) => status.current_step_index == Some(step),
        When::Phase(phase) => {
            let settled = phase != "Healthy" || rollout.is_fully_promoted();
            rollout.is_observed() && status.phase == phase && settled
        }
        When::Now | When::Weight(_) | When::After(_) => false,
    }
}

fn do_it(world: &mut World, deed: Deed) {
    let key = zone_a();
    let act = match deed {
        Deed::Image(image) => Act::SetImage(key, image.to_owned()),
        Deed::Promote => Act::Promote(key),
        Deed::PromoteFull => Act::PromoteFull(key),
        Deed::Abort => Act::Abort(key),
        Deed::Retry => Act::Retry(key),
        Deed::Undo => Act::Undo(key),
        Deed::Hold(hold) => Act::Pause(key, hold),
        Deed::Scale(replicas) => Act::Scale(key, replicas),
        Deed::Unready(count) => return ready(world, count, false),
        Deed::ReadyAgain => return ready(world, usize::MAX, true),
    };
    // Every story is about a Rollout that is there.
    let _there = world.act(act);
}

fn ready(world: &mut World, count: usize, ready: bool) {
    let Some(rollout) = world.rollout(&zone_a()) else { return };
    let stable = world.stable_replica_set(&rollout).and_then(|key| world.replica_set(&key));
    for pod in stable.map(|stable| world.pods_of(&stable)).into_iter().flatten().take(count) {
        let _there = world.act(Act::Ready(pod.meta.key(), ready));
    }
}
