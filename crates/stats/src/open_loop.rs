//! Response times of requests under a rate.
//!
//! Each request has a due time that no stall moves. Its response time counts from the due time, so it includes waiting
//! behind a stalled request, as it does for clients that send requests independently of the device.

use serde::{Deserialize, Serialize};

use crate::Latency;
use crate::live::{Cell, LiveLatency};

/// One operation under a rate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OpenLoop {
    /// Due to completed.
    pub response: Latency,
    /// From due, or from when a slot was free if that was later, to start: the delay of the driver itself.
    pub late: Latency,
    /// Longest time from due to start, for any reason, ns.
    pub latest_ns: u64,
    /// Requests that were due and not issued when issuing ended.
    pub backlog: u64,
}

impl OpenLoop {
    /// Adds the counts of another worker.
    pub fn merge(&mut self, other: &OpenLoop) {
        self.response.merge(&other.response);
        self.late.merge(&other.late);
        self.latest_ns = self.latest_ns.max(other.latest_ns);
        self.backlog += other.backlog;
    }
}

/// Counters of one operation under a rate.
#[derive(Debug, Default)]
pub struct LiveOpenLoop {
    response: LiveLatency,
    late: LiveLatency,
    latest_ns: Cell,
    backlog: Cell,
}

/// The times of a request under a rate, session ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offered {
    /// Due time.
    pub due: u64,
    /// When it was due and a slot was free.
    pub ready: u64,
    /// Start.
    pub start: u64,
    /// Completion.
    pub completed: u64,
}

impl LiveOpenLoop {
    /// Counts a request that completed in full. Only the owning worker may call this.
    pub fn complete(&self, offered: &Offered) {
        let Offered { due, ready, start, completed } = *offered;
        self.response.record_long(completed.saturating_sub(due));
        self.late.record(start.saturating_sub(ready));
        self.latest_ns.set(self.latest_ns.get().max(start.saturating_sub(due)));
    }

    /// Stores the number of requests that were due and not issued when issuing ended. Only the owning worker may call
    /// this.
    pub fn set_backlog(&self, backlog: u64) {
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
        live.set_backlog(3);
        let mut read = live.read();
        assert_eq!((read.response.moments.sum, read.response.moments.max), (850, 800));
        assert_eq!((read.late.moments.sum, read.latest_ns, read.backlog), (15, 705, 3));
        let other = live.read();
        read.merge(&other);
        assert_eq!((read.response.moments.count, read.latest_ns, read.backlog), (4, 705, 6));
    }

    #[test]
    fn sums_of_week_long_responses_exceed_64_bits() {
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
