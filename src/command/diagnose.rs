//! `diagnose`: the rules over files or over a namespace.

use std::collections::BTreeSet;

use zone_rollout_core::diagnose::{
    self, Check, Diagnosis, Severity, Versions, checklist, matrix, problems, unreadable,
};
use zone_rollout_core::scene::{Coverage, Scene, Unreadable};

use super::Context;
use crate::cli::{CheckArg, Connection, DiagnoseArgs, DiagnoseOutput, SeverityArg};
use crate::cluster::{Clock, SystemClock, Want};
use crate::error::Error;
use crate::exit::Exit;
use crate::files;
use crate::render::{Io, document, findings, matrix as matrix_text};

/// Namespace of objects in files that name none.
const DEFAULT_NAMESPACE: &str = "default";

pub(super) fn of_files(
    args: &DiagnoseArgs,
    connection: &Connection,
    io: &mut Io,
) -> Result<Exit, Error> {
    let given = connection.namespace.as_deref().filter(|namespace| !namespace.is_empty());
    let documents = files::read(&args.filename, args.recursive)?;
    let namespace = given.unwrap_or(DEFAULT_NAMESPACE);
    let (scene, unread) = documents.into_scene(namespace, SystemClock.now());
    report(args, &scene, &unread, io)
}

pub(super) async fn of_cluster(
    context: &Context,
    args: &DiagnoseArgs,
    io: &mut Io,
) -> Result<Exit, Error> {
    let want = Want { namespace: context.namespace.clone(), everything: true, ..Want::default() };
    let scene = context.cluster.read(&want).await?;
    context.require_rollouts(&scene)?;
    for gap in told_gaps(&scene) {
        io.note(&format!("warning: not checked: {gap}"));
    }
    report(args, &scene, &scene.broken(), io)
}

/// Kinds that are there and could not be read. What the cluster does not serve cannot be wrong.
fn told_gaps(scene: &Scene) -> Vec<String> {
    let gaps = scene.gaps().into_iter();
    let there = gaps.filter(|(_, coverage)| **coverage != Coverage::KindAbsent);
    there.map(|(kind, coverage)| format!("{kind}: {coverage}")).collect()
}

fn report(
    args: &DiagnoseArgs,
    scene: &Scene,
    unread: &[Unreadable],
    io: &mut Io,
) -> Result<Exit, Error> {
    let versions = Versions { istio: args.istio_version, argo: args.argo_version };
    let mut diagnosis = diagnose::diagnose(scene, versions, &checks(args));
    diagnosis.findings.extend(unreadable(unread));
    diagnose::sort(&mut diagnosis.findings);
    let exit = verdict(&diagnosis, args.fail_on);
    io.result(&format(args, scene, &diagnosis, exit, io)?);
    Ok(exit)
}

fn format(
    args: &DiagnoseArgs,
    scene: &Scene,
    diagnosis: &Diagnosis,
    exit: Exit,
    io: &Io,
) -> Result<String, Error> {
    let versions = diagnosis.versions;
    let asked = |check: CheckArg| args.checks.contains(&check);
    let printed = |document: serde_json::Result<String>| {
        document.map_err(|error| {
            Error::unexpected("cannot write the document").because(error.to_string())
        })
    };
    match args.output {
        DiagnoseOutput::Text => {
            let mut parts = Vec::new();
            if asked(CheckArg::Traffic) {
                parts.push(matrix_text::text(&matrix(scene, versions), io.terminal()));
            }
            if asked(CheckArg::Checklist) {
                let found = &diagnosis.findings;
                parts.push(findings::checklist(&checklist(scene, found), &problems(found)));
            }
            if parts.is_empty() || !checks(args).is_empty() {
                parts.push(findings::text(diagnosis));
            }
            Ok(parts.join("\n"))
        }
        DiagnoseOutput::Json => {
            let points = checklist(scene, &diagnosis.findings);
            let traffic = matrix(scene, versions);
            let document = document::diagnosis(
                diagnosis,
                &points,
                &traffic,
                told_gaps(scene),
                exit,
                SystemClock.now(),
            );
            printed(serde_json::to_string_pretty(&document))
        }
        DiagnoseOutput::Sarif => printed(serde_json::to_string_pretty(&document::sarif(diagnosis))),
    }
}

/// The checks whose rules are applied; none means all.
fn checks(args: &DiagnoseArgs) -> BTreeSet<Check> {
    let check = |check: &CheckArg| match check {
        CheckArg::Zones => Some(Check::Zones),
        CheckArg::Routes => Some(Check::Routes),
        CheckArg::Rules => Some(Check::Rules),
        CheckArg::Budgets => Some(Check::Budgets),
        CheckArg::Analysis => Some(Check::Analysis),
        CheckArg::Rollouts => Some(Check::Rollouts),
        CheckArg::Checklist | CheckArg::Traffic => None,
    };
    args.checks.iter().filter_map(check).collect()
}

fn verdict(diagnosis: &Diagnosis, fail_on: SeverityArg) -> Exit {
    let limit = match fail_on {
        SeverityArg::Critical => Severity::Critical,
        SeverityArg::Error => Severity::Error,
        SeverityArg::Warning => Severity::Warning,
        SeverityArg::Info => Severity::Info,
    };
    let worst = diagnosis.findings.iter().map(|finding| finding.severity).max();
    if worst.is_some_and(|worst| worst >= limit) { Exit::Failed } else { Exit::Done }
}
