//! Where an update will be, and when, if nobody touches it.

use std::time::Duration;

use jiff::Timestamp;

use crate::scene::{Rollout, Step};
use crate::time::Moment;

/// A weight that an update reaches by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waypoint {
    /// When, at the earliest.
    pub at: Timestamp,
    /// Share of traffic for the new version, in percent; 100 is the promotion.
    pub weight: u32,
}

/// The weights still to come, as far as they come by themselves: up to the next pause for a person.
///
/// Only timed pauses take time here; starting pods and analyses takes longer, so that the times are
/// the earliest possible.
pub fn forecast(rollout: &Rollout, now: Moment) -> Vec<Waypoint> {
    let steps = rollout.steps();
    let start = rollout.step_index();
    if rollout.is_fully_promoted() || rollout.status.abort || start > steps.len() {
        return Vec::new();
    }
    let mut elapsed = Duration::ZERO;
    let mut waypoints = Vec::new();
    for (index, step) in steps.iter().enumerate().skip(start) {
        match step {
            Step::Pause(None) => return waypoints,
            Step::Pause(Some(duration)) if index == start => {
                elapsed += duration.saturating_sub(waited(rollout, now));
            }
            Step::Pause(Some(duration)) => elapsed += *duration,
            Step::SetWeight(weight) => {
                waypoints.push(Waypoint { at: now.after(elapsed).wall, weight: *weight });
            }
            Step::Other(..) => {}
        }
    }
    waypoints.push(Waypoint { at: now.after(elapsed).wall, weight: 100 });
    waypoints
}

/// How long the current pause has lasted.
fn waited(rollout: &Rollout, now: Moment) -> Duration {
    rollout
        .status
        .pause_conditions
        .first()
        .and_then(|pause| pause.start_time)
        .map_or(Duration::ZERO, |start| now.since(start))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::now;

    fn told(index: usize, paused_for: u64, steps: &serde_json::Value) -> String {
        let start = now().wall - Duration::from_secs(paused_for);
        let rollout: Rollout = serde_json::from_value(json!({
            "spec": {"strategy": {"canary": {"steps": steps}}},
            "status": {
                "stableRS": "v1", "currentPodHash": "v2", "currentStepIndex": index,
                "pauseConditions": [{"reason": "CanaryPauseStep", "startTime": start}],
            },
        }))
        .unwrap();
        let after = |at: Timestamp| at.duration_since(now().wall).as_secs() / 60;
        let waypoints: Vec<String> = forecast(&rollout, now())
            .iter()
            .map(|waypoint| format!("{}%@{}m", waypoint.weight, after(waypoint.at)))
            .collect();
        waypoints.join(" ")
    }

    #[test]
    fn timed_pauses_lead_to_promotion_and_a_gate_ends_the_view() {
        let steps = json!([
            {"setWeight": 10}, {"pause": {"duration": "5m"}},
            {"setWeight": 50}, {"pause": {"duration": "10m"}},
        ]);
        assert_eq!(told(0, 0, &steps), "10%@0m 50%@5m 100%@15m");
        assert_eq!(told(1, 120, &steps), "50%@3m 100%@13m");
        assert_eq!(told(1, 900, &steps), "50%@0m 100%@10m");
        let gated = json!([{"setWeight": 10}, {"pause": {}}, {"setWeight": 50}]);
        assert_eq!(told(0, 0, &gated), "10%@0m");
    }
}
