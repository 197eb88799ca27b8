//! Analysis and alerts on the labels that Istio's metrics have. No metric names a zone; but each zone
//! has a Rollout of its own, and Istio names that as the workload.

use serde_json::{Value, json};

use super::{Spec, SpecZone};

/// Least share of good answers, below which an analysis fails.
const GOOD: &str = "0.95";

/// Adds an AnalysisTemplate, to which every Rollout refers, and a PrometheusRule. `address` is the
/// URL of Prometheus as the Rollouts controller reaches it.
pub fn with_metrics(spec: &Spec, mut objects: Vec<Value>, address: &str) -> Vec<Value> {
    let rollouts = |object: &&mut Value| object["kind"] == "Rollout";
    for (rollout, zone) in objects.iter_mut().filter(rollouts).zip(&spec.zones) {
        rollout["spec"]["strategy"]["canary"]["analysis"] = spec.analysis(zone);
    }
    let first = objects.iter().position(|object| object["kind"] == "Rollout").unwrap_or(0);
    objects.insert(first, spec.analysis_template(address));
    objects.push(spec.alerts());
    objects
}

impl Spec {
    fn template_name(&self) -> String {
        format!("{}-success-rate", self.name)
    }

    /// It starts behind the first weight: before, there is nothing to measure, and a gate may be shut
    /// for days.
    fn analysis(&self, zone: &SpecZone) -> Value {
        json!({
            "startingStep": usize::from(self.gate) + 1,
            "templates": [{"templateName": self.template_name()}],
            "args": [{"name": "rollout", "value": self.rollout_name(zone)}],
        })
    }

    /// An empty answer, and one that is no number, are neither good nor bad: the run becomes
    /// inconclusive, and the Rollout waits for a person instead of giving the update up.
    fn analysis_template(&self, address: &str) -> Value {
        // Before Istio 1.22 the workload is the ReplicaSet.
        let of_zone = r#"destination_workload=~"{{args.rollout}}(-[0-9a-z]+)?""#;
        let rate = |more: &str| format!("sum(rate({}[2m]))", self.requests(&[of_zone, more]));
        let known = "len(result) > 0 && !isNaN(result[0])";
        self.object(
            "argoproj.io/v1alpha1",
            "AnalysisTemplate",
            &self.template_name(),
            &json!({
                "args": [{"name": "rollout"}],
                "metrics": [{
                    "name": "success-rate",
                    "initialDelay": "2m",
                    "interval": "1m",
                    "successCondition": format!("{known} && result[0] >= {GOOD}"),
                    "failureCondition": format!("{known} && result[0] < {GOOD}"),
                    "failureLimit": 2,
                    "inconclusiveLimit": 5,
                    "provider": {"prometheus": {
                        "address": address,
                        // A series of errors is there only after the first one.
                        "query": format!(
                            "1 - ({} or vector(0)) / {}",
                            rate(r#"response_code=~"5..""#),
                            rate("")
                        ),
                    }},
                }],
            }),
        )
    }

    fn alerts(&self) -> Value {
        let names: Vec<String> = self.zones.iter().map(|zone| self.rollout_name(zone)).collect();
        let of_zones = format!(r#"destination_workload=~"({})(-[0-9a-z]+)?""#, names.join("|"));
        let rate = |more: &str| {
            let requests = self.requests(&[&of_zones, more]);
            format!("sum by (destination_workload) (rate({requests}[5m]))")
        };
        let errors = format!(
            "{} / {all} > 0.05 and {all} > 0.1",
            rate(r#"response_code=~"5..""#),
            all = rate("")
        );
        let unserved = format!(
            "sum(rate({}[5m])) > 0",
            self.requests(&[r#"response_flags=~".*(UH|NC|NR).*""#])
        );
        let blind = format!("absent({})", self.requests(&[]));
        let alert = |name: &str, after: &str, expression: String, summary: &str| {
            json!({
                "alert": name,
                "expr": expression,
                "for": after,
                "labels": {"service": self.name},
                "annotations": {"summary": summary},
            })
        };
        let rules = [
            alert(
                "ZoneErrorRate",
                "2m",
                errors,
                "More than 5 % of the requests to {{ $labels.destination_workload }} fail",
            ),
            alert(
                "ZoneUnserved",
                "1m",
                unserved,
                "Clients get errors because no pod or no subset is left for them",
            ),
            alert(
                "ZoneMetricsMissing",
                "10m",
                blind,
                "Prometheus has no requests to this service: the other alerts are blind",
            ),
        ];
        self.object(
            "monitoring.coreos.com/v1",
            "PrometheusRule",
            &self.name,
            &json!({"groups": [{"name": format!("{}-zones", self.name), "rules": rules}]}),
        )
    }

    /// The requests to this service as their callers saw them: only those know of a request that no
    /// pod has answered.
    fn requests(&self, more: &[&str]) -> String {
        let host = format!(r#"destination_service="{}""#, self.host());
        let labels = [r#"reporter="source""#, host.as_str()];
        let labels = labels.iter().chain(more).copied().filter(|label| !label.is_empty());
        format!("istio_requests_total{{{}}}", labels.collect::<Vec<_>>().join(","))
    }
}
