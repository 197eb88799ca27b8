//! The stories that the simulated cluster tells as well, told by the real controllers. What they show is
//! kept in `tests/lab/recordings`; a test of the core compares the simulated cluster with it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use futures::StreamExt;
use kube::api::DynamicObject;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, watcher};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use zone_lab::kinds::{DESTINATION_RULE, Kind, REPLICA_SET, ROLLOUT, VIRTUAL_SERVICE};
use zone_lab::{Lab, Namespace};
use zone_rollout_core::scene::{DestinationRule, ReplicaSet, Rollout, VirtualService};
use zone_rollout_core::sim::Face;
use zone_rollout_core::sim::story::{
    Deed, LONG, REST, Record, Recorder, SETTLED, Story, When, beginning, rollout_is, stories,
};

use crate::support::{ensure_code, stable_image, weight as canary_weight, zone};

/// Set to anything, it writes what was seen instead of comparing.
const UPDATE: &str = "ZONE_LAB_RECORD";
/// Stories that are told at the same time.
const AT_ONCE: usize = 4;
const NAME: &str = "test-a";

#[tokio::test]
async fn the_recordings_are_what_the_controllers_show() -> Result<()> {
    let lab = Lab::connect().await?;
    let told = futures::stream::iter(stories())
        .map(|story| {
            let lab = &lab;
            async move { (story.name, tell(lab, &story).await) }
        })
        .buffer_unordered(AT_ONCE)
        .collect::<Vec<(&str, Result<Record>)>>()
        .await;
    let mut differences = Vec::new();
    for (name, told) in told {
        let record = match told {
            Ok(record) => record,
            Err(error) => {
                differences.push(format!("{name}: {error:#}"));
                continue;
            }
        };
        let file =
            PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("recordings/{name}.json"));
        let text = format!("{}\n", serde_json::to_string_pretty(&record)?);
        if std::env::var_os(UPDATE).is_some() {
            std::fs::write(file, text)?;
        } else if serde_json::from_str::<Record>(&std::fs::read_to_string(file)?)? != record {
            differences.push(format!("{name}: {text}"));
        }
    }
    ensure!(differences.is_empty(), "other than recorded:\n{}", differences.join("\n"));
    Ok(())
}

/// Tells a story and returns what was seen of zone a.
async fn tell(lab: &Lab, story: &Story) -> Result<Record> {
    let namespace = lab.namespace(story.name).await?;
    namespace.deploy(&beginning(story, namespace.name())).await?;
    let recording = Recording::begin(&namespace, story).await?;
    let mut unready: Vec<String> = Vec::new();
    for beat in &story.beats {
        wait(&namespace, story, beat.when).await?;
        tokio::time::sleep(SETTLED).await;
        carry_out(&namespace, beat.deed, &mut unready).await?;
    }
    wait(&namespace, story, story.end).await?;
    tokio::time::sleep(REST).await;
    Ok(recording.end())
}

async fn wait(namespace: &Namespace, story: &Story, when: When) -> Result<()> {
    let start = Instant::now();
    while !is(namespace, when, start.elapsed()).await? {
        if start.elapsed() > LONG {
            bail!("{}: {when:?} never came", story.name);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

async fn is(namespace: &Namespace, when: When, waited: Duration) -> Result<bool> {
    Ok(match when {
        When::Now => true,
        When::After(seconds) => waited >= Duration::from_secs(seconds),
        When::Weight(weight) => canary_weight(namespace, zone("a")).await? == u64::from(weight),
        _ => {
            let rollout: Rollout = serde_json::from_value(namespace.get(ROLLOUT, NAME).await?)?;
            rollout_is(&rollout, when)
        }
    })
}

async fn carry_out(namespace: &Namespace, deed: Deed, unready: &mut Vec<String>) -> Result<()> {
    let spec =
        |spec: Value| async move { namespace.patch(ROLLOUT, NAME, &json!({ "spec": spec })).await };
    let container;
    let upstream: &[&str] = match deed {
        // Unlike a merge patch, it leaves the rest of the container as it is.
        Deed::Image(image) => {
            container = format!("app={image}");
            &["set", "image", NAME, &container]
        }
        Deed::Hold(hold) => return spec(json!({ "paused": hold })).await,
        Deed::Scale(replicas) => return spec(json!({ "replicas": replicas })).await,
        Deed::Unready(count) => return lose(namespace, count, unready).await,
        Deed::ReadyAgain => {
            for pod in unready.drain(..) {
                namespace.release_ready(&pod).await?;
            }
            return Ok(());
        }
        Deed::Promote => &["promote", NAME],
        Deed::PromoteFull => &["promote", NAME, "--full"],
        Deed::Abort => &["abort", NAME],
        Deed::Retry => &["retry", "rollout", NAME],
        Deed::Undo => &["undo", NAME],
    };
    ensure_code(&namespace.argo(upstream.iter().copied()).run().await?, 0)
}

/// Takes the readiness of so many stable pods.
async fn lose(namespace: &Namespace, count: usize, unready: &mut Vec<String>) -> Result<()> {
    let image = stable_image(namespace, zone("a")).await?;
    let pods = namespace.pods(zone("a")).await?;
    let runs = |pod: &k8s_openapi::api::core::v1::Pod| {
        let spec = pod.spec.as_ref();
        spec.is_some_and(|spec| spec.containers[0].image.as_deref() == Some(image.as_str()))
    };
    for pod in pods.into_iter().filter(runs).take(count) {
        let name = pod.metadata.name.unwrap_or_default();
        namespace.hold_unready(&name).await?;
        unready.push(name);
    }
    Ok(())
}

/// Everything that the API server tells about zone a.
struct Recording {
    recorder: Arc<Mutex<Recorder>>,
    watches: Vec<JoinHandle<()>>,
}

impl Recording {
    /// Begins once every kind was heard of.
    async fn begin(namespace: &Namespace, story: &Story) -> Result<Self> {
        let recorder = Arc::new(Mutex::new(Recorder::of(story)));
        let watches = vec![
            watch::<Rollout>(namespace, ROLLOUT, &recorder, |it| Face::from(it)),
            watch::<VirtualService>(namespace, VIRTUAL_SERVICE, &recorder, |it| Face::from(it)),
            watch::<DestinationRule>(namespace, DESTINATION_RULE, &recorder, |it| Face::from(it)),
            watch::<ReplicaSet>(namespace, REPLICA_SET, &recorder, |it| Face::from(it)),
        ];
        tokio::time::sleep(REST).await;
        recorder.lock().expect("no watch panics").begin();
        Ok(Self { recorder, watches })
    }

    fn end(self) -> Record {
        self.recorder.lock().expect("no watch panics").record().clone()
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        for watch in &self.watches {
            watch.abort();
        }
    }
}

fn watch<T: DeserializeOwned + Send + 'static>(
    namespace: &Namespace,
    kind: Kind,
    recorder: &Arc<Mutex<Recorder>>,
    face: fn(&T) -> Face,
) -> JoinHandle<()> {
    let api: kube::Api<DynamicObject> = namespace.objects(kind);
    let recorder = Arc::clone(recorder);
    tokio::spawn(async move {
        let events = watcher(api, watcher::Config::default());
        let mut objects = std::pin::pin!(events.default_backoff().applied_objects());
        while let Some(object) = objects.next().await {
            let Ok(object) = object else { continue };
            let name = object.metadata.name.clone().unwrap_or_default();
            let json = serde_json::to_value(object).expect("an object is JSON");
            let object: T = serde_json::from_value(json).expect("the domain understands it");
            recorder.lock().expect("no watch panics").take(&name, &face(&object));
        }
    })
}
