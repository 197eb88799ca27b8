//! What can be typed.

mod by_hand;
mod connection;
mod evacuate;
mod manifests;
mod values;

use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub use by_hand::{AbortArgs, ByHandArgs, ByHandOutput, HoldArgs, Telling, UndoArgs, Zones};
pub use connection::Connection;
pub use evacuate::{EvacuateArgs, RestoreArgs};
pub use manifests::{GitOpsArg, LayoutArg, ManifestsArgs};
pub use values::duration;
use zone_rollout_core::diagnose::Version;

/// Release a service zone by zone: one Argo Rollout per availability zone, one after another.
#[derive(Debug, Parser)]
#[command(
    name = "kubectl zone-rollout",
    bin_name = "kubectl zone-rollout",
    version,
    max_term_width = 100,
    disable_help_subcommand = true,
    subcommand_required = true,
    arg_required_else_help = true
)]
pub struct Cli {
    /// The verb.
    #[command(subcommand)]
    pub verb: Verb,
    /// How to reach the cluster.
    #[command(flatten)]
    pub connection: Connection,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Show the zones of a group, one row each
    Status(StatusArgs),
    /// Show what `promote --sequential` would do, and when, without doing it
    Plan(Box<PlanArgs>),
    /// Bring a new version to the zones, one after another
    Promote(Box<PromoteArgs>),
    /// Take zones in flight back to their stable version, and see that it took effect
    Abort(AbortArgs),
    /// Start zones again whose update was given up
    Retry(ByHandArgs),
    /// Take zones back to the version before, one after another
    Undo(UndoArgs),
    /// Hold zones where they are (spec.paused) until they are released
    Hold(HoldArgs),
    /// Release zones that this tool holds
    Release(ByHandArgs),
    /// Send the clients of a zone to the stable pods of another
    Evacuate(EvacuateArgs),
    /// Bring the clients of an evacuated zone back to it
    Restore(RestoreArgs),
    /// Find what is wrong in files or in a namespace, name the cause, and say what to do
    Diagnose(DiagnoseArgs),
    /// Explain a finding by its code
    Explain(ExplainArgs),
    /// Generate a layout that holds: Services, Rollouts, rules, routes; needs no cluster
    Manifests(Box<ManifestsArgs>),
    /// Watch a release on a simulated cluster: nothing is installed, read or written
    Demo(DemoArgs),
    /// Print the versions of this program, Kubernetes, Argo Rollouts and Istio
    Version(VersionArgs),
    /// Explain how kubectl completes verbs, flags, groups and zones
    Completion,
}

/// Which Rollouts are meant.
#[derive(Debug, Clone, Default, Args)]
pub struct Which {
    /// Only Rollouts with these labels
    #[arg(short = 'l', long, value_name = "SELECTOR")]
    pub selector: Option<String>,
    /// Take exactly these Rollouts as one group
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub rollouts: Vec<String>,
}

/// `status`
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// GROUP, GROUP/ZONE or a zone; needed if the namespace has several groups
    pub address: Option<String>,
    /// Which Rollouts.
    #[command(flatten)]
    pub which: Which,
    /// Watch: print again when something changes
    #[arg(short, long)]
    pub watch: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    pub output: StatusOutput,
    /// Exit 3 if a zone failed, 4 if one is stuck, 7 if one is on its way or waits
    #[arg(long)]
    pub exit_code: bool,
}

/// Formats of `status`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum StatusOutput {
    /// A table
    #[default]
    Table,
    /// A table with whole images, nodes' zones and reasons
    Wide,
    /// One JSON document
    Json,
    /// One YAML document
    Yaml,
    /// The Rollouts' names
    Name,
}

/// What a promotion is to do; the same for `plan` and `promote`.
#[derive(Debug, Args)]
pub struct ReleaseArgs {
    /// GROUP, GROUP/ZONE or a zone; needed if the namespace has several groups
    pub address: Option<String>,
    /// Which Rollouts.
    #[command(flatten)]
    pub which: Which,
    /// Order of the zones; default: by name
    #[arg(long, value_name = "ZONE,...", value_delimiter = ',')]
    pub order: Vec<String>,
    /// Begin with this zone of the order
    #[arg(long, value_name = "ZONE")]
    pub from: Option<String>,
    /// Only these zones
    #[arg(long, value_name = "ZONE,...", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Leave a zone out, even if it is not well; may be repeated
    #[arg(long, value_name = "ZONE,...", value_delimiter = ',')]
    pub skip_zone: Vec<String>,
    /// How long each zone is watched after its promotion
    #[arg(long, value_name = "DURATION", value_parser = values::duration, default_value = "5m")]
    pub soak: Duration,
    /// How long the first zone is watched
    #[arg(long, value_name = "DURATION", value_parser = values::duration, default_value = "10m")]
    pub first_soak: Duration,
    /// Set this image in each zone when its turn comes; [CONTAINER=]IMAGE
    #[arg(long, value_name = "IMAGE", value_parser = values::image, conflicts_with = "expect")]
    pub image: Vec<String>,
    /// Wait until the zones ask for this image; [CONTAINER=]IMAGE
    #[arg(long, value_name = "IMAGE", value_parser = values::image)]
    pub expect: Vec<String>,
    /// How long to wait for the expected image
    #[arg(long, value_name = "DURATION", value_parser = values::duration, default_value = "15m")]
    pub wait_sync: Duration,
    /// Hold zones without a gate (spec.paused) before the expected image arrives
    #[arg(long, requires = "expect")]
    pub hold: bool,
    /// Hold them even where that freezes a HorizontalPodAutoscaler
    #[arg(long, requires = "hold")]
    pub freeze_hpa: bool,
    /// Change specs even where GitOps owns them
    #[arg(long)]
    pub force: bool,
    /// At pauses for a person after the gate
    #[arg(long, value_enum, value_name = "WHAT")]
    pub pauses: Option<PausesArg>,
    /// What to do with a zone that failed
    #[arg(long, value_enum, value_name = "WHAT", default_value_t)]
    pub on_failure: OnFailureArg,
    /// Limit for the whole run
    #[arg(long, value_name = "DURATION", value_parser = values::duration)]
    pub timeout: Option<Duration>,
    /// Share of a zone's stable pods, in percent, that may take all its traffic back
    #[arg(long, value_name = "PERCENT", default_value_t = 50, value_parser = clap::value_parser!(u32).range(0..=100))]
    pub stable_floor: u32,
}

/// `plan`
#[derive(Debug, Args)]
pub struct PlanArgs {
    /// What the promotion is to do.
    #[command(flatten)]
    pub release: ReleaseArgs,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    pub output: PlanOutput,
}

/// Formats of `plan`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum PlanOutput {
    /// For people
    #[default]
    Text,
    /// One JSON document
    Json,
}

/// `promote`
#[derive(Debug, Args)]
pub struct PromoteArgs {
    /// Zone after zone: required for more than one zone
    #[arg(long)]
    pub sequential: bool,
    /// What is to be done.
    #[command(flatten)]
    pub release: ReleaseArgs,
    /// Go on only if the plan is still the one with this hash, which `plan` prints
    #[arg(long, value_name = "HASH")]
    pub plan: Option<String>,
    /// Command that judges a zone: exit 0 good, 1 bad, else no data
    #[arg(long, value_name = "COMMAND")]
    pub check: Option<String>,
    /// Command that is told when the run waits, failed or is done; the event is on its standard input
    #[arg(long, value_name = "COMMAND")]
    pub notify: Option<String>,
    /// Print the plan and stop
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask before starting
    #[arg(short, long)]
    pub yes: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    pub output: PromoteOutput,
}

/// Formats of `promote`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum PromoteOutput {
    /// For people
    #[default]
    Text,
    /// One JSON document at the end
    Json,
    /// One JSON object a line as things happen
    Events,
}

/// `--pauses`
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PausesArg {
    /// Ask; the default on a terminal
    Ask,
    /// End the pause, after a good check if there is one
    Open,
    /// Stop with exit 7; the default elsewhere
    Stop,
}

/// `--on-failure`
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum OnFailureArg {
    /// Leave the zone as it is
    #[default]
    Leave,
    /// Abort the zone and take its traffic back
    AbortZone,
}

/// `demo`
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// What to show
    #[arg(value_enum, default_value_t)]
    pub scenario: DemoScenario,
    /// Seconds that pass there in one second here; default: so many that it lasts a few seconds
    #[arg(long, value_name = "FACTOR", value_parser = clap::value_parser!(u32).range(1..))]
    pub speed: Option<u32>,
    /// Number of zones
    #[arg(long, value_name = "COUNT", default_value_t = 3, value_parser = clap::value_parser!(u8).range(2..=6))]
    pub zones: u8,
}

/// What `demo` shows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum DemoScenario {
    /// Three zones, one after another
    #[default]
    Healthy,
    /// A version that crashes
    BadRelease,
    /// A zone is lost in the middle of its update
    ZoneOutage,
    /// An abort that leaves traffic on the new version
    StableShort,
    /// Zones that advance by themselves
    SelfAdvancing,
    /// One DestinationRule for all zones
    SharedRule,
}

/// `diagnose`
#[derive(Debug, Args)]
pub struct DiagnoseArgs {
    /// Only these checks; default: all but `traffic` and `checklist`, which print something else
    #[arg(value_enum, value_name = "CHECK")]
    pub checks: Vec<CheckArg>,
    /// Read objects from a file, a folder, or - for standard input, and not from the cluster
    #[arg(short, long, value_name = "PATH")]
    pub filename: Vec<String>,
    /// In folders, read those below as well
    #[arg(short = 'R', long, requires = "filename")]
    pub recursive: bool,
    /// Exit 3 if a finding is at least this bad
    #[arg(long, value_enum, value_name = "SEVERITY", default_value_t)]
    pub fail_on: SeverityArg,
    /// Version of Istio, where it cannot be read: 1.27
    #[arg(long, value_name = "VERSION")]
    pub istio_version: Option<Version>,
    /// Version of Argo Rollouts, where it cannot be read: 1.9
    #[arg(long, value_name = "VERSION")]
    pub argo_version: Option<Version>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    pub output: DiagnoseOutput,
}

/// Named checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CheckArg {
    /// Zones, nodes, where pods run
    Zones,
    /// Routes of VirtualServices
    Routes,
    /// DestinationRules: subsets, locality, ejection
    Rules,
    /// Disruption budgets
    Budgets,
    /// Analysis, metrics, alerts
    Analysis,
    /// Steps, gates and references of Rollouts
    Rollouts,
    /// The points to check before a first release, one line each
    Checklist,
    /// Where each zone's requests go, now and after the loss of each zone
    Traffic,
}

/// `--fail-on`
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum SeverityArg {
    /// Requests fail
    Critical,
    /// Something that is meant to work does not
    #[default]
    Error,
    /// A surprise that is waiting
    Warning,
    /// Worth knowing
    Info,
}

/// Formats of `diagnose`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum DiagnoseOutput {
    /// For people
    #[default]
    Text,
    /// One JSON document
    Json,
    /// SARIF 2.1.0, for code review
    Sarif,
}

/// `explain`
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// Code of a finding, such as ZRI001; without it, all codes are listed
    pub code: Option<String>,
}

/// `version`
#[derive(Debug, Args)]
pub struct VersionArgs {
    /// Only the version of this program; needs no cluster
    #[arg(long)]
    pub client: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    pub output: VersionOutput,
}

/// Formats of `version`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum VersionOutput {
    /// For people
    #[default]
    Text,
    /// One JSON document
    Json,
    /// One YAML document
    Yaml,
}
