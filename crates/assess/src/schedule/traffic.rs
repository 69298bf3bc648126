//! What all runs of a schedule move, and whether the burst credits of a known volume suffice for them.

use fathom_analysis::schedule::{CreditBucket, CreditCourse, credit_course};
use fathom_model::Nanos;
use fathom_model::units::{bytes, duration};
use serde::Serialize;

use crate::plan::BenchPlan;
use crate::traffic::{CreditUse, OfferedTraffic, PlannedTraffic};

/// The traffic of all runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScheduleTraffic {
    /// Bytes of the test files that the runs write before their tests.
    pub layout_bytes: u64,
    /// What the tests of all runs move.
    #[serde(flatten)]
    pub tests: PlannedTraffic,
    /// The course of each burst bucket over the runs.
    pub credit_courses: Vec<RepeatedCredits>,
}

/// The course of a burst bucket.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RepeatedCredits {
    /// What a run uses.
    #[serde(flatten)]
    pub used: CreditUse,
    /// What the runs leave.
    #[serde(flatten)]
    pub course: CreditCourse,
}

impl ScheduleTraffic {
    /// The traffic of `runs` runs of `plan`, one every `every`.
    pub(super) fn of(plan: &BenchPlan, runs: u64, every: Nanos) -> ScheduleTraffic {
        let once = &plan.traffic;
        let times = |amount: u64| amount.saturating_mul(runs);
        let offered = OfferedTraffic {
            sized_bytes: times(once.offered.sized_bytes),
            sized_written_bytes: times(once.offered.sized_written_bytes),
            sized_ios: times(once.offered.sized_ios),
            timed_ns: times(once.offered.timed_ns),
            writing_ns: times(once.offered.writing_ns),
            reads: once.offered.reads,
        };
        let run_s = once.offered.timed_ns as f64 / 1e9;
        let course = |used: &CreditUse| {
            let bucket = CreditBucket {
                capacity: used.capacity as f64,
                initial: used.available as f64,
                refill_per_second: used.baseline,
            };
            let course = credit_course(bucket, used.planned as f64, run_s, every.as_secs_f64(), runs);
            RepeatedCredits { used: used.clone(), course }
        };
        ScheduleTraffic {
            layout_bytes: times(plan.cost.layout_bytes),
            credit_courses: once.credits.iter().map(course).collect(),
            tests: PlannedTraffic { offered, credits: Vec::new(), ..once.clone() },
        }
    }

    /// The traffic in sentences.
    pub fn text(&self) -> String {
        let layout =
            (self.layout_bytes > 0).then(|| format!("Writes {} of test files.", bytes(self.layout_bytes)));
        let moved = self.tests.text(None);
        let moved = match (&layout, moved.strip_prefix("Writes nothing. ")) {
            (Some(_), Some(rest)) => rest.to_owned(),
            _ => moved,
        };
        let name = self.tests.volume_type.as_deref().unwrap_or("the volume");
        let credits = self.credit_courses.iter().map(|credits| credits.text(name));
        layout.into_iter().chain([moved]).chain(credits).collect::<Vec<_>>().join(" ")
    }
}

impl RepeatedCredits {
    fn text(&self, name: &str) -> String {
        let Self { used, course } = self;
        let (kind, baseline) = (used.unit.words(), used.baseline_text());
        let [each, between, least] =
            [used.planned, course.refilled_between, course.least_before_run].map(|count| used.amount(count));
        let returned =
            format!("A run uses up to {each} {kind} of {name}, and {between} return between two runs");
        match (course.first_short_run, used.lasts_ns) {
            (None, _) => format!("{returned}: each run begins with at least {least}, which suffices."),
            (Some(1), Some(lasts)) => format!(
                "{returned}: they do not suffice for a run, which may fall to {baseline} after {}.",
                duration(Nanos(lasts))
            ),
            (Some(run), _) => {
                format!(
                    "{returned}: from run {run} on they may not suffice, and a run may fall to {baseline}."
                )
            }
        }
    }
}
