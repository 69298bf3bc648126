//! Whether a limit is reached, and what it has in flight.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::limit::{Limit, Limiter};
use crate::rate::TokenRate;

/// Turns within which a limit that was reached has to have been idle before it admits requests at once again.
const IDLE_TURNS: i64 = 4;
/// Time that a limit may be behind what it has in flight: single requests are served out of order, and more slowly than their mean.
pub(super) const MAX_OWED_NS: u64 = 1_000_000_000;

/// What a limit that is reached has in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LimitBacklog {
    /// Time in which it serves that.
    pub(crate) ns: u64,
    /// Requests.
    pub(crate) depth: u64,
}

/// Requests in flight, and the time that a limit takes for them at the rate at which they came, ns.
#[derive(Clone, Debug, Default)]
pub(crate) struct InFlight {
    ends: BinaryHeap<Reverse<(u64, u64)>>,
    ns: u64,
}

impl InFlight {
    /// Forgets those that ended by `at`.
    pub(crate) fn retire(&mut self, at: u64) {
        while let Some(&Reverse((end, ns))) = self.ends.peek()
            && end <= at
        {
            self.ends.pop();
            self.ns -= ns;
        }
    }

    /// Adds one that takes `ns` and ends at `end`.
    pub(crate) fn add(&mut self, end: u64, ns: u64) {
        // A limit takes no longer for all of them than time lasts.
        let ns = ns.min(u64::MAX - self.ns);
        self.ends.push(Reverse((end, ns)));
        self.ns += ns;
    }

    pub(crate) fn requests(&self) -> u64 {
        self.ends.len() as u64
    }
}

/// Whether one limit is reached.
#[derive(Clone, Debug)]
pub(crate) struct Gauge {
    limit: Limit,
    turn_ns: i64,
    in_flight: InFlight,
    /// Time that the limit takes for the request that was charged last, ns.
    own_ns: u64,
    /// How far requests could be ahead of the rate at `at`, ns.
    ahead_ns: i64,
    at: u64,
    is_reached: bool,
    /// The burst credits are exhausted.
    is_exhausted: bool,
}

impl Gauge {
    /// `turn_ns` is [`super::MAX_TURN_NS`] at most.
    pub(crate) fn new(limit: Limit, turn_ns: u64) -> Self {
        let turn_ns = turn_ns.cast_signed();
        let ahead_ns = turn_ns * IDLE_TURNS;
        Gauge {
            limit,
            turn_ns,
            in_flight: InFlight::default(),
            own_ns: 0,
            ahead_ns,
            at: 0,
            is_reached: false,
            is_exhausted: false,
        }
    }

    /// Counts a request of `cost` that arrives at `at`; `limiter` has the credits. What the limit then has in flight, where it is
    /// reached.
    pub(crate) fn charge(&mut self, at: u64, cost: u64, limiter: &Limiter) -> Option<LimitBacklog> {
        self.in_flight.retire(at);
        self.own_ns = 0;
        let rate = self.rate(at, limiter)?;
        self.own_ns = rate.time_for(cost);
        let signed = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX / 4);
        let (idle_ns, own_ns) = (self.turn_ns * IDLE_TURNS, signed(self.own_ns));
        let passed = signed(at.saturating_sub(self.at));
        self.at = at;
        // No more is owed than what is in flight, and what a limiter with turns is behind at its limit.
        let owed = signed(self.in_flight.ns.saturating_add(MAX_OWED_NS));
        self.ahead_ns = self.ahead_ns.max(-owed).saturating_add(passed).min(idle_ns);
        self.is_reached &= self.ahead_ns < idle_ns;
        self.ahead_ns = self.ahead_ns.saturating_sub(own_ns);
        // One request is admitted after idle time, however much it costs.
        if !self.is_reached && self.ahead_ns < idle_ns - self.turn_ns.max(own_ns) {
            self.is_reached = true;
            // What a limiter releases in turns is ahead and behind by a turn, and no less at its limit.
            self.ahead_ns = self.ahead_ns.saturating_sub(self.turn_ns);
        }
        let ns = self.in_flight.ns.saturating_add(self.own_ns);
        self.is_reached.then_some(LimitBacklog { ns, depth: self.in_flight.requests() + 1 })
    }

    /// Keeps the request that was charged last in flight until `end`.
    pub(crate) fn keep(&mut self, end: u64) {
        self.in_flight.add(end, self.own_ns);
    }

    /// Time that a limit that is reached does not serve.
    pub(crate) fn lose(&mut self, ns: u64) {
        if self.is_reached {
            self.ahead_ns = self.ahead_ns.saturating_sub(i64::try_from(ns).unwrap_or(i64::MAX / 4));
        }
    }

    /// Requests in flight.
    pub(crate) fn requests(&self) -> u64 {
        self.in_flight.requests()
    }

    /// The rate at `at`; `None` = unlimited.
    fn rate(&mut self, at: u64, limiter: &Limiter) -> Option<TokenRate> {
        let Limit::Credit { base, burst, capacity, .. } = self.limit else { return self.limit.peak() };
        let left = limiter.credits(at).unwrap_or(0);
        let recovered = u128::from(capacity).min(base.in_ns(self.turn_ns.unsigned_abs() * 4)).max(1);
        self.is_exhausted = left == 0 || self.is_exhausted && u128::from(left) < recovered;
        if self.is_exhausted { Some(base) } else { burst }
    }
}
