//! Whether the user may do all that a plan needs, asked before anything is written.

use zone_rollout_core::group::Group;
use zone_rollout_core::promote::{Plan, ZoneWay};

use crate::cli::{OnFailureArg, PromoteArgs};
use crate::cluster::{Cluster, Permission};
use crate::command::Context;
use crate::error::Error;

/// Asks for every permission that the plan needs before anything is written.
pub(super) async fn permitted(
    context: &Context<'_>,
    group: &Group,
    plan: &Plan,
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
    let mut needed = vec![rollouts("status"), lease("get"), lease("create"), lease("update")];
    let specs = |way: &ZoneWay| matches!(way, ZoneWay::SetImage | ZoneWay::Hold | ZoneWay::Release);
    if plan.zones.iter().any(|zone| specs(&zone.way)) {
        needed.push(rollouts(""));
    }
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
