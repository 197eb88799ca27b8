//! Keeping the lease of a group: taking it, renewing it, noticing that it is gone.

use std::convert::Infallible;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::time::timeout;

use crate::cluster::{Holder, LEASE_SECONDS, LeaseState, Leases};
use crate::error::Error;
use crate::render::Io;

/// How often a lease of somebody else is looked at while it may have been left behind.
const LOOK: Duration = Duration::from_secs(1);

/// For how long a lease that is not renewed counts.
const EXPIRY: Duration = Duration::from_secs(LEASE_SECONDS as u64);
/// How often it is renewed, and how long a request for it may take.
const RENEW: Duration = Duration::from_secs(LEASE_SECONDS as u64 / 3);

/// When the lease was renewed last, and why it has not been since.
struct Renewal {
    at: Instant,
    failure: Option<String>,
}

/// Whose the lease is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Keeping {
    /// Ours.
    Ours,
    /// Somebody else's; who.
    Lost(String),
}

/// The lease of one group, held by this process.
pub struct Keeper<'a> {
    cluster: &'a dyn Leases,
    namespace: String,
    name: String,
    holder: Holder,
    renewed: Mutex<Renewal>,
    lost: watch::Sender<Option<String>>,
}

impl<'a> Keeper<'a> {
    /// Takes the lease of a group.
    ///
    /// A lease whose holder is a dead process of this host is taken over at once, any other one that
    /// is held only after it was not renewed for its whole duration on our own clock.
    ///
    /// # Errors
    /// If somebody else holds it and renews it, or it cannot be read or written.
    pub async fn take(
        cluster: &'a dyn Leases,
        namespace: &str,
        group: &str,
        run: &str,
        io: &mut Io,
    ) -> Result<Self, Error> {
        let keeper = Self {
            cluster,
            namespace: namespace.to_owned(),
            name: format!("zone-rollout-{group}"),
            holder: this_process(run),
            renewed: Mutex::new(Renewal { at: Instant::now(), failure: None }),
            lost: watch::Sender::new(None),
        };
        let mut before: Option<(LeaseState, Instant)> = None;
        loop {
            let started = Instant::now();
            let state = keeper.state().await?;
            if keeper.may_take(state.as_ref(), before.as_ref())
                && keeper.put(state.as_ref(), Some(&keeper.holder)).await?
            {
                keeper.renewed_at(started);
                return Ok(keeper);
            }
            if let Some(state) = state {
                before = Some(keeper.still_held(state, before, io)?);
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    fn may_take(&self, state: Option<&LeaseState>, before: Option<&(LeaseState, Instant)>) -> bool {
        let Some(state) = state else { return true };
        let Some(holder) = &state.holder else { return true };
        if is_dead_here(holder, &self.holder) {
            return true;
        }
        let expired = Duration::from_secs(state.seconds.into());
        before.is_some_and(|(seen, since)| {
            seen.renewed == state.renewed
                && seen.holder == state.holder
                && since.elapsed() >= expired
        })
    }

    /// A lease that was renewed while we looked is alive.
    fn still_held(
        &self,
        state: LeaseState,
        before: Option<(LeaseState, Instant)>,
        io: &mut Io,
    ) -> Result<(LeaseState, Instant), Error> {
        let Some(holder) = state.holder.clone() else { return Ok((state, Instant::now())) };
        match before {
            Some((seen, since)) if seen.renewed == state.renewed && seen.holder == state.holder => {
                Ok((seen, since))
            }
            Some(_) => Err(self.is_driven(&holder)),
            None => {
                io.note(&format!(
                    "Another run has the lease ({}); looking for up to {}s whether it is alive.",
                    whose(&holder),
                    state.seconds
                ));
                Ok((state, Instant::now()))
            }
        }
    }

    fn is_driven(&self, holder: &Holder) -> Error {
        Error::refused("the group is being driven by another run")
            .because(format!("lease `{}` is held by {}", self.name, whose(holder)))
            .hint(format!(
                "watch what it does: kubectl zone-rollout status -w -n {}",
                self.namespace
            ))
    }

    async fn state(&self) -> Result<Option<LeaseState>, Error> {
        self.soon("read", self.cluster.lease(&self.namespace, &self.name)).await
    }

    async fn put(&self, over: Option<&LeaseState>, holder: Option<&Holder>) -> Result<bool, Error> {
        self.soon("write", self.cluster.put_lease(&self.namespace, &self.name, over, holder)).await
    }

    /// An answer about a lease that comes after the lease has expired is of no use.
    async fn soon<T>(
        &self,
        verb: &str,
        request: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        timeout(RENEW, request).await.unwrap_or_else(|_| {
            Err(Error::unexpected(format!("cannot {verb} lease `{}`", self.name))
                .because(format!("no answer within {}s", RENEW.as_secs())))
        })
    }

    fn renewal(&self) -> MutexGuard<'_, Renewal> {
        self.renewed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn renewed_at(&self, started: Instant) {
        *self.renewal() = Renewal { at: started, failure: None };
    }

    /// True while nobody else may think that the lease was left behind.
    pub fn is_fresh(&self) -> bool {
        self.renewal().at.elapsed() < EXPIRY
    }

    /// Why the lease could not be renewed for longer than it counts, if that is so.
    pub fn trouble(&self) -> Option<String> {
        let renewal = self.renewal();
        let since = renewal.at.elapsed();
        let why = renewal.failure.as_deref().unwrap_or("no answer");
        (since >= EXPIRY)
            .then(|| format!("the lease could not be renewed for {}s ({why})", since.as_secs()))
    }

    /// Renews the lease at a third of its duration, for ever; a loss is told by [`Keeper::lost`].
    pub async fn renew(&self) -> Infallible {
        let mut due = tokio::time::interval(RENEW);
        due.tick().await;
        loop {
            due.tick().await;
            match self.renew_once().await {
                Ok(Keeping::Ours) => {}
                Ok(Keeping::Lost(holder)) => {
                    self.lost.send_replace(Some(holder));
                    return std::future::pending().await;
                }
                // It is tried again; `is_fresh` says when that is no longer enough.
                Err(error) => self.renewal().failure = Some(error.one_line()),
            }
        }
    }

    async fn renew_once(&self) -> Result<Keeping, Error> {
        let started = Instant::now();
        let state = self.state().await?;
        let keeping = self.whose(state.as_ref());
        if keeping == Keeping::Ours && self.put(state.as_ref(), Some(&self.holder)).await? {
            self.renewed_at(started);
        }
        Ok(keeping)
    }

    fn whose(&self, state: Option<&LeaseState>) -> Keeping {
        match state.map(|state| state.holder.as_ref()) {
            None => Keeping::Lost("nobody: it was deleted".to_owned()),
            Some(None) => Keeping::Lost("nobody: it was released".to_owned()),
            Some(Some(holder)) if *holder == self.holder => Keeping::Ours,
            Some(Some(holder)) => Keeping::Lost(whose(holder)),
        }
    }

    /// Reads whose the lease is now.
    ///
    /// # Errors
    /// If it cannot be read.
    pub async fn keeping(&self) -> Result<Keeping, Error> {
        let state = self.state().await?;
        Ok(self.whose(state.as_ref()))
    }

    /// Waits until somebody else has the lease; returns who.
    pub async fn lost(&self) -> String {
        let mut lost = self.lost.subscribe();
        let holder = match lost.wait_for(Option::is_some).await {
            Ok(holder) => holder.clone(),
            Err(_) => None,
        };
        match holder {
            Some(holder) => holder,
            None => std::future::pending().await,
        }
    }

    /// Gives the lease back, if it is still ours.
    ///
    /// # Errors
    /// If it cannot be read or written; it then expires by itself.
    pub async fn release(&self) -> Result<(), Error> {
        let state = self.state().await?;
        if self.whose(state.as_ref()) == Keeping::Ours {
            self.put(state.as_ref(), None).await?;
        }
        Ok(())
    }
}

fn whose(holder: &Holder) -> String {
    format!("run {} on {} (process {})", holder.run, holder.host, holder.pid)
}

fn this_process(run: &str) -> Holder {
    let read = |path: &str| {
        std::fs::read_to_string(path).map(|text| text.trim().to_owned()).unwrap_or_default()
    };
    let host = hostname::get().unwrap_or_default().to_string_lossy().into_owned();
    Holder {
        run: run.to_owned(),
        host,
        boot: read("/proc/sys/kernel/random/boot_id"),
        pid: std::process::id(),
    }
}

/// True if the holder ran on this host, in this start of it, and its process is gone.
fn is_dead_here(holder: &Holder, own: &Holder) -> bool {
    let here = !own.boot.is_empty() && holder.boot == own.boot && holder.host == own.host;
    here && holder.pid != own.pid
        && !std::path::Path::new(&format!("/proc/{}", holder.pid)).exists()
}
