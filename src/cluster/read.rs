//! Reading a scene: one request a kind, all at the same time.

use std::collections::BTreeMap;
use std::time::Duration;

use backon::{ExponentialBuilder, Retryable};
use futures::TryFutureExt;
use futures::future::BoxFuture;
use futures::try_join;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::ListParams;
use kube::error::DiscoveryError;
use kube::{Api, discovery};
use serde::de::DeserializeOwned;
use zone_rollout_core::scene::{Autoscaler, Coverage, Kind, Origin, Plain, Scene, Workload};

use super::connect::KubeCluster;
use super::explain;
use super::item::Item;
use super::kinds::{
    ALERTS, ANALYSIS_TEMPLATES, AUTOSCALERS, BUDGETS, CLUSTER_ANALYSIS_TEMPLATES, DEPLOYMENTS,
    DESTINATION_RULES, KindInfo, NAMESPACES, NODES, PODS, REPLICA_SETS, ROLLOUTS, SERVICES,
    TELEMETRIES, VIRTUAL_SERVICES,
};
use super::{Want, clock};
use crate::error::Error;

/// Objects in one answer; more take further requests.
const PAGE: u32 = 500;
/// How often a read is tried.
const TRIES: usize = 4;

/// Why a scene could not be read.
struct Unread {
    what: String,
    error: kube::Error,
}

impl KubeCluster {
    /// Reads a scene. A server that turned a request away, or an answer that was lost, is tried
    /// again a few times, and said; everything else is for the caller to judge.
    pub(super) fn read_scene<'a>(&'a self, want: &'a Want) -> BoxFuture<'a, Result<Scene, Error>> {
        let policy = ExponentialBuilder::default()
            .with_min_delay(Duration::from_millis(500))
            .with_max_delay(Duration::from_secs(3))
            .with_max_times(TRIES - 1);
        let read = move || self.try_read(want);
        let tried = read
            .retry(policy)
            .when(|unread| explain::is_passing(&unread.error))
            .adjust(|unread, delay| Some(explain::retry_after(&unread.error).max(delay?)))
            .notify(|unread, delay| {
                self.voice.note(&format!(
                    "warning: cannot {}: {}; trying again in {:.1}s",
                    unread.what,
                    explain::reason(&unread.error),
                    delay.as_secs_f32()
                ));
            });
        Box::pin(
            tried.map_err(|unread| explain::request(&self.server, &unread.what, &unread.error)),
        )
    }

    /// Reads what gives groups and zones their names, and nothing else.
    ///
    /// # Errors
    /// If it cannot be read.
    pub async fn read_names(&self, want: &Want) -> Result<Scene, Error> {
        let (rollouts, routes) =
            try_join!(self.kind(want, &ROLLOUTS, None), self.kind(want, &VIRTUAL_SERVICES, None),)
                .map_err(|unread| explain::request(&self.server, &unread.what, &unread.error))?;
        Ok(Scene { rollouts, routes, ..Scene::default() })
    }

    /// The names of all namespaces.
    ///
    /// # Errors
    /// If they may not be listed, or cannot.
    pub async fn namespaces(&self) -> Result<Vec<String>, Error> {
        let api: Api<Namespace> = Api::all(self.client.clone());
        let all = self
            .limited(api.list_metadata(&ListParams::default()))
            .await
            .map_err(|error| explain::request(&self.server, "list namespaces", &error))?;
        Ok(all.into_iter().filter_map(|namespace| namespace.metadata.name).collect())
    }

    async fn try_read(&self, want: &Want) -> Result<Scene, Unread> {
        let selector = want.selector.as_deref();
        let (rollouts, replica_sets, pods, nodes, services, routes, rules, autoscalers, more) = try_join!(
            self.kind(want, &ROLLOUTS, selector),
            self.kind(want, &REPLICA_SETS, None),
            self.kind(want, &PODS, None),
            self.kind(want, &NODES, None),
            self.kind(want, &SERVICES, None),
            self.kind(want, &VIRTUAL_SERVICES, None),
            self.kind(want, &DESTINATION_RULES, None),
            self.autoscalers(want),
            self.more(want),
        )?;
        Ok(Scene {
            rollouts,
            replica_sets,
            pods,
            nodes,
            services,
            routes,
            rules,
            autoscalers,
            ..more
        })
    }

    async fn autoscalers(&self, want: &Want) -> Result<Kind<Autoscaler>, Unread> {
        if want.autoscalers {
            self.kind(want, &AUTOSCALERS, None).await
        } else {
            Ok(Kind::default())
        }
    }

    /// The kinds that only a diagnosis looks at.
    async fn more(&self, want: &Want) -> Result<Scene, Unread> {
        if !want.everything {
            return Ok(Scene::default());
        }
        let (templates, of_cluster, budgets, deployments, namespaces, telemetries, alerts) = try_join!(
            self.kind(want, &ANALYSIS_TEMPLATES, None),
            self.kind(want, &CLUSTER_ANALYSIS_TEMPLATES, None),
            self.kind(want, &BUDGETS, None),
            self.deployments(want),
            self.namespace(want),
            self.kind(want, &TELEMETRIES, None),
            self.kind(want, &ALERTS, None),
        )?;
        Ok(Scene {
            analysis_templates: templates,
            cluster_analysis_templates: of_cluster,
            budgets,
            deployments,
            namespaces,
            telemetries,
            alerts,
            ..Scene::default()
        })
    }

    /// The namespace's Deployments, and those of the control planes, which tell their versions. That
    /// the latter may not be read takes nothing from the former.
    async fn deployments(&self, want: &Want) -> Result<Kind<Workload>, Unread> {
        let elsewhere =
            |namespace: &str| Want { namespace: namespace.to_owned(), ..Want::default() };
        let (istio, argo) = (elsewhere("istio-system"), elsewhere("argo-rollouts"));
        let (mut own, istio, argo) = try_join!(
            self.kind::<Workload>(want, &DEPLOYMENTS, None),
            self.kind::<Workload>(&istio, &DEPLOYMENTS, Some("app=istiod")),
            self.kind::<Workload>(
                &argo,
                &DEPLOYMENTS,
                Some("app.kubernetes.io/name=argo-rollouts")
            ),
        )?;
        own.items.extend(istio.items.into_iter().chain(argo.items));
        Ok(own)
    }

    /// The namespace itself, for its labels.
    async fn namespace(&self, want: &Want) -> Result<Kind<Plain>, Unread> {
        let api = self.api::<Plain>(&NAMESPACES, NAMESPACES.version, "");
        match self.limited(api.get(&want.namespace)).await {
            Ok(namespace) => Ok(complete(vec![namespace])),
            Err(kube::Error::Api(status)) if status.code == 403 => Ok(empty(Coverage::Forbidden)),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(complete(Vec::new())),
            Err(error) => Err(Unread { what: format!("get namespace {}", want.namespace), error }),
        }
    }

    /// All objects of one kind. Being forbidden, or a kind that is not served, is part of the answer.
    async fn kind<T: DeserializeOwned + Clone + std::fmt::Debug>(
        &self,
        want: &Want,
        info: &KindInfo,
        selector: Option<&str>,
    ) -> Result<Kind<T>, Unread> {
        match self.list_served::<T>(want, info, selector).await {
            Ok(items) => Ok(complete(items)),
            Err(kube::Error::Api(status)) if status.code == 403 => Ok(empty(Coverage::Forbidden)),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(empty(Coverage::KindAbsent)),
            Err(error) => Err(Unread { what: format!("list {}", info.plural), error }),
        }
    }

    /// Lists in the version that is served: 404 to the usual one means that it has to be looked up.
    async fn list_served<T: DeserializeOwned + Clone + std::fmt::Debug>(
        &self,
        want: &Want,
        info: &KindInfo,
        selector: Option<&str>,
    ) -> kube::Result<Vec<Item<T>>> {
        let version = self.version_of(info);
        match self.list(want, info, &version, selector).await {
            Err(kube::Error::Api(status)) if status.code == 404 && !info.group.is_empty() => {
                let served = self.look_up(info).await?;
                match served.filter(|served| *served != version) {
                    Some(served) => self.list(want, info, &served, selector).await,
                    None => Err(kube::Error::Api(status)),
                }
            }
            result => result,
        }
    }

    /// The version in which a kind is asked for.
    pub(super) fn version_of(&self, info: &KindInfo) -> String {
        let known = (info.group == VIRTUAL_SERVICES.group).then(|| self.istio_version.get());
        known.flatten().cloned().unwrap_or_else(|| info.version.to_owned())
    }

    /// The most stable version in which a kind is served, remembered for Istio's; nothing if it is not.
    pub(super) async fn look_up(&self, info: &KindInfo) -> kube::Result<Option<String>> {
        let group = match self.limited(discovery::group(&self.client, info.group)).await {
            Ok(group) => group,
            Err(kube::Error::Discovery(DiscoveryError::MissingApiGroup(_))) => return Ok(None),
            Err(error) => return Err(error),
        };
        // The version that a group prefers need not have all of its kinds.
        let mut resources = group.resources_by_stability().into_iter();
        let served = resources.find(|(resource, _)| resource.kind == info.kind);
        let version = served.map(|(resource, _)| resource.version);
        if let Some(version) = version.clone().filter(|_| info.group == VIRTUAL_SERVICES.group) {
            // Two kinds of the group may look it up at the same time, with the same result.
            drop(self.istio_version.set(version));
        }
        Ok(version)
    }

    async fn list<T: DeserializeOwned + Clone + std::fmt::Debug>(
        &self,
        want: &Want,
        info: &KindInfo,
        version: &str,
        selector: Option<&str>,
    ) -> kube::Result<Vec<Item<T>>> {
        let api = self.api::<T>(info, version, &want.namespace);
        let mut params = ListParams::default().limit(PAGE);
        params.label_selector = selector.or(info.selector).map(str::to_owned);
        let mut items = Vec::new();
        loop {
            let page = self.limited(api.list(&params)).await?;
            items.extend(page.items);
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params = params.continue_token(&token),
                None => return Ok(items),
            }
        }
    }

    pub(super) fn api<T>(&self, info: &KindInfo, version: &str, namespace: &str) -> Api<Item<T>> {
        let resource = info.resource(version);
        if info.namespaced {
            Api::namespaced_with(self.client.clone(), namespace, &resource)
        } else {
            Api::all_with(self.client.clone(), &resource)
        }
    }

    /// A request with the limit for one request.
    pub(super) async fn limited<T>(
        &self,
        request: impl Future<Output = kube::Result<T>>,
    ) -> kube::Result<T> {
        match self.timeout {
            None => request.await,
            Some(limit) => tokio::time::timeout(limit, request).await.unwrap_or_else(|_| {
                let late = Error::unexpected(format!("no answer within {}s", limit.as_secs()));
                Err(kube::Error::Service(late.into()))
            }),
        }
    }
}

pub(super) fn empty<T>(coverage: Coverage) -> Kind<T> {
    Kind { items: BTreeMap::new(), broken: BTreeMap::new(), coverage }
}

fn complete<T>(items: Vec<Item<T>>) -> Kind<T> {
    let mut kind = empty(Coverage::Complete(clock::now()));
    for item in items {
        put(&mut kind, item);
    }
    kind
}

/// Adds or replaces an object, whether it can be understood or not.
pub(super) fn put<T>(kind: &mut Kind<T>, item: Item<T>) {
    let key = item.key();
    match item.object {
        Ok(object) => {
            kind.broken.remove(&key);
            kind.insert(key, object, Origin::Live);
        }
        Err(why) => {
            kind.items.remove(&key);
            kind.broken.insert(key, why);
        }
    }
}
