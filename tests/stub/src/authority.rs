//! Keys and certificates.

use anyhow::Result;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    date_time_ymd,
};

/// A certificate authority.
pub(crate) struct Authority {
    params: CertificateParams,
    key: KeyPair,
    /// Its own certificate.
    pub(crate) pem: String,
}

/// A certificate and its key.
pub(crate) struct Identity {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Result<Self> {
        let params = authority_params(name, Vec::new())?;
        let key = KeyPair::generate()?;
        let pem = params.clone().self_signed(&key)?.pem();
        Ok(Self { params, key, pem })
    }

    /// A certificate for a server with these names, or a client.
    pub(crate) fn issue(&self, common_name: &str, names: &[&str]) -> Result<Identity> {
        self.issue_until(common_name, names, 2100)
    }

    /// The same, good until the first day of a year.
    pub(crate) fn issue_until(
        &self,
        common_name: &str,
        names: &[&str],
        year: i32,
    ) -> Result<Identity> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name.push(DnType::CommonName, common_name);
        params.not_after = date_time_ymd(year, 1, 1);
        let key = KeyPair::generate()?;
        let issuer = Issuer::from_params(&self.params, &self.key);
        let certificate = params.signed_by(&key, &issuer)?;
        Ok(Identity { certificate: certificate.pem(), key: key.serialize_pem() })
    }
}

/// A server's certificate that is its own authority, as small clusters have it.
pub(crate) fn self_signed(names: &[&str]) -> Result<Identity> {
    let names = names.iter().map(|name| (*name).to_owned()).collect();
    let key = KeyPair::generate()?;
    let certificate = authority_params("self-signed", names)?.self_signed(&key)?;
    Ok(Identity { certificate: certificate.pem(), key: key.serialize_pem() })
}

fn authority_params(name: &str, names: Vec<String>) -> Result<CertificateParams> {
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::CrlSign,
        KeyUsagePurpose::DigitalSignature,
    ];
    Ok(params)
}
