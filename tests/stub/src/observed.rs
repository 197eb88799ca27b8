//! What the server and the proxy saw of one program, in a few words.

use std::fmt;

use http::HeaderMap;

use crate::SECRET;
use crate::proxy::Tunnel;
use crate::server::Seen;

/// What was seen of one program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observed {
    /// Exit code.
    pub code: Option<i32>,
    /// Requests that reached the server.
    pub requests: usize,
    /// Runs of the credential plugin.
    pub plugin_runs: usize,
    /// `User-Agent` of the first request.
    pub agent: String,
    /// `Accept-Encoding` of the first request.
    pub encoding: String,
    who: Vec<String>,
    impersonated: Vec<String>,
    tunnel: Option<Tunnel>,
}

impl Observed {
    pub(crate) fn new(
        code: Option<i32>,
        seen: &[Seen],
        tunnels: &[Tunnel],
        issued: &[(String, Vec<u8>)],
        plugin_runs: usize,
    ) -> Self {
        let first = seen.first();
        let header = |name: &str| first.map(|seen| text(&seen.headers, name)).unwrap_or_default();
        let certificate = first.and_then(|seen| seen.certificate.as_ref()).map(|certificate| {
            let known = issued.iter().find(|(_, der)| der == certificate);
            format!("certificate of {}", known.map_or("a stranger", |(name, _)| name))
        });
        let authorization = first.and_then(|seen| credential(&seen.headers));
        let headers = first.into_iter().flat_map(|seen| seen.headers.iter());
        let mut impersonated: Vec<String> = headers
            .filter_map(|(name, value)| {
                let field = name.as_str().strip_prefix("impersonate-")?;
                Some(format!("{field} {}", String::from_utf8_lossy(value.as_bytes())))
            })
            .collect();
        impersonated.sort();
        Self {
            code,
            requests: seen.len(),
            plugin_runs,
            agent: header("user-agent"),
            encoding: header("accept-encoding"),
            who: authorization.into_iter().chain(certificate).collect(),
            impersonated,
            tunnel: tunnels.first().cloned(),
        }
    }
}

/// One line: whether it worked, as whom, through what.
impl fmt::Display for Observed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.code == Some(0) { "works" } else { "fails" })?;
        if self.requests > 0 && self.code == Some(0) {
            let who =
                if self.who.is_empty() { "nobody".to_owned() } else { self.who.join(" and ") };
            write!(f, " as {who}")?;
        }
        if !self.impersonated.is_empty() {
            write!(f, ", impersonating {}", self.impersonated.join(", "))?;
        }
        if let Some(tunnel) = &self.tunnel {
            f.write_str(", through the proxy")?;
            if tunnel.authorization.is_some() {
                f.write_str(" with its password")?;
            }
        }
        match self.plugin_runs {
            0 => Ok(()),
            1 => f.write_str(", one plugin run"),
            runs => write!(f, ", {runs} plugin runs"),
        }
    }
}

fn text(headers: &HeaderMap, name: &str) -> String {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value.unwrap_or_default().to_owned()
}

fn credential(headers: &HeaderMap) -> Option<String> {
    let value = headers.get("authorization")?.to_str().ok()?;
    let (scheme, rest) = value.split_once(' ')?;
    let owner = rest.strip_prefix(SECRET).map(|owner| owner.trim_start_matches('-'));
    Some(match (scheme, owner) {
        ("Bearer", Some(owner)) => format!("token of {owner}"),
        ("Basic", _) => "a password".to_owned(),
        _ => "something else".to_owned(),
    })
}
