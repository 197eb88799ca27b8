//! The one place where objects of a group are written. A write is sent once; what became of it is
//! told apart as far as the answer allows.

use futures::future::BoxFuture;
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::{Api, ResourceExt};
use zone_rollout_core::write::{Drift, FIELD_MANAGER, Subresource, TargetKind, Write, Written};

use super::connect::KubeCluster;
use super::explain::{self, Fate};
use super::kinds::{ROLLOUTS, VIRTUAL_SERVICES};

/// What the API server says when a `test` of a JSON patch fails.
const TEST_FAILED: &str = "the server rejected our request due to an error in our request";

impl KubeCluster {
    pub(super) fn send<'a>(&'a self, write: &'a Write) -> BoxFuture<'a, Written> {
        Box::pin(async move {
            let info = match write.kind {
                TargetKind::Rollout => &ROLLOUTS,
                TargetKind::VirtualService => &VIRTUAL_SERVICES,
            };
            let resource = info.resource(&self.version_of(info));
            let api: Api<DynamicObject> =
                Api::namespaced_with(self.client.clone(), &write.key.namespace, &resource);
            let patch = match serde_json::from_value(write.patch()) {
                Ok(patch) => Patch::Json::<()>(patch),
                Err(error) => return Written::NotSent(error.to_string()),
            };
            let params = PatchParams {
                field_manager: Some(FIELD_MANAGER.to_owned()),
                ..PatchParams::default()
            };
            let name = &write.key.name;
            let sent = match write.subresource {
                Subresource::Main => self.limited(api.patch(name, &params, &patch)).await,
                Subresource::Status => self.limited(api.patch_status(name, &params, &patch)).await,
            };
            match sent {
                Ok(object) => Written::Landed {
                    resource_version: object.resource_version().unwrap_or_default(),
                },
                Err(error) => refusal(&error),
            }
        })
    }
}

fn refusal(error: &kube::Error) -> Written {
    let why = explain::reason(error);
    match explain::fate(error) {
        Fate::NotSent | Fate::TurnedAway => Written::NotSent(why),
        Fate::Lost => Written::Unknown(why),
        Fate::Answered => match error {
            kube::Error::Api(status) => match status.code {
                404 | 409 => Written::Refused(Drift::new(why)),
                422 if status.message == TEST_FAILED => {
                    Written::Refused(Drift::new("the object is not as it was seen"))
                }
                401 | 403 if !why.contains("admission webhook") => Written::Denied(why),
                _ => Written::Invalid(why),
            },
            _ => Written::Unknown(why),
        },
    }
}
