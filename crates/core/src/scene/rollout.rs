//! An Argo Rollout as the domain reads it, with the few derivations that mirror the controller.
//! Only canary Rollouts are modelled; a blue-green strategy is recognised and refused elsewhere.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Value, json};

use super::Meta;
use crate::time::parse_duration;

/// A Rollout (`argoproj.io/v1alpha1`).
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct Rollout {
    /// Metadata.
    #[serde(rename = "metadata")]
    pub meta: Meta,
    /// What is wanted.
    pub spec: RolloutSpec,
    /// What the controller reports.
    pub status: RolloutStatus,
}

/// `spec` of a Rollout.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RolloutSpec {
    /// Wanted pods; the controller defaults to 1.
    pub replicas: Option<u32>,
    /// A manual pause. It freezes all scaling of the Rollout as well.
    pub paused: bool,
    /// The pod template, as it stands. Empty if `workloadRef` is used.
    pub template: Value,
    /// Set if the template lives in another object.
    pub workload_ref: Option<Value>,
    /// Which pods belong to the Rollout.
    pub selector: LabelSelector,
    /// How a new template is brought out.
    pub strategy: Strategy,
    /// Seconds without progress after which the controller reports `ProgressDeadlineExceeded`.
    pub progress_deadline_seconds: Option<u32>,
    /// Whether that aborts the update.
    pub progress_deadline_abort: bool,
    /// Seconds for which a pod has to be Ready until it counts as available.
    pub min_ready_seconds: u32,
    /// Which earlier revisions are taken back without any step.
    pub rollback_window: Option<Value>,
}

/// `spec.selector`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LabelSelector {
    /// Labels a pod must carry.
    pub match_labels: BTreeMap<String, String>,
    /// Further conditions on its labels.
    pub match_expressions: Vec<Value>,
}

impl LabelSelector {
    /// Its labels as kubectl's `-l` takes them: `app=shop,zone=a`.
    pub fn as_typed(&self) -> String {
        let labels = self.match_labels.iter().map(|(label, value)| format!("{label}={value}"));
        labels.collect::<Vec<_>>().join(",")
    }
}

/// `spec.strategy`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Strategy {
    /// The canary strategy.
    pub canary: Option<Canary>,
    /// The blue-green strategy, present or not.
    pub blue_green: Option<Value>,
}

/// `spec.strategy.canary`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Canary {
    /// The steps in order.
    pub steps: Vec<Step>,
    /// Service of the canary pods, if any.
    pub canary_service: Option<String>,
    /// Service of the stable pods, if any.
    pub stable_service: Option<String>,
    /// Two Services that take turns, instead of a stable and a canary one.
    pub ping_pong: Option<Value>,
    /// Who steers the traffic; absent means by pod counts.
    pub traffic_routing: Option<TrafficRouting>,
    /// The stable ReplicaSet shrinks while the canary grows.
    pub dynamic_stable_scale: bool,
    /// Metadata that stable pods carry for as long as they are stable.
    pub stable_metadata: Option<PodMetadata>,
    /// Metadata that canary pods carry for as long as they are canary.
    pub canary_metadata: Option<PodMetadata>,
    /// Analysis beside the steps.
    pub analysis: Option<BackgroundAnalysis>,
    /// Seconds for which the old pods stay after a promotion; the controller defaults to 30.
    pub scale_down_delay_seconds: Option<u32>,
    /// Seconds for which the canary pods stay after an abort; the controller defaults to 30.
    pub abort_scale_down_delay_seconds: Option<u32>,
    /// Fewest pods of either side.
    pub min_pods_per_replica_set: Option<u32>,
    /// Which share of the pods is enough to go on.
    pub replica_progress_threshold: Option<Value>,
}

/// `spec.strategy.canary.analysis`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BackgroundAnalysis {
    /// 0-based index of the step from which it runs.
    pub starting_step: usize,
    /// The templates it is made from.
    pub templates: Vec<TemplateReference>,
    /// Values for the templates' arguments.
    pub args: Vec<Argument>,
}

/// A reference to an AnalysisTemplate.
#[derive(Debug, Clone, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TemplateReference {
    /// Name.
    pub template_name: String,
    /// True for a ClusterAnalysisTemplate.
    pub cluster_scope: bool,
}

/// A value for an argument of a template, or the declaration of one with its default.
#[derive(Debug, Clone, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Argument {
    /// Name.
    pub name: String,
    /// The value, if it is written down.
    pub value: Option<String>,
    /// Where the value comes from otherwise.
    pub value_from: Option<Value>,
}

/// Ephemeral metadata of stable or canary pods.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct PodMetadata {
    /// Labels the controller adds and removes.
    pub labels: BTreeMap<String, String>,
    /// Annotations the controller adds and removes.
    pub annotations: BTreeMap<String, String>,
}

/// `spec.strategy.canary.trafficRouting`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct TrafficRouting {
    /// Istio.
    pub istio: Option<IstioRouting>,
    /// Any other router by its name; none of them is understood here.
    #[serde(flatten)]
    pub others: BTreeMap<String, Value>,
}

/// `trafficRouting.istio`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct IstioRouting {
    /// The one VirtualService.
    pub virtual_service: Option<VirtualServiceReference>,
    /// Several VirtualServices; used instead of the one.
    pub virtual_services: Vec<VirtualServiceReference>,
    /// The DestinationRule whose subsets the controller rewrites.
    pub destination_rule: Option<DestinationRuleReference>,
}

/// A VirtualService and the routes in it that the controller weighs.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct VirtualServiceReference {
    /// Name, or `name.namespace`.
    pub name: String,
    /// Names of HTTP routes; empty means the only one.
    pub routes: Vec<String>,
}

/// A DestinationRule and the two subsets in it that belong to the Rollout.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DestinationRuleReference {
    /// Name, in the Rollout's namespace.
    pub name: String,
    /// Subset of the canary pods.
    pub canary_subset_name: String,
    /// Subset of the stable pods.
    pub stable_subset_name: String,
    /// Subsets of others in the same routes that the controller leaves alone (from v1.9).
    pub additional_subset_names: Vec<String>,
}

/// One canary step.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(from = "RawStep")]
pub enum Step {
    /// Send this share of traffic, in percent, to the canary.
    SetWeight(u32),
    /// Wait for this long, or without a duration for a person.
    Pause(Option<Duration>),
    /// A step of another kind, with its content for comparison.
    Other(StepKind, Value),
}

/// Kinds of steps that the domain names but does not act on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepKind {
    /// `setCanaryScale`.
    SetCanaryScale,
    /// `analysis`.
    Analysis,
    /// `experiment`.
    Experiment,
    /// `setHeaderRoute`.
    SetHeaderRoute,
    /// `setMirrorRoute`.
    SetMirrorRoute,
    /// `plugin`.
    Plugin,
    /// A kind that this version does not know, or a pause whose duration cannot be read.
    Unknown,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawStep {
    set_weight: Option<u32>,
    pause: Option<RawPause>,
    set_canary_scale: Option<Value>,
    analysis: Option<Value>,
    experiment: Option<Value>,
    set_header_route: Option<Value>,
    set_mirror_route: Option<Value>,
    plugin: Option<Value>,
}

#[derive(Deserialize)]
struct RawPause {
    #[serde(default)]
    duration: Value,
}

impl From<RawStep> for Step {
    fn from(raw: RawStep) -> Self {
        if let Some(weight) = raw.set_weight {
            return Self::SetWeight(weight);
        }
        if let Some(pause) = raw.pause {
            let duration = match &pause.duration {
                Value::Null => return Self::Pause(None),
                Value::String(text) => parse_duration(text),
                Value::Number(seconds) => seconds.as_u64().map(Duration::from_secs),
                _ => None,
            };
            return duration.map_or(Self::Other(StepKind::Unknown, pause.duration), |duration| {
                Self::Pause(Some(duration))
            });
        }
        [
            (StepKind::SetCanaryScale, raw.set_canary_scale),
            (StepKind::Analysis, raw.analysis),
            (StepKind::Experiment, raw.experiment),
            (StepKind::SetHeaderRoute, raw.set_header_route),
            (StepKind::SetMirrorRoute, raw.set_mirror_route),
            (StepKind::Plugin, raw.plugin),
        ]
        .into_iter()
        .find_map(|(kind, content)| Some(Self::Other(kind, content?)))
        .unwrap_or(Self::Other(StepKind::Unknown, Value::Null))
    }
}

/// `status` of a Rollout.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RolloutStatus {
    /// The controller's own summary: `Healthy`, `Progressing`, `Paused`, `Degraded`.
    pub phase: String,
    /// The controller's reason for the phase.
    pub message: String,
    /// A number as text; the generation that the controller has seen.
    pub observed_generation: String,
    /// Hash of the wanted template. Never comparable between zones.
    pub current_pod_hash: String,
    /// Hash of the stable ReplicaSet.
    #[serde(rename = "stableRS")]
    pub stable_rs: String,
    /// 0-based index of the step being executed; the number of steps when done.
    pub current_step_index: Option<usize>,
    /// Why the Rollout is paused.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pause_conditions: Vec<PauseCondition>,
    /// Set by the controller together with `pauseConditions`; a person clears only the list.
    pub controller_pause: bool,
    /// The update is given up.
    pub abort: bool,
    /// When the controller noticed `abort`.
    pub aborted_at: Option<Timestamp>,
    /// All remaining steps are skipped. While it is true, `abort` is ignored.
    pub promote_full: bool,
    /// Conditions.
    pub conditions: Vec<RolloutCondition>,
    /// Canary details.
    pub canary: CanaryStatus,
    /// Pods of all ReplicaSets.
    pub replicas: u32,
    /// Pods of the wanted template.
    pub updated_replicas: u32,
    /// Ready pods of all ReplicaSets.
    pub ready_replicas: u32,
    /// Available pods of all ReplicaSets.
    pub available_replicas: u32,
}

/// `status.canary`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CanaryStatus {
    /// What the controller last wrote into the routes.
    pub weights: Option<TrafficWeights>,
    /// The analysis of the current step.
    pub current_step_analysis_run_status: Option<AnalysisRunStatus>,
    /// The analysis beside the steps.
    pub current_background_analysis_run_status: Option<AnalysisRunStatus>,
}

/// `status.canary.weights`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct TrafficWeights {
    /// Of the canary.
    pub canary: WeightDestination,
    /// Of the stable pods.
    pub stable: WeightDestination,
}

/// One side of `status.canary.weights`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WeightDestination {
    /// Share of traffic, in percent.
    pub weight: u32,
    /// Template hash.
    pub pod_template_hash: String,
}

/// Summary of an AnalysisRun in the Rollout's status.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct AnalysisRunStatus {
    /// Name of the AnalysisRun.
    pub name: String,
    /// Its phase.
    pub status: String,
    /// Its reason.
    pub message: String,
}

/// One entry of `status.pauseConditions`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PauseCondition {
    /// `CanaryPauseStep`, `InconclusiveAnalysisRun`, `InconclusiveExperiment`.
    pub reason: String,
    /// Since when.
    pub start_time: Option<Timestamp>,
}

/// One entry of `status.conditions`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RolloutCondition {
    /// `Progressing`, `Available`, `InvalidSpec`, `Healthy`, `Completed`, `Paused`.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False`, `Unknown`.
    pub status: String,
    /// One word.
    pub reason: String,
    /// A sentence.
    pub message: String,
    /// Last time anything in it changed.
    pub last_update_time: Option<Timestamp>,
    /// Last time its status changed.
    pub last_transition_time: Option<Timestamp>,
}

impl Serialize for Step {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        match self {
            Self::SetWeight(weight) => map.serialize_entry("setWeight", weight)?,
            Self::Pause(None) => map.serialize_entry("pause", &json!({}))?,
            Self::Pause(Some(duration)) => {
                map.serialize_entry("pause", &json!({"duration": duration.as_secs()}))?;
            }
            Self::Other(StepKind::Unknown, content) => {
                map.serialize_entry("pause", &json!({"duration": content}))?;
            }
            Self::Other(kind, content) => map.serialize_entry(kind.field(), content)?,
        }
        map.end()
    }
}

impl StepKind {
    /// Name of the field in the manifest.
    pub fn field(self) -> &'static str {
        match self {
            Self::SetCanaryScale => "setCanaryScale",
            Self::Analysis => "analysis",
            Self::Experiment => "experiment",
            Self::SetHeaderRoute => "setHeaderRoute",
            Self::SetMirrorRoute => "setMirrorRoute",
            Self::Plugin => "plugin",
            Self::Unknown => "unknown step",
        }
    }
}

impl Rollout {
    /// Wanted pods, with the controller's default of 1.
    pub fn replicas(&self) -> u32 {
        self.spec.replicas.unwrap_or(1)
    }

    /// The canary steps; empty for other strategies.
    pub fn steps(&self) -> &[Step] {
        self.spec.strategy.canary.as_ref().map_or(&[], |canary| &canary.steps)
    }

    /// Index of the current step, 0 before the controller has written one.
    pub fn step_index(&self) -> usize {
        self.status.current_step_index.unwrap_or(0)
    }

    /// The step being executed, or nothing when all are done.
    pub fn current_step(&self) -> Option<&Step> {
        self.steps().get(self.step_index())
    }

    /// The share of traffic, in percent, that the canary should have now.
    ///
    /// Mirrors `GetCurrentSetWeight` (`utils/replicaset/canary.go`): 0 while aborted, 100 past the
    /// last step, else the nearest `setWeight` at or before the current step, else 0.
    pub fn desired_weight(&self) -> u32 {
        if self.status.abort {
            return 0;
        }
        self.weight_at(self.step_index())
    }

    /// The share of traffic that belongs to step `index`, in percent.
    pub fn weight_at(&self, index: usize) -> u32 {
        let steps = self.steps();
        if index >= steps.len() {
            return 100;
        }
        steps[..=index]
            .iter()
            .rev()
            .find_map(|step| match step {
                Step::SetWeight(weight) => Some(*weight),
                _ => None,
            })
            .unwrap_or(0)
    }

    /// The gate: index of the first pause without a duration before any weight above 0.
    pub fn gate(&self) -> Option<usize> {
        self.steps()
            .iter()
            .take_while(|step| !matches!(step, Step::SetWeight(weight) if *weight > 0))
            .position(|step| *step == Step::Pause(None))
    }

    /// True if the wanted template is the stable one.
    ///
    /// Mirrors `IsFullyPromoted` (`utils/conditions/rollouts.go`), but is false while the
    /// controller has not written either hash.
    pub fn is_fully_promoted(&self) -> bool {
        !self.status.stable_rs.is_empty() && self.status.stable_rs == self.status.current_pod_hash
    }

    /// True if the controller has seen the current spec.
    ///
    /// Mirrors `isGenerationObserved` (`utils/rollout/rolloututil.go`): the field is text, and a
    /// text that is not a number counts as observed.
    pub fn is_observed(&self) -> bool {
        self.status
            .observed_generation
            .parse::<i64>()
            .map_or(true, |observed| observed >= self.meta.generation)
    }

    /// True while something that was written still has to be noticed by the controller: a changed
    /// spec, a pause that was ended, an abort.
    ///
    /// This ends within one reconcile, or never: controllers up to v1.9.1 may overwrite a change in
    /// their cache with what they wrote themselves a moment before (`writeBackToInformer` in
    /// `rollout/controller.go`; argo-rollouts#4694), and then wait for the next change of the object.
    pub fn awaits_controller(&self) -> bool {
        let status = &self.status;
        let pause_ended = status.controller_pause && status.pause_conditions.is_empty();
        let abort_unseen = status.abort && status.aborted_at.is_none();
        !self.is_observed() || pause_ended || abort_unseen
    }

    /// The condition of this type, if it is there.
    pub fn condition(&self, kind: &str) -> Option<&RolloutCondition> {
        self.status.conditions.iter().find(|condition| condition.kind == kind)
    }

    /// Istio's part of the traffic routing.
    pub fn istio(&self) -> Option<&IstioRouting> {
        self.spec.strategy.canary.as_ref()?.traffic_routing.as_ref()?.istio.as_ref()
    }

    /// The VirtualServices that the controller writes for this Rollout.
    pub fn virtual_services(&self) -> Vec<&VirtualServiceReference> {
        self.istio().map_or_else(Vec::new, |istio| match &istio.virtual_service {
            Some(one) => vec![one],
            None => istio.virtual_services.iter().collect(),
        })
    }

    /// Names of the routes that the controller adds and removes for this Rollout (`managedRoutes`).
    pub fn managed_routes(&self) -> impl Iterator<Item = &str> {
        let canary = self.spec.strategy.canary.as_ref();
        canary
            .and_then(|canary| {
                canary.traffic_routing.as_ref()?.others.get("managedRoutes")?.as_array()
            })
            .into_iter()
            .flatten()
            .filter_map(|route| route["name"].as_str())
    }

    /// The DestinationRule that the controller writes for this Rollout.
    pub fn destination_rule(&self) -> Option<&DestinationRuleReference> {
        self.istio()?.destination_rule.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rollout(steps: &Value) -> Rollout {
        serde_json::from_value(json!({"spec": {"strategy": {"canary": {"steps": steps}}}})).unwrap()
    }

    #[test]
    fn steps_read_in_all_spellings() {
        let steps = json!([
            {"pause": {}}, {"setWeight": 10}, {"pause": {"duration": "5m"}},
            {"pause": {"duration": 30}}, {"pause": {"duration": "300"}},
            {"setCanaryScale": {"replicas": 1}}, {"pause": {"duration": "soon"}}, {"novel": {}}
        ]);
        let minutes = |minutes: u64| Step::Pause(Some(Duration::from_secs(60 * minutes)));
        assert_eq!(
            rollout(&steps).steps(),
            [
                Step::Pause(None),
                Step::SetWeight(10),
                minutes(5),
                Step::Pause(Some(Duration::from_secs(30))),
                minutes(5),
                Step::Other(StepKind::SetCanaryScale, json!({"replicas": 1})),
                Step::Other(StepKind::Unknown, json!("soon")),
                Step::Other(StepKind::Unknown, Value::Null),
            ]
        );
    }

    #[test]
    fn the_gate_lies_before_any_weight() {
        for (steps, gate) in [
            (json!([{"pause": {}}, {"setWeight": 10}]), Some(0)),
            (json!([{"setWeight": 0}, {"pause": {}}, {"setWeight": 10}]), Some(1)),
            (json!([{"setWeight": 10}, {"pause": {}}]), None),
            (json!([{"pause": {"duration": 5}}, {"setWeight": 10}]), None),
            (json!([]), None),
        ] {
            assert_eq!(rollout(&steps).gate(), gate, "{steps}");
        }
    }

    #[test]
    fn the_desired_weight_mirrors_the_controller() {
        let mut rollout = rollout(&json!([{"pause": {}}, {"setWeight": 10}, {"pause": {}}]));
        for (index, weight) in [(0, 0), (1, 10), (2, 10), (3, 100)] {
            rollout.status.current_step_index = Some(index);
            assert_eq!(rollout.desired_weight(), weight, "step {index}");
        }
        rollout.status.abort = true;
        assert_eq!(rollout.desired_weight(), 0);
    }

    #[test]
    fn an_unwritten_status_is_not_a_finished_promotion() {
        let rollout = rollout(&json!([]));
        assert!(!rollout.is_fully_promoted());
        assert!(rollout.is_observed(), "empty text counts as observed, as in the controller");
    }
}
