//! The counters of a ramp or of the measured part.

use std::sync::atomic::Ordering;

use super::{Cell, LiveLatency, LiveOp, Recorded};
use crate::{BatchCounts, DATA_OPS, DepthCounts, PhaseOutcome};

/// Counters of one phase of one worker.
#[derive(Debug)]
pub struct LivePhase {
    /// Read, write, trim.
    pub ops: [LiveOp; DATA_OPS],
    /// Completed fsync and fdatasync.
    pub syncs: Cell,
    /// Failed fsync and fdatasync.
    pub syncs_failed: Cell,
    /// Latency of fsync and fdatasync; `None` if the workload issues none.
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
    /// End of the schedule of a rate, session ns; 0 until it ends, and without a rate.
    pub schedule_end_ns: Cell,
    read_back: LiveReadBack,
}

/// Time and bytes of reading back what was written.
#[derive(Debug, Default)]
struct LiveReadBack {
    /// Of those that ended, ns.
    ended_ns: Cell,
    /// Of those that ended.
    ended_bytes: Cell,
    /// Start of the one that goes on, session ns; 0 without one.
    since_ns: Cell,
    /// Bytes of the phase at that time.
    since_bytes: Cell,
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
            read_back: LiveReadBack::default(),
        }
    }

    /// Bytes of all operations so far.
    pub fn bytes(&self) -> u64 {
        self.ops.iter().map(|op| op.bytes.get()).sum()
    }

    /// Begins to read back at `now`. Only the owning worker may call this.
    pub fn begin_read_back(&self, now: u64) {
        self.read_back.since_bytes.set(self.bytes());
        self.read_back.since_ns.set(now.max(1));
    }

    /// Ends reading back at `now`; false if it did not read back. Only the owning worker may call this.
    pub fn end_read_back(&self, now: u64) -> bool {
        let reads_back = self.read_back.since_ns.get() != 0;
        let (ns, bytes) = self.read_back_so_far(now);
        self.read_back.since_ns.set(0);
        self.read_back.ended_ns.set(ns);
        self.read_back.ended_bytes.set(bytes);
        reads_back
    }

    /// Time and bytes of reading back until `now`: (ns, bytes).
    pub fn read_back_so_far(&self, now: u64) -> (u64, u64) {
        let LiveReadBack { ended_ns, ended_bytes, since_ns, since_bytes } = &self.read_back;
        let (ns, bytes) = (ended_ns.get(), ended_bytes.get());
        match since_ns.get() {
            0 => (ns, bytes),
            since => (ns + now.saturating_sub(since), bytes + self.bytes().saturating_sub(since_bytes.get())),
        }
    }

    /// Ends the phase, if it has begun and not ended. Only the owning worker may call this.
    pub fn close(&self, now_ns: u64) {
        if self.start_ns.get() != 0 && self.end_ns.get() == 0 {
            self.end_ns.0.store(now_ns, Ordering::Release);
        }
    }

    /// End of the phase, session ns; 0 while it runs. After any other value, all counts are final.
    pub fn ended_ns(&self) -> u64 {
        self.end_ns.0.load(Ordering::Acquire)
    }

    /// The counts so far as plain data, times relative to `origin_ns`; the observer adds series, windows and CPU times.
    pub fn read(&self, origin_ns: u64) -> PhaseOutcome {
        let cells = |cells: &[Cell; 7]| std::array::from_fn(|i| cells[i].get());
        let [read, write, trim] = &self.ops;
        PhaseOutcome {
            start_ns: self.start_ns.get().saturating_sub(origin_ns),
            end_ns: self.end_ns.get().saturating_sub(origin_ns),
            schedule_end_ns: self.schedule_end_ns.get().saturating_sub(origin_ns),
            read_back_ns: self.read_back.ended_ns.get(),
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
