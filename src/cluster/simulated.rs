//! A simulated cluster behind the port, and the clock that goes with it. Its time passes only while
//! somebody waits for it: how long a program takes to think changes nothing in what happens.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use tokio::sync::mpsc;
use zone_rollout_core::scene::Scene;
use zone_rollout_core::sim::{Act, World};
use zone_rollout_core::time::Moment;
use zone_rollout_core::write::{Write, Written};

use super::lease::LeaseState;
use super::{Clock, Cluster, Holder, Leases, Observation, Permission, Want};
use crate::error::Error;
use crate::render::Voice;
use crate::render::words::clock;

/// A program that was late by more than this does not hurry to catch up.
const LATE: Duration = Duration::from_millis(250);

/// Something that is done to the cluster as soon as a condition holds.
pub(crate) struct Cue {
    /// The condition.
    pub(crate) when: fn(&World) -> bool,
    /// What is done.
    pub(crate) acts: fn(&World) -> Vec<Act>,
    /// Told then.
    pub(crate) said: &'static str,
}

/// A simulated cluster.
pub(crate) struct SimulatedCluster {
    state: Mutex<State>,
    /// Seconds that pass there in one second here.
    speed: u32,
    voice: Voice,
}

struct State {
    world: World,
    cues: VecDeque<Cue>,
    watches: Vec<mpsc::UnboundedSender<Observation>>,
    lease: Option<LeaseState>,
    /// An instant here and the moment there that belongs to it.
    pace: (Instant, Moment),
}

impl SimulatedCluster {
    /// This world, with its cues in their order, and a voice for what they say.
    pub(crate) fn new(world: World, cues: Vec<Cue>, speed: u32, voice: Voice) -> Self {
        let pace = (Instant::now(), world.now());
        let (watches, lease) = (Vec::new(), None);
        let state = State { world, cues: cues.into(), watches, lease, pace };
        Self { state: Mutex::new(state), speed: speed.max(1), voice }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the next thing that happens, but not beyond this moment. False if it is past.
    async fn pass(&self, until: Moment) -> bool {
        let (next, due) = {
            let mut state = self.state();
            let now = state.world.now();
            if now.mono >= until.mono {
                return false;
            }
            let next = state.world.next_due().filter(|due| due.mono < until.mono).unwrap_or(until);
            (next, state.instant(next, self.speed))
        };
        tokio::time::sleep_until(due.into()).await;
        let said = self.state().advance(next);
        for said in said {
            self.voice.note(&format!("{} -- {said}", clock(next.wall)));
        }
        // Those who watch get a turn before time goes on.
        tokio::task::yield_now().await;
        true
    }
}

impl State {
    /// The instant here that belongs to a moment there.
    fn instant(&mut self, at: Moment, speed: u32) -> Instant {
        let due = self.pace.0 + at.mono.saturating_sub(self.pace.1.mono) / speed;
        if due + LATE < Instant::now() {
            self.pace = (Instant::now(), at);
            return self.pace.0;
        }
        due
    }

    /// Lets time pass, and does what is to be done then; returns what is said about it.
    fn advance(&mut self, to: Moment) -> Vec<&'static str> {
        let due = self.world.next_due().is_some_and(|due| due.mono <= to.mono);
        self.world.advance(to);
        let mut said = Vec::new();
        while let Some(cue) = self.cues.pop_front_if(|cue| (cue.when)(&self.world)) {
            for act in (cue.acts)(&self.world) {
                // A cue about something that is gone has nothing to do any more.
                let _gone = self.world.act(act);
            }
            said.push(cue.said);
        }
        if due || !said.is_empty() {
            self.show();
        }
        said
    }

    /// Shows everything to those who watch.
    fn show(&mut self) {
        let scene = Arc::new(self.world.scene());
        self.watches.retain(|watch| {
            watch.send(Observation { scene: Arc::clone(&scene), unwatched: None }).is_ok()
        });
    }
}

impl Clock for SimulatedCluster {
    fn now(&self) -> Moment {
        self.state().world.now()
    }

    fn until(&self, at: Moment) -> BoxFuture<'_, ()> {
        Box::pin(async move { while self.pass(at).await {} })
    }

    fn pace(&self) -> u32 {
        self.speed
    }
}

impl Cluster for SimulatedCluster {
    fn read<'a>(&'a self, _: &'a Want) -> BoxFuture<'a, Result<Scene, Error>> {
        std::future::ready(Ok(self.state().world.scene())).boxed()
    }

    fn watch(&self, _: &Want) -> BoxStream<'static, Observation> {
        let (sender, receiver) = mpsc::unbounded_channel();
        let mut state = self.state();
        state.watches.push(sender);
        state.show();
        futures::stream::unfold(receiver, |mut receiver| async {
            match receiver.recv().await {
                Some(seen) => Some((seen, receiver)),
                // A watch never ends.
                None => std::future::pending().await,
            }
        })
        .boxed()
    }

    fn write<'a>(&'a self, write: &'a Write) -> BoxFuture<'a, Written> {
        let mut state = self.state();
        let written = state.world.apply(write);
        state.show();
        std::future::ready(written).boxed()
    }

    fn lacks<'a>(
        &'a self,
        _: &'a str,
        _: &'a [Permission],
    ) -> BoxFuture<'a, Result<Vec<Permission>, Error>> {
        std::future::ready(Ok(Vec::new())).boxed()
    }
}

impl Leases for SimulatedCluster {
    fn lease<'a>(
        &'a self,
        _: &'a str,
        _: &'a str,
    ) -> BoxFuture<'a, Result<Option<LeaseState>, Error>> {
        std::future::ready(Ok(self.state().lease.clone())).boxed()
    }

    fn put_lease<'a>(
        &'a self,
        _: &'a str,
        _: &'a str,
        over: Option<&'a LeaseState>,
        holder: Option<&'a Holder>,
    ) -> BoxFuture<'a, Result<bool, Error>> {
        let mut state = self.state();
        let free = state.lease.as_ref() == over;
        if free {
            let renewed = state.world.now().wall;
            state.lease = Some(LeaseState::simulated(over, holder.cloned(), renewed));
        }
        std::future::ready(Ok(free)).boxed()
    }
}
