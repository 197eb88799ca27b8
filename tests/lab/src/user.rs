//! Users with few rights.

use std::path::PathBuf;

use anyhow::Result;
use serde_json::{Value, json};

use crate::boot::pki;
use crate::namespace::Namespace;
use crate::object;

impl Namespace {
    /// A user who may do what `rules` say in this namespace and, of objects outside of namespaces,
    /// what `cluster_rules` say. Rules are those of a Role. Returns a kubeconfig with a certificate.
    ///
    /// # Errors
    ///
    /// When the certificate or the rights cannot be made.
    pub async fn user(
        &self,
        name: &str,
        rules: &[Value],
        cluster_rules: &[Value],
    ) -> Result<PathBuf> {
        // Users are the cluster's, names like `deployer` many tests'.
        let user = format!("{name}-{}", self.name());
        let kubeconfig = self.run.config(&format!("{user}.kubeconfig"));
        pki::write_kubeconfig(&self.run, &kubeconfig, (&user, None), self.name())?;
        self.apply(&role(&user, "", rules, &json!({}))).await?;
        if !cluster_rules.is_empty() {
            // They go when the namespace goes.
            let owner = json!({"ownerReferences": [self.as_owner().await?]});
            for object in role(&user, "Cluster", cluster_rules, &owner) {
                object::apply(&self.client, &object, object::MANAGER).await?;
            }
        }
        Ok(kubeconfig)
    }
}

fn role(user: &str, scope: &str, rules: &[Value], metadata: &Value) -> [Value; 2] {
    let group = "rbac.authorization.k8s.io";
    let (role, binding) = (format!("{scope}Role"), format!("{scope}RoleBinding"));
    let mut metadata = metadata.clone();
    metadata["name"] = json!(user);
    let object = |kind: &str| json!({"apiVersion": format!("{group}/v1"), "kind": kind, "metadata": metadata});
    let (mut rights, mut bound) = (object(&role), object(&binding));
    rights["rules"] = json!(rules);
    bound["roleRef"] = json!({"apiGroup": group, "kind": role, "name": user});
    bound["subjects"] = json!([{"apiGroup": group, "kind": "User", "name": user}]);
    [rights, bound]
}
