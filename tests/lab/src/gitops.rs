//! A stand-in for Argo CD: applies the same manifests again and again.

use std::time::Duration;

use anyhow::Result;
use serde_json::Value;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};

use crate::namespace::Namespace;

/// The field manager of Argo CD's application controller.
pub const GITOPS_MANAGER: &str = "argocd-controller";

/// Manifests kept in force until this goes out of scope.
pub struct GitOps {
    task: JoinHandle<()>,
}

impl Namespace {
    /// Applies manifests now, by server-side apply and as Argo CD's field manager, and again after
    /// every `period`.
    ///
    /// # Errors
    ///
    /// When one of them is refused now.
    pub async fn gitops(&self, manifests: Vec<Value>, period: Duration) -> Result<GitOps> {
        self.apply_as(GITOPS_MANAGER, &manifests).await?;
        let namespace = self.handle();
        let task = tokio::spawn(async move {
            let mut tick = interval(period);
            tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
            tick.tick().await;
            loop {
                tick.tick().await;
                // The API server may be away for a while; the real one tries again, too.
                let _ = namespace.apply_as(GITOPS_MANAGER, &manifests).await;
            }
        });
        Ok(GitOps { task })
    }
}

impl Drop for GitOps {
    fn drop(&mut self) {
        self.task.abort();
    }
}
