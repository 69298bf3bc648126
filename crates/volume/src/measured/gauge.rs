//! Whether a limit is reached, and what it has in flight.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::limit::{Limit, Limiter};
use crate::rate::TokenRate;

/// Turns within which a limit that was reached has to have been idle before it admits requests at once again.
const IDLE_TURNS: i64 = 4;

/// A limit that is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hold {
    /// Time in which it serves what it has in flight.
    pub(crate) ns: u64,
    /// Requests that it has in flight.
    pub(crate) depth: u64,
}

/// Requests in flight and what they cost.
#[derive(Clone, Debug, Default)]
pub(crate) struct InFlight {
    ends: BinaryHeap<Reverse<(u64, u64)>>,
    cost: u64,
}

impl InFlight {
    /// Forgets those that ended by `at`.
    pub(crate) fn retire(&mut self, at: u64) {
        while let Some(&Reverse((end, cost))) = self.ends.peek()
            && end <= at
        {
            self.ends.pop();
            self.cost -= cost;
        }
    }

    pub(crate) fn add(&mut self, end: u64, cost: u64) {
        self.ends.push(Reverse((end, cost)));
        self.cost += cost;
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
    pub(super) in_flight: InFlight,
    /// How far requests could be ahead of the rate at `at`, ns.
    ahead_ns: i64,
    at: u64,
    is_reached: bool,
    /// The burst credits are exhausted.
    is_exhausted: bool,
}

impl Gauge {
    /// `turn_ns` is [`super::MOST_TURN_NS`] at most.
    pub(crate) fn new(limit: Limit, turn_ns: u64) -> Self {
        let turn_ns = turn_ns.cast_signed();
        let ahead_ns = turn_ns * IDLE_TURNS;
        Gauge {
            limit,
            turn_ns,
            in_flight: InFlight::default(),
            ahead_ns,
            at: 0,
            is_reached: false,
            is_exhausted: false,
        }
    }

    /// Counts a request of `cost` that arrives at `at`; `limiter` has the credits. The time in which the limit serves what it then
    /// has in flight, where it is reached.
    pub(crate) fn charge(&mut self, at: u64, cost: u64, limiter: &Limiter) -> Option<Hold> {
        self.in_flight.retire(at);
        let rate = self.rate(at, limiter)?;
        let passed = i64::try_from(at.saturating_sub(self.at)).unwrap_or(i64::MAX / 4);
        let idle_ns = self.turn_ns * IDLE_TURNS;
        self.at = at;
        self.ahead_ns = self.ahead_ns.saturating_add(passed).min(idle_ns);
        self.is_reached &= self.ahead_ns < idle_ns;
        let taken = i64::try_from(rate.time_for(cost)).unwrap_or(i64::MAX / 4);
        self.ahead_ns = self.ahead_ns.saturating_sub(taken);
        if !self.is_reached && self.ahead_ns < idle_ns - self.turn_ns {
            self.is_reached = true;
            // What a limiter releases in turns is ahead and behind by a turn, and no less at its limit.
            self.ahead_ns = self.ahead_ns.saturating_sub(self.turn_ns);
        }
        let ns = rate.time_for(self.in_flight.cost.saturating_add(cost));
        self.is_reached.then_some(Hold { ns, depth: self.in_flight.requests() + 1 })
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
