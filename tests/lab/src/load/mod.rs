//! Clients of the mesh: requests to a namespace's service `test` through the real Envoys.

mod answer;
mod request;
mod tally;

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use tokio::runtime;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

pub use answer::Answer;
pub use tally::{Bucket, Sample, Tally};

use crate::namespace::Namespace;
use crate::zones::{ZONES, Zone};
use request::Clients;

/// Enough for istiod to tell every Envoy about a new namespace on a busy machine.
const SERVED_WITHIN: Duration = Duration::from_secs(30);

impl Namespace {
    /// Starts a steady load of `rate` requests a second from the clients of each zone.
    ///
    /// # Errors
    ///
    /// When no thread can be started.
    pub fn load(&self, zones: &[Zone], rate: u32) -> Result<Load> {
        let (stop, stopped) = oneshot::channel();
        let samples = Arc::default();
        let driver = Driver {
            clients: Clients::new(self.name()),
            zones: zones.to_vec(),
            samples: Arc::clone(&samples),
        };
        // A thread of its own: whatever a test does meanwhile must not hold back requests.
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let thread = thread::Builder::new()
            .name("load".to_owned())
            .spawn(move || runtime.block_on(driver.drive(rate, stopped)))?;
        Ok(Load { stop, samples, thread })
    }

    /// Sends one request from the clients of a zone.
    pub async fn ask(&self, zone: Zone) -> Answer {
        Clients::new(self.name()).ask(zone).await
    }

    /// Waits until the clients of every zone get answers from pods.
    ///
    /// # Errors
    ///
    /// When they do not within half a minute.
    pub async fn await_served(&self) -> Result<()> {
        for zone in ZONES {
            let what = format!("an answer to the clients of zone {}", zone.short);
            self.until(what, SERVED_WITHIN, async || match self.ask(zone).await {
                Answer::Pod { .. } => Ok(Some(())),
                other => Err(anyhow!("the last answer was {other}")),
            })
            .await?;
        }
        Ok(())
    }
}

/// A load that runs.
pub struct Load {
    stop: oneshot::Sender<()>,
    samples: Arc<Mutex<Vec<Sample>>>,
    thread: thread::JoinHandle<()>,
}

impl Load {
    /// Everything answered until now.
    ///
    /// # Panics
    ///
    /// When the load has broken down.
    pub fn so_far(&self) -> Tally {
        Tally::new(self.samples.lock().expect("the load has panicked").clone())
    }

    /// Stops, waits for the answers still to come, and adds up.
    ///
    /// # Errors
    ///
    /// When the load has broken down.
    pub async fn stop(self) -> Result<Tally> {
        // A load whose receiver is gone has broken down, which joining it tells.
        let _ = self.stop.send(());
        let joined = tokio::task::spawn_blocking(|| self.thread.join()).await?;
        joined.map_err(|_| anyhow!("the load panicked"))?;
        let samples = Arc::into_inner(self.samples).context("the load still runs")?;
        Ok(Tally::new(samples.into_inner().map_err(|_| anyhow!("the load panicked"))?))
    }
}

struct Driver {
    clients: Clients,
    zones: Vec<Zone>,
    samples: Arc<Mutex<Vec<Sample>>>,
}

impl Driver {
    async fn drive(self, rate: u32, mut stopped: oneshot::Receiver<()>) {
        let mut requests = JoinSet::new();
        let mut tick = interval(Duration::from_secs(1) / rate);
        tick.set_missed_tick_behavior(MissedTickBehavior::Burst);
        loop {
            tokio::select! {
                biased;
                _ = &mut stopped => break,
                _ = tick.tick() => self.send(&mut requests),
                Some(_) = requests.join_next() => {}
            }
        }
        requests.join_all().await;
    }

    /// One request from the clients of every zone.
    fn send(&self, requests: &mut JoinSet<()>) {
        for &zone in &self.zones {
            let (clients, samples) = (self.clients.clone(), Arc::clone(&self.samples));
            requests.spawn(async move {
                let sent = Instant::now();
                let answer = clients.ask(zone).await;
                let sample = Sample { sent, client: zone, answer };
                samples.lock().expect("nothing panics while it holds the lock").push(sample);
            });
        }
    }
}
