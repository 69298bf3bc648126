//! Rows that agree: the plateau of a rate, and the rate that a limit held for each block size.

use super::{Cap, DEEPER};
use crate::accounting::BlockRate;
use crate::plateau::{AGREE, RunRate, at_the_top, mean};
use crate::rows::{RecordRow, RowKind};

/// The highest rate that two points of different depth or block size share, or one point and a known limit.
pub(super) fn plateau(
    rows: &[RecordRow<'_>],
    points: &[usize],
    rate: fn(&RecordRow<'_>) -> f64,
    limits: &[u64],
) -> Option<Cap> {
    let is_at = |at: usize, limit: u64| (rate(&rows[at]) / limit as f64 - 1.0).abs() <= AGREE;
    let limit = limits.iter().copied().find(|&limit| points.iter().any(|&at| is_at(at, limit)));
    let limited: Vec<usize> =
        limit.map_or_else(Vec::new, |limit| points.iter().copied().filter(|&at| is_at(at, limit)).collect());
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
    let (found, group_limit) = match () {
        () if !limited.is_empty() => (limited, limit),
        () if is_plateau => (agree, None),
        () => return None,
    };
    let value = mean_rate(rows, &found, rate);
    Some(Cap { kind: RowKind::Read, value, group_limit, rows: found, unit: None })
}

/// The rates that limits held, by block size: of the rows of `caps`, and of block sizes that are on a plateau of their own.
pub(super) fn held(rows: &[RecordRow<'_>], points: &[usize], caps: [Option<&Cap>; 2]) -> Vec<BlockRate> {
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
            true => plateau(rows, &alike, |row| row.settled_iops(), &[])?.value,
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
