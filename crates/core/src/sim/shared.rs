//! A layout that does not hold, as guides publish it: one DestinationRule for all zones.

use serde_json::{Value, json};

use crate::layout::{Spec, zone_local};

/// [`zone_local`] with all subsets in one DestinationRule. Each Rollout drops the subsets that are not
/// its own (`UpdateHash` in `rollout/trafficrouting/istio/istio.go`), so that none is left.
pub fn shared_rule(spec: &Spec) -> Vec<Value> {
    let mut manifests = zone_local(spec);
    let is_rule = |manifest: &Value| manifest["kind"] == "DestinationRule";
    let subsets: Vec<Value> = manifests
        .iter()
        .filter(|manifest| is_rule(manifest))
        .filter_map(|rule| rule["spec"]["subsets"].as_array())
        .flatten()
        .cloned()
        .collect();
    manifests.retain(|manifest| !is_rule(manifest) || manifest["metadata"]["name"] == spec.name);
    for manifest in &mut manifests {
        if is_rule(manifest) {
            manifest["spec"]["subsets"] = json!(subsets);
        } else if manifest["kind"] == "Rollout" {
            let routing = &mut manifest["spec"]["strategy"]["canary"]["trafficRouting"];
            routing["istio"]["destinationRule"]["name"] = json!(spec.name);
        }
    }
    manifests
}
