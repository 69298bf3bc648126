//! `monitor`: reads what the kernel counts of block devices, interval after interval.
//!
//! Never touches a device, and asks file systems on threads of their own, so that one that does not answer holds nothing
//! up. Prints nothing: a [`MonitorObserver`] receives the events.

mod devices;
mod recording;

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use fathom_analysis::monitor::load::LoadWatch;
use fathom_analysis::monitor::{MonitorInterval, MonitorTally, ProcessActivity, WatchedDevice};
use fathom_model::{Nanos, Op};
use fathom_record::{Activity, RunHeader, RunRecord, TestStatus};
use fathom_runner::{ClockFacts, StopHandle};
use fathom_sys::clock::{RealClock, monotonic_ns, unix_ms};
use fathom_sys::device::block_trace::{BlockEvent, BlockOp, BlockStage};
use fathom_sys::device::facts::device_facts;
use fathom_sys::device::processes::{ProcessIo, open_on, process_io};
use fathom_sys::device::{BlockTrace, SysRoot, TraceError, topology};

use crate::{AssessError, enter_conditions};
use devices::{DeviceSelection, DeviceWatch};
use recording::Recorder;
pub use recording::{RecordingBegun, RecordingProgress, RecordingSettings};

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
            enter_conditions(&mut header, &[], ClockFacts { source: self.clock.source().name() });
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

/// A CPU may still be writing an event that is so young, while a later one of another CPU is already there: a virtual CPU
/// may be taken away in between.
const YOUNG_NS: u64 = 20_000_000;

/// The trace of the devices that were there at the start, the first of the watches.
struct Requests {
    trace: BlockTrace,
    names: Vec<String>,
    /// Read, but not yet handed on.
    events: Vec<BlockEvent>,
    lost: u64,
}

impl Requests {
    pub fn start(root: &SysRoot, watches: &[DeviceWatch]) -> Result<Requests, TraceError> {
        let names: Vec<String> =
            watches.iter().filter(|watch| watch.is_there()).map(|watch| watch.device.name.clone()).collect();
        Ok(Requests { trace: BlockTrace::open(root, &names)?, names, events: Vec::new(), lost: 0 })
    }

    /// Hands on what has happened.
    pub fn read(&mut self, watches: &mut [DeviceWatch]) {
        let until = monotonic_ns().saturating_sub(YOUNG_NS);
        self.trace.read(&mut self.events);
        self.events.sort_by_key(|event| event.time_ns);
        let lost = self.trace.lost() - self.lost;
        self.lost += lost;
        let places: Vec<Option<usize>> = self
            .names
            .iter()
            .map(|name| watches.iter().position(|watch| watch.device.name == *name))
            .collect();
        for place in places.iter().flatten() {
            let load = watches[*place].load.get_or_insert_default();
            if lost > 0 {
                load.missed(lost);
            }
        }
        let ripe = self.events.partition_point(|event| event.time_ns <= until);
        for event in self.events.drain(..ripe) {
            if let Some(place) = places[event.device] {
                settle(&mut watches[place], event.time_ns);
                if let Some(load) = &mut watches[place].load {
                    hand_on(load, &event);
                }
            }
        }
        for place in places.into_iter().flatten() {
            settle(&mut watches[place], until);
        }
    }
}

/// Holds what is waited for against what was in flight when the device was looked at, up to `until`.
fn settle(watch: &mut DeviceWatch, until: u64) {
    /// Between reading the clock and the counters.
    const SLACK_NS: u64 = 5_000_000;
    while let Some((at_ns, in_flight)) = watch.looks.pop_front() {
        if at_ns > until {
            watch.looks.push_front((at_ns, in_flight));
            return;
        }
        if let Some(load) = &mut watch.load {
            load.settle(in_flight, at_ns.saturating_sub(SLACK_NS));
        }
    }
}

/// The operation that is counted; `None` for commands that move no data.
fn op_of(op: BlockOp) -> Option<Op> {
    match op {
        BlockOp::Read => Some(Op::Read),
        BlockOp::Write => Some(Op::Write),
        BlockOp::Discard => Some(Op::Trim),
        BlockOp::Flush => Some(Op::Sync),
        BlockOp::Other => None,
    }
}

fn hand_on(load: &mut LoadWatch, event: &BlockEvent) {
    let Some(op) = op_of(event.op) else { return };
    let at = event.sector.saturating_mul(fathom_sys::device::diskstats::SECTOR_BYTES);
    match event.stage {
        BlockStage::Entered => load.entered(op, at, event.bytes),
        BlockStage::Issued => load.issued(op, at, event.bytes, event.time_ns),
        BlockStage::Completed => load.completed(op, at, event.time_ns),
        // It stays in flight: a second issue counts as the same request.
        BlockStage::Requeued => {}
    }
}

/// Processes whose open files are looked at, those that moved most first: enough that a busy host does not hide who is
/// behind a little I/O, and still some hundredths of a second.
const MAX_PROCESSES: usize = 256;
/// Most owners reported for a device.
const MAX_OWNERS: usize = 5;

/// How long an interval waits for its owners. Where a file system does not answer, there are none.
const PATIENCE: Duration = Duration::from_millis(500);

/// Looks for owners on a thread of its own: what it asks of files may hang with the device under them.
struct Owners {
    questions: Sender<Question>,
    answers: Receiver<(u64, Vec<Vec<ProcessActivity>>)>,
    asked: u64,
    /// The last question is not answered yet.
    waiting: bool,
}

/// The devices of one interval.
struct Question {
    number: u64,
    at_ns: u64,
    devices: Vec<Busy>,
}

/// A device that did something.
struct Busy {
    name: String,
    reads: bool,
    writes: bool,
    elapsed_ns: u64,
}

impl Owners {
    /// Begins to watch; `None` where no thread can be had.
    pub fn start() -> Option<Owners> {
        let (questions, asked) = channel::<Question>();
        let (answer, answers) = channel();
        let look = move || {
            let root = SysRoot::real();
            let mut known = LastReading::start(&root);
            while let Ok(question) = asked.recv() {
                let owners = known.attribute(&root, &question);
                if answer.send((question.number, owners)).is_err() {
                    break;
                }
            }
        };
        std::thread::Builder::new().name("owners".to_owned()).spawn(look).ok()?;
        Some(Owners { questions, answers, asked: 0, waiting: false })
    }

    /// Names the owners of each device's load since the last call, as far as that is known in time.
    pub fn attribute(&mut self, at_ns: u64, intervals: &mut [MonitorInterval]) {
        while self.waiting
            && let Ok((number, _)) = self.answers.try_recv()
        {
            self.waiting = number != self.asked;
        }
        if self.waiting {
            return;
        }
        let devices = intervals.iter().map(|interval| Busy {
            name: interval.device.name.clone(),
            reads: interval.activity.ops.read.ios > 0,
            writes: interval.activity.ops.write.ios > 0,
            elapsed_ns: interval.elapsed_ns,
        });
        self.asked += 1;
        let question = Question { number: self.asked, at_ns, devices: devices.collect() };
        self.waiting = self.questions.send(question).is_ok();
        if let Ok((_, owners)) = self.answers.recv_timeout(PATIENCE) {
            self.waiting = false;
            intervals.iter_mut().zip(owners).for_each(|(interval, owners)| interval.owners = owners);
        }
    }
}

/// What processes had moved at the last reading, and which device lies on which.
struct LastReading {
    before: HashMap<(u32, u64), (u64, u64)>,
    at_ns: Option<u64>,
    /// The block devices there were, and the files under loop devices.
    names: Vec<(String, Option<String>)>,
    /// What each of them lies on directly.
    under: HashMap<String, Vec<String>>,
}

impl LastReading {
    fn start(root: &SysRoot) -> LastReading {
        let before = process_io(root).iter().map(key_and_counts).collect();
        LastReading { before, at_ns: None, names: Vec::new(), under: HashMap::new() }
    }

    fn attribute(&mut self, root: &SysRoot, question: &Question) -> Vec<Vec<ProcessActivity>> {
        let seconds = match self.at_ns.replace(question.at_ns) {
            Some(before) => (question.at_ns - before) as f64 / 1e9,
            None => question.devices.first().map_or(1.0, |device| device.elapsed_ns as f64 / 1e9),
        };
        let moved = self.moved(root);
        self.look_at_stacks(root);
        let owners_of = |device: &Busy| {
            let numbers = self.numbers_above(root, &device.name);
            // Who only wrote is not behind reads; what it wrote went elsewhere, or is still in memory.
            let fits = |read: u64, written: u64| (device.reads && read > 0) || (device.writes && written > 0);
            let candidates = moved.iter().filter(|(_, read, written)| fits(*read, *written));
            let owners = candidates.filter_map(|(process, read, written)| {
                let file = open_on(root, process.process, &numbers)?;
                Some(ProcessActivity {
                    process: process.process,
                    command: process.command.clone(),
                    read_bytes_per_second: *read as f64 / seconds,
                    write_bytes_per_second: *written as f64 / seconds,
                    file: file.path.display().to_string(),
                })
            });
            owners.take(MAX_OWNERS).collect()
        };
        question.devices.iter().map(owners_of).collect()
    }

    /// Who moved how many bytes since the last call, read and written, most first.
    fn moved(&mut self, root: &SysRoot) -> Vec<(ProcessIo, u64, u64)> {
        let processes = process_io(root);
        let now: HashMap<_, _> = processes.iter().map(key_and_counts).collect();
        let before = std::mem::replace(&mut self.before, now);
        let mut moved: Vec<(ProcessIo, u64, u64)> = processes
            .into_iter()
            .filter_map(|process| {
                let (key, (read, written)) = key_and_counts(&process);
                // One that was not there before has moved all of it since.
                let earlier = before.get(&key).copied().unwrap_or((0, 0));
                let (read, written) = (read.saturating_sub(earlier.0), written.saturating_sub(earlier.1));
                (read + written > 0).then_some((process, read, written))
            })
            .collect();
        moved.sort_by_key(|(_, read, written)| std::cmp::Reverse(read + written));
        moved.truncate(MAX_PROCESSES);
        moved
    }

    /// Which device lies on which; devices that are new, and loop devices with another file, are read.
    fn look_at_stacks(&mut self, root: &SysRoot) {
        let with_file = |name: String| {
            let file = root.text(root.block_dir(&name).join("loop/backing_file"));
            (name, file)
        };
        let names: Vec<_> = root.names("/sys/class/block").into_iter().map(with_file).collect();
        if names == self.names {
            return;
        }
        let before = std::mem::replace(&mut self.names, names);
        let mut known = std::mem::take(&mut self.under);
        for named in &self.names {
            let (name, _) = named;
            let under = match known.remove(name).filter(|_| before.contains(named)) {
                Some(under) => under,
                None => device_facts(root, name).map_or(Vec::new(), |facts| facts.under),
            };
            self.under.insert(name.clone(), under);
        }
    }

    /// The numbers of a device and of all that lie on it.
    fn numbers_above(&self, root: &SysRoot, name: &str) -> Vec<(u32, u32)> {
        let mut found = vec![name.to_owned()];
        let mut next = 0;
        while let Some(below) = found.get(next).cloned() {
            next += 1;
            for (upper, under) in &self.under {
                if under.contains(&below) && !found.contains(upper) {
                    found.push(upper.clone());
                }
            }
        }
        let number = |name: &String| {
            root.text(root.block_dir(name).join("dev")).and_then(|text| topology::parse_number(&text))
        };
        found.iter().filter_map(number).collect()
    }
}

fn key_and_counts(process: &ProcessIo) -> ((u32, u64), (u64, u64)) {
    ((process.process, process.started), (process.read_bytes, process.written_bytes))
}
