//! Values on the command line.

use std::time::Duration;

use zone_rollout_core::time::parse_duration;

/// `KEY=VALUE`.
///
/// # Errors
/// A sentence for people.
pub(super) fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(format!("`{text}` is not KEY=VALUE")),
    }
}

/// `[CONTAINER=]IMAGE`, as far as it can be told without the Rollout.
///
/// # Errors
/// A sentence for people.
pub(super) fn image(text: &str) -> Result<String, String> {
    let (container, image) = text.split_once('=').unwrap_or(("app", text));
    if is_image(image) && !container.is_empty() {
        Ok(text.to_owned())
    } else {
        Err(format!("`{text}` is not [CONTAINER=]IMAGE"))
    }
}

/// An image without a container.
///
/// # Errors
/// A sentence for people.
pub(super) fn plain_image(text: &str) -> Result<String, String> {
    if is_image(text) { Ok(text.to_owned()) } else { Err(format!("`{text}` is not an image")) }
}

fn is_image(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "._-/:@".contains(c);
    text.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.chars().all(is_part)
}

/// A URL that begins with `http://` or `https://` and names a host.
///
/// # Errors
/// A sentence for people.
pub(super) fn http_url(text: &str) -> Result<String, String> {
    let url = text.parse::<http::Uri>().ok().filter(|url| url.host().is_some());
    match url.as_ref().and_then(http::Uri::scheme_str) {
        Some("http" | "https") => Ok(text.to_owned()),
        _ => Err(format!("`{text}` is no URL; write http://prometheus.monitoring:9090")),
    }
}

/// The minor version of an Istio 1: 21 of `1.21` and of `1.21.4`.
///
/// # Errors
/// A sentence for people.
pub(super) fn istio_minor(text: &str) -> Result<u32, String> {
    let minor = text.trim_start_matches('v').strip_prefix("1.");
    let digits = minor.and_then(|minor| minor.split(['.', '-']).next());
    digits
        .and_then(|digits| digits.parse().ok())
        .ok_or_else(|| format!("`{text}` is no version of Istio; write 1.22"))
}

/// A duration as Go and kubectl write it: `90s`, `5m`, `1h30m`; bare numbers are seconds.
///
/// # Errors
/// A sentence for people.
pub fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text)
        .ok_or_else(|| format!("`{text}` is not a duration; write 90s, 5m or 1h30m"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_istio_are_told_by_their_minor() {
        for (text, minor) in [("1.21", 21), ("1.21.4", 21), ("v1.31-alpha", 31)] {
            assert_eq!(istio_minor(text), Ok(minor), "{text}");
        }
        for text in ["", "1", "2.1", "1.x", "one"] {
            assert!(istio_minor(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_url_names_a_host() {
        assert!(http_url("http://prometheus.monitoring:9090").is_ok());
        for text in ["", "prometheus:9090", "ftp://prometheus", "/metrics"] {
            assert!(http_url(text).is_err(), "{text}");
        }
    }
}
