//! Which proxy a server is reached through, as client-go chooses it: the cluster's `proxy-url`
//! always, else `HTTPS_PROXY` or `HTTP_PROXY` unless `NO_PROXY` excepts the server. kube compares
//! `NO_PROXY` with the proxy's own host.

use std::env;

use http::Uri;
use hyper_util::client::proxy::matcher::Matcher;

/// The proxies that may be used.
#[derive(Debug, Default)]
pub(super) struct Proxies {
    /// `proxy-url` of the cluster.
    configured: Option<String>,
    http: Option<String>,
    https: Option<String>,
    exceptions: Option<String>,
}

impl Proxies {
    /// This `proxy-url`, and what the environment says.
    pub(super) fn new(configured: Option<String>) -> Self {
        let variable = |name: &str| {
            [name.to_ascii_uppercase(), name.to_owned()]
                .iter()
                .find_map(|name| env::var(name).ok().filter(|value| !value.is_empty()))
        };
        Self {
            configured,
            http: variable("http_proxy"),
            https: variable("https_proxy"),
            exceptions: variable("no_proxy"),
        }
    }

    /// The proxy for this server, as a URL.
    pub(super) fn for_server(&self, server: &Uri) -> Option<&str> {
        if let Some(url) = &self.configured {
            return Some(url);
        }
        // As Go's net/http: this machine is never reached through a proxy of the environment.
        if is_loopback(server.host().unwrap_or_default()) {
            return None;
        }
        let chosen = if server.scheme_str() == Some("http") { &self.http } else { &self.https };
        let excepted = Matcher::builder()
            .all("http://any")
            .no(self.exceptions.as_deref().unwrap_or_default())
            .build()
            .intercept(server)
            .is_none();
        chosen.as_deref().filter(|_| !excepted)
    }
}

fn is_loopback(host: &str) -> bool {
    let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn excepting(exceptions: &str) -> Proxies {
        Proxies {
            https: Some("http://proxy:3128".to_owned()),
            exceptions: Some(exceptions.to_owned()),
            ..Proxies::default()
        }
    }

    #[test]
    fn no_proxy_is_compared_with_the_server() {
        for (exceptions, server, used) in [
            ("", "https://api.example.com", true),
            ("api.example.com", "https://api.example.com:6443", false),
            (".example.com", "https://api.example.com", false),
            ("example.com,", "https://api.example.com", false),
            ("ample.com", "https://api.example.com", true),
            ("proxy", "https://api.example.com", true),
            ("10.0.0.0/8", "https://10.1.2.3", false),
            ("10.0.0.0/8", "https://11.1.2.3", true),
            ("fd00::/8", "https://[fd00::1]:6443", false),
            ("*", "https://anything", false),
            ("", "http://api.example.com", false),
            ("", "https://127.0.0.1:6443", false),
            ("", "https://localhost", false),
            ("", "https://[::1]", false),
        ] {
            let server: Uri = server.parse().unwrap();
            let proxy = excepting(exceptions).for_server(&server).is_some();
            assert_eq!(proxy, used, "{exceptions} {server}");
        }
    }

    #[test]
    fn a_configured_proxy_ignores_no_proxy() {
        let proxies =
            Proxies { configured: Some("http://corporate:8080".to_owned()), ..excepting("*") };
        let server = Uri::from_static("https://api");
        assert_eq!(proxies.for_server(&server), Some("http://corporate:8080"));
    }
}
