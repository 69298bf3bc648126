//! Counters that one worker writes and any thread may read during the run.
//!
//! Every cell has exactly one writer, so an update is a relaxed load and a relaxed store (plain moves on all supported
//! architectures), never a locked instruction. A reader may see a value that is a few requests old; once the worker has
//! ended (it was joined, or an acquire load returned `finished`) every value is exact.

mod phase;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::{DATA_OPS, Histogram, Latency, LiveOpenLoop, Moments, OpOutcome, PriorityLatency, histogram};
pub use phase::LivePhase;

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

/// Latencies of one kind while they are recorded. The count is the sum of the bins.
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
        self.record_many(ns, 1);
    }

    /// Counts the same latency in ns `times` times: requests submitted and completed together.
    #[inline(always)]
    pub fn record_many(&self, ns: u64, times: u32) {
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

    /// Counts a time in ns of any length, such as days in a queue. The sum of such times can exceed 2^64, which the sum
    /// of latencies of requests in flight cannot.
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

/// Counters of one data operation of one worker.
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
    /// Start to issued; `None` if it is not recorded or always 0.
    pub slat: Option<LiveLatency>,
    /// Submission latency is 0 because every request is issued at its start.
    slat_is_zero: bool,
    /// Issued to completed; `None` if it is not recorded.
    pub clat: Option<LiveLatency>,
    /// Start to completed; `None` if it is not recorded or equals `clat`.
    pub lat: Option<LiveLatency>,
    /// The total latency equals the completion latency; `clat` records both.
    pub lat_is_clat: bool,
    /// Response times; only under a rate.
    pub open_loop: Option<Box<LiveOpenLoop>>,
    /// Latencies by the priority of the requests; empty if they all have the same.
    pub(crate) priorities: Vec<(u16, LiveLatency)>,
}

/// The latencies to record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// Submission latency.
    pub slat: bool,
    /// Completion latency.
    pub clat: bool,
    /// Total latency.
    pub lat: bool,
    /// Each request is one system call: it is issued at its start, so submission latency is 0, and completion and total
    /// latency are equal and kept once.
    pub is_synchronous: bool,
    /// Requests have due times (a rate).
    pub scheduled: bool,
    /// The workload syncs files, and sync latency is recorded.
    pub syncs: bool,
}

impl LiveOp {
    fn new(recorded: Recorded) -> Self {
        let lat_is_clat = recorded.is_synchronous && recorded.clat && recorded.lat;
        LiveOp {
            slat: (recorded.slat && !recorded.is_synchronous).then(LiveLatency::default),
            slat_is_zero: recorded.slat && recorded.is_synchronous,
            clat: recorded.clat.then(LiveLatency::default),
            lat: (recorded.lat && !lat_is_clat).then(LiveLatency::default),
            lat_is_clat,
            open_loop: recorded.scheduled.then(Box::default),
            ..LiveOp::default()
        }
    }

    /// Counts `times` requests that completed in full, with equal sizes and equal latencies in ns.
    #[inline(always)]
    pub fn complete(&self, times: u32, bytes_each: u32, clat_ns: u64, lat_ns: u64) {
        self.ios.add(u64::from(times));
        self.bytes.add(u64::from(times) * u64::from(bytes_each));
        if let Some(slat) = &self.slat {
            slat.record_many(lat_ns - clat_ns, times);
        }
        if let Some(clat) = &self.clat {
            clat.record_many(clat_ns, times);
        }
        if let Some(lat) = &self.lat {
            lat.record_many(lat_ns, times);
        }
    }

    fn read(&self) -> OpOutcome {
        let latency = |live: &Option<LiveLatency>| live.as_ref().map(LiveLatency::read).unwrap_or_default();
        let clat = latency(&self.clat);
        let slat = if self.slat_is_zero { Latency::repeated(self.ios.get(), 0) } else { latency(&self.slat) };
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
            priorities: self.priorities.iter().map(PriorityLatency::read).collect(),
            ..OpOutcome::default()
        }
    }
}

/// Most offsets that a worker publishes during a stall.
const STALLED_OFFSETS: usize = 8;

/// Everything that one worker publishes. Aligned so that no two workers write to the same cache line or to adjacent
/// ones, which processors fetch in pairs.
#[derive(Debug)]
#[repr(align(128))]
pub struct LiveWorker {
    /// The ramp; `None` without one.
    pub ramp: Option<LivePhase>,
    /// The measured part.
    pub measured: LivePhase,
    /// Time of the last completion, session ns.
    pub last_completion_ns: Cell,
    /// Time of the first completion after the latest published stall, session ns.
    pub resumed_ns: Cell,
    /// Requests in flight, syncs included.
    pub in_flight: Cell,
    /// Kernel thread id.
    pub thread_id: Cell,
    /// Offsets of requests in flight, written only during a stall.
    stalled_offsets: [Cell; STALLED_OFFSETS],
    stalled_offset_count: Cell,
    /// When `stalled_offsets` was written, session ns.
    stalled_offsets_at_ns: Cell,
    /// Set once, with release ordering, after the worker's last write.
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
            stalled_offsets: Default::default(),
            stalled_offset_count: Cell::default(),
            stalled_offsets_at_ns: Cell::default(),
            finished: AtomicBool::new(false),
        }
    }

    /// Ends the current phase.
    pub fn close(&self, now_ns: u64) {
        self.ramp.iter().chain([&self.measured]).for_each(|phase| phase.close(now_ns));
    }

    /// Records the end of a stall: a completion at `now_ns` after none for `silence_ns`. Only the owning worker may
    /// call this, before it updates [`LiveWorker::last_completion_ns`].
    #[cold]
    pub fn record_resumption(&self, now_ns: u64, silence_ns: u64) {
        let last = self.last_completion_ns.get();
        if now_ns.saturating_sub(last) >= silence_ns && self.resumed_ns.get() <= last {
            self.resumed_ns.set(now_ns);
        }
    }

    /// Publishes the first few offsets in flight at `now_ns`. Only the owning worker may call this.
    pub fn publish_stalled_offsets(&self, now_ns: u64, offsets: impl Iterator<Item = u64>) {
        let published =
            self.stalled_offsets.iter().zip(offsets).map(|(cell, offset)| cell.set(offset)).count();
        self.stalled_offset_count.set(published as u64);
        self.stalled_offsets_at_ns.set(now_ns);
    }

    /// The offsets in flight, if published after `since_ns`.
    pub fn offsets_in_flight(&self, since_ns: u64) -> Vec<u64> {
        let published = if self.stalled_offsets_at_ns.get() > since_ns {
            self.stalled_offset_count.get() as usize
        } else {
            0
        };
        self.stalled_offsets.iter().take(published).map(Cell::get).collect()
    }

    /// True after the worker's last write; all counts read afterwards are final.
    pub fn is_finished(&self) -> bool {
        self.finished.load(Ordering::Acquire)
    }

    /// Marks the worker's last write.
    pub fn finish(&self) {
        self.finished.store(true, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn live_latency_equals_a_recorded_latency() {
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
    fn equal_latencies_count_like_single_ones() {
        let (repeated, single) = (LiveLatency::default(), LiveLatency::default());
        for (ns, times) in [(5_000, 3), (0, 2), (17_000_000_000, 64), (3_600_000_000_000, 5), (5_001, 1)] {
            repeated.record_many(ns, times);
            (0..times).for_each(|_| single.record(ns));
        }
        assert_eq!(repeated.read(), single.read());
    }

    #[test]
    fn synchronous_requests_keep_one_latency_as_clat_and_lat() {
        let recorded = Recorded { clat: true, lat: true, is_synchronous: true, ..Recorded::default() };
        let op = LiveOp::new(recorded);
        op.complete(2, 4096, 700, 700);
        assert!(op.lat.is_none(), "kept once");
        let outcome = op.read();
        assert_eq!((outcome.ios, outcome.bytes, outcome.lat.moments.sum), (2, 8192, 1400));
        assert_eq!(outcome.lat, outcome.clat);
        assert_eq!(outcome.slat, Latency::default(), "not requested");
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
    fn only_a_running_phase_can_be_closed() {
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
    fn unused_operations_and_unrequested_latencies_are_not_recorded() {
        let phase = LivePhase::new(Recorded { clat: true, ..Recorded::default() }, [true, false, false]);
        let recorded = |op: &LiveOp| (op.slat.is_some(), op.clat.is_some(), op.lat.is_some());
        assert_eq!(recorded(&phase.ops[0]), (false, true, false));
        assert_eq!(recorded(&phase.ops[1]), (false, false, false));
    }
}
