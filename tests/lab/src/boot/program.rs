//! The command line of every component.

use super::probe::Probe;
use crate::paths::RunDir;
use crate::zones::{ZONES, Zone};

/// A component as it is started.
pub(crate) struct Program {
    /// Name in logs and commands.
    pub(crate) component: &'static str,
    /// Name of the program file.
    pub(crate) file: &'static str,
    pub(crate) args: Vec<String>,
    pub(crate) env: Vec<(&'static str, String)>,
    pub(crate) ready: Probe,
}

impl Program {
    fn new(component: &'static str, file: &'static str, ready: Probe) -> Self {
        Self { component, file, args: Vec::new(), env: Vec::new(), ready }
    }

    fn args<const N: usize>(mut self, args: [&str; N]) -> Self {
        self.args.extend(args.map(str::to_owned));
        self
    }

    /// A flag whose value is a file of the run's configuration.
    fn file(mut self, run: &RunDir, flag: &str, name: &str) -> Self {
        self.args.push(format!("{flag}={}", run.config(name).display()));
        self
    }

    fn kubeconfig(mut self, run: &RunDir) -> Self {
        self.args.push(format!("--kubeconfig={}", run.kubeconfig().display()));
        self
    }
}

/// The component with this name.
pub(crate) fn named(run: &RunDir, component: &str) -> Option<Program> {
    let all = [etcd, apiserver, controller_manager, scheduler, kwok, rollouts_controller, istiod];
    all.into_iter()
        .map(|program| program(run))
        .chain(ZONES.map(|zone| envoy(run, zone)))
        .find(|program| program.component == component)
}

pub(super) fn etcd(run: &RunDir) -> Program {
    let mut etcd = Program::new("etcd", "etcd", Probe::Http("127.0.0.1:2379", "/health")).args([
        "--listen-client-urls=http://127.0.0.1:2379",
        "--advertise-client-urls=http://127.0.0.1:2379",
        "--listen-peer-urls=http://127.0.0.1:2380",
        // Nobody needs the data after a power cut.
        "--unsafe-no-fsync",
        "--log-level=warn",
    ]);
    etcd.args.push(format!("--data-dir={}", run.work("etcd").join("data").display()));
    etcd
}

pub(super) fn apiserver(run: &RunDir) -> Program {
    let mut apiserver = Program::new("kube-apiserver", "kube-apiserver", Probe::ApiServer)
        .args([
            "--etcd-servers=http://127.0.0.1:2379",
            "--bind-address=127.0.0.1",
            "--secure-port=6443",
            "--advertise-address=10.254.0.1",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--service-account-issuer=https://lab",
            "--authorization-mode=RBAC",
            // The nodes' names resolve nowhere.
            "--kubelet-preferred-address-types=InternalIP",
            // Never rotated: tests read it by position.
            "--audit-log-maxsize=100000",
        ])
        .file(run, "--tls-cert-file", "server.crt")
        .file(run, "--tls-private-key-file", "server.key")
        .file(run, "--client-ca-file", "ca.crt")
        .file(run, "--service-account-key-file", "service-account.pub")
        .file(run, "--service-account-signing-key-file", "service-account.key")
        .file(run, "--kubelet-client-certificate", "admin.crt")
        .file(run, "--kubelet-client-key", "admin.key")
        .file(run, "--audit-policy-file", "audit-policy.yaml");
    apiserver.args.push(format!("--audit-log-path={}", run.audit_log().display()));
    apiserver
}

pub(super) fn controller_manager(run: &RunDir) -> Program {
    let name = "kube-controller-manager";
    Program::new(name, name, Probe::Nothing)
        .args([
            "--bind-address=127.0.0.1",
            "--leader-elect=false",
            // The pod garbage collector would also take the clients' pods of a lost zone, whose
            // sidecars live on here; the lab does its work where a test takes nodes away.
            "--controllers=*,-bootstrapsigner,-tokencleaner,-nodeipam,-route,\
             -cloud-node-lifecycle,-podgc",
            // KWOK renews every 2 s. Eight missed in a row are no accident even on a busy machine.
            "--node-monitor-period=1s",
            "--node-monitor-grace-period=16s",
        ])
        .file(run, "--root-ca-file", "ca.crt")
        .file(run, "--service-account-private-key-file", "service-account.key")
        .kubeconfig(run)
}

pub(super) fn scheduler(run: &RunDir) -> Program {
    Program::new("kube-scheduler", "kube-scheduler", Probe::Nothing)
        .args(["--bind-address=127.0.0.1", "--leader-elect=false"])
        .kubeconfig(run)
}

pub(super) fn kwok(run: &RunDir) -> Program {
    Program::new("kwok", "kwok", Probe::Nothing)
        .args([
            "--manage-all-nodes=true",
            // It renews after a quarter of this.
            "--node-lease-duration-seconds=8",
            "--node-ip=10.254.1.1",
            "--node-port=10247",
            "--server-address=0.0.0.0:10247",
        ])
        .file(run, "--tls-cert-file", "server.crt")
        .file(run, "--tls-private-key-file", "server.key")
        .file(run, "--config", "kwok.yaml")
        .kubeconfig(run)
}

pub(super) fn rollouts_controller(run: &RunDir) -> Program {
    let ready = Probe::Http("127.0.0.1:18080", "/healthz");
    Program::new("rollouts-controller", "rollouts-controller", ready)
        .args(["--leader-elect=false", "--metricsPort=18090", "--healthzPort=18080"])
        .kubeconfig(run)
}

pub(super) fn istiod(run: &RunDir) -> Program {
    let mut istiod =
        Program::new("istiod", "pilot-discovery", Probe::Http("127.0.0.1:8081", "/ready"))
            .args([
                "discovery",
                "--monitoringAddr=127.0.0.1:15014",
                "--httpAddr=127.0.0.1:8081",
                "--httpsAddr=127.0.0.1:15017",
                "--grpcAddr=127.0.0.1:15010",
                "--secureGRPCAddr=127.0.0.1:15012",
            ])
            .kubeconfig(run);
    istiod.env = [
        ("POD_NAMESPACE", "istio-system"),
        ("POD_NAME", "istiod-lab"),
        ("REVISION", "default"),
        ("CLUSTER_ID", "Kubernetes"),
        // Filters that a stock Envoy does not have.
        ("PILOT_ENABLE_ALPN_FILTER", "false"),
        ("PILOT_ENABLE_METADATA_EXCHANGE", "false"),
        ("PILOT_CERT_PROVIDER", "istiod"),
        ("VALIDATION_WEBHOOK_CONFIG_NAME", "istio-validator"),
        ("ISTIOD_CUSTOM_HOST", "127.0.0.1"),
    ]
    .map(|(name, value)| (name, value.to_owned()))
    .to_vec();
    istiod
}

/// The sidecar of a zone's clients.
pub(super) fn envoy(run: &RunDir, zone: Zone) -> Program {
    let name = match zone.short {
        "a" => "envoy-a",
        "b" => "envoy-b",
        _ => "envoy-c",
    };
    let mut envoy =
        Program::new(name, "envoy", Probe::Tcp(format!("{}:8080", zone.client_address()))).args([
            "--concurrency",
            "1",
            "--log-level",
            "warning",
            // It would share memory with the Envoys of other labs on this machine.
            "--disable-hot-restart",
            "--config-path",
        ]);
    envoy.args.push(run.config(&format!("{name}.json")).display().to_string());
    envoy
}
