//! Counts, sizes and latencies of each operation, and the outstanding I/Os that follow from latencies.

use fathom_observed::{ObservedInterval, ObservedRequest, ServedIo};
use fathom_stats::{Latency, LatencySummary};
use serde::Serialize;

use crate::replay::InFlight;
use crate::tally::place;

/// I/Os below which the mean latency of an interval is not compared with others.
const MIN_OPS: u64 = 10;

/// One operation, or all together.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct OperationProfile {
    /// `read`, `write`, `trim`, `sync` or `total`.
    pub operation: &'static str,
    /// I/Os.
    pub ops: Option<u64>,
    /// Bytes.
    pub bytes: Option<u64>,
    /// I/Os per second.
    pub iops: Option<f64>,
    /// Bytes per second.
    pub bytes_per_second: Option<f64>,
    /// Mean size, bytes.
    pub mean_bytes: Option<f64>,
    /// Mean latency, ns.
    pub mean_latency_ns: Option<f64>,
    /// The highest mean latency of an interval with at least ten I/Os, ns.
    pub highest_interval_latency_ns: Option<f64>,
    /// The distribution of latencies, where every request is known.
    pub lat_ns: Option<LatencySummary>,
}

/// Sums of one operation. A figure that some intervals lack is divided by the time and the I/Os of the others.
#[derive(Debug, Default)]
struct OperationSums {
    served: ServedIo,
    /// Time without a number of I/Os, ns.
    without_ops_ns: u64,
    /// Time without bytes, ns.
    without_bytes_ns: u64,
    /// Bytes where I/Os are known too.
    bytes_of_ops: PerIo,
    /// Latencies where I/Os are known too.
    latency_of_ops: PerIo,
    lat: Latency,
    highest_ns: Option<f64>,
}

/// A sum over I/Os, and the I/Os that it is of.
#[derive(Debug, Default)]
struct PerIo {
    sum: u64,
    ops: u64,
}

impl PerIo {
    /// Adds a sum where both are known.
    fn add(&mut self, sum: Option<u64>, ops: Option<u64>) {
        if let (Some(sum), Some(ops)) = (sum, ops) {
            self.sum = self.sum.saturating_add(sum);
            self.ops = self.ops.saturating_add(ops);
        }
    }

    fn mean(&self) -> Option<f64> {
        (self.ops > 0).then(|| self.sum as f64 / self.ops as f64)
    }
}

impl OperationSums {
    /// Adds what an interval of this length served.
    fn add(&mut self, part: ServedIo, length_ns: u64) {
        let add = |sum: &mut Option<u64>, without_ns: &mut u64, value: Option<u64>| match value {
            Some(value) => *sum = Some(sum.unwrap_or(0).saturating_add(value)),
            None => *without_ns += length_ns,
        };
        add(&mut self.served.ops, &mut self.without_ops_ns, part.ops);
        add(&mut self.served.bytes, &mut self.without_bytes_ns, part.bytes);
        self.bytes_of_ops.add(part.bytes, part.ops);
        self.latency_of_ops.add(part.latency_sum_ns, part.ops);
        if let (Some(ops @ MIN_OPS..), Some(sum)) = (part.ops, part.latency_sum_ns) {
            let mean = sum as f64 / ops as f64;
            self.highest_ns = Some(self.highest_ns.map_or(mean, |highest| highest.max(mean)));
        }
    }

    fn profile(self, operation: &'static str, observed_ns: u64) -> OperationProfile {
        let ServedIo { ops, bytes, .. } = self.served;
        let per_second = |count: Option<u64>, without_ns: u64| {
            let known_ns = observed_ns.saturating_sub(without_ns);
            Some(count.filter(|_| known_ns > 0)? as f64 * 1e9 / known_ns as f64)
        };
        let has_latencies = self.lat.samples() > 0;
        OperationProfile {
            operation,
            ops,
            bytes,
            iops: per_second(ops, self.without_ops_ns),
            bytes_per_second: per_second(bytes, self.without_bytes_ns),
            mean_bytes: self.bytes_of_ops.mean(),
            mean_latency_ns: if has_latencies {
                Some(self.lat.moments.mean())
            } else {
                self.latency_of_ops.mean()
            },
            highest_interval_latency_ns: self.highest_ns,
            lat_ns: has_latencies.then(|| self.lat.summary()),
        }
    }
}

/// Names of the operations of requests; the last is that of all together.
const NAMES: [&str; 5] = ["read", "write", "trim", "sync", "total"];

/// Sums of requests by operation.
#[derive(Debug, Default)]
pub(super) struct OperationTally {
    sums: [OperationSums; NAMES.len() - 1],
}

impl OperationTally {
    #[inline]
    pub fn take(&mut self, request: &ObservedRequest) {
        let sums = &mut self.sums[place(request.op)];
        sums.bytes_of_ops.add(Some(u64::from(request.bytes)), Some(1));
        if let Some(ns) = request.latency_ns {
            sums.lat.record(ns.get());
        }
    }

    /// The operations that occur, and all together. Rates are unknown where `observed_ns` is 0.
    pub fn profiles(self, observed_ns: u64) -> Vec<OperationProfile> {
        let mut total = OperationSums::default();
        for OperationSums { bytes_of_ops, lat, .. } in &self.sums {
            total.bytes_of_ops.add(Some(bytes_of_ops.sum), Some(bytes_of_ops.ops));
            total.lat.merge(lat);
        }
        let all = NAMES.into_iter().zip(self.sums.into_iter().chain([total]));
        let shown = all.filter(|(_, sums)| sums.bytes_of_ops.ops > 0);
        let profile = |(name, mut sums): (_, OperationSums)| {
            let PerIo { sum, ops } = sums.bytes_of_ops;
            sums.served = ServedIo { ops: Some(ops), bytes: Some(sum), latency_sum_ns: None };
            sums.profile(name, observed_ns)
        };
        shown.map(profile).collect()
    }
}

/// The operations of intervals, and all together. Rates are unknown where `observed_ns` is 0.
pub(super) fn of_intervals(intervals: &[ObservedInterval], observed_ns: u64) -> Vec<OperationProfile> {
    type Served = fn(&ObservedInterval) -> ServedIo;
    let parts: [(&'static str, Served); 4] = [
        ("read", |interval| interval.by_op.read),
        ("write", |interval| interval.by_op.write),
        ("trim", |interval| interval.by_op.trim),
        ("total", |interval| interval.total),
    ];
    let mut profiles = Vec::new();
    for (name, served) in parts {
        let mut sums = OperationSums::default();
        intervals.iter().for_each(|interval| sums.add(served(interval), interval.length_ns));
        let is_trim = name == "trim";
        let is_known = sums.served != ServedIo::default() && !(is_trim && sums.served.ops.unwrap_or(0) == 0);
        if is_known || name == "total" {
            profiles.push(sums.profile(name, observed_ns));
        }
    }
    profiles
}

/// The outstanding I/Os that follow from the latencies of requests.
#[derive(Debug, Default)]
pub(super) struct DepthTally {
    in_flight: InFlight,
    sum_ns: f64,
}

impl DepthTally {
    pub fn take(&mut self, request: &ObservedRequest) {
        let Some(latency) = request.latency_ns else { return };
        self.in_flight.take(request.at_ns, request.at_ns.saturating_add(latency.get()));
        self.sum_ns += latency.get() as f64;
    }

    /// The mean and the highest number of outstanding I/Os; `None` where no latency is known.
    pub fn depths(&self, observed_ns: u64) -> (Option<f64>, Option<f64>) {
        match self.in_flight.highest {
            0 => (None, None),
            highest => (Some(self.sum_ns / observed_ns as f64), Some(highest as f64)),
        }
    }
}

#[cfg(test)]
mod tests {
    use fathom_model::Op;

    use super::super::tests::{minute, request};
    use super::*;

    #[test]
    fn operations_that_occur_have_sums_and_latencies() {
        let requests = [
            request(0, Op::Read, 0, 4096, 100),
            request(1, Op::Write, 0, 8192, 300),
            request(2, Op::Sync, 0, 0, 0),
        ];
        let mut tally = OperationTally::default();
        requests.iter().for_each(|request| tally.take(request));
        let found = tally.profiles(1_000_000_000);
        let names: Vec<&str> = found.iter().map(|one| one.operation).collect();
        assert_eq!(names, ["read", "write", "sync", "total"]);
        assert_eq!((found[1].mean_bytes, found[1].mean_latency_ns), (Some(8192.0), Some(300_000.0)));
        assert_eq!(
            (found[2].lat_ns.is_none(), found[3].ops, found[3].mean_latency_ns),
            (true, Some(3), Some(200_000.0))
        );
    }

    #[test]
    fn the_highest_mean_is_that_of_an_interval_with_enough_ios() {
        let mut intervals = [minute(0, 600), minute(1, 9), minute(2, 600)];
        intervals[1].total.latency_sum_ns = Some(u64::MAX);
        intervals[2].total.latency_sum_ns = Some(1_200_000_000);
        let found = of_intervals(&intervals, 1);
        assert_eq!(found.last().unwrap().highest_interval_latency_ns, Some(2e6));
        assert_eq!(found.iter().map(|one| one.operation).collect::<Vec<_>>(), ["read", "total"]);
    }

    #[test]
    fn figures_are_divided_by_the_time_and_the_ios_that_have_them() {
        let mut intervals = [minute(0, 600), minute(1, 600), minute(2, 600)];
        // 4,096 bytes and 1 ms for each I/O: what one interval lacks changes no mean.
        intervals[0].total.latency_sum_ns = None;
        intervals[1].total.bytes = None;
        intervals[2].total.ops = None;
        let total = of_intervals(&intervals, 180_000_000_000).pop().unwrap();
        assert_eq!((total.ops, total.bytes), (Some(1_200), Some(1_200 * 4096)));
        assert_eq!((total.iops, total.bytes_per_second), (Some(10.0), Some(40_960.0)));
        assert_eq!((total.mean_bytes, total.mean_latency_ns), (Some(4096.0), Some(1e6)));
    }

    #[test]
    fn depth_follows_from_latencies() {
        let requests = [
            request(0, Op::Read, 0, 1, 3_000),
            request(1, Op::Read, 0, 1, 2_000),
            request(3, Op::Read, 0, 1, 1_000),
        ];
        let mut tally = DepthTally::default();
        assert_eq!(tally.depths(1), (None, None));
        requests.iter().for_each(|request| tally.take(request));
        assert_eq!(tally.depths(6_000_000), (Some(1.0), Some(2.0)));
    }
}
