//! The first screen: the verdict on each use, the most important findings, and the headline numbers; and at the end of the page
//! the conditions.

use fathom_analysis::Analysis;
use fathom_analysis::conclusions::Suitability;
use fathom_analysis::sweep::{self, Sweep};
use fathom_model::text::shell_quoted;
use fathom_model::{Op, units};
use fathom_record::{ActivityKind, RunRecord, TestStatus, TestSummary};

use super::parts;
use crate::run_view;
use crate::view::{Block, Cell, FindingEntry, KeyFigure, Tone};

/// Findings on the first screen.
const MAX_FINDINGS: usize = 3;

/// The blocks of the first section.
pub(super) fn blocks(analysis: &Analysis<'_>) -> Vec<Block> {
    let record = analysis.record;
    let verdicts = verdicts(analysis);
    let end = run_view::interruption(record);
    let qualification = run_view::unfinished(record).filter(|_| !verdicts.is_empty());
    let notes = end.into_iter().chain(qualification).chain(failed(record)).collect();
    vec![
        Block::Notes(notes),
        Block::KeyFigures(verdicts),
        Block::Findings(findings(record)),
        Block::KeyFigures(headlines(record)),
    ]
}

/// `2 of 9 tests failed.`
fn failed(record: &RunRecord) -> Option<String> {
    let count = record.tests.iter().filter(|test| test.status == TestStatus::Failed).count();
    (count > 0).then(|| format!("{count} of {} tests failed.", record.tests.len()))
}

/// The verdict on each use, without its reason, which stands further down.
fn verdicts(analysis: &Analysis<'_>) -> Vec<KeyFigure> {
    analysis
        .conclusions()
        .iter()
        .map(|conclusion| {
            let tone = match conclusion.verdict {
                Suitability::Yes => Tone::Normal,
                Suitability::No => Tone::Alarm,
                Suitability::Marginal | Suitability::Inconclusive => Tone::Dim,
            };
            KeyFigure { tone, ..KeyFigure::new(conclusion.purpose, conclusion.verdict_text()) }
        })
        .collect()
}

/// What a test gave in one direction.
struct DirectionResult<'a> {
    test: &'a str,
    iops: f64,
    bytes_per_second: f64,
    median_ns: Option<u64>,
}

/// The results of all tests in one direction; those of a sweep once their rates had settled, as in its own tables.
fn results<'a>(
    measured: &'a [(String, TestSummary)],
    swept: Option<&Sweep>,
    op: Op,
) -> Vec<DirectionResult<'a>> {
    let of_test = |(test, summary): &'a (String, TestSummary)| {
        let direction = match op {
            Op::Write => summary.write.as_ref()?,
            _ => summary.read.as_ref()?,
        };
        let point = swept.and_then(|sweep| sweep.points.iter().find(|point| point.spot.id() == *test));
        let (iops, bytes_per_second) = match point {
            Some(point) => (point.iops, point.bytes_per_second),
            None => (direction.iops, direction.bytes_per_second),
        };
        let median_ns = direction.latency().p50;
        Some(DirectionResult { test, iops, bytes_per_second, median_ns })
    };
    measured.iter().filter_map(of_test).collect()
}

/// The best of what was measured, each with its test.
fn headlines(record: &RunRecord) -> Vec<KeyFigure> {
    // Its probes are short and begin with full credits; what it found stands in its own sections.
    // The transfers of a surface are summed up in its own table.
    let kind = record.header.activity.kind();
    if matches!(kind, ActivityKind::Identify | ActivityKind::Surface) {
        return Vec::new();
    }
    let measured = parts::measured(record);
    let swept = (kind == ActivityKind::Sweep).then(|| sweep::assess(record));
    let mut figures = Vec::new();
    for op in [Op::Read, Op::Write] {
        let all = results(&measured, swept.as_ref(), op);
        let name = op.name();
        let labelled = |what: &str, test: &str| match measured.len() {
            1 => format!("{name} {what}"),
            _ => format!("{name} {what}, {test}"),
        };
        // The rate of a ping is its interval.
        let highest = |value: fn(&DirectionResult<'_>) -> f64| {
            let results = all.iter().filter(|result| value(result) > 0.0 && kind != ActivityKind::Ping);
            results.max_by(|one, other| value(one).total_cmp(&value(other)))
        };
        if let Some(result) = highest(|result| result.iops) {
            figures.push(KeyFigure::new(labelled("IOPS", result.test), Cell::iops(result.iops)));
        }
        if let Some(result) = highest(|result| result.bytes_per_second) {
            figures.push(KeyFigure::new(
                labelled("bandwidth", result.test),
                Cell::rate(result.bytes_per_second),
            ));
        }
        let medians = all.iter().filter_map(|result| Some((result.test, result.median_ns?)));
        if let Some((test, ns)) = medians.min_by_key(|(_, ns)| *ns) {
            figures.push(KeyFigure::new(labelled("median latency", test), Cell::latency(ns)));
        }
    }
    figures
}

/// The most severe findings, in their order.
fn findings(record: &RunRecord) -> Vec<FindingEntry> {
    let Block::Findings(mut all) = run_view::brief_findings(record) else { return Vec::new() };
    all.sort_by_key(|entry| std::cmp::Reverse(entry.severity));
    all.truncate(MAX_FINDINGS);
    all
}

/// What a reader needs to repeat or to doubt the run.
pub(super) fn conditions(record: &RunRecord) -> [Block; 2] {
    let header = &record.header;
    let host = header.host();
    let target = &header.conditions.target;
    let mut figures = Vec::new();
    let mut add = |label: &str, text: String| {
        if !text.is_empty() {
            figures.push(KeyFigure::new(label, text));
        }
    };
    let is_ours = header.activity.kind() != ActivityKind::Import;
    add("target", header.target.clone());
    add(
        "program",
        match header.tool_version.as_str() {
            "" => String::new(),
            version if is_ours => format!("fathom {version}"),
            version => format!("imported by fathom {version}"),
        },
    );
    add("seed", header.seed.map(|seed| seed.to_string()).unwrap_or_default());
    add("size used", if header.size_bytes > 0 { units::bytes(header.size_bytes) } else { String::new() });
    let hosts = header.hosts.iter().map(|host| host.hostname.as_str());
    let hosts: Vec<&str> = hosts.filter(|name| !name.is_empty()).collect();
    add(if hosts.len() > 1 { "hosts" } else { "host" }, hosts.join(", "));
    add("kernel", host.kernel.clone());
    add("CPU", host.cpu_model.clone());
    add("CPUs", if host.cpus_online > 0 { host.cpus_online.to_string() } else { String::new() });
    add("memory", if host.memory_bytes > 0 { units::bytes(host.memory_bytes) } else { String::new() });
    if let Some(filesystem) = &target.filesystem {
        add("file system", filesystem.fs_type.clone());
    }
    for device in &target.devices {
        let parts = [device.vendor.as_str(), device.model.as_str()].map(str::trim);
        let size = if device.size_bytes > 0 { units::bytes(device.size_bytes) } else { String::new() };
        let parts: Vec<&str> =
            parts.into_iter().chain([size.as_str()]).filter(|part| !part.is_empty()).collect();
        add(&format!("device {}", device.name), parts.join(", "));
    }
    for (name, value) in &header.labels {
        add(&format!("label {name}"), value.clone());
    }
    add("tags", header.tags.join(", "));
    for note in &header.notes {
        add("note", note.clone());
    }
    let command: Vec<_> = header.command.iter().map(|word| shell_quoted(word)).collect();
    let is_known = is_ours && !command.is_empty();
    let commands = is_known.then(|| ("this run".to_owned(), command.join(" ")));
    [Block::KeyFigures(figures), Block::Commands(commands.into_iter().collect())]
}
