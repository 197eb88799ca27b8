//! The words for sending a zone's clients elsewhere, and back.

use zone_rollout_core::diversion::{Diverted, Restoration, Transfer};
use zone_rollout_core::gitops::GitOpsOwner;
use zone_rollout_core::group::{Group, ZoneId};

use super::Flags;

/// Where clients are sent: `to zone b`.
pub fn whither(diverted: &Diverted) -> String {
    match &diverted.to {
        Some(to) if diverted.complete => format!("to zone {to}"),
        Some(to) => format!("in part to zone {to}"),
        None => "elsewhere".to_owned(),
    }
}

/// The command that brings a zone's clients back.
pub fn restore(group: &Group, zone: &ZoneId, flags: &Flags) -> String {
    format!("kubectl zone-rollout restore {}/{zone}{}", group.name, flags.0)
}

/// What sending a zone's clients to another means for its pods, and for the clients.
pub fn meaning(zone: &ZoneId, transfer: &Transfer) -> Vec<String> {
    let to = &transfer.to;
    let load = transfer.factor.map(|factor| {
        format!("zone {to}: each Ready pod will carry {factor:.1} times its normal load")
    });
    let shares = transfer.exposure.as_ref().map(|(before, after)| (before.now, after.now));
    let exposure = match (&transfer.other_version, shares) {
        (Some(version), Some((now, then))) => Some(format!(
            "clients on {version}: {} now, {} then",
            percent(now.new),
            percent(then.new)
        )),
        (Some(version), None) => Some(format!("the clients of zone {zone} will be on {version}")),
        (None, _) => None,
    };
    let errors = shares.filter(|(now, then)| now.unserved > 0.0 || then.unserved > 0.0);
    let errors = errors.map(|(now, then)| {
        format!(
            "clients that nobody serves: {} now, {} then",
            percent(now.unserved),
            percent(then.unserved)
        )
    });
    [load, exposure, errors].into_iter().flatten().collect()
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// The clients of a zone are sent to another; seen.
pub fn evacuated(zone: &ZoneId, to: &ZoneId) -> String {
    format!("zone {zone}: the VirtualService sends its clients to the stable pods of zone {to}")
}

/// The clients of a zone are back; seen.
pub fn restored(zone: &ZoneId, restoration: &Restoration) -> String {
    let Restoration { ready, wanted, .. } = restoration;
    format!(
        "zone {zone}: the VirtualService sends its clients to zone {zone} again; {ready} of {wanted} \
         stable pods are Ready there"
    )
}

/// How to keep a GitOps tool from putting a route back.
pub fn stop_self_heal(owner: &GitOpsOwner) -> String {
    let (_, value) = owner.mark.split_once(": ").unwrap_or(("", ""));
    let name = value.split(':').next().filter(|name| !name.is_empty()).unwrap_or("NAME");
    match owner.tool {
        "Flux" => format!(
            "flux suspend kustomization {name} (of a Helm release: flux suspend helmrelease {name})"
        ),
        _ => format!(
            "kubectl patch application {name} -n argocd --type merge -p \
             '{{\"spec\":{{\"syncPolicy\":{{\"automated\":null}}}}}}'"
        ),
    }
}

/// Somebody has put the route back.
pub fn put_back(zone: &ZoneId, by: Option<&str>, owner: &GitOpsOwner) -> String {
    let by = by.unwrap_or("somebody");
    format!("zone {zone}: the route was put back by `{by}`; {owner} owns the VirtualService")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn self_heal_is_stopped_by_name_where_that_is_known() {
        let told = |tool, mark: &str| stop_self_heal(&GitOpsOwner { tool, mark: mark.to_owned() });
        let argo = "argocd.argoproj.io/tracking-id: shop:networking.istio.io/VirtualService:a/b";
        assert!(told("Argo CD", argo).starts_with("kubectl patch application shop -n argocd "));
        let by_manager = told("Argo CD", "field manager argocd-controller");
        assert!(by_manager.starts_with("kubectl patch application NAME -n argocd "));
        let flux = told("Flux", "kustomize.toolkit.fluxcd.io/name: shop");
        assert!(flux.starts_with("flux suspend kustomization shop "));
    }
}
