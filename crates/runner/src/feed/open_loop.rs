//! The schedule of an open loop, which is independent of the device.
//!
//! A late request is issued as soon as a slot is free, and its response time counts from its due time.

use fathom_model::Op;
use fathom_model::plan::Mix;

use super::Next;
use super::arrivals::Arrivals;
use crate::worker::WorkerSpec;

/// Time by which a wait ends before a request is due, ns; the worker spins for the rest. Few machines have timers that
/// are later.
const SPIN_NS: u64 = 50_000;
/// Mean gap from which on spinning takes at most a quarter of a CPU, ns.
const SPIN_FROM_NS: f64 = 200_000.0;

/// Time by which a wait for a due request ends early, where `mean_gap_ns` is between two of them.
pub(super) fn spin_ns_for(mean_gap_ns: f64) -> u64 {
    if mean_gap_ns > SPIN_FROM_NS { SPIN_NS } else { 0 }
}

/// When the requests of a worker are due.
#[derive(Debug)]
pub(super) struct OpenLoop {
    arrivals: Arrivals,
    /// The operation of a mix without a rate, which uses all free slots.
    unpaced: Option<Op>,
    spin_ns: u64,
    /// Time by which a sleep exceeds a due time, ns.
    coalescing_ns: u64,
}

impl OpenLoop {
    /// The schedule of `spec`; `None` without a rate.
    pub fn new(spec: &WorkerSpec) -> Option<Box<OpenLoop>> {
        let arrivals = Arrivals::new(&spec.time.rate, spec.source.seed)?;
        let unpaced = match spec.source.pattern.mix {
            Mix::ReadWrite { .. } => {
                [Op::Read, Op::Write].into_iter().find(|&op| spec.mixes(op) && !arrivals.has(op))
            }
            _ => None,
        };
        let gap_ns = spec.time.rate.mean_gap_ns();
        let coalescing_ns = spec.time.rate.coalescing.0;
        Some(Box::new(OpenLoop { arrivals, unpaced, spin_ns: spin_ns_for(gap_ns), coalescing_ns }))
    }

    pub fn begin(&mut self, now: u64) {
        self.arrivals.begin(now);
    }

    /// Delays the schedule.
    pub fn delay(&mut self, delay_ns: u64) {
        self.arrivals.delay(delay_ns);
    }

    pub fn spin_ns(&self) -> u64 {
        self.spin_ns
    }

    /// Whether a request may be made at `now`.
    pub fn peek(&self, now: u64) -> Next<()> {
        let due = self.arrivals.next_due();
        if self.unpaced.is_some() || due <= now { Next::Issue(()) } else { Next::NotBefore(due) }
    }

    /// The end of a sleep for the request that is due at `due`, where something else happens at `change`.
    ///
    /// A worker that is awake issues each request when it is due; one that sleeps issues several after it.
    pub fn wake_at(&self, due: u64, change: u64) -> u64 {
        let wake = due.saturating_add(self.coalescing_ns);
        // Requests that are due before the end of the runtime belong to it, also if the timer is late.
        let is_early = wake.saturating_add(SPIN_NS) < change;
        if due == self.arrivals.next_due() && is_early { wake } else { due }
    }

    /// Requests to submit together at `now`, of `room`: one where sleeps are coalesced, so that none waits for the
    /// submission of others, unless the worker falls behind.
    pub fn batch(&self, now: u64, room: u64) -> u64 {
        let late_ns = now.saturating_sub(self.arrivals.next_due());
        if late_ns <= 2 * self.coalescing_ns && self.coalescing_ns > 0 { room.min(1) } else { room }
    }

    /// The operation of the next request at `now`, if one may be issued, and its due time.
    pub fn take(&mut self, now: u64) -> Option<(Op, Option<u64>)> {
        match self.arrivals.take(now) {
            Some((op, due)) => Some((op, Some(due))),
            None => self.unpaced.map(|op| (op, None)),
        }
    }

    /// Requests of each operation that were due before `end` and not taken.
    pub fn backlog(&self, end: u64) -> impl Iterator<Item = (Op, u64)> + '_ {
        self.arrivals.overdue(end - 1)
    }
}
