//! Scans a surface: reads every block once, finds what cannot be read to the sector, and reads what was slow once more.

use fathom_analysis::surface::point::{POINT, TRANSFER};
use fathom_analysis::surface::scan::{AGAIN, Bisection, ByteRange, Scan};
use fathom_model::Nanos;
use fathom_model::units::bytes;
use fathom_record::{ScanRecord, TestMeta, TestRecord, TestStatus};
use fathom_runner::{SingleCompletion, SingleFeed, SingleRequest};

use super::SurfaceRun;
use super::plan::SCAN_BLOCK;
use super::reader::{Look, SurfaceReader, read_of};

/// Parts of the area that are tests of their own.
const SEGMENTS: u64 = 256;
/// Least bytes of one.
const MIN_SEGMENT: u64 = 64 << 20;
/// After so many good blocks in a row the area is taken to be readable again.
const GOOD_AGAIN: u32 = 8;
/// A disk tries for long before it gives a sector up.
const PATIENCE: Nanos = Nanos::from_secs(120);
/// Reads that the search for unreadable sectors may take in all: a disk may take seconds for each.
const MAX_READS: u32 = 1 << 18;
/// And the time: what is found later counts as unreadable block by block, ns.
const LONGEST_NS: u64 = 900_000_000_000;
/// Slow blocks that are read once more.
const MAX_AGAIN: usize = 1_000;

/// Reads block by block from one that failed until blocks can be read again, and the parts of those that fail.
#[derive(Clone, Default)]
struct Locate {
    /// The next block.
    at: u64,
    end: u64,
    /// What requests are multiples of, bytes.
    unit: u64,
    /// Reads that the search for unreadable sectors may still take.
    left: u32,
    /// Blocks that could be read, in a row.
    good: u32,
    /// Of the latest block, where that failed.
    bisection: Option<Bisection>,
    scan: ScanRecord,
}

impl Locate {
    /// Where the scan goes on, once blocks can be read again or there are no more.
    fn goes_on_at(&self) -> Option<u64> {
        let is_done = self.bisection.is_none() && (self.at >= self.end || self.good >= GOOD_AGAIN);
        is_done.then_some(self.at)
    }

    fn end_bisection(&mut self) {
        self.scan.unreadable.extend(self.bisection.take().into_iter().flat_map(Bisection::found));
    }

    /// The findings from `from` on.
    fn located(mut self, from: u64) -> ScanRecord {
        let read_bytes = self.goes_on_at().map_or(0, |at| at - from);
        self.end_bisection();
        let unreadable: u64 = self.scan.unreadable.iter().map(|range| range.length_bytes).sum();
        ScanRecord { closer_bytes: read_bytes.saturating_sub(unreadable), ..self.scan }
    }
}

impl SingleFeed for Locate {
    fn next(&mut self, _now: u64) -> Option<SingleRequest> {
        if let Some(span) = self.bisection.as_mut().and_then(Bisection::ask) {
            return Some(read_of(span));
        }
        self.end_bisection();
        let block = ByteRange { offset: self.at, length: SCAN_BLOCK.min(self.end - self.at) };
        self.goes_on_at().is_none().then(|| read_of(block))
    }

    fn completed(&mut self, completion: &SingleCompletion, payload: &[u8]) {
        self.left = self.left.saturating_sub(1);
        let errno = Look::of(completion, payload).errno;
        if let Some(bisection) = &mut self.bisection {
            return bisection.reported(errno);
        }
        let block = ByteRange { offset: self.at, length: u64::from(completion.request.len) };
        self.at += block.length;
        self.good = if errno.is_some() { 0 } else { self.good + 1 };
        self.bisection = errno.map(|errno| Bisection::new(block, errno, self.unit, self.left));
    }
}

impl SurfaceRun<'_> {
    /// Reads the whole area in order.
    pub(super) fn scan(&mut self) {
        let area = self.plan.site.size;
        let segment = (area / SEGMENTS).max(MIN_SEGMENT) / SCAN_BLOCK * SCAN_BLOCK;
        let whole = area / SCAN_BLOCK * SCAN_BLOCK;
        self.steps.of = Some(area.div_ceil(segment) as usize);
        let reader = self.reader(SCAN_BLOCK as usize);
        let (mut offset, mut left, mut spent_ns) = (0, MAX_READS, 0);
        while offset < area && !self.steps.is_over() {
            // What is less than a block comes last, by itself.
            let end = if offset < whole { (offset + segment).min(whole) } else { area };
            let (id, title) = (format!("{POINT}{offset}"), format!("scan at {}", bytes(offset)));
            let words = self.plan.scan(offset, end - offset);
            let mut test = self.begin_and_measure(id, title, &[(TRANSFER, words)]);
            test.scan = Some(ScanRecord::default());
            offset = match failed_at(&test, offset, end) {
                None if test.status == TestStatus::Failed => area,
                None => end,
                Some(at) => {
                    let began = self.steps.session.now();
                    left = if spent_ns > LONGEST_NS { 0 } else { left };
                    let mut locate = Locate { at, end, unit: self.plan.site.unit, left, ..Locate::default() };
                    if let Some(reader) = &reader {
                        locate = reader.run(locate, PATIENCE, self.steps.session);
                    }
                    spent_ns += self.steps.session.now() - began;
                    left = locate.left;
                    let goes_on_at = locate.goes_on_at();
                    test.scan = Some(locate.located(at));
                    (test.status, test.reason) = match self.steps.session.stop_handle().reason() {
                        Some(reason) => (TestStatus::Incomplete, Some(reason)),
                        None => (TestStatus::Complete, None),
                    };
                    if goes_on_at.is_none() && !self.steps.is_over() {
                        let at = bytes(at);
                        let note = format!("the scan ended at {at}: the device stopped responding");
                        self.steps.note(note);
                    }
                    goes_on_at.unwrap_or(area)
                }
            };
            self.steps.keep(test);
        }
        if let (false, Some(reader)) = (self.steps.is_over(), &reader) {
            self.slow_again(reader);
        }
    }

    /// Reads the slow blocks once more, to separate slow blocks from blocks that had to wait.
    fn slow_again(&mut self, reader: &SurfaceReader) {
        let mut slow = Scan::slow_blocks(&self.steps.record, SCAN_BLOCK);
        if slow.is_empty() {
            return;
        }
        let again = slow.iter_mut().take(MAX_AGAIN).map(|block| {
            block.length_bytes = block.length_bytes.min(self.plan.site.size - block.offset_bytes);
            ByteRange { offset: block.offset_bytes, length: block.length_bytes }
        });
        let looks = reader.read(again.collect(), PATIENCE, self.steps.session);
        for (block, look) in slow.iter_mut().zip(looks) {
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

    const UNIT: u64 = 4096;

    /// Locates the `bad` sectors of a device of 32 MiB from 1 MiB on, in at most so many completions.
    fn locate(bad: &[u64], most_reads: u32, completions: usize) -> (Locate, usize) {
        let (at, end) = (SCAN_BLOCK, 32 << 20);
        let mut locate = Locate { at, end, unit: UNIT, left: most_reads, ..Locate::default() };
        let mut made = 0;
        while made < completions
            && let Some(SingleRequest { request, .. }) = locate.next(0)
        {
            let sectors = request.offset / UNIT..(request.offset + u64::from(request.len)) / UNIT;
            let result =
                if bad.iter().any(|bad| sectors.contains(bad)) { -5 } else { i64::from(request.len) };
            let (prepared_from_ns, start_ns, end_ns, result) = (0, 0, 1, Some(result));
            locate.completed(&SingleCompletion { request, prepared_from_ns, start_ns, end_ns, result }, &[]);
            made += 1;
        }
        (locate, made)
    }

    #[test]
    fn bad_sectors_are_located_until_blocks_can_be_read_again() {
        let (first, second) = (SCAN_BLOCK / UNIT, 3 * SCAN_BLOCK / UNIT + 7);
        let (located, reads) = locate(&[first, second], u32::MAX, usize::MAX);
        assert_eq!((u32::MAX - located.left) as usize, reads);
        let goes_on_at = located.goes_on_at();
        let scan = located.located(SCAN_BLOCK);
        let found: Vec<_> = scan.unreadable.iter().map(|it| (it.offset_bytes, it.length_bytes)).collect();
        assert_eq!(found, [(first * UNIT, UNIT), (second * UNIT, UNIT)]);
        // The blocks from 1 to 3 MiB and eight good ones.
        assert_eq!((scan.closer_bytes, goes_on_at), (11 * SCAN_BLOCK - 2 * UNIT, Some(12 * SCAN_BLOCK)));
    }

    #[test]
    fn a_search_that_is_cut_short_reports_whole_blocks() {
        let bad = SCAN_BLOCK / UNIT + 100;
        let unreadable = |located: Locate| {
            let goes_on_at = located.goes_on_at();
            let scan = located.located(SCAN_BLOCK);
            let found = scan.unreadable.iter().map(|it| (it.offset_bytes, it.length_bytes, it.is_exact));
            (found.collect::<Vec<_>>(), goes_on_at, scan.closer_bytes)
        };
        // No more reads may be made than that of the block itself.
        let (located, _) = locate(&[bad], 1, usize::MAX);
        let block = vec![(SCAN_BLOCK, SCAN_BLOCK, false)];
        assert_eq!(unreadable(located), (block.clone(), Some(10 * SCAN_BLOCK), 8 * SCAN_BLOCK));
        // The device stopped responding after that.
        let (located, _) = locate(&[bad], u32::MAX, 1);
        assert_eq!(unreadable(located), (block, None, 0));
    }

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
