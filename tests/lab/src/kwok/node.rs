//! Nodes: Ready as soon as they are registered or back in contact. KWOK sends their heartbeats.

use serde_json::{Value, json};

use super::{absent, stage};

pub(super) fn stages() -> Vec<Value> {
    let not_ready =
        absent(r#".status.conditions[] | select(.type == "Ready" and .status == "True")"#);
    vec![stage("Node", "node-ready", &[not_ready], 0, &json!({"statusTemplate": STATUS}))]
}

const STATUS: &str = r#"
{{ $now := Now }}
conditions:
{{ range NodeConditions }}
- type: {{ .type }}
  status: {{ .status | Quote }}
  reason: {{ .reason }}
  message: {{ .message }}
  lastHeartbeatTime: {{ $now }}
  lastTransitionTime: {{ $now }}
{{ end }}
addresses:
- type: InternalIP
  address: {{ NodeIP }}
- type: Hostname
  address: {{ NodeName }}
daemonEndpoints:
  kubeletEndpoint:
    Port: {{ NodePort }}
nodeInfo:
  architecture: amd64
  bootID: ""
  containerRuntimeVersion: containerd://2.1.4
  kernelVersion: 6.12.0
  kubeProxyVersion: ""
  kubeletVersion: v1.34.4
  machineID: ""
  operatingSystem: linux
  osImage: {{ printf "kwok %s" Version }}
  systemUUID: ""
"#;
