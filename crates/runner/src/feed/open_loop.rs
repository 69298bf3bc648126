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
        let spin_ns = spin_ns_for(arrivals.mean_gap_ns());
        Some(Box::new(OpenLoop { arrivals, unpaced, spin_ns }))
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
