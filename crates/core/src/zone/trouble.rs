//! What keeps a pod from serving, read from its status as kubelet and the scheduler write it.

use std::fmt;

use crate::scene::{ContainerStatus, Key, Pod, PodPhase};

/// Restarts after which a container in `CrashLoopBackOff` counts as broken rather than starting.
const CRASHES: u32 = 3;

/// A pod that does not serve, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// The pod.
    pub pod: Key,
    /// What is wrong.
    pub kind: TroubleKind,
}

/// What is wrong with a pod; worse kinds compare greater.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum TroubleKind {
    /// All containers run, and it is not Ready.
    NotReady {
        /// Reason and message of its Ready condition.
        why: String,
    },
    /// Its containers are being started.
    Starting,
    /// No node takes it.
    Unscheduled {
        /// The scheduler's message.
        why: String,
    },
    /// A container cannot be started.
    Waiting {
        /// Container.
        container: String,
        /// Such as `ImagePullBackOff`.
        reason: String,
        /// Kubelet's message.
        message: String,
    },
    /// A container ends again and again.
    Crashing {
        /// Container.
        container: String,
        /// Starts so far.
        restarts: u32,
        /// Exit code of the last run, if it is known.
        exit_code: Option<i32>,
    },
}

impl TroubleKind {
    /// True if waiting longer is not expected to help.
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Crashing { restarts, .. } if *restarts >= CRASHES)
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pod `{}` {}", self.pod.name, self.kind)
    }
}

impl fmt::Display for TroubleKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotReady { why } => write!(f, "is not Ready ({why})"),
            Self::Starting => f.write_str("is starting"),
            Self::Unscheduled { why } => write!(f, "is not scheduled ({why})"),
            Self::Waiting { container, reason, message } if message.is_empty() => {
                write!(f, "cannot start container `{container}` ({reason})")
            }
            Self::Waiting { container, reason, message } => {
                write!(f, "cannot start container `{container}` ({reason}: {message})")
            }
            Self::Crashing { container, restarts, exit_code } => {
                write!(f, "crashes: container `{container}` was restarted {restarts} times")?;
                exit_code.map_or(Ok(()), |code| write!(f, ", last exit code {code}"))
            }
        }
    }
}

/// What keeps this pod from serving; nothing if it is Ready.
pub fn trouble(pod: &Pod) -> Option<Trouble> {
    if pod.is_ready() || !pod.is_active() {
        return None;
    }
    let kind = pod
        .containers()
        .filter_map(container_trouble)
        .max()
        .or_else(|| unscheduled(pod))
        .unwrap_or_else(|| idle(pod));
    Some(Trouble { pod: pod.meta.key(), kind })
}

/// The worst trouble among these pods.
pub fn worst_trouble<'a>(pods: impl IntoIterator<Item = &'a Pod>) -> Option<Trouble> {
    pods.into_iter().filter_map(trouble).max_by(|one, other| one.kind.cmp(&other.kind))
}

fn container_trouble(container: &ContainerStatus) -> Option<TroubleKind> {
    let waiting = container.state.waiting.as_ref()?;
    match waiting.reason.as_str() {
        "" | "ContainerCreating" | "PodInitializing" => None,
        "CrashLoopBackOff" => Some(TroubleKind::Crashing {
            container: container.name.clone(),
            restarts: container.restart_count,
            exit_code: container.last_state.terminated.as_ref().map(|ended| ended.exit_code),
        }),
        reason => Some(TroubleKind::Waiting {
            container: container.name.clone(),
            reason: reason.to_owned(),
            message: waiting.message.clone(),
        }),
    }
}

fn unscheduled(pod: &Pod) -> Option<TroubleKind> {
    let scheduled = pod.condition("PodScheduled")?;
    (scheduled.status == "False")
        .then(|| TroubleKind::Unscheduled { why: scheduled.message.clone() })
}

fn idle(pod: &Pod) -> TroubleKind {
    let ready = pod.condition("Ready");
    if pod.status.phase == PodPhase::Pending || ready.is_none() {
        return TroubleKind::Starting;
    }
    let why = ready.map_or_else(String::new, |ready| match ready.message.as_str() {
        "" if ready.reason.is_empty() => "condition Ready is False".to_owned(),
        "" => ready.reason.clone(),
        message => message.to_owned(),
    });
    TroubleKind::NotReady { why }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn told(status: &Value) -> String {
        let pod: Pod = serde_json::from_value(
            json!({"metadata": {"name": "test-b-x", "namespace": "d"}, "status": status}),
        )
        .unwrap();
        trouble(&pod).map_or_else(|| "nothing".to_owned(), |trouble| trouble.to_string())
    }

    #[test]
    fn statuses_as_kubelet_writes_them_are_understood() {
        let crash = json!({
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "False", "reason": "ContainersNotReady"}],
            "containerStatuses": [{
                "name": "app", "restartCount": 4, "ready": false,
                "state": {"waiting": {
                    "reason": "CrashLoopBackOff",
                    "message": "back-off 40s restarting failed container=app pod=test-b-x",
                }},
                "lastState": {"terminated": {"exitCode": 1, "reason": "Error"}},
            }],
        });
        let pull = json!({
            "phase": "Pending",
            "conditions": [{"type": "Ready", "status": "False", "reason": "ContainersNotReady"}],
            "containerStatuses": [{"name": "app", "state": {"waiting": {
                "reason": "ImagePullBackOff", "message": "Back-off pulling image \"myapp:v9\"",
            }}}],
        });
        let probe = json!({
            "phase": "Running",
            "conditions": [{
                "type": "Ready", "status": "False", "reason": "ContainersNotReady",
                "message": "containers with unready status: [app]",
            }],
            "containerStatuses": [{"name": "app", "state": {"running": {}}}],
        });
        let pending = json!({
            "phase": "Pending",
            "conditions": [{
                "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                "message": "0/6 nodes are available",
            }],
        });
        let creating = json!({
            "phase": "Pending",
            "conditions": [{"type": "PodScheduled", "status": "True"}],
            "containerStatuses": [{"name": "app", "state": {"waiting": {
                "reason": "ContainerCreating",
            }}}],
        });
        insta::assert_snapshot!(
            told(&crash),
            @"pod `test-b-x` crashes: container `app` was restarted 4 times, last exit code 1"
        );
        insta::assert_snapshot!(
            told(&pull),
            @r#"pod `test-b-x` cannot start container `app` (ImagePullBackOff: Back-off pulling image "myapp:v9")"#
        );
        insta::assert_snapshot!(
            told(&probe),
            @"pod `test-b-x` is not Ready (containers with unready status: [app])"
        );
        insta::assert_snapshot!(
            told(&pending),
            @"pod `test-b-x` is not scheduled (0/6 nodes are available)"
        );
        insta::assert_snapshot!(told(&creating), @"pod `test-b-x` is starting");
        let ready =
            json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]});
        assert_eq!(told(&ready), "nothing");
    }

    #[test]
    fn only_a_repeated_crash_is_final() {
        let crashing = |restarts| TroubleKind::Crashing {
            container: "app".to_owned(),
            restarts,
            exit_code: None,
        };
        assert!(!crashing(2).is_final());
        assert!(crashing(3).is_final());
        assert!(crashing(1) > TroubleKind::Starting);
    }
}
