//! Versions of Istio and Argo Rollouts, as far as rules depend on them.

use std::fmt;
use std::str::FromStr;

use crate::scene::Scene;

/// Major and minor version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// Major.
    pub major: u32,
    /// Minor.
    pub minor: u32,
}

impl Version {
    /// The version `major.minor`.
    pub const fn new(major: u32, minor: u32) -> Self {
        Self { major, minor }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl FromStr for Version {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.trim_start_matches('v').split(['.', '-', '_', '+']);
        let mut number = || parts.next().and_then(|part| part.parse().ok());
        match (number(), number()) {
            (Some(major), Some(minor)) => Ok(Self { major, minor }),
            _ => Err(format!("`{text}` is no version; it has to be like 1.27")),
        }
    }
}

/// The versions that are known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Versions {
    /// Istio's control plane.
    pub istio: Option<Version>,
    /// The Rollouts controller.
    pub argo: Option<Version>,
}

impl Versions {
    /// These, and where they are not given, what the control planes' Deployments run.
    #[must_use]
    pub fn or_read_from(self, scene: &Scene) -> Self {
        Self {
            istio: self.istio.or_else(|| version_of(scene, &["/pilot:", "/istiod:"])),
            argo: self.argo.or_else(|| version_of(scene, &["/argo-rollouts:"])),
        }
    }
}

fn version_of(scene: &Scene, images: &[&str]) -> Option<Version> {
    let templates = scene.deployments.iter().map(|(_, deployment)| &deployment.spec.template);
    let mut running = templates.flat_map(crate::template::images);
    running.find_map(|(_, image)| {
        let image = format!("/{image}");
        let tag = images.iter().find_map(|name| image.split_once(name))?.1;
        tag.split('@').next()?.parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_read_as_they_are_written_in_tags() {
        for (text, version) in [
            ("1.27.1", Some(Version::new(1, 27))),
            ("v1.9.1", Some(Version::new(1, 9))),
            ("1.26.2-distroless", Some(Version::new(1, 26))),
            ("1.20", Some(Version::new(1, 20))),
            ("latest", None),
        ] {
            assert_eq!(text.parse().ok(), version, "{text}");
        }
    }
}
