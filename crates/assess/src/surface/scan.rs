//! Scans a surface: reads every block once, finds what cannot be read to the sector, and reads what was slow once more.

use std::time::Duration;

use fathom_analysis::surface::point::{POINT, TRANSFER};
use fathom_analysis::surface::scan::{AGAIN, Bisection, ByteRange, Scan};
use fathom_model::units::bytes;
use fathom_record::{ScanRecord, TestMeta, TestRecord, TestStatus, UnreadableRecord};

use super::SurfaceRun;
use super::plan::SCAN_BLOCK;
use super::reader::SurfaceReader;

/// Parts of the area that are tests of their own.
const SEGMENTS: u64 = 256;
/// Least bytes of one.
const LEAST_SEGMENT: u64 = 64 << 20;
/// After so many good blocks in a row the area is taken to be readable again.
const GOOD_AGAIN: u32 = 8;
/// A disk tries for long before it gives a sector up.
const PATIENCE: Duration = Duration::from_secs(120);
/// Reads that the search for unreadable sectors may take in all: a disk may take seconds for each.
const MOST_READS: u32 = 1 << 18;
/// And the time: what is found later counts as unreadable block by block, ns.
const LONGEST_NS: u64 = 900_000_000_000;
/// Slow blocks that are read once more.
const MOST_AGAIN: usize = 1_000;

/// What was seen from the first block that failed on.
#[derive(Default)]
struct Located {
    scan: ScanRecord,
    /// Where the scan goes on; `None` where nothing can be read any more.
    goes_on_at: Option<u64>,
    reads: u32,
}

impl SurfaceRun<'_> {
    /// Reads the whole area in order.
    pub(super) fn scan(&mut self) {
        let area = self.plan.site.size;
        let segment = (area / SEGMENTS).max(LEAST_SEGMENT) / SCAN_BLOCK * SCAN_BLOCK;
        let whole = area / SCAN_BLOCK * SCAN_BLOCK;
        self.steps.of = Some(area.div_ceil(segment) as usize);
        let reader = self.reader(SCAN_BLOCK as usize);
        let (mut offset, mut reads, mut spent_ns) = (0, 0, 0);
        while offset < area && !self.steps.is_over() {
            // What is less than a block comes last, by itself.
            let end = if offset < whole { (offset + segment).min(whole) } else { area };
            let (id, title) = (format!("{POINT}{offset}"), format!("scan at {}", bytes(offset)));
            let said = self.plan.scan(offset, end - offset);
            let mut test = self.begin_and_measure(id, title, &[(TRANSFER, said)]);
            test.scan = Some(ScanRecord::default());
            offset = match failed_at(&test, offset, end) {
                None if test.status == TestStatus::Failed => area,
                None => end,
                Some(at) => {
                    let began = self.steps.session.now();
                    let left = if spent_ns > LONGEST_NS { 0 } else { MOST_READS.saturating_sub(reads) };
                    let located = self.locate(reader.as_ref(), at, end, left);
                    reads += located.reads;
                    spent_ns += self.steps.session.now() - began;
                    test.scan = Some(located.scan);
                    (test.status, test.reason) = match self.steps.session.stop_handle().reason() {
                        Some(reason) => (TestStatus::Incomplete, Some(reason)),
                        None => (TestStatus::Complete, None),
                    };
                    if located.goes_on_at.is_none() && !self.steps.is_over() {
                        let at = bytes(at);
                        let note = format!("the scan ended at {at}: the device stopped responding");
                        self.steps.note(note);
                    }
                    located.goes_on_at.unwrap_or(area)
                }
            };
            self.steps.keep(test);
        }
        if let (false, Some(reader)) = (self.steps.is_over(), &reader) {
            self.slow_again(reader);
        }
    }

    /// Goes on block by block from one that failed, until blocks can be read again.
    fn locate(&self, reader: Option<&SurfaceReader>, from: u64, end: u64, most: u32) -> Located {
        let mut located = Located::default();
        let Some(reader) = reader else { return located };
        let (mut at, mut good) = (from, 0);
        while at < end && good < GOOD_AGAIN {
            let length = SCAN_BLOCK.min(end - at);
            let Some(look) = reader.read(at, length as u32, PATIENCE, self.steps.session) else {
                return located;
            };
            located.reads += 1;
            match look.errno {
                None => good += 1,
                Some(errno) => {
                    good = 0;
                    let left = most.saturating_sub(located.reads);
                    let mut bisection =
                        Bisection::new(ByteRange { offset: at, length }, errno, self.plan.site.unit, left);
                    while let Some(span) = bisection.ask() {
                        located.reads += 1;
                        let look = reader.read(span.offset, span.length as u32, PATIENCE, self.steps.session);
                        let Some(look) = look else { break };
                        bisection.told(look.errno);
                    }
                    located.scan.unreadable.extend(bisection.found());
                }
            }
            at += length;
        }
        let unreadable: u64 =
            located.scan.unreadable.iter().map(|range: &UnreadableRecord| range.length_bytes).sum();
        located.scan.closer_bytes = (at - from).saturating_sub(unreadable);
        located.goes_on_at = Some(at);
        located
    }

    /// Reads the slow blocks once more, so that what is slow by itself is told from what was held up.
    fn slow_again(&mut self, reader: &SurfaceReader) {
        let mut slow = Scan::slow_blocks(&self.steps.record, SCAN_BLOCK);
        if slow.is_empty() {
            return;
        }
        for block in slow.iter_mut().take(MOST_AGAIN) {
            block.length_bytes = block.length_bytes.min(self.plan.site.size - block.offset_bytes);
            let look =
                reader.read(block.offset_bytes, block.length_bytes as u32, PATIENCE, self.steps.session);
            let Some(look) = look else { break };
            block.repeated_lat_ns = look.errno.is_none().then_some(look.time_ns);
        }
        let meta =
            TestMeta { id: AGAIN.to_owned(), title: "slow blocks again".to_owned(), fio: String::new() };
        self.steps.keep(TestRecord {
            status: TestStatus::Complete,
            reason: None,
            scan: Some(ScanRecord { slow, ..ScanRecord::default() }),
            ..TestRecord::skipped(meta, "")
        });
    }
}

/// Where the request failed that ended the test: with one request at a time in order, behind what was read before.
fn failed_at(test: &TestRecord, offset: u64, end: u64) -> Option<u64> {
    let job = test.jobs.first()?;
    if job.errors.is_empty() {
        return None;
    }
    let at = offset + job.measured.read.bytes / SCAN_BLOCK * SCAN_BLOCK;
    Some(at).filter(|at| *at < end)
}

#[cfg(test)]
mod tests {
    use fathom_model::Op;
    use fathom_record::{ErrorCount, JobRecord};

    use super::*;

    #[test]
    fn the_block_that_failed_is_the_one_behind_what_was_read() {
        let check = |bytes: u64, errors: u64, expected: Option<u64>| {
            let mut job = JobRecord::default();
            job.measured.read.bytes = bytes;
            if errors > 0 {
                job.errors = vec![ErrorCount { op: Op::Read, errno: 5, count: errors }];
            }
            let test = TestRecord { jobs: vec![job], ..TestRecord::default() };
            assert_eq!(failed_at(&test, 64 << 20, 128 << 20), expected, "{bytes}");
        };
        check(0, 1, Some(64 << 20));
        check(10 << 20, 1, Some(74 << 20));
        // A block that was cut short before it failed.
        check((10 << 20) + 4096, 1, Some(74 << 20));
        check(64 << 20, 0, None);
        check(64 << 20, 1, None);
    }
}
