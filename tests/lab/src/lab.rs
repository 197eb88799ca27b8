//! A test's way into the lab that it runs in.

use std::env;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock};

use anyhow::{Context, Result};
use kube::Client;
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

use crate::client;
use crate::control::{self, Request};
use crate::namespace::Namespace;
use crate::outage;
use crate::paths::RunDir;

/// Held by every test of a test program, alone by those that disturb the others.
static TURN: LazyLock<Arc<RwLock<()>>> = LazyLock::new(Arc::default);
/// Makes the names of namespaces unique within a test program.
static NAMESPACES: AtomicU32 = AtomicU32::new(0);

/// The lab, for the length of a test.
pub struct Lab {
    pub(crate) client: Client,
    pub(crate) run: RunDir,
    _turn: Turn,
}

enum Turn {
    Shared { _guard: OwnedRwLockReadGuard<()> },
    Alone { _guard: OwnedRwLockWriteGuard<()> },
}

impl Lab {
    /// For tests that keep to namespaces of their own; they run side by side.
    ///
    /// # Errors
    ///
    /// When the test does not run in a lab.
    pub async fn connect() -> Result<Self> {
        let guard = Arc::clone(&TURN).read_owned().await;
        Self::with(Turn::Shared { _guard: guard }).await
    }

    /// For tests that take nodes away, restart components or measure shares: no other test of the
    /// same program runs meanwhile.
    ///
    /// # Errors
    ///
    /// When the test does not run in a lab.
    pub async fn connect_alone() -> Result<Self> {
        let guard = Arc::clone(&TURN).write_owned().await;
        Self::with(Turn::Alone { _guard: guard }).await
    }

    async fn with(turn: Turn) -> Result<Self> {
        let run = env::var_os("ZONE_LAB").context(
            "not in a lab; this test needs one: `cargo run -p zone-lab --bin lab -- test`",
        )?;
        let run = RunDir::at(run);
        let client = client::from_file(&run.kubeconfig()).await?;
        control::ask(&run, &Request::StartAll).await?;
        outage::repair(&client).await?;
        Ok(Self { client, run, _turn: turn })
    }

    /// A client with all rights.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// A new namespace whose name starts with `stem`. It is deleted when the test is over.
    ///
    /// # Errors
    ///
    /// When the API server does not create it.
    pub async fn namespace(&self, stem: &str) -> Result<Namespace> {
        let number = NAMESPACES.fetch_add(1, Ordering::Relaxed);
        let name = format!("{stem}-{}-{number}", std::process::id());
        Namespace::create(self.client.clone(), self.run.clone(), name).await
    }

    /// A namespace that was there before and stays.
    ///
    /// # Errors
    ///
    /// When the lab's audit log cannot be read.
    pub fn existing_namespace(&self, name: &str) -> Result<Namespace> {
        Namespace::existing(self.client.clone(), self.run.clone(), name)
    }

    /// Kills a component. It does not come back before [`Lab::start`].
    ///
    /// # Errors
    ///
    /// When no such component runs.
    pub async fn stop(&self, component: &str) -> Result<()> {
        control::ask(&self.run, &Request::Stop { component: component.to_owned() }).await
    }

    /// Starts a component that was stopped and waits until it is ready.
    ///
    /// # Errors
    ///
    /// When it runs already or does not get ready.
    pub async fn start(&self, component: &str) -> Result<()> {
        control::ask(&self.run, &Request::Start { component: component.to_owned() }).await
    }
}
