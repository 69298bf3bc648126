//! `monitor --record`: every request of a device, or, where they may not be traced, its counters of each second, in a file.
//!
//! A thread of low priority reads the kernel's rings in batches, joins issues and completions, and writes blocks of some 64 KiB, or
//! what there is after a second. Events that the kernel had no room for are counted, in the file as well.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use fathom_analysis::monitor::WatchedDevice;
use fathom_model::PerOp;
use fathom_observed::recording::{
    RecordingDetail, RecordingEnd, RecordingHeader, RequestBlock, RequestJoiner, interval_block,
};
use fathom_observed::{ObservedInterval, ObservedRequest, RequestPoint, ServedIo, ThreadNumbers};
use fathom_runner::StopHandle;
use fathom_sys::clock::{RealClock, monotonic_ns, unix_ms};
use fathom_sys::device::block_trace::{BlockEvent, BlockStage};
use fathom_sys::device::diskstats::SECTOR_BYTES;
use fathom_sys::device::tuning::counts_io;
use fathom_sys::device::{BlockTrace, DiskSampler, DiskStats, SysRoot, TargetStack};
use fathom_sys::files::{PathRefusal, create_new, create_output};

use super::devices::{DeviceWatch, in_time};
use super::{YOUNG_NS, op_of};
use crate::AssessError;

/// Priority of the thread that records: below programs, above what runs only when nothing else does.
const NICE: i8 = 5;

/// Where to record to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingSettings {
    /// The file; with a largest size, the beginning of the files' names.
    pub path: PathBuf,
    /// Size at which another file begins, bytes.
    pub most_bytes: Option<u64>,
    /// Files that are kept.
    pub most_files: Option<u32>,
}

/// A recording that has begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingBegun {
    /// The first file.
    pub path: PathBuf,
    /// What is recorded.
    pub detail: RecordingDetail,
    /// Why requests are not recorded, and what to do about it.
    pub refused: Option<(String, Option<&'static str>)>,
    /// What a reader of the recording will have to know of it.
    pub notes: Vec<String>,
}

/// What has been recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordingProgress {
    /// Requests, or intervals.
    pub entries: u64,
    /// Bytes of all files.
    pub bytes: u64,
    /// Files that were written.
    pub files: u32,
    /// Events that were lost.
    pub lost: u64,
    /// Why the recording ended early.
    pub failed: Option<String>,
}

/// A recording that is being made.
pub(super) struct Recorder {
    thread: Option<JoinHandle<()>>,
    shared: Arc<RecorderState>,
    /// Events that were lost when this was last asked.
    lost: u64,
}

/// What the thread and its owner know of each other.
#[derive(Debug, Default)]
struct RecorderState {
    is_over: AtomicBool,
    progress: Mutex<RecordingProgress>,
}

impl RecorderState {
    fn update(&self, change: impl FnOnce(&mut RecordingProgress)) {
        change(&mut self.progress.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Recorder {
    /// Begins to record the one device of `watches`.
    ///
    /// # Errors
    /// There are several, it is not there, or the file cannot be made.
    pub fn start(
        root: &SysRoot,
        clock: RealClock,
        watches: &[DeviceWatch],
        settings: &RecordingSettings,
        stop: &StopHandle,
    ) -> Result<(Recorder, RecordingBegun), AssessError> {
        let [watch] = watches else {
            let message = format!("a recording is of one device, not of {}", watches.len());
            return Err(AssessError::usage(message, "name one device; record others by further runs"));
        };
        if !watch.is_there() {
            let message = format!("{} is not there", watch.device.name);
            return Err(AssessError::preparation(message, "attach the device, or name another one"));
        }
        let device = &watch.device;
        // The kernel begins to trace before the time 0, so nothing after it is missing.
        let trace = BlockTrace::open(root, &[&device.name]);
        let started_ns = monotonic_ns();
        let (trace, refused) = match trace {
            Ok(trace) => (Some(trace), None),
            Err(error) => (None, Some((error.to_string(), error.hint()))),
        };
        let header = header_of(root, device, trace.is_some(), &settings.path);
        let (detail, notes) = (header.detail, header.notes.clone());
        let files = RecordingFiles::create(settings.clone(), header);
        let failed = |error| uncreated(&settings.path, &error);
        let files = files.map_err(failed)?;
        let begun = RecordingBegun { path: files.path().to_owned(), detail, refused, notes };
        let shared = Arc::new(RecorderState::default());
        let mut work = RecorderWork { shared: shared.clone(), stop: stop.clone(), clock, started_ns, files };
        let name = device.name.clone();
        let record = move || {
            // Refused or not, it records.
            let _ = fathom_sys::priority::set_nice(NICE);
            match trace {
                Some(trace) => record_requests(&mut work, trace, &name),
                None => record_counters(&mut work, &name),
            }
        };
        let thread = std::thread::Builder::new().name("record".to_owned()).spawn(record);
        Ok((Recorder { thread: Some(thread.map_err(failed)?), shared, lost: 0 }, begun))
    }

    /// Events that were lost since the last call.
    pub fn newly_lost(&mut self) -> u64 {
        let mut lost = 0;
        self.shared.update(|progress| lost = progress.lost);
        lost - std::mem::replace(&mut self.lost, lost)
    }

    /// Ends the recording.
    pub fn finish(mut self) -> RecordingProgress {
        self.end();
        let mut found = RecordingProgress::default();
        self.shared.update(|progress| found = progress.clone());
        found
    }

    fn end(&mut self) {
        self.shared.is_over.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            let reason = || Some("its thread has panicked".to_owned());
            self.shared.update(|progress| progress.failed = progress.failed.take().or_else(reason));
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.end();
    }
}

/// What the thread works with.
struct RecorderWork {
    shared: Arc<RecorderState>,
    stop: StopHandle,
    clock: RealClock,
    /// The time 0 of the recording, by `CLOCK_MONOTONIC`, ns.
    started_ns: u64,
    files: RecordingFiles,
}

impl RecorderWork {
    fn is_over(&self) -> bool {
        self.shared.is_over.load(Ordering::Acquire)
    }

    /// Waits for `length_ns`, unless the recording ends.
    fn wait(&self, length_ns: u64) {
        const PIECE: std::time::Duration = std::time::Duration::from_millis(50);
        let until = self.clock.now().saturating_add(length_ns);
        self.clock.sleep_until(until, PIECE, || !self.is_over());
    }

    /// The time of the recording.
    fn now_ns(&self) -> u64 {
        monotonic_ns().saturating_sub(self.started_ns)
    }

    /// Writes blocks, and begins the next file at `next_ns` where this one is full. False where that failed, which ends the
    /// recording and the run.
    fn write(&mut self, blocks: &[Vec<u8>], entries: u64, lost: u64, next_ns: u64) -> bool {
        let now_ns = self.now_ns();
        let mut written = blocks.iter().try_for_each(|block| self.files.write(block));
        written = written.and_then(|()| self.files.rotate(now_ns, next_ns));
        self.report(written, entries, lost)
    }

    /// Ends the last file.
    fn end(&mut self, in_flight: u64) {
        let written = self.files.end(self.now_ns(), in_flight);
        self.report(written, 0, 0);
    }

    fn report(&mut self, written: io::Result<()>, entries: u64, lost: u64) -> bool {
        let failed = written.err().map(|error| {
            let path = self.files.path().display();
            format!("cannot write {path}: {}", fathom_sys::io::describe(&error))
        });
        let is_well = failed.is_none();
        self.shared.update(|progress| {
            progress.entries += entries;
            progress.lost += lost;
            progress.bytes = self.files.written_bytes();
            progress.files = self.files.count();
            progress.failed = failed;
        });
        if !is_well {
            self.stop.request("the recording cannot be written");
        }
        is_well
    }
}

/// That the file of a recording cannot be made.
fn uncreated(path: &Path, error: &io::Error) -> AssessError {
    let hint = match PathRefusal::of(error) {
        Some(refusal) => refusal.hint(),
        None if error.kind() == io::ErrorKind::AlreadyExists => {
            "remove it or name a new file; no recording is overwritten"
        }
        None => "name a new file in an existing directory",
    };
    let cause = fathom_sys::io::describe(error);
    AssessError::preparation(format!("cannot create the recording {}: {cause}", path.display()), hint)
}

fn header_of(root: &SysRoot, device: &WatchedDevice, is_traced: bool, path: &Path) -> RecordingHeader {
    let mut notes = Vec::new();
    if !is_traced {
        notes.push(
            "requests could not be traced: the kernel's counters of each second are recorded".to_owned(),
        );
    }
    if is_traced && device.stacked {
        notes.push(format!(
            "{} has no queue of its own: requests are those that programs make, without latencies",
            device.name
        ));
    }
    if lies_on(path, &device.name) {
        notes.push(format!(
            "the recording is written to {} itself: its writes, about 10 bytes for each I/O, are recorded as well",
            device.name
        ));
    }
    RecordingHeader {
        detail: if is_traced { RecordingDetail::Requests } else { RecordingDetail::Sums },
        point: if device.stacked { RequestPoint::Program } else { RequestPoint::Driver },
        device: device.name.clone(),
        size_bytes: device.size_bytes,
        sector_bytes: device.logical_block_bytes,
        host: root.text("/proc/sys/kernel/hostname").unwrap_or_default(),
        started_unix_ns: unix_ms().saturating_mul(1_000_000),
        file: 1,
        from_ns: 0,
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        notes,
    }
}

/// Whether a file at `path` lies on the device, as far as its file system answers.
fn lies_on(path: &Path, device: &str) -> bool {
    // A name alone lies in the working directory.
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let directory = directory.to_owned();
    let stack = in_time(move || TargetStack::of(&directory));
    stack.and_then(Result::ok).is_some_and(|stack| stack.names().contains(&device))
}

/// Length of an interval, ns.
const SECOND_NS: u64 = 1_000_000_000;
/// A last interval shorter than this is left out, ns.
const SHORT_NS: u64 = 100_000_000;

/// Records until the recording is over, or cannot be written. A device that goes away leaves a gap.
fn record_counters(work: &mut RecorderWork, name: &str) {
    let mut sampler = None;
    let mut before: Option<(u64, DiskStats)> = None;
    let mut turn = 0;
    loop {
        let is_last = work.is_over();
        sampler = sampler.or_else(|| DiskSampler::open(&[name]).ok());
        let stats = sampler.as_ref().and_then(|sampler| sampler.first().ok());
        let now_ns = work.now_ns();
        match (before, stats) {
            (Some((from_ns, earlier)), Some(stats)) if now_ns - from_ns >= SHORT_NS => {
                let interval = interval(from_ns, now_ns - from_ns, &stats.since(&earlier));
                if !work.write(&[interval_block(&interval)], 1, 0, now_ns) {
                    return;
                }
                before = Some((now_ns, stats));
            }
            (Some(_), Some(_)) => {}
            (None, Some(stats)) => before = Some((now_ns, stats)),
            (_, None) => (sampler, before) = (None, None),
        }
        if is_last {
            return work.end(0);
        }
        turn += 1;
        work.wait((turn * SECOND_NS).saturating_sub(work.now_ns()));
    }
}

/// What the counters grew by within an interval.
fn interval(start_ns: u64, length_ns: u64, grown: &DiskStats) -> ObservedInterval {
    let served = |ops: u64, bytes: u64, ticks_ms: u64| ServedIo {
        ops: Some(ops),
        bytes: Some(bytes),
        latency_sum_ns: Some(ticks_ms.saturating_mul(1_000_000)),
    };
    let share = |ms: u64, of: u64| {
        (u128::from(ms) * 1_000_000 * u128::from(of) / u128::from(length_ns.max(1))) as u64
    };
    ObservedInterval {
        start_ns,
        length_ns,
        by_op: PerOp {
            read: served(grown.read_ios, grown.read_bytes(), grown.read_ticks_ms),
            write: served(grown.write_ios, grown.write_bytes(), grown.write_ticks_ms),
            trim: served(grown.discard_ios, grown.discard_bytes(), grown.discard_ticks_ms),
        },
        queue_depth_milli: Some(share(grown.queue_ms, 1_000)),
        utilization_ppm: Some(share(grown.busy_ms, 1_000_000).min(1_000_000) as u32),
        ..ObservedInterval::default()
    }
}

/// Names that are tried where a file of that name exists already.
const MAX_NAMES: u32 = 10_000;

/// Writes blocks to the present file.
#[derive(Debug)]
struct RecordingFiles {
    settings: RecordingSettings,
    header: RecordingHeader,
    file: File,
    path: PathBuf,
    /// Bytes of the present file.
    bytes: u64,
    /// Bytes of the files before.
    earlier_bytes: u64,
    /// Number of files.
    count: u32,
    /// The present file and those before that are kept.
    kept: VecDeque<PathBuf>,
}

impl RecordingFiles {
    /// Makes the first file, which does not exist yet, and writes its header.
    pub fn create(settings: RecordingSettings, header: RecordingHeader) -> io::Result<RecordingFiles> {
        let path = path_of(&settings, header.file);
        let file = new_file(&path)?;
        let kept = VecDeque::from([path.clone()]);
        let mut files =
            RecordingFiles { settings, header, file, path, bytes: 0, earlier_bytes: 0, count: 1, kept };
        files.write(&files.header.block())?;
        Ok(files)
    }

    /// The present file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of all files.
    pub fn written_bytes(&self) -> u64 {
        self.earlier_bytes + self.bytes
    }

    /// Files that were written.
    pub fn count(&self) -> u32 {
        self.count
    }

    pub fn write(&mut self, block: &[u8]) -> io::Result<()> {
        self.file.write_all(block)?;
        self.bytes += block.len() as u64;
        Ok(())
    }

    /// Begins another file with what happens from `next_ns` on, where this one has its largest size.
    pub fn rotate(&mut self, now_ns: u64, next_ns: u64) -> io::Result<()> {
        if self.settings.most_bytes.is_none_or(|most| self.bytes < most) {
            return Ok(());
        }
        self.write(&RecordingEnd { end_ns: now_ns, continues: true, in_flight: 0 }.block())?;
        self.header.file += 1;
        let first = self.header.file;
        (self.path, self.file) = loop {
            let path = path_of(&self.settings, self.header.file);
            match new_file(&path) {
                Ok(file) => break (path, file),
                // That of an earlier recording stays.
                Err(error)
                    if error.kind() == ErrorKind::AlreadyExists && self.header.file - first < MAX_NAMES =>
                {
                    self.header.file += 1;
                }
                Err(error) => return Err(error),
            }
        };
        self.header.from_ns = next_ns;
        self.earlier_bytes += std::mem::take(&mut self.bytes);
        self.count += 1;
        self.kept.push_back(self.path.clone());
        while self.settings.most_files.is_some_and(|most| self.kept.len() > most as usize) {
            if let Some(oldest) = self.kept.pop_front() {
                // Somebody else may have moved it away.
                let _ = std::fs::remove_file(oldest);
            }
        }
        self.write(&self.header.block())
    }

    /// Ends the last file.
    pub fn end(&mut self, end_ns: u64, in_flight: u64) -> io::Result<()> {
        self.write(&RecordingEnd { end_ns, continues: false, in_flight }.block())
    }
}

/// A number follows the name where there may be several files.
fn path_of(settings: &RecordingSettings, number: u32) -> PathBuf {
    let mut path = settings.path.clone().into_os_string();
    if settings.most_bytes.is_some() {
        path.push(format!(".{number:05}"));
    }
    path.into()
}

/// A recording of hours is not overwritten.
fn new_file(path: &Path) -> io::Result<File> {
    create_new(path)?;
    create_output(path)
}

/// The rings are read this often.
const TURN_NS: u64 = 20_000_000;
/// What there is is written after this time at the latest.
const WRITE_NS: u64 = 1_000_000_000;
/// A block is written this often where nothing happens.
const IDLE_NS: u64 = 10_000_000_000;
/// Most bytes of a request: what 32 bits hold of whole sectors.
const MAX_BYTES: u64 = u32::MAX as u64 / SECTOR_BYTES * SECTOR_BYTES;

/// Where a request is in flight for longer, the kernel's count of them is read this often.
const LOOK_NS: u64 = 100_000_000;

/// Longest wait for completion events at the end.
const SETTLE_NS: u64 = LOOK_NS + 3 * TURN_NS;

/// Records until the recording is over, or cannot be written.
fn record_requests(work: &mut RecorderWork, trace: BlockTrace, device: &str) {
    let is_counted = counts_io(&SysRoot::real(), device) == Some(true);
    let mut recording = TracedRecording {
        trace,
        counters: is_counted.then(|| DiskSampler::open(&[device]).ok()).flatten(),
        looked_ns: 0,
        look: None,
        events: Vec::new(),
        threads: ThreadNumbers::default(),
        joiner: RequestJoiner::default(),
        blocks: RequestBlocks::default(),
        lost_before: 0,
        written_ns: work.now_ns(),
    };
    while !work.is_over() {
        work.wait(TURN_NS);
        if !recording.next_turn(work) {
            return;
        }
    }
    if recording.settle(work) {
        recording.finish(work);
    }
}

struct TracedRecording {
    trace: BlockTrace,
    /// Read, but not yet passed on.
    events: Vec<BlockEvent>,
    threads: ThreadNumbers,
    joiner: RequestJoiner,
    /// The kernel's counters of the device, where it counts.
    counters: Option<DiskSampler>,
    /// When they were last read, and what they said of the requests in flight: events up to then are still to be given.
    looked_ns: u64,
    look: Option<u64>,
    blocks: RequestBlocks,
    /// Events that were lost up to the last turn.
    lost_before: u64,
    /// When the last block was written.
    written_ns: u64,
}

/// Blocks that are full, and the next one.
#[derive(Default)]
struct RequestBlocks {
    full: Vec<Vec<u8>>,
    next: RequestBlock,
    /// Requests of all of them.
    entries: u64,
    /// Events and latencies that were lost since the last block.
    lost: u64,
    overdue: u64,
}

impl RequestBlocks {
    fn push(&mut self, request: &ObservedRequest) {
        self.next.push(request);
        self.entries += 1;
        if self.next.bytes() >= RequestBlock::ENOUGH_BYTES {
            self.full.push(self.next.take(request.at_ns, 0, 0));
        }
    }

    /// Ends the next block too: it is known what happened until `now_ns`.
    fn end_block(&mut self, now_ns: u64) {
        let (lost, overdue) = (std::mem::take(&mut self.lost), std::mem::take(&mut self.overdue));
        self.full.push(self.next.take(now_ns, lost, overdue));
    }
}

impl TracedRecording {
    /// Takes the events up to now, but for those that may not be complete.
    fn next_turn(&mut self, work: &mut RecorderWork) -> bool {
        let until_ns = monotonic_ns().saturating_sub(YOUNG_NS);
        self.turn(work, until_ns, until_ns.saturating_sub(work.started_ns))
    }

    /// Takes the events up to `until_ns` of the kernel's clock, which is `now_ns` of the recording. False at the end.
    fn turn(&mut self, work: &mut RecorderWork, until_ns: u64, now_ns: u64) -> bool {
        self.trace.read(&mut self.events);
        // Of each CPU they are in order already.
        self.events.sort_by_key(|event| event.time_ns);
        let ripe = self.events.partition_point(|event| event.time_ns <= until_ns);
        for event in self.events.drain(..ripe) {
            pass_on(&event, work.started_ns, &mut self.threads, &mut self.joiner);
        }
        let lost = self.trace.lost() - self.lost_before;
        self.lost_before += lost;
        if lost > 0 {
            self.blocks.lost += lost;
            // Just now, not at the time up to which events are complete.
            self.joiner.lost(work.now_ns());
        }
        if now_ns >= self.looked_ns
            && let Some(in_flight) = self.look.take()
        {
            self.joiner.counted(in_flight, self.looked_ns);
        }
        let joined = self.joiner.ready(now_ns, |request| self.blocks.push(request));
        self.look_again(work.now_ns());
        self.blocks.overdue += joined.without_latency;
        let since_ns = now_ns.saturating_sub(self.written_ns);
        let is_due = since_ns >= if self.blocks.next.is_empty() { IDLE_NS } else { WRITE_NS };
        match is_due || lost > 0 || !self.blocks.full.is_empty() {
            true => self.write(work, now_ns),
            false => true,
        }
    }

    /// Asks how many requests are in flight, where one has been for long: some kernels do not report every completion.
    fn look_again(&mut self, now_ns: u64) {
        let waited_ns = now_ns.saturating_sub(self.joiner.next_ns(now_ns).max(self.looked_ns));
        if self.look.is_none() && waited_ns >= LOOK_NS {
            self.looked_ns = now_ns;
            self.look =
                self.counters.as_ref().and_then(|counters| counters.first().ok()).map(|now| now.in_flight);
        }
    }

    fn write(&mut self, work: &mut RecorderWork, now_ns: u64) -> bool {
        let lost = self.blocks.lost;
        self.blocks.end_block(now_ns);
        self.written_ns = now_ns;
        let entries = std::mem::take(&mut self.blocks.entries);
        let blocks = std::mem::take(&mut self.blocks.full);
        work.write(&blocks, entries, lost, self.joiner.next_ns(now_ns))
    }

    /// Takes turns until all that began before is complete, or may be in flight. False where the file cannot be written.
    fn settle(&mut self, work: &mut RecorderWork) -> bool {
        let over_ns = work.now_ns();
        loop {
            work.clock.sleep_until(work.clock.now().saturating_add(YOUNG_NS), Duration::MAX, || true);
            if !self.next_turn(work) {
                return false;
            }
            let is_late = work.now_ns() >= over_ns + SETTLE_NS;
            if is_late || self.joiner.next_ns(u64::MAX) > over_ns {
                return true;
            }
        }
    }

    /// Takes the rest, and ends the file.
    fn finish(&mut self, work: &mut RecorderWork) {
        let now_ns = work.now_ns();
        if !self.turn(work, u64::MAX, now_ns) {
            return;
        }
        let joined = self.joiner.finish(|request| self.blocks.push(request));
        if self.write(work, now_ns) {
            work.end(joined.without_latency);
        }
    }
}

/// Gives an event to `joiner`, by the time of the recording. What happened before that began is left out.
fn pass_on(event: &BlockEvent, started_ns: u64, threads: &mut ThreadNumbers, joiner: &mut RequestJoiner) {
    let (Some(op), Some(at_ns)) = (op_of(event.op), event.time_ns.checked_sub(started_ns)) else { return };
    // Flushes have no place, whatever the kernel says.
    let offset = if op.is_sync() { 0 } else { event.sector.saturating_mul(SECTOR_BYTES) };
    let bytes = if op.is_sync() { 0 } else { event.bytes.min(MAX_BYTES) as u32 };
    let mut request = ObservedRequest { at_ns, offset, latency_ns: None, bytes, file: 0, op, thread: 0 };
    // A completion happens in the context of any thread.
    if matches!(event.stage, BlockStage::Entered | BlockStage::Issued) {
        request.thread = threads.number(event.thread);
    }
    match event.stage {
        BlockStage::Entered => joiner.entered(request),
        BlockStage::Issued => joiner.issued(request),
        BlockStage::Requeued => joiner.requeued(op, offset),
        BlockStage::Completed => joiner.completed(op, offset, at_ns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fathom_observed::recording::{RecordingDetail, RequestBlock, read_recording};
    use fathom_observed::{LoadSource, ObservedRequest, RequestPoint};
    use fathom_sys::device::block_trace::BlockOp;

    #[test]
    fn counters_become_sums() {
        let grown = DiskStats {
            read_ios: 100,
            read_sectors: 800,
            read_ticks_ms: 250,
            busy_ms: 300,
            queue_ms: 1_500,
            ..DiskStats::default()
        };
        let found = interval(7, 2 * SECOND_NS, &grown);
        let reads = ServedIo { ops: Some(100), bytes: Some(409_600), latency_sum_ns: Some(250_000_000) };
        assert_eq!((found.by_op.read, found.by_op.write.ops), (reads, Some(0)));
        assert_eq!((found.queue_depth_milli, found.utilization_ppm), (Some(750), Some(150_000)));
    }

    fn header() -> RecordingHeader {
        RecordingHeader {
            detail: RecordingDetail::Requests,
            point: RequestPoint::Driver,
            device: "sda".to_owned(),
            size_bytes: 1 << 30,
            sector_bytes: 512,
            host: "h".to_owned(),
            started_unix_ns: 1_700_000_000_000_000_000,
            file: 1,
            from_ns: 0,
            tool_version: "1".to_owned(),
            notes: Vec::new(),
        }
    }

    fn names(directory: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(directory).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn the_latest_files_are_kept_and_joined_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("load");
        let settings = RecordingSettings { path, most_bytes: Some(600), most_files: Some(3) };
        // A file of an earlier recording is in the way.
        std::fs::write(directory.path().join("load.00003"), "x").unwrap();
        let mut files = RecordingFiles::create(settings.clone(), header()).unwrap();
        let mut block = RequestBlock::default();
        for second in 0..50_u64 {
            let at_ns = second * 1_000_000_000;
            block.push(&ObservedRequest {
                at_ns,
                offset: 0,
                latency_ns: None,
                bytes: 512,
                file: 0,
                thread: 0,
                op: Default::default(),
            });
            files.write(&block.take(at_ns, 0, 0)).unwrap();
            files.rotate(at_ns, at_ns).unwrap();
        }
        files.end(50_000_000_000, 0).unwrap();
        assert!(files.count() > 4, "{}", files.count());
        let found = names(directory.path());
        assert_eq!((found.len(), found[0].as_str()), (4, "load.00003"));
        let own: Vec<&String> = found.iter().filter(|name| *name != "load.00003").collect();
        let bytes: Vec<u8> =
            own.iter().flat_map(|name| std::fs::read(directory.path().join(name)).unwrap()).collect();
        let LoadSource::Stream(mut requests) = read_recording(&bytes[..], None).unwrap() else {
            panic!("these are requests")
        };
        let times: Vec<u64> = requests.by_ref().map(|request| request.unwrap().at_ns).collect();
        assert!(
            times.len() > 5 && times.windows(2).all(|pair| pair[1] - pair[0] == 1_000_000_000),
            "{times:?}"
        );
        let load = requests.into_load();
        assert!(load.gaps.is_empty() && load.notes.is_empty(), "{load:?}");
        assert_eq!(load.started_unix_ns.unwrap() + load.length_ns, 1_700_000_050_000_000_000);
        assert_eq!(
            RecordingFiles::create(RecordingSettings { most_bytes: None, ..settings }, header())
                .map(drop)
                .ok(),
            Some(())
        );
    }

    #[test]
    fn existing_files_are_not_overwritten() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("load");
        std::fs::write(&path, "precious").unwrap();
        let settings = RecordingSettings { path: path.clone(), most_bytes: None, most_files: None };
        let error = RecordingFiles::create(settings, header()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
    }

    #[test]
    fn events_become_requests_of_the_recording() {
        let event = |time_ns, stage, op, sector, bytes| {
            let thread = if op == BlockOp::Flush { 12 } else { 11 };
            BlockEvent { time_ns, device: 0, stage, op, sector, bytes, thread }
        };
        let mut threads = ThreadNumbers::default();
        let mut joiner = RequestJoiner::default();
        for event in [
            event(50, BlockStage::Issued, BlockOp::Read, 8, 4096),
            event(110, BlockStage::Issued, BlockOp::Write, 16, 8192),
            event(115, BlockStage::Requeued, BlockOp::Write, 16, 8192),
            event(120, BlockStage::Issued, BlockOp::Write, 16, 8192),
            event(121, BlockStage::Issued, BlockOp::Flush, 77, 0),
            event(122, BlockStage::Issued, BlockOp::Other, 0, 0),
            event(123, BlockStage::Issued, BlockOp::Discard, 8, 1 << 33),
            event(130, BlockStage::Completed, BlockOp::Read, 8, 4096),
            event(140, BlockStage::Completed, BlockOp::Flush, 0, 0),
            event(150, BlockStage::Completed, BlockOp::Write, 16, 8192),
        ] {
            pass_on(&event, 100, &mut threads, &mut joiner);
        }
        let mut found = Vec::new();
        let joined = joiner.finish(|one| {
            found.push((
                one.at_ns,
                one.op.name(),
                one.offset,
                one.bytes,
                one.latency_ns.is_some(),
                one.thread,
            ))
        });
        assert_eq!(
            found,
            [
                (20, "write", 8192, 8192, true, 1),
                (21, "sync", 0, 0, true, 2),
                (23, "trim", 4096, u32::MAX - 511, false, 1)
            ]
        );
        assert_eq!(joined.without_latency, 1);
    }

    #[test]
    fn blocks_stay_small_however_many_requests_waited() {
        let mut blocks = RequestBlocks::default();
        for at_ns in 0..100_000 {
            blocks.push(&ObservedRequest {
                at_ns,
                offset: at_ns * 1_000_003 % 4096 * 512,
                latency_ns: None,
                bytes: 512,
                file: 0,
                thread: 0,
                op: fathom_model::Op::Read,
            });
        }
        blocks.end_block(100_000);
        assert!(blocks.full.len() > 3 && blocks.full.iter().all(|block| block.len() < 70 << 10));
    }
}
