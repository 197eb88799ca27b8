//! What `plan` and `promote` have in common: what was asked for, judged against what is.

mod settings;

pub(super) use settings::run_name;

use std::time::Duration;

use ring::digest::{SHA256, digest};
use serde_json::json;
use zone_rollout_core::group::Group;
use zone_rollout_core::promote::{Goal, Plan, Planned, Settings, plan};
use zone_rollout_core::scene::Scene;

use super::Context;
use crate::cli::ReleaseArgs;
use crate::cluster::Want;
use crate::error::Error;
use crate::render::Io;
use crate::render::words::Flags;

/// How long the controller may take to look at a change before a run is refused.
const CONTROLLER_NEEDS: Duration = Duration::from_secs(10);
const LOOK_AGAIN: Duration = Duration::from_millis(500);
/// Hexadecimal digits of a plan's hash.
const HASH_LENGTH: usize = 12;

/// What was asked for, judged against what is.
pub(super) struct Judged {
    pub(super) scene: Scene,
    pub(super) group: Group,
    pub(super) settings: Settings,
    pub(super) goal: Option<Goal>,
    pub(super) planned: Planned,
}

/// What has to be read for a promotion.
pub(super) fn want(context: &Context, args: &ReleaseArgs) -> Want {
    Want { autoscalers: args.hold, ..context.want(&args.which) }
}

/// Reads and plans. A change that was made a moment ago is given the time that its controller needs.
pub(super) async fn judge(
    context: &Context,
    args: &ReleaseArgs,
    want: &Want,
    io: &Io,
) -> Result<Judged, Error> {
    let give_up = context.clock.now().after(CONTROLLER_NEEDS);
    loop {
        let scene = context.cluster.read(want).await?;
        let (group, zone) = context.find(&scene, &args.which, args.address.as_deref())?;
        let settings = settings::settings(args, &group, zone.as_ref(), context.clock.now(), io)?;
        let goal = settings::goal(args, &scene, &group)?;
        let now = context.clock.now();
        let planned = plan(&scene, &group, &settings, goal.as_ref(), now);
        if !planned.awaits_controller() || now.mono >= give_up.mono {
            return Ok(Judged { scene, group, settings, goal, planned });
        }
        context.clock.until(now.after(LOOK_AGAIN)).await;
    }
}

/// A short hash of all that a plan rests on: the same version by the same steps, in the same zones and
/// order, with the same soaks.
pub(super) fn hash(plan: &Plan, scene: &Scene, group: &Group, settings: &Settings) -> String {
    let zones = plan.zones.iter().map(|planned| {
        let rollout = group.zone(&planned.zone).and_then(|zone| zone.rollout(scene));
        json!({
            "zone": planned.zone,
            "uid": rollout.map(|rollout| &rollout.meta.uid),
            "template": rollout.map(|rollout| &rollout.status.current_pod_hash),
            "steps": rollout.map(|rollout| format!("{:?}", rollout.steps())),
            "way": format!("{:?}", planned.way),
        })
    });
    let basis = json!({
        "namespace": group.namespace,
        "group": group.name,
        "version": plan.version,
        "zones": zones.collect::<Vec<_>>(),
        "soaks": [settings.first_soak.as_secs(), settings.soak.as_secs()],
    });
    let digest = digest(&SHA256, basis.to_string().as_bytes());
    let digits = digest.as_ref().iter().flat_map(|byte| [byte >> 4, byte & 0xf]);
    let digit = |value: u8| char::from_digit(value.into(), 16);
    digits.take(HASH_LENGTH).filter_map(digit).collect()
}

/// Refuses a plan that is not the one that was agreed to.
pub(super) fn ensure_same(
    wanted: &str,
    now: &str,
    group: &Group,
    flags: &Flags,
) -> Result<(), Error> {
    if wanted == now {
        return Ok(());
    }
    Err(Error::refused(format!("the plan is not {wanted} any more: it is {now} now"))
        .hint(format!("see what has changed: kubectl zone-rollout plan {}{}", group.name, flags.0)))
}
