//! `manifests`: what a layout is generated from, and where it goes.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::values;

/// `manifests`
#[derive(Debug, Args)]
pub struct ManifestsArgs {
    /// Name of the service; its Rollouts are called NAME-ZONE
    pub name: String,
    /// Image of the container
    #[arg(long, value_name = "IMAGE", value_parser = values::plain_image)]
    pub image: String,
    /// Zones as nodes are labelled, two or more; SHORT=ZONE gives one another short name
    #[arg(long, value_name = "ZONE,...", value_delimiter = ',', required = true)]
    pub zones: Vec<String>,
    /// How traffic is laid out
    #[arg(long, value_enum, default_value_t)]
    pub layout: LayoutArg,
    /// Order in which zones take each other's place; default: as named
    #[arg(long, value_name = "ZONE,...", value_delimiter = ',')]
    pub order: Vec<String>,
    /// Pods in each zone
    #[arg(long, value_name = "COUNT", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub replicas: u32,
    /// Port of the Service
    #[arg(long, default_value_t = 8080, value_parser = clap::value_parser!(u16).range(1..))]
    pub port: u16,
    /// Port of the container; default: that of the Service
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub target_port: Option<u16>,
    /// Weights of a new version, in percent
    #[arg(
        long,
        value_name = "PERCENT,...",
        value_delimiter = ',',
        default_value = "10,20,50,80",
        value_parser = clap::value_parser!(u32).range(1..=100)
    )]
    pub steps: Vec<u32>,
    /// Pause after each weight
    #[arg(long, value_name = "DURATION", value_parser = values::duration, default_value = "5m")]
    pub pause: Duration,
    /// Add analysis and alerts; Prometheus as the Rollouts controller reaches it
    #[arg(long, value_name = "URL", value_parser = values::http_url)]
    pub prometheus: Option<String>,
    /// Version of Istio, such as 1.21; default: 1.22 or newer
    #[arg(long, value_name = "VERSION", value_parser = values::istio_minor)]
    pub istio_version: Option<u32>,
    /// Folder to write a file for each object to; `-` prints them
    #[arg(short, long, value_name = "DIR", default_value = "-")]
    pub output: PathBuf,
    /// Add a kustomization.yaml to the folder
    #[arg(long)]
    pub kustomize: bool,
    /// Add what this tool has to know to leave alone what is not its own
    #[arg(long, value_enum, value_name = "TOOL")]
    pub gitops: Option<GitOpsArg>,
    /// Write over files that are there
    #[arg(long)]
    pub force: bool,
}

/// `--layout`
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum LayoutArg {
    /// Own zone, then the next, then all others; Istio 1.22
    #[default]
    Ring,
    /// Own zone only, until it is evacuated by hand; Istio 1.18
    ZoneLocal,
    /// No traffic routing: a canary's share is that of its pods; Istio 1.18
    Plain,
}

/// `--gitops`
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum GitOpsArg {
    /// Sync waves, and a patch for the Application
    Argocd,
    /// Annotations
    Flux,
}
