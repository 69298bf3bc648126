//! The table that `bench` ends with: one row per test, units in the head, the reasons where a row has no numbers.

use std::io;

use fathom_model::plan::Mix;
use fathom_model::units;
use fathom_record::{JobRecord, LatencySummary, RunRecord, TestRecord, TestStatus, TestSummary};

use crate::columns::{self, Align, Columns, wrap};
use crate::{Style, TextWriter, bench::below as bench_below};

/// Writes the table with what was measured above it and what a reader should know below.
///
/// # Errors
/// Those of `out`.
pub fn render(record: &RunRecord, style: &Style, out: &mut TextWriter) -> io::Result<()> {
    let width = style.width.max(40);
    header(record, style, width, out)?;
    let summaries: Vec<TestSummary> = record.tests.iter().map(TestSummary::new).collect();
    table(record, &summaries, style, width, out)?;
    bench_below::render(record, &summaries, style, width, out)
}

pub(crate) fn header(
    record: &RunRecord,
    style: &Style,
    width: usize,
    out: &mut TextWriter,
) -> io::Result<()> {
    let left = target_line(record);
    let right = host_line(record, style);
    let (wide, gap) = (columns::width(&left) + columns::width(&right), 4);
    if !left.is_empty() && !right.is_empty() && wide + gap <= width {
        let fill = " ".repeat(width - wide);
        writeln!(out, "{}{fill}{}", style.bold(&left), style.dim(&right))?;
        return writeln!(out);
    }
    for line in wrap(&left, width, 0, 2) {
        writeln!(out, "{}", style.bold(&line))?;
    }
    for line in wrap(&right, width, 0, 2) {
        writeln!(out, "{}", style.dim(&line))?;
    }
    writeln!(out)
}

/// `/mnt/data on nvme1n1, ext4, 100 GiB, Amazon Elastic Block Store, network`.
fn target_line(record: &RunRecord) -> String {
    let target = &record.header.conditions.target;
    let name = if record.header.target.is_empty() { &target.path } else { &record.header.target };
    let device = target.devices.first();
    let mut parts = vec![match device {
        Some(device) if !device.name.is_empty() && !name.ends_with(&device.name) => {
            format!("{name} on {}", device.name)
        }
        _ => name.clone(),
    }];
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
    parts.join(", ")
}

/// `fathom 0.1.0, Linux 6.8.0, 2 CPUs, 4.0 GiB used, 2026-11-20 18:00`.
fn host_line(record: &RunRecord, style: &Style) -> String {
    let header = &record.header;
    let host = &header.conditions.host;
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
    if header.started_unix_ms > 0 {
        parts.push(style.time(header.started_unix_ms, "%Y-%m-%d %H:%M"));
    }
    parts.join(", ")
}

const HEAD: [(&str, Align); 9] = [
    ("test", Align::Left),
    ("", Align::Left),
    ("IOPS", Align::Right),
    ("±%", Align::Right),
    ("MiB/s", Align::Right),
    ("p50", Align::Right),
    ("p99", Align::Right),
    ("p99.9", Align::Right),
    ("device", Align::Right),
];
/// Columns that may go where the terminal is narrow, first to last; the rest is never left out.
const DISPENSABLE: [&str; 4] = ["", "device", "p99.9", "±%"];
pub(crate) const INDENT: usize = 2;

fn table(
    record: &RunRecord,
    summaries: &[TestSummary],
    style: &Style,
    width: usize,
    out: &mut TextWriter,
) -> io::Result<()> {
    if record.tests.is_empty() {
        return writeln!(out, "  No test was run.");
    }
    let mut columns = Columns {
        head: HEAD.iter().map(|(name, _)| *name).collect(),
        align: HEAD.iter().map(|(_, align)| *align).collect(),
        rows: record.tests.iter().zip(summaries).map(|(test, summary)| row(test, summary)).collect(),
    };
    let gap = columns.fit(width - INDENT, &DISPENSABLE);
    let reasons = place_reasons(record, summaries, &mut columns, gap, width);
    let lines = columns.lines(gap);
    writeln!(out, "{:INDENT$}{}", "", style.bold(&lines[0]))?;
    for ((line, more), test) in lines[1..].iter().zip(&reasons).zip(&record.tests) {
        let paint = |text: &str| match test.status {
            TestStatus::Complete => text.to_owned(),
            TestStatus::Skipped => style.dim(text),
            TestStatus::Failed | TestStatus::Incomplete => style.red(text),
        };
        writeln!(out, "{:INDENT$}{}", "", paint(line))?;
        for line in more {
            writeln!(out, "{}", paint(line))?;
        }
    }
    Ok(())
}

/// Puts the reason of each row without numbers into the row, and returns the lines that follow each row.
fn place_reasons(
    record: &RunRecord,
    summaries: &[TestSummary],
    columns: &mut Columns,
    gap: usize,
    width: usize,
) -> Vec<Vec<String>> {
    let first_number = columns.head.iter().position(|&name| name == "IOPS").unwrap_or(1);
    let start = INDENT + columns.start(first_number, gap);
    let mut following = Vec::new();
    for (index, (test, summary)) in record.tests.iter().zip(summaries).enumerate() {
        let mut lines = match (test.status, &test.reason) {
            (TestStatus::Complete, _) => Vec::new(),
            (status, Some(reason)) => wrap(&format!("{}: {reason}", status.name()), width, start, start + 2),
            (status, None) => vec![format!("{:start$}{}", "", status.name())],
        };
        if summary.total.is_none() && !lines.is_empty() {
            columns.rows[index].truncate(first_number);
            columns.rows[index].push(lines.remove(0).trim_start_matches(' ').to_owned());
        }
        following.push(lines);
    }
    following
}

fn row(test: &TestRecord, summary: &TestSummary) -> Vec<String> {
    let latency = row_latency(summary);
    let shown = |carried: Option<u64>, thin: Option<u64>| match (carried, thin) {
        (Some(ns), _) => units::latency(ns),
        (None, Some(ns)) => format!("~{}", units::latency(ns)),
        (None, None) => String::new(),
    };
    let total = summary.total.as_ref();
    vec![
        name(test).to_owned(),
        shape(test.jobs.first(), test.jobs.len()),
        iops(summary),
        summary.stability.map(|stability| format!("{:.1}", stability.cv * 100.0)).unwrap_or_default(),
        total.map(|op| decimal(op.bytes_per_second / (1 << 20) as f64)).unwrap_or_default(),
        shown(latency.p50, latency.thin.p50),
        shown(latency.p99, latency.thin.p99),
        shown(latency.p999, latency.thin.p999),
        summary
            .device
            .as_ref()
            .filter(|_| total.is_some())
            .map(|device| count(device.iops))
            .unwrap_or_default(),
    ]
}

/// What a row is called.
pub(crate) fn name(test: &TestRecord) -> &str {
    if test.title.is_empty() { &test.id } else { &test.title }
}

/// The latency a row shows: of the sync where every write is followed by one, else total latency (completion latency
/// where that was not recorded).
pub(crate) fn row_latency(summary: &TestSummary) -> LatencySummary {
    if let Some(sync) = summary.sync.as_ref().filter(|_| commits(summary)) {
        return sync.lat_ns.clone();
    }
    let total = summary.total.clone().unwrap_or_default();
    if total.lat_ns.samples > 0 { total.lat_ns } else { total.clat_ns }
}

/// True where (nearly) every write was followed by a sync.
pub(crate) fn commits(summary: &TestSummary) -> bool {
    let writes = summary.write.as_ref().map_or(0, |write| write.ios);
    summary.sync.as_ref().is_some_and(|sync| writes > 0 && sync.ios * 10 >= writes * 9)
}

/// `4k d64 75/25`, `128k d1 x8`, `4k d1 +fdatasync`, `4k-64k d8`.
fn shape(job: Option<&JobRecord>, workers: usize) -> String {
    let Some(job) = job else { return String::new() };
    let io = &job.plan.io;
    let (least, most) = (job.smallest_blocks(), job.block_sizes);
    let sizes = |least: u64, most: u64| match () {
        () if least < most => format!("{}-{}", block(least), block(most)),
        () => block(most),
    };
    let (read, write) = (sizes(least.read, most.read), sizes(least.write, most.write));
    let mut parts = vec![match job.rw.as_str() {
        "rw" | "randrw" if read != write => format!("{read}/{write}"),
        "write" | "randwrite" => write,
        "trim" | "randtrim" => sizes(least.trim, most.trim),
        _ => read,
    }];
    parts.push(format!("d{}", job.iodepth));
    if workers > 1 {
        parts.push(format!("x{workers}"));
    }
    if let Mix::ReadWrite { read_percent } = io.pattern.mix {
        parts.push(format!("{read_percent}/{}", 100u8.saturating_sub(read_percent)));
    }
    for (sync, every) in [("fsync", io.fsync_every), ("fdatasync", io.fdatasync_every)] {
        match every {
            0 => {}
            1 => parts.push(format!("+{sync}")),
            every => parts.push(format!("+{sync}/{every}")),
        }
    }
    parts.join(" ")
}

/// `4k`, `1m`, `512`.
fn block(bytes: u64) -> String {
    for (unit, suffix) in [(1u64 << 30, "g"), (1 << 20, "m"), (1 << 10, "k")] {
        if bytes >= unit && bytes.is_multiple_of(unit) {
            return format!("{}{suffix}", bytes / unit);
        }
    }
    bytes.to_string()
}

/// The rate of each direction: `3,001`, or `2,251+750` where there are two.
fn iops(summary: &TestSummary) -> String {
    let rates: Vec<String> = [&summary.read, &summary.write, &summary.trim]
        .into_iter()
        .flatten()
        .map(|op| count(op.iops))
        .collect();
    rates.join("+")
}

/// A rate: whole from 10 on, with one decimal below.
pub(crate) fn count(rate: f64) -> String {
    if rate < 9.95 { format!("{rate:.1}") } else { units::grouped(rate.round() as u64) }
}

/// Whole from 1000 on, with one decimal below, and with three below a tenth.
pub(crate) fn decimal(value: f64) -> String {
    match value {
        999.95.. => units::grouped(value.round() as u64),
        0.0005..0.1 => format!("{value:.3}"),
        _ => format!("{value:.1}"),
    }
}
