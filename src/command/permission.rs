//! Whether the user may do all that a verb may need, asked before anything is written.

use std::time::Duration;

use tokio::time::timeout;
use zone_rollout_core::group::Group;

use crate::cli::{OnFailureArg, PromoteArgs};
use crate::cluster::Permission;
use crate::command::Context;
use crate::error::Error;
use crate::render::Io;

/// How long an abort waits to be told whether it may.
const SOON: Duration = Duration::from_secs(2);

const OPEN_GATES: Permission = patch("argoproj.io", "rollouts", "status");
/// A zone that is lost on the way is held, and a controller that missed a change is touched.
const PATCH_ROLLOUTS: Permission = patch("argoproj.io", "rollouts", "");
/// A controller with stable pods missing leaves the traffic of an aborted zone where it is.
const PATCH_ROUTES: Permission = patch("networking.istio.io", "virtualservices", "");

const fn patch(
    group: &'static str,
    resource: &'static str,
    subresource: &'static str,
) -> Permission {
    Permission { verb: "patch", group, resource, subresource }
}

const fn lease(verb: &'static str) -> Permission {
    Permission { verb, group: "coordination.k8s.io", resource: "leases", subresource: "" }
}

/// Refuses a promotion for which a permission is missing.
pub(super) async fn to_promote(
    context: &Context,
    group: &Group,
    args: &PromoteArgs,
) -> Result<(), Error> {
    let mut needed =
        vec![OPEN_GATES, PATCH_ROLLOUTS, lease("get"), lease("create"), lease("update")];
    if args.release.on_failure == OnFailureArg::AbortZone {
        needed.push(PATCH_ROUTES);
    }
    let lacking = context.cluster.lacks(&group.namespace, &needed).await?;
    if lacking.is_empty() { Ok(()) } else { Err(refusal(&lacking, &group.namespace)) }
}

/// Refuses a change by hand for which a permission is missing.
pub(super) async fn to_change(context: &Context, namespace: &str) -> Result<(), Error> {
    let needed = [OPEN_GATES, PATCH_ROLLOUTS, lease("get"), lease("create"), lease("update")];
    let lacking = context.cluster.lacks(namespace, &needed).await?;
    if lacking.is_empty() { Ok(()) } else { Err(refusal(&lacking, namespace)) }
}

/// Refuses an abort that cannot begin; warns of one that may not get to its end. An answer that does
/// not come soon is no reason to wait.
pub(super) async fn to_abort(context: &Context, namespace: &str, io: &mut Io) -> Result<(), Error> {
    let needed = [OPEN_GATES, PATCH_ROLLOUTS, PATCH_ROUTES];
    let answer = timeout(SOON, context.cluster.lacks(namespace, &needed)).await;
    let lacking = answer.ok().and_then(Result::ok).unwrap_or_default();
    if lacking.contains(&OPEN_GATES) {
        return Err(refusal(&lacking, namespace));
    }
    for permission in lacking {
        let what = if permission == PATCH_ROUTES {
            "traffic that the controller leaves on the new version will stay there"
        } else {
            "a controller that misses the abort cannot be told again"
        };
        io.note(&format!("warning: you may not {permission}: {what}"));
    }
    Ok(())
}

/// Refuses to send clients elsewhere, or back, where the route may not be written.
pub(super) async fn to_divert(context: &Context, namespace: &str) -> Result<(), Error> {
    let answer = timeout(SOON, context.cluster.lacks(namespace, &[PATCH_ROUTES])).await;
    let lacking = answer.ok().and_then(Result::ok).unwrap_or_default();
    if lacking.is_empty() { Ok(()) } else { Err(refusal(&lacking, namespace)) }
}

fn refusal(lacking: &[Permission], namespace: &str) -> Error {
    let list: Vec<String> = lacking.iter().map(ToString::to_string).collect();
    Error::refused(format!("you may not {} in namespace `{namespace}`", list.join(", ")))
        .hint(format!("see what you may do: kubectl auth can-i --list -n {namespace}"))
}
