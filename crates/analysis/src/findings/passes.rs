//! Reads that are slow the first time and quick afterwards: blocks that are fetched on first use, or a cache beyond this
//! machine that has them by then.

use fathom_model::units;
use fathom_record::{Finding, FindingId, Histogram, Interval, Latency, RunRecord, Severity};

use crate::rows::{RecordRow, RowKind};
use crate::say::{count, finding};

/// Median of the first pass over that of the later ones from which on they are of two kinds.
const SLOWER: f64 = 2.0;
/// Requests of each pass that a median takes here.
const LEAST: u64 = 200;
/// Intervals of the first pass below which its latency may be that of a moment.
const MIN_INTERVALS: usize = 2;
/// Share of the bytes that must have come from the device, where one was watched: else it was this machine's cache.
const FROM_DEVICE: f64 = 0.98;

/// The remedy of a first-touch penalty.
pub(crate) const TOUCH: &str =
    "Read every block once before measuring or using the volume: `fathom prepare --touch`.";

/// What there is to say of one row: random reads by one worker, which asks for every block once before any twice.
pub(crate) fn findings(record: &RunRecord, row: &RecordRow<'_>) -> Option<Finding> {
    let [job] = row.jobs() else { return None };
    let read = row.summary.read.as_ref().filter(|_| row.kind() == Some(RowKind::Read))?;
    let mapped = row.jobs().iter().all(|job| job.plan.io.random_map && job.plan.io.access.is_uniform());
    let seen = row.summary.device.as_ref().filter(|_| row.has_device);
    let from_device = seen.is_none_or(|device| device.read_bytes as f64 >= FROM_DEVICE * read.bytes as f64);
    let size = if record.header.size_bytes > 0 { record.header.size_bytes } else { row.planned_size() };
    if !row.is_random() || !mapped || !row.is_direct() || !from_device || size == 0 {
        return None;
    }
    let ramp = job.ramp.as_ref().map_or(0, |ramp| ramp.read.bytes);
    let (first, later) = medians(&job.measured.series, ramp, size)?;
    let ratio = first as f64 / later.max(1) as f64;
    // A working file has been written just now: nothing of it is left to be fetched.
    let written = row.is_own() && record.header.conditions.target.kind == "directory";
    let times = format!(
        "the first access to a block took {}, later ones {}",
        units::latency(first),
        units::latency(later)
    );
    let (id, claim, remedy) = if written {
        let claim = format!(
            "{times}: a cache between this machine and the medium served the later ones, {} times as fast.",
            count(ratio)
        );
        (FindingId::HostCache, claim, "Use a size well above the cache of the host (--size).")
    } else {
        let claim = format!("{times}: first-touch penalty (a volume created from a snapshot), or a cache.");
        (FindingId::FirstTouch, claim, TOUCH)
    };
    Some(
        Finding { severity: Severity::Warning, ..finding(id, [row], claim, remedy) }
            .with("first_pass_p50_ns", first)
            .with("later_passes_p50_ns", later)
            .with("times_slower", ratio)
            .with("pass_bytes", size),
    )
}

/// Median latencies of the first pass over `size` bytes and of those after it, ns, where both have enough requests and
/// the first is slower all the way: a machine that was busy for a moment at the start is no cache.
fn medians(series: &[Interval], before: u64, size: u64) -> Option<(u64, u64)> {
    let (mut first, mut later) = (Vec::new(), Vec::new());
    let mut moved = before;
    for interval in series {
        let from = moved;
        moved += interval.read.bytes;
        match (from, moved) {
            (_, to) if to <= size => first.push(interval),
            (from, _) if from >= size => later.push(interval),
            _ => continue,
        }
    }
    let (first_ns, later_ns) = (median(&first, LEAST)?, median(&later, LEAST)?);
    let slow_ns = (later_ns as f64 * SLOWER) as u64;
    let is_slow = |interval: &&Interval| median(&[interval], 1).is_none_or(|ns| ns >= slow_ns);
    (first.len() >= MIN_INTERVALS && first.iter().all(is_slow)).then_some((first_ns, later_ns))
}

/// The median over intervals with at least so many requests, ns.
fn median(intervals: &[&Interval], least: u64) -> Option<u64> {
    let bins = intervals.iter().flat_map(|interval| &interval.read.clat_bins);
    let histogram = Histogram::from_sparse(bins.map(|&(bin, count)| (usize::from(bin), count)));
    let all = Latency { histogram, ..Latency::default() };
    if all.histogram.samples() < least { None } else { all.fio_percentile(50.0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{TestLoad, clat_bins, record};
    use crate::rows::rows;

    /// 12 seconds of 2000 reads, of which the first five go over the target once.
    fn run(first_ns: u64) -> RunRecord {
        let mut run = record(&[TestLoad::default()]);
        run.header.size_bytes = 5 * 2000 * 4096;
        for interval in &mut run.tests[0].jobs[0].measured.series[..5] {
            interval.read.clat_bins = clat_bins(2000, first_ns);
        }
        run
    }

    fn reported(run: &RunRecord) -> Option<String> {
        findings(run, &rows(run)[0]).map(|finding| finding.id.to_string())
    }

    #[test]
    fn first_and_later_passes() {
        assert_eq!(reported(&run(500_000)), None);
        assert_eq!(reported(&run(900_000)), None);
        assert_eq!(reported(&run(1_100_000)).as_deref(), Some("first-touch"));
        let mut written = run(1_100_000);
        written.header.conditions.target.kind = "directory".to_owned();
        assert_eq!(reported(&written).as_deref(), Some("host-cache"));
        // Out of this machine's memory, without a second pass, or in no order that tells passes apart.
        let spoilt = |change: fn(&mut RunRecord)| {
            let mut run = run(1_100_000);
            change(&mut run);
            reported(&run)
        };
        assert_eq!(spoilt(|run| run.tests[0].disks[0].counters.read_sectors /= 2), None);
        assert_eq!(spoilt(|run| run.header.size_bytes = 1 << 40), None);
        // A moment at the start, however slow; most of the pass, but not all of it.
        assert_eq!(spoilt(|run| run.header.size_bytes = 2000 * 4096), None);
        let quick = |run: &mut RunRecord| {
            run.tests[0].jobs[0].measured.series[3].read.clat_bins = clat_bins(2000, 500_000);
        };
        assert_eq!(spoilt(quick), None);
        assert_eq!(spoilt(|run| crate::fixture::plan(run, |plan| plan.io.random_map = false)), None);
    }
}
