//! Templates of pod statuses, written as kubelet writes them.

/// The state in which containers start.
#[derive(Clone, Copy)]
pub(super) enum Container {
    Ready,
    Unready,
    PullFails,
}

/// The first status of a pod on its node.
pub(super) fn first(container: Container) -> String {
    let (phase, ready, state) = match container {
        Container::Ready => ("Running", "True", RUNNING),
        Container::Unready => ("Running", "False", RUNNING),
        Container::PullFails => ("Pending", "False", PULLING),
    };
    format!("{VARIABLES}{GENERAL}phase: {phase}\n{}{FIRST_CONTAINERS}", conditions(ready))
        .replace("STATE", state)
        .replace("READY", &ready.to_lowercase())
}

/// The pod's containers run and are Ready again.
pub(super) const READY: &str = r#"
{{ $now := Now }}
conditions:
- {type: Ready, status: "True", reason: null, message: null, lastTransitionTime: {{ $now }}}
- {type: ContainersReady, status: "True", reason: null, message: null, lastTransitionTime: {{ $now }}}
containerStatuses:
{{ range .status.containerStatuses }}
- {{ toJson (set . "ready" true) }}
{{ end }}
"#;

/// Every running container has ended with exit code 1 and waits for its next start.
pub(super) const CRASHED: &str = r#"
{{ $pod := . }}
{{ $now := Now }}
containerStatuses:
{{ range .status.containerStatuses }}
{{ $ended := dict "exitCode" 1 "reason" "Error" "startedAt" .state.running.startedAt "finishedAt" $now "containerID" .containerID }}
{{ $pause := min 300 (mul 10 (int (index (list 1 2 4 8 16 32) (int (min 5 .restartCount))))) }}
{{ $message := printf "back-off %ds restarting failed container=%s pod=%s_%s(%s)" $pause .name $pod.metadata.name $pod.metadata.namespace $pod.metadata.uid }}
{{ $waiting := dict "waiting" (dict "reason" "CrashLoopBackOff" "message" $message) }}
- {{ toJson (merge (dict "state" $waiting "lastState" (dict "terminated" $ended) "started" false "ready" false) (omit . "state" "lastState" "started" "ready")) }}
{{ end }}
"#;

/// Every crashed container runs again.
pub(super) const RESTARTED: &str = r#"
{{ $pod := . }}
{{ $now := Now }}
containerStatuses:
{{ range .status.containerStatuses }}
{{ $count := add 1 .restartCount }}
{{ $id := printf "containerd://%s" (sha256sum (printf "%s %s %d" $pod.metadata.uid .name $count)) }}
- {{ toJson (merge (dict "state" (dict "running" (dict "startedAt" $now)) "started" true "restartCount" $count "containerID" $id) (omit . "state" "started" "restartCount" "containerID")) }}
{{ end }}
"#;

/// A pod's address follows from its uid, so that no pod ever takes over the address of another:
/// a proxy that has not heard yet would send it the other's requests.
const VARIABLES: &str = r#"
{{ $pod := . }}
{{ $now := Now }}
{{ $hash := sha256sum .metadata.uid }}
{{ $x := add 128 (mod (int (printf "0x%s" (substr 0 2 $hash))) 64) }}
{{ $y := int (printf "0x%s" (substr 2 4 $hash)) }}
{{ $z := add 1 (mod (int (printf "0x%s" (substr 4 6 $hash))) 254) }}
{{ $ip := printf "10.%d.%d.%d" $x $y $z }}
{{ $names := list }}{{ range .spec.containers }}{{ $names = append $names .name }}{{ end }}
{{ $unready := printf "containers with unready status: [%s]" (join " " $names) }}
"#;

const GENERAL: &str = r"
observedGeneration: {{ .metadata.generation }}
hostIP: {{ NodeIPWith .spec.nodeName }}
hostIPs: [{ip: {{ NodeIPWith .spec.nodeName }}}]
podIP: {{ $ip }}
podIPs: [{ip: {{ $ip }}}]
startTime: {{ $now }}
";

const WHEN: &str =
    ", observedGeneration: {{ $pod.metadata.generation }}, lastTransitionTime: {{ $now }}}";

fn conditions(ready: &str) -> String {
    let why = match ready {
        "True" => "",
        _ => ", reason: ContainersNotReady, message: {{ $unready | Quote }}",
    };
    let condition = |kind: &str, status: &str, why: &str| {
        format!("- {{type: {kind}, status: {status:?}{why}{WHEN}\n")
    };
    [
        "conditions:\n".to_owned(),
        condition("PodReadyToStartContainers", "True", ""),
        condition("Initialized", "True", ""),
        condition("Ready", ready, why),
        condition("ContainersReady", ready, why),
    ]
    .concat()
}

/// Short image names belong to Docker Hub; container runtimes report them in full.
const FIRST_CONTAINERS: &str = r#"
containerStatuses:
{{ range .spec.containers }}
{{ $parts := splitList "/" .image }}
{{ $image := .image }}
{{ if eq (len $parts) 1 }}
{{ $image = printf "docker.io/library/%s" .image }}
{{ else if not (regexMatch "[.:]" (first $parts)) }}
{{ $image = printf "docker.io/%s" .image }}
{{ end }}
- name: {{ .name }}
  image: {{ $image | Quote }}
  lastState: {}
  ready: READY
  restartCount: 0
STATE
{{ end }}
"#;

const RUNNING: &str = r#"
  imageID: {{ printf "%s@sha256:%s" (regexReplaceAll ":[^/]*$" $image "") (sha256sum $image) }}
  containerID: containerd://{{ sha256sum (printf "%s %s 0" $pod.metadata.uid .name) }}
  started: true
  state: {running: {startedAt: {{ $now }}}}
"#;

const PULLING: &str = r#"
  imageID: ""
  started: false
  state:
    waiting:
      reason: ImagePullBackOff
      message: {{ printf "Back-off pulling image %q: ErrImagePull: rpc error: code = NotFound desc = failed to pull and unpack image %q: failed to resolve reference %q: %s: not found" .image $image $image $image | Quote }}
"#;
