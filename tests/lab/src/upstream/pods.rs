//! Keeps the directory true to the pods of the cluster.

use std::cell::RefCell;
use std::collections::HashSet;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::watcher;
use kube::{Api, Client, ResourceExt};
use tokio::task::spawn_local;
use tokio::time::sleep;

use super::directory::{Directory, Tenant};

/// A terminated pod answers for this long: proxies hear a moment later than the API server that it
/// is gone, and a well-behaved application waits for them.
const LINGER: Duration = Duration::from_secs(3);

const RETRY: Duration = Duration::from_millis(200);

type Shared = Rc<RefCell<Directory>>;

pub(super) fn follow(client: Client, directory: Shared) {
    spawn_local(async move {
        let pods: Api<Pod> = Api::all(client);
        let mut events = watcher(pods, watcher::Config::default()).boxed();
        let mut listed = HashSet::new();
        while let Some(event) = events.next().await {
            match event {
                // The watch begins anew, for as long as it takes the API server to come back.
                Err(_) => sleep(RETRY).await,
                Ok(watcher::Event::Init) => listed.clear(),
                Ok(watcher::Event::InitApply(pod)) => {
                    listed.extend(address(&pod));
                    update(&directory, &pod);
                }
                Ok(watcher::Event::InitDone) => retire_others(&directory, &listed),
                Ok(watcher::Event::Apply(pod)) => update(&directory, &pod),
                Ok(watcher::Event::Delete(pod)) => retire(&directory, address(&pod)),
            }
        }
    });
}

fn update(directory: &Shared, pod: &Pod) {
    let Some(address) = address(pod) else { return };
    if runs(pod) {
        directory.borrow_mut().enter(address, &tenant(pod));
    } else {
        // It crashed: nobody waits for anything.
        directory.borrow_mut().leave(address);
    }
}

fn retire(directory: &Shared, address: Option<IpAddr>) {
    let Some(address) = address else { return };
    let directory = Rc::clone(directory);
    spawn_local(async move {
        sleep(LINGER).await;
        directory.borrow_mut().leave(address);
    });
}

fn retire_others(directory: &Shared, present: &HashSet<IpAddr>) {
    let addresses = directory.borrow().addresses();
    for address in addresses.into_iter().filter(|address| !present.contains(address)) {
        retire(directory, Some(address));
    }
}

fn address(pod: &Pod) -> Option<IpAddr> {
    pod.status.as_ref()?.pod_ip.as_ref()?.parse().ok()
}

fn runs(pod: &Pod) -> bool {
    let containers =
        pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
    containers.filter_map(|container| container.state.as_ref()).any(|state| state.running.is_some())
}

fn tenant(pod: &Pod) -> Tenant {
    let image = pod.spec.iter().flat_map(|spec| &spec.containers).find_map(|it| it.image.as_ref());
    let version = image.and_then(|image| image.rsplit_once(':')).map_or("latest", |(_, tag)| tag);
    Tenant {
        namespace: pod.namespace().unwrap_or_default(),
        zone: pod.labels().get("zone").cloned().unwrap_or_else(|| "-".to_owned()),
        version: version.to_owned(),
    }
}
