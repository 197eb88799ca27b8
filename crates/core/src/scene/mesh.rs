//! Services, VirtualServices and DestinationRules, as far as traffic is computed from them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use super::Meta;

/// A Service (`v1`).
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Service {
    /// Metadata.
    #[serde(rename = "metadata")]
    pub meta: Meta,
    /// What it selects.
    pub spec: ServiceSpec,
}

/// `spec` of a Service.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceSpec {
    /// Labels a pod must carry.
    pub selector: BTreeMap<String, String>,
    /// `PreferClose` and its kin: zone preference without a DestinationRule, in sidecars from
    /// Istio 1.25.
    pub traffic_distribution: Option<String>,
}

impl Service {
    /// True if the Service itself asks for near endpoints, by its field or by Istio's annotation.
    pub fn prefers_near(&self) -> bool {
        const ANNOTATION: &str = "networking.istio.io/traffic-distribution";
        let asked = self.spec.traffic_distribution.as_ref();
        asked.or_else(|| self.meta.annotations.get(ANNOTATION)).is_some_and(|asked| asked != "Any")
    }
}

/// A VirtualService (`networking.istio.io`).
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct VirtualService {
    /// Group and version in which it is written; empty in the items of a list.
    #[serde(rename = "apiVersion")]
    pub api_version: String,
    /// Metadata.
    #[serde(rename = "metadata")]
    pub meta: Meta,
    /// Its routes.
    pub spec: VirtualServiceSpec,
}

/// `spec` of a VirtualService.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VirtualServiceSpec {
    /// Hosts it applies to, short or fully qualified.
    pub hosts: Vec<String>,
    /// Gateways it is bound to; empty means the mesh, which is also called `mesh`.
    pub gateways: Vec<String>,
    /// HTTP routes in order; the first that matches wins.
    pub http: Vec<HttpRoute>,
    /// TLS routes, which are weighed but not understood here.
    pub tls: Vec<Value>,
    /// TCP routes, which are weighed but not understood here.
    pub tcp: Vec<Value>,
    /// Namespaces it is visible in; empty means all.
    pub export_to: Vec<String>,
}

/// One HTTP route. Built from the whole JSON value, which a guarded write compares.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(try_from = "Value")]
pub struct HttpRoute {
    /// Name; what a Rollout refers to.
    pub name: String,
    /// Conditions, any of which is enough; empty means always.
    pub matches: Vec<HttpMatch>,
    /// Where to, with weights.
    pub destinations: Vec<RouteDestination>,
    /// The route as it stands in the object.
    pub raw: Value,
}

impl TryFrom<Value> for HttpRoute {
    type Error = serde_json::Error;

    fn try_from(raw: Value) -> Result<Self, Self::Error> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Read {
            name: String,
            r#match: Vec<HttpMatch>,
            route: Vec<RouteDestination>,
        }
        let Read { name, r#match: matches, route: destinations } = Read::deserialize(&raw)?;
        Ok(Self { name, matches, destinations, raw })
    }
}

impl HttpRoute {
    /// The `route` list as it stands in the object.
    pub fn raw_destinations(&self) -> &Value {
        &self.raw["route"]
    }

    /// Gives the destination at `index` this weight.
    pub fn weigh(&mut self, index: usize, weight: u32) {
        self.destinations[index].weight = Some(f64::from(weight));
        self.raw["route"][index]["weight"] = weight.into();
    }
}

impl Serialize for HttpRoute {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.raw.serialize(serializer)
    }
}

/// One entry of `match`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpMatch {
    /// Labels the calling proxy must carry.
    pub source_labels: BTreeMap<String, String>,
    /// Gateways. If this is set, Istio does not look at `sourceLabels` at all.
    pub gateways: Vec<String>,
    /// Only a name in statistics, no condition.
    pub stat_prefix: String,
    /// Only a name, no condition.
    pub name: String,
    /// Conditions on the request, such as `uri` or `headers`.
    #[serde(flatten)]
    pub request: BTreeMap<String, Value>,
}

/// One weighted destination of a route.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct RouteDestination {
    /// Where to.
    pub destination: Destination,
    /// Weight; the Rollouts controller writes percent. Absent counts as 0 beside others.
    pub weight: Option<f64>,
}

/// Host and subset.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct Destination {
    /// Host, short or fully qualified.
    pub host: String,
    /// Subset of the host's DestinationRules; empty for all endpoints.
    pub subset: String,
}

/// A DestinationRule (`networking.istio.io`).
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct DestinationRule {
    /// Group and version in which it is written; empty in the items of a list.
    #[serde(rename = "apiVersion")]
    pub api_version: String,
    /// Metadata.
    #[serde(rename = "metadata")]
    pub meta: Meta,
    /// Its subsets and policy.
    pub spec: DestinationRuleSpec,
}

/// `spec` of a DestinationRule.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DestinationRuleSpec {
    /// Host, short or fully qualified.
    pub host: String,
    /// Policy for all subsets.
    pub traffic_policy: Option<TrafficPolicy>,
    /// Subsets.
    pub subsets: Vec<Subset>,
    /// If set, the rule counts for these clients only.
    pub workload_selector: Option<Value>,
    /// Namespaces it is visible in; empty means all.
    pub export_to: Vec<String>,
}

/// A named part of a host's endpoints.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Subset {
    /// Name.
    pub name: String,
    /// Labels an endpoint must carry.
    pub labels: BTreeMap<String, String>,
    /// Policy that overrides the rule's, part by part.
    pub traffic_policy: Option<TrafficPolicy>,
}

/// `trafficPolicy`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TrafficPolicy {
    /// Load balancing.
    pub load_balancer: Option<LoadBalancer>,
    /// Ejection of failing endpoints. Locality failover works only where this is set.
    pub outlier_detection: Option<OutlierDetection>,
    /// Limits of connections.
    pub connection_pool: Option<Value>,
    /// Policies for single ports, which override the others part by part.
    pub port_level_settings: Vec<TrafficPolicy>,
}

/// `loadBalancer`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LoadBalancer {
    /// How localities are preferred.
    pub locality_lb_setting: Option<LocalityLbSetting>,
}

/// `localityLbSetting`. `distribute` wins over the two others.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LocalityLbSetting {
    /// False turns locality preference off; absent is true.
    pub enabled: Option<bool>,
    /// Fixed shares by locality.
    pub distribute: Vec<LocalityDistribute>,
    /// Failover between regions.
    pub failover: Vec<LocalityFailover>,
    /// Failover by labels in common, in order.
    pub failover_priority: Vec<String>,
}

/// One entry of `distribute`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct LocalityDistribute {
    /// Locality of the client: `region/zone/subzone`, with `*`.
    pub from: String,
    /// Percent by locality of the endpoint.
    pub to: BTreeMap<String, u32>,
}

/// One entry of `failover`: regions only.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct LocalityFailover {
    /// Region of the client.
    pub from: String,
    /// Region it fails over to.
    pub to: String,
}

/// `outlierDetection`. Numbers that are not given have Envoy's defaults.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OutlierDetection {
    /// Largest share of endpoints that may be ejected, in percent; 0 and absent are 10.
    pub max_ejection_percent: Option<u32>,
    /// Share of healthy endpoints, in percent, under which all of them are used again.
    pub min_health_percent: Option<u32>,
    /// Answers 5xx in a row until an endpoint is ejected; absent is 5.
    pub consecutive5xx_errors: Option<u32>,
    /// Answers 502, 503, 504 in a row until an endpoint is ejected.
    pub consecutive_gateway_errors: Option<u32>,
    /// Accepted for compatibility and read by no version of Istio since 1.7.
    pub consecutive_errors: Option<Value>,
}

impl OutlierDetection {
    /// Largest share of endpoints that may be ejected, in percent, as Envoy gets it.
    pub fn ejection_limit(&self) -> u32 {
        self.max_ejection_percent.filter(|percent| *percent > 0).unwrap_or(10)
    }
}
