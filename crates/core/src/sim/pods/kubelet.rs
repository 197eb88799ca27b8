//! What becomes of a pod on its node, by its image.

use std::sync::Arc;
use std::time::Duration;

use super::replica_set_of;
use crate::scene::{ContainerState, ContainerStatus, Key, Pod, PodPhase, Terminated, Waiting};
use crate::sim::timers::Timer;
use crate::sim::{ImageFate, World};
use crate::template::images;

/// How long a container that ends at once runs.
const CRASH: Duration = Duration::from_secs(1);
/// How long kubelet waits before it starts a container again: twice as long each time, up to this.
const LONGEST_BACK_OFF: Duration = Duration::from_mins(5);

impl World {
    /// The containers of a pod were started, or could not be.
    pub(in crate::sim) fn started(&mut self, key: &Key) {
        let Some(pod) = self.pod(key).filter(|pod| !self.is_on_lost_node(pod)) else { return };
        let mut pod = Arc::unwrap_or_clone(pod);
        let (container, image) = self.first_image(&pod);
        let restarts = pod.restarts();
        let status = |state: ContainerState| ContainerStatus {
            name: container.clone(),
            restart_count: restarts,
            state,
            last_state: pod
                .status
                .container_statuses
                .first()
                .map_or_else(ContainerState::default, |before| before.last_state.clone()),
        };
        let fate = self.images.get(&image).copied().unwrap_or_default();
        if fate == ImageFate::Missing {
            let state = waiting("ImagePullBackOff", format!("Back-off pulling image \"{image}\""));
            pod.status.container_statuses = vec![status(state)];
            return self.ready(pod, false, "ContainersNotReady");
        }
        pod.status.container_statuses = vec![status(ContainerState::default())];
        pod.status.phase = PodPhase::Running;
        let key = pod.meta.key();
        let serves = matches!(fate, ImageFate::Good | ImageFate::EndsAfter(_));
        self.ready(pod, serves, if serves { "" } else { "ContainersNotReady" });
        match fate {
            ImageFate::Crashes => self.timers.set(self.now.mono + CRASH, Timer::Crashed(key)),
            ImageFate::EndsAfter(span) => {
                self.timers.set(self.now.mono + span, Timer::Crashed(key));
            }
            _ => {}
        }
    }

    /// A container has ended; it is started again after a while.
    pub(in crate::sim) fn crashed(&mut self, key: &Key) {
        let Some(pod) = self.pod(key).filter(|pod| !self.is_on_lost_node(pod)) else { return };
        let mut pod = Arc::unwrap_or_clone(pod);
        let Some(container) = pod.status.container_statuses.first_mut() else { return };
        container.restart_count += 1;
        container.last_state.terminated =
            Some(Terminated { reason: "Error".to_owned(), exit_code: 1 });
        container.state = waiting("CrashLoopBackOff", String::new());
        let again = back_off(container.restart_count);
        self.ready(pod, false, "ContainersNotReady");
        self.timers.set(self.now.mono + again, Timer::Started(key.clone()));
    }

    /// Name and image of the first container of a pod.
    fn first_image(&self, pod: &Pod) -> (String, String) {
        replica_set_of(pod)
            .and_then(|key| self.replica_set(&key))
            .and_then(|replica_set| images(&replica_set.spec.template).into_iter().next())
            .unwrap_or_default()
    }
}

fn waiting(reason: &str, message: String) -> ContainerState {
    ContainerState {
        waiting: Some(Waiting { reason: reason.to_owned(), message }),
        ..ContainerState::default()
    }
}

fn back_off(restarts: u32) -> Duration {
    let doubled = Duration::from_secs(10) * 2_u32.pow(restarts.saturating_sub(1).min(5));
    doubled.min(LONGEST_BACK_OFF)
}
