//! What the rows of a run disprove: rates that the volume cannot reach, and latencies that it cannot keep.

use fathom_model::units;

use super::OperatingPoint;
use super::measured::{MeasuredOp, MeasuredRow, SINGLE, SyncPattern};
use super::proof::{Case, IN_FLIGHT, Proof, Stream, rate, streams};
use super::uses::{NeededRate, UseNeed};
use crate::say::count;

/// Rates that miss a need by this, and latencies that exceed it, disprove it; in between nothing is proven.
pub(super) const CLEAR: f64 = 0.05;
/// A rate this much higher at another depth shows that no limit held the single I/O.
const UNLIMITED: f64 = 1.3;
/// Bandwidths of one limit agree within this share.
const SAME_BANDWIDTH: f64 = 0.03;

impl Case<'_> {
    /// Share of the time that doubts may have taken from a row; `None` where it disproves nothing.
    fn withheld(&self, row: &MeasuredRow) -> Option<f64> {
        if self.ignores_doubt { Some(0.0) } else { row.withheld }
    }

    /// The share by which the rate of a row must miss a need to disprove it: no less than it is uncertain, and what it lost.
    fn clear(&self, row: &MeasuredRow) -> f64 {
        1.0 - (1.0 - CLEAR.max(row.interval)) * (1.0 - self.withheld(row).unwrap_or(1.0))
    }

    /// Shows that the volume cannot meet `need`.
    pub(super) fn disproved(&self, need: &UseNeed) -> Option<Proof> {
        let rows = || self.rows.iter().enumerate().filter(|(_, row)| self.bounds(row));
        let by_rate = rows().find_map(|(_, row)| self.too_slow(row, need));
        by_rate
            .or_else(|| self.too_narrow(need))
            .or_else(|| rows().find_map(|(at, row)| self.too_late(at, row, need)))
    }

    /// True where the volume serves the use no better than it served the row.
    fn bounds(&self, row: &MeasuredRow) -> bool {
        let streams = streams(self.purpose);
        let is_part = |op: &MeasuredOp| streams.iter().any(|stream| stream.is_read == op.is_read);
        let is_load = row.is_load_of(self.purpose);
        let is_synced = match row.sync {
            SyncPattern::None => false,
            SyncPattern::Each => !self.purpose.synced,
            SyncPattern::Some => true,
        };
        self.withheld(row).is_some()
            && row.ops.iter().all(is_part)
            && (is_load || !is_synced && (!self.purpose.sequential || !row.is_random))
    }

    /// The highest rate of the use's I/Os of an operation, if the row had as many as the volume gives.
    fn most(&self, row: &MeasuredRow, op: &MeasuredOp) -> f64 {
        if row.is_load_of(self.purpose) {
            // Where more bytes were drawn than the shares of the sizes say, a bandwidth limit leaves more I/Os of the use.
            return op.high * op.drawn.max(1.0);
        }
        let part = |(block, share): (u64, f64)| share / op.largest().div_ceil(block.max(1)) as f64;
        op.high / self.shares().map(part).sum::<f64>()
    }

    /// The use's rates of the operations of a row, where each is above what the row reached by more than `beyond`.
    fn beyond(&self, row: &MeasuredRow, need: &UseNeed, beyond: f64) -> Option<f64> {
        let streams = streams(self.purpose);
        let needed = |op: &MeasuredOp| {
            let stream = streams.iter().find(|stream| stream.is_read == op.is_read)?;
            let needed = self.purpose.iops(need) * stream.share;
            (needed * (1.0 - beyond) > self.most(row, op)).then_some(needed)
        };
        row.ops.iter().map(needed).sum()
    }

    /// The same for a full queue of reads and writes whose rates the need does not exceed by themselves: time shared between the
    /// need and a load that is shown would exceed both.
    fn mixes_beyond(&self, row: &MeasuredRow, need: &UseNeed) -> Option<f64> {
        let streams = streams(self.purpose);
        let [reads, writes] = streams.as_slice() else { return None };
        let kept = (1.0 - CLEAR) * (1.0 - self.withheld(row)?);
        let rates = |stream: &Stream| Some(self.most(row, row.op(stream.is_read)?) / kept);
        let full = [rates(reads)?, rates(writes)?];
        let iops = self.purpose.iops(need);
        let needed = [iops * reads.share, iops * writes.share];
        let exceeds = |shown: [f64; 2]| {
            let (mut least, mut most) = (0.0_f64, 1.0_f64);
            for at in 0..2 {
                // Of the time, the share `x` of the need: x * needed + (1 - x) * shown >= full.
                let (rise, gap) = (needed[at] - shown[at], full[at] - shown[at]);
                match rise {
                    rise if rise > 0.0 => least = least.max(gap / rise),
                    rise if rise < 0.0 => most = most.min(gap / rise),
                    _ if gap > 0.0 => return false,
                    _ => {}
                }
            }
            least <= most
        };
        let shows = |other: &MeasuredRow| {
            let [op] = other.ops.as_slice() else { return false };
            let is_alike = self.purpose.sequential || other.is_random;
            let cost = self.cost(other, op, false);
            let rate = 1.0 / (cost.ios / op.low + cost.seconds);
            is_alike && exceeds(if op.is_read { [rate, 0.0] } else { [0.0, rate] })
        };
        (row.is_queue && self.showing().any(shows)).then_some(iops)
    }

    /// The factor by which the rate of a row may rise at the depth of the use: latency grows with the depth, so the rate grows by
    /// no more than the depth does. 1 in front of a limit, and where the latency bounds the depth.
    fn growth(&self, row: &MeasuredRow) -> f64 {
        let Some(most) = self.purpose.in_flight_bytes.filter(|_| !row.is_queue) else { return 1.0 };
        let block = self.purpose.mean_block();
        let largest = row.ops.iter().map(MeasuredOp::largest).max().unwrap_or(0) as f64;
        // An I/O of the row is outstanding as at least one of the use.
        let growth = most as f64 / block / (row.depth * (largest / block).max(1.0));
        if growth * (1.0 - IN_FLIGHT) <= 1.0 { 1.0 } else { growth }
    }

    /// The rate is below the need although more outstanding I/Os would not raise it, or would take too long.
    fn too_slow(&self, row: &MeasuredRow, need: &UseNeed) -> Option<Proof> {
        let mixes = || self.mixes_beyond(row, need);
        let by_rate = || self.beyond(row, need, 1.0 - (1.0 - self.clear(row)) / self.growth(row));
        let needed = by_rate().or_else(mixes).filter(|_| !row.is_paced)?;
        let outstanding = need.p99_ns.map(|ns| needed * ns as f64 / 1e9 * (1.0 + IN_FLIGHT));
        let is_deep = row.is_queue
            || self.purpose.serial
            || self.purpose.in_flight_bytes.is_some()
            || outstanding.is_some_and(|enough| row.depth >= enough);
        if !is_deep {
            return None;
        }
        let point = self.point(row, None);
        let needs = match need.rate {
            NeededRate::Iops(_) => NeededRate::Iops(needed),
            NeededRate::Bytes(_) => NeededRate::Bytes(needed * self.purpose.mean_block()),
        };
        let is_part = row.ops.len() < streams(self.purpose).len();
        let of = if is_part { format!(" of {}", row.test) } else { String::new() };
        let (rate, depth) = (rate(&point, need), count(row.depth));
        let reason = format!("{rate}{of}, QD {depth} (needs >= {})", needs.text());
        Some(Proof { point, reason, tests: vec![row.test.clone()] })
    }

    /// Two full queues of different block sizes have the same bandwidth, and the need a higher one.
    fn too_narrow(&self, need: &UseNeed) -> Option<Proof> {
        let streams = streams(self.purpose);
        let bytes = |op: &MeasuredOp| op.high * op.largest() as f64;
        let full = |is_read: bool| {
            let is_full =
                |row: &&MeasuredRow| row.is_queue && row.ops.len() == 1 && self.withheld(row).is_some();
            let rows = self.rows.iter().filter(is_full);
            rows.filter_map(move |row| Some((row, row.op(is_read).filter(|op| op.blocks.len() == 1)?)))
        };
        streams.iter().find_map(|stream| {
            let needed = self.purpose.iops(need) * stream.share * self.purpose.mean_block();
            let is_less = |row: &MeasuredRow, op: &MeasuredOp| {
                bytes(op) < needed * (1.0 - CLEAR) * (1.0 - self.withheld(row).unwrap_or(1.0))
            };
            full(stream.is_read).filter(|(row, op)| is_less(row, op)).find_map(|(row, op)| {
                let is_same = |other: &MeasuredOp| {
                    other.largest() >= 2 * op.largest()
                        && (bytes(other) / bytes(op) - 1.0).abs() <= SAME_BANDWIDTH
                };
                let (other, _) = full(stream.is_read).find(|(_, other)| is_same(other))?;
                let (rate, needs) = (NeededRate::Bytes(bytes(op)).text(), NeededRate::Bytes(needed).text());
                let names = [row, other].map(|row| row.test.as_str()).join("; ");
                let reason = format!("{rate}, whatever the block size ({names}; needs >= {needs})");
                let tests = [row, other].map(|row| row.test.clone()).to_vec();
                Some(Proof { point: self.point(row, None), reason, tests })
            })
        })
    }

    /// The latency exceeds the need at a rate below it, or without a queue.
    fn too_late(&self, at: usize, row: &MeasuredRow, need: &UseNeed) -> Option<Proof> {
        let limit_ns = need.p99_ns?;
        let smallest = self.purpose.blocks.iter().map(|(block, _)| *block).min()?;
        let is_load = row.is_load_of(self.purpose);
        let is_late = |op: &&MeasuredOp| {
            (is_load || op.largest() <= smallest)
                && op.disproves_p99(limit_ns as f64 * (1.0 + CLEAR), self.withheld(row).unwrap_or(1.0))
        };
        let late = row.ops.iter().filter(is_late).max_by_key(|op| op.p99_ns())?;
        // A rate that may meet the need waits in a queue that the need has not.
        let is_slower = !row.is_paced && self.beyond(row, need, self.clear(row)).is_some();
        if !is_slower && !self.is_unloaded(at, late) {
            return None;
        }
        let point = self.point(row, late.p99_ns());
        let (name, ns) = match late.median_ns().filter(|ns| *ns > limit_ns) {
            Some(median) => ("median", median),
            None => ("p99", late.p99_ns()?),
        };
        let reason = format!(
            "{}{name} {} at {} IOPS, QD {} (needs p99 <= {})",
            if late.sync.is_some() { "write and sync " } else { "" },
            units::latency(ns),
            count(row.iops()),
            count(row.depth),
            units::latency(limit_ns)
        );
        Some(Proof { point, reason, tests: vec![row.test.clone()] })
    }

    /// True where no limit held the single I/Os of this row: a later one of blocks no smaller reached a higher rate, or it paused in
    /// between.
    fn is_unloaded(&self, at: usize, op: &MeasuredOp) -> bool {
        let row = &self.rows[at];
        let is_quicker = |later: &MeasuredRow| {
            later
                .op(op.is_read)
                .is_some_and(|other| other.smallest() >= op.largest() && other.low >= UNLIMITED * op.high)
        };
        row.depth <= SINGLE
            && !row.is_exhausted()
            && (row.is_paced || self.rows[at + 1..].iter().any(is_quicker))
    }

    fn point(&self, row: &MeasuredRow, p99_ns: Option<u64>) -> OperatingPoint {
        OperatingPoint {
            iops: row.iops(),
            bytes_per_second: row.iops() * row.mean_block(),
            p99_ns,
            queue_depth: row.depth,
            computed: false,
        }
    }
}
