//! One request of a client.

use std::time::Duration;

use http::{Request, StatusCode, header};
use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::time::timeout;

use super::answer::Answer;
use crate::zones::Zone;

/// Longer than Envoy takes to give up on a pod.
const PATIENCE: Duration = Duration::from_secs(15);

/// The clients of all zones, with the connections that they keep.
#[derive(Clone)]
pub(super) struct Clients {
    http: Client<HttpConnector, Empty<Bytes>>,
    host: String,
}

impl Clients {
    pub(super) fn new(namespace: &str) -> Self {
        let http = Client::builder(TokioExecutor::new()).build_http();
        Self { http, host: format!("test.{namespace}.svc.cluster.local") }
    }

    pub(super) async fn ask(&self, zone: Zone) -> Answer {
        match timeout(PATIENCE, self.send(zone)).await {
            Err(_) => Answer::Timeout,
            Ok(Err(_)) => Answer::NoConnection,
            Ok(Ok((StatusCode::OK, body))) => Answer::from(&*String::from_utf8_lossy(&body)),
            Ok(Ok((status, _))) => Answer::Status(status.as_u16()),
        }
    }

    async fn send(&self, zone: Zone) -> anyhow::Result<(StatusCode, Bytes)> {
        let request = Request::get(format!("http://{}:8080/", zone.client_address()))
            .header(header::HOST, &self.host)
            .body(Empty::new())?;
        let response = self.http.request(request).await?;
        let status = response.status();
        Ok((status, response.into_body().collect().await?.to_bytes()))
    }
}
