//! What is counted where requests are offered by a schedule rather than as the depth lets them.
//!
//! Each request has a time at which it is due, which no stall moves. Its response time counts from there, so waiting
//! behind a stalled request is part of it, as it is for whoever sends requests without asking how the device is.

use serde::{Deserialize, Serialize};

use crate::Latency;
use crate::live::{Cell, LiveLatency};

/// One operation under a schedule.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OpenLoop {
    /// Due to completed.
    pub response: Latency,
    /// Due, or since when there was room for it, to start: what the driver itself was late.
    pub late: Latency,
    /// Longest time from due to start, whatever the reason, ns.
    pub latest_ns: u64,
    /// Requests that were due and had found no room when issuing ended.
    pub backlog: u64,
}

impl OpenLoop {
    /// Adds what another worker counted.
    pub fn merge(&mut self, other: &OpenLoop) {
        self.response.merge(&other.response);
        self.late.merge(&other.late);
        self.latest_ns = self.latest_ns.max(other.latest_ns);
        self.backlog += other.backlog;
    }
}

/// One operation under a schedule being counted.
#[derive(Debug, Default)]
pub struct LiveOpenLoop {
    response: LiveLatency,
    late: LiveLatency,
    latest_ns: Cell,
    backlog: Cell,
}

/// The moments of a request under a schedule, session ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offered {
    /// When it was due.
    pub due: u64,
    /// When it was due and there was room for it.
    pub ready: u64,
    /// When it was made.
    pub start: u64,
    /// When it had completed.
    pub completed: u64,
}

impl LiveOpenLoop {
    /// Counts a request that completed whole. Only the owning worker may call this.
    pub fn complete(&self, offered: &Offered) {
        let Offered { due, ready, start, completed } = *offered;
        self.response.record_long(completed.saturating_sub(due));
        self.late.record(start.saturating_sub(ready));
        self.latest_ns.set(self.latest_ns.get().max(start.saturating_sub(due)));
    }

    /// Says how many requests were due and not made when issuing ended. Only the owning worker may call this.
    pub fn leave(&self, backlog: u64) {
        self.backlog.set(backlog);
    }

    /// The counts so far as plain data.
    pub fn read(&self) -> OpenLoop {
        OpenLoop {
            response: self.response.read(),
            late: self.late.read(),
            latest_ns: self.latest_ns.get(),
            backlog: self.backlog.get(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn response_counts_from_the_intended_start() {
        let live = LiveOpenLoop::default();
        live.complete(&Offered { due: 100, ready: 100, start: 110, completed: 150 });
        live.complete(&Offered { due: 200, ready: 900, start: 905, completed: 1000 });
        live.leave(3);
        let mut read = live.read();
        assert_eq!((read.response.moments.sum, read.response.moments.max), (850, 800));
        assert_eq!((read.late.moments.sum, read.latest_ns, read.backlog), (15, 705, 3));
        let other = live.read();
        read.merge(&other);
        assert_eq!((read.response.moments.count, read.latest_ns, read.backlog), (4, 705, 6));
    }

    #[test]
    fn days_of_waiting_are_added_up() {
        const WEEK: u64 = 7 * 86_400 * 1_000_000_000;
        let live = LiveOpenLoop::default();
        // 2^64 ns are some 30,500 weeks.
        for _ in 0..70_000 {
            live.complete(&Offered { due: 0, ready: WEEK, start: WEEK, completed: WEEK });
        }
        let read = live.read().response;
        assert_eq!((read.moments.sum, read.moments.mean()), (70_000 * u128::from(WEEK), WEEK as f64));
    }
}
