//! Limits that one row of a direction shows, because another direction has the same: single rows whose latencies are those of a
//! queue in front of a limiter.

use fathom_record::LatencySummary;

use super::plateaus::LARGE_BYTES;
use super::{Cap, is_point};
use crate::plateau::AGREE;
use crate::rows::{RecordRow, RowKind};

/// Latencies of a queue in front of a limiter differ by at most this share.
const APART: f64 = 0.10;

/// The limit that reads, writes and a mix of them share, from one row of each with the same blocks: their rates agree, and the
/// latencies of each are those of a queue in front of a limiter.
pub(super) fn across_directions(rows: &[RecordRow<'_>]) -> Vec<Cap> {
    let top = |kind| {
        let points = (0..rows.len()).filter(|&at| is_point(&rows[at], kind) && is_limited(&rows[at]));
        points.max_by(|&one, &other| rows[one].settled_iops().total_cmp(&rows[other].settled_iops()))
    };
    let Some([read, write, mixed]) =
        top(RowKind::Read).zip(top(RowKind::Write)).zip(top(RowKind::Mixed)).map(|((r, w), m)| [r, w, m])
    else {
        return Vec::new();
    };
    let value = rows[mixed].settled_iops();
    let is_alike = |at: usize| {
        let row = &rows[at];
        row.block_bytes() == rows[mixed].block_bytes()
            && row.block_bytes() < Some(LARGE_BYTES)
            && (row.settled_iops() / value - 1.0).abs() <= AGREE
    };
    if !is_alike(read) || !is_alike(write) {
        return Vec::new();
    }
    let cap = |kind, at: usize| Cap {
        kind,
        value: rows[at].settled_iops(),
        group_limit: None,
        rows: vec![at],
        counted: None,
    };
    vec![cap(RowKind::Read, read), cap(RowKind::Write, write)]
}

/// The limit of one direction in the other one, which one row reached: its rate is the same, and its latencies are those of a queue
/// in front of a limiter.
pub(super) fn of_other_direction(cap: &Cap, rows: &[RecordRow<'_>], is_bytes: bool) -> Option<Cap> {
    let kind = match cap.kind {
        RowKind::Read => RowKind::Write,
        RowKind::Write => RowKind::Read,
        RowKind::Mixed => return None,
    };
    let rate = |at: usize| match is_bytes {
        true => rows[at].settled_bytes_per_second(),
        false => rows[at].settled_iops(),
    };
    let is_alike = |at: &usize| {
        let row = &rows[*at];
        (row.block_bytes() >= Some(LARGE_BYTES)) == is_bytes
            && (rate(*at) / cap.value - 1.0).abs() <= AGREE
            && is_point(row, kind)
            && is_limited(row)
    };
    let found: Vec<usize> = (0..rows.len()).filter(is_alike).collect();
    let value = found.iter().map(|&at| rate(at)).reduce(f64::max)?;
    (cap.group_limit.is_none()).then(|| Cap { kind, value, rows: found, ..cap.clone() })
}

/// True where latencies are those of a queue in front of a limiter: all but a few I/Os wait for the same time, the depth over the
/// rate, and the quickest, which found tokens, for much less. A device without a limit has no such gap.
fn is_limited(row: &RecordRow<'_>) -> bool {
    let Some(total) = &row.summary.total else { return false };
    let LatencySummary { p50, p90, .. } = total.lat_ns;
    let (Some(min), Some(p50), Some(p90)) = (row.least_lat_ns(), p50, p90) else { return false };
    let waiting_ns = row.mean_queue_depth() * 1e9 / row.iops().max(1.0);
    min * 2 <= p50
        && p90 as f64 <= p50 as f64 * (1.0 + APART)
        && (p50 as f64 / waiting_ns - 1.0).abs() <= APART
}
