//! The account of a ping: what each request came to, and what all of them add up to in constant memory.
//!
//! Pure: whoever asks the device hands in one [`PingSample`] after the other. Which of them count is ioping's rule, so that
//! its outputs can be made from the same account.

mod account;
pub mod classes;
mod course;
mod suitability;

use fathom_model::{Nanos, Op, units};
use fathom_record::{Activity, RunHeader};
use fathom_stats::{Latency, Moments};
use serde::Serialize;

use crate::criterion::{CriterionVerdict, LatencyObjective, ObjectiveVerdict};
use crate::document;
use course::PingCourse;

pub use account::{PingAccount, PingProgress};
pub use fathom_record::ping::{DeviceCounts, Ping, PingCounts, PingHow, PingLoad, PingStall, PingTarget};
pub use suitability::suitability;

/// Where a request was answered, as far as this machine can know.
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

/// A remark on one request.
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
    /// Where it was answered; `None` where it was not asked for or is unknown.
    pub served: Option<ServedBy>,
    /// When it was answered, ns since the ping began.
    pub elapsed_ns: u64,
}

/// What counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
    /// The requests of that time.
    #[serde(flatten)]
    pub load: PingLoad,
}

impl PingWindow {
    /// The deviation of all that counts (population), ns.
    pub fn deviation_ns(&self) -> f64 {
        let n = self.lat_ns.count as f64;
        if n < 1.0 { 0.0 } else { self.lat_ns.stdev() * ((n - 1.0) / n).sqrt() }
    }
}

/// Adds samples up.
#[derive(Clone, Debug)]
pub struct PingTally {
    rules: Rules,
    /// Since the last reading of a period.
    pub period: PingWindow,
    /// Since the beginning.
    whole: PingAccount,
    course: PingCourse,
}

impl PingTally {
    /// An empty account; `scheduled` where requests have a time at which they are due.
    pub fn new(rules: Rules, scheduled: bool) -> PingTally {
        let whole = PingAccount { response_ns: scheduled.then(Latency::default), ..PingAccount::default() };
        PingTally { rules, period: PingWindow::default(), whole, course: PingCourse::new() }
    }

    /// Counts one sample and returns the remark on it.
    pub fn take(&mut self, sample: &PingSample) -> Option<Note> {
        let counts = &mut self.whole.counts;
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
        self.whole.ios[sample.operation] += 1;
        self.whole.bytes[sample.operation] += len;
        let note = if self.whole.counts.requests <= self.rules.warmup {
            Some(Note::Warmup)
        } else if time < self.rules.least_ns {
            Some(Note::TooFast)
        } else if time > self.rules.most_ns {
            Some(Note::TooSlow)
        } else {
            None
        };
        for load in [&mut self.period.load, &mut self.whole.load] {
            load.answered += 1;
            load.answered_bytes += len;
            load.end_ns = sample.elapsed_ns;
            load.too_fast += u64::from(note == Some(Note::TooFast));
            load.too_slow += u64::from(note == Some(Note::TooSlow));
            load.counted_bytes += if note.is_none() { len } else { 0 };
        }
        if note.is_some() {
            return note;
        }
        self.period.lat_ns.record(time);
        self.whole.lat_ns.record(time);
        self.course.add(sample);
        if let (Some(response), Some(ns)) = (&mut self.whole.response_ns, sample.response_ns) {
            response.record(ns);
        }
        let Moments { count, sum, .. } = self.whole.lat_ns.moments;
        let mean = sum / u128::from(count);
        let time = u128::from(time);
        match count {
            0..=FEW => None,
            _ if time * 2 < mean => Some(Note::Fast),
            _ if time > mean * 2 => Some(Note::Slow),
            _ => None,
        }
    }

    /// Notes that a request was made `at_ns`, the first of its interval where it `begins` one.
    pub fn made(&mut self, at_ns: u64, begins: bool) {
        self.whole.latest_ns = at_ns;
        self.whole.intervals += u64::from(begins);
    }

    /// What the requests so far add up to.
    pub fn account(&self) -> PingAccount {
        let mut account = self.whole.clone();
        account.counts.stalls.clear();
        account
    }

    /// The period that ends at `now_ns`; the next one begins there.
    pub fn close_period(&mut self, now_ns: u64) -> PingWindow {
        self.period.load.end_ns = now_ns;
        let load = PingLoad { begin_ns: now_ns, end_ns: now_ns, ..PingLoad::default() };
        std::mem::replace(&mut self.period, PingWindow { load, ..PingWindow::default() })
    }

    /// Notes that a request kept everybody waiting, or still does.
    pub fn stalled(&mut self, stall: PingStall) {
        let counts = &mut self.whole.counts;
        counts.stalled(stall);
        if stall.unanswered {
            counts.requests += 1;
            counts.timeouts += 1;
        }
    }

    /// The results, of a ping that was made like this.
    pub fn result(&self, how: PingHow) -> Ping {
        Ping {
            how,
            counts: self.whole.counts.clone(),
            load: self.whole.load,
            lat_ns: self.whole.lat_ns.clone(),
            response_ns: self.whole.response_ns.clone(),
            series: self.course.intervals(),
            ..Ping::default()
        }
    }
}

/// Below so many samples a mean is no measure for the next.
const FEW: u64 = 5;
const EAGAIN: i64 = 11;

/// The sums of a whole ping.
pub fn whole(ping: &Ping) -> PingWindow {
    PingWindow { lat_ns: ping.lat_ns.moments, load: ping.load }
}

/// The verdicts on the objectives of a run. Requests that failed or had no answer count as slower than any objective.
pub fn verdicts(header: &RunHeader, ping: &Ping) -> Vec<ObjectiveVerdict> {
    let Activity::Ping(settings) = &header.activity else { return Vec::new() };
    let latency = ping.response_ns.as_ref().unwrap_or(&ping.lat_ns);
    let unanswered = ping.counts.stalls.iter().filter(|stall| stall.unanswered).count() as u64;
    let objectives = settings.slo.iter().filter_map(|text| LatencyObjective::parse(text).ok());
    let stalled_ns: u64 = ping.counts.stalls.iter().map(|stall| stall.length_ns).sum();
    let ends = ping.counts.stalls.iter().map(|stall| stall.begin_ns.saturating_add(stall.length_ns));
    let end_ns = ends.chain([ping.load.end_ns]).max().unwrap_or_default();
    let stalled = stalled_ns as f64 / end_ns.saturating_sub(ping.load.begin_ns).max(1) as f64;
    let of = |objective: LatencyObjective| {
        let judged = objective.judge(latency, ping.counts.errors + unanswered);
        // Requests that were due in a stall were not made, and would have been slow.
        let hides = ping.response_ns.is_none() && stalled > objective.statistic().share_beyond();
        if !hides || !judged.verdict.is_met() {
            return judged;
        }
        let stalled = units::duration(Nanos(stalled_ns));
        let reason = format!("no request was made for {stalled}, while one had no answer");
        let remedy = Some("use --schedule fixed".to_owned());
        ObjectiveVerdict { verdict: CriterionVerdict::inconclusive(reason, remedy), ..judged }
    };
    objectives.map(of).collect()
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
        let result = tally.result(PingHow::default());
        assert_eq!((result.load.answered, result.lat_ns.samples()), (11, 8));
        assert_eq!((result.load.too_fast, result.load.too_slow), (1, 1));
        assert_eq!((result.load.counted_bytes, result.load.answered_bytes), (8 * 4096, 11 * 4096));
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
        let counts = tally.result(PingHow::default()).counts;
        assert_eq!((counts.requests, counts.errors, counts.again, counts.short), (4, 1, 1, 1));
        assert_eq!((counts.timeouts, counts.stall_count), (1, 1));
        let whole = tally.result(PingHow::default()).load;
        assert_eq!((whole.answered, whole.answered_bytes), (1, 100));
    }

    #[test]
    fn periods_are_windows_of_their_own() {
        let mut tally = tally();
        for (number, time) in [(1, 100), (2, 100), (3, 300)] {
            tally.take(&sample(number, time));
        }
        let first = tally.close_period(3_000);
        assert_eq!((first.load.answered, first.lat_ns.count, first.load.wall_ns()), (3, 2, 3_000));
        assert!((first.deviation_ns() - 100.0).abs() < 1e-9);
        tally.take(&sample(4, 500));
        let second = tally.close_period(4_500);
        assert_eq!((second.load.answered, second.lat_ns.min, second.load.wall_ns()), (1, 500, 1_500));
        assert_eq!((tally.whole.load.answered, tally.whole.lat_ns.samples()), (4, 3));
    }

    #[test]
    fn what_was_not_asked_in_a_stall_meets_no_objective() {
        let verdict = |stall_ms: u64, response: bool, slo: &str| {
            let latency = Latency::repeated(1000, 500_000);
            let stall = PingStall {
                begin_ns: 5_000_000_000,
                length_ns: stall_ms * 1_000_000,
                ..PingStall::default()
            };
            let ping = Ping {
                counts: PingCounts { stalls: vec![stall], ..PingCounts::default() },
                load: PingLoad { end_ns: 10_000_000_000, ..PingLoad::default() },
                response_ns: response.then(|| latency.clone()),
                lat_ns: latency,
                ..Ping::default()
            };
            let settings = fathom_record::PingActivity { slo: vec![slo.to_owned()] };
            let header = RunHeader { activity: Activity::Ping(settings), ..RunHeader::default() };
            verdicts(&header, &ping).remove(0).verdict.name().to_owned()
        };
        assert_eq!(verdict(50, false, "p99<5ms"), "met");
        assert_eq!(verdict(2_000, false, "p99<5ms"), "inconclusive");
        assert_eq!(verdict(2_000, false, "p50<5ms"), "met");
        // Response times count from when a request was due.
        assert_eq!(verdict(2_000, true, "p99<5ms"), "met");
        assert_eq!(verdict(2_000, false, "p99<0.1ms"), "missed");
    }

    #[test]
    fn memory_does_not_grow_with_stalls() {
        let mut tally = tally();
        for _ in 0..5_000 {
            tally.stalled(PingStall::default());
        }
        let counts = tally.result(PingHow::default()).counts;
        assert_eq!((counts.stall_count, counts.stalls.len()), (5_000, 1_000));
    }
}
