//! What `diagnose` tells programs.

use jiff::Timestamp;
use serde::Serialize;
use zone_rollout_core::diagnose::{
    Diagnosis, Effect, Evidence, Finding, HostMatrix, Point, Severity, Shares, Verdict,
};
use zone_rollout_core::scene::Origin;
use zone_rollout_core::time::Moment;

use std::collections::BTreeMap;

use super::API_VERSION;
use crate::exit::Exit;

/// What `diagnose -o json` prints.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DiagnosisDocument {
    api_version: &'static str,
    kind: &'static str,
    time: Timestamp,
    exit_code: u8,
    /// Whether traffic was computed from pods that are assumed.
    assumed_pods: bool,
    istio_version: Option<String>,
    argo_version: Option<String>,
    /// Kinds that could not be read, with the reason.
    not_read: Vec<String>,
    findings: Vec<FindingDocument>,
    checklist: Vec<PointDocument>,
    traffic: Vec<HostDocument>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct FindingDocument {
    code: &'static str,
    severity: Severity,
    effect: Effect,
    check: &'static str,
    title: String,
    evidence: Vec<EvidenceDocument>,
    fix: String,
    verify: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct EvidenceDocument {
    kind: &'static str,
    namespace: String,
    name: String,
    path: String,
    value: String,
    file: Option<String>,
    line: Option<u32>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct PointDocument {
    text: &'static str,
    /// `Holds`, `Fails` or `Unknown`.
    verdict: &'static str,
    codes: Vec<&'static str>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct HostDocument {
    host: String,
    clients: Vec<ClientDocument>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ClientDocument {
    client: String,
    now: SharesDocument,
    gone: BTreeMap<String, SharesDocument>,
    failing: BTreeMap<String, SharesDocument>,
}

/// In percent.
#[derive(Debug, Serialize)]
struct SharesDocument {
    zones: BTreeMap<String, f64>,
    errors: f64,
}

/// The document of a diagnosis.
pub fn diagnosis(
    diagnosis: &Diagnosis,
    points: &[Point],
    traffic: &[HostMatrix],
    not_read: Vec<String>,
    exit: Exit,
    now: Moment,
) -> DiagnosisDocument {
    DiagnosisDocument {
        api_version: API_VERSION,
        kind: "Diagnosis",
        time: now.wall,
        exit_code: exit.code(),
        assumed_pods: diagnosis.assumed_pods,
        istio_version: diagnosis.versions.istio.map(|version| version.to_string()),
        argo_version: diagnosis.versions.argo.map(|version| version.to_string()),
        not_read,
        findings: diagnosis.findings.iter().map(finding).collect(),
        checklist: points.iter().map(point).collect(),
        traffic: traffic.iter().map(host).collect(),
    }
}

fn finding(finding: &Finding) -> FindingDocument {
    FindingDocument {
        code: finding.rule.code,
        severity: finding.severity,
        effect: finding.rule.effect,
        check: finding.rule.check.name(),
        title: finding.title.clone(),
        evidence: finding.evidence.iter().map(evidence).collect(),
        fix: finding.fix.clone(),
        verify: finding.verify.clone(),
    }
}

fn evidence(evidence: &Evidence) -> EvidenceDocument {
    let (file, line) = match &evidence.origin {
        Some(Origin::File { path, line }) => (Some(path.to_string()), Some(*line)),
        _ => (None, None),
    };
    EvidenceDocument {
        kind: evidence.object.kind,
        namespace: evidence.object.key.namespace.clone(),
        name: evidence.object.key.name.clone(),
        path: evidence.path.clone(),
        value: evidence.value.clone(),
        file,
        line,
    }
}

fn point(point: &Point) -> PointDocument {
    let (verdict, codes) = match &point.verdict {
        Verdict::Holds => ("Holds", Vec::new()),
        Verdict::Fails(codes) => ("Fails", codes.clone()),
        Verdict::Unknown(_) => ("Unknown", Vec::new()),
    };
    PointDocument { text: point.text, verdict, codes }
}

fn host(matrix: &HostMatrix) -> HostDocument {
    let by_zone = |losses: &[(String, Shares)]| {
        losses.iter().map(|(zone, lost)| (zone.clone(), shares(lost))).collect()
    };
    let clients = matrix.rows.iter().map(|row| ClientDocument {
        client: row.client.clone(),
        now: shares(&row.now),
        gone: by_zone(&row.gone),
        failing: by_zone(&row.failing),
    });
    HostDocument { host: matrix.host.clone(), clients: clients.collect() }
}

fn shares(shares: &Shares) -> SharesDocument {
    let percent = |share: f64| (share * 1000.0).round() / 10.0;
    let zones = shares.zones.iter().map(|(zone, share)| (zone.clone(), percent(*share)));
    SharesDocument { zones: zones.collect(), errors: percent(shares.errors) }
}
