//! Keys and certificates of a lab, and kubeconfig files that use them.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use serde_json::json;

use crate::paths::RunDir;

/// Where the API server listens.
const SERVER: &str = "https://127.0.0.1:6443";

/// Writes the authority, the server's and the administrator's certificates and the key pair that
/// signs service account tokens.
pub(super) fn write(run: &RunDir) -> Result<()> {
    let key = KeyPair::generate()?;
    fs::write(run.config("ca.crt"), authority()?.self_signed(&key)?.pem())?;
    fs::write(run.config("ca.key"), key.serialize_pem())?;

    let names = ["127.0.0.1", "10.96.0.1", "10.254.1.1", "localhost"].map(str::to_owned);
    let mut server = CertificateParams::new(names)?;
    server.distinguished_name.push(DnType::CommonName, "kube-apiserver");
    issue(run, "server", server)?;
    let admin = ("admin", Some("system:masters"));
    write_kubeconfig(run, &run.kubeconfig(), admin, "default")?;

    let tokens = KeyPair::generate()?;
    fs::write(run.config("service-account.key"), tokens.serialize_pem())?;
    fs::write(run.config("service-account.pub"), tokens.public_key_pem())?;
    Ok(())
}

/// Issues a certificate for a user, optionally in a group, and writes a kubeconfig that uses it.
pub(crate) fn write_kubeconfig(
    run: &RunDir,
    to: &Path,
    (user, group): (&str, Option<&str>),
    namespace: &str,
) -> Result<()> {
    let mut subject = CertificateParams::default();
    subject.distinguished_name.push(DnType::CommonName, user);
    if let Some(group) = group {
        subject.distinguished_name.push(DnType::OrganizationName, group);
    }
    issue(run, user, subject)?;
    let path = |name: &str| run.config(name).display().to_string();
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "lab", "cluster": {
            "server": SERVER,
            "certificate-authority": path("ca.crt"),
        }}],
        "users": [{"name": user, "user": {
            "client-certificate": path(&format!("{user}.crt")),
            "client-key": path(&format!("{user}.key")),
        }}],
        "contexts": [{"name": "lab", "context": {
            "cluster": "lab", "user": user, "namespace": namespace,
        }}],
        "current-context": "lab",
    });
    fs::write(to, serde_json::to_vec_pretty(&config)?)
        .with_context(|| format!("cannot write {}", to.display()))
}

fn issue(run: &RunDir, name: &str, mut params: CertificateParams) -> Result<()> {
    params.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    let authority_key = KeyPair::from_pem(&fs::read_to_string(run.config("ca.key"))?)?;
    let key = KeyPair::generate()?;
    let certificate = params.signed_by(&key, &Issuer::new(authority()?, authority_key))?;
    fs::write(run.config(&format!("{name}.crt")), certificate.pem())?;
    fs::write(run.config(&format!("{name}.key")), key.serialize_pem())?;
    Ok(())
}

fn authority() -> Result<CertificateParams> {
    let mut params = CertificateParams::new([])?;
    params.distinguished_name.push(DnType::CommonName, "lab-ca");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    Ok(params)
}
