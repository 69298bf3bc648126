//! The rate at which a limit holds a volume: one estimator for a bench, a sweep and a surface.
//!
//! A limiter saves up what is not used and gives it away at the start of a run, and at its end a run waits for what is in
//! flight. So the rate of one run is counted in whole intervals after the first, and a plateau is the mean of the runs that
//! agree with the fastest.

use fathom_record::confidence::LIMITER_SLICE_NS;
use fathom_record::{
    Interval, IntervalOp, JobRecord, TestRecord, TestSummary,
    stability::{merged_series, quiet_before_ns},
};

/// Idle time before a run that is to show a plateau: the slices of a limiter begin anew. The intervals of half a second by which a
/// run is counted then end 20 ms before a slice, and the first, in which the rate settles, is the shortest.
pub const SETTLE_NS: u64 = 3 * LIMITER_SLICE_NS + 20_000_000;
const TICK_NS: u64 = 500_000_000;
/// What such a run takes beyond whole intervals: the first one, and a little after the last.
const BEYOND_TICKS_NS: u64 = TICK_NS - SETTLE_NS + 40_000_000;

/// How long a run has to measure for `time_ns` in whole intervals.
pub fn runtime_of(time_ns: u64) -> u64 {
    time_ns.div_ceil(TICK_NS).max(1) * TICK_NS + BEYOND_TICKS_NS
}

/// How long a run may measure that has `time_ns` with the idle time before it; `None` where that is too short.
pub fn runtime_within(time_ns: u64) -> Option<u64> {
    let whole_ns = time_ns.checked_sub(SETTLE_NS + BEYOND_TICKS_NS)? / TICK_NS * TICK_NS;
    (whole_ns > 0).then_some(whole_ns + BEYOND_TICKS_NS)
}

/// Rates under the same limit agree within this share.
pub(crate) const AGREE: f64 = 0.03;
/// Spread of a rate without a cause: two runs under the same limit differ by this.
pub(crate) const RUN_TO_RUN: f64 = 0.005;

/// What was moved in a time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct SettledRate {
    ios: u64,
    bytes: u64,
    /// ns.
    pub(crate) elapsed_ns: u64,
}

/// A run of this length has seconds to spare: the whole first one is left out.
const LONG_NS: u64 = 3_800_000_000;
/// Intervals that begin in this time belong to the first second.
const FIRST_SECOND_NS: u64 = 950_000_000;
/// Less time than this carries no rate.
const MIN_NS: u64 = 300_000_000;

impl SettledRate {
    /// What `jobs`, which ran together, moved once the rate had settled; `None` where that is too short to tell.
    pub(crate) fn of(jobs: &[&JobRecord]) -> Option<SettledRate> {
        let merged = merged_series(jobs)?;
        let series = || jobs.iter().map(|job| &job.measured.series);
        // Where workers start apart, the first common moment is the latest start, the last the earliest end.
        let from = series().filter_map(|series| series.first()).map(|first| first.start_ns).max()?;
        let to = series().filter_map(|series| series.last()).map(|last| last.end_ns).min()?;
        let is_common = |interval: &&Interval| interval.start_ns >= from && interval.end_ns <= to;
        let all: Vec<&Interval> = merged.iter().filter(is_common).collect();
        let begins_cold = jobs.iter().any(|job| job.ramp.is_none());
        let skipped = match begins_cold {
            false => 0,
            true if to.saturating_sub(from) >= LONG_NS => {
                all.iter().filter(|interval| interval.start_ns - from < FIRST_SECOND_NS).count()
            }
            true => 1,
        };
        let (before, rest) = all.split_at_checked(skipped)?;
        let mut lengths: Vec<u64> = rest.iter().map(|interval| interval.elapsed_ns()).collect();
        lengths.sort_unstable();
        let usual = *lengths.get(lengths.len() * 3 / 4)?;
        let is_whole = |interval: &&Interval| interval.elapsed_ns() >= usual - usual / 10;
        let counted: Vec<&Interval> = rest.iter().copied().filter(is_whole).collect();
        let (first, last) = (counted.first()?, counted.last()?);
        let sum = |of: fn(&IntervalOp) -> u64| -> u64 {
            counted.iter().flat_map(|interval| interval.ops()).map(of).sum()
        };
        // Between two completions: a span that begins or ends while nothing completes may hold a group of I/Os more or less.
        let quiet_ns = |interval: &Interval| interval.end_ns - interval.last_ns();
        let before_ns = match before.last() {
            None => quiet_before_ns(jobs),
            Some(before) if before.end_ns == first.start_ns => quiet_ns(before),
            Some(_) => 0,
        };
        let elapsed_ns: u64 = counted.iter().map(|interval| interval.elapsed_ns()).sum();
        let settled = SettledRate {
            ios: sum(|op| op.ios),
            bytes: sum(|op| op.bytes),
            elapsed_ns: (elapsed_ns + before_ns).saturating_sub(quiet_ns(last)),
        };
        (settled.elapsed_ns >= MIN_NS && settled.ios > 0).then_some(settled)
    }

    /// Requests per second.
    pub(crate) fn iops(&self) -> f64 {
        self.ios as f64 * 1e9 / self.elapsed_ns as f64
    }

    /// Bytes per second.
    pub(crate) fn bytes_per_second(&self) -> f64 {
        self.bytes as f64 * 1e9 / self.elapsed_ns as f64
    }
}

/// Requests per second of `test` once its rate had settled, over all of it where that is too short to tell; `None` where nothing
/// completed.
pub fn settled_iops(test: &TestRecord) -> Option<f64> {
    let total = TestSummary::new(test).total?;
    let settled = SettledRate::of(&test.jobs.iter().collect::<Vec<_>>());
    Some(settled.map_or(total.iops, |settled| settled.iops()))
}

/// The rate of one run, requests or bytes per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RunRate {
    /// Per second.
    pub(crate) rate: f64,
    /// Share of it that one more or one less round of requests would make.
    pub(crate) resolution: f64,
}

impl RunRate {
    /// Precision of the rate, 1 / variance relative to it.
    fn weight(&self) -> f64 {
        1.0 / (RUN_TO_RUN.powi(2) + self.resolution.powi(2))
    }
}

/// The runs of `rates` that agree with the fastest, by their places.
pub(crate) fn at_the_top(rates: impl IntoIterator<Item = f64> + Clone) -> Vec<usize> {
    let most = rates.clone().into_iter().fold(0.0, f64::max);
    let agrees = |&(_, rate): &(usize, f64)| rate > 0.0 && rate >= most * (1.0 - AGREE);
    rates.into_iter().enumerate().filter(agrees).map(|(place, _)| place).collect()
}

/// The mean of rates that agree: the most precise ones count most.
pub(crate) fn mean(rates: impl IntoIterator<Item = RunRate>) -> f64 {
    let mut rates = rates.into_iter();
    let Some(first) = rates.next() else { return 0.0 };
    // From the first one on, so that the mean of equal rates is that rate.
    let (sum, weights) = rates.fold((0.0, first.weight()), |(sum, weights), run| {
        (sum + (run.rate - first.rate) * run.weight(), weights + run.weight())
    });
    first.rate + sum / weights
}

#[cfg(test)]
mod tests {
    use fathom_record::PhaseOutcome;

    use super::*;

    /// A job whose intervals have these lengths in ms and counts of 4k reads.
    fn job(intervals: &[(u64, u64)], has_ramp: bool) -> JobRecord {
        let mut from = 0;
        let series = intervals.iter().enumerate().map(|(tick, &(ms, ios))| {
            let start_ns = from;
            from += ms * 1_000_000;
            let read = IntervalOp { ios, bytes: ios * 4096, ..IntervalOp::default() };
            Interval { tick: tick as u32, start_ns, end_ns: from, read, ..Interval::default() }
        });
        let measured = PhaseOutcome { series: series.collect(), ..PhaseOutcome::default() };
        JobRecord { measured, ramp: has_ramp.then(PhaseOutcome::default), ..JobRecord::default() }
    }

    #[test]
    fn what_was_saved_up_before_and_the_drain_do_not_count() {
        let check = |intervals: &[(u64, u64)], has_ramp: bool, expected: Option<f64>| {
            let found = SettledRate::of(&[&job(intervals, has_ramp)]);
            assert_eq!(found.map(|rate| rate.iops()), expected, "{intervals:?}");
            assert_eq!(found.map(|rate| rate.bytes_per_second()), expected.map(|iops| iops * 4096.0));
        };
        check(&[(180, 900), (500, 500), (500, 500), (40, 10)], false, Some(1000.0));
        check(&[(500, 800), (500, 500), (500, 500)], false, Some(1000.0));
        // A whole second of a long run.
        let mut long = vec![(500, 800), (500, 700)];
        long.extend([(500, 500); 8]);
        check(&long, false, Some(1000.0));
        check(&[(500, 500), (500, 500), (20, 90)], true, Some(1000.0));
        // Coalesced intervals of a very long run.
        check(&[(4000, 8000), (4000, 4000), (4000, 4000)], false, Some(1000.0));
        // The end of a range came first.
        check(&[(180, 900), (400, 400)], false, Some(1000.0));
        for too_short in [&[(500, 800)][..], &[(500, 800), (200, 10)], &[]] {
            check(too_short, false, None);
        }
    }

    #[test]
    fn runs_hold_whole_intervals() {
        assert_eq!([1, 500_000_000, 500_000_001].map(runtime_of), [720_000_000, 720_000_000, 1_220_000_000]);
        let within = [1_039_999_999, 1_040_000_000, 2_000_000_000].map(runtime_within);
        assert_eq!(within, [None, Some(720_000_000), Some(1_220_000_000)]);
        assert_eq!(runtime_within(0), None);
    }

    #[test]
    fn groups_are_counted_from_the_end_of_one_to_the_end_of_another() {
        // Every 300 ms 60 I/Os complete together; the clock cuts the run every 500 ms.
        let groups = |from_ms: u64, to_ms: u64| (from_ms + 1..=to_ms).filter(|ms| ms % 300 == 0);
        let series = (0..5).map(|tick| {
            let (from, to) = (u64::from(tick) * 500, u64::from(tick + 1) * 500);
            let (ios, last) =
                (groups(from, to).count() as u64 * 60, groups(from, to).next_back().unwrap_or(from));
            Interval {
                tick,
                start_ns: from * 1_000_000,
                end_ns: to * 1_000_000,
                quiet_ns: (to - last) * 1_000_000,
                read: IntervalOp { ios, bytes: ios * 4096, ..IntervalOp::default() },
                ..Interval::default()
            }
        });
        let job = JobRecord {
            measured: PhaseOutcome { series: series.collect(), ..PhaseOutcome::default() },
            ..JobRecord::default()
        };
        let settled = SettledRate::of(&[&job]).unwrap();
        assert_eq!((settled.iops(), settled.elapsed_ns), (200.0, 2_100_000_000));
    }

    #[test]
    fn workers_are_counted_together() {
        let one = job(&[(500, 900), (500, 500), (500, 500), (500, 500)], false);
        let settled = SettledRate::of(&[&one, &one]).unwrap();
        assert_eq!((settled.iops(), settled.elapsed_ns), (2000.0, 1_500_000_000));
        assert_eq!(SettledRate::of(&[&one, &JobRecord::default()]), None);
    }

    #[test]
    fn a_plateau_is_the_mean_of_those_that_agree_with_the_fastest() {
        let rates = [990.0, 500.0, 1000.0, 971.0, 960.0];
        assert_eq!(at_the_top(rates), [0, 2, 3]);
        assert_eq!(at_the_top([0.0; 3]), [0; 0]);
        let run = |rate, resolution| RunRate { rate, resolution };
        let precise = mean([run(1000.0, 0.0), run(1020.0, 0.1)]);
        assert!(precise > 1000.0 && precise < 1000.2, "{precise}");
        assert_eq!(mean([]), 0.0);
    }
}
