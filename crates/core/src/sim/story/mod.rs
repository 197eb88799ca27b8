//! Stories: what is done to zone a of a group, and when, as data. The same story is played here and on
//! the real controllers (`tests/lab`), and what they recorded is compared.

mod play;
mod record;

use std::time::Duration;

use serde_json::{Value, json};

pub use self::play::{play, rollout_is};
pub use self::record::{Record, Recorder};
use crate::layout::{Spec, SpecZone, ring};
use crate::sim::{Verdict, shared_rule};

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
