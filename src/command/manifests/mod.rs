//! `manifests`: a layout from a few words. No cluster is asked and no kubeconfig is read.

mod files;

use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use zone_rollout_core::layout::{
    self, GitOps, Layout, Spec, SpecError, argo_cd_patch, for_gitops, with_metrics,
};
use zone_rollout_core::time::{format_duration, parse_duration};

use self::files::File;
use crate::cli::{Connection, GitOpsArg, LayoutArg, ManifestsArgs};
use crate::error::Error;
use crate::exit::Exit;
use crate::render::{Io, manifests};

/// Without progress for so long, a Rollout counts as stuck.
const PROGRESS_DEADLINE_SECONDS: u32 = 600;
/// From this minor version of Istio 1 its objects are served as `v1`.
const FIRST_V1: u32 = 22;
/// What Argo CD has to be told is no object, so the file has no ending that `kubectl apply` reads.
const ARGO_CD_PATCH: &str = "argocd-application.patch";

pub(super) fn run(
    connection: &Connection,
    args: &ManifestsArgs,
    io: &mut Io,
) -> Result<Exit, Error> {
    let layout = match args.layout {
        LayoutArg::Ring => Layout::Ring,
        LayoutArg::ZoneLocal => Layout::ZoneLocal,
        LayoutArg::Plain => Layout::Plain,
    };
    let spec = spec(connection, args).map_err(|error| wrong(&error))?;
    check_istio(args, layout)?;
    let files = files(args, layout, &spec)?;
    let objects = || files.iter().filter(|file| file.is_object);
    if args.output == Path::new("-") {
        if args.kustomize || args.force {
            return Err(Error::usage("--kustomize and --force need a folder: -o DIR"));
        }
        io.result(&manifests::stream(objects().map(|file| file.text.as_str())));
        for aside in files.iter().filter(|file| !file.is_object) {
            io.result(&manifests::aside(&aside.text));
        }
    } else {
        files::write(&args.output, &files, args.force)?;
        io.note(&manifests::written(&args.output, objects().count(), args.kustomize));
    }
    Ok(Exit::Done)
}

fn spec(connection: &Connection, args: &ManifestsArgs) -> Result<Spec, SpecError> {
    let mut zones = layout::zones(&args.zones)?;
    if !args.order.is_empty() {
        zones = layout::in_order(zones, &args.order)?;
    }
    let namespace = connection.namespace.as_deref().filter(|name| !name.is_empty());
    let v1 = args.istio_version.is_none_or(|minor| minor >= FIRST_V1);
    let spec = Spec {
        name: args.name.clone(),
        namespace: namespace.unwrap_or("default").to_owned(),
        image: args.image.clone(),
        zones,
        replicas: args.replicas,
        port: args.port,
        target_port: args.target_port.unwrap_or(args.port),
        gate: true,
        weights: args.steps.clone(),
        pause: pause(args.pause),
        progress_deadline_seconds: PROGRESS_DEADLINE_SECONDS,
        istio_api_version: if v1 { "v1" } else { "v1beta1" }.to_owned(),
    };
    spec.check()?;
    Ok(spec)
}

/// As Argo Rollouts reads it, without loss.
fn pause(span: Duration) -> String {
    let text = format_duration(span);
    if parse_duration(&text) == Some(span) { text } else { format!("{}s", span.as_secs()) }
}

fn wrong(error: &SpecError) -> Error {
    Error::usage(error.to_string()).hint(
        "a complete line: kubectl zone-rollout manifests shop --image shop:v1 --zones \
         us-east-1a,us-east-1b",
    )
}

fn check_istio(args: &ManifestsArgs, layout: Layout) -> Result<(), Error> {
    match args.istio_version {
        Some(minor) if minor < layout.first_istio() => {
            let first = layout.first_istio();
            let error =
                Error::usage(format!("this layout needs Istio 1.{first} or newer, not 1.{minor}"));
            Err(match layout {
                Layout::Ring => error.hint("take the one without failover: --layout zone-local"),
                Layout::ZoneLocal | Layout::Plain => error,
            })
        }
        _ => Ok(()),
    }
}

/// Everything that is generated, in the order in which to apply it; then what is no object.
fn files(args: &ManifestsArgs, layout: Layout, spec: &Spec) -> Result<Vec<File>, Error> {
    let tool = args.gitops.map(|tool| match tool {
        GitOpsArg::Argocd => GitOps::ArgoCd,
        GitOpsArg::Flux => GitOps::Flux,
    });
    let mut objects = layout.objects(spec);
    if let Some(address) = &args.prometheus {
        objects = with_metrics(spec, objects, address);
    }
    if let Some(tool) = tool {
        objects = for_gitops(spec, objects, tool);
    }
    let mut files = Vec::new();
    for (index, object) in objects.iter().enumerate() {
        let text = manifests::object(layout, spec, object)?;
        let name = file_name(index, objects.len(), object);
        files.push(File { name, text, is_object: true });
    }
    let names: Vec<String> = files.iter().map(|file| file.name.clone()).collect();
    if args.kustomize {
        let text = manifests::kustomization(&names)?;
        files.push(File { name: "kustomization.yaml".to_owned(), text, is_object: false });
    }
    if tool == Some(GitOps::ArgoCd) && layout != Layout::Plain {
        let text = manifests::argo_cd(&argo_cd_patch(spec, &objects))?;
        files.push(File { name: ARGO_CD_PATCH.to_owned(), text, is_object: false });
    }
    Ok(files)
}

/// Numbered, so that `kubectl apply -f DIR` applies them in their order.
fn file_name(index: usize, count: usize, object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (kind, name) = (text(&object["kind"]).to_lowercase(), text(&object["metadata"]["name"]));
    let digits = count.to_string().len();
    format!("{:0digits$}-{kind}-{name}.yaml", index + 1)
}
