//! A namespace in a few lines, for the message of a test that waited in vain.

use serde_json::Value;

use crate::kinds::{DESTINATION_RULE, Kind, POD, ROLLOUT, VIRTUAL_SERVICE};
use crate::namespace::Namespace;

/// What tells why something did not happen; never an error itself.
pub(crate) async fn of(namespace: &Namespace) -> String {
    let parts = [
        lines(namespace, ROLLOUT, rollout).await,
        lines(namespace, POD, pod).await,
        lines(namespace, VIRTUAL_SERVICE, virtual_service).await,
        lines(namespace, DESTINATION_RULE, destination_rule).await,
    ];
    format!("namespace {}:{}", namespace.name(), parts.concat())
}

async fn lines(namespace: &Namespace, kind: Kind, line: fn(&Value) -> String) -> String {
    let objects = match namespace.list(kind).await {
        Ok(objects) => objects,
        Err(error) => return format!("\n  {error:#}"),
    };
    let lines = objects.iter().map(|object| {
        let name = word(&object["metadata"]["name"]);
        format!("\n  {} {name}: {}", kind.name(), line(object))
    });
    lines.collect::<Vec<_>>().concat()
}

fn rollout(object: &Value) -> String {
    let status = &object["status"];
    format!(
        "{} step {} stable {} current {} ready {}/{}{}{}",
        word(&status["phase"]),
        status["currentStepIndex"],
        word(&status["stableRS"]),
        word(&status["currentPodHash"]),
        status["readyReplicas"],
        object["spec"]["replicas"],
        if status["abort"] == true { " aborted" } else { "" },
        status["message"].as_str().map(|message| format!(" ({message})")).unwrap_or_default(),
    )
}

fn pod(object: &Value) -> String {
    let status = &object["status"];
    let conditions = status["conditions"].as_array();
    let ready = conditions.and_then(|all| all.iter().find(|it| it["type"] == "Ready"));
    let container = &status["containerStatuses"][0];
    let waiting = container["state"]["waiting"]["reason"].as_str();
    format!(
        "{} ready {} restarts {} on {} image {}{}{}",
        word(&status["phase"]),
        ready.map_or("?", |condition| word(&condition["status"])),
        container["restartCount"],
        word(&object["spec"]["nodeName"]),
        word(&object["spec"]["containers"][0]["image"]),
        waiting.map(|reason| format!(" waiting {reason}")).unwrap_or_default(),
        if object["metadata"]["deletionTimestamp"].is_null() { "" } else { " terminating" },
    )
}

fn virtual_service(object: &Value) -> String {
    let routes = object["spec"]["http"].as_array().into_iter().flatten();
    let route = |route: &Value| {
        let to = route["route"].as_array().into_iter().flatten();
        let shares: Vec<String> = to
            .map(|to| format!("{} {}", word(&to["destination"]["subset"]), to["weight"]))
            .collect();
        format!("{} [{}]", word(&route["name"]), shares.join(", "))
    };
    routes.map(route).collect::<Vec<_>>().join("; ")
}

fn destination_rule(object: &Value) -> String {
    let subsets = object["spec"]["subsets"].as_array().into_iter().flatten();
    let subset = |subset: &Value| format!("{} {}", word(&subset["name"]), subset["labels"]);
    subsets.map(subset).collect::<Vec<_>>().join("; ")
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or("?")
}
