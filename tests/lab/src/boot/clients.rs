//! The clients of the mesh: one pod in each zone, whose sidecar is a real Envoy.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::object;
use crate::paths::RunDir;
use crate::wait;
use crate::zones::{REGION, ZONES, Zone};

/// Namespace of the clients' pods.
pub(crate) const NAMESPACE: &str = "clients";

const WITHIN: Duration = Duration::from_mins(1);

/// Plain text everywhere: the Envoys here have no certificate agent beside them.
fn plain_text() -> Value {
    json!({
        "apiVersion": "security.istio.io/v1",
        "kind": "PeerAuthentication",
        "metadata": {"name": "default", "namespace": "istio-system"},
        "spec": {"mtls": {"mode": "DISABLE"}},
    })
}

/// istiod opens a sidecar's port only where some service has that port; this one always has.
fn placeholder() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "placeholder", "namespace": NAMESPACE},
        "spec": {"ports": [{"name": "http", "port": 8080}]},
    })
}

/// A listener for requests to the services of all namespaces, without rules of iptables.
fn sidecar(zone: Zone) -> Value {
    json!({
        "apiVersion": "networking.istio.io/v1",
        "kind": "Sidecar",
        "metadata": {"name": zone.client_pod(), "namespace": NAMESPACE},
        "spec": {
            "workloadSelector": {"labels": {"app": zone.client_pod()}},
            "egress": [{
                "bind": zone.client_address(),
                "port": {"number": 8080, "protocol": "HTTP", "name": "http"},
                "captureMode": "NONE",
                "hosts": ["*/*"],
            }],
        },
    })
}

/// The pod that istiod and KWOK know the sidecar by. It stays when its zone is lost.
fn pod(zone: Zone) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": zone.client_pod(),
            "namespace": NAMESPACE,
            "labels": {"app": zone.client_pod()},
        },
        "spec": {
            "nodeSelector": {"topology.kubernetes.io/zone": zone.topology},
            "tolerations": [{"operator": "Exists"}],
            "containers": [{"name": "istio-proxy", "image": "proxyv2"}],
        },
    })
}

pub(super) async fn apply(client: &Client) -> Result<()> {
    let create = async |object: Value| {
        // The namespace's service account takes a moment to appear.
        wait::until("the clients' objects to be accepted", WITHIN, async || {
            object::apply(client, &object, object::MANAGER).await.map(Some)
        })
        .await
    };
    create(plain_text()).await?;
    create(placeholder()).await?;
    for zone in ZONES {
        create(sidecar(zone)).await?;
        create(pod(zone)).await?;
    }
    Ok(())
}

/// Writes the file that points an Envoy to istiod in the name of the zone's client.
pub(super) async fn write_bootstrap(run: &RunDir, client: &Client, zone: Zone) -> Result<()> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), NAMESPACE);
    let name = zone.client_pod();
    let (address, node) = wait::until(format!("pod `{name}` to run"), WITHIN, async || {
        let pod = pods.get(&name).await?;
        let address = pod.status.and_then(|status| status.pod_ip);
        Ok(address.zip(pod.spec.and_then(|spec| spec.node_name)))
    })
    .await?;
    let path = run.config(&format!("envoy-{}.json", zone.short));
    fs::write(&path, serde_json::to_vec_pretty(&bootstrap(zone, &address, &node))?)
        .with_context(|| format!("cannot write {}", path.display()))
}

fn bootstrap(zone: Zone, address: &str, node: &str) -> Value {
    let name = zone.client_pod();
    json!({
        "node": {
            "id": format!("sidecar~{address}~{name}.{NAMESPACE}~{NAMESPACE}.svc.cluster.local"),
            "cluster": format!("{name}.{NAMESPACE}"),
            // For the time in which the zone's nodes are gone.
            "locality": {"region": REGION, "zone": zone.topology},
            "metadata": {
                "NAMESPACE": NAMESPACE,
                "LABELS": {"app": name},
                "CLUSTER_ID": "Kubernetes",
                "ISTIO_VERSION": "1.31.0",
                "INSTANCE_IPS": address,
                "WORKLOAD_NAME": name,
                "MESH_ID": "cluster.local",
                "NODE_NAME": node,
                "PROXY_CONFIG": {},
            },
        },
        "admin": {"address": socket_address(zone.admin_port())},
        "dynamic_resources": {
            "lds_config": from_istiod(),
            "cds_config": from_istiod(),
            "ads_config": {
                "api_type": "GRPC",
                "set_node_on_first_message_only": true,
                "transport_api_version": "V3",
                "grpc_services": [{"envoy_grpc": {"cluster_name": "xds-grpc"}}],
            },
        },
        "static_resources": {"clusters": [istiod_cluster()]},
        "layered_runtime": {"layers": [{
            "name": "static",
            "static_layer": {"overload.global_downstream_max_connections": 50_000},
        }]},
    })
}

fn from_istiod() -> Value {
    json!({"ads": {}, "initial_fetch_timeout": "0s", "resource_api_version": "V3"})
}

fn istiod_cluster() -> Value {
    let options = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions";
    json!({
        "name": "xds-grpc",
        "type": "STATIC",
        "connect_timeout": "1s",
        "typed_extension_protocol_options": {options: {
            "@type": format!("type.googleapis.com/{options}"),
            "explicit_http_config": {"http2_protocol_options": {}},
        }},
        "load_assignment": {"cluster_name": "xds-grpc", "endpoints": [{"lb_endpoints": [
            {"endpoint": {"address": socket_address(15_010)}},
        ]}]},
    })
}

fn socket_address(port: u16) -> Value {
    json!({"socket_address": {"address": "127.0.0.1", "port_value": port}})
}
