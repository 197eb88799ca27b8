//! A plan for people.

use zone_rollout_core::exposure::{Exposure, Share};
use zone_rollout_core::group::Group;
use zone_rollout_core::promote::{Plan, Settings, ZoneWay};
use zone_rollout_core::time::format_duration;

use super::io::Terminal;
use super::table::{Tone, table};

/// The plan: order, target, what each zone will do, and exposure.
pub fn text(plan: &Plan, group: &Group, settings: &Settings, terminal: Terminal) -> String {
    let mut turn = 0;
    let rows = plan
        .zones
        .iter()
        .map(|zone| {
            let driven = !matches!(zone.way, ZoneWay::Skip | ZoneWay::LeaveBehind);
            turn += u32::from(driven);
            let turn = if driven { turn.to_string() } else { "-".to_owned() };
            let from = zone.from.clone().unwrap_or_else(|| "-".to_owned());
            let to = if driven { plan.version.clone() } else { "-".to_owned() };
            let first = settings.order.first() == Some(&zone.zone);
            let soak = if first { settings.first_soak } else { settings.soak };
            [turn, zone.zone.to_string(), zone.rollout.clone(), from, to]
                .into_iter()
                .chain([way(zone.way, &format_duration(soak))])
                .map(|text| (text, Tone::Plain))
                .collect()
        })
        .collect();
    let table = table(&["TURN", "ZONE", "ROLLOUT", "FROM", "TO", "WHAT HAPPENS"], rows, terminal);
    let exposure = match &plan.exposure {
        Some(exposure) => self::exposure(exposure),
        None => "Clients on the new version: cannot be computed".to_owned(),
    };
    format!(
        "Group {} in namespace {}: to {}\n\n{table}\n\n{exposure}",
        group.name, group.namespace, plan.version
    )
}

fn way(way: ZoneWay, soak: &str) -> String {
    match way {
        ZoneWay::Watch => format!("is there already; watch it for {soak}"),
        ZoneWay::Follow => format!("is on its way; follow it, then watch it for {soak}"),
        ZoneWay::Open => format!("open its gate, follow its steps, watch it for {soak}"),
        ZoneWay::Release => format!("release our hold, follow its steps, watch it for {soak}"),
        ZoneWay::SetImage => format!("set the image, follow its steps, watch it for {soak}"),
        ZoneWay::Restore => {
            format!("set what it ran before, follow its steps, watch it for {soak}")
        }
        ZoneWay::AwaitSync => {
            format!("wait for the version, open its gate, follow its steps, watch it for {soak}")
        }
        ZoneWay::Hold => {
            format!("hold it, wait for the version, release it, follow it, watch it for {soak}")
        }
        ZoneWay::LeaveBehind => "asks for another version; stays there".to_owned(),
        ZoneWay::Skip => "left out".to_owned(),
    }
}

fn exposure(exposure: &Exposure) -> String {
    let now = format!("Clients on the new version: {} now", share(exposure.now));
    let if_lost = exposure
        .if_lost
        .iter()
        .map(|(zone, lost)| format!("{} if zone {zone} is lost", share(*lost)));
    [now].into_iter().chain(if_lost).collect::<Vec<_>>().join("; ")
}

pub(super) fn share(share: Share) -> String {
    let new = format!("{:.0} %", share.new * 100.0);
    if share.unserved > 0.0005 {
        format!("{new} (and {:.0} % unserved)", share.unserved * 100.0)
    } else {
        new
    }
}
