//! Ends a test as soon as its rate is known precisely enough: decided from the series of the observer, outside the loop that issues
//! requests.
//!
//! The interval is that of every report (`fathom_record::stability`). Looks follow one another at growing distances, and the
//! interval allows for them. Percentiles that the test is expected to reach have their samples before it ends.

use fathom_model::units::duration;
use fathom_model::{Nanos, RunPlan};
use fathom_record::{
    ExpectationRecord, Metric, PrecisionRecord, TestMeta, TestRecord, TestStatus, TestSummary, test_record,
};
use fathom_runner::{LayoutProgress, RunObserver};
use fathom_stats::{RunOutcome, Snapshot};

use crate::AssessError;
use crate::plan::BenchSettings;
use crate::planned::PlannedTest;
use crate::suite::Suite;

/// What was asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PrecisionSettings {
    /// Half of the 95 % confidence interval of the rate, as a share of the rate.
    pub target_fraction: f64,
    /// Shortest measured time; `None` = as short as the interval permits.
    pub least: Option<Nanos>,
}

impl PrecisionSettings {
    /// The goal of a test that measures for `most` at most.
    ///
    /// # Errors
    /// The time is too short.
    pub(crate) fn goal(&self, most: Nanos) -> Result<PrecisionRecord, AssessError> {
        let Self { target_fraction, least } = *self;
        let needed = Nanos(PrecisionRecord::least_time_ns(target_fraction));
        let least = least.unwrap_or(needed).max(needed);
        if most < least {
            let (target, least, most) = (percent_text(target_fraction), duration(least), duration(most));
            return Err(AssessError::usage(
                format!("a precision of {target} takes at least {least} per test, and the limit is {most}"),
                "use a longer --runtime, or a larger --precision",
            ));
        }
        let (least_ns, most_ns) = (least.0, most.0);
        Ok(PrecisionRecord { target_fraction, least_ns, most_ns, ..PrecisionRecord::default() })
    }
}

/// What `test` reached of `goal`.
fn reached(goal: &PrecisionRecord, test: &TestRecord) -> PrecisionRecord {
    goal.reached_by(&test.jobs.iter().collect::<Vec<_>>())
}

/// A share as people write it: `2 %`, `0.5 %`.
pub fn percent_text(fraction: f64) -> String {
    format!("{} %", (fraction * 1e4).round() / 100.0)
}

/// Refuses a precision that contradicts other settings; returns a note on the tests that it does not end.
pub(crate) fn check(
    settings: &BenchSettings,
    suite: &Suite,
    tests: &[PlannedTest],
) -> Result<Option<String>, AssessError> {
    let Some(precision) = settings.precision else { return Ok(None) };
    if settings.until_steady {
        return Err(AssessError::usage(
            "--precision and --until-steady both decide when a test ends",
            "use --until-steady alone for the steady state, or --precision alone for the interval",
        ));
    }
    let sized: Vec<&str> =
        tests.iter().filter(|test| test.precision.is_none()).map(|test| test.id.as_str()).collect();
    if sized.len() == tests.len() {
        return Err(AssessError::usage(
            format!("--precision ends no test of {}: each ends with its size", suite.name),
            "omit --precision, or choose another --suite",
        ));
    }
    let target = percent_text(precision.target_fraction);
    let note = || {
        let sized = sized.join(", ");
        format!("the precision of {target} does not apply to tests that end with their size: {sized}")
    };
    Ok((!sized.is_empty()).then(note))
}

/// Watches a test, and passes on all that it sees.
pub(crate) struct PrecisionWatch<'a> {
    goal: PrecisionRecord,
    plan: &'a RunPlan,
    /// Figures that need values before the test ends.
    needed: Vec<Metric>,
    observer: &'a mut dyn RunObserver,
    ramp_ns: u64,
    /// Time of the run at which the interval is looked at next, ns.
    next_look_ns: u64,
    is_look: bool,
    is_wanted: bool,
    is_reached: bool,
}

impl<'a> PrecisionWatch<'a> {
    pub(crate) fn new(
        test: &PlannedTest,
        goal: PrecisionRecord,
        plan: &'a RunPlan,
        expectations: &[ExpectationRecord],
        observer: &'a mut dyn RunObserver,
    ) -> PrecisionWatch<'a> {
        let of_test = expectations.iter().filter(|expectation| expectation.test == test.id);
        let needed = of_test.filter_map(|expectation| Metric::parse(&expectation.metric)).collect();
        PrecisionWatch {
            goal,
            plan,
            needed,
            observer,
            ramp_ns: test.ramp.0,
            next_look_ns: test.ramp.0 + goal.least_ns,
            is_look: false,
            is_wanted: false,
            is_reached: false,
        }
    }

    fn look(&mut self, outcome: &RunOutcome) {
        let test = test_record(TestMeta::default(), self.plan, outcome.clone());
        let summary = TestSummary::new(&test);
        let has_all = self.needed.iter().all(|metric| metric.of(&summary).is_some());
        self.is_reached = has_all && reached(&self.goal, &test).reached;
    }
}

impl RunObserver for PrecisionWatch<'_> {
    fn layout(&mut self, progress: &LayoutProgress) {
        self.observer.layout(progress);
    }

    fn snapshot(&mut self, snapshot: &Snapshot) {
        // A tick comes a little before or after its time.
        const EARLY_NS: u64 = 50_000_000;
        self.is_look = snapshot.elapsed_ns + EARLY_NS >= self.next_look_ns && !self.is_reached;
        if self.is_look {
            let measured_ns = snapshot.elapsed_ns.saturating_sub(self.ramp_ns);
            self.next_look_ns = self.ramp_ns + PrecisionRecord::next_look_ns(measured_ns);
        }
        self.observer.snapshot(snapshot);
    }

    fn wants_outcome_so_far(&mut self) -> bool {
        self.is_wanted = self.observer.wants_outcome_so_far();
        self.is_wanted || self.is_look
    }

    fn next_outcome_ns(&self) -> Option<u64> {
        self.observer.next_outcome_ns()
    }

    fn takes_due_outcome(&mut self, elapsed_ns: u64) -> bool {
        let is_due = self.observer.takes_due_outcome(elapsed_ns);
        self.is_wanted |= is_due;
        is_due
    }

    fn outcome_so_far(&mut self, outcome: &RunOutcome) {
        if std::mem::take(&mut self.is_look) {
            self.look(outcome);
        }
        if std::mem::take(&mut self.is_wanted) {
            self.observer.outcome_so_far(outcome);
        }
    }

    fn ends_phase(&mut self) -> bool {
        self.is_reached || self.observer.ends_phase()
    }
}

/// Enters into `test` what it reached. Where it ended early, its jobs have the runtime that they had in the end; returns it.
pub(crate) fn enter(goal: &PrecisionRecord, test: &mut TestRecord) -> Option<Nanos> {
    const STEP_NS: u64 = 500_000_000;
    let precision = reached(goal, test);
    test.precision = Some(precision);
    let measured_ns = TestSummary::new(test).measured_ns;
    let is_early = test.status == TestStatus::Complete && measured_ns + STEP_NS < goal.most_ns;
    if !is_early {
        if test.status == TestStatus::Complete && !precision.reached {
            let most = duration(Nanos(goal.most_ns));
            test.notes.push(format!(
                "the precision of {} was not reached in {most}; use a longer --runtime.",
                percent_text(goal.target_fraction)
            ));
        }
        return None;
    }
    let runtime = Nanos((measured_ns + STEP_NS / 2) / STEP_NS * STEP_NS);
    for job in &mut test.jobs {
        job.plan.time.runtime = Some(runtime);
    }
    Some(runtime)
}

#[cfg(test)]
mod tests {
    use fathom_volume::VolumeModel;

    use super::*;
    use crate::plan::{BenchPlan, Effort};
    use crate::target::BenchTarget;

    fn plan(change: impl FnOnce(&mut BenchSettings)) -> Result<BenchPlan, AssessError> {
        let precision = PrecisionSettings { target_fraction: 0.02, least: None };
        let mut settings = BenchSettings {
            suite: "standard".to_owned(),
            precision: Some(precision),
            ..BenchSettings::default()
        };
        change(&mut settings);
        let volume = BenchTarget::simulated("simulated", VolumeModel::unlimited(8 << 30));
        BenchPlan::on(vec![volume], settings)
    }

    #[test]
    fn a_plan_has_the_shortest_and_the_longest_time() {
        let check = |effort: Effort, runtime: Option<u64>, least: u64, most: u64| {
            let plan = plan(|settings| {
                (settings.effort, settings.runtime) = (effort, runtime.map(Nanos::from_secs));
                settings.only = vec!["lat-read".to_owned()];
            });
            let plan = plan.unwrap();
            let test = &plan.tests[0];
            let seconds =
                |time: Option<Nanos>| time.map(|time| time.0 - test.ramp.0).unwrap() / 1_000_000_000;
            assert_eq!((seconds(test.least_time()), seconds(test.most_time())), (least, most), "{effort:?}");
            assert_eq!((seconds(plan.cost.least_time), seconds(plan.cost.time)), (least, most), "{effort:?}");
        };
        check(Effort::Default, None, 5, 120);
        check(Effort::Quick, None, 5, 12);
        check(Effort::Thorough, None, 5, 120);
        check(Effort::Default, Some(60), 5, 60);
    }

    #[test]
    fn contradictions_are_refused_and_tests_that_end_with_their_size_are_named() {
        let check = |change: &dyn Fn(&mut BenchSettings), expected: &str| {
            let error = plan(change).unwrap_err();
            assert!(
                error.kind == crate::ErrorKind::Usage
                    && error.hint.is_some()
                    && error.to_string().contains(expected),
                "{error}"
            );
        };
        check(&|settings| settings.until_steady = true, "--precision and --until-steady both decide");
        check(&|settings| settings.runtime = Some(Nanos::from_secs(3)), "takes at least 5 s per test");
        let strict = PrecisionSettings { target_fraction: 0.005, least: None };
        check(
            &|settings| (settings.precision, settings.effort) = (Some(strict), Effort::Quick),
            "a precision of 0.5 % takes at least 20 s per test, and the limit is 12 s",
        );
        let longer = PrecisionSettings { target_fraction: 0.1, least: Some(Nanos::from_secs(200)) };
        check(&|settings| settings.precision = Some(longer), "takes at least 3 min 20 s");
        check(&|settings| settings.suite = "database-disk".to_owned(), "ends no test of database-disk");
    }
}
