//! A phase in virtual time: all workers on one thread, woken in the order of a shared clock.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::rc::Rc;
use std::sync::Arc;

use fathom_engine::sim::{SimEngine, World};
use fathom_model::Nanos;
use fathom_stats::{WorkerFailure, WorkerOutcome};

use super::threads::GRACE_NS;
use super::{ENDED_BY_OBSERVER, Run, Running};
use crate::clock::VirtualClock;
use crate::drive::{MAX_COMPLETIONS, Step, Worker};
use crate::exits::Exits;
use crate::observe::{RunObserver, TICK_NS};
use crate::worker::WorkerSpec;

/// Runs one phase to its end. The same plan and model give exactly the same outcome.
pub(super) fn run_phase(
    run: &mut Run<'_>,
    specs: Vec<WorkerSpec>,
    world: &Rc<World>,
    observer: &mut dyn RunObserver,
) -> Vec<WorkerOutcome> {
    let exits = run.exits(&specs);
    let stop = exits.whole();
    let longest_ns = super::longest(&specs);
    let (mut running, mut workers): (Vec<_>, Vec<_>) =
        specs.into_iter().map(|spec| build(spec, world, &exits)).unzip();
    run.pass_gate(longest_ns);
    let begin = world.now();
    let mut watch = run.observer(&running, begin.0);
    let mut next_tick = begin.plus(Nanos(TICK_NS));
    let mut unanswered = Vec::new();
    let mut wakes = Wakes::new();
    // After a stop, when requests that are still in flight are abandoned, as in real time.
    let mut patient_until: Option<Nanos> = None;
    let mut standstill = Standstill::default();
    let mut starts = Starts::of(&running);
    starts.start_due(&running, &mut workers, &mut wakes, begin);
    while let Some(Reverse((mut time, index))) = wakes.pop() {
        if patient_until.is_some_and(|until| time > until) {
            unanswered.push(index);
            continue;
        }
        while next_tick < time {
            world.advance_to(next_tick);
            run.tick(&mut watch, next_tick.0, observer);
            run.report_so_far(&running, &watch, next_tick.0, observer);
            if run.ends_phase(observer) {
                stop.phase.request(ENDED_BY_OBSERVER);
            }
            if stop.is_set() && patient_until.is_none() {
                time = next_tick;
                patient_until = Some(time.plus(Nanos(GRACE_NS)));
                wake_all(&mut wakes, time);
            }
            next_tick = next_tick.plus(Nanos(TICK_NS));
        }
        world.advance_to(time);
        let last = alone_until(&wakes, index).min(next_tick);
        match turn(&mut workers[index], world, last, &mut standstill) {
            Turn::Until(wake) => wakes.push(Reverse((wake, index))),
            Turn::Unanswered => unanswered.push(index),
            Turn::Finished => {
                let (time, Running { live, spec, .. }) = (world.now(), &running[index]);
                live.close(time.0);
                live.finish();
                if exits.ended(spec.exit, workers[index].has_failed()) {
                    wake_all(&mut wakes, time);
                }
                starts.ended(spec.job);
                if !stop.is_set() {
                    starts.start_due(&running, &mut workers, &mut wakes, time);
                }
            }
        }
    }
    let end = world.now().plus(Nanos(if unanswered.is_empty() { 0 } else { GRACE_NS }));
    tick_until(end, next_tick, |now| {
        world.advance_to(now);
        run.tick(&mut watch, now.0, observer);
    });
    for (index, (running, worker)) in running.iter_mut().zip(workers).enumerate() {
        running.end = (!unanswered.contains(&index)).then(|| worker.into_end());
    }
    run.collect(running, watch, end.0)
}

/// Calls `tick` at each of the instants from `next` to `end`, and at `end`.
fn tick_until(end: Nanos, mut next: Nanos, mut tick: impl FnMut(Nanos)) {
    while next < end {
        tick(next);
        next = next.plus(Nanos(TICK_NS));
    }
    tick(end);
}

/// The workers that have not started, because their jobs wait for others.
struct Starts {
    waiting: Vec<usize>,
    /// Workers of each job that have not ended.
    left: BTreeMap<usize, usize>,
}

impl Starts {
    fn of(running: &[Running]) -> Starts {
        let mut left = BTreeMap::new();
        running.iter().for_each(|worker| *left.entry(worker.spec.job).or_insert(0) += 1);
        Starts { waiting: (0..running.len()).collect(), left }
    }

    /// Counts the end of a worker of `job`.
    fn ended(&mut self, job: usize) {
        self.left.entry(job).and_modify(|left| *left -= 1);
    }

    /// Starts the workers whose jobs wait for no other any more.
    fn start_due(
        &mut self,
        running: &[Running],
        workers: &mut [Worker<VirtualClock, SimEngine>],
        wakes: &mut Wakes,
        now: Nanos,
    ) {
        let Starts { waiting, left } = self;
        waiting.retain(|&index| {
            let spec = &running[index].spec;
            let others = spec.threads.wait_for.and_then(|job| left.get(&job));
            let waits = others.is_some_and(|left| *left > 0);
            if !waits {
                workers[index].start(spec);
                wakes.push(Reverse((now, index)));
            }
            waits
        });
    }
}

/// A worker in virtual time, and its state.
fn build(
    mut spec: WorkerSpec,
    world: &Rc<World>,
    exits: &Exits,
) -> (Running, Worker<VirtualClock, SimEngine>) {
    let stop = exits.signal(spec.exit.group).of_one();
    let ended_alone = stop.phase.clone();
    // Time passes in volumes only, so requests are issued at their start.
    spec.recorded.is_synchronous = true;
    // And a wake-up takes no time.
    spec.time.rate.coalescing = Nanos::ZERO;
    let volumes = spec.setup.files.iter().map(|file| file.volume).collect();
    let (live, engine) = (spec.live(), SimEngine::new(world.clone(), volumes, spec.writes_through));
    let worker = Worker::simulated(&spec, engine, VirtualClock(world.clone()), live.clone(), stop);
    (Running { spec: Arc::new(spec), live, stop: ended_alone, started_unix_ms: 0, end: None }, worker)
}

/// Waiting workers, the earliest due first.
type Wakes = BinaryHeap<Reverse<(Nanos, usize)>>;

/// Wakes all waiting workers at `now`.
fn wake_all(wakes: &mut Wakes, now: Nanos) {
    *wakes = wakes.drain().map(|Reverse((_, index))| Reverse((now, index))).collect();
}

/// The time until which only worker `index` runs.
fn alone_until(others: &Wakes, index: usize) -> Nanos {
    match others.peek() {
        Some(&Reverse((due, other))) if index < other => due,
        Some(&Reverse((due, _))) => Nanos(due.0 - 1),
        None => Nanos::MAX,
    }
}

/// Requests of all workers at the same time.
#[derive(Default)]
struct Standstill {
    at: Nanos,
    requests: u64,
}

/// More requests at the same time than any volume serves, with any number of workers: time does not advance.
const MAX_AT_AN_INSTANT: u64 = 1 << 20;

impl Standstill {
    /// Counts `requests` made at `now`; true if the limit is exceeded.
    fn is_reached(&mut self, now: Nanos, requests: u64) -> bool {
        let before = if self.at == now { self.requests } else { 0 };
        *self = Standstill { at: now, requests: before + requests };
        self.requests > MAX_AT_AN_INSTANT
    }
}

/// The result of a worker's turn.
enum Turn {
    /// It continues at this time.
    Until(Nanos),
    /// Its requests never complete.
    Unanswered,
    /// It has ended.
    Finished,
}

/// Runs one worker while its next event is due no later than `last`.
fn turn(
    worker: &mut Worker<VirtualClock, SimEngine>,
    world: &World,
    last: Nanos,
    standstill: &mut Standstill,
) -> Turn {
    worker.wake();
    let mut requests = 0;
    loop {
        if standstill.is_reached(world.now(), requests) {
            let problem = "simulated time does not advance: the volume completes requests in no time";
            let hint = "set a latency for the volume, or a limit that counts these requests";
            worker.fail(WorkerFailure::new(0, problem, Some(hint)));
            return Turn::Finished;
        }
        let due = match worker.run_simulated(last) {
            Some(due) => {
                requests = MAX_COMPLETIONS;
                due
            }
            None => match worker.step() {
                Ok(Step::Progress) => {
                    requests = 1;
                    continue;
                }
                Ok(Step::BlockedUntil(due)) => due,
                Ok(Step::Finished) => return Turn::Finished,
                Err(error) => {
                    let message = error.to_string();
                    worker.fail(WorkerFailure::new(0, message, None));
                    return Turn::Finished;
                }
            },
        };
        if due == Nanos::MAX {
            return Turn::Unanswered;
        }
        let due = due.max(world.now());
        if due > last {
            return Turn::Until(due);
        }
        world.advance_to(due);
        worker.wake();
    }
}
