//! Whether the user may do all that a plan needs, asked before anything is written.

use zone_rollout_core::group::Group;

use crate::cli::{OnFailureArg, PromoteArgs};
use crate::cluster::{Cluster, Permission};
use crate::command::Context;
use crate::error::Error;

/// Asks for every permission that the plan needs before anything is written.
pub(super) async fn permitted(
    context: &Context<'_>,
    group: &Group,
    args: &PromoteArgs,
) -> Result<(), Error> {
    let rollouts = |subresource| Permission {
        verb: "patch",
        group: "argoproj.io",
        resource: "rollouts",
        subresource,
    };
    let lease = |verb| Permission {
        verb,
        group: "coordination.k8s.io",
        resource: "leases",
        subresource: "",
    };
    // A zone that is lost on the way is held, and a controller that missed a change is touched: both
    // need the Rollout itself, whatever the plan says.
    let mut needed =
        vec![rollouts("status"), rollouts(""), lease("get"), lease("create"), lease("update")];
    if args.on_failure == OnFailureArg::AbortZone {
        needed.push(Permission {
            verb: "patch",
            group: "networking.istio.io",
            resource: "virtualservices",
            subresource: "",
        });
    }
    let lacking = context.cluster.lacks(&group.namespace, &needed).await?;
    if lacking.is_empty() {
        return Ok(());
    }
    let list: Vec<String> = lacking.iter().map(ToString::to_string).collect();
    Err(Error::refused(format!(
        "you may not {} in namespace `{}`",
        list.join(", "),
        group.namespace
    ))
    .hint(format!("see what you may do: kubectl auth can-i --list -n {}", group.namespace)))
}
