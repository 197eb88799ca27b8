//! The words for what became of an abort, zone by zone.

use zone_rollout_core::group::{Group, ZoneId};
use zone_rollout_core::takeback::{GitRevert, RecallEnd};
use zone_rollout_core::write::{Action, Written};

use super::{Flags, count};

/// What became of one zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// The zone.
    pub zone: ZoneId,
    /// Its name in machine-readable output.
    pub result: &'static str,
    /// For people.
    pub text: String,
    /// What to type next.
    pub next: Vec<String>,
}

/// A write that has landed.
pub fn wrote(action: &Action) -> String {
    match action {
        Action::TrafficToStable { zone } => {
            format!("zone {zone}: wrote the route: all traffic to the stable pods")
        }
        Action::Nudge { zone } => {
            format!("zone {zone}: touched it: the controller has missed the abort")
        }
        action => format!("zone {}: gave the update up", action.zone()),
    }
}

/// A write that has not.
pub fn failure(written: &Written) -> String {
    match written {
        Written::Denied(why) => format!("not permitted: {why}"),
        Written::Invalid(why) => format!("the server refuses it: {why}"),
        Written::Refused(drift) => format!("it changes while it is written to: {drift}"),
        Written::NotSent(why) | Written::Unknown(why) => why.clone(),
        Written::Landed { .. } => String::new(),
    }
}

/// How the recall of a zone ended, or that it has not. `trouble` is why it could not be written.
pub fn told(
    group: &Group,
    zone: &ZoneId,
    end: Option<&RecallEnd>,
    trouble: Option<&str>,
    flags: &Flags,
) -> Told {
    let flags = &flags.0;
    let rollout = group.zone(zone).map_or("", |zone| zone.rollout.name.as_str());
    let group = &group.name;
    let describe = || vec![format!("kubectl describe rollout {rollout}{flags}")];
    let (result, text, next) = match end {
        Some(RecallEnd::TakenBack { gave_up, wrote_route, pods, in_git }) => {
            let began = if *gave_up { "aborted" } else { "had been aborted already" };
            let how = match wrote_route {
                None => String::new(),
                Some(load) => format!(
                    ", but the controller left traffic on the new version ({load}), so the route \
                     was written here"
                ),
            };
            let rest = match pods {
                0 => "no pods of the new version are left".to_owned(),
                pods => format!(
                    "{} of the new version still to go",
                    count(*pods as usize, "pod", "pods")
                ),
            };
            let text =
                format!("{began}{how}; the VirtualService gives the new version 0 %; {rest}");
            let retry = format!("to start again: kubectl zone-rollout retry {group}/{zone}{flags}");
            let revert = in_git.as_ref().map(|revert| what_to_revert(rollout, revert));
            ("TakenBack", text, revert.into_iter().chain([retry]).collect())
        }
        Some(RecallEnd::AlreadyStable { version }) => {
            let version = version.clone().unwrap_or_else(|| "its version".to_owned());
            let text = format!(
                "nothing to take back: it is at rest on {version}; going back from there is an \
                 update of its own"
            );
            let undo = format!("kubectl zone-rollout undo {group}/{zone}{flags}");
            ("AlreadyStable", text, vec![undo])
        }
        Some(RecallEnd::NeverStarted) => {
            ("NeverStarted", "never started: it waits at its gate, untouched".to_owned(), vec![])
        }
        Some(RecallEnd::TooMuchLoad { load, weight }) => {
            let text = format!(
                "aborted, but {weight} % of its traffic stays on the new version: the controller \
                 waits for its stable pods, and {load}"
            );
            let force = format!("kubectl zone-rollout abort {group}/{zone} --force-weights{flags}");
            ("TrafficStays", text, vec![format!("to move it all the same: {force}")])
        }
        Some(RecallEnd::Unknown) => {
            ("Unknown", "its Rollout cannot be seen".to_owned(), describe())
        }
        None => {
            if let Some(why) = trouble {
                ("NotWritten", format!("could not be taken back: {why}"), describe())
            } else {
                let text = "not seen to be taken back within the time limit".to_owned();
                ("TimedOut", text, vec![format!("kubectl zone-rollout status {group}{flags}")])
            }
        }
    };
    Told { zone: zone.clone(), result, text: format!("zone {zone}: {text}"), next }
}

fn what_to_revert(rollout: &str, revert: &GitRevert) -> String {
    let GitRevert { owner, from, to } = revert;
    format!("in Git, put Rollout {rollout} back from {from} to {to}: {owner} owns it")
}
