//! Who answers at which address.

use std::collections::HashMap;
use std::net::IpAddr;

use tokio::sync::watch;

use super::{Failure, Victims};

/// A pod, as far as its application is concerned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tenant {
    pub(super) namespace: String,
    pub(super) zone: String,
    pub(super) version: String,
}

/// All pods whose application runs.
#[derive(Default)]
pub(super) struct Directory {
    tenants: HashMap<IpAddr, Entry>,
    failures: Vec<(Victims, Failure)>,
}

struct Entry {
    tenant: Tenant,
    /// Dropped with the entry, which closes the tenant's connections.
    present: watch::Sender<()>,
}

impl Directory {
    pub(super) fn enter(&mut self, address: IpAddr, tenant: &Tenant) {
        let new = || Entry { tenant: tenant.clone(), present: watch::Sender::new(()) };
        self.tenants.entry(address).or_insert_with(new).tenant = tenant.clone();
    }

    pub(super) fn leave(&mut self, address: IpAddr) {
        self.tenants.remove(&address);
    }

    pub(super) fn addresses(&self) -> Vec<IpAddr> {
        self.tenants.keys().copied().collect()
    }

    /// The tenant that takes connections at an address, and a sign that lasts as long as it does.
    pub(super) fn door(&self, address: IpAddr) -> Option<watch::Receiver<()>> {
        let entry = self.tenants.get(&address)?;
        let open = self.failure(&entry.tenant) != Some(Failure::Refused);
        open.then(|| entry.present.subscribe())
    }

    /// Status and body with which the tenant of an address answers.
    pub(super) fn answer(&self, address: IpAddr) -> Option<(u16, String)> {
        let tenant = &self.tenants.get(&address)?.tenant;
        match self.failure(tenant) {
            None => Some((200, format!("{}/{}", tenant.zone, tenant.version))),
            Some(Failure::Http500) => Some((500, "on purpose".to_owned())),
            Some(Failure::Refused) => None,
        }
    }

    pub(super) fn fail(&mut self, victims: Victims, how: Option<Failure>) {
        self.failures.retain(|(present, _)| *present != victims);
        self.failures.extend(how.map(|how| (victims, how)));
    }

    fn failure(&self, tenant: &Tenant) -> Option<Failure> {
        let hit = self.failures.iter().find(|(victims, _)| {
            victims.namespace == tenant.namespace
                && victims.zone == tenant.zone
                && victims.version.as_ref().is_none_or(|version| *version == tenant.version)
        });
        hit.map(|(_, how)| *how)
    }
}
