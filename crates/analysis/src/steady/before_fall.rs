//! A test as it was until its rate fell for good: what a volume gives while it has burst credits, or room in a cache.

use std::collections::BTreeMap;

use fathom_record::stability::{Second, seconds};
use fathom_record::{
    IntervalOp, JobRecord, Latency, OpOutcome, PhaseOutcome, TestRecord, latency_bin_midpoint,
};

use crate::steady::segments::fall;

/// Share of the level before a fall below which a second belongs to the fall.
const FALLING: f64 = 0.9;

/// The part of `test` before its rate fell, with the rates and latencies of its intervals; `None` where it did not fall, and of
/// tests whose jobs did not run together on one host. Syncs have no intervals: theirs are those of the whole test.
pub fn before_fall(test: &TestRecord) -> Option<TestRecord> {
    let is_one = test.jobs.windows(2).all(|pair| pair[0].phase == pair[1].phase);
    if !is_one || test.fleet.is_some() {
        return None;
    }
    let seconds = seconds(&test.jobs.iter().collect::<Vec<_>>());
    let rates: Vec<f64> = seconds.iter().map(Second::iops).collect();
    let before = fall(&rates)?.before;
    // The rate falls within a second, which is no part of the level.
    let is_whole = |second: &&Second| second.iops() >= FALLING * before.median;
    let last = seconds[..before.length].iter().rev().find(is_whole)?;
    let end_ns = last.start_ns + last.elapsed_ns;
    let jobs = test.jobs.iter().map(|job| until(job, end_ns)).collect();
    Some(TestRecord { jobs, ..test.clone() })
}

fn until(job: &JobRecord, end_ns: u64) -> JobRecord {
    let mut measured = PhaseOutcome { end_ns, ..job.measured.clone() };
    measured.series.retain(|interval| interval.end_ns <= end_ns);
    for (at, whole) in job.measured.ops().into_iter().enumerate() {
        let mut part = OpOutcome::default();
        let mut bins: BTreeMap<u16, u64> = BTreeMap::new();
        for IntervalOp { ios, bytes, clat_bins, .. } in
            measured.series.iter().map(|interval| interval.ops()[at])
        {
            (part.ios, part.bytes) = (part.ios + ios, part.bytes + bytes);
            clat_bins.iter().for_each(|&(bin, count)| *bins.entry(bin).or_default() += count);
        }
        part.issued = part.ios;
        let mut latency = Latency::default();
        for (bin, count) in bins {
            latency.merge(&Latency::repeated(count, latency_bin_midpoint(usize::from(bin))));
        }
        // Intervals count completion latencies: the time of submission before them is left out.
        if whole.lat.samples() > 0 {
            part.lat = latency.clone();
        }
        part.clat = latency;
        *measured.ops_mut()[at] = part;
    }
    JobRecord { measured, ..job.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{TestLoad, record};
    use fathom_record::{TestSummary, latency_bin};

    #[test]
    fn rates_and_latencies_are_those_before_the_fall() {
        let seconds = [vec![1.0; 20], vec![0.5], vec![0.1; 40]].concat();
        let mut run = record(&[TestLoad { seconds, iops: 1000.0, ..TestLoad::default() }]);
        for (at, interval) in run.tests[0].jobs[0].measured.series.iter_mut().enumerate() {
            let ns = if at < 20 { 1_000_000 } else { 10_000_000 };
            interval.read.clat_bins = vec![(latency_bin(ns) as u16, interval.read.ios)];
        }
        let part = before_fall(&run.tests[0]).expect("the rate fell");
        let summary = TestSummary::new(&part);
        let read = summary.read.expect("reads");
        assert_eq!((read.ios, read.iops.round(), summary.measured_ns), (20_000, 1000.0, 20_000_000_000));
        assert!(read.clat_ns.p99.is_some_and(|ns| ns < 1_020_000), "{:?}", read.clat_ns);
    }

    #[test]
    fn a_rate_that_did_not_fall_has_no_such_part() {
        let of =
            |seconds: Vec<f64>| before_fall(&record(&[TestLoad { seconds, ..TestLoad::default() }]).tests[0]);
        assert_eq!(of(vec![1.0; 60]), None);
        assert_eq!(of([vec![0.1; 30], vec![1.0; 30]].concat()), None);
        assert_eq!(of(Vec::new()), None);
    }
}
