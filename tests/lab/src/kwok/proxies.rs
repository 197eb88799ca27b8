//! `kubectl port-forward` and `kubectl exec` to the clients' pods reach real local programs: the
//! Envoy of the zone, and any command on this machine.

use serde_json::{Value, json};

use crate::boot::clients::NAMESPACE;
use crate::zones::{ZONES, Zone};

pub(super) fn all() -> impl Iterator<Item = Value> {
    ZONES.into_iter().flat_map(|zone| [port_forward(zone), exec(zone)])
}

fn port_forward(zone: Zone) -> Value {
    let target = json!({"address": "127.0.0.1", "port": zone.admin_port()});
    object(zone, "PortForward", &json!({"forwards": [{"ports": [15_000], "target": target}]}))
}

fn exec(zone: Zone) -> Value {
    object(zone, "Exec", &json!({"execs": [{"containers": ["istio-proxy"], "local": {}}]}))
}

fn object(zone: Zone, kind: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": kind,
        "metadata": {"name": zone.client_pod(), "namespace": NAMESPACE},
        "spec": spec,
    })
}
