//! A phase on threads: each worker opens its engine, waits for the start, and runs its loop in real time.

use std::collections::BTreeMap;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use fathom_engine::{EngineError, OpenFile, use_files};
use fathom_stats::live::LiveWorker;
use fathom_stats::{CpuUsage, WorkerFailure, WorkerOutcome};
use fathom_sys::clock::{RealClock, clock_ms, unix_ms};
use fathom_sys::device::SysRoot;
use fathom_sys::io::describe;
use fathom_sys::kernel_workers::kernel_threads;
use fathom_sys::thread::{
    own_descriptors, run_queue_wait_of_this_thread, thread_id, usage_of_this_thread, wake_precisely,
};

use super::{ENDED_BY_OBSERVER, Run, Running};
use crate::drive::{Step, Worker};
use crate::exits::Exits;
use crate::observe::{Observer, RunObserver, TICK_NS};
use crate::stop::StopSignal;
use crate::thread_setup;
use crate::worker::{WorkerEnd, WorkerSpec};

/// Time for a worker to end after a stop request.
pub(super) const GRACE_NS: u64 = 4_000_000_000;
/// Interval at which a sleeping worker checks for a stop request.
const SLEEP_PIECE: Duration = Duration::from_millis(50);
/// Longest interval at which the session checks for a stop request.
const LONGEST_SLEEP_NS: u64 = 100_000_000;
/// The interval during a stall, so that its end is known precisely.
const STALLED_SLEEP_NS: u64 = 10_000_000;
const STACK_BYTES: usize = 512 << 10;

/// A message of a worker's thread to the session.
enum Message {
    Ready,
    Ended(Ended),
}

/// The end of a worker.
struct Ended {
    index: usize,
    end: Box<WorkerEnd>,
    /// Its thread stays alive until this is dropped, because its kernel threads end with it.
    _stay: Sender<()>,
}

/// Opens when all workers of a phase may begin.
#[derive(Default)]
struct Gate {
    open: Mutex<bool>,
    changed: Condvar,
}

impl Gate {
    fn pass(&self) {
        let open = self.open.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        drop(self.changed.wait_while(open, |open| !*open));
    }

    fn open(&self) {
        *self.open.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = true;
        self.changed.notify_all();
    }
}

/// The jobs whose workers have not all ended.
#[derive(Default)]
struct JobEnds {
    left: Mutex<BTreeMap<usize, usize>>,
    changed: Condvar,
}

impl JobEnds {
    fn of(specs: &[WorkerSpec]) -> JobEnds {
        let mut left = BTreeMap::new();
        specs.iter().for_each(|spec| *left.entry(spec.job).or_insert(0) += 1);
        JobEnds { left: Mutex::new(left), changed: Condvar::new() }
    }

    /// Waits until the workers of `job` have ended, those of an earlier phase have, or until `gives_up`.
    fn wait_for(&self, job: Option<usize>, gives_up: impl Fn() -> bool) {
        let Some(job) = job else { return };
        let mut left = self.left.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        while left.get(&job).is_some_and(|workers| *workers > 0) && !gives_up() {
            let waited = self.changed.wait_timeout(left, SLEEP_PIECE);
            left = waited.unwrap_or_else(|poisoned| poisoned.into_inner()).0;
        }
    }

    fn ended(&self, job: usize) {
        let mut left = self.left.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(workers) = left.get_mut(&job) {
            *workers = workers.saturating_sub(1);
        }
        self.changed.notify_all();
    }
}

/// The state shared by all threads of a phase.
#[derive(Clone)]
struct Shared {
    clock: RealClock,
    /// The stop signal of the worker.
    stop: StopSignal,
    exits: Exits,
    ends: Arc<JobEnds>,
    gate: Arc<Gate>,
    messages: Sender<Message>,
}

/// Runs one phase to its end.
pub(super) fn run_phase(
    run: &mut Run<'_>,
    specs: Vec<WorkerSpec>,
    clock: RealClock,
    observer: &mut dyn RunObserver,
) -> Vec<WorkerOutcome> {
    let (messages, inbox) = channel();
    let longest_ns = super::longest(&specs);
    let exits = run.exits(&specs);
    let stop = exits.whole();
    let start = Arc::new(Gate::default());
    let ends = Arc::new(JobEnds::of(&specs));
    let shared = Shared { clock, stop: stop.clone(), exits, ends, gate: start.clone(), messages };
    let mut workers: Vec<Running> =
        specs.into_iter().enumerate().map(|(index, spec)| spawn(index, spec, &shared)).collect();
    // From here on only threads have senders: when the last is dropped, the inbox disconnects.
    drop(shared);
    await_ready(&mut workers, &inbox);
    run.pass_gate(longest_ns);
    let (now, started_unix_ms) = (clock.now(), unix_ms());
    for worker in &mut workers {
        let clock = worker.spec.threads.host.start_clock;
        worker.started_unix_ms = clock.map_or(started_unix_ms, clock_ms);
    }
    let first = !run.disks_began;
    if first {
        run.origin = now;
        run.outcome.started_unix_ms = started_unix_ms;
        run.begin_disks(now);
    }
    let mut watch = run.observer(&workers, now);
    start.open();
    let disks_at = if first { end_of_ramp(&workers, now) } else { None };
    Supervisor { run, workers: &mut workers, inbox: &inbox, stop: &stop, clock, disks_at }
        .run(&mut watch, observer);
    run.tick(&mut watch, clock.now(), observer);
    run.collect(workers, watch, clock.now())
}

/// Reads the kernel threads that serve the workers; on the session's thread, so that it costs the workers nothing.
fn see_kernel_threads(watch: &mut Observer, now: u64) {
    watch.see_kernel_threads(now, &kernel_threads(&SysRoot::real(), &watch.thread_ids()));
}

/// Waits until every worker has opened its engine or failed to.
fn await_ready(workers: &mut [Running], inbox: &Receiver<Message>) {
    let mut waiting = workers.iter().filter(|worker| worker.end.is_none()).count();
    while waiting > 0 {
        match inbox.recv() {
            Ok(Message::Ready) => waiting -= 1,
            Ok(Message::Ended(ended)) => {
                workers[ended.index].end = Some(*ended.end);
                waiting -= 1;
            }
            Err(_) => return,
        }
    }
}

fn spawn(index: usize, spec: WorkerSpec, shared: &Shared) -> Running {
    let live = spec.live();
    let spec = Arc::new(spec);
    let (thread_spec, thread_live) = (spec.clone(), live.clone());
    let stop = shared.exits.signal(spec.exit.group).of_one();
    let ended_alone = stop.phase.clone();
    let shared = Shared { stop, ..shared.clone() };
    let (clock, ends) = (shared.clock, shared.ends.clone());
    let name = spec.name.chars().take(15).filter(|c| *c != '\0').collect();
    let body = move || {
        let messages = shared.messages.clone();
        let life = AssertUnwindSafe(|| run_worker(&thread_spec, &thread_live, shared));
        let end = catch_unwind(life).unwrap_or_else(|_| {
            ended_early(WorkerFailure::new(0, "the worker panicked: this is a bug", None))
        });
        thread_live.close(clock.now());
        thread_live.finish();
        ends.ended(thread_spec.job);
        // Files are closed where they are dropped last, and a thread with its own descriptor table closes only those in
        // it.
        drop(thread_spec);
        // The receiver is gone if the session has abandoned this worker.
        let (stay, seen) = channel();
        if messages.send(Message::Ended(Ended { index, end: Box::new(end), _stay: stay })).is_ok() {
            let _ = seen.recv();
        }
    };
    let spawned = std::thread::Builder::new().name(name).stack_size(STACK_BYTES).spawn(body);
    let end = spawned.err().map(|error| {
        live.finish();
        let message = format!("cannot start a thread: {}", describe(&error));
        let hint = Some("lower numjobs, or raise `ulimit -u`");
        ended_early(WorkerFailure::new(error.raw_os_error().unwrap_or(0), message, hint))
    });
    Running { spec, live, stop: ended_alone, started_unix_ms: 0, end }
}

/// A worker that ended before its first request.
fn ended_early(failure: WorkerFailure) -> WorkerEnd {
    WorkerEnd { failure: Some(failure), ..WorkerEnd::default() }
}

fn engine_failure(error: &EngineError) -> WorkerFailure {
    WorkerFailure::new(error.source.raw_os_error().unwrap_or(0), error.to_string(), error.hint())
}

/// Moves the calling thread and its files to its own descriptor table. Some containers refuse this; then system calls
/// are slightly slower.
fn use_own_descriptor_table(files: &mut [OpenFile]) {
    let shared: Vec<&File> = files.iter().filter_map(|open| open.file.as_deref()).collect();
    let Ok(own) = own_descriptors(&shared) else { return };
    let slots = files.iter_mut().filter_map(|open| open.file.as_mut());
    slots.zip(own).for_each(|(file, own)| *file = Arc::new(own));
}

/// Runs a worker on its own thread.
fn run_worker(spec: &WorkerSpec, live: &Arc<LiveWorker>, shared: Shared) -> WorkerEnd {
    live.thread_id.set(u64::from(thread_id()));
    let mut setup = spec.setup.clone();
    use_own_descriptor_table(&mut setup.files);
    let files = setup.files.clone();
    if let Err(failure) = thread_setup::apply(spec, &files, &shared.stop.run) {
        return ended_early(failure);
    }
    let _locked = match thread_setup::lock_memory(spec, &shared.stop.run) {
        Ok(locked) => locked,
        Err(failure) => return ended_early(failure),
    };
    let engine = match (spec.entry.open)(setup) {
        Ok(engine) => engine,
        Err(error) => return ended_early(engine_failure(&error)),
    };
    if spec.recorded.scheduled || spec.replay.is_some() {
        // Some sandboxes refuse this; then requests are about 50 us late.
        let _ = wake_precisely();
    }
    let clock = shared.clock;
    let engine = use_files(engine, &spec.usage, &files, spec.depth.iodepth);
    let mut worker = Worker::new(spec, engine, clock, live.clone(), (shared.stop.clone(), thread_usage));
    if shared.messages.send(Message::Ready).is_err() {
        return worker.into_end();
    }
    shared.gate.pass();
    shared.ends.wait_for(spec.threads.wait_for, || shared.stop.is_set());
    worker.start(spec);
    let outcome = drive(&mut worker, clock, &shared.stop);
    if let Err(error) = outcome {
        live.close(clock.now());
        worker.fail(engine_failure(&error));
    }
    let mut end = worker.into_end();
    shared.exits.ended(spec.exit, end.failure.is_some());
    if let Err(failure) = thread_setup::finish(spec, &files, &shared.stop.run) {
        end.failure.get_or_insert(failure);
    }
    end
}

/// Runs the loop to its end.
fn drive(worker: &mut Worker<RealClock>, clock: RealClock, stop: &StopSignal) -> Result<(), EngineError> {
    loop {
        match worker.step()? {
            Step::Progress => {}
            Step::BlockedUntil(time) => {
                clock.sleep_until(time.0.saturating_sub(worker.spin_ns()), SLEEP_PIECE, || !stop.is_set());
                while clock.now() < time.0 && !stop.is_set() {
                    std::hint::spin_loop();
                }
                worker.wake();
            }
            Step::Finished => return Ok(()),
        }
    }
}

fn thread_usage() -> CpuUsage {
    let usage = usage_of_this_thread();
    CpuUsage {
        user_ns: usage.user_ns,
        system_ns: usage.system_ns,
        voluntary_switches: usage.voluntary_switches,
        involuntary_switches: usage.involuntary_switches,
        major_faults: usage.major_faults,
        minor_faults: usage.minor_faults,
        run_queue_wait_ns: run_queue_wait_of_this_thread(),
    }
}

/// Supervises a running phase from the session's thread.
struct Supervisor<'a, 'r> {
    run: &'a mut Run<'r>,
    workers: &'a mut [Running],
    inbox: &'a Receiver<Message>,
    stop: &'a StopSignal,
    clock: RealClock,
    /// When the device counters begin anew.
    disks_at: Option<u64>,
}

impl Supervisor<'_, '_> {
    /// Runs until every worker has ended or is abandoned.
    fn run(&mut self, watch: &mut Observer, observer: &mut dyn RunObserver) {
        let began = self.clock.now();
        let mut next_tick = began + TICK_NS;
        let mut stop_seen = None;
        while self.workers.iter().any(|worker| worker.end.is_none()) {
            let now = self.clock.now();
            if self.disks_at.is_some_and(|at| now >= at) {
                self.run.begin_disks(now);
                see_kernel_threads(watch, now);
                self.disks_at = None;
            }
            if now >= next_tick {
                see_kernel_threads(watch, now);
                self.run.tick(watch, now, observer);
                self.run.report_so_far(self.workers, watch, now, observer);
                if self.run.ends_phase(observer) {
                    self.stop.phase.request(ENDED_BY_OBSERVER);
                }
                next_tick += TICK_NS * ((now - next_tick) / TICK_NS + 1);
            }
            if outcome_at(self.run, observer).is_some_and(|at| now >= at) {
                self.run.report_so_far(self.workers, watch, now, observer);
            }
            if self.stop.run.is_requested() && now - *stop_seen.get_or_insert(now) > GRACE_NS {
                return;
            }
            let is_stalled = watch.check_stalls(now);
            let sleep_ns = if is_stalled { STALLED_SLEEP_NS } else { LONGEST_SLEEP_NS };
            let asked_at = outcome_at(self.run, observer).unwrap_or(u64::MAX);
            let wake = next_tick.min(self.disks_at.unwrap_or(u64::MAX)).min(asked_at).min(now + sleep_ns);
            match self.inbox.recv_timeout(Duration::from_nanos(wake.saturating_sub(now))) {
                Ok(message) => self.take(message, watch),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Processes a message and all queued ones: one reading of the kernel threads suffices for workers that end
    /// together.
    fn take(&mut self, first: Message, watch: &mut Observer) {
        let messages = std::iter::once(first).chain(self.inbox.try_iter());
        let ended: Vec<Ended> = messages
            .filter_map(|message| match message {
                Message::Ended(ended) => Some(ended),
                Message::Ready => None,
            })
            .collect();
        if !ended.is_empty() {
            see_kernel_threads(watch, self.clock.now());
        }
        for ended in ended {
            self.workers[ended.index].end = Some(*ended.end);
        }
    }
}

/// When the observer requests the outcome so far, session ns.
fn outcome_at(run: &Run<'_>, observer: &dyn RunObserver) -> Option<u64> {
    observer.next_outcome_ns().map(|at| run.origin.saturating_add(at))
}

/// The end of the last ramp of a phase that starts now; `None` without ramps.
fn end_of_ramp(workers: &[Running], now: u64) -> Option<u64> {
    let specs = workers.iter().map(|worker| &worker.spec).filter(|spec| spec.time.ramp.0 > 0);
    specs.map(|spec| now.saturating_add(spec.start_delay_ns()).saturating_add(spec.time.ramp.0)).max()
}
