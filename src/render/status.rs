//! `status` for people.

use zone_rollout_core::time::format_duration;
use zone_rollout_core::zone::ZoneState;

use super::io::Terminal;
use super::table::{Tone, table};
use super::view::{GroupView, ZoneView};
use super::words::{self, Flags};

/// The table and what is awaited below it.
pub fn text(view: &GroupView, wide: bool, flags: &Flags, terminal: Terminal) -> String {
    let mut header =
        vec!["ZONE", "ROLLOUT", "STATE", "STEP", "WEIGHT", "STABLE", "CANARY", "PODS", "SINCE"];
    if wide {
        header.extend(["TOPOLOGY", "STABLE-HASH", "CANARY-HASH"]);
    }
    let rows = view.zones.iter().map(|zone| row(view, zone, wide)).collect();
    let mut out = table(&header, rows, terminal);
    let notes = notes(view, flags);
    if !notes.is_empty() {
        out.push_str("\n\n");
        out.push_str(&notes.join("\n"));
    }
    out
}

fn row(view: &GroupView, zone: &ZoneView, wide: bool) -> Vec<(String, Tone)> {
    let plain = |text: String| (text, Tone::Plain);
    let version = |version: &Option<super::view::VersionView>| match version {
        Some(version) if wide => {
            let images: Vec<&str> =
                version.images.iter().map(|(_, image)| image.as_str()).collect();
            images.join(",")
        }
        Some(version) => version.version.clone(),
        None => "-".to_owned(),
    };
    let hash = |version: &Option<super::view::VersionView>| {
        version.as_ref().map_or_else(|| "-".to_owned(), |version| version.hash.clone())
    };
    let since = zone.since.map_or_else(|| "-".to_owned(), |at| format_duration(view.at.since(at)));
    let mut row = vec![
        plain(zone.zone.id.to_string()),
        plain(zone.zone.rollout.name.clone()),
        (words::state(zone, view.at), tone(zone)),
        plain(words::step(zone)),
        plain(words::weight(zone)),
        plain(version(&zone.stable)),
        plain(version(&zone.canary)),
        plain(words::pods(zone)),
        plain(since),
    ];
    if wide {
        row.push(plain(zone.zone.topology.clone().unwrap_or_else(|| "-".to_owned())));
        row.push(plain(hash(&zone.stable)));
        row.push(plain(hash(&zone.canary)));
    }
    row
}

fn tone(zone: &ZoneView) -> Tone {
    if zone.outage.is_some() || zone.late.is_some() {
        return Tone::Bad;
    }
    match zone.state {
        ZoneState::Stable | ZoneState::Promoted | ZoneState::Verified | ZoneState::Soaking => {
            Tone::Good
        }
        ZoneState::Missing
        | ZoneState::Unknown { .. }
        | ZoneState::InvalidSpec { .. }
        | ZoneState::Aborted { .. }
        | ZoneState::NotReady { .. }
        | ZoneState::NeverReconciled
        | ZoneState::Unproven { .. } => Tone::Bad,
        _ => Tone::Busy,
    }
}

/// What is awaited, zones that await the same together; then the commands, each once.
fn notes(view: &GroupView, flags: &Flags) -> Vec<String> {
    let mut notes = Vec::new();
    let mut awaited: Vec<(String, Vec<String>)> = Vec::new();
    let mut commands: Vec<String> = Vec::new();
    for zone in &view.zones {
        let id = zone.zone.id.to_string();
        if let Some(outage) = &zone.outage {
            notes.push(format!("Zone {id} is lost: {outage}"));
        }
        if let Some(late) = &zone.late {
            notes.push(format!("Zone {id} makes no progress: {late}"));
        }
        let Some(advice) = words::advice(view, zone, flags) else { continue };
        match awaited.iter_mut().find(|(what, _)| *what == advice.awaited) {
            Some((_, zones)) => zones.push(id),
            None => awaited.push((advice.awaited, vec![id])),
        }
        if let Some(command) = advice.command.filter(|command| !commands.contains(command)) {
            commands.push(command);
        }
    }
    notes.extend(awaited.iter().map(|(what, zones)| {
        let verb = if zones.len() == 1 { "Zone" } else { "Zones" };
        format!("{verb} {}: {}", zones.join(", "), what.trim_end_matches('.'))
    }));
    for zone in view.zones.iter().filter(|zone| zone.diverted.is_some()) {
        commands.push(words::diversion::restore(&view.group, &zone.zone.id, flags));
    }
    notes.extend(view.gaps.iter().map(|gap| format!("Not seen: {gap}")));
    if !commands.is_empty() {
        notes.push("Next:".to_owned());
        notes.extend(commands.iter().map(|command| format!("  {command}")));
    }
    notes
}
