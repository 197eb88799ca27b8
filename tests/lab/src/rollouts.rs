//! Groups of Rollouts: what they are made from, and waiting for them.

use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};
use zone_rollout_core::layout::{self, Spec, SpecZone};

use crate::kinds::ROLLOUT;
use crate::namespace::Namespace;
use crate::zones::ZONES;

/// Enough for three Rollouts to start on a busy machine.
const WITHIN: Duration = Duration::from_mins(1);

impl Namespace {
    /// Applies objects and waits until all Rollouts are Healthy.
    ///
    /// # Errors
    ///
    /// When an object is refused or a Rollout does not get Healthy.
    pub async fn deploy(&self, objects: &[Value]) -> Result<()> {
        self.apply(objects).await?;
        self.await_healthy().await
    }

    /// Waits until a Rollout is in a phase that its controller has derived from its present spec.
    ///
    /// # Errors
    ///
    /// When it does not get there in a minute.
    pub async fn await_phase(&self, rollout: &str, phase: &str) -> Result<()> {
        self.until(format!("Rollout {rollout} to be {phase}"), WITHIN, async || {
            let rollout = self.get(ROLLOUT, rollout).await?;
            Ok((is_observed(&rollout) && rollout["status"]["phase"] == phase).then_some(()))
        })
        .await
    }

    /// Waits until every Rollout is Healthy.
    ///
    /// # Errors
    ///
    /// When one does not get there in a minute.
    pub async fn await_healthy(&self) -> Result<()> {
        for rollout in self.list(ROLLOUT).await? {
            let name = rollout["metadata"]["name"].as_str().unwrap_or_default();
            self.await_phase(name, "Healthy").await?;
        }
        Ok(())
    }

    /// Gives a Rollout's one container another image.
    ///
    /// # Errors
    ///
    /// When the patch is refused.
    pub async fn set_image(&self, rollout: &str, image: &str) -> Result<()> {
        let container = json!({"name": "app", "image": image});
        self.patch(
            ROLLOUT,
            rollout,
            &json!({"spec": {"template": {"spec": {"containers": [container]}}}}),
        )
        .await
    }

    /// What to make a layout from: service `test`, the lab's zones, three pods a zone, pauses of
    /// two seconds.
    pub fn spec(&self, image: &str) -> Spec {
        let zones = ZONES.map(|zone| SpecZone {
            short: zone.short.to_owned(),
            topology: zone.topology.to_owned(),
        });
        Spec {
            name: "test".to_owned(),
            namespace: self.name().to_owned(),
            image: image.to_owned(),
            zones: zones.to_vec(),
            replicas: 3,
            port: 8080,
            target_port: 9090,
            gate: true,
            weights: vec![10, 20, 50, 80],
            pause: "2s".to_owned(),
            progress_deadline_seconds: 60,
            istio_api_version: "v1".to_owned(),
        }
    }

    /// The objects of the ring layout: own zone, then the next, then all others.
    pub fn ring(&self, image: &str) -> Vec<Value> {
        layout::ring(&self.spec(image))
    }

    /// The objects of the zone-local layout: own zone only.
    pub fn zone_local(&self, image: &str) -> Vec<Value> {
        layout::zone_local(&self.spec(image))
    }
}

/// The controller writes the generation that it has seen as a string.
fn is_observed(rollout: &Value) -> bool {
    let generation = rollout["metadata"]["generation"].as_i64().map(|it| it.to_string());
    rollout["status"]["observedGeneration"].as_str() == generation.as_deref()
}
