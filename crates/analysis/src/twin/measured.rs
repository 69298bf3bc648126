//! What a load came to on a volume, measured once or more: a client that was held up, and slow requests that are rare, make one
//! measurement differ from the next.

use fathom_record::{Latency, TestRecord, TestStatus};

use super::fit::{latency_of, rate_of};
use super::probe::{LatencyProbe, ProbedLoad};

/// Largest difference of rates, and of 99th percentiles, as a share of the volume's: from there on they are not the same.
pub const RATE_WITHIN: f64 = 0.03;
/// See [`RATE_WITHIN`].
pub const P99_WITHIN: f64 = 0.1;
/// Standard errors of a difference that are no chance.
const SIGMAS: f64 = 3.0;
/// To this share the mean latency of a load is to be known that no limit holds: twins then have its rate, also where one request in some
/// hundred takes much of the time.
const MEAN_WITHIN: f64 = 0.0075;

/// Requests of one load, and their latencies.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoadMeasurement {
    /// Requests a second.
    pub iops: f64,
    /// Time that it took, s.
    seconds: f64,
    /// Their latencies.
    pub latency: Latency,
}

/// All measurements of one load, as one.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct LoadMeasurements {
    /// Those that agree.
    pub(super) one: LoadMeasurement,
    /// Times that it was measured.
    pub(super) times: u32,
    /// No other contradicts those.
    pub(super) agree: bool,
}

impl LoadMeasurement {
    /// What `test` shows of `probe`; `None` where it did not run.
    pub fn of(probe: &LatencyProbe, test: &TestRecord) -> Option<LoadMeasurement> {
        let job = test.jobs.first()?;
        let latency = match probe.load {
            ProbedLoad::Synced => &job.measured.sync_lat,
            _ => latency_of(job, probe.way),
        };
        let seconds = job.measured.elapsed_ns() as f64 / 1e9;
        Some(LoadMeasurement { iops: rate_of(test, probe.way)?, seconds, latency: latency.clone() })
    }

    /// The standard error of the mean latency, as a share of it.
    fn error(&self) -> f64 {
        let moments = &self.latency.moments;
        moments.stdev() / moments.mean().max(1.0) / (moments.count.max(1) as f64).sqrt()
    }

    /// How far the rate of `other` is from this one, as a share of this one.
    fn apart(&self, other: &LoadMeasurement) -> f64 {
        (other.iops / self.iops.max(1e-9) - 1.0).abs()
    }

    /// Their difference is more than chance and what is small.
    fn contradicts(&self, other: &LoadMeasurement) -> bool {
        self.apart(other) > RATE_WITHIN + SIGMAS * self.error().hypot(other.error())
    }

    fn merge(&mut self, other: &LoadMeasurement) {
        let seconds = self.seconds + other.seconds;
        self.iops = (self.iops * self.seconds + other.iops * other.seconds) / seconds.max(1e-9);
        self.seconds = seconds;
        self.latency.merge(&other.latency);
    }

    /// `other` has another rate or another 99th percentile.
    pub fn differs(&self, other: &LoadMeasurement) -> bool {
        let p99 = |one: &LoadMeasurement| one.latency.histogram.percentile(99.0).unwrap_or(0) as f64;
        let slow = (p99(other) / p99(self).max(1.0) - 1.0).abs();
        self.apart(other) > RATE_WITHIN || slow > P99_WITHIN
    }
}

impl LoadMeasurements {
    /// Those of `probe` in `tests`; `None` where none was completed.
    pub(super) fn of(probe: &LatencyProbe, tests: &[TestRecord]) -> Option<LoadMeasurements> {
        let is_whole = |test: &&TestRecord| test.status == TestStatus::Complete;
        let of_repeat = |repeat: u32| {
            let id = LatencyProbe { repeat, ..*probe }.id();
            let test = tests.iter().filter(is_whole).find(|test| test.id == id)?;
            LoadMeasurement::of(probe, test)
        };
        LoadMeasurements::of_all(&(0..).map_while(of_repeat).collect::<Vec<_>>())
    }

    /// All of `found` where they agree, else the two that are nearest to each other.
    fn of_all(found: &[LoadMeasurement]) -> Option<LoadMeasurements> {
        let pairs = || {
            let after = |first: usize| found[first + 1..].iter().map(move |other| (&found[first], other));
            (0..found.len()).flat_map(after)
        };
        let agree = !pairs().any(|(one, other)| one.contradicts(other));
        let nearest = pairs().min_by(|one, other| one.0.apart(one.1).total_cmp(&other.0.apart(other.1)));
        let counted: Vec<&LoadMeasurement> = match nearest {
            Some((one, other)) if !agree => vec![one, other],
            _ => found.iter().collect(),
        };
        let agree = agree || found.len() > 2 && !counted[0].contradicts(counted[1]);
        let mut one = (*counted.first()?).clone();
        counted[1..].iter().for_each(|other| one.merge(other));
        Some(LoadMeasurements { one, times: found.len() as u32, agree })
    }

    /// How much longer the load has to be measured until its mean is known, s.
    pub(super) fn wanted_s(&self) -> f64 {
        self.one.seconds * ((self.one.error() / MEAN_WITHIN).powi(2) - 1.0).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measurements_that_agree_are_one_and_the_odd_one_out_is_none() {
        let of = |(iops, ns): (f64, u64)| LoadMeasurement {
            iops,
            seconds: 4.0,
            latency: Latency::repeated((iops * 4.0) as u64, ns),
        };
        let check = |rates: &[f64], expected: f64, agree: bool| {
            let found: Vec<LoadMeasurement> =
                rates.iter().map(|rate| of((*rate, (1e9 / rate) as u64))).collect();
            let all = LoadMeasurements::of_all(&found).expect("there is one");
            let is_near = (all.one.iops / expected - 1.0).abs() < 1e-9;
            assert!(is_near && all.agree == agree && all.times == rates.len() as u32, "{rates:?}: {all:?}");
        };
        check(&[1000.0], 1000.0, true);
        check(&[1000.0, 1010.0], 1005.0, true);
        check(&[800.0, 1000.0], 900.0, false);
        check(&[800.0, 1000.0, 1010.0], 1005.0, true);
        check(&[800.0, 1000.0, 1200.0], 1100.0, false);
        assert_eq!(LoadMeasurements::of_all(&[]), None);
        // Few slow requests make the difference.
        let mut rare = of((1000.0, 1_000_000));
        rare.latency.merge(&Latency::repeated(8, 40_000_000));
        let more = LoadMeasurement { iops: 930.0, ..rare.clone() };
        assert!(rare.error() > MEAN_WITHIN && !rare.contradicts(&more) && rare.differs(&more));
    }
}
