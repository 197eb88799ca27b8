//! The application behind every pod: one server for all pod addresses, which answers as the pod
//! that has the address.

mod directory;
mod pods;
mod server;

use std::cell::RefCell;
use std::rc::Rc;

use anyhow::Result;
use kube::Client;
use serde::{Deserialize, Serialize};

use crate::control::{self, Request};
use crate::namespace::Namespace;
use crate::zones::Zone;
use directory::Directory;

/// Pods that are to fail, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Victims {
    pub(crate) namespace: String,
    /// Value of the pods' label `zone`.
    pub(crate) zone: String,
    /// Tag of their image; all versions if there is none.
    pub(crate) version: Option<String>,
}

/// How an application fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Failure {
    /// It answers every request with HTTP 500.
    Http500,
    /// It takes no connections.
    Refused,
}

/// The application, once it serves.
#[derive(Clone)]
pub(crate) struct Upstream {
    directory: Rc<RefCell<Directory>>,
}

impl Upstream {
    /// Starts to serve.
    pub(crate) async fn start(client: Client) -> Result<Self> {
        let directory = Rc::default();
        pods::follow(client, Rc::clone(&directory));
        server::listen(Rc::clone(&directory)).await?;
        Ok(Self { directory })
    }

    /// Makes pods fail from now on, or work again.
    pub(crate) fn fail(&self, victims: Victims, how: Option<Failure>) {
        self.directory.borrow_mut().fail(victims, how);
    }
}

impl Namespace {
    /// Makes the pods of a zone fail, all of them or those of one version, or (with `None`) work
    /// again.
    ///
    /// # Errors
    ///
    /// When the lab does not take the order.
    pub async fn fail(
        &self,
        zone: Zone,
        version: Option<&str>,
        how: Option<Failure>,
    ) -> Result<()> {
        let victims = Victims {
            namespace: self.name().to_owned(),
            zone: zone.short.to_owned(),
            version: version.map(str::to_owned),
        };
        control::ask(&self.run, &Request::Fail { victims, how }).await
    }
}
