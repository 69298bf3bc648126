//! `monitor --record`: every request of a device, or, where they may not be traced, its counters of each second, in a file.
//!
//! A thread of low priority reads the kernel's rings in batches, joins issues and completions, and writes blocks of some 64 KiB, or
//! what there is after a second. Events that the kernel had no room for are counted, in the file as well.

mod counters;
mod files;
mod traced;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use fathom_analysis::monitor::WatchedDevice;
use fathom_observed::RequestPoint;
use fathom_observed::recording::{RecordingDetail, RecordingHeader};
use fathom_runner::StopHandle;
use fathom_sys::clock::{RealClock, monotonic_ns, unix_ms};
use fathom_sys::device::{BlockTrace, SysRoot, TargetStack};
use fathom_sys::files::PathRefusal;

use super::devices::{DeviceWatch, in_time};
use crate::AssessError;
use files::RecordingFiles;

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
                Some(trace) => traced::record(&mut work, trace, &name),
                None => counters::record(&mut work, &name),
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
