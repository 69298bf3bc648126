//! Rows that agree: the plateau of a rate, and the rate that a limit held for each block size.

use fathom_record::RunRecord;

use super::{Cap, DEEPER, can_reach, group_limits, is_even};
use crate::accounting::{BlockRate, Charge, charge};
use crate::plateau::{AGREE, RunRate, at_the_top, mean};
use crate::rows::{RecordRow, RowKind};

/// From here on a plateau of one block size alone is taken for one of bytes.
pub(super) const LARGE_BYTES: u64 = 64 << 10;

/// The plateaus of one direction.
pub(super) struct DirectionCaps {
    points: Vec<usize>,
    pub(super) iops: Option<Cap>,
    pub(super) bytes: Option<Cap>,
}

impl DirectionCaps {
    pub(super) fn of(record: &RunRecord, rows: &[RecordRow<'_>], kind: RowKind) -> DirectionCaps {
        let able: Vec<usize> = (0..rows.len()).filter(|&at| can_reach(&rows[at], kind)).collect();
        let points: Vec<usize> = able.iter().copied().filter(|&at| is_even(&rows[at])).collect();
        let cap = |rate: fn(&RecordRow<'_>) -> f64, unit: &str| {
            set_limit(rows, &able, rate, &group_limits(record, kind, unit))
                .or_else(|| plateau(rows, &points, rate))
        };
        let iops = cap(|row| row.settled_iops(), "iops");
        let bytes = cap(|row| row.settled_bytes_per_second(), "bytes_per_second");
        // Where one block size makes a plateau of both, its size decides which.
        let is_large_row = |at: &&usize| rows[**at].block_bytes() >= Some(LARGE_BYTES);
        let is_large = |cap: &Cap| cap.rows.iter().all(|at| is_large_row(&at));
        let is_one_size =
            |cap: &Cap| cap.rows.windows(2).all(|at| rows[at[0]].block_bytes() == rows[at[1]].block_bytes());
        let by_bytes =
            |cap: &Cap| cap.group_limit.is_some() || cap.rows.iter().filter(is_large_row).count() > 1;
        let by_requests = |cap: &Cap| {
            let same = bytes.as_ref().is_some_and(|bytes| bytes.rows == cap.rows);
            cap.group_limit.is_some() || !(is_one_size(cap) && is_large(cap) && same)
        };
        let iops = iops.filter(by_requests).map(|cap| Cap { kind, ..cap });
        let held_by_iops = |cap: &Cap| iops.as_ref().is_some_and(|iops| iops.rows == cap.rows);
        let bytes = bytes.filter(|cap| by_bytes(cap) && !held_by_iops(cap)).map(|cap| Cap { kind, ..cap });
        DirectionCaps { points, iops, bytes }
    }

    /// The IOPS that a limit holds in this direction: its own, or one of the other that the fastest row agrees with.
    pub(super) fn iops_reached(&self, rows: &[RecordRow<'_>], each: &[DirectionCaps]) -> Option<f64> {
        let top = self.points.iter().map(|&at| rows[at].settled_iops()).fold(0.0, f64::max);
        let own = self.iops.as_ref().map(|cap| cap.value);
        own.or_else(|| {
            let limits = each.iter().filter_map(|other| Some(other.iops.as_ref()?.value));
            limits.into_iter().find(|limit| (top / limit - 1.0).abs() <= AGREE)
        })
    }

    /// What counts of a large request, where those of small ones are `iops`.
    pub(super) fn charge(&self, rows: &[RecordRow<'_>], iops: f64) -> Charge {
        charge(iops, &held(rows, &self.points, [self.iops.as_ref(), self.bytes.as_ref()]))
    }
}

/// One of the limits that are set, where rows reach it. Their seconds may be uneven: a busy host makes them so, and nothing else
/// explains this very rate.
fn set_limit(
    rows: &[RecordRow<'_>],
    able: &[usize],
    rate: fn(&RecordRow<'_>) -> f64,
    limits: &[u64],
) -> Option<Cap> {
    let at_limit = |limit: u64| -> Vec<usize> {
        let is_at = |at: &usize| (rate(&rows[*at]) / limit as f64 - 1.0).abs() <= AGREE;
        able.iter().copied().filter(is_at).collect()
    };
    let (limit, limited) =
        limits.iter().map(|&limit| (limit, at_limit(limit))).find(|(_, limited)| !limited.is_empty())?;
    let value = mean_rate(rows, &limited, rate);
    Some(Cap { kind: RowKind::Read, value, group_limit: Some(limit), rows: limited, counted: None })
}

/// The highest rate that two points of different depth or block size share.
fn plateau(rows: &[RecordRow<'_>], points: &[usize], rate: fn(&RecordRow<'_>) -> f64) -> Option<Cap> {
    let agree: Vec<usize> =
        at_the_top(points.iter().map(|&at| rate(&rows[at]))).into_iter().map(|place| points[place]).collect();
    let differ = |one: &RecordRow<'_>, other: &RecordRow<'_>| {
        let (least, most) = (
            one.mean_queue_depth().min(other.mean_queue_depth()),
            one.mean_queue_depth().max(other.mean_queue_depth()),
        );
        most >= least * DEEPER * (1.0 - AGREE) || one.block_bytes() != other.block_bytes()
    };
    let is_plateau = agree.iter().any(|&one| agree.iter().any(|&other| differ(&rows[one], &rows[other])));
    let value = mean_rate(rows, &agree, rate);
    is_plateau.then_some(Cap { kind: RowKind::Read, value, group_limit: None, rows: agree, counted: None })
}

/// The rates that limits held, by block size: of the rows of `caps`, and of block sizes that are on a plateau of their own.
fn held(rows: &[RecordRow<'_>], points: &[usize], caps: [Option<&Cap>; 2]) -> Vec<BlockRate> {
    let mut by_block: Vec<(u64, Vec<usize>)> = Vec::new();
    for &at in points {
        let Some(block) = rows[at].block_bytes() else { continue };
        match by_block.iter_mut().find(|(other, _)| *other == block) {
            Some((_, alike)) => alike.push(at),
            None => by_block.push((block, vec![at])),
        }
    }
    let is_of_cap = |at: &usize| caps.iter().flatten().any(|cap| cap.rows.contains(at));
    let rate = |(block, alike): (u64, Vec<usize>)| {
        let known: Vec<usize> = alike.iter().copied().filter(is_of_cap).collect();
        let iops = match known.is_empty() {
            true => plateau(rows, &alike, |row| row.settled_iops())?.value,
            false => mean_rate(rows, &known, |row| row.settled_iops()),
        };
        Some(BlockRate { block, iops })
    };
    by_block.into_iter().filter_map(rate).collect()
}

/// The mean of a rate over rows that agree.
fn mean_rate(rows: &[RecordRow<'_>], places: &[usize], rate: fn(&RecordRow<'_>) -> f64) -> f64 {
    mean(places.iter().map(|&at| RunRate { rate: rate(&rows[at]), resolution: rows[at].resolution() }))
}
