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
    let is_part = |c: char| c.is_ascii_alphanumeric() || "._-/:@".contains(c);
    let is_image =
        image.starts_with(|c: char| c.is_ascii_alphanumeric()) && image.chars().all(is_part);
    if is_image && !container.is_empty() {
        Ok(text.to_owned())
    } else {
        Err(format!("`{text}` is not [CONTAINER=]IMAGE"))
    }
}

/// A duration as Go and kubectl write it: `90s`, `5m`, `1h30m`; bare numbers are seconds.
///
/// # Errors
/// A sentence for people.
pub fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text)
        .ok_or_else(|| format!("`{text}` is not a duration; write 90s, 5m or 1h30m"))
}
