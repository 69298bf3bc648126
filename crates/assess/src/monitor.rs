//! `monitor`: reads what the kernel counts of block devices, interval after interval.
//!
//! Never touches a device, and asks file systems on threads of their own, so that one that does not answer holds nothing
//! up. Prints nothing: a [`MonitorObserver`] receives the events.

mod devices;
mod owners;
mod recording;
mod requests;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use fathom_analysis::monitor::{MonitorInterval, MonitorTally, WatchedDevice};
use fathom_model::Nanos;
use fathom_record::{Activity, RunHeader, RunRecord, TestStatus};
use fathom_runner::{ClockFacts, StopHandle};
use fathom_sys::clock::{RealClock, unix_ms};
use fathom_sys::device::SysRoot;

pub use recording::{RecordingBegun, RecordingProgress, RecordingSettings};

use crate::{AssessError, enter_conditions};

use devices::{DeviceSelection, DeviceWatch};
use owners::Owners;
use recording::Recorder;
use requests::Requests;

/// Nothing completed for so long although something is in flight: a stall.
pub const STALL_NS: u64 = 1_500_000_000;
/// A last interval shorter than this is left out.
const SHORT_NS: u64 = 100_000_000;
/// Requests are read this often where they are traced, so that the kernel finds room for the next.
const TRACE_TURN_NS: u64 = 20_000_000;
/// Devices are looked at this often at least, for what is in flight and for stalls.
const LOOK_TURN_NS: u64 = 100_000_000;
/// Looking takes some µs per device; with this much time for each it is no more than about a hundredth.
const LOOK_COST_NS: u64 = 1_000_000;

/// What to watch and how.
#[derive(Clone, Debug)]
pub struct MonitorSettings {
    /// Devices by name or node, or files and directories on them; all disks where there is none.
    pub devices: Vec<PathBuf>,
    /// Length of an interval.
    pub interval: Nanos,
    /// How many intervals; none is without end.
    pub count: Option<u64>,
    /// Trace single requests where that is allowed.
    pub trace: bool,
    /// Record the one device.
    pub recording: Option<RecordingSettings>,
    /// Look for the processes behind the load.
    pub owners: bool,
    /// The run is kept: enter this machine and the single intervals into its record.
    pub keeps: bool,
    /// Labels of the run.
    pub labels: BTreeMap<String, String>,
    /// The command line, program name first.
    pub command: Vec<String>,
}

/// Receives the intervals and events of devices.
pub trait MonitorObserver {
    /// The devices are known; watching begins.
    fn begun(&mut self, _header: &RunHeader) {}
    /// An interval has ended; one entry per device.
    fn interval(&mut self, intervals: &[MonitorInterval]);
    /// A device with requests in flight has not answered for `length_ns`.
    fn stalled(&mut self, _device: &WatchedDevice, _length_ns: u64, _in_flight: u64) {}
    /// A device reported as stalled answers again, after `length_ns`.
    fn answered(&mut self, _device: &WatchedDevice, _length_ns: u64) {}
    /// Requests cannot be traced: why, and what to do about it.
    fn untraced(&mut self, _reason: &str, _hint: Option<&str>) {}
    /// A device is being recorded.
    fn recording(&mut self, _begun: &RecordingBegun) {}
    /// The recorder lost so many events of the kernel since the last interval.
    fn recording_lost(&mut self, _events: u64) {}
    /// The recording has ended.
    fn recorded(&mut self, _progress: &RecordingProgress) {}
}

/// Watches until the count is reached or `stop` asks for the end: a test for each device.
///
/// # Errors
/// A device that was named is not there, or there is none at all, or the recording cannot begin.
pub fn run(
    settings: &MonitorSettings,
    stop: &StopHandle,
    observer: &mut dyn MonitorObserver,
) -> Result<RunRecord, AssessError> {
    let root = SysRoot::real();
    let choice = DeviceSelection::of(&root, &settings.devices)?;
    let clock = RealClock::start();
    let mut monitor = Monitor {
        watches: choice
            .initial(&root)
            .into_iter()
            .map(|device| DeviceWatch::start(device, clock.now()))
            .collect(),
        requests: None,
        recorder: None,
        owners: if settings.owners { Owners::start() } else { None },
        choice,
        root,
        clock,
    };
    let mut header = monitor.header(settings);
    observer.begun(&header);
    if settings.trace {
        match Requests::start(&monitor.root, &monitor.watches) {
            Ok(requests) => monitor.requests = Some(requests),
            Err(error) => observer.untraced(&error.to_string(), error.hint()),
        }
    }
    if let Some(recording) = &settings.recording {
        let (root, clock) = (&monitor.root, monitor.clock);
        let (recorder, begun) = Recorder::start(root, clock, &monitor.watches, recording, stop)?;
        monitor.recorder = Some(recorder);
        observer.recording(&begun);
    }
    let mut tally = MonitorTally::new(settings.keeps);
    monitor.go(settings, stop, observer, &mut tally);
    if let Some(recorder) = monitor.recorder.take() {
        observer.recorded(&recorder.finish());
    }
    header.interrupted = stop.reason();
    let status = if stop.is_requested() { TestStatus::Incomplete } else { TestStatus::Complete };
    let tests = tally.tests(header.interrupted.as_deref());
    Ok(RunRecord { header, status, tests, ..RunRecord::default() })
}

struct Monitor {
    root: SysRoot,
    clock: RealClock,
    choice: DeviceSelection,
    watches: Vec<DeviceWatch>,
    requests: Option<Requests>,
    recorder: Option<Recorder>,
    owners: Option<Owners>,
}

impl Monitor {
    fn header(&self, settings: &MonitorSettings) -> RunHeader {
        let names: Vec<&str> = self.watches.iter().map(|watch| watch.device.name.as_str()).collect();
        let mut header = RunHeader {
            command: settings.command.clone(),
            activity: Activity::Monitor,
            target: names.join(","),
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            labels: settings.labels.clone(),
            ..RunHeader::default()
        };
        if settings.keeps {
            // Of the target nothing is asked: a file system that does not answer would hold everything up.
            enter_conditions(&mut header, None, ClockFacts { source: self.clock.source().name() });
        }
        header
    }

    fn go(
        &mut self,
        settings: &MonitorSettings,
        stop: &StopHandle,
        observer: &mut dyn MonitorObserver,
        tally: &mut MonitorTally,
    ) {
        let began = self.clock.now();
        let mut number = 0;
        while settings.count.is_none_or(|count| number < count) && !stop.is_requested() {
            number += 1;
            let from = self.clock.now();
            let turn = self.turn(settings.interval.0);
            let deadline = began.saturating_add(settings.interval.0.saturating_mul(number));
            self.wait(deadline, turn, stop, observer);
            let length = self.clock.now() - from;
            if stop.is_requested() && length < SHORT_NS.min(settings.interval.0) && number > 1 {
                break;
            }
            let intervals = self.end_interval(number);
            tally.add(&intervals);
            let lost = self.recorder.as_mut().map_or(0, Recorder::newly_lost);
            if lost > 0 {
                observer.recording_lost(lost);
            }
            observer.interval(&intervals);
        }
    }

    /// How often the devices are looked at within an interval, evenly, so that a mean over these moments is one over time.
    fn turn(&self, interval: u64) -> u64 {
        let most = if self.requests.is_some() { TRACE_TURN_NS } else { LOOK_TURN_NS };
        (interval / 10).clamp(1_000_000, most).max(LOOK_COST_NS * self.watches.len() as u64)
    }

    /// Until `deadline`, looking at the devices every `turn` ns.
    fn wait(&mut self, deadline: u64, turn: u64, stop: &StopHandle, observer: &mut dyn MonitorObserver) {
        const PIECE: Duration = Duration::from_millis(50);
        let mut next = self.clock.now();
        while next < deadline && !stop.is_requested() {
            next = next.saturating_add(turn).max(self.clock.now()).min(deadline);
            self.clock.sleep_until(next, PIECE, || !stop.is_requested());
            self.look(observer);
        }
    }

    fn look(&mut self, observer: &mut dyn MonitorObserver) {
        let now = self.clock.now();
        for watch in &mut self.watches {
            watch.look(now, observer);
        }
        if let Some(requests) = &mut self.requests {
            requests.read(&mut self.watches);
        }
    }

    fn end_interval(&mut self, number: u64) -> Vec<MonitorInterval> {
        if let Some(requests) = &mut self.requests {
            requests.read(&mut self.watches);
        }
        let mut intervals: Vec<MonitorInterval> =
            self.watches.iter_mut().map(|watch| watch.end_interval(number, self.clock, unix_ms())).collect();
        if let Some(owners) = &mut self.owners {
            owners.attribute(self.clock.now(), &mut intervals);
        }
        self.watches.retain(|watch| watch.is_there() || self.choice.is_by_name());
        for device in self.choice.appeared(&self.root, &self.watches) {
            self.watches.push(DeviceWatch::start(device, self.clock.now()));
        }
        intervals
    }
}
