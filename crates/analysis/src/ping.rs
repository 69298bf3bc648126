//! The account of a ping: what each request came to, and what all of them add up to in constant memory.
//!
//! Pure: whoever asks the device hands in one [`PingSample`] after the other. Which of them count is ioping's rule, so that
//! its outputs can be made from the same account.

pub mod classes;
mod how;

use std::collections::BTreeMap;

use fathom_model::Op;
use fathom_stats::{Latency, Moments};
use serde::Serialize;

use crate::document;
use classes::LatencyClass;

pub use how::{DeviceCounts, Ping, PingHow, PingTarget};

/// Where a request was answered, as far as it can be told from this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PingSample {
    /// Its number, from 1 on.
    pub request: u64,
    /// Read or write.
    pub operation: Op,
    /// Bytes from the start of the target.
    pub offset_bytes: u64,
    /// Bytes asked for.
    pub size_bytes: u32,
    /// Bytes moved, or a negative errno.
    #[serde(skip)]
    pub result: i64,
    /// From the request to its answer, ns; with the flush where it is part of the request.
    pub lat_ns: u64,
    /// From the moment it was due, ns; `None` where no schedule is kept.
    pub response_ns: Option<u64>,
    /// Where it was answered; `None` where nobody asked or nobody can tell.
    pub served: Option<ServedBy>,
    /// When it was answered, ns since the ping began.
    pub elapsed_ns: u64,
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PingWindow {
    /// Times of the requests that count, ns.
    #[serde(serialize_with = "document::moments")]
    pub lat_ns: Moments,
    /// Bytes they moved.
    pub counted_bytes: u64,
    /// Requests that had an answer, whether they count or not.
    pub answered: u64,
    /// Bytes they moved.
    pub answered_bytes: u64,
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
        let n = self.lat_ns.count as f64;
        if n < 1.0 { 0.0 } else { self.lat_ns.stdev() * ((n - 1.0) / n).sqrt() }
    }
}

/// A request that kept everybody waiting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PingStall {
    /// When the request was made, ns since the ping began.
    pub begin_ns: u64,
    /// How long it took, or has taken so far, ns.
    pub length_ns: u64,
    /// Where it went, bytes.
    pub offset_bytes: u64,
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

/// How many requests were answered where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ServedCounts {
    /// By the device.
    pub device: u64,
    /// By this machine's memory.
    pub cache: u64,
    /// By the file system out of a hole.
    pub hole: u64,
}

/// How many requests came to what.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Requests made.
    pub requests: u64,
    /// Failed requests.
    pub errors: u64,
    /// Failed requests by errno.
    pub errors_by_errno: BTreeMap<i32, u64>,
    /// Requests that would have had to wait.
    pub again: u64,
    /// Requests that moved less than was asked for.
    pub short: u64,
    /// Requests that took longer than the time-out, or were never answered.
    pub timeouts: u64,
    /// Where requests were answered.
    pub served: ServedCounts,
    /// Time of the first request that was answered, ns.
    pub first_ns: Option<u64>,
    /// The first stalls.
    pub stalls: Vec<PingStall>,
    /// All stalls.
    pub stall_count: u64,
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
        if sample.result == 0 && sample.size_bytes > 0 {
            // Beyond the end: nothing was asked of any device.
            counts.short += 1;
            return None;
        }
        if sample.lat_ns > self.rules.timeout_ns {
            counts.timeouts += 1;
        }
        if sample.result < 0 {
            if -sample.result == EAGAIN {
                counts.again += 1;
                return Some(Note::Again);
            }
            counts.errors += 1;
            *counts.errors_by_errno.entry(-sample.result as i32).or_default() += 1;
            return None;
        }
        counts.first_ns.get_or_insert(sample.lat_ns);
        counts.short += u64::from(sample.result < i64::from(sample.size_bytes));
        match sample.served {
            Some(ServedBy::Device) => counts.served.device += 1,
            Some(ServedBy::Cache) => counts.served.cache += 1,
            Some(ServedBy::Hole) => counts.served.hole += 1,
            None => {}
        }
        self.count(sample)
    }

    fn count(&mut self, sample: &PingSample) -> Option<Note> {
        let (len, time) = (sample.result as u64, sample.lat_ns);
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
            window.answered += 1;
            window.answered_bytes += len;
            window.end_ns = sample.elapsed_ns;
            window.too_fast += u64::from(note == Some(Note::TooFast));
            window.too_slow += u64::from(note == Some(Note::TooSlow));
            if note.is_none() {
                window.lat_ns.record(time);
                window.counted_bytes += len;
            }
        }
        if note.is_some() {
            return note;
        }
        self.time.record(time);
        if let (Some(response), Some(ns)) = (&mut self.response, sample.response_ns) {
            response.record(ns);
        }
        let Moments { count, sum, .. } = self.whole.lat_ns;
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
        let wall = self.whole.wall_ns();
        let rate = |count: u64| if wall > 0 { count as f64 * 1e9 / wall as f64 } else { 0.0 };
        PingResult {
            whole: self.whole,
            iops: rate(self.whole.answered),
            bytes_per_second: rate(self.whole.answered_bytes),
            histogram: classes::classes(&self.time),
            lat_ns: self.time.clone(),
            response_ns: self.response.clone(),
            counts: self.counts.clone(),
        }
    }
}

/// Below so many samples a mean is no measure for the next.
const FEW: u64 = 5;
const EAGAIN: i64 = 11;

/// What the requests of a ping came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PingResult {
    /// How many came to what.
    #[serde(flatten)]
    pub counts: Counts,
    /// The sums of all.
    pub whole: PingWindow,
    /// Requests that had an answer, a second.
    pub iops: f64,
    /// Bytes they moved, a second.
    pub bytes_per_second: f64,
    /// Times of the requests that count: without warm-up and what is too fast or too slow.
    #[serde(serialize_with = "document::summary")]
    pub lat_ns: Latency,
    /// The same from the moments they were due; `None` where no schedule was kept.
    #[serde(serialize_with = "document::summary_or_null")]
    pub response_ns: Option<Latency>,
    /// Those times in classes.
    pub histogram: Vec<LatencyClass>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(number: u64, time_ns: u64) -> PingSample {
        PingSample {
            request: number,
            operation: Op::Read,
            offset_bytes: 0,
            size_bytes: 4096,
            result: 4096,
            lat_ns: time_ns,
            response_ns: None,
            served: Some(ServedBy::Device),
            elapsed_ns: number * 1000,
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
        assert_eq!((result.whole.answered, result.whole.lat_ns.count, result.lat_ns.samples()), (11, 8, 8));
        assert_eq!((result.whole.too_fast, result.whole.too_slow), (1, 1));
        assert_eq!((result.whole.counted_bytes, result.whole.answered_bytes), (8 * 4096, 11 * 4096));
        assert_eq!((result.counts.timeouts, result.counts.served.device), (2, 11));
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
        assert_eq!((counts.requests, counts.errors, counts.again, counts.short), (4, 1, 1, 1));
        assert_eq!((counts.timeouts, counts.stall_count), (1, 1));
        let whole = tally.result().whole;
        assert_eq!((whole.answered, whole.answered_bytes), (1, 100));
    }

    #[test]
    fn periods_are_windows_of_their_own() {
        let mut tally = tally();
        for (number, time) in [(1, 100), (2, 100), (3, 300)] {
            tally.take(&sample(number, time));
        }
        let first = tally.close_period(3_000);
        assert_eq!((first.answered, first.lat_ns.count, first.wall_ns()), (3, 2, 3_000));
        assert!((first.deviation_ns() - 100.0).abs() < 1e-9);
        tally.take(&sample(4, 500));
        let second = tally.close_period(4_500);
        assert_eq!((second.answered, second.lat_ns.min, second.wall_ns()), (1, 500, 1_500));
        assert_eq!((tally.whole.answered, tally.whole.lat_ns.count), (4, 3));
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
