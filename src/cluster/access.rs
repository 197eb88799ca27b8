//! Whether the user may do what is about to be done, asked before the first write.

use std::fmt;

use futures::future::{BoxFuture, try_join_all};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::Api;
use kube::api::PostParams;

use super::connect::KubeCluster;
use super::explain;
use crate::error::Error;

/// One thing that a user may or may not do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Permission {
    /// `patch`, `create`, …
    pub verb: &'static str,
    /// API group; empty for the core.
    pub group: &'static str,
    /// Plural name.
    pub resource: &'static str,
    /// Subresource, or empty.
    pub subresource: &'static str,
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.resource)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        if self.subresource.is_empty() { Ok(()) } else { write!(f, "/{}", self.subresource) }
    }
}

impl KubeCluster {
    pub(super) fn missing<'a>(
        &'a self,
        namespace: &'a str,
        permissions: &'a [Permission],
    ) -> BoxFuture<'a, Result<Vec<Permission>, Error>> {
        Box::pin(async move {
            let reviews = permissions.iter().map(|permission| self.may(namespace, *permission));
            let answers = try_join_all(reviews).await?;
            let denied = permissions.iter().zip(answers).filter(|(_, allowed)| !allowed);
            Ok(denied.map(|(permission, _)| *permission).collect())
        })
    }

    async fn may(&self, namespace: &str, permission: Permission) -> Result<bool, Error> {
        let attributes = ResourceAttributes {
            namespace: Some(namespace.to_owned()),
            verb: Some(permission.verb.to_owned()),
            group: Some(permission.group.to_owned()),
            resource: Some(permission.resource.to_owned()),
            subresource: Some(permission.subresource.to_owned()),
            ..ResourceAttributes::default()
        };
        let review = SelfSubjectAccessReview {
            spec: SelfSubjectAccessReviewSpec {
                resource_attributes: Some(attributes),
                ..SelfSubjectAccessReviewSpec::default()
            },
            ..SelfSubjectAccessReview::default()
        };
        let api: Api<SelfSubjectAccessReview> = Api::all(self.client.clone());
        let answer = self
            .limited(api.create(&PostParams::default(), &review))
            .await
            .map_err(|error| explain::request(&self.server, "ask for permissions", &error))?;
        Ok(answer.status.is_some_and(|status| status.allowed))
    }
}
