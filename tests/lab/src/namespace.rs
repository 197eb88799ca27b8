//! A test's own namespace.

use std::fmt::Display;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::audit::{self, AuditMark};
use crate::control::Request;
use crate::dump;
use crate::kinds::Kind;
use crate::object;
use crate::paths::RunDir;
use crate::wait;

const WITHIN: Duration = Duration::from_secs(30);

/// A namespace, deleted when it goes out of scope if the lab made it for the test.
pub struct Namespace {
    pub(crate) client: Client,
    pub(crate) run: RunDir,
    pub(crate) audit_from: AuditMark,
    name: String,
    temporary: bool,
}

impl Namespace {
    pub(crate) fn existing(client: Client, run: RunDir, name: &str) -> Result<Self> {
        let audit_from = audit::mark(&run)?;
        Ok(Self { client, run, audit_from, name: name.to_owned(), temporary: false })
    }

    /// The same namespace for another owner, who does not delete it.
    pub(crate) fn handle(&self) -> Self {
        let (client, run) = (self.client.clone(), self.run.clone());
        Self { client, run, audit_from: self.audit_from, name: self.name.clone(), temporary: false }
    }

    pub(crate) async fn create(client: Client, run: RunDir, name: String) -> Result<Self> {
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        object::apply(&client, &object, object::MANAGER).await?;
        let audit_from = audit::mark(&run)?;
        let namespace = Self { client, run, audit_from, name, temporary: true };
        // Pods are refused until it is there, and the controllers that make them back off.
        let accounts: Api<ServiceAccount> = namespace.api();
        namespace
            .until("the default service account", WITHIN, async || {
                Ok(accounts.get_opt("default").await?)
            })
            .await?;
        Ok(namespace)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The typed API of a kind in this namespace.
    pub fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        Api::namespaced(self.client.clone(), &self.name)
    }

    /// The API of a kind that is handled as JSON.
    pub fn objects(&self, kind: Kind) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), &self.name, &kind.resource())
    }

    /// Applies objects by server-side apply, in their order. Where they name no namespace they come
    /// into this one.
    ///
    /// # Errors
    ///
    /// When one is refused; the message says which.
    pub async fn apply(&self, objects: &[Value]) -> Result<()> {
        self.apply_as(object::MANAGER, objects).await
    }

    pub(crate) async fn apply_as(&self, manager: &str, objects: &[Value]) -> Result<()> {
        for object in objects {
            let mut object = object.clone();
            let namespace = &mut object["metadata"]["namespace"];
            if namespace.is_null() {
                *namespace = json!(self.name);
            }
            object::apply(&self.client, &object, manager).await?;
        }
        Ok(())
    }

    /// Reads an object.
    ///
    /// # Errors
    ///
    /// When there is none or it cannot be read.
    pub async fn get(&self, kind: Kind, name: &str) -> Result<Value> {
        let object = self
            .objects(kind)
            .get(name)
            .await
            .with_context(|| format!("cannot read {} {name}", kind.name()))?;
        Ok(serde_json::to_value(object)?)
    }

    /// All objects of a kind.
    ///
    /// # Errors
    ///
    /// When they cannot be read.
    pub async fn list(&self, kind: Kind) -> Result<Vec<Value>> {
        let objects = self
            .objects(kind)
            .list(&ListParams::default())
            .await
            .with_context(|| format!("cannot list {}s", kind.name()))?;
        objects.items.into_iter().map(|object| Ok(serde_json::to_value(object)?)).collect()
    }

    /// Changes an object by a merge patch.
    ///
    /// # Errors
    ///
    /// When the patch is refused.
    pub async fn patch(&self, kind: Kind, name: &str, patch: &Value) -> Result<()> {
        self.objects(kind)
            .patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await
            .with_context(|| format!("cannot patch {} {name}", kind.name()))?;
        Ok(())
    }

    /// Changes an object's `status` by a merge patch of it.
    ///
    /// # Errors
    ///
    /// When the patch is refused.
    pub async fn patch_status(&self, kind: Kind, name: &str, patch: &Value) -> Result<()> {
        self.objects(kind)
            .patch_status(name, &PatchParams::default(), &Patch::Merge(json!({"status": patch})))
            .await
            .with_context(|| format!("cannot patch the status of {} {name}", kind.name()))?;
        Ok(())
    }

    /// Deletes an object.
    ///
    /// # Errors
    ///
    /// When there is none or it cannot be deleted.
    pub async fn delete(&self, kind: Kind, name: &str) -> Result<()> {
        self.objects(kind)
            .delete(name, &DeleteParams::default())
            .await
            .with_context(|| format!("cannot delete {} {name}", kind.name()))?;
        Ok(())
    }

    /// Waits as [`wait::until`] does; when time is up, the error also shows the namespace's
    /// Rollouts, pods, `VirtualServices` and `DestinationRules`.
    ///
    /// # Errors
    ///
    /// When nothing was found `within` that time.
    pub async fn until<T>(
        &self,
        what: impl Display,
        within: Duration,
        look: impl AsyncFnMut() -> Result<Option<T>>,
    ) -> Result<T> {
        match wait::until(what, within, look).await {
            Ok(found) => Ok(found),
            Err(late) => Err(late.context(dump::of(self).await)),
        }
    }

    /// An owner reference to the namespace, for objects outside of it that are to go with it.
    pub(crate) async fn as_owner(&self) -> Result<Value> {
        let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(self.client.clone());
        let uid = namespaces.get(&self.name).await?.metadata.uid;
        Ok(json!({"apiVersion": "v1", "kind": "Namespace", "name": self.name, "uid": uid}))
    }
}

impl Drop for Namespace {
    /// The lab deletes it: a test that ends takes its own tasks with it.
    fn drop(&mut self) {
        if !self.temporary {
            return;
        }
        let request = Request::DeleteNamespace { name: self.name.clone() };
        let Ok(mut line) = serde_json::to_vec(&request) else { return };
        line.push(b'\n');
        // Best effort: the lab may have ended already.
        let _ = UnixStream::connect(self.run.socket()).and_then(|mut lab| lab.write_all(&line));
    }
}
