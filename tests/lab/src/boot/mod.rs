//! Starts the control plane: what can start side by side does, and each phase is timed.

pub(crate) mod clients;
mod cluster;
mod files;
mod phases;
pub(crate) mod pki;
mod probe;
pub(crate) mod program;

use anyhow::Result;
use futures::future::try_join_all;
use kube::Client;

use crate::client;
use crate::inner::supervisor::Supervisor;
use crate::paths::RunDir;
use crate::upstream::Upstream;
use crate::zones::ZONES;
pub(crate) use cluster::install_crds;
use phases::Phases;

/// Returns the application as soon as everything works.
pub(crate) async fn boot(run: &RunDir, supervisor: &Supervisor) -> Result<Upstream> {
    let mut phases = Phases::begin();
    files::write(run)?;
    supervisor.start(&program::etcd(run))?;
    supervisor.start_ready(program::apiserver(run)).await?;
    phases.done("etcd, kube-apiserver");

    let client = client::from_file(&run.kubeconfig()).await?;
    tokio::try_join!(
        cluster(run, supervisor, &client),
        install_crds(run, &client),
        cluster::configure_istio(&client),
    )?;
    phases.done("nodes, custom resources");

    tokio::try_join!(
        supervisor.start_ready(program::rollouts_controller(run)),
        supervisor.start_ready(program::istiod(run)),
        clients::apply(&client),
    )?;
    cluster::webhook_is_strict(&client).await?;
    phases.done("rollouts-controller, istiod");

    for zone in ZONES {
        clients::write_bootstrap(run, &client, zone).await?;
    }
    try_join_all(ZONES.map(|zone| supervisor.start_ready(program::envoy(run, zone)))).await?;
    let upstream = Upstream::start(client).await?;
    phases.done("envoys, application");
    phases.end();
    Ok(upstream)
}

/// The components that make a cluster of the API server, with their nodes.
async fn cluster(run: &RunDir, supervisor: &Supervisor, client: &Client) -> Result<()> {
    supervisor.start(&program::controller_manager(run))?;
    supervisor.start(&program::scheduler(run))?;
    supervisor.start(&program::kwok(run))?;
    cluster::join_nodes(client).await
}
