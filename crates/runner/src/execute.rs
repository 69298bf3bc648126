//! Running the phases of a prepared plan: on threads in real time, or as a queue of events in virtual time.

mod alone;
mod threads;
mod virtual_time;

pub use alone::run_alone;

use std::sync::Arc;

use fathom_model::RunPlan;
use fathom_stats::live::LiveWorker;
use fathom_stats::{RunOutcome, Snapshot, WorkerFailure, WorkerOutcome};

use crate::disks::Disks;
use crate::exits::Exits;
use crate::host_watch::HostWatch;
use crate::observe::{Observer, PhaseSeen, PlannedWork, RunObserver};
use crate::prepare::Prepared;
use crate::schedule::RampEnd;
use crate::session::Time;
use crate::steady::SteadyWatch;
use crate::stop::StopHandle;
use crate::worker::{WorkerEnd, WorkerSpec};

/// The reason of a stop of a phase that has what it was to find.
const ENDED_BY_OBSERVER: &str = "the observer has what the phase was to find";

/// A worker of a phase that runs or has ended.
#[derive(Clone)]
struct Running {
    spec: Arc<WorkerSpec>,
    live: Arc<LiveWorker>,
    /// Ends this worker alone.
    stop: StopHandle,
    started_unix_ms: u64,
    /// `None` while it runs, and for an abandoned worker.
    end: Option<WorkerEnd>,
}

/// The state shared by the phases of one run.
struct Run<'a> {
    prepared: &'a Prepared<'a>,
    /// Session ns of the start.
    origin: u64,
    tick: u32,
    disks: Disks,
    host: HostWatch,
    disks_began: bool,
    workers: u32,
    later_ns: Option<u64>,
    /// Ends the run after the current phase (`exit_what=all`).
    later: StopHandle,
    /// Steady states that the workers of the phase wait for.
    steady: SteadyWatch,
    /// The outcome so far, without the current phase.
    outcome: RunOutcome,
}

/// Runs every phase in turn.
pub(crate) fn run(mut prepared: Prepared<'_>, observer: &mut dyn RunObserver) -> RunOutcome {
    let specs = std::mem::take(&mut prepared.specs);
    let notes = std::mem::take(&mut prepared.notes);
    let (session, plan) = (prepared.session, prepared.plan);
    let real = !session.is_simulated();
    let disks =
        if real { Disks::under(prepared.paths.iter().map(|path| path.as_path())) } else { Disks::default() };
    let mut run = Run {
        prepared: &prepared,
        origin: session.now(),
        tick: 0,
        disks,
        host: if real { HostWatch::real() } else { HostWatch::default() },
        disks_began: false,
        workers: specs.len() as u32,
        later_ns: Some(0),
        later: StopHandle::default(),
        steady: SteadyWatch::default(),
        outcome: RunOutcome { notes, ..RunOutcome::default() },
    };
    let mut phases: Vec<Vec<WorkerSpec>> = Vec::new();
    let mut last = None;
    for spec in specs {
        let phase = plan.jobs[spec.job].phase;
        if last != Some(phase) {
            phases.push(Vec::new());
        }
        last = Some(phase);
        phases.last_mut().expect("a phase was just begun").push(spec);
    }
    let lengths: Vec<Option<u64>> = phases.iter().map(|phase| longest(phase)).collect();
    for (number, phase) in phases.into_iter().enumerate() {
        if session.stop_handle().is_requested() || run.later.is_requested() {
            break;
        }
        run.later_ns =
            lengths[number + 1..].iter().copied().try_fold(0u64, |sum, next| Some(sum.saturating_add(next?)));
        let workers = match &session.time {
            Time::Real(clock) => threads::run_phase(&mut run, phase, *clock, observer),
            Time::Virtual { world, .. } => virtual_time::run_phase(&mut run, phase, world, observer),
        };
        run.outcome.workers.extend(workers);
    }
    run.outcome.workers.extend(only_created(plan));
    run.outcome.workers.sort_by_key(|worker| (worker.job, worker.clone));
    let mut outcome = run.end(session.now());
    outcome.interrupted = session.stop_handle().reason().or(outcome.interrupted);
    outcome
}

/// The outcomes of jobs whose files are made and not used.
fn only_created(plan: &RunPlan) -> impl Iterator<Item = WorkerOutcome> {
    let jobs = plan.jobs.iter().enumerate().filter(|(_, job)| job.files.create_only);
    jobs.flat_map(|(job, plan)| {
        (0..plan.clones.len()).map(move |clone| WorkerOutcome { job, clone, ..WorkerOutcome::default() })
    })
}

/// The length of a phase, if runtimes determine it.
fn longest(phase: &[WorkerSpec]) -> Option<u64> {
    phase
        .iter()
        .map(|spec| Some(until_runtime(spec).saturating_add(spec.time.runtime?.0)))
        .try_fold(0, |longest, next| Some(next?.max(longest)))
}

/// Longest start delay and ramp of a worker, ns, saturating.
fn until_runtime(spec: &WorkerSpec) -> u64 {
    spec.time.start_delay.1.0.saturating_add(spec.time.ramp.0)
}

/// fio's letter for what a worker does.
fn state_letter(plan: &RunPlan, spec: &WorkerSpec) -> char {
    let pattern = plan.jobs[spec.job].io.pattern;
    let letter = match (pattern.reads(), pattern.writes(), pattern.trims()) {
        (true, true, _) => 'm',
        (true, false, _) => 'r',
        (false, _, true) => 'd',
        _ => 'w',
    };
    if pattern.random { letter } else { letter.to_ascii_uppercase() }
}

impl Run<'_> {
    /// The stop signals of a phase of these workers.
    fn exits(&self, specs: &[WorkerSpec]) -> Exits {
        let groups = specs.iter().map(|spec| spec.exit.group);
        Exits::new(self.prepared.session.stop_handle(), self.later.clone(), groups)
    }

    /// Waits until the phase whose workers are ready, and which lasts `longest_ns` if runtimes determine it, may start.
    fn pass_gate(&self, longest_ns: Option<u64>) {
        let session = self.prepared.session;
        session.control.pass_gate(&session.time, longest_ns);
    }

    /// An observer of these workers, whose start is `now`.
    fn observer(&mut self, workers: &[Running], now: u64) -> Observer {
        self.steady = self.steady_watch(workers);
        let mut observer = Observer::new((self.origin, now), self.tick, self.workers, self.later_ns);
        for worker in workers {
            let spec = &worker.spec;
            let measured_at = now.saturating_add(until_runtime(spec));
            let end = spec.time.runtime.map(|runtime| measured_at.saturating_add(runtime.0));
            let plan = self.prepared.plan;
            let logs = &plan.jobs[spec.job].measure.logs;
            let samples_ns = [logs.bandwidth_window.0, logs.iops_window.0];
            let planned = PlannedWork::new(spec, end);
            observer.watch(worker.live.clone(), state_letter(plan, spec), planned, samples_ns);
        }
        observer
    }

    /// What watches for the steady states of these workers.
    fn steady_watch(&self, workers: &[Running]) -> SteadyWatch {
        let mut watch = SteadyWatch::default();
        for (index, worker) in workers.iter().enumerate() {
            let job = &self.prepared.plan.jobs[worker.spec.job];
            let group = job.group_reporting.then_some(job.group);
            watch.add(&job.end.steady_state, group, index, (worker.live.clone(), worker.stop.clone()));
        }
        watch
    }

    /// Begins the device counters at the start of the first phase, and again when its ramp ends.
    fn begin_disks(&mut self, now: u64) {
        self.disks.begin(now - self.origin);
        self.host.begin(now - self.origin);
        self.disks_began = true;
    }

    /// One tick of the observer and of the device counters.
    fn tick(&mut self, watch: &mut Observer, now: u64, observer: &mut dyn RunObserver) {
        let devices = self.disks.tick(self.tick, now - self.origin);
        let host = self.host.tick(now - self.origin);
        let snapshot = Snapshot { devices, host, ..watch.tick(now) };
        self.steady.tick(now);
        self.tick = watch.next_tick();
        self.prepared.session.control.publish(&snapshot);
        observer.snapshot(&snapshot);
    }

    /// Whether the phase has what it was to find, or is to end on request.
    fn ends_phase(&mut self, observer: &mut dyn RunObserver) -> bool {
        let asked = self.prepared.session.control.takes_phase_end();
        let is_asked = asked.is_some();
        self.outcome.interrupted = self.outcome.interrupted.take().or(asked);
        observer.ends_phase() || is_asked
    }

    /// Reports the outcome so far, if the observer requests it.
    fn report_so_far(&self, workers: &[Running], watch: &Observer, now: u64, observer: &mut dyn RunObserver) {
        let is_due = observer.takes_due_outcome(now - self.origin);
        if !is_due && !observer.wants_outcome_so_far() {
            return;
        }
        let mut outcome = self.outcome.clone();
        for (worker, mut so_far) in workers.iter().zip(self.collect(workers.to_vec(), watch.clone(), now)) {
            if worker.end.is_none() {
                // It is running, not stuck.
                (so_far.stuck, so_far.failure) = (false, None);
            }
            outcome.workers.push(so_far);
        }
        outcome.elapsed_ns = now - self.origin;
        if self.disks_began {
            outcome.disks = self.disks.clone().end(self.tick, now - self.origin);
        }
        observer.outcome_so_far(&outcome);
    }

    /// The outcome of all phases.
    fn end(self, now: u64) -> RunOutcome {
        let mut outcome = self.outcome;
        outcome.elapsed_ns = now - self.origin;
        if self.disks_began {
            outcome.disks = self.disks.end(self.tick, now - self.origin);
            outcome.host_load = self.host.end(now - self.origin);
        }
        outcome
    }

    /// Turns the workers' counters into their outcomes.
    fn collect(&self, workers: Vec<Running>, mut watch: Observer, now: u64) -> Vec<WorkerOutcome> {
        let stalls = watch.take_stalls();
        let seen = watch.into_seen();
        let outcomes = workers.into_iter().zip(seen).map(|(worker, seen)| self.outcome(worker, seen, now));
        let outcomes = outcomes.zip(stalls).enumerate();
        outcomes
            .map(|(index, (outcome, stalls))| {
                let steady = self.steady.outcome(index);
                WorkerOutcome { stalls, steady, ..outcome }
            })
            .collect()
    }

    fn outcome(&self, worker: Running, (ramp_seen, seen): (PhaseSeen, PhaseSeen), now: u64) -> WorkerOutcome {
        let Running { spec, live, started_unix_ms, end, .. } = worker;
        let mut measured = live.measured.read(self.origin);
        if live.measured.ended_ns() == 0 && live.measured.start_ns.get() != 0 {
            measured.end_ns = now - self.origin;
        }
        let mut ramp = live.ramp.as_ref().map(|ramp| ramp.read(self.origin));
        fill_in(&mut measured, seen);
        if let Some(ramp) = &mut ramp {
            fill_in(ramp, ramp_seen);
        }
        let mut outcome = WorkerOutcome {
            job: spec.job,
            clone: spec.clone,
            thread_id: live.thread_id.get() as u32,
            started_unix_ms,
            stuck: end.is_none(),
            ..WorkerOutcome::default()
        };
        match end {
            Some(end) => {
                measured.cpu = end.usage;
                if let Some(ramp) = &mut ramp {
                    ramp.cpu = end.usage_of_ramp;
                }
                outcome.set_errors(&end.errors);
                outcome.slowest = end.slowest;
                for slow in &mut outcome.slowest {
                    slow.start_ns = slow.start_ns.saturating_sub(self.origin);
                }
                outcome.silences = end.silences;
                for silence in &mut outcome.silences.longest {
                    silence.start_ns = silence.start_ns.saturating_sub(self.origin);
                }
                outcome.failure = end.failure;
                outcome.verified = end.verified;
                outcome.latency = end.latency;
            }
            None => {
                let thread = live.thread_id.get();
                let requests = match live.in_flight.get() {
                    1 => "1 request".to_owned(),
                    requests => format!("{requests} requests"),
                };
                let (message, hint) = match self.prepared.session.is_simulated() {
                    false => (
                        format!("thread {thread} is stuck in the kernel with {requests} in flight"),
                        Some("check the kernel log (dmesg): the device does not respond"),
                    ),
                    true => (format!("the volume stopped responding with {requests} in flight"), None),
                };
                outcome.failure = Some(WorkerFailure::new(0, message, hint));
            }
        }
        if spec.ramp_end() == RampEnd::Search
            && live.measured.start_ns.get() == 0
            && let Some(search) = ramp.take()
        {
            // The job ended during the search, which is then all there is to report.
            measured = search;
        }
        outcome.measured = measured;
        outcome.ramp = ramp;
        outcome
    }
}

fn fill_in(phase: &mut fathom_stats::PhaseOutcome, seen: PhaseSeen) {
    phase.series = seen.series;
    phase.kernel_threads = seen.kernel_threads;
    for (op, (bandwidth, iops)) in phase.ops_mut().into_iter().zip(seen.windows) {
        (op.bandwidth_windows, op.iops_windows) = (bandwidth, iops);
    }
}
