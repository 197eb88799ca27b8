//! Why a server's certificate was refused.

use std::error::Error;
use std::fmt;

use rustls::{CertificateError, Error as TlsError};

/// A certificate that was refused.
pub(super) struct Refused<'a>(&'a CertificateError);

/// The refusal among the sources of an error.
pub(super) fn refused<'a>(
    mut sources: impl Iterator<Item = &'a (dyn Error + 'static)>,
) -> Option<Refused<'a>> {
    sources.find_map(|source| match carried(source).downcast_ref::<TlsError>()? {
        TlsError::InvalidCertificate(error) => Some(Refused(error)),
        _ => None,
    })
}

/// What an I/O error carries, however deep: it is not among the error's sources.
fn carried<'a>(mut error: &'a (dyn Error + 'static)) -> &'a (dyn Error + 'static) {
    while let Some(inner) = error.downcast_ref::<std::io::Error>().and_then(|io| io.get_ref()) {
        error = inner;
    }
    error
}

impl fmt::Display for Refused<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            CertificateError::UnknownIssuer => f.write_str(
                "its certificate is signed by an authority that the kubeconfig does not name",
            ),
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                f.write_str("its certificate has expired")
            }
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                f.write_str("its certificate is not valid yet")
            }
            CertificateError::NotValidForNameContext { presented, .. } => {
                write!(f, "its certificate is for other names: {}", names(presented).join(", "))
            }
            error if is_authority(error) => {
                f.write_str("its certificate is an authority's own, which only kubectl accepts")
            }
            error => write!(f, "its certificate is not accepted ({error})"),
        }
    }
}

impl Refused<'_> {
    /// What helps, if anything on this side does.
    pub(super) fn hint(&self) -> Option<String> {
        match self.0 {
            CertificateError::UnknownIssuer => {
                Some("name the authority: --certificate-authority FILE".to_owned())
            }
            CertificateError::NotValidForNameContext { presented, .. } => {
                let name = names(presented).into_iter().next()?;
                Some(format!("check it against one of them: --tls-server-name {name}"))
            }
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. } => {
                Some("see whether it is this machine's clock: date".to_owned())
            }
            error if is_authority(error) => Some(
                "let the server have a certificate that is no authority's; until then, without any \
                 protection: --insecure-skip-tls-verify"
                    .to_owned(),
            ),
            _ => None,
        }
    }
}

/// The names as they are written, without their kinds: `DnsName("api")`.
fn names(presented: &[String]) -> Vec<&str> {
    presented.iter().map(|name| name.split('"').nth(1).unwrap_or(name)).collect()
}

/// The verifier's own error for this is not exported.
fn is_authority(error: &CertificateError) -> bool {
    matches!(error, CertificateError::Other(other) if other.to_string().contains("CaUsedAsEndEntity"))
}
