//! Repeats a measurement in rounds until its figure holds still, by the rule of `fathom_analysis::steady`.
//!
//! Knows nothing of what a round is: the caller measures it. Rounds follow each other at once, since a device that rests
//! between them recovers.

use fathom_analysis::steady::{self, MAX_ROUNDS, ROUND_NS, ROUNDS, SteadyVerdict};
use fathom_model::Nanos;
use fathom_model::units::duration;
use fathom_record::{RoundsRecord, TestRecord, TestStatus, TestSummary, merge_rounds};
use fathom_runner::Session;

use crate::AssessError;

/// How long rounds go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rounds {
    /// What one is to last; `None` where it ends with its size.
    pub round: Option<Nanos>,
    /// No round begins that would not end within it.
    pub budget: Nanos,
}

impl Rounds {
    /// Rounds of `round` within `budget`: by default as many as the rule allows.
    ///
    /// # Errors
    /// The budget is too short for the rounds that have to agree.
    pub fn new(round: Option<Nanos>, budget: Option<Nanos>) -> Result<Rounds, AssessError> {
        let length = round.unwrap_or(Nanos(ROUND_NS));
        let most = Nanos(length.0.saturating_mul(MAX_ROUNDS as u64));
        let least = Nanos(length.0.saturating_mul(ROUNDS as u64));
        match budget {
            Some(budget) if budget < least => {
                let [length, budget, least] = [length, budget, least].map(duration);
                Err(AssessError::usage(
                    format!("{ROUNDS} rounds of {length} exceed the budget of {budget}"),
                    format!("use a budget of at least {least}, or shorter rounds"),
                ))
            }
            budget => Ok(Rounds { round, budget: budget.unwrap_or(most).min(most) }),
        }
    }

    /// The shortest they can be; `None` where a round takes as long as it takes.
    pub fn least(&self) -> Option<Nanos> {
        self.round.map(|round| Nanos(round.0 * ROUNDS as u64))
    }

    /// Whether another round may begin after `rounds` that took `spent_ns`. Each takes a little longer than planned, which is not
    /// held against the last one.
    fn has_time(&self, spent_ns: u64, rounds: usize) -> bool {
        let planned_ns = match self.round {
            Some(round) => round.0.saturating_mul(rounds as u64 + 1),
            None => spent_ns + spent_ns / rounds.max(1) as u64,
        };
        rounds < ROUNDS || (planned_ns <= self.budget.0 && spent_ns < self.budget.0)
    }
}

/// Measures round after round. `measure` is given the number of the round, from 0, and what came of those before it; a round that
/// was broken off or failed is the last. The figures of the result are those of the last five.
pub(crate) fn until_steady(
    rounds: &Rounds,
    session: &Session,
    mut measure: impl FnMut(usize, &RoundsRecord) -> TestRecord,
) -> TestRecord {
    let began = session.now();
    let mut so_far = RoundsRecord { round_ns: rounds.round.map_or(0, |round| round.0), ..Default::default() };
    let mut last: Vec<TestRecord> = Vec::new();
    let mut spent_ns = 0;
    loop {
        let measured = measure(so_far.values.len(), &so_far);
        let is_whole = measured.status == TestStatus::Complete;
        if is_whole {
            let (tracked, value) = figure(&measured);
            so_far.tracked = tracked.to_owned();
            so_far.values.push(value);
            spent_ns += measured.jobs.iter().map(|job| job.measured.elapsed_ns()).max().unwrap_or(0);
        }
        last.push(measured);
        last.drain(..last.len().saturating_sub(ROUNDS));
        so_far.elapsed_ns = session.now() - began;
        let verdict = steady::verdict(&so_far.values);
        so_far.steady = is_whole && verdict == SteadyVerdict::Steady;
        let goes_on = is_whole && verdict == SteadyVerdict::GoOn && !session.stop_handle().is_requested();
        if !goes_on || !rounds.has_time(spent_ns, so_far.values.len()) {
            break;
        }
    }
    let spread = steady::of_rounds(&so_far.values);
    so_far.range_fraction = spread.map(|spread| spread.range_fraction);
    so_far.drift_fraction = spread.map(|spread| spread.drift_fraction);
    so_far.counted = last.len() as u32;
    let mut merged = merge_rounds(&last);
    if let Some(end) = last.last() {
        merged.status = end.status;
        merged.reason.clone_from(&end.reason);
        merged.interrupted.clone_from(&end.interrupted);
    }
    merged.rounds = Some(so_far);
    merged
}

/// What is watched of a round, and its value: latency where one request is in flight, throughput where blocks follow each other,
/// else requests per second.
fn figure(test: &TestRecord) -> (&'static str, f64) {
    let summary = TestSummary::new(test);
    let total = summary.total.unwrap_or_default();
    let is_single = matches!(test.jobs.as_slice(), [job] if job.iodepth() == 1) && summary.sync.is_none();
    let is_sequential = test.jobs.iter().all(|job| !job.rw().starts_with("rand"));
    match total.lat_ns.mean.or(total.clat_ns.mean) {
        Some(mean) if is_single => ("lat_ns", mean),
        _ if is_sequential => ("bytes_per_second", total.bytes_per_second),
        _ => ("iops", total.iops),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fathom_engine::sim::FixedLatency;
    use fathom_model::plan::DepthPlan;
    use fathom_record::{Interval, IntervalOp, JobRecord, OpOutcome, PhaseOutcome, PlanRecord};

    const SECOND: u64 = 1_000_000_000;

    fn session() -> Session {
        let latency = Nanos::from_millis(1);
        Session::simulated(
            FixedLatency { read: latency, write: latency, flush: latency, parallelism: 1 },
            1 << 30,
        )
    }

    /// A round of a second with these requests.
    fn round(ios: u64) -> TestRecord {
        let op = IntervalOp { ios, bytes: ios * 4096, ..Default::default() };
        let series = vec![Interval { end_ns: SECOND, read: op, ..Default::default() }];
        let read = OpOutcome { issued: ios, ios, bytes: ios * 4096, ..Default::default() };
        let measured = PhaseOutcome { end_ns: SECOND, read, series, ..Default::default() };
        let mut plan = PlanRecord { depth: DepthPlan::new(8), ..Default::default() };
        plan.io.pattern.random = true;
        let job = JobRecord { plan, measured, ..Default::default() };
        TestRecord { status: TestStatus::Complete, jobs: vec![job], ..Default::default() }
    }

    #[test]
    fn the_last_five_rounds_are_the_result() {
        let check = |rates: &[u64], budget: Option<u64>, expected: (usize, bool, u64)| {
            let rounds = Rounds::new(Some(Nanos(SECOND)), budget.map(Nanos::from_secs)).unwrap();
            let merged =
                until_steady(&rounds, &session(), |index, _| round(rates[index.min(rates.len() - 1)]));
            let so_far = merged.rounds.clone().unwrap();
            let ios: u64 = merged.jobs.iter().map(|job| job.measured.read.ios).sum();
            assert_eq!((so_far.values.len(), so_far.steady, ios), expected, "{rates:?} {budget:?}");
            assert_eq!((so_far.tracked.as_str(), so_far.counted), ("iops", 5));
        };
        check(&[100], None, (5, true, 500));
        check(&[3000, 2000, 1000, 300], None, (8, true, 1500));
        check(&[3000, 2000, 1000, 300], Some(7), (7, false, 1000 + 1200));
        let restless: Vec<u64> = [100, 200].repeat(20);
        check(&restless, None, (25, false, 700));
    }

    #[test]
    fn a_round_that_was_broken_off_is_the_last_and_counts_for_nothing() {
        let rounds = Rounds::new(Some(Nanos(SECOND)), None).unwrap();
        let merged = until_steady(&rounds, &session(), |index, _| match index {
            0..5 => round([100, 200, 100, 200, 100][index]),
            _ => TestRecord {
                status: TestStatus::Incomplete,
                reason: Some("signal 2".to_owned()),
                ..round(50)
            },
        });
        let so_far = merged.rounds.unwrap();
        assert_eq!((so_far.values.len(), so_far.steady, so_far.counted), (5, false, 5));
        assert_eq!((merged.status, merged.reason.as_deref()), (TestStatus::Incomplete, Some("signal 2")));
    }

    #[test]
    fn budgets() {
        let rounds = |round: Option<u64>, budget: Option<u64>| {
            Rounds::new(round.map(Nanos::from_secs), budget.map(Nanos::from_secs)).map(|rounds| rounds.budget)
        };
        assert_eq!(rounds(None, None).unwrap(), Nanos::from_secs(25 * 60));
        assert_eq!(rounds(Some(2), None).unwrap(), Nanos::from_secs(50));
        assert_eq!(rounds(Some(2), Some(1000)).unwrap(), Nanos::from_secs(50));
        assert_eq!(rounds(Some(2), Some(10)).unwrap(), Nanos::from_secs(10));
        assert!(rounds(Some(60), Some(299)).unwrap_err().kind == crate::ErrorKind::Usage);
    }
}
