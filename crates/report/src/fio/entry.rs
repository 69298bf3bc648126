//! One entry of fio's normal output: a worker, or a merged group.

use std::io;

use fathom_model::Op;
use fathom_model::plan::UnifiedReporting;
use fathom_model::text::errno_text;
use fathom_record::{FailureCause, OpOutcome, ReportEntry};

use crate::fio::conditions::{latency_line, steady_line};
use crate::fio::direction::{Direction, directions};
use crate::fio::latency::{line, percentiles};
use crate::fio::number::Figures;
use crate::fio::priority;
use crate::fio::report::{
    BATCH_LABELS, DEPTH_LABELS, EntryShares, GroupFigures, continued_errors, errno, per_second,
};
use crate::{Style, TextWriter};

/// Writes an entry; one that moved no data and failed at nothing is left out, as fio does.
pub(crate) fn write_entry(
    out: &mut TextWriter,
    entry: &ReportEntry,
    group: &GroupFigures,
    style: &Style,
    finished_unix_ms: u64,
) -> io::Result<()> {
    let measured = &entry.job.measured;
    let idle = Op::DATA.iter().all(|&op| measured.op(op).bytes == 0 && measured.op(op).issued == 0);
    if idle && measured.syncs == 0 && entry.job.error.is_none() {
        return Ok(());
    }
    head(out, entry, &style.time(finished_unix_ms, "%a %b %e %H:%M:%S %Y"))?;
    for one in directions(entry, group).iter().filter(|one| one.counted.bytes > 0 && one.of.runtime_ms > 0) {
        direction(out, entry, one)?;
        latencies(out, entry, &one.counted)?;
        windows(out, entry, one)?;
    }
    let shares = EntryShares::new(entry);
    class_lines(out, "nsec", &shares.ns)?;
    class_lines(out, "usec", &shares.us)?;
    class_lines(out, "msec", &shares.ms)?;
    if measured.sync_lat.samples() > 0 {
        writeln!(out, "  fsync/fdatasync/sync_file_range/syncfs:")?;
        line(out, "sync", &measured.sync_lat, 8)?;
        percentiles(out, "sync", &measured.sync_lat, &entry.job.plan.measure.percentiles)?;
    }
    tail(out, entry, &shares)
}

/// The place, function and text of an error in fio's lines; fio names the place in its source.
pub fn error_place(errno: i32, cause: FailureCause) -> String {
    let func = match cause {
        FailureCause::Other | FailureCause::Request(_) => "io_u error",
        FailureCause::NoData(_) => "full resid",
        FailureCause::MaxLatency { .. } => "max latency exceeded",
        FailureCause::LeastRate => "check_min_rate",
    };
    format!("file:fathom:0, func={func}, error={}", errno_text(errno))
}

fn head(out: &mut TextWriter, entry: &ReportEntry, time: &str) -> io::Result<()> {
    let job = &entry.job;
    let (name, group, workers, pid) = (&job.name, job.group, entry.workers, job.thread_id);
    let errno = errno(entry);
    let error = match errno {
        0 => String::new(),
        _ if entry.job.error.is_none() => " ()".to_owned(),
        errno => {
            let cause = job.error.as_ref().map(|error| error.cause).unwrap_or_default();
            format!(" ({})", error_place(errno, cause))
        }
    };
    writeln!(out, "{name}: (groupid={group}, jobs={workers}): err={errno:2}{error}: pid={pid}: {time}")?;
    match &job.description {
        Some(description) if !description.is_empty() => writeln!(out, "  Description  : [{description}]"),
        _ => Ok(()),
    }
}

fn direction(out: &mut TextWriter, entry: &ReportEntry, direction: &Direction<'_>) -> io::Result<()> {
    let Direction { name, counted, of, .. } = direction;
    let form = entry.job.plan.measure.figures;
    let rate = per_second(counted.bytes, of.runtime_ms);
    let [first, second] = form.families();
    writeln!(
        out,
        "  {name}: IOPS={}, BW={} ({})({}/{}msec)",
        form.count(per_second(counted.ios, of.runtime_ms)),
        form.bandwidth(rate, first),
        form.bandwidth(rate, second),
        form.bytes(counted.bytes, first),
        of.runtime_ms
    )
}

fn latencies(out: &mut TextWriter, entry: &ReportEntry, counted: &OpOutcome) -> io::Result<()> {
    let measure = &entry.job.plan.measure;
    let [slat, clat, lat] = measure.shown_percentiles();
    let kinds = [("slat", &counted.slat, slat), ("clat", &counted.clat, clat), ("lat", &counted.lat, lat)];
    for (name, latency, _) in kinds {
        line(out, name, latency, 8)?;
    }
    priority::lines(out, counted, measure)?;
    for (name, latency, _) in kinds.into_iter().filter(|&(_, _, shown)| shown) {
        percentiles(out, name, latency, &measure.percentiles)?;
    }
    priority::percentile_blocks(out, counted, measure)
}

/// The `bw` and `iops` lines; missing where no full window passed.
fn windows(out: &mut TextWriter, entry: &ReportEntry, direction: &Direction<'_>) -> io::Result<()> {
    let Direction { of, group, .. } = direction;
    let rate = &of.bandwidth;
    if rate.samples > 0 {
        let units = if entry.job.plan.measure.figures.decimal { ["kB", "MB"] } else { ["KiB", "MiB"] };
        let (unit, divisor) = if rate.mean > 1_048_576.0 { (units[1], 1024) } else { (units[0], 1) };
        let scaled = |value: f64| value / divisor as f64;
        writeln!(
            out,
            "   bw ({unit:>5}/s): min={:5}, max={:5}, per={:3.2}%, avg={:5.2}, stdev={:5.2}, samples={}",
            rate.min / divisor,
            rate.max / divisor,
            group.percent_of(rate.mean),
            scaled(rate.mean),
            scaled(rate.stdev()),
            rate.samples
        )?;
    }
    let iops = &of.iops;
    if iops.samples > 0 {
        writeln!(
            out,
            "   iops        : min={:5}, max={:5}, avg={:5.2}, stdev={:5.2}, samples={}",
            iops.min,
            iops.max,
            iops.mean,
            iops.stdev(),
            iops.samples
        )?;
    }
    Ok(())
}

/// The non-zero latency classes of one unit, five per line.
fn class_lines(out: &mut TextWriter, unit: &str, shares: &[f64]) -> io::Result<()> {
    let labels = fathom_record::LatencyClasses::LABELS;
    let filled: Vec<String> = labels
        .iter()
        .zip(shares)
        .filter(|&(_, &share)| share > 0.0)
        .map(|(label, share)| format!("{label}={share:3.2}%"))
        .collect();
    for row in filled.chunks(5) {
        writeln!(out, "  lat ({unit})   : {}", row.join(", "))?;
    }
    Ok(())
}

fn labelled(labels: &[&str], shares: &[f64]) -> String {
    let pairs: Vec<String> =
        labels.iter().zip(shares).map(|(label, share)| format!("{label}={share:3.1}%")).collect();
    pairs.join(", ")
}

fn tail(out: &mut TextWriter, entry: &ReportEntry, shares: &EntryShares) -> io::Result<()> {
    let measured = &entry.job.measured;
    let cpu = &measured.cpu;
    writeln!(
        out,
        "  cpu          : usr={:3.2}%, sys={:3.2}%, ctx={}, majf={}, minf={}",
        shares.user,
        shares.system,
        cpu.voluntary_switches + cpu.involuntary_switches,
        cpu.major_faults,
        cpu.minor_faults
    )?;
    writeln!(out, "  IO depths    : {}", labelled(&DEPTH_LABELS, &shares.depth))?;
    writeln!(out, "     submit    : {}", labelled(&BATCH_LABELS, &shares.submit))?;
    writeln!(out, "     complete  : {}", labelled(&BATCH_LABELS, &shares.complete))?;
    let is_mixed = entry.job.plan.measure.unified == UnifiedReporting::Mixed;
    let three = |field: fn(&OpOutcome) -> u64| {
        let counts = Op::DATA.map(|op| field(measured.op(op)));
        let counts = if is_mixed { [counts.iter().sum(), 0, 0] } else { counts };
        counts.map(|count| count.to_string()).join(",")
    };
    writeln!(
        out,
        "     issued rwts: total={},{} short={},0 dropped={},0",
        three(|op| op.issued),
        measured.syncs,
        three(|op| op.short),
        three(|_| 0)
    )?;
    if let Some((total, first)) = continued_errors(entry) {
        writeln!(out, "     errors    : total={total}, first_error={first}/<{}>", errno_text(first))?;
    }
    writeln!(out, "{}", latency_line(&entry.job))?;
    match &entry.job.steady {
        Some(steady) => writeln!(out, "{}", steady_line(steady, &entry.job.plan.measure.figures)),
        None => Ok(()),
    }
}
