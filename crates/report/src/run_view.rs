//! What the views of all runs share: the head, findings, the columns of a latency and the fio commands.

use fathom_analysis::Analysis;
use fathom_analysis::conclusions::Conclusion;
use fathom_model::units;
use fathom_record::{
    Activity, ActivityKind, Finding, FindingId, LatencySummary, RunRecord, TestRecord, TestStatus,
};
use serde_json::{Value, json};

use crate::view::{Block, FindingEntry, KeyFigure, View, ViewHead};

/// A view that begins with what was measured, by what and when.
pub(crate) fn of_run(record: &RunRecord) -> View {
    let head = ViewHead {
        target: target(record),
        host: host(record),
        started_unix_ms: record.header.started_unix_ms,
    };
    View { head: Some(head), ..View::default() }
}

/// What a test is called.
pub(crate) fn name(test: &TestRecord) -> &str {
    if test.title.is_empty() { &test.id } else { &test.title }
}

/// What a test is addressed by.
pub(crate) fn id(test: &TestRecord) -> &str {
    &test.id
}

/// `/mnt/data on nvme1n1`, `ext4`, `100 GiB`, `Amazon Elastic Block Store`, `network`.
fn target(record: &RunRecord) -> Vec<String> {
    let target = &record.header.conditions.target;
    let name = match &record.header.activity {
        // A page may be about several.
        Activity::Import(source) if record.header.target.contains(',') || record.header.target.is_empty() => {
            &source.file
        }
        _ if record.header.target.is_empty() => &target.path,
        _ => &record.header.target,
    };
    let device = target.devices.first();
    let mut parts = vec![match device {
        Some(device) if !device.name.is_empty() && !name.ends_with(&device.name) => {
            format!("{name} on {}", device.name)
        }
        _ => name.clone(),
    }];
    if name.starts_with("sim:") {
        parts.push("simulated".to_owned());
    }
    if let Some(filesystem) = &target.filesystem {
        parts.push(filesystem.fs_type.clone());
    }
    let size = match (&target.filesystem, device) {
        (Some(filesystem), _) => filesystem.total_bytes,
        (None, device) => device.map_or(0, |device| device.size_bytes),
    };
    if size > 0 {
        parts.push(units::bytes(size));
    }
    // The model is known at the bottom of the stack, not for the partition or mapping on top.
    let described = target.devices.iter().find(|device| !device.model.is_empty());
    parts.extend(
        described.map(|device| format!("{} {}", device.vendor, device.model).trim_matches(' ').to_owned()),
    );
    parts.extend(target.devices.iter().find_map(|device| device.locality.clone()));
    parts.retain(|part| !part.is_empty());
    parts
}

/// `fathom 0.1.0`, `Linux 6.8.0`, `2 CPUs`, `4.0 GiB used`.
fn host(record: &RunRecord) -> Vec<String> {
    let header = &record.header;
    let host = header.host();
    let mut parts = Vec::new();
    if !header.tool_version.is_empty() {
        parts.push(format!("fathom {}", header.tool_version));
    }
    if !host.kernel.is_empty() {
        parts.push(format!("Linux {}", host.kernel));
    }
    let cpus = if host.cpus_allowed > 0 { host.cpus_allowed } else { host.cpus_online };
    match cpus {
        0 => {}
        1 => parts.push("1 CPU".to_owned()),
        cpus => parts.push(format!("{cpus} CPUs")),
    }
    if header.size_bytes > 0 {
        parts.push(format!("{} used", units::bytes(header.size_bytes)));
    }
    parts
}

/// Every finding with the tests it rests on; the remedy of several of one kind once, after the last.
pub(crate) fn findings(record: &RunRecord) -> Block {
    let alike = |one: &Finding, next: &Finding| (&one.id, &one.remedy) == (&next.id, &next.remedy);
    let entry = |alike: &[Finding]| {
        finding_entry(alike, alike.iter().map(|finding| claim(record, finding)).collect())
    };
    Block::Findings(record.findings.chunk_by(alike).map(entry).collect())
}

/// The first finding of each kind, and how many others there are: for runs whose tests are much alike. Of limits of the instance each is
/// another one.
pub(crate) fn brief_findings(record: &RunRecord) -> Block {
    let entry = |alike: &[Finding]| {
        // Each says something else.
        if [FindingId::InstanceCap, FindingId::Contradiction].contains(&alike[0].id) {
            return finding_entry(alike, alike.iter().map(|finding| claim(record, finding)).collect());
        }
        let others = match alike.len() - 1 {
            0 => None,
            1 => Some("1 more test alike.".to_owned()),
            others => Some(format!("{others} more tests alike.")),
        };
        finding_entry(alike, std::iter::once(claim(record, &alike[0])).chain(others).collect())
    };
    Block::Findings(record.findings.chunk_by(|one, next| one.id == next.id).map(entry).collect())
}

/// The verdict on every use, where the record has verdicts; those of a run that stopped before its end are qualified.
pub(crate) fn suitability(analysis: &Analysis<'_>) -> Vec<Block> {
    let figure = |conclusion: &Conclusion| {
        KeyFigure::new(conclusion.purpose, format!("{}: {}.", conclusion.verdict_text(), conclusion.reason))
    };
    let figures: Vec<KeyFigure> = analysis.conclusions().iter().map(figure).collect();
    let qualification = unfinished(analysis.record).filter(|_| !figures.is_empty());
    vec![Block::KeyFigures(figures), Block::Notes(qualification.into_iter().collect())]
}

/// What the verdicts of a run that stopped before its end rest on.
pub(crate) fn unfinished(record: &RunRecord) -> Option<String> {
    let complete = record.tests.iter().filter(|test| test.status == TestStatus::Complete).count();
    let tests = if complete == 1 { "the 1 test" } else { &format!("the {complete} tests") };
    (record.status == TestStatus::Incomplete).then(|| {
        format!("The run stopped before its end: verdicts rest on {tests} that completed; further tests may change them.")
    })
}

/// Findings of one kind, as severe as the worst of them.
fn finding_entry(alike: &[Finding], claims: Vec<String>) -> FindingEntry {
    FindingEntry {
        id: alike[0].id.clone(),
        severity: alike.iter().map(|finding| finding.severity).max().unwrap_or_default(),
        claims,
        remedy: alike[0].remedy.clone(),
    }
}

/// The note of a run that did not come to its end.
pub(crate) fn interruption(record: &RunRecord) -> Option<String> {
    let interrupted =
        record.header.interrupted.as_ref().map(|why| format!("The run was interrupted: {why}."));
    let lacks_end = || "The run stopped before its end: killed, or still running.".to_owned();
    interrupted.or_else(|| record.lacks_end().then(lacks_end))
}

/// The columns of a latency in data: its members come from [`latency_members`].
pub(crate) const LATENCY_COLUMNS: &str = "lat_samples,lat_min_ns=lat_ns.min,lat_mean_ns=lat_ns.mean,lat_max_ns=lat_ns.max,\
    lat_stdev_ns=lat_ns.stdev,lat_p50_ns=lat_ns.p50,lat_p90_ns=lat_ns.p90,lat_p95_ns=lat_ns.p95,\
    lat_p99_ns=lat_ns.p99,lat_p999_ns=lat_ns.p999,lat_p9999_ns=lat_ns.p9999";

/// A latency as a member of a document; the number of its samples is left out where there are none.
pub(crate) fn latency_members(lat: &LatencySummary) -> Value {
    json!({ "lat_ns": lat, "lat_samples": (lat.samples > 0).then_some(lat.samples) })
}

fn claim(record: &RunRecord, finding: &Finding) -> String {
    // As the rows of the report are named.
    let has_ids = matches!(record.header.activity.kind(), ActivityKind::Bench | ActivityKind::Sweep);
    let name = if has_ids { id } else { name };
    let of_finding = record.tests.iter().filter(|test| finding.tests.contains(&test.id));
    match of_finding.map(name).collect::<Vec<_>>().as_slice() {
        [] => finding.claim.clone(),
        tests if tests.len() > 3 && tests.len() == record.tests.len() => {
            format!("all {} tests: {}", tests.len(), finding.claim)
        }
        tests => format!("{}: {}", tests.join("; "), finding.claim),
    }
}

/// The exact command of each test.
pub(crate) fn fio_commands(record: &RunRecord) -> Block {
    let of_tests = record.tests.iter().filter(|test| !test.fio.is_empty());
    Block::Commands(of_tests.map(|test| (test.id.clone(), test.fio.clone())).collect())
}
