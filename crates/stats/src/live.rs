//! Counters that one worker writes and any other thread may read while the run goes on.
//!
//! Every cell has exactly one writer, so an update is a relaxed load and a relaxed store (plain moves on all
//! architectures we run on), never a locked instruction. A reader may see a value that is a few requests old; after the
//! worker has ended (joined, or seen as finished through an acquire load) every value is exact.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::{
    BatchCounts, DATA_OPS, DepthCounts, Histogram, Latency, LiveOpenLoop, Moments, OpOutcome, PhaseOutcome,
    histogram,
};

/// A single-writer counter.
#[derive(Debug, Default)]
pub struct Cell(AtomicU64);

impl Cell {
    /// Adds `n`. Only the owning worker may call this.
    #[inline(always)]
    pub fn add(&self, n: u64) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
    }

    /// Replaces the value. Only the owning worker may call this.
    #[inline(always)]
    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// The value.
    #[inline(always)]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A latency being recorded. The count is the sum of the bins.
#[derive(Debug)]
pub struct LiveLatency {
    bins: Box<[Cell]>,
    sum: Cell,
    sum_high: Cell,
    squares_low: Cell,
    squares_high: Cell,
    min: Cell,
    max: Cell,
}

impl Default for LiveLatency {
    fn default() -> Self {
        let low = Cell::default();
        low.set(u64::MAX);
        LiveLatency {
            bins: (0..histogram::BINS).map(|_| Cell::default()).collect(),
            sum: Cell::default(),
            sum_high: Cell::default(),
            squares_low: Cell::default(),
            squares_high: Cell::default(),
            min: low,
            max: Cell::default(),
        }
    }
}

impl LiveLatency {
    /// Counts one latency in ns.
    #[inline(always)]
    pub fn record(&self, ns: u64) {
        self.record_alike(ns, 1);
    }

    /// Counts the same latency in ns `times` times over: requests that went and came back together.
    #[inline(always)]
    pub fn record_alike(&self, ns: u64, times: u32) {
        let times = u64::from(times);
        self.bins[histogram::bin(ns)].add(times);
        self.sum.add(ns * times);
        let square = u128::from(ns) * u128::from(ns * times);
        let (low, carry) = self.squares_low.get().overflowing_add(square as u64);
        self.squares_low.set(low);
        self.squares_high.set(self.squares_high.get().wrapping_add((square >> 64) as u64 + u64::from(carry)));
        if ns < self.min.get() {
            self.min.set(ns);
        }
        if ns > self.max.get() {
            self.max.set(ns);
        }
    }

    /// Counts a time in ns that may be of any length, as where requests queue for days: the sum of such times may be
    /// beyond 2^64, which that of as many requests as are ever under way at once is not.
    #[inline(always)]
    pub fn record_long(&self, ns: u64) {
        let before = self.sum.get();
        self.record(ns);
        if self.sum.get() < before {
            self.sum_high.add(1);
        }
    }

    /// Sum of the latencies so far, ns.
    pub fn sum(&self) -> u64 {
        self.sum.get()
    }

    /// The count of each bin, in order.
    pub fn counts(&self) -> impl Iterator<Item = u64> + '_ {
        self.bins.iter().map(Cell::get)
    }

    /// The latencies recorded so far as plain data.
    pub fn read(&self) -> Latency {
        let histogram = Histogram::from_sparse(self.counts().enumerate().filter(|&(_, count)| count > 0));
        let count = histogram.samples();
        Latency {
            histogram,
            moments: Moments {
                count,
                sum: u128::from(self.sum_high.get()) << 64 | u128::from(self.sum.get()),
                sum_squares: u128::from(self.squares_high.get()) << 64 | u128::from(self.squares_low.get()),
                min: if count == 0 { 0 } else { self.min.get() },
                max: self.max.get(),
            },
        }
    }
}

/// One data operation of one worker being counted.
#[derive(Debug, Default)]
pub struct LiveOp {
    /// Requests handed to the engine.
    pub issued: Cell,
    /// Requests completed without error.
    pub ios: Cell,
    /// Bytes completed.
    pub bytes: Cell,
    /// Requests cut short by the device.
    pub short: Cell,
    /// Requests failed.
    pub failed: Cell,
    /// Start to issued; only where it is recorded and not always nothing.
    pub slat: Option<LiveLatency>,
    /// Every request is issued at its start.
    slat_is_nothing: bool,
    /// Issued to completed; only where it is recorded.
    pub clat: Option<LiveLatency>,
    /// Start to completed; only where it is recorded and not the same as `clat`.
    pub lat: Option<LiveLatency>,
    /// The total latency is the completion latency, and `clat` stands for both.
    pub lat_is_clat: bool,
    /// What a schedule adds; only where there is one.
    pub open_loop: Option<Box<LiveOpenLoop>>,
}

/// Which latencies are recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// Submission latency.
    pub slat: bool,
    /// Completion latency.
    pub clat: bool,
    /// Total latency.
    pub lat: bool,
    /// Nothing lies between start and issue, as where each request is done in one call: submission latency is nothing, and
    /// completion and total latency are the same, and kept once.
    pub at_once: bool,
    /// Requests are due by a schedule.
    pub scheduled: bool,
    /// The workload syncs files, and the latency of syncs is recorded.
    pub syncs: bool,
}

impl LiveOp {
    fn new(recorded: Recorded) -> Self {
        let lat_is_clat = recorded.at_once && recorded.clat && recorded.lat;
        LiveOp {
            slat: (recorded.slat && !recorded.at_once).then(LiveLatency::default),
            slat_is_nothing: recorded.slat && recorded.at_once,
            clat: recorded.clat.then(LiveLatency::default),
            lat: (recorded.lat && !lat_is_clat).then(LiveLatency::default),
            lat_is_clat,
            open_loop: recorded.scheduled.then(Box::default),
            ..LiveOp::default()
        }
    }

    /// Counts requests alike that completed whole: so many, the bytes of each, and their latencies in ns.
    #[inline(always)]
    pub fn complete(&self, times: u32, bytes_each: u32, clat_ns: u64, lat_ns: u64) {
        self.ios.add(u64::from(times));
        self.bytes.add(u64::from(times) * u64::from(bytes_each));
        if let Some(slat) = &self.slat {
            slat.record_alike(lat_ns - clat_ns, times);
        }
        if let Some(clat) = &self.clat {
            clat.record_alike(clat_ns, times);
        }
        if let Some(lat) = &self.lat {
            lat.record_alike(lat_ns, times);
        }
    }

    fn read(&self) -> OpOutcome {
        let latency = |live: &Option<LiveLatency>| live.as_ref().map(LiveLatency::read).unwrap_or_default();
        let clat = latency(&self.clat);
        let slat = if self.slat_is_nothing { Latency::alike(self.ios.get(), 0) } else { latency(&self.slat) };
        let lat = if self.lat_is_clat { clat.clone() } else { latency(&self.lat) };
        OpOutcome {
            issued: self.issued.get(),
            ios: self.ios.get(),
            bytes: self.bytes.get(),
            short: self.short.get(),
            failed: self.failed.get(),
            slat,
            clat,
            lat,
            open_loop: self.open_loop.as_ref().map(|open_loop| open_loop.read()).unwrap_or_default(),
            ..OpOutcome::default()
        }
    }
}

/// One phase of one worker being counted.
#[derive(Debug)]
pub struct LivePhase {
    /// Read, write, trim.
    pub ops: [LiveOp; DATA_OPS],
    /// Completed fsync and fdatasync.
    pub syncs: Cell,
    /// Failed fsync and fdatasync.
    pub syncs_failed: Cell,
    /// Latency of fsync and fdatasync; only where the workload syncs.
    pub sync_lat: Option<LiveLatency>,
    /// Depth buckets.
    pub depth: [Cell; 7],
    /// Submission batch buckets.
    pub submit: [Cell; 7],
    /// Completion batch buckets.
    pub complete: [Cell; 7],
    /// Start of the phase, session ns; 0 until it starts.
    pub start_ns: Cell,
    /// End of the phase, session ns; 0 until it ends.
    pub end_ns: Cell,
    /// When a schedule ended, session ns; 0 until it does, and where there is none.
    pub schedule_end_ns: Cell,
}

impl LivePhase {
    /// A phase that records `recorded` for the operations marked in `used` (read, write, trim).
    pub fn new(recorded: Recorded, used: [bool; DATA_OPS]) -> Self {
        let none = Recorded::default();
        LivePhase {
            ops: used.map(|used| LiveOp::new(if used { recorded } else { none })),
            syncs: Cell::default(),
            syncs_failed: Cell::default(),
            sync_lat: recorded.syncs.then(LiveLatency::default),
            depth: Default::default(),
            submit: Default::default(),
            complete: Default::default(),
            start_ns: Cell::default(),
            end_ns: Cell::default(),
            schedule_end_ns: Cell::default(),
        }
    }

    /// Ends the phase, where it has begun and not ended. Only the owning worker may call this.
    pub fn close(&self, now_ns: u64) {
        if self.start_ns.get() != 0 && self.end_ns.get() == 0 {
            self.end_ns.0.store(now_ns, Ordering::Release);
        }
    }

    /// End of the phase, session ns; 0 while it goes on. All counts read after any other answer are final.
    pub fn ended_ns(&self) -> u64 {
        self.end_ns.0.load(Ordering::Acquire)
    }

    /// The counts so far as plain data, times relative to `origin_ns`; series, windows and CPU are the observer's.
    pub fn read(&self, origin_ns: u64) -> PhaseOutcome {
        let cells = |cells: &[Cell; 7]| std::array::from_fn(|i| cells[i].get());
        let [read, write, trim] = &self.ops;
        PhaseOutcome {
            start_ns: self.start_ns.get().saturating_sub(origin_ns),
            end_ns: self.end_ns.get().saturating_sub(origin_ns),
            schedule_end_ns: self.schedule_end_ns.get().saturating_sub(origin_ns),
            read: read.read(),
            write: write.read(),
            trim: trim.read(),
            syncs: self.syncs.get(),
            sync_lat: self.sync_lat.as_ref().map(LiveLatency::read).unwrap_or_default(),
            syncs_failed: self.syncs_failed.get(),
            depth: DepthCounts(cells(&self.depth)),
            submit: BatchCounts(cells(&self.submit)),
            complete: BatchCounts(cells(&self.complete)),
            ..PhaseOutcome::default()
        }
    }
}

/// Offsets that a worker tells of where nothing completes.
const HELD: usize = 8;

/// Everything one worker publishes. Aligned so that no two workers write to the same cache line, nor to neighbours, which
/// processors fetch in pairs.
#[derive(Debug)]
#[repr(align(128))]
pub struct LiveWorker {
    /// The ramp; `None` where there is none.
    pub ramp: Option<LivePhase>,
    /// The measured part.
    pub measured: LivePhase,
    /// Time of the last completion, session ns.
    pub last_completion_ns: Cell,
    /// Time of the first completion after the latest silence that was told of, session ns.
    pub resumed_ns: Cell,
    /// Requests in flight, syncs included.
    pub in_flight: Cell,
    /// Kernel thread id.
    pub thread_id: Cell,
    /// Offsets of requests in flight, written only while nothing completes.
    held: [Cell; HELD],
    held_count: Cell,
    /// When `held` was written, session ns.
    held_at_ns: Cell,
    /// Set once with release ordering when the worker will write nothing more.
    pub finished: AtomicBool,
}

impl LiveWorker {
    /// A worker that has not started.
    pub fn new(recorded: Recorded, used: [bool; DATA_OPS], ramp: bool) -> Self {
        LiveWorker {
            ramp: ramp.then(|| LivePhase::new(recorded, used)),
            measured: LivePhase::new(recorded, used),
            last_completion_ns: Cell::default(),
            resumed_ns: Cell::default(),
            in_flight: Cell::default(),
            thread_id: Cell::default(),
            held: Default::default(),
            held_count: Cell::default(),
            held_at_ns: Cell::default(),
            finished: AtomicBool::new(false),
        }
    }

    /// Ends whichever phase the worker is in.
    pub fn close(&self, now_ns: u64) {
        self.ramp.iter().chain([&self.measured]).for_each(|phase| phase.close(now_ns));
    }

    /// Says that a request that took long completed at `now_ns`: where nothing had for `silence_ns`, that is when it ended. Only
    /// the owning worker may call this, before it moves on [`LiveWorker::last_completion_ns`].
    #[cold]
    pub fn resume(&self, now_ns: u64, silence_ns: u64) {
        let last = self.last_completion_ns.get();
        if now_ns.saturating_sub(last) >= silence_ns && self.resumed_ns.get() <= last {
            self.resumed_ns.set(now_ns);
        }
    }

    /// Says which offsets are in flight at `now_ns`: the first few of them. Only the owning worker may call this.
    pub fn hold(&self, now_ns: u64, offsets: impl Iterator<Item = u64>) {
        let held = self.held.iter().zip(offsets).map(|(cell, offset)| cell.set(offset)).count();
        self.held_count.set(held as u64);
        self.held_at_ns.set(now_ns);
    }

    /// The offsets in flight that the worker has told of since `since_ns`.
    pub fn offsets_in_flight(&self, since_ns: u64) -> Vec<u64> {
        let told = if self.held_at_ns.get() > since_ns { self.held_count.get() as usize } else { 0 };
        self.held.iter().take(told).map(Cell::get).collect()
    }

    /// True once the worker writes nothing more; all counts read after this are final.
    pub fn is_finished(&self) -> bool {
        self.finished.load(Ordering::Acquire)
    }

    /// Says that the worker writes nothing more.
    pub fn finish(&self) {
        self.finished.store(true, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn live_latency_reads_as_what_was_recorded() {
        let live = LiveLatency::default();
        let mut plain = Latency::default();
        for ns in
            [0, 1, 127, 128, 5_000, 17_000_000_000, 3_600_000_000_000, 3_600_000_000_000, 3_600_000_000_000]
        {
            live.record(ns);
            plain.record(ns);
        }
        assert_eq!(live.read(), plain);
    }

    #[test]
    fn latencies_alike_count_as_so_many_single_ones() {
        let (alike, single) = (LiveLatency::default(), LiveLatency::default());
        for (ns, times) in [(5_000, 3), (0, 2), (17_000_000_000, 64), (3_600_000_000_000, 5), (5_001, 1)] {
            alike.record_alike(ns, times);
            (0..times).for_each(|_| single.record(ns));
        }
        assert_eq!(alike.read(), single.read());
    }

    #[test]
    fn what_is_done_at_once_keeps_one_latency_for_both() {
        let recorded = Recorded { clat: true, lat: true, at_once: true, ..Recorded::default() };
        let op = LiveOp::new(recorded);
        op.complete(2, 4096, 700, 700);
        assert!(op.lat.is_none(), "kept once");
        let outcome = op.read();
        assert_eq!((outcome.ios, outcome.bytes, outcome.lat.moments.sum), (2, 8192, 1400));
        assert_eq!(outcome.lat, outcome.clat);
        assert_eq!(outcome.slat, Latency::default(), "not asked for");
        let with_slat = LiveOp::new(Recorded { slat: true, ..recorded });
        assert_eq!(with_slat.read().slat, Latency::default());
        with_slat.complete(2, 4096, 700, 700);
        assert_eq!(
            with_slat.read().slat.moments,
            Moments { count: 2, sum: 0, sum_squares: 0, min: 0, max: 0 }
        );
        assert_eq!(with_slat.read().slat.histogram.sparse().collect::<Vec<_>>(), [(0, 2)]);
        let lat_alone = LiveOp::new(Recorded { clat: false, ..recorded });
        lat_alone.complete(1, 512, 30, 30);
        assert_eq!((lat_alone.read().lat.moments.sum, lat_alone.read().clat.moments.count), (30, 0));
    }

    #[test]
    fn empty_latency_reads_as_empty() {
        assert_eq!(LiveLatency::default().read(), Latency::default());
    }

    #[test]
    fn only_a_phase_that_goes_on_can_be_closed() {
        let live = LiveWorker::new(Recorded::default(), [true; DATA_OPS], true);
        live.close(5);
        let ramp = live.ramp.as_ref().unwrap();
        assert_eq!((ramp.ended_ns(), live.measured.ended_ns()), (0, 0));
        ramp.start_ns.set(1);
        live.close(7);
        live.measured.start_ns.set(7);
        live.close(9);
        assert_eq!((ramp.ended_ns(), live.measured.ended_ns()), (7, 9));
    }

    #[test]
    fn only_what_is_used_and_asked_for_is_recorded() {
        let phase = LivePhase::new(Recorded { clat: true, ..Recorded::default() }, [true, false, false]);
        let recorded = |op: &LiveOp| (op.slat.is_some(), op.clat.is_some(), op.lat.is_some());
        assert_eq!(recorded(&phase.ops[0]), (false, true, false));
        assert_eq!(recorded(&phase.ops[1]), (false, false, false));
    }
}
