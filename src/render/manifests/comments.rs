//! What each manifest is for, in words.

use serde_json::Value;
use zone_rollout_core::layout::{Layout, Spec, SpecZone};

/// About the patch for Argo CD.
pub(super) const ARGO_CD: &str = "\
For the Argo CD Application, which is no part of the layout:
  kubectl patch application NAME -n argocd --type merge --patch-file argocd-application.patch
Argo CD then leaves alone what the Rollouts controller writes (weights, hashes) and an evacuation.
Without it, self-heal takes a canary's weight back in the middle of a release.
A merge patch replaces lists: add what the Application ignores already.";

/// The comment above an object, without comment signs.
pub(super) fn about(layout: Layout, spec: &Spec, object: &Value) -> String {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let zone = spec.zones.iter().find(|zone| is_of_zone(spec, zone, name));
    let annotations = &object["metadata"]["annotations"];
    let mut text = match (object["kind"].as_str().unwrap_or_default(), zone) {
        ("Service", None) => service(layout),
        ("Service", Some(zone)) => zone_service(name, zone),
        ("DestinationRule", None) => base_rule(layout, spec),
        ("DestinationRule", Some(zone)) => zone_rule(layout, name, zone),
        ("VirtualService", _) => virtual_service(layout),
        ("Rollout", Some(zone)) => rollout(layout, zone),
        ("PodDisruptionBudget", Some(zone)) => {
            format!("Drains of nodes take the pods of zone {} one at a time.", zone.short)
        }
        ("AnalysisTemplate", _) => ANALYSIS.to_owned(),
        ("PrometheusRule", _) => ALERTS.to_owned(),
        _ => String::new(),
    };
    if !annotations["argocd.argoproj.io/sync-wave"].is_null() {
        text.push_str("\nThe sync wave lets Argo CD apply the base rule first.");
    }
    if !annotations["kustomize.toolkit.fluxcd.io/ssa"].is_null() {
        text.push_str(
            "\nFlux creates it and then leaves it to the Rollouts controller (IfNotPresent): a later \
             change in Git\nhas to be applied by hand.",
        );
    }
    text
}

fn is_of_zone(spec: &Spec, zone: &SpecZone, name: &str) -> bool {
    let rest = name.strip_prefix(&spec.name);
    rest.and_then(|rest| rest.rsplit_once('-')).is_some_and(|(_, short)| short == zone.short)
}

fn service(layout: Layout) -> String {
    let who = match layout {
        Layout::Ring | Layout::ZoneLocal => "the VirtualService decides who answers.",
        Layout::Plain => "Istio prefers those in the client's zone.",
    };
    format!("What clients call. It selects the pods of all zones; {who}")
}

fn zone_service(name: &str, zone: &SpecZone) -> String {
    let role = if name.contains("-stable-") { "stable" } else { "canary" };
    format!(
        "The {role} pods of zone {}, to call them directly, past all routes.\n\
         No Rollout refers to it: with `stableService` and `canaryService`, an abort while a stable pod \
         is not Ready\nkeeps the Rollouts controller writing Services without rest.",
        zone.short
    )
}

fn base_rule(layout: Layout, spec: &Spec) -> String {
    let Some(first) = spec.zones.first().map(|zone| &zone.short) else { return String::new() };
    let ejection = "outlierDetection takes pods out that fail; without it Istio fails over nowhere.\n\
                    No Rollout refers to this rule, so the Rollouts controller does not rewrite it.";
    match layout {
        Layout::Ring => format!(
            "The base rule. It has to be the oldest rule of its host, so apply it first: of two \
             definitions of a\nsubset Istio takes the older one, and those of the zones' rules have no \
             failover.\nSubset stable-{first} is where the clients of zone {first} go: own zone, then \
             the next, then all others\n(failoverPriority). Its members are the stable pods of all \
             zones, by the label that the Rollouts controller\nsets. stable-any is for clients in none \
             of the zones.\n{ejection}"
        ),
        Layout::ZoneLocal => {
            format!(
                "The policy for all subsets; apply it first, since the oldest one counts.\n{ejection}"
            )
        }
        Layout::Plain => {
            format!("The policy for all pods: own zone first, then all others.\n{ejection}")
        }
    }
}

fn zone_rule(layout: Layout, name: &str, zone: &SpecZone) -> String {
    let short = &zone.short;
    let shadowed = match layout {
        Layout::Ring => format!(
            "\nstable-{short} is here only because a Rollout has to name one: the base rule's counts."
        ),
        Layout::ZoneLocal | Layout::Plain => String::new(),
    };
    format!(
        "The subsets of Rollout {name}, which adds the hash of its pods to them. One rule for each \
         Rollout: the\nRollouts controller drops every subset of a rule that is not its own.{shadowed}"
    )
}

fn virtual_service(layout: Layout) -> String {
    let others = match layout {
        Layout::Ring => "the stable pods of all zones",
        Layout::ZoneLocal | Layout::Plain => "the stable pods of each zone in turn",
    };
    format!(
        "A route for the clients of each zone; Istio knows the zone of a client from its node. Each \
         Rollout writes\nthe weights of its own route and of no other. catch-all is for clients in none \
         of the zones: without it they\nwould get canary pods, too. It leads to {others}."
    )
}

fn rollout(layout: Layout, zone: &SpecZone) -> String {
    let SpecZone { short, topology } = zone;
    let ring = match layout {
        Layout::Ring => {
            "\nThe ring labels of its pods say whose first and whose second choice they are."
        }
        Layout::ZoneLocal | Layout::Plain => "",
    };
    let weight = match layout {
        Layout::Ring | Layout::ZoneLocal => {
            "A weight is a share of the requests of this zone's clients."
        }
        Layout::Plain => {
            "Without traffic routing a weight is a share of the pods: 10 % of 3 pods are 1 pod, a third."
        }
    };
    format!(
        "Zone {short}: pods on nodes in {topology} only (nodeAffinity), spread over them.\n\
         The first step `pause: {{}}` is the gate: every zone waits there until its turn comes.\n\
         {weight}\n\
         stableMetadata and canaryMetadata label the pods by their role, and take the label away at \
         promotion.{ring}"
    )
}

const ANALYSIS: &str = "\
Runs from the first weight to the promotion, for one zone's Rollout: no metric of Istio has a zone, but each
zone is a workload of its own. It counts stable and canary pods together, as their callers saw them.
No data is neither good nor bad: the Rollout then waits for a person (inconclusive) and is not aborted.";

const ALERTS: &str = "\
Alerts on labels that Istio's metrics have. The last one says when there is nothing to measure.";
