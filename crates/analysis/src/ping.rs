//! The account of a ping: what each request came to, and what all of them add up to in constant memory.
//!
//! Pure: whoever asks the device hands in one [`PingSample`] after the other. Which of them count is ioping's rule, so that
//! its outputs can be made from the same account.

pub mod classes;
mod how;

use std::collections::BTreeMap;

use fathom_model::Op;
use fathom_record::LatencyRecord;
use fathom_stats::{Latency, Moments};

pub use how::{DeviceCounts, Ping, PingHow, PingTarget};

/// Where a request was answered, as far as it can be told from this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServedBy {
    /// By what lies beneath the page cache: the device, or whatever stands for it there.
    Device,
    /// By this machine's memory.
    Cache,
    /// By the file system, which knows that nothing was ever written there.
    Hole,
}

impl ServedBy {
    /// One word for lines and JSON.
    pub const fn word(self) -> &'static str {
        match self {
            ServedBy::Device => "device",
            ServedBy::Cache => "cache",
            ServedBy::Hole => "hole",
        }
    }
}

/// What is to be said of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// Among the first, which are not counted.
    Warmup,
    /// Below the least time that counts.
    TooFast,
    /// Above the greatest time that counts.
    TooSlow,
    /// Below half the mean so far.
    Fast,
    /// Above twice the mean so far.
    Slow,
    /// It would have had to wait and was asked not to.
    Again,
}

impl Note {
    /// ioping's words.
    pub const fn words(self) -> &'static str {
        match self {
            Note::Warmup => "warmup",
            Note::TooFast => "too fast",
            Note::TooSlow => "too slow",
            Note::Fast => "fast",
            Note::Slow => "slow",
            Note::Again => "EAGAIN",
        }
    }
}

/// One request that has come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PingSample {
    /// From 1 on.
    pub number: u64,
    /// Read or write.
    pub op: Op,
    /// Bytes from the start of the target.
    pub offset: u64,
    /// Bytes asked for.
    pub len: u32,
    /// Bytes moved, or a negative errno.
    pub result: i64,
    /// From the request to its answer, ns; with the flush where it is part of the request.
    pub time_ns: u64,
    /// From the moment it was due, ns; `None` where no schedule is kept.
    pub response_ns: Option<u64>,
    /// Where it was answered; `None` where nobody asked or nobody can tell.
    pub served: Option<ServedBy>,
    /// When it was answered, ns since the ping began.
    pub at_ns: u64,
}

/// What counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// So many requests at the start do not.
    pub warmup: u64,
    /// Requests that took less do not, ns.
    pub least_ns: u64,
    /// Requests that took more do not, ns.
    pub most_ns: u64,
    /// Requests that took more are counted as timed out as well, ns.
    pub timeout_ns: u64,
}

/// The sums of a stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PingWindow {
    /// Times of the requests that count, ns.
    pub time: Moments,
    /// Bytes they moved.
    pub bytes: u64,
    /// Requests in all, of those that had an answer.
    pub all: u64,
    /// Bytes in all.
    pub all_bytes: u64,
    /// Requests that were too fast to count.
    pub too_fast: u64,
    /// Requests that were too slow to count.
    pub too_slow: u64,
    /// Where it begins, ns since the ping began.
    pub begin_ns: u64,
    /// Where it ends.
    pub end_ns: u64,
}

impl PingWindow {
    /// From its begin to its end, ns.
    pub fn wall_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.begin_ns)
    }

    /// The deviation of all that counts (population), ns.
    pub fn deviation_ns(&self) -> f64 {
        let n = self.time.count as f64;
        if n < 1.0 { 0.0 } else { self.time.stdev() * ((n - 1.0) / n).sqrt() }
    }
}

/// A request that kept everybody waiting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PingStall {
    /// When the request was made, ns since the ping began.
    pub begin_ns: u64,
    /// How long it took, or has taken so far, ns.
    pub length_ns: u64,
    /// Where it went, bytes.
    pub offset: u64,
    /// It was never answered.
    pub unanswered: bool,
}

/// Stalls kept one by one; those beyond are only counted.
const STALLS_KEPT: usize = 1000;

/// Adds samples up.
#[derive(Clone, Debug)]
pub struct PingTally {
    rules: Rules,
    /// Since the last reading of a period.
    pub period: PingWindow,
    /// Since the beginning.
    pub whole: PingWindow,
    time: Latency,
    response: Option<Latency>,
    counts: Counts,
}

/// How many requests came to what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests made.
    pub requests: u64,
    /// Failed requests by errno.
    pub errors: BTreeMap<i32, u64>,
    /// Requests that would have had to wait.
    pub again: u64,
    /// Requests that moved less than was asked for.
    pub short: u64,
    /// Requests that took longer than the time-out, or were never answered.
    pub timeouts: u64,
    /// Answered by the device.
    pub device: u64,
    /// Answered by this machine's memory.
    pub cache: u64,
    /// Answered by the file system out of a hole.
    pub hole: u64,
    /// Time of the first request that was answered, ns.
    pub first_ns: Option<u64>,
    /// The first stalls.
    pub stalls: Vec<PingStall>,
    /// All stalls.
    pub stall_count: u64,
}

impl Counts {
    /// Failed requests.
    pub fn failed(&self) -> u64 {
        self.errors.values().sum()
    }
}

impl PingTally {
    /// An empty account; `scheduled` where requests have a time at which they are due.
    pub fn new(rules: Rules, scheduled: bool) -> PingTally {
        PingTally {
            rules,
            period: PingWindow::default(),
            whole: PingWindow::default(),
            time: Latency::default(),
            response: scheduled.then(Latency::default),
            counts: Counts::default(),
        }
    }

    /// Takes one sample and says what is to be said of it.
    pub fn take(&mut self, sample: &PingSample) -> Option<Note> {
        let counts = &mut self.counts;
        counts.requests += 1;
        if sample.result == 0 && sample.len > 0 {
            // Beyond the end: nothing was asked of any device.
            counts.short += 1;
            return None;
        }
        if sample.time_ns > self.rules.timeout_ns {
            counts.timeouts += 1;
        }
        if sample.result < 0 {
            if -sample.result == EAGAIN {
                counts.again += 1;
                return Some(Note::Again);
            }
            *counts.errors.entry(-sample.result as i32).or_default() += 1;
            return None;
        }
        counts.first_ns.get_or_insert(sample.time_ns);
        counts.short += u64::from(sample.result < i64::from(sample.len));
        match sample.served {
            Some(ServedBy::Device) => counts.device += 1,
            Some(ServedBy::Cache) => counts.cache += 1,
            Some(ServedBy::Hole) => counts.hole += 1,
            None => {}
        }
        self.count(sample)
    }

    fn count(&mut self, sample: &PingSample) -> Option<Note> {
        let (len, time) = (sample.result as u64, sample.time_ns);
        let note = if self.counts.requests <= self.rules.warmup {
            Some(Note::Warmup)
        } else if time < self.rules.least_ns {
            Some(Note::TooFast)
        } else if time > self.rules.most_ns {
            Some(Note::TooSlow)
        } else {
            None
        };
        for window in [&mut self.period, &mut self.whole] {
            window.all += 1;
            window.all_bytes += len;
            window.end_ns = sample.at_ns;
            window.too_fast += u64::from(note == Some(Note::TooFast));
            window.too_slow += u64::from(note == Some(Note::TooSlow));
            if note.is_none() {
                window.time.record(time);
                window.bytes += len;
            }
        }
        if note.is_some() {
            return note;
        }
        self.time.record(time);
        if let (Some(response), Some(ns)) = (&mut self.response, sample.response_ns) {
            response.record(ns);
        }
        let Moments { count, sum, .. } = self.whole.time;
        let mean = sum / u128::from(count);
        let time = u128::from(time);
        match count {
            0..=FEW => None,
            _ if time * 2 < mean => Some(Note::Fast),
            _ if time > mean * 2 => Some(Note::Slow),
            _ => None,
        }
    }

    /// The period that ends at `now_ns`; the next one begins there.
    pub fn close_period(&mut self, now_ns: u64) -> PingWindow {
        self.period.end_ns = now_ns;
        let next = PingWindow { begin_ns: now_ns, end_ns: now_ns, ..PingWindow::default() };
        std::mem::replace(&mut self.period, next)
    }

    /// Notes that a request kept everybody waiting, or still does.
    pub fn stalled(&mut self, stall: PingStall) {
        self.counts.stall_count += 1;
        if self.counts.stalls.len() < STALLS_KEPT {
            self.counts.stalls.push(stall);
        }
        if stall.unanswered {
            self.counts.requests += 1;
            self.counts.timeouts += 1;
        }
    }

    /// What came of it.
    pub fn result(&self) -> PingResult {
        PingResult {
            whole: self.whole,
            time: LatencyRecord::from_stats(&self.time),
            response: self.response.as_ref().map(LatencyRecord::from_stats),
            counts: self.counts.clone(),
        }
    }
}

/// Below so many samples a mean is no measure for the next.
const FEW: u64 = 5;
const EAGAIN: i64 = 11;

/// What the requests of a ping came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PingResult {
    /// The sums of all.
    pub whole: PingWindow,
    /// Times of the requests that count.
    pub time: LatencyRecord,
    /// The same from the moments they were due; `None` where no schedule was kept.
    pub response: Option<LatencyRecord>,
    /// How many came to what.
    pub counts: Counts,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(number: u64, time_ns: u64) -> PingSample {
        PingSample {
            number,
            op: Op::Read,
            offset: 0,
            len: 4096,
            result: 4096,
            time_ns,
            response_ns: None,
            served: Some(ServedBy::Device),
            at_ns: number * 1000,
        }
    }

    fn tally() -> PingTally {
        let rules = Rules { warmup: 1, least_ns: 10, most_ns: 10_000, timeout_ns: 5_000 };
        PingTally::new(rules, false)
    }

    #[test]
    fn what_counts_and_what_is_said() {
        let mut tally = tally();
        let mut number = 0;
        let mut check = |time_ns: u64, expected: Option<Note>| {
            number += 1;
            assert_eq!(tally.take(&sample(number, time_ns)), expected, "request {number}");
        };
        check(1_000_000, Some(Note::Warmup));
        check(9, Some(Note::TooFast));
        check(10_001, Some(Note::TooSlow));
        for _ in 0..5 {
            check(100, None);
        }
        check(10, Some(Note::Fast));
        check(1_000, Some(Note::Slow));
        check(200, None);
        let result = tally.result();
        assert_eq!((result.whole.all, result.whole.time.count, result.time.samples()), (11, 8, 8));
        assert_eq!((result.whole.too_fast, result.whole.too_slow), (1, 1));
        assert_eq!((result.whole.bytes, result.whole.all_bytes), (8 * 4096, 11 * 4096));
        assert_eq!((result.counts.timeouts, result.counts.device), (2, 11));
        assert_eq!(result.counts.first_ns, Some(1_000_000));
    }

    #[test]
    fn failures_are_counted_apart() {
        let mut tally = tally();
        assert_eq!(tally.take(&PingSample { result: -11, ..sample(1, 50) }), Some(Note::Again));
        assert_eq!(tally.take(&PingSample { result: -5, ..sample(2, 50) }), None);
        assert_eq!(tally.take(&PingSample { result: 100, ..sample(3, 50) }), None);
        tally.stalled(PingStall { unanswered: true, ..PingStall::default() });
        let counts = tally.result().counts;
        assert_eq!((counts.requests, counts.failed(), counts.again, counts.short), (4, 1, 1, 1));
        assert_eq!((counts.timeouts, counts.stall_count), (1, 1));
        let whole = tally.result().whole;
        assert_eq!((whole.all, whole.all_bytes), (1, 100));
    }

    #[test]
    fn periods_are_windows_of_their_own() {
        let mut tally = tally();
        for (number, time) in [(1, 100), (2, 100), (3, 300)] {
            tally.take(&sample(number, time));
        }
        let first = tally.close_period(3_000);
        assert_eq!((first.all, first.time.count, first.wall_ns()), (3, 2, 3_000));
        assert!((first.deviation_ns() - 100.0).abs() < 1e-9);
        tally.take(&sample(4, 500));
        let second = tally.close_period(4_500);
        assert_eq!((second.all, second.time.min, second.wall_ns()), (1, 500, 1_500));
        assert_eq!((tally.whole.all, tally.whole.time.count), (4, 3));
    }

    #[test]
    fn memory_does_not_grow_with_stalls() {
        let mut tally = tally();
        for _ in 0..5_000 {
            tally.stalled(PingStall::default());
        }
        let counts = tally.result().counts;
        assert_eq!((counts.stall_count, counts.stalls.len()), (5_000, STALLS_KEPT));
    }
}
