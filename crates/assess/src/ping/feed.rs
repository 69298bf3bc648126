//! The requests of a ping: their order, when each is due, and where it ends. Pure: it knows neither clock nor engine.

use fathom_model::{Op, Request};
use fathom_runner::SingleRequest;

use super::random::Random;
use super::settings::{LatePolicy, Operation, PingSettings};

/// A request at a fixed time is not slept for to the end: waking takes longer than many a device.
const SPIN_NS: u64 = 60_000;
/// After a failure the next request waits at least so long: errors come back at once.
const AFTER_ERROR_NS: u64 = 100_000_000;
pub(super) const EAGAIN: i64 = 11;

/// Decides what is requested next, and when.
pub(super) struct PingFeed {
    pub settings: PingSettings,
    /// Of the offsets and the payloads.
    pub random: Random,
    /// Requests that fit into the range.
    blocks: u64,
    /// When the ping began, session ns.
    pub begin_ns: u64,
    /// When the latest request, or the burst that it belongs to, was due, session ns.
    pub due_ns: u64,
    /// The number of the latest request, from 1 on.
    pub number: u64,
    /// Completed requests of a burst that goes on with the next one; 0 where a new one begins.
    in_burst: u64,
    /// The latest request failed.
    has_failed: bool,
}

impl PingFeed {
    /// Requests that spread over `range` bytes and begin at `begin_ns`.
    pub fn new(settings: PingSettings, range: u64, begin_ns: u64, random: Random) -> PingFeed {
        let (blocks, due_ns) = (range / settings.size, begin_ns);
        PingFeed { settings, random, blocks, begin_ns, due_ns, number: 0, in_burst: 0, has_failed: false }
    }

    /// The next request; `None` where the ping has come to its end.
    pub fn next(&mut self, now: u64) -> Option<SingleRequest> {
        if self.number > 0 && (self.schedule(now) || self.settings.count.is_some_and(|it| self.number >= it))
        {
            return None;
        }
        let settings = &self.settings;
        let block = if settings.linear { self.number } else { self.random.next() } % self.blocks;
        self.number += 1;
        let op = match settings.operation {
            Operation::Read => Op::Read,
            Operation::Mixed if self.number.is_multiple_of(2) => Op::Read,
            Operation::Mixed | Operation::Write => Op::Write,
        };
        let is_slept = settings.schedule == LatePolicy::Waiting || settings.interval_ns < 4 * SPIN_NS;
        let offset = settings.offset + block * settings.size;
        Some(SingleRequest {
            request: Request { op, file: 0, len: settings.size as u32, offset },
            not_before_ns: if self.in_burst > 0 { 0 } else { self.due_ns },
            spin_ns: if is_slept { 0 } else { SPIN_NS },
            syncs: op == Op::Write && settings.flushes(),
        })
    }

    /// Sets when the next request is due; true where that is beyond the end.
    fn schedule(&mut self, now: u64) -> bool {
        let interval_ns = self.settings.interval_ns;
        if self.in_burst == 0 {
            self.due_ns = self.due_ns.saturating_add(interval_ns);
            if self.settings.schedule == LatePolicy::Waiting {
                self.due_ns = self.due_ns.max(now);
            }
        }
        if self.has_failed {
            self.due_ns = self.due_ns.max(now + AFTER_ERROR_NS.min(interval_ns.max(AFTER_ERROR_NS / 10)));
        }
        let end = self.settings.work_ns.map(|span| self.begin_ns.saturating_add(span));
        end.is_some_and(|end| self.due_ns >= end || (self.in_burst > 0 && now >= end))
    }

    /// True where the latest request is the first of its interval.
    pub const fn begins_interval(&self) -> bool {
        self.in_burst == 0
    }

    /// Takes the result of the latest request; true where it was the last of a burst.
    pub fn completed(&mut self, result: i64) -> bool {
        let burst = self.settings.burst;
        self.has_failed = result < 0 && -result != EAGAIN;
        self.in_burst = if result >= 0 && self.in_burst + 1 < burst { self.in_burst + 1 } else { 0 };
        burst > 0 && self.in_burst == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGIN_NS: u64 = 1_000;

    /// The requests of `settings` over four blocks: operation, block, not before, and the times at which they complete with
    /// `results`.
    fn requests(settings: PingSettings, results: &[(u64, i64)]) -> Vec<(Op, u64, u64)> {
        let settings = PingSettings { linear: true, offset: 4096, ..settings };
        let mut feed = PingFeed::new(settings, 4 * 4096 + 512, BEGIN_NS, Random::new(1));
        let (mut now, mut results) = (BEGIN_NS, results.iter());
        let mut requests = Vec::new();
        while let Some(single) = feed.next(now) {
            let Request { op, offset, .. } = single.request;
            requests.push((op, offset / 4096 - 1, single.not_before_ns.saturating_sub(BEGIN_NS)));
            let Some((at_ns, result)) = results.next() else { break };
            now = BEGIN_NS + at_ns;
            feed.completed(*result);
        }
        requests
    }

    #[test]
    fn late_requests_move_a_waiting_schedule_and_not_a_fixed_one() {
        let check = |schedule, expected: [u64; 4]| {
            let settings = PingSettings { schedule, interval_ns: 100, ..PingSettings::new() };
            let due = requests(settings, &[(10, 4096), (350, 4096), (360, 4096)]);
            assert_eq!(due.iter().map(|(_, _, due)| *due).collect::<Vec<_>>(), expected, "{schedule:?}");
        };
        check(LatePolicy::Waiting, [0, 100, 350, 450]);
        check(LatePolicy::Fixed, [0, 100, 200, 300]);
    }

    #[test]
    fn blocks_follow_each_other_and_operations_alternate() {
        let settings = PingSettings { operation: Operation::Mixed, interval_ns: 0, ..PingSettings::new() };
        let made = requests(settings, &[(0, 4096); 4]);
        let made: Vec<(Op, u64)> = made.into_iter().map(|(op, block, _)| (op, block)).collect();
        assert_eq!(made, [(Op::Write, 0), (Op::Read, 1), (Op::Write, 2), (Op::Read, 3), (Op::Write, 0)]);
    }

    #[test]
    fn a_burst_ends_by_its_count_and_by_a_failure() {
        let settings = PingSettings { burst: 2, interval_ns: 1_000_000_000, ..PingSettings::new() };
        let due = requests(settings, &[(10, 4096), (20, 4096), (1_000_000_010, -5), (2_000_000_010, -11)]);
        let due: Vec<u64> = due.into_iter().map(|(_, _, due)| due).collect();
        assert_eq!(due, [0, 0, 1_000_000_000, 2_000_000_000, 3_000_000_000]);
    }

    #[test]
    fn after_a_failure_the_next_request_waits_and_after_a_refusal_it_does_not() {
        let settings = PingSettings { interval_ns: 0, ..PingSettings::new() };
        let due = requests(settings, &[(10, -5), (20_000_000, -11)]);
        assert_eq!(due.into_iter().map(|(_, _, due)| due).collect::<Vec<_>>(), [0, 10_000_010, 20_000_000]);
    }

    #[test]
    fn the_count_and_the_time_end_a_ping() {
        let check = |settings: PingSettings, at_ns: &[u64], expected: usize| {
            let settings = PingSettings { interval_ns: 100, ..settings };
            let results: Vec<(u64, i64)> = at_ns.iter().map(|at_ns| (*at_ns, 4096)).collect();
            assert_eq!(requests(settings, &results).len(), expected);
        };
        let settings = PingSettings::new;
        check(PingSettings { count: Some(3), ..settings() }, &[10, 110, 210, 310], 3);
        // None is made that would be due at the end or later.
        check(PingSettings { work_ns: Some(200), ..settings() }, &[10, 110, 210], 2);
        check(PingSettings { work_ns: Some(100), burst: 5, ..settings() }, &[40, 90, 100, 110], 3);
    }
}
