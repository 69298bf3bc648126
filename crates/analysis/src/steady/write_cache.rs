//! A write cache in the device that filled while a run wrote. What it takes in before it is full does not depend on the block size: all
//! bytes of a row, less those that went on to the medium in the same time. A flush then takes as long as the medium needs for them.

use fathom_record::TestStatus;
use fathom_record::stability::Second;
use fathom_stats::sample::{mean, upper_median};

use crate::rows::{RecordRow, RowKind};

/// Seconds belong to the level at the end of a row within this share.
const AT_LEVEL: f64 = 0.10;
/// Full seconds of a level.
const MIN_SECONDS: usize = 2;
/// Limiters give away what was not used before: less than a second of their rate.
const SLACK_S: f64 = 1.0;
/// Intervals of what two rows were given more than the medium wrote are this many times their error.
const ERRORS: f64 = 2.0;
/// Sizes by two rows, and by a row and its flush, differ by no more.
const SAME_SIZE: f64 = 0.10;
const SAME_FLUSH: f64 = 0.30;
/// The flush of a file system writes less.
const METADATA_BYTES: f64 = 16e6;
/// A flush of nothing takes less, ns.
pub(crate) const SLOW_FLUSH_NS: u64 = 1_000_000_000;

/// A write cache.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct WriteCache {
    /// Bytes, as 95 % interval; `high` is `None` where it did not fill.
    pub(crate) low: f64,
    pub(crate) size: Option<f64>,
    pub(crate) high: Option<f64>,
    /// Bytes per second of the medium, and the most that the cache took.
    pub(crate) rate: f64,
    pub(crate) before: f64,
    /// Rows in which it filled.
    pub(crate) filled: Vec<usize>,
    /// Time at the rate of the medium, ns.
    pub(crate) held_ns: u64,
}

/// What a row was given beyond the rate that it ended with.
#[derive(Clone, Copy, Debug)]
struct Absorbed {
    bytes: f64,
    error: f64,
    rate: f64,
    held_ns: u64,
    highest: f64,
}

/// Bytes of a row with its ramp, and their time, ns.
fn moved(row: &RecordRow<'_>) -> (f64, u64) {
    let jobs = || row.jobs().iter();
    let phases = || jobs().flat_map(|job| job.ramp.iter().chain([&job.measured]));
    let start = phases().map(|phase| phase.start_ns).min().unwrap_or(0);
    let end = phases().map(|phase| phase.end_ns).max().unwrap_or(0);
    (phases().flat_map(|phase| phase.ops()).map(|op| op.bytes).sum::<u64>() as f64, end.saturating_sub(start))
}

fn absorbed(row: &RecordRow<'_>) -> Option<Absorbed> {
    let rate_of = |second: &Second| second.bytes as f64 * 1e9 / second.elapsed_ns.max(1) as f64;
    let rates: Vec<f64> = row.seconds.iter().map(rate_of).collect();
    let one = 1.5 * row.block_bytes()? as f64;
    let last = upper_median(rates[rates.len().saturating_sub(MIN_SECONDS)..].iter().copied())?;
    let is_at = |rate: &&f64| (*rate - last).abs() <= AT_LEVEL * last + one;
    let held = rates.iter().rev().take_while(is_at).count();
    if held < MIN_SECONDS || last <= 0.0 || row.test.status != TestStatus::Complete {
        return None;
    }
    // The rate falls within a second.
    let counted = if held < rates.len() && held > MIN_SECONDS { held - 1 } else { held };
    let rate = mean(&rates[rates.len() - counted..]);
    let held_ns: u64 = row.seconds[rates.len() - counted..].iter().map(|second| second.elapsed_ns).sum();
    let (bytes, elapsed_ns) = moved(row);
    let elapsed_s = elapsed_ns as f64 / 1e9;
    // The level is known to one I/O more or less in the time that it was counted.
    let error = ERRORS * one * (1.0 + elapsed_ns as f64 / held_ns as f64) + 0.005 * rate * elapsed_s;
    let ramp = row.jobs().iter().filter_map(|job| job.ramp.as_ref());
    let of_ramp =
        ramp.map(|ramp| ramp.write.bytes as f64 * 1e9 / ramp.elapsed_ns().max(1) as f64).sum::<f64>();
    let highest = rates.iter().copied().fold(of_ramp, f64::max);
    Some(Absorbed { bytes: bytes - rate * elapsed_s, error, rate, held_ns, highest })
}

/// Time of the flush after a row, ns; 0 where there was none.
pub(crate) fn flush_ns(row: &RecordRow<'_>) -> u64 {
    row.test.flush.map_or(0, |flush| flush.first_ns)
}

/// A row that begins above the rate that it ends with, by more than a limiter gives away.
fn begins_above(row: &RecordRow<'_>) -> bool {
    absorbed(row).is_some_and(|it| it.bytes > it.error + SLACK_S * it.rate)
}

/// The cache that the rows, in the order of time, show.
pub(crate) fn find(rows: &[RecordRow<'_>]) -> Option<WriteCache> {
    let counts = |row: &RecordRow<'_>, kind| {
        row.kind() == Some(kind)
            && row.is_direct()
            && !row.is_paced()
            && !row.is_synced()
            && row.block_bytes().is_some()
    };
    let is_known =
        |row: &RecordRow<'_>| row.test.published.as_ref().is_some_and(|published| published.own.is_some());
    if rows.iter().any(|row| is_known(row) || row.test.fleet.is_some()) {
        return None;
    }
    let writes = || rows.iter().enumerate().filter(|(_, row)| counts(row, RowKind::Write));
    let filled: Vec<(usize, Absorbed)> = writes()
        .filter(|(_, row)| begins_above(row))
        .filter_map(|(at, row)| Some((at, absorbed(row)?)))
        .collect();
    if filled.is_empty() {
        return unfilled(rows, writes().map(|(at, _)| at));
    }
    let rate = mean(&filled.iter().map(|(_, it)| it.rate).collect::<Vec<_>>());
    let is_alike = |(_, it): &(usize, Absorbed)| (it.rate / rate - 1.0).abs() <= AT_LEVEL;
    // Credits of both directions hold reads as well.
    let reads_fall = rows.iter().any(|row| counts(row, RowKind::Read) && begins_above(row));
    let fits_flush = |&(at, it): &(usize, Absorbed)| {
        let drained = flush_ns(&rows[at]) as f64 / 1e9 * it.rate;
        flush_ns(&rows[at]) >= SLOW_FLUSH_NS && (drained / it.bytes - 1.0).abs() <= SAME_FLUSH
    };
    let sizes = || filled.iter().map(|(_, it)| it.bytes);
    let (least, most) = (sizes().fold(f64::MAX, f64::min), sizes().fold(0.0, f64::max));
    let errors = filled.iter().map(|(_, it)| it.error).fold(0.0, f64::max);
    let is_same_size = most - least <= SAME_SIZE * most + errors;
    if reads_fall || !is_same_size || !filled.iter().all(is_alike) || !filled.iter().any(fits_flush) {
        return None;
    }
    // The row whose rate is known best.
    let (_, best) = filled.iter().min_by(|(_, one), (_, other)| one.error.total_cmp(&other.error))?;
    Some(WriteCache {
        low: best.bytes - best.error,
        size: Some(best.bytes),
        high: Some(best.bytes + best.error),
        rate,
        before: filled.iter().map(|(_, it)| it.highest).fold(0.0, f64::max),
        filled: filled.iter().map(|&(at, _)| at).collect(),
        held_ns: filled.iter().map(|(_, it)| it.held_ns).sum(),
    })
}

/// A cache that no row filled: flushes took as long as the medium needed for what it had taken in.
fn unfilled(rows: &[RecordRow<'_>], writes: impl Iterator<Item = usize>) -> Option<WriteCache> {
    let slowest = writes.max_by_key(|&at| flush_ns(&rows[at]))?;
    let flushed_ns = flush_ns(&rows[slowest]);
    let (bytes, elapsed_ns) = moved(&rows[slowest]);
    let rate = bytes * 1e9 / (elapsed_ns + flushed_ns).max(1) as f64;
    let low = rate * flushed_ns as f64 / 1e9;
    let is_cache = flushed_ns >= SLOW_FLUSH_NS && low >= METADATA_BYTES;
    (is_cache && rows[slowest].test.status == TestStatus::Complete).then(|| WriteCache {
        low,
        size: None,
        high: None,
        rate,
        before: bytes * 1e9 / elapsed_ns.max(1) as f64,
        filled: vec![slowest],
        held_ns: 0,
    })
}
