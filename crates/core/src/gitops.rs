//! Who else owns an object: Argo CD and Flux put a changed spec back to what Git says.

use std::fmt;

use crate::scene::Meta;

/// Annotation by which Argo CD knows its objects.
const ARGO_TRACKING: &str = "argocd.argoproj.io/tracking-id";
/// Labels by which Flux knows its objects.
const FLUX_LABELS: [&str; 2] = ["kustomize.toolkit.fluxcd.io/name", "helm.toolkit.fluxcd.io/name"];
/// Field managers of Argo CD's and Flux's controllers.
const MANAGERS: [(&str, &str); 3] = [
    ("argocd-controller", "Argo CD"),
    ("kustomize-controller", "Flux"),
    ("helm-controller", "Flux"),
];

/// A GitOps tool that owns an object, and how it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitOpsOwner {
    /// `Argo CD` or `Flux`.
    pub tool: &'static str,
    /// The annotation, label or field manager that shows it.
    pub mark: String,
}

impl fmt::Display for GitOpsOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.tool, self.mark)
    }
}

/// The GitOps tool that owns an object, if its marks say so.
///
/// The label `app.kubernetes.io/instance` alone is no mark: Helm and people use it as well.
pub fn owner(meta: &Meta) -> Option<GitOpsOwner> {
    if let Some(value) = meta.annotations.get(ARGO_TRACKING) {
        return Some(GitOpsOwner { tool: "Argo CD", mark: format!("{ARGO_TRACKING}: {value}") });
    }
    if let Some(label) = FLUX_LABELS.into_iter().find(|label| meta.labels.contains_key(*label)) {
        return Some(GitOpsOwner {
            tool: "Flux",
            mark: format!("{label}: {}", meta.labels[label]),
        });
    }
    MANAGERS.into_iter().find_map(|(manager, tool)| {
        let manages = |entry: &crate::scene::ManagedFields| {
            entry.manager == manager && entry.subresource.is_empty()
        };
        meta.managed_fields
            .iter()
            .any(manages)
            .then(|| GitOpsOwner { tool, mark: format!("field manager {manager}") })
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn told(meta: Value) -> Option<String> {
        let meta: Meta = serde_json::from_value(meta).unwrap();
        owner(&meta).map(|owner| owner.to_string())
    }

    #[test]
    fn marks_of_argo_cd_and_flux_are_known() {
        let managed = |manager: &str, subresource: &str| json!({"managedFields": [{"manager": manager, "subresource": subresource}]});
        for (meta, expected) in [
            (
                json!({"annotations": {ARGO_TRACKING: "shop:x"}}),
                Some("Argo CD (argocd.argoproj.io/tracking-id: shop:x)"),
            ),
            (
                json!({"labels": {"kustomize.toolkit.fluxcd.io/name": "shop"}}),
                Some("Flux (kustomize.toolkit.fluxcd.io/name: shop)"),
            ),
            (managed("argocd-controller", ""), Some("Argo CD (field manager argocd-controller)")),
            (managed("argocd-controller", "status"), None),
            (managed("kubectl-client-side-apply", ""), None),
            (json!({"labels": {"app.kubernetes.io/instance": "shop"}}), None),
        ] {
            assert_eq!(told(meta).as_deref(), expected);
        }
    }
}
