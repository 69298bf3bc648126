//! A scan: every block read once. What could not be read, found to the sector by halves, and what was slow.

use fathom_record::{Latency, LatencySummary, RunRecord, SlowBlockRecord, UnreadableRecord};
use serde::Serialize;

use crate::surface::point::{TRANSFER, job, moved};

/// A range in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteRange {
    /// Where it begins.
    pub offset: u64,
    /// Its length.
    pub length: u64,
}

/// Finds the unreadable sectors of a block that failed: reads its halves, and the halves of those that fail.
#[derive(Clone, Debug)]
pub struct Bisection {
    unit: u64,
    open: Vec<(ByteRange, i32)>,
    found: Vec<UnreadableRecord>,
    /// Reads that may still be made.
    left: u32,
}

impl Bisection {
    /// For `span`, which failed with `errno` as a whole, down to `unit` bytes, in `most` reads.
    pub fn new(span: ByteRange, errno: i32, unit: u64, most: u32) -> Bisection {
        let mut bisection = Bisection { unit: unit.max(1), open: Vec::new(), found: Vec::new(), left: most };
        bisection.failed(span, errno);
        bisection
    }

    /// The next range to read; `None` when all is known, or no more reads may be made.
    pub fn ask(&mut self) -> Option<ByteRange> {
        if self.left == 0 {
            self.give_up();
        }
        let (span, _) = *self.open.last()?;
        self.left -= 1;
        Some(span)
    }

    /// Tells whether the range that [`Bisection::ask`] named could be read.
    pub fn reported(&mut self, errno: Option<i32>) {
        let Some((span, _)) = self.open.pop() else { return };
        if let Some(errno) = errno {
            self.failed(span, errno);
        }
    }

    /// What is not known any closer counts as unreadable as a whole.
    pub fn give_up(&mut self) {
        while let Some((span, errno)) = self.open.pop() {
            self.add(span, errno, false);
        }
    }

    /// The ranges that cannot be read, neighbours as one.
    pub fn found(mut self) -> Vec<UnreadableRecord> {
        self.give_up();
        self.found
    }

    fn failed(&mut self, span: ByteRange, errno: i32) {
        if span.length <= self.unit {
            return self.add(span, errno, true);
        }
        let half = (span.length / 2).div_ceil(self.unit) * self.unit;
        let (first, second) = (
            ByteRange { length: half, ..span },
            ByteRange { offset: span.offset + half, length: span.length - half },
        );
        // The last one is asked first.
        self.open.extend([(second, errno), (first, errno)]);
    }

    fn add(&mut self, span: ByteRange, errno: i32, is_exact: bool) {
        let found =
            UnreadableRecord { offset_bytes: span.offset, length_bytes: span.length, errno, is_exact };
        add(&mut self.found, found);
    }
}

/// Adds a range behind the others, to the last one where it goes on.
fn add(ranges: &mut Vec<UnreadableRecord>, next: UnreadableRecord) {
    match ranges.last_mut() {
        Some(last)
            if last.offset_bytes + last.length_bytes == next.offset_bytes
                && (last.errno, last.is_exact) == (next.errno, next.is_exact) =>
        {
            last.length_bytes += next.length_bytes;
        }
        _ => ranges.push(next),
    }
}

/// What a scan found.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Scan {
    /// Bytes that were asked for.
    pub scanned_bytes: u64,
    /// Bytes of those that cannot be read.
    pub unreadable_bytes: u64,
    /// Ranges that cannot be read, ascending.
    pub unreadable: Vec<UnreadableRecord>,
    /// Blocks that were slow, ascending.
    pub slow: Vec<SlowBlockRecord>,
    /// From which time on a block counted as slow, ns.
    pub slow_from_ns: u64,
    /// The time of a block.
    pub block_lat_ns: LatencySummary,
}

/// The test that reads slow blocks once more.
pub const AGAIN: &str = "scan-again";
/// A block is slow from this many times the median on.
const SLOW_TIMES: u64 = 10;
/// And never below this, ns: a machine that does other things as well takes as long now and then.
const SLOW_FROM_NS: u64 = 50_000_000;

impl Scan {
    /// The scan in `record`; `None` where there was none.
    pub fn of(record: &RunRecord) -> Option<Scan> {
        let tests = || record.tests.iter().filter(|test| test.scan.is_some());
        tests().next()?;
        let mut all = Latency::default();
        let mut scan = Scan::default();
        let mut unreadable = Vec::new();
        for test in tests() {
            if let Some(job) = job(test, TRANSFER) {
                let read = moved(job);
                all.merge(&read.lat);
                scan.scanned_bytes += read.bytes;
            }
            let Some(found) = &test.scan else { continue };
            scan.scanned_bytes += found.closer_bytes;
            unreadable.extend(found.unreadable.iter().cloned());
            scan.slow.extend(found.slow.iter().cloned());
        }
        unreadable.sort_by_key(|range: &UnreadableRecord| range.offset_bytes);
        scan.unreadable_bytes = unreadable.iter().map(|range| range.length_bytes).sum();
        scan.scanned_bytes += scan.unreadable_bytes;
        unreadable.into_iter().for_each(|range| add(&mut scan.unreadable, range));
        scan.slow.sort_by_key(|block| block.offset_bytes);
        scan.slow_from_ns = slow_from(&all);
        scan.block_lat_ns = all.summary();
        Some(scan)
    }

    /// The slow blocks of `record` by what its tests kept of their slowest requests, each of `block` bytes at most.
    pub fn slow_blocks(record: &RunRecord, block: u64) -> Vec<SlowBlockRecord> {
        let jobs =
            || record.tests.iter().filter(|test| test.scan.is_some()).filter_map(|test| job(test, TRANSFER));
        let mut all = Latency::default();
        jobs().for_each(|job| all.merge(&moved(job).lat));
        let from = slow_from(&all);
        let slow = jobs().flat_map(|job| &job.slowest).filter(|slow| slow.lat_ns >= from);
        slow.map(|slow| SlowBlockRecord {
            offset_bytes: slow.offset,
            length_bytes: block,
            lat_ns: slow.lat_ns,
            repeated_lat_ns: None,
        })
        .collect()
    }

    /// True for a block that was slow when it was read once more as well.
    pub fn is_slow_again(&self, block: &SlowBlockRecord) -> bool {
        block.repeated_lat_ns.is_some_and(|again| again >= self.slow_from_ns)
    }
}

fn slow_from(block: &Latency) -> u64 {
    (block.percentile(50.0).unwrap_or(0).saturating_mul(SLOW_TIMES)).max(SLOW_FROM_NS)
}

#[cfg(test)]
mod tests {
    use fathom_record::{ScanRecord, SlowRequest};

    use super::*;
    use crate::surface::point::tests::point;

    /// Bisects the MiB at 1 MiB of a disk whose `bad` sectors cannot be read.
    fn bisect(bad: &[u64], most: u32) -> (Vec<(u64, u64, bool)>, u32) {
        const UNIT: u64 = 512;
        let span = ByteRange { offset: 1 << 20, length: 1 << 20 };
        let mut bisection = Bisection::new(span, 5, UNIT, most);
        let mut reads = 0;
        while let Some(span) = bisection.ask() {
            reads += 1;
            let sectors = span.offset / UNIT..(span.offset + span.length) / UNIT;
            bisection.reported(bad.iter().any(|sector| sectors.contains(sector)).then_some(5));
        }
        (
            bisection
                .found()
                .iter()
                .map(|found| (found.offset_bytes / UNIT, found.length_bytes / UNIT, found.is_exact))
                .collect(),
            reads,
        )
    }

    #[test]
    fn sectors_are_found_by_halves() {
        let check = |bad: &[u64], expected: &[(u64, u64, bool)], most_reads: u32| {
            let (found, reads) = bisect(bad, u32::MAX);
            assert_eq!(found, expected, "{bad:?}");
            assert!(reads <= most_reads, "{reads} reads for {bad:?}");
        };
        check(&[2048], &[(2048, 1, true)], 22);
        check(&[4095], &[(4095, 1, true)], 22);
        check(&[2100, 2101, 3000], &[(2100, 2, true), (3000, 1, true)], 66);
        check(&(2048..4096).collect::<Vec<u64>>(), &[(2048, 2048, true)], 4096);
        // It failed as a whole, and every part of it can be read: a passing error.
        check(&[], &[], 2);
    }

    #[test]
    fn what_may_not_be_read_any_more_counts_as_a_whole() {
        let (found, reads) = bisect(&[2048, 4095], 1);
        assert_eq!((found, reads), (vec![(2048, 2048, false)], 1));
    }

    #[test]
    fn ranges_go_on_over_blocks_and_slow_ones_are_far_from_the_median() {
        let mut tests = vec![point(0, 64), point(64 << 20, 63)];
        let unreadable = |offset, length| UnreadableRecord {
            offset_bytes: offset,
            length_bytes: length,
            errno: 5,
            is_exact: true,
        };
        let with = |unreadable| ScanRecord {
            unreadable: vec![unreadable],
            closer_bytes: 512,
            ..ScanRecord::default()
        };
        tests[0].scan = Some(with(unreadable(67_108_352, 512)));
        tests[1].scan = Some(with(unreadable(67_108_864, 1024)));
        let slow = |offset, lat_ns| SlowRequest { offset, lat_ns, ..SlowRequest::default() };
        tests[1].jobs[0].slowest = vec![slow(70 << 20, 900_000_000), slow(71 << 20, 40_000_000)];
        let mut record = RunRecord { tests, ..RunRecord::default() };
        let slow = Scan::slow_blocks(&record, 1 << 20);
        assert_eq!(slow.iter().map(|block| block.offset_bytes).collect::<Vec<u64>>(), [70 << 20]);
        let mut again = point(0, 0);
        (again.id, again.jobs) = (AGAIN.to_owned(), Vec::new());
        again.scan = Some(ScanRecord { slow, ..ScanRecord::default() });
        record.tests.push(again);
        let scan = Scan::of(&record).unwrap();
        assert_eq!(scan.unreadable, [unreadable(67_108_352, 1536)]);
        assert_eq!(
            (scan.scanned_bytes, scan.slow.len(), scan.slow_from_ns),
            ((127 << 20) + 2560, 1, SLOW_FROM_NS)
        );
        assert!(!scan.is_slow_again(&scan.slow[0]));
        assert_eq!(Scan::of(&RunRecord::default()), None);
    }
}
