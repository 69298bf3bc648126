//! Measures a surface: place by place with one request at a time and single requests in between, then the burst rate, the
//! rate at a high queue depth and the file benchmark; or scans it. Each test is handed out as it ends.
//!
//! Reads that are inspected run in series beside the surface under a [`RunHandle`], which reports a read that is stuck, so that the
//! surface does not get stuck with it.

mod plan;

use std::fs::File;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use fathom_analysis::surface::file::file_tests;
use fathom_analysis::surface::plan::{SATURATED_AGAIN, SATURATED_POINTS, SurfacePlace, Times};
use fathom_analysis::surface::point::{POINT, State, SurfacePoint, TRANSFER};
use fathom_analysis::surface::probes::gap_ns;
use fathom_analysis::surface::scan::{AGAIN, Bisection, ByteRange, Scan};
use fathom_analysis::surface::{AGAIN_ACCESS, AGAIN_SATURATED, BURST, SATURATED, assess};
use fathom_engine::{EngineSetup, OpenFile, RawEngineOptions, registry};
use fathom_model::units::{bytes, duration};
use fathom_model::{Nanos, Op, Request};
use fathom_record::{Activity, ContentRecord, RunRecord, ScanRecord, TestMeta, TestRecord, TestStatus};
use fathom_runner::{Progress, RunHandle, Session, SingleCompletion, SingleFeed, SingleRequest};
use fathom_sys::io::{OpenFlags, open_target};
use fathom_sys::residency::is_hole;

use crate::control::{StepObserver, Steps};
use crate::drain::{BoundedJob, InFlight, MIN_DRAIN_NS, depth_bound};
use crate::findings::findings_of;
use crate::measure::{NamedJob, measure_in_turn};
use crate::target::BenchTarget;
use crate::{AssessError, machine};
use plan::SCAN_BLOCK;
pub use plan::{BLOCK, Content, DEPTH, SurfacePlan, SurfaceSettings};

/// A surface that is being measured.
struct SurfaceRun<'a> {
    plan: &'a SurfacePlan,
    steps: Steps<'a>,
    /// When it began, session ns.
    began: u64,
}

/// Measures `plan` on `session`.
///
/// # Errors
/// The working file could not be made or laid out; nothing has been measured then.
pub fn surface(
    plan: &SurfacePlan,
    session: &mut Session,
    observer: &mut dyn StepObserver,
) -> Result<RunRecord, AssessError> {
    let mut plan = plan.clone();
    let began = session.now();
    let header = plan.site.begin(Activity::Surface, &plan.settings.run, session, observer)?;
    let left_ns = plan.settings.budget.0.saturating_sub(session.now() - began);
    let steps = Steps::begin(header, &plan.settings.run, session, observer);
    let mut run = SurfaceRun { plan: &plan, began: session.now(), steps };
    if plan.settings.scan {
        run.scan();
    } else {
        run.measure(left_ns);
    }
    let mut record = run.steps.end();
    record.findings = findings_of(&record);
    Ok(record)
}

/// A read for inspection may take so long; then nothing more is inspected.
const LOOK_PATIENCE: Nanos = Nanos::from_secs(2);
/// One of so many batches of probes is made again.
const PROBED_AGAIN: usize = 8;
/// Most bytes of one.
const LOOK_BYTES: u64 = 65_536;

impl SurfaceRun<'_> {
    /// Every part in turn: what is modest first, what spends burst credit last.
    fn measure(&mut self, budget_ns: u64) {
        let plan = self.plan;
        let visits = plan.visits(budget_ns);
        let times = plan.times(budget_ns, visits.len());
        let saturated =
            if plan.parts.saturated { plan.saturated_places(SATURATED_POINTS) } else { Vec::new() };
        let rows = if plan.parts.file { file_tests(times.file_ns, plan.settings.depth) } else { Vec::new() };
        let batches = plan.probes(visits.len()).map_or(0, |probes| probes.batches(visits.len()));
        let again = match plan.has_first_accesses() {
            true if saturated.len() >= SATURATED_POINTS as usize => SATURATED_AGAIN as usize,
            _ => 0,
        };
        let again = again + if plan.has_first_accesses() { (batches + 1) / PROBED_AGAIN } else { 0 };
        let others = usize::from(plan.parts.burst) + saturated.len() + again + rows.len();
        self.steps.of = Some(visits.len() + others);
        self.places(&visits, &times);
        if plan.parts.burst && !self.steps.is_over() {
            let words = plan.burst(self.burst_offset(), times.burst_ns);
            self.run(BURST.to_owned(), "burst rate".to_owned(), &[(BURST, words)]);
        }
        self.saturated(&saturated, times.saturated_ns);
        if self.steps.is_over() {
            return;
        }
        for row in &rows {
            if self.steps.is_over() {
                return;
            }
            let (id, title) = (row.id.clone(), row.title.clone());
            match self.why_not(row.rw.writes(), row.block_size_bytes) {
                Some(reason) => {
                    let meta = TestMeta { id, title, fio: String::new() };
                    self.steps.keep(TestRecord::skipped(meta, reason));
                }
                None => self.run(id, title, &plan.file_row(row)),
            }
        }
    }

    /// Measures at a high queue depth, and at some places once more, between the first accesses to others.
    fn saturated(&mut self, places: &[SurfacePlace], time_ns: u64) {
        let plan = self.plan;
        let measured = assess(&self.steps.record);
        // What no medium answers is quick whatever the depth.
        let is_on_medium =
            |place: &&SurfacePlace| !measured.is_answered_elsewhere(place.offset, place.length);
        let places: Vec<&SurfacePlace> = places.iter().filter(is_on_medium).collect();
        let is_repeated = plan.has_first_accesses() && places.len() >= SATURATED_POINTS as usize;
        let depth = self.saturated_depth(places.first().copied(), time_ns);
        for (number, place) in places.iter().enumerate() {
            // Two places later, so that what is remembered of the last requests does not answer; no more than was read.
            let earlier = number.checked_sub(2).filter(|&at| is_repeated && at < SATURATED_AGAIN as usize);
            let again = earlier.and_then(|at| Some((AGAIN_SATURATED, self.part_read(places[at])?)));
            for (prefix, place) in std::iter::once((SATURATED, **place)).chain(again) {
                if self.steps.is_over() {
                    return;
                }
                let title = format!("QD {depth} at {}", bytes(place.offset));
                let title = if prefix == AGAIN_SATURATED { format!("{title} again") } else { title };
                let words = plan.saturated(&place, depth, time_ns);
                self.run(format!("{prefix}{}", place.offset), title, &[("saturated", words)]);
            }
        }
    }

    /// The queue depth whose requests the device completes in about the time of a place.
    fn saturated_depth(&mut self, place: Option<&SurfacePlace>, time_ns: u64) -> u32 {
        let plan = self.plan;
        let asked = plan.settings.depth;
        let Some(place) = place else { return asked };
        let in_flight = InFlight { depth: asked.into(), workers: 1, block_bytes: plan.saturated_block() };
        let (earlier, words) =
            (self.steps.record.tests.iter().collect(), plan.saturated(place, asked, time_ns));
        let limit = Nanos(time_ns.max(MIN_DRAIN_NS));
        let Some(bound) = depth_bound(&[BoundedJob { in_flight, earlier, words }], limit, self.steps.session)
        else {
            return asked;
        };
        let depth = u32::try_from(bound.depth).unwrap_or(asked);
        self.steps.note(format!(
            "queue depth {depth} instead of {asked}: {}; use a longer --budget",
            bound.reason()
        ));
        depth
    }

    /// The part of a place that was read at a high queue depth.
    fn part_read(&self, place: &SurfacePlace) -> Option<SurfacePlace> {
        let id = format!("{SATURATED}{}", place.offset);
        let test = self.steps.record.tests.iter().find(|test| test.id == id)?;
        let length = test.jobs.iter().map(|job| job.measured.read.bytes).sum();
        (length > 0).then_some(SurfacePlace { length, ..*place })
    }

    /// Visits the places.
    fn places(&mut self, visits: &[SurfacePlace], times: &Times) {
        let plan = self.plan;
        // Slow requests make places last longer than planned: twice the time is the end of it.
        let deadline = self.steps.session.now() + 2 * times.place_ns * visits.len() as u64;
        let probes = plan.probes(visits.len());
        let mut probed = Vec::new();
        let mut reader = self.reader(LOOK_BYTES as usize).filter(|_| !plan.settings.writes);
        for (number, place) in visits.iter().enumerate() {
            if self.steps.is_over() {
                return;
            }
            if self.steps.session.now() > deadline {
                let budget = duration(plan.settings.budget);
                self.steps.note(format!(
                    "the time budget ({budget}) ended after {number} of {} points; use a longer --budget",
                    visits.len()
                ));
                return;
            }
            let (id, title) = (format!("{POINT}{}", place.offset), format!("at {}", bytes(place.offset)));
            let batch = probes.filter(|probes| probes.is_due(number));
            let mut jobs = Vec::new();
            if let Some(probes) = &batch {
                // First, as where they are made again: the same seed then means the same requests.
                jobs.push(plan.probe(place, times, probes, gap_ns(&self.steps.record.tests)));
                probed.push(place);
            }
            jobs.extend(plan.place(place, times, batch.is_some()));
            let mut test = self.begin_and_measure(id, title, &jobs);
            if let Some(looker) = &reader {
                test.content = self.look(looker, &test);
                let was_stopped = self.steps.is_over();
                if test.content.is_none()
                    && !was_stopped
                    && SurfacePoint::of(&test, 0).is_some_and(|point| point.bytes > 0)
                {
                    reader = None;
                    self.steps.note(format!(
                        "data read from {} on could not be inspected: unwritten areas there are unknown",
                        bytes(place.offset)
                    ));
                }
            }
            self.steps.keep(test);
            // The same requests as after an earlier place, between first accesses.
            let is_turn = probed.len() % PROBED_AGAIN == PROBED_AGAIN - 1 && plan.has_first_accesses();
            if let Some(probes) = batch.filter(|_| is_turn) {
                let place = probed[probed.len() / PROBED_AGAIN];
                let (id, title) = (
                    format!("{AGAIN_ACCESS}{}", place.offset),
                    format!("probes of {} again", bytes(place.offset)),
                );
                let job = plan.probe(place, times, &probes, gap_ns(&self.steps.record.tests));
                self.run(id, title, &[job]);
            }
        }
    }

    /// A reader of the target's content; `None` where that is known, or the target is simulated.
    fn reader(&self, max_block: usize) -> Option<SurfaceReader> {
        let is_block_device = match self.plan.site.target {
            BenchTarget::File { .. } => false,
            BenchTarget::BlockDevice { .. } => true,
            BenchTarget::Directory { .. } | BenchTarget::Simulated(_) => return None,
        };
        let (site, direct) = (&self.plan.site, !self.plan.settings.run.buffered);
        Some(SurfaceReader::open(&site.file, site.size, is_block_device, direct, max_block))
    }

    /// Looks at the beginning, the middle and the end of what a test read.
    fn look(&self, reader: &SurfaceReader, test: &TestRecord) -> Option<ContentRecord> {
        let point = SurfacePoint::of(test, 0).filter(|point| point.bytes > 0)?;
        let session = self.steps.session;
        let mut found = ContentRecord::default();
        if matches!(self.plan.site.target, BenchTarget::File { .. }) {
            let range = ByteRange { offset: point.offset_bytes, length: point.bytes };
            found.is_hole = reader.is_hole(range, LOOK_PATIENCE, session)?;
        }
        let length = LOOK_BYTES.min(self.plan.settings.block);
        let last = point.bytes.saturating_sub(length) / length * length;
        let spans = [0, last / 2 / length * length, last]
            .map(|skip| ByteRange { offset: point.offset_bytes + skip, length });
        let looks = reader.read(spans.to_vec(), LOOK_PATIENCE, session);
        found.looked_bytes = length * spans.len() as u64;
        found.zero_bytes = length * looks.iter().filter(|look| look.is_zero).count() as u64;
        (looks.len() == spans.len()).then_some(found)
    }

    /// A place that surely was written: a burst of zeros from nowhere tells nothing.
    fn burst_offset(&self) -> u64 {
        let points = assess(&self.steps.record).points;
        let written = points.iter().find(|point| point.state == State::Measured && !point.is_zero);
        written.map_or(self.plan.site.size / 2, |point| point.offset_bytes)
    }

    /// Why a row of the file benchmark cannot be measured.
    fn why_not(&self, writes: bool, block: u64) -> Option<String> {
        if !block.is_multiple_of(self.plan.site.unit) {
            return Some(format!("direct I/O requires multiples of {} bytes", bytes(self.plan.site.unit)));
        }
        if block > self.plan.site.size {
            return Some(format!("the target has only {}", bytes(self.plan.site.size)));
        }
        self.plan.site.target.write_refusal().filter(|_| writes)
    }

    fn run(&mut self, id: String, title: String, jobs: &[NamedJob<'_>]) {
        let test = self.begin_and_measure(id, title, jobs);
        self.steps.keep(test);
    }

    fn begin_and_measure(&mut self, id: String, title: String, jobs: &[NamedJob<'_>]) -> TestRecord {
        let spent_ns = self.steps.session.now() - self.began;
        self.steps.next(&id, &title, spent_ns);
        measure_in_turn(id, title, jobs, self.steps.session, self.steps.observer)
    }
}

/// A target that is read.
pub(crate) struct SurfaceReader {
    engine: &'static str,
    /// Without a file where it cannot be opened.
    setup: EngineSetup,
}

impl SurfaceReader {
    /// Opens the target at `path`, of which `size` bytes are read in blocks of at most `max_block`.
    pub fn open(
        path: &Path,
        size: u64,
        is_block_device: bool,
        direct: bool,
        max_block: usize,
    ) -> SurfaceReader {
        let file = open_target(path, OpenFlags { direct, ..OpenFlags::default() }).ok().map(Arc::new);
        let engine = if direct && machine::probe("io_uring").is_ok() { "io_uring" } else { "psync" };
        let setup = EngineSetup {
            depth: 1,
            max_block,
            files: vec![OpenFile { file, size, is_block_device, volume: 0 }],
            paths: Vec::new(),
            direct,
            writes: false,
            random: true,
            options: RawEngineOptions::default(),
            priorities: Default::default(),
        };
        SurfaceReader { engine, setup }
    }

    /// Makes the requests of `feed` and returns it: at its end, or as far as it came where a read took longer than `patience`,
    /// `session` was stopped, or nothing can be read at all.
    pub fn run<F>(&self, feed: F, patience: Nanos, session: &Session) -> F
    where
        F: SingleFeed + Clone + Send + 'static,
    {
        let feed = Arc::new(Mutex::new(feed));
        let (mut own, engine, setup) = (feed.clone(), self.engine, self.setup.clone());
        self.beside(patience, session, move |session, _| {
            session.requester(registry::find(engine)?, setup).ok()?.run(&mut own).ok()
        });
        feed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads `spans` in turn; fewer results than spans where [`SurfaceReader::run`] ended early.
    pub fn read(&self, spans: Vec<ByteRange>, patience: Nanos, session: &Session) -> Vec<Look> {
        self.run(Reads { spans, looks: Vec::new() }, patience, session).looks
    }

    /// Whether all of a range of a file is a hole; `None` where that is not known within `patience`.
    pub fn is_hole(&self, range: ByteRange, patience: Nanos, session: &Session) -> Option<bool> {
        self.beside(patience, session, move |_, file| is_hole(file, range.offset, range.length))
    }

    /// Does `work` on the open file; `None` where it takes longer than `patience` or `session` is stopped meanwhile.
    fn beside<T: Send + 'static>(
        &self,
        patience: Nanos,
        session: &Session,
        work: impl FnOnce(&Session, &File) -> T + Send + 'static,
    ) -> Option<T> {
        let (file, stop) = (self.setup.files.first()?.file.clone()?, session.stop_handle());
        let work = move |session: &Session, _: &mut _| work(session, &file);
        let mut handle: RunHandle<(), T> = RunHandle::beside(session, patience, work).ok()?;
        loop {
            match handle.wait() {
                Progress::Ended(result) => return Some(result),
                Progress::Stuck(_) => return None,
                Progress::Waiting if stop.is_requested() => return None,
                Progress::Waiting | Progress::Event(()) => {}
            }
        }
    }
}

/// The result of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    /// Positive errno of a read that failed.
    pub errno: Option<i32>,
    pub time_ns: u64,
    /// Every byte is zero.
    pub is_zero: bool,
}

const EIO: i32 = 5;

impl Look {
    /// The result of `completion`, which brought the first bytes of `payload`.
    pub fn of(completion: &SingleCompletion, payload: &[u8]) -> Look {
        let SingleCompletion { request, start_ns, end_ns, .. } = *completion;
        // Less than was asked for is the end of a file that has become shorter.
        let errno = match completion.result.unwrap_or(0) {
            result if result < 0 => Some(-result as i32),
            result if result < i64::from(request.len) => Some(EIO),
            _ => None,
        };
        let is_zero = errno.is_none() && payload.iter().take(request.len as usize).all(|byte| *byte == 0);
        Look { errno, time_ns: end_ns - start_ns, is_zero }
    }
}

/// A read of `span`, at once.
fn read_of(span: ByteRange) -> SingleRequest {
    let request = Request { op: Op::Read, file: 0, len: span.length as u32, offset: span.offset };
    SingleRequest { request, not_before_ns: 0, spin_ns: 0, syncs: false }
}

/// Reads some ranges in turn.
#[derive(Clone)]
struct Reads {
    spans: Vec<ByteRange>,
    looks: Vec<Look>,
}

impl SingleFeed for Reads {
    fn next(&mut self, _now: u64) -> Option<SingleRequest> {
        self.spans.get(self.looks.len()).copied().map(read_of)
    }

    fn completed(&mut self, completion: &SingleCompletion, payload: &[u8]) {
        self.looks.push(Look::of(completion, payload));
    }
}

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
    fn scan(&mut self) {
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
    use super::*;
    use crate::MeasurementEvent;
    use crate::site::RunSettings;
    use fathom_analysis::surface::Surface;
    use fathom_analysis::surface::plan::SurfaceParts;
    use fathom_engine::sim::FixedLatency;
    use fathom_model::Nanos;
    use fathom_model::Op;
    use fathom_record::TestStatus;
    use fathom_record::{ErrorCount, JobRecord};
    use fathom_runner::RunObserver;
    use fathom_volume::VolumeModel;
    use std::os::unix::fs::FileExt;

    const GIB: u64 = 1 << 30;

    /// 1 ms per request, eight at once.
    fn measured(settings: SurfaceSettings) -> (RunRecord, Surface) {
        let millis = Nanos::from_millis(1);
        let model = FixedLatency { read: millis, write: millis, flush: millis, parallelism: 8 };
        let settings = SurfaceSettings { run: RunSettings { seed: Some(1), ..settings.run }, ..settings };
        let plan =
            SurfacePlan::on(BenchTarget::simulated("simulated", VolumeModel::unlimited(GIB)), settings)
                .unwrap();
        let record = surface(&plan, &mut Session::simulated(model, GIB), &mut ()).unwrap();
        let surface = assess(&record);
        (record, surface)
    }

    fn near(value: f64, expected: f64) -> bool {
        (value / expected - 1.0).abs() < 0.02
    }

    #[test]
    fn an_even_device_has_one_rate_everywhere() {
        let (record, surface) = measured(SurfaceSettings::default());
        assert_eq!(
            (record.status, surface.points.len(), surface.count("measured")),
            (TestStatus::Complete, 200, 200)
        );
        let spread = surface.transfer_rate.unwrap();
        // 64 KiB per ms.
        let rate = 65_536_000.0;
        for value in [spread.min, spread.max, spread.mean, spread.median, spread.weighted_mean] {
            assert!(near(value, rate), "{spread:?}");
        }
        let saturated = surface.saturated_rate.unwrap();
        assert!(near(saturated.mean.unwrap(), 8.0 * 4.0 * rate), "{saturated:?}");
        assert!(near(surface.burst_rate.as_ref().unwrap().bytes_per_second.unwrap(), rate));
        assert_eq!((surface.access_lat_ns.samples, surface.access_lat_ns.p50), (1_000, Some(1_000_000)));
        assert_eq!((surface.probes.len(), &record.findings), (1_000, &Vec::new()));
        assert!(
            record.tests[0].fio.contains("--name=transfer") && record.tests[0].fio.contains("--stonewall")
        );
    }

    #[test]
    fn parts_can_be_chosen_and_the_file_benchmark_writes() {
        let parts =
            SurfaceParts { transfer: false, saturated: false, access: true, burst: false, file: true };
        let content = Content::Mixed;
        let (_, surface) =
            measured(SurfaceSettings { parts: Some(parts), content, ..SurfaceSettings::default() });
        assert_eq!(
            (surface.points.len(), surface.burst_rate, surface.access_lat_ns.samples),
            (0, None, 1_000)
        );
        let iops: Vec<Option<u64>> =
            surface.file_benchmark[..6].iter().map(|row| row.iops.map(|iops| iops.round() as u64)).collect();
        assert_eq!(surface.file_benchmark.len(), 36);
        assert_eq!(iops, [1000, 1000, 1000, 1000, 8000, 8000].map(Some));
    }

    #[test]
    fn a_stop_keeps_what_was_measured() {
        struct StopAfter(fathom_runner::StopHandle, usize);
        impl RunObserver for StopAfter {}
        impl StepObserver for StopAfter {
            fn step(&mut self, event: &MeasurementEvent) {
                self.1 -= usize::from(matches!(event, MeasurementEvent::StepEnded(_)));
                if self.1 == 0 {
                    self.0.request("signal 2");
                }
            }
        }
        let millis = Nanos::from_millis(1);
        let model = FixedLatency { read: millis, write: millis, flush: millis, parallelism: 8 };
        let plan = SurfacePlan::on(
            BenchTarget::simulated("simulated", VolumeModel::unlimited(GIB)),
            SurfaceSettings::default(),
        )
        .unwrap();
        let mut session = Session::simulated(model, GIB);
        let mut observer = StopAfter(session.stop_handle(), 3);
        let record = surface(&plan, &mut session, &mut observer).unwrap();
        assert_eq!((record.tests.len(), record.status), (3, TestStatus::Incomplete));
        assert_eq!(record.header.interrupted.as_deref(), Some("signal 2"));
    }

    #[test]
    fn a_scan_reads_everything_once() {
        let (record, surface) = measured(SurfaceSettings { scan: true, ..SurfaceSettings::default() });
        let scan = surface.scan.unwrap();
        assert_eq!((scan.scanned_bytes, scan.unreadable.len(), scan.slow.len()), (GIB, 0, 0));
        assert_eq!((record.status, record.tests.len()), (TestStatus::Complete, 16));
        assert!(near(surface.transfer_rate.unwrap().mean, 1_048_576_000.0));
    }

    const PATIENCE: Nanos = Nanos::from_secs(10);

    fn range(offset: u64, length: u64) -> ByteRange {
        ByteRange { offset, length }
    }

    #[test]
    fn reads_report_zeros_errors_and_holes() {
        let file = tempfile::NamedTempFile::new_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        file.as_file().set_len(1 << 20).unwrap();
        file.as_file().write_all_at(&[7], 5 * 4096).unwrap();
        let (reader, session) =
            (SurfaceReader::open(file.path(), 1 << 20, false, false, 65_536), Session::real());
        let spans = [0, 5 * 4096, 1 << 20].map(|offset| range(offset, 4096)).to_vec();
        let looks = reader.read(spans.clone(), PATIENCE, &session);
        let found: Vec<_> = looks.iter().map(|look| (look.errno, look.is_zero)).collect();
        // Behind its end there is nothing to be read.
        assert_eq!(found, [(None, true), (None, false), (Some(EIO), false)]);
        assert_eq!(reader.is_hole(range(1 << 19, 65_536), PATIENCE, &session), Some(true));
        assert_eq!(reader.is_hole(range(0, 65_536), PATIENCE, &session), Some(false));
        let missing = SurfaceReader::open(Path::new("/no/such/file"), 0, false, false, 512);
        assert_eq!(missing.read(spans.clone(), PATIENCE, &session), []);
        session.stop_handle().request("signal 2");
        assert_eq!(reader.read(spans, PATIENCE, &session), []);
    }

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
