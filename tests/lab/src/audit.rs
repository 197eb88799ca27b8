//! The API server's audit log: who asked for what, and what was written.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::jiff::Timestamp;
use kube::Api;
use serde::Deserialize;
use serde_json::Value;

use crate::lab::Lab;
use crate::namespace::Namespace;
use crate::paths::RunDir;
use crate::wait;

static MARKS: AtomicU32 = AtomicU32::new(0);

/// A place in the audit log.
#[derive(Debug, Clone, Copy)]
pub struct AuditMark(u64);

/// A request that the API server has answered; a watch as soon as it has begun.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditRecord {
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, …
    pub verb: String,
    /// Path and query.
    #[serde(rename = "requestURI")]
    pub uri: String,
    /// Who asked.
    pub user: AuditUser,
    /// The client program.
    #[serde(default)]
    pub user_agent: String,
    /// The object; empty for requests that concern none, such as discovery.
    #[serde(default, rename = "objectRef")]
    pub object: AuditObject,
    /// How it was answered.
    #[serde(default, rename = "responseStatus")]
    pub response: AuditResponse,
    /// The body of a write to Rollouts, Istio's objects, Leases and Events.
    #[serde(default, rename = "requestObject")]
    pub body: Option<Value>,
    /// When the request came in.
    #[serde(rename = "requestReceivedTimestamp")]
    pub time: Timestamp,
    stage: String,
}

/// Who asked.
#[derive(Debug, Clone, Deserialize)]
pub struct AuditUser {
    /// The user's name.
    pub username: String,
}

/// What a request is about. Parts that it does not name are empty.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AuditObject {
    /// API group.
    pub api_group: String,
    /// `rollouts`
    pub resource: String,
    /// `status`
    pub subresource: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// How a request was answered.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct AuditResponse {
    /// The HTTP status.
    pub code: u16,
}

impl AuditRecord {
    /// Whether the request was to change something.
    pub fn is_write(&self) -> bool {
        matches!(&*self.verb, "create" | "update" | "patch" | "delete" | "deletecollection")
    }
}

impl Lab {
    /// The end of the audit log as it is now.
    ///
    /// # Errors
    ///
    /// When the log cannot be read.
    pub fn audit_mark(&self) -> Result<AuditMark> {
        mark(&self.run)
    }

    /// Every request since a mark, of all users and components.
    ///
    /// # Errors
    ///
    /// When the log cannot be read.
    pub async fn audit_since(&self, from: AuditMark) -> Result<Vec<AuditRecord>> {
        let last: Api<ConfigMap> = Api::namespaced(self.client.clone(), "default");
        complete(&self.run, &last).await?;
        read(&self.run, from, |_| true)
    }
}

impl Namespace {
    /// Every request about objects of this namespace since the test got it.
    ///
    /// # Errors
    ///
    /// When the log cannot be read.
    pub async fn audit(&self) -> Result<Vec<AuditRecord>> {
        complete(&self.run, &self.api()).await?;
        // Most lines are about others; looking for the name is far cheaper than reading JSON.
        let name = format!(r#""namespace":"{}""#, self.name());
        let records = read(&self.run, self.audit_from, |line| line.contains(&name))?;
        Ok(records.into_iter().filter(|it| it.object.namespace == self.name()).collect())
    }
}

pub(crate) fn mark(run: &RunDir) -> Result<AuditMark> {
    Ok(AuditMark(fs::metadata(run.audit_log())?.len()))
}

/// Makes sure that everything answered so far is in the log: asks for something that can be told
/// from all else, and waits until that is there.
async fn complete(run: &RunDir, last: &Api<ConfigMap>) -> Result<()> {
    let from = mark(run)?;
    let name =
        format!("audit-mark-{}-{}", std::process::id(), MARKS.fetch_add(1, Ordering::Relaxed));
    last.get_opt(&name).await?;
    wait::until("the audit log to be complete", Duration::from_secs(10), async || {
        Ok(text(run, from)?.contains(&name).then_some(()))
    })
    .await
}

fn read(run: &RunDir, from: AuditMark, wanted: impl Fn(&str) -> bool) -> Result<Vec<AuditRecord>> {
    let text = text(run, from)?;
    let lines = text.lines().filter(|line| wanted(line) && !line.contains(r#""audit-mark-"#));
    let records = lines.map(|line| {
        serde_json::from_str(line).with_context(|| format!("cannot read audit record {line}"))
    });
    let records: Result<Vec<AuditRecord>> = records.collect();
    // A watch is answered for as long as it lasts, everything else when it is done.
    let told = |it: &AuditRecord| (it.stage == "ResponseStarted") == (it.verb == "watch");
    Ok(records?.into_iter().filter(told).collect())
}

/// Whole lines from a mark on.
fn text(run: &RunDir, from: AuditMark) -> Result<String> {
    let mut log = File::open(run.audit_log()).context("cannot open the audit log")?;
    log.seek(SeekFrom::Start(from.0))?;
    let mut text = String::new();
    log.read_to_string(&mut text)?;
    text.truncate(text.rfind('\n').map_or(0, |end| end + 1));
    Ok(text)
}
