//! What happens when, as tables: zones by weight, and what it means for clients.

use jiff::Timestamp;
use zone_rollout_core::exposure::Share;
use zone_rollout_core::promote::Outcome;
use zone_rollout_core::rehearsal::{Rehearsal, Timeline, ZoneTimeline};
use zone_rollout_core::time::format_duration;

use super::io::Terminal;
use super::plan::share;
use super::table::{Tone, table};
use super::words::clock;

/// A promotion that was rehearsed: its times, what clients see of it, and how it ends.
pub fn promotion(rehearsal: &Rehearsal, terminal: Terminal) -> String {
    let timeline = &rehearsal.timeline;
    format!(
        "If it began at {}, by the times of a model:\n\n{}\n\n{}",
        clock(timeline.begins),
        tables(timeline, terminal),
        ending(rehearsal)
    )
}

/// What zones do that nobody orders.
pub fn drift(timeline: &Timeline, terminal: Terminal) -> String {
    format!(
        "Left alone since {}, by the times of a model:\n\n{}",
        clock(timeline.begins),
        tables(timeline, terminal)
    )
}

fn tables(timeline: &Timeline, terminal: Terminal) -> String {
    format!("{}\n\n{}", zones(timeline, terminal), exposure(timeline, terminal))
}

fn zones(timeline: &Timeline, terminal: Terminal) -> String {
    let mut weights: Vec<u32> = Vec::new();
    for point in timeline.zones.iter().flat_map(|zone| &zone.weights) {
        if point.weight > 0 && !weights.contains(&point.weight) {
            weights.push(point.weight);
        }
    }
    weights.sort_unstable();
    let columns: Vec<String> = weights.iter().map(|weight| format!("{weight} %")).collect();
    let header: Vec<&str> = ["ZONE", "STARTED"]
        .into_iter()
        .chain(columns.iter().map(String::as_str))
        .chain(["PROMOTED", "VERIFIED"])
        .collect();
    let row = |zone: &ZoneTimeline| {
        let after = |at: Option<Timestamp>| (after(timeline, at), Tone::Plain);
        let first = |weight: &u32| {
            zone.weights.iter().find(|point| point.weight == *weight).map(|point| point.at)
        };
        let mut row = vec![(zone.zone.to_string(), Tone::Plain), after(zone.started)];
        row.extend(weights.iter().map(|weight| after(first(weight))));
        row.extend([after(zone.promoted), after(zone.verified)]);
        row
    };
    table(&header, timeline.zones.iter().map(row).collect(), terminal)
}

fn exposure(timeline: &Timeline, terminal: Terminal) -> String {
    if timeline.exposure.is_empty() {
        return "Clients on the new version: cannot be computed".to_owned();
    }
    let rows = timeline.exposure.iter().map(|point| {
        let worst = match &point.worst {
            Some((zone, lost)) if worse(*lost, point.now) => {
                format!("{}, if zone {zone} is lost then", share(*lost))
            }
            _ => "no more".to_owned(),
        };
        [after(timeline, Some(point.at)), share(point.now), worst]
            .map(|text| (text, Tone::Plain))
            .to_vec()
    });
    table(&["AT", "CLIENTS ON THE NEW VERSION", "AT WORST"], rows.collect(), terminal)
}

fn worse(lost: Share, now: Share) -> bool {
    lost.new + lost.unserved > now.new + now.unserved + 0.005
}

fn after(timeline: &Timeline, at: Option<Timestamp>) -> String {
    at.map_or_else(
        || "-".to_owned(),
        |at| format!("+{}", format_duration(at.duration_since(timeline.begins).unsigned_abs())),
    )
}

/// How it ends.
pub fn ending(rehearsal: &Rehearsal) -> String {
    let timeline = &rehearsal.timeline;
    let after = after(timeline, Some(timeline.ends));
    match &rehearsal.outcome {
        Some(Outcome::Done) => format!("Done at {after}."),
        Some(Outcome::Outstanding { zone, what }) => {
            format!("At {after} it waits for a person: zone {zone}: {what}.")
        }
        Some(Outcome::Stuck { zone: Some(zone), what, .. }) => {
            format!("It gets stuck: zone {zone}: {what}.")
        }
        Some(Outcome::ZoneFailed { zone, .. }) => format!("Zone {zone} fails."),
        Some(_) => "It does not get to its end.".to_owned(),
        None => "It takes longer than two weeks.".to_owned(),
    }
}
