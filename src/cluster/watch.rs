//! Watching: one watch a kind, merged into scenes. A kind whose watch fails stays in the scene as it
//! was, marked as stale.

use std::sync::Arc;
use std::time::Duration;

use backon::ExponentialBuilder;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, ExponentialBackoff, watcher};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;
use zone_rollout_core::scene::{
    Autoscaler, Coverage, DestinationRule, Kind, Node, Pod, ReplicaSet, Rollout, Scene, Service,
    VirtualService,
};

use super::connect::KubeCluster;
use super::item::Item;
use super::kinds::{
    AUTOSCALERS, DESTINATION_RULES, KindInfo, NODES, PODS, REPLICA_SETS, ROLLOUTS, SERVICES,
    VIRTUAL_SERVICES,
};
use super::read::{empty, put};
use super::{Observation, Want, clock, explain};

/// Seconds after which the server ends a watch. A connection that died without a word is noticed 5 s
/// later; kube's default would notice it after 295 s.
const WATCH_SECONDS: u32 = 30;
/// The longest time for which a watch may be silent without being noticed.
const LONGEST_SILENCE: Duration = Duration::from_secs(WATCH_SECONDS as u64 + 5);

/// A change of a scene.
type Change = Box<dyn FnOnce(&mut Watched) + Send>;

/// What the watches know so far.
#[derive(Default)]
struct Watched {
    scene: Scene,
    /// Kinds whose first list is still awaited.
    missing: usize,
    /// For how long changes may have been missed, until that was told.
    unwatched: Option<Duration>,
}

impl KubeCluster {
    pub(super) fn watch_scene(&self, want: &Want) -> BoxStream<'static, Observation> {
        let (sender, receiver) = mpsc::channel::<Change>(256);
        let mut missing = 7;
        let selector = want.selector.as_deref();
        self.watch_kind::<Rollout>(want, &ROLLOUTS, selector, |scene| &mut scene.rollouts, &sender);
        self.watch_kind::<ReplicaSet>(
            want,
            &REPLICA_SETS,
            None,
            |scene| &mut scene.replica_sets,
            &sender,
        );
        self.watch_kind::<Pod>(want, &PODS, None, |scene| &mut scene.pods, &sender);
        self.watch_kind::<Node>(want, &NODES, None, |scene| &mut scene.nodes, &sender);
        self.watch_kind::<Service>(want, &SERVICES, None, |scene| &mut scene.services, &sender);
        self.watch_kind::<VirtualService>(
            want,
            &VIRTUAL_SERVICES,
            None,
            |scene| &mut scene.routes,
            &sender,
        );
        self.watch_kind::<DestinationRule>(
            want,
            &DESTINATION_RULES,
            None,
            |scene| &mut scene.rules,
            &sender,
        );
        if want.autoscalers {
            missing += 1;
            self.watch_kind::<Autoscaler>(
                want,
                &AUTOSCALERS,
                None,
                |scene| &mut scene.autoscalers,
                &sender,
            );
        }
        observations(receiver, missing).boxed()
    }

    /// Watches one kind in a task of its own, which ends when nobody listens any more.
    fn watch_kind<T>(
        &self,
        want: &Want,
        info: &KindInfo,
        selector: Option<&str>,
        field: fn(&mut Scene) -> &mut Kind<T>,
        sender: &mpsc::Sender<Change>,
    ) where
        T: DeserializeOwned + Clone + std::fmt::Debug + Send + Sync + 'static,
    {
        let api = self.api::<T>(info, &self.version_of(info), &want.namespace);
        let mut config = watcher::Config::default().timeout(WATCH_SECONDS);
        config.label_selector = selector.or(info.selector).map(str::to_owned);
        let backoff = ExponentialBuilder::default()
            .with_min_delay(Duration::from_millis(250))
            .with_max_delay(Duration::from_secs(5))
            .without_max_times();
        let events = watcher(api, config).backoff(ExponentialBackoff::from(backoff));
        let sender = sender.clone();
        tokio::spawn(async move {
            let mut events = std::pin::pin!(events);
            let mut listed: Option<Kind<T>> = None;
            while let Some(event) = events.next().await {
                let Some(change) = change_of(event, &mut listed, field) else { continue };
                if sender.send(change).await.is_err() {
                    return;
                }
            }
        });
    }
}

/// What an event does to the scene; nothing while a list is being received.
fn change_of<T: Clone + Send + Sync + 'static>(
    event: Result<Event<Item<T>>, watcher::Error>,
    listed: &mut Option<Kind<T>>,
    field: fn(&mut Scene) -> &mut Kind<T>,
) -> Option<Change> {
    match event {
        Ok(Event::Init) => {
            *listed = Some(empty(Coverage::Complete(clock::now())));
            None
        }
        Ok(Event::InitApply(item)) => {
            put(listed.as_mut()?, item);
            None
        }
        Ok(Event::InitDone) => {
            let kind = listed.take()?;
            Some(Box::new(move |watched| watched.relisted(field, kind)))
        }
        Ok(Event::Apply(item)) => Some(Box::new(move |watched| {
            let kind = field(&mut watched.scene);
            put(kind, item);
            kind.coverage = Coverage::Complete(clock::now());
        })),
        Ok(Event::Delete(item)) => Some(Box::new(move |watched| {
            let kind = field(&mut watched.scene);
            kind.items.remove(&item.key());
            kind.broken.remove(&item.key());
            kind.coverage = Coverage::Complete(clock::now());
        })),
        Err(error) => {
            let coverage = coverage_of(&error);
            Some(Box::new(move |watched| watched.failed(field, coverage)))
        }
    }
}

/// What a watch's failure says about its kind; nothing if it is only the end of a resource version.
fn coverage_of(error: &watcher::Error) -> Option<Coverage> {
    let (code, why) = match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => {
            let code = if let kube::Error::Api(status) = error { status.code } else { 0 };
            (code, explain::reason(error))
        }
        watcher::Error::WatchError(status) => (status.code, status.message.clone()),
        watcher::Error::NoResourceVersion => (0, "the server cannot watch it".to_owned()),
    };
    match code {
        403 => Some(Coverage::Forbidden),
        404 => Some(Coverage::KindAbsent),
        410 => None,
        _ => Some(Coverage::Stale { since: clock::now(), why }),
    }
}

impl Watched {
    fn relisted<T>(&mut self, field: fn(&mut Scene) -> &mut Kind<T>, kind: Kind<T>) {
        self.arrived(field);
        *field(&mut self.scene) = kind;
    }

    fn failed<T>(&mut self, field: fn(&mut Scene) -> &mut Kind<T>, coverage: Option<Coverage>) {
        let Some(coverage) = coverage else { return };
        self.arrived(field);
        let kind = field(&mut self.scene);
        match coverage {
            Coverage::Stale { since, why } => {
                let since = match &kind.coverage {
                    Coverage::Complete(known) => *known,
                    Coverage::Stale { since, .. } => *since,
                    _ => since,
                };
                kind.coverage = Coverage::Stale { since, why };
            }
            known => *kind = empty(known),
        }
    }

    /// The first word about a kind completes the scene; every further list may hide a change since
    /// the last word.
    fn arrived<T>(&mut self, field: fn(&mut Scene) -> &mut Kind<T>) {
        let silent = match &field(&mut self.scene).coverage {
            Coverage::NotGiven => {
                self.missing = self.missing.saturating_sub(1);
                return;
            }
            Coverage::Complete(heard) => clock::now().mono.saturating_sub(heard.mono),
            // It was told when it began, and nothing is counted meanwhile.
            Coverage::Stale { .. } => Duration::ZERO,
            _ => LONGEST_SILENCE,
        };
        self.unwatched = self.unwatched.max(Some(silent.min(LONGEST_SILENCE)));
    }
}

/// One observation for each change, so that no state in between goes unseen, from the moment at
/// which every kind was heard of.
fn observations(
    receiver: mpsc::Receiver<Change>,
    missing: usize,
) -> impl Stream<Item = Observation> + Send {
    let watched = Watched { missing, ..Watched::default() };
    futures::stream::unfold((receiver, watched), |(mut receiver, mut watched)| async move {
        loop {
            let change = receiver.recv().await?;
            change(&mut watched);
            if watched.missing == 0 {
                let observation = Observation {
                    scene: Arc::new(watched.scene.clone()),
                    unwatched: std::mem::take(&mut watched.unwatched),
                };
                return Some((observation, (receiver, watched)));
            }
        }
    })
}
