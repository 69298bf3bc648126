//! A run that fell for good, within a test or between two: one finding for all tests whose rates were those of the burst before.

use std::rc::Rc;

use fathom_model::units;
use fathom_record::{Finding, FindingId, Severity};

use crate::rows::{RecordRow, RowKind};
use crate::say::{count, finding, mebibytes, seconds};
use crate::steady::run_fall::{FallUnit, RowCourse, RunFall};
use crate::steady::write_cache::{self, WriteCache};

pub(super) fn findings(rows: &[RecordRow<'_>]) -> Option<Finding> {
    let fall_of = |row: &RecordRow<'_>| match &row.course {
        RowCourse::Burst(fall, _) | RowCourse::Lasting(fall) if fall.is_shared => Some(Rc::clone(fall)),
        _ => None,
    };
    let Some(fall) = rows.iter().find_map(fall_of) else { return absorbed(rows) };
    if let Some(cache) = &fall.cache {
        return Some(filled(rows, cache));
    }
    let of_burst = rows.iter().filter(|row| row.is_burst());
    let remedy = "Let the volume idle and run again: burst credits end after the same number of I/Os or bytes, noisy \
         neighbours do not. `fathom identify` finds their size and how they refill.";
    let found = finding(FindingId::BurstSuspected, of_burst, claim(&fall), remedy)
        .with("burst_ns", fall.burst_ns)
        .with("held_ns", fall.held_ns);
    let credit = fall.moved - fall.after * fall.burst_ns as f64 / 1e9;
    Some(match fall.unit {
        Some(FallUnit::Bytes) => found
            .with("burst_bytes_per_second", fall.before)
            .with("baseline_bytes_per_second", fall.after)
            .with("credit_used_bytes", credit),
        _ => found
            .with("burst_iops", fall.before)
            .with("baseline_iops", fall.after)
            .with("credit_used_requests", credit),
    })
}

/// A write cache that filled.
fn filled(rows: &[RecordRow<'_>], cache: &WriteCache) -> Finding {
    let [low, size, high] = [Some(cache.low), cache.size, cache.high].map(Option::unwrap_or_default);
    let mib = |bytes: f64| count(bytes / f64::from(1 << 20));
    let claim = format!(
        "a write cache of about {} MiB ({} to {}) filled: writes fell to {}, the rate of the medium behind it; reads did not.",
        mib(size),
        mib(low),
        mib(high),
        mebibytes(cache.rate),
    );
    let remedy = "Plan with the rate of the medium for writes that last longer than the cache has room.";
    let rows = cache.filled.iter().map(|&at| &rows[at]);
    let found = finding(FindingId::WriteCache, rows, claim, remedy)
        .with("capacity_bytes", size)
        .with("capacity_bytes_low", low)
        .with("capacity_bytes_high", high)
        .with("bytes_per_second", cache.rate);
    Finding { severity: Severity::Warning, ..found }
}

/// A write cache that did not fill.
fn absorbed(rows: &[RecordRow<'_>]) -> Option<Finding> {
    let cache = write_cache::find(rows).filter(|cache| cache.size.is_none())?;
    let row = &rows[*cache.filled.first()?];
    let claim = format!(
        "a write cache took in at least {} MiB, at {}: a flush after the test took {}, so that about {} reach the medium.",
        count(cache.low / f64::from(1 << 20)),
        mebibytes(cache.before),
        seconds(write_cache::flush_ns(row)),
        mebibytes(cache.rate),
    );
    let remedy = format!("{} It shows the size of the cache and the rate after it.", row.words.longer());
    let found = finding(FindingId::WriteCache, [row], claim, remedy);
    Some(found.with("capacity_bytes_low", cache.low).with("bytes_per_second", cache.rate))
}

fn claim(fall: &RunFall) -> String {
    let (before, after, moved) = match fall.unit {
        Some(FallUnit::Bytes) => {
            (mebibytes(fall.before), mebibytes(fall.after), units::bytes(fall.moved as u64))
        }
        _ => {
            (count(fall.before), format!("{} IOPS", count(fall.after)), format!("{} I/Os", count(fall.moved)))
        }
    };
    let (of, cache) = match fall.only {
        Some(RowKind::Read) => (" of reads", ""),
        Some(RowKind::Write) => (" of writes", ", or a write cache is full"),
        _ => ("", ""),
    };
    format!(
        "the rate{of} fell from {before} to {after} after {} of measurement and {moved}, and stayed there: burst credits are probably \
         exhausted{cache}. Limits and suitability are those after the fall.",
        seconds(fall.burst_ns),
    )
}
