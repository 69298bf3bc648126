//! Histogram log of HdrHistogram (version 1.3, compressed V2 histograms): completion latencies in ns, one line for each interval
//! of each test and operation, under the tag `RUN.TEST.OPERATION`.
//!
//! A value is the middle of its bin, within 1/128 of every latency in it.

use std::io::{self, Write};
use std::time::{Duration, UNIX_EPOCH};

use fathom_model::Op;
use fathom_record::{
    Histogram, Interval, IntervalOp, JobRecord, PhaseOutcome, latency_bin_midpoint, merge_jobs,
};
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, IntervalLogWriterError, Tag};

use super::ExportedRun;

/// Significant digits: finer than the bins.
const DIGITS: u8 = 3;
/// Beyond the last bin, which begins after 2.4 hours.
const MAX_NS: u64 = 1 << 44;
/// Maxima beside the histograms are in ms, as is usual.
const NS_PER_MS: f64 = 1e6;

/// Latencies of one interval.
struct LatencyInterval {
    /// Since the beginning of the log.
    start: Duration,
    length: Duration,
    histogram: Histogram,
    tag: String,
}

/// Writes the latencies of `runs`, in the order of time.
///
/// # Errors
/// Those of `out`.
pub fn render(runs: &[ExportedRun], out: &mut dyn Write) -> io::Result<()> {
    let begun = |run: &ExportedRun| run.record.header.started_unix_ms;
    let base = Duration::from_millis(runs.iter().map(begun).filter(|ms| *ms > 0).min().unwrap_or(0));
    let mut intervals: Vec<LatencyInterval> = Vec::new();
    for run in runs {
        for test in &run.record.tests {
            let started = if test.started_unix_ms > 0 { test.started_unix_ms } else { begun(run) };
            let offset = Duration::from_millis(started).saturating_sub(base);
            let workers: Vec<&JobRecord> = test.jobs.iter().collect();
            let measured = merge_jobs(&workers).measured;
            for (place, op) in Op::DATA.into_iter().enumerate() {
                let name = format!("{}.{}.{}", run.row.id, test.id, op.name());
                let of_op = |interval: &Interval| bins(interval.ops()[place]);
                intervals.extend(of_test(&measured, op, of_op, offset, &tag(&name)));
            }
        }
    }
    intervals.sort_by_key(|interval| interval.start);
    let mut out = out;
    let mut serializer = V2DeflateSerializer::new();
    let mut builder = IntervalLogWriterBuilder::new();
    builder
        .add_comment("[Histogram log format version 1.3]")
        .add_comment("[Completion latencies by fathom, ns; maxima in ms]")
        .with_start_time(UNIX_EPOCH + base)
        .with_base_time(UNIX_EPOCH + base)
        .with_max_value_divisor(NS_PER_MS);
    let mut writer = builder.begin_log_with(&mut out, &mut serializer)?;
    for LatencyInterval { start, length, histogram, tag } in intervals {
        let filled = filled(&histogram)?;
        writer.write_histogram(&filled, start, length, Tag::new(&tag)).map_err(|error| match error {
            IntervalLogWriterError::IoError(error) => error,
            IntervalLogWriterError::SerializeError(error) => io::Error::other(error.to_string()),
        })?;
    }
    Ok(())
}

/// The intervals of one operation. Where they do not have all of its requests, the whole test is one.
fn of_test(
    measured: &PhaseOutcome,
    op: Op,
    of_op: impl Fn(&Interval) -> Histogram,
    offset: Duration,
    tag: &str,
) -> Vec<LatencyInterval> {
    let all = &measured.op(op).clat.histogram;
    if all.samples() == 0 {
        return Vec::new();
    }
    let at = |start_ns: u64, end_ns: u64, histogram: Histogram| LatencyInterval {
        start: offset + Duration::from_nanos(start_ns),
        length: Duration::from_nanos(end_ns.saturating_sub(start_ns)),
        histogram,
        tag: tag.to_owned(),
    };
    let parts: Vec<LatencyInterval> =
        measured.series.iter().map(|one| at(one.start_ns, one.end_ns, of_op(one))).collect();
    let mut sum = Histogram::default();
    parts.iter().for_each(|part| sum.merge(&part.histogram));
    match sum == *all {
        true => parts.into_iter().filter(|part| part.histogram.samples() > 0).collect(),
        false => vec![at(measured.start_ns, measured.end_ns, all.clone())],
    }
}

fn bins(op: &IntervalOp) -> Histogram {
    Histogram::from_sparse(op.clat_bins.iter().map(|&(bin, count)| (usize::from(bin), count)))
}

fn filled(histogram: &Histogram) -> io::Result<hdrhistogram::Histogram<u64>> {
    let refused = |error: &dyn std::fmt::Display| io::Error::other(error.to_string());
    let mut filled = hdrhistogram::Histogram::<u64>::new_with_bounds(1, MAX_NS, DIGITS)
        .map_err(|error| refused(&error))?;
    for (bin, count) in histogram.sparse() {
        let ns = latency_bin_midpoint(bin);
        filled.record_n(ns, count).map_err(|error| refused(&error))?;
    }
    Ok(filled)
}

/// A tag ends at a comma, a blank or an end of line.
fn tag(name: &str) -> String {
    name.chars().map(|c| if c == ',' || c.is_whitespace() || c.is_control() { '_' } else { c }).collect()
}
