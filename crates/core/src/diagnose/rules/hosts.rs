//! Hosts of rules and destinations that name no Service, and versions of the API.

use serde_json::json;

use crate::diagnose::command;
use crate::diagnose::context::{Context, in_namespace};
use crate::diagnose::finding::{Effect, Found, Severity};
use crate::diagnose::rule::{Check, Rule};
use crate::diagnose::version::Version;
use crate::scene::Key;
use crate::traffic::fully_qualified;

const DOMAIN: &str = ".svc.cluster.local";

pub(super) const HOST_UNKNOWN: Rule = Rule {
    code: "ZRI005",
    title: "A rule's host matches no Service",
    check: Check::Rules,
    effect: Effect::WrongPlace,
    meaning: "Nothing in the DestinationRule has any effect: no proxy ever uses it.",
    cause: "Istio compares the host with the full names of Services. Only a name without a dot is \
            completed, and with the namespace of the rule, not of the Service. Any host is \
            accepted.",
    fix: "Write SERVICE.NAMESPACE.svc.cluster.local.",
    verify: "istioctl proxy-config clusters POD --fqdn HOST",
    example: include_str!("../examples/ZRI005.diff"),
    find: host_unknown,
};

fn host_unknown(context: &Context<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    for (key, rule) in context.scene.rules.iter() {
        if let Some(Miss { meant }) = misses(context, &rule.spec.host, &key.namespace) {
            let host = &rule.spec.host;
            let (advice, wanted) = match &meant {
                Some(meant) => (format!("; Service {meant} is there"), full_name(meant)),
                None => (String::new(), "SERVICE.NAMESPACE.svc.cluster.local".to_owned()),
            };
            found.push(
                Found::new(
                    Severity::Error,
                    format!(
                        "host {host} of DestinationRule {key} matches no Service{advice}: nothing \
                         in the rule has an effect"
                    ),
                )
                .at("DestinationRule", key, "spec.host", host)
                .fix(command::set("DestinationRule", key, "spec.host", json!(wanted)))
                .verify(format!("istioctl proxy-config clusters POD --fqdn {wanted}")),
            );
        }
    }
    found
}

fn full_name(service: &Key) -> String {
    fully_qualified(&service.name, &service.namespace)
}

/// A host that names no Service though it means one.
struct Miss {
    /// The Service that it may mean.
    meant: Option<Key>,
}

fn misses(context: &Context<'_>, host: &str, namespace: &str) -> Option<Miss> {
    if host.contains('*') {
        return None;
    }
    let full = fully_qualified(host, namespace);
    let services = &context.scene.services;
    let called =
        |name: &str| services.iter().map(|(key, _)| key).find(|key| key.name == name).cloned();
    match full.strip_suffix(DOMAIN).map(|rest| rest.split('.').collect::<Vec<_>>()) {
        Some(parts) if parts.len() != 2 => Some(Miss { meant: called(parts[0]) }),
        Some(parts) => {
            let key = Key::new(parts[1], parts[0]);
            if services.get(&key).is_some() {
                return None;
            }
            let meant = called(parts[0]);
            let missing = meant.is_some() || context.holds(&context.given.services, parts[1]);
            missing.then_some(Miss { meant })
        }
        None => {
            // `name.namespace` and `name.namespace.svc` look like Services, and are none.
            let short = full.strip_suffix(".svc").unwrap_or(&full);
            let (name, namespace) = short.split_once('.')?;
            let key = Key::new(namespace, name);
            services.get(&key).map(|_| Miss { meant: Some(key) })
        }
    }
}

pub(super) const DESTINATION_UNKNOWN: Rule = Rule {
    code: "ZRI007",
    title: "A route leads to a host that does not exist",
    check: Check::Routes,
    effect: Effect::RequestsFail,
    meaning: "The share of requests that is sent there is answered 503 (NC, no cluster).",
    cause: "The destination names no Service. A name without a dot is completed with the \
            namespace of the VirtualService, not of the caller.",
    fix: "Create the Service, or write SERVICE.NAMESPACE.svc.cluster.local.",
    verify: "kubectl get service NAME",
    example: include_str!("../examples/ZRI007.diff"),
    find: destination_unknown,
};

fn destination_unknown(context: &Context<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    for (key, virtual_service) in context.scene.routes.iter() {
        for (index, route) in virtual_service.spec.http.iter().enumerate() {
            let alone = route.destinations.len() == 1;
            for to in &route.destinations {
                let host = &to.destination.host;
                let missing = misses(context, host, &key.namespace);
                if let Some(Miss { meant }) =
                    missing.filter(|_| !is_own_service(context, key, host))
                {
                    let used = alone || to.weight.unwrap_or(0.0) > 0.0;
                    let severity = if used { Severity::Critical } else { Severity::Error };
                    let advice = meant
                        .map_or_else(String::new, |meant| format!("; Service {meant} is there"));
                    found.push(
                        Found::new(
                            severity,
                            format!(
                                "VirtualService {key} sends requests to {host}, which is no \
                                 Service{advice}"
                            ),
                        )
                        .at("VirtualService", key, format!("spec.http[{index}].route"), host)
                        .fix(command::edit("VirtualService", key))
                        .verify(format!("kubectl get services{}", in_namespace(key))),
                    );
                }
            }
        }
    }
    found
}

/// A stable or canary Service that is missing is for the rule about Rollouts to tell.
fn is_own_service(context: &Context<'_>, key: &Key, host: &str) -> bool {
    let name = host.split('.').next().unwrap_or(host);
    context.rollouts().any(|rollout| {
        let canary = rollout.spec.strategy.canary.as_ref();
        let own = canary.map(|canary| [&canary.canary_service, &canary.stable_service]);
        rollout.meta.namespace == key.namespace
            && own.into_iter().flatten().flatten().any(|service| service == name)
    })
}

pub(super) const SERVED_VERSION: Rule = Rule {
    code: "ZRI053",
    title: "The version of the API is not served",
    check: Check::Rules,
    effect: Effect::Release,
    meaning: "The object cannot be applied.",
    cause: "`networking.istio.io/v1` is served from Istio 1.22.",
    fix: "Write `apiVersion: networking.istio.io/v1beta1`.",
    verify: "kubectl api-versions | grep networking.istio.io",
    example: include_str!("../examples/ZRI053.diff"),
    find: served_version,
};

fn served_version(context: &Context<'_>) -> Vec<Found> {
    let Some(istio) = context.versions.istio.filter(|istio| *istio < Version::new(1, 22)) else {
        return Vec::new();
    };
    let routes = context.scene.routes.iter();
    let routes = routes.map(|(key, object)| ("VirtualService", key, &object.api_version));
    let rules = context.scene.rules.iter();
    let rules = rules.map(|(key, object)| ("DestinationRule", key, &object.api_version));
    let unserved =
        routes.chain(rules).filter(|(_, _, version)| *version == "networking.istio.io/v1");
    unserved
        .map(|(kind, key, version)| {
            Found::new(
                Severity::Error,
                format!("{kind} {key} is written in {version}, which Istio {istio} does not serve"),
            )
            .at(kind, key, "apiVersion", version)
            .fix("write `apiVersion: networking.istio.io/v1beta1`")
            .verify("kubectl api-versions | grep networking.istio.io")
        })
        .collect()
}
