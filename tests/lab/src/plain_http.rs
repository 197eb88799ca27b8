//! A GET request over plain HTTP.

use anyhow::{Context, Result};
use http::StatusCode;
use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;

/// Status and body.
pub(crate) async fn get(address: &str, path: &str) -> Result<(StatusCode, String)> {
    let uri = format!("http://{address}{path}");
    let client: Client<_, Empty<Bytes>> = Client::builder(TokioExecutor::new()).build_http();
    let answer = client.get(uri.parse()?).await.with_context(|| format!("no answer from {uri}"))?;
    let status = answer.status();
    let body = answer.into_body().collect().await?.to_bytes();
    Ok((status, String::from_utf8_lossy(&body).into_owned()))
}
