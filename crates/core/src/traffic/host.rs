//! Host names as Istio resolves them.

use crate::scene::Key;

const CLUSTER_DOMAIN: &str = ".svc.cluster.local";

/// Resolves a host that is written in an object of `namespace`.
///
/// Mirrors `ResolveShortnameToFQDN` (istio `pkg/config/host`): only a name without a dot is short.
pub(crate) fn fully_qualified(host: &str, namespace: &str) -> String {
    if host.contains('.') || host == "*" {
        host.to_owned()
    } else {
        format!("{host}.{namespace}{CLUSTER_DOMAIN}")
    }
}

/// True if a host that is written in an object of `namespace` is this fully qualified one.
pub(crate) fn is_host(written: &str, namespace: &str, host: &str) -> bool {
    if written.contains('.') || written == "*" {
        return written == host;
    }
    let rest = host.strip_prefix(written).and_then(|rest| rest.strip_prefix('.'));
    rest.and_then(|rest| rest.strip_prefix(namespace)) == Some(CLUSTER_DOMAIN)
}

/// The Service behind a fully qualified host of this cluster.
pub(crate) fn service_of(host: &str) -> Option<Key> {
    let (name, namespace) = host.strip_suffix(CLUSTER_DOMAIN)?.split_once('.')?;
    Some(Key::new(namespace, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_without_a_dot_are_short() {
        assert_eq!(fully_qualified("test", "shop"), "test.shop.svc.cluster.local");
        assert_eq!(fully_qualified("test.other", "shop"), "test.other");
        for written in ["test", "test.shop.svc.cluster.local"] {
            assert!(is_host(written, "shop", "test.shop.svc.cluster.local"));
            assert!(!is_host(written, "shop", "test2.shop.svc.cluster.local"));
        }
        assert!(!is_host("test", "other", "test.shop.svc.cluster.local"));
        assert_eq!(service_of("test.shop.svc.cluster.local"), Some(Key::new("shop", "test")));
        assert_eq!(service_of("example.com"), None);
    }
}
