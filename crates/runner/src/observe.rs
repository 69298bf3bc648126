//! The observer of a run: intervals, windows and snapshots from the workers' counters.
//!
//! The observer reads counters; a worker never waits for it, and one that is stuck in the kernel is observed too.
//! Intervals are differences of two readings, so they add up to the totals exactly, even if a tick is late.

mod phase_watch;
mod time_left;

use std::sync::Arc;

use fathom_stats::live::LiveWorker;
use fathom_stats::{DATA_OPS, Histogram, RunOutcome, Snapshot, Stall, series};
use fathom_sys::kernel_workers::KernelThread;

use crate::kernel_watch::{KernelWatch, Served};
use crate::layout::LayoutProgress;
use crate::stalls::StallWatch;
pub(crate) use phase_watch::PhaseSeen;
use phase_watch::{PhaseWatch, TickTime};
pub(crate) use time_left::PlannedWork;

/// Time between ticks: fio's window for bandwidth and IOPS samples.
pub(crate) const TICK_NS: u64 = 500_000_000;
/// Most workers for which each keeps a full series.
const FULL_SERIES: usize = 8;
/// Intervals that every worker keeps at least.
const FEWEST_INTERVALS: usize = 240;

/// Receives the progress of a run. All methods are optional.
pub trait RunObserver {
    /// A file is being laid out.
    fn layout(&mut self, _progress: &LayoutProgress) {}
    /// A snapshot, every half second of the session's clock.
    fn snapshot(&mut self, _snapshot: &Snapshot) {}
    /// True to request the outcome so far; called after each snapshot.
    fn wants_outcome_so_far(&mut self) -> bool {
        false
    }
    /// When it wants the outcome so far next, ns since the start of the run, if it knows that in advance.
    fn next_outcome_ns(&self) -> Option<u64> {
        None
    }
    /// True if that time has come `elapsed_ns` after the start; in virtual time it is called at ticks alone.
    fn takes_due_outcome(&mut self, _elapsed_ns: u64) -> bool {
        false
    }
    /// The outcome so far, as if the run ended now.
    fn outcome_so_far(&mut self, _outcome: &RunOutcome) {}
    /// True to end the running phase as its runtime would; called after each snapshot and the outcome that was requested then.
    fn ends_phase(&mut self) -> bool {
        false
    }
}

impl RunObserver for () {}

/// One observed worker.
#[derive(Clone)]
struct Watch {
    live: Arc<LiveWorker>,
    state: char,
    ramp: PhaseWatch,
    measured: PhaseWatch,
    planned: PlannedWork,
    samples_ns: [u64; 2],
    stalls: StallWatch,
}

/// Observes the workers of one phase.
#[derive(Clone)]
pub(crate) struct Observer {
    watches: Vec<Watch>,
    origin: u64,
    tick: u32,
    /// Ticks are numbered in the series after division by `2^coarser`.
    coarser: u32,
    last_tick_at: u64,
    kernel: KernelWatch,
    totals: [(u64, u64, u64); DATA_OPS],
    /// Workers of the whole run, and the length of the later phases.
    workers: u32,
    later_ns: Option<u64>,
}

impl Observer {
    /// An observer of a phase that begins at `now`, in a run that began at `origin`, with ticks numbered from `tick`.
    pub fn new((origin, now): (u64, u64), tick: u32, workers: u32, later_ns: Option<u64>) -> Self {
        Observer {
            watches: Vec::new(),
            origin,
            tick,
            coarser: 0,
            last_tick_at: now,
            kernel: KernelWatch::new(now),
            totals: Default::default(),
            workers,
            later_ns,
        }
    }

    /// Intervals kept per worker: fewer for many workers, so that the total is bounded.
    fn most_intervals(&self) -> usize {
        (series::MAX * FULL_SERIES / self.watches.len().max(1)).clamp(FEWEST_INTERVALS, series::MAX)
    }

    /// Adds a worker. `state` is fio's letter for its state, `samples_ns` the lengths of its windows of bandwidth and IOPS.
    pub fn watch(&mut self, live: Arc<LiveWorker>, state: char, planned: PlannedWork, samples_ns: [u64; 2]) {
        let (ramp, measured) = Default::default();
        let stalls = StallWatch::default();
        self.watches.push(Watch { live, state, ramp, measured, planned, samples_ns, stalls });
    }

    /// The number of the next tick.
    pub fn next_tick(&self) -> u32 {
        self.tick
    }

    /// The threads of the workers themselves.
    pub fn thread_ids(&self) -> Vec<u32> {
        self.watches.iter().map(|watch| watch.live.thread_id.get() as u32).collect()
    }

    /// Adds a reading of the kernel threads, made at `now`.
    pub fn see_kernel_threads(&mut self, now: u64, threads: &[KernelThread]) {
        let served = self.watches.iter().map(|watch| Served {
            thread_id: watch.live.thread_id.get() as u32,
            has_ramp: watch.live.ramp.is_some(),
            measured_since: watch.live.measured.start_ns.get(),
        });
        self.kernel.add(now, threads, &served.collect::<Vec<_>>());
    }

    /// Reads every worker at `now` and returns a snapshot.
    pub fn tick(&mut self, now: u64) -> Snapshot {
        let (number, origin) = (self.tick >> self.coarser, self.origin);
        let mut longest = 0;
        let (mut ramp_clat, mut clat) = (Histogram::default(), Histogram::default());
        for watch in &mut self.watches {
            // Read before the counters: all counts of a finished worker are then in this tick.
            let _finished = watch.live.is_finished();
            let last_completion = watch.live.last_completion_ns.get();
            let time = TickTime { number, now, origin, last_completion, samples_ns: watch.samples_ns };
            if let Some(ramp) = &watch.live.ramp {
                watch.ramp.tick(ramp, &time, &mut ramp_clat);
            }
            watch.measured.tick(&watch.live.measured, &time, &mut clat);
            longest = longest.max(watch.measured.series.len()).max(watch.ramp.series.len());
        }
        self.tick += 1;
        if longest >= self.most_intervals() {
            self.coarser += 1;
            for watch in &mut self.watches {
                series::halve(&mut watch.ramp.series);
                series::halve(&mut watch.measured.series);
            }
        }
        let (clat_bins, ramp_clat_bins) = (sparse_bins(&clat), sparse_bins(&ramp_clat));
        Snapshot { clat_bins, ramp_clat_bins, ..self.snapshot(now) }
    }

    fn snapshot(&mut self, now: u64) -> Snapshot {
        let mut totals = [(0, 0, 0); DATA_OPS];
        for watch in &self.watches {
            let phases = watch.live.ramp.iter().chain([&watch.live.measured]);
            for (total, op) in
                phases.flat_map(|phase| &phase.ops).enumerate().map(|(i, op)| (i % DATA_OPS, op))
            {
                let sum = op.clat.as_ref().map_or(0, |clat| clat.sum());
                let total = &mut totals[total];
                *total = (total.0 + op.ios.get(), total.1 + op.bytes.get(), total.2 + sum);
            }
        }
        let tick_ns = now - self.last_tick_at;
        let seconds = tick_ns.max(1) as f64 / 1e9;
        let mut snapshot =
            Snapshot { elapsed_ns: now - self.origin, tick_ns, workers: self.workers, ..Snapshot::default() };
        let (mut ios, mut clat) = (0, 0);
        for (op, (before, after)) in self.totals.iter().zip(&totals).enumerate() {
            (snapshot.ios[op], snapshot.bytes[op]) = (after.0 - before.0, after.1 - before.1);
            snapshot.iops[op] = snapshot.ios[op] as f64 / seconds;
            snapshot.bytes_per_second[op] = snapshot.bytes[op] as f64 / seconds;
            (ios, clat) = (ios + after.0 - before.0, clat + after.2 - before.2);
        }
        snapshot.clat_sum_ns = clat;
        snapshot.clat_mean_ns = (ios > 0 && clat > 0).then(|| clat / ios);
        (self.totals, self.last_tick_at) = (totals, now);
        self.describe(now, &mut snapshot);
        snapshot
    }

    /// States, stalls and the time left.
    fn describe(&mut self, now: u64, snapshot: &mut Snapshot) {
        let mut left = Some(0u64);
        let mut ramping = 0;
        for watch in &mut self.watches {
            let live = &watch.live;
            let stalled_ns = watch.stalls.check(now, live);
            let in_ramp =
                live.ramp.as_ref().is_some_and(|ramp| ramp.start_ns.get() != 0 && ramp.ended_ns() == 0);
            let state = match () {
                () if live.is_finished() => '_',
                () if in_ramp => '/',
                () if live.measured.start_ns.get() == 0 => 'P',
                () => watch.state,
            };
            snapshot.states.push(state);
            if state == '_' {
                continue;
            }
            snapshot.running += 1;
            snapshot.in_flight += live.in_flight.get();
            ramping += u32::from(in_ramp);
            if stalled_ns > snapshot.stalled_ns {
                (snapshot.stalled_ns, snapshot.stalled_in_flight) = (stalled_ns, live.in_flight.get());
            }
            left = match (left, watch.planned.left(live, now)) {
                (Some(left), Some(this)) => Some(left.max(this)),
                _ => None,
            };
        }
        snapshot.ramping = snapshot.running > 0 && ramping == snapshot.running;
        snapshot.remaining_ns = left.zip(self.later_ns).map(|(left, later)| left.saturating_add(later));
    }

    /// Checks for stalls between two ticks; true during a stall, so that its end is detected soon.
    pub fn check_stalls(&mut self, now: u64) -> bool {
        let mut any = false;
        for Watch { live, stalls, .. } in &mut self.watches {
            stalls.check(now, live);
            any |= stalls.is_stalled();
        }
        any
    }

    /// Takes the stalls of each worker, in the order they were added; times since the start of the run.
    pub fn take_stalls(&mut self) -> Vec<Vec<Stall>> {
        let origin = self.origin;
        self.watches.iter_mut().map(|watch| std::mem::take(&mut watch.stalls).into_stalls(origin)).collect()
    }

    /// The results of each worker, ramp and measured part, in the order they were added.
    pub fn into_seen(self) -> Vec<(PhaseSeen, PhaseSeen)> {
        let seen = |watch: PhaseWatch, kernel_threads| PhaseSeen {
            series: watch.series,
            windows: watch.windows,
            kernel_threads,
        };
        let used = |index| self.kernel.used(index);
        let watches = self.watches.into_iter().enumerate();
        watches
            .map(|(index, watch)| {
                (seen(watch.ramp, used(index).ramp), seen(watch.measured, used(index).measured))
            })
            .collect()
    }
}

/// The bins of `latencies` that are not empty.
fn sparse_bins(latencies: &Histogram) -> Vec<(u16, u64)> {
    latencies.sparse().map(|(bin, count)| (bin as u16, count)).collect()
}
