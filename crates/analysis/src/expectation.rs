//! Checks the expectations of a run: each against the measured value, its confidence interval, and its own conditions.
//!
//! A pure function of the record, so that the history gives the same verdicts. Where a run cannot decide an expectation, the
//! verdict is inconclusive, with the reason and a remedy.

mod burst;
mod conditions;
mod interval;
mod share;

use fathom_record::{ExpectationRecord, RunRecord, ShareRecord, TestStatus};
use fathom_stats::sample::mean;
use serde::Serialize;

pub use interval::ConfidenceInterval;
pub use share::of_year;

use crate::Analysis;
use crate::criterion::{
    Comparison, CriterionVerdict, LONGER, Metric, MetricDirection, MetricKind, Statistic, too_few_samples,
};
use crate::rows::RecordRow;
use crate::say::{percent, seconds};
use crate::steady::levels::fall;
use conditions::{Doubt, ExpectationCase};
use interval::MIN_SECONDS;

/// An expectation and its result.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExpectationResult {
    /// The expectation.
    #[serde(flatten)]
    pub expectation: ExpectationRecord,
    /// The measured value in the unit of the metric; the share of the seconds where a share of the time is expected.
    pub measured: Option<f64>,
    /// Its 95 % confidence interval.
    pub interval: Option<ConfidenceInterval>,
    /// The verdict.
    #[serde(flatten)]
    pub verdict: CriterionVerdict,
    /// What a verdict of met or missed rests on: by how much it is missed, or how much time a share covers.
    pub basis: Option<String>,
    /// How long the rate lasts that the value is, and what remains, where that is known and misses the expectation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lasting: Option<String>,
    /// Full seconds that were measured.
    #[serde(rename = "full_seconds")]
    pub seconds: u64,
}

impl ExpectationResult {
    /// The verdict on an expectation, without a value.
    fn new(expectation: &ExpectationRecord, verdict: CriterionVerdict) -> ExpectationResult {
        ExpectationResult {
            expectation: expectation.clone(),
            measured: None,
            interval: None,
            verdict,
            basis: None,
            lasting: None,
            seconds: 0,
        }
    }
}

/// Checks every expectation of a run.
pub(crate) fn judge(analysis: &Analysis<'_>) -> Vec<ExpectationResult> {
    let judge = |expectation| judge_one(analysis.record, analysis.rows(), expectation);
    analysis.record.header.expectations.iter().map(judge).collect()
}

/// The classes that expectations apply to, in their order.
pub fn classes(expectations: &[ExpectationRecord]) -> Vec<&str> {
    let mut classes: Vec<&str> = Vec::new();
    for expectation in expectations.iter().filter(|expectation| !expectation.class.is_empty()) {
        if !classes.contains(&expectation.class.as_str()) {
            classes.push(&expectation.class);
        }
    }
    classes
}

/// Longer runs than this are not advised.
const LONGEST_ADVICE_S: f64 = 7200.0;

fn judge_one(
    record: &RunRecord,
    rows: &[RecordRow<'_>],
    expectation: &ExpectationRecord,
) -> ExpectationResult {
    let with_verdict = |verdict| ExpectationResult::new(expectation, verdict);
    let because = |reason: String| with_verdict(CriterionVerdict::inconclusive(reason, None));
    if let Some(reason) = &expectation.cannot {
        return because(reason.clone());
    }
    let (Some(quantity), Some(comparison)) =
        (Metric::parse(&expectation.metric), Comparison::of(&expectation.is))
    else {
        return because(format!("'{} {}' is unknown to this version", expectation.metric, expectation.is));
    };
    let Some(row) = rows.iter().find(|row| row.test.id == expectation.test) else {
        return because("the test did not run".to_owned());
    };
    if row.test.status != TestStatus::Complete {
        let reason = row.test.reason.as_deref().map(|reason| format!(" ({reason})")).unwrap_or_default();
        return because(format!("test {}{reason}", row.test.status.name()));
    }
    let direction = quantity.direction_in(&row.summary);
    let case = ExpectationCase { record, rows, row, expectation, quantity, direction, comparison };
    let measured_s: f64 = row.seconds.iter().map(|second| second.elapsed_ns as f64 / 1e9).sum();
    let judged = burst::while_credits_remain(&case, of_case(&case, with_verdict));
    ExpectationResult { seconds: measured_s.round() as u64, ..judged }
}

fn of_case(
    case: &ExpectationCase<'_>,
    with_verdict: impl Fn(CriterionVerdict) -> ExpectationResult,
) -> ExpectationResult {
    let ExpectationCase { row, expectation, quantity, direction, .. } = *case;
    let Some(measured) = quantity.of(&row.summary) else {
        return with_verdict(unmeasured(case));
    };
    // Where a share of the time is expected, that share is the measured value, not the rate.
    let measured_rate = expectation.share.is_none().then_some(measured);
    let inconclusive = |reason: String, remedy: Option<String>| ExpectationResult {
        measured: measured_rate,
        ..with_verdict(CriterionVerdict::inconclusive(reason, remedy))
    };
    if let Some(doubt) = conditions::elsewhere(case) {
        return inconclusive(doubt.reason, doubt.remedy);
    }
    if row.seconds.len() < MIN_SECONDS {
        let reason = format!("{} is too short to determine the variation", seconds(row.summary.measured_ns));
        return inconclusive(reason, Some(longer_run()));
    }
    let no_interval = inconclusive("too few samples to determine the variation".to_owned(), None);
    if let Some(credit) = expectation.conditions.credit {
        return burst::judge(case, credit, no_interval);
    }
    if let Some(expected) = expectation.share {
        return of_share(case, expected, no_interval);
    }
    if let Some(judged) = after_fall(case, &no_interval) {
        return judged;
    }
    match interval::around(&row.test, quantity, direction, measured) {
        Some(interval) => compare(case, interval, no_interval),
        None => no_interval,
    }
}

/// The remedy for too few samples.
fn longer_run() -> String {
    "use a longer --runtime".to_owned()
}

/// A rate that fell for good has no mean that a longer run would approach: it is what remained, and before that the burst. `None`
/// of other rates and metrics.
fn after_fall(case: &ExpectationCase<'_>, result: &ExpectationResult) -> Option<ExpectationResult> {
    let ExpectationCase { row, expectation, quantity, direction, comparison, .. } = *case;
    if !case.is_rate() {
        return None;
    }
    let timed = interval::timed_rates(&row.test, quantity.kind, direction);
    let rates: Vec<f64> = timed.iter().map(|(rate, _)| *rate).collect();
    let (before, after) = timed.split_at(fall(&rates)?.before.length);
    let rate = mean(&after.iter().map(|(rate, _)| *rate).collect::<Vec<_>>());
    // The interval is that of what remained, so the value is too: the mean of both is the rate of neither.
    let remained = ExpectationResult { measured: Some(rate), ..result.clone() };
    let judged = compare(case, interval::of_timed_rates(after, rate)?, remained);
    if judged.verdict != CriterionVerdict::Missed {
        return None;
    }
    let figure = |value: f64| quantity.kind.figure_beside(value, expectation.value);
    let lasted = before.iter().map(|(_, seconds)| seconds * 1e9).sum::<f64>();
    let side = if comparison.wants_more() { "fell" } else { "changed" };
    let lasting = format!("the rate {side} to {} after {}", figure(rate), seconds(lasted as u64));
    Some(ExpectationResult { lasting: Some(lasting), ..judged })
}

/// Compares a confidence interval with the bound, and takes the conditions into account.
fn compare(
    case: &ExpectationCase<'_>,
    interval: ConfidenceInterval,
    result: ExpectationResult,
) -> ExpectationResult {
    let ExpectationCase { expectation, comparison, quantity, .. } = *case;
    let bound = comparison.bound(expectation.value, expectation.tolerance_percent);
    let (worst, best) = match comparison.wants_more() {
        true => (interval.low, interval.high),
        false => (interval.high, interval.low),
    };
    let result = ExpectationResult { interval: Some(interval), ..result };
    if comparison.holds(worst, bound) {
        let verdict = conditions::flatters(case).map_or(CriterionVerdict::Met, Doubt::verdict);
        return ExpectationResult { verdict, ..result };
    }
    if let Some(excuse) = conditions::excuses(case, bound, Some(best)) {
        return ExpectationResult { verdict: excuse.verdict(), ..result };
    }
    let kind = quantity.kind;
    let value = result.measured.unwrap_or(f64::midpoint(interval.low, interval.high));
    let figure = |value: f64| kind.figure_beside(value, expectation.value);
    let range = kind.range_beside(interval.low, interval.high, expectation.value);
    let range = range.unwrap_or_else(|| figure(value));
    if !comparison.holds(best, bound) {
        let off = percent((value / expectation.value - 1.0).abs());
        let side = if comparison.wants_more() { "below" } else { "above" };
        let basis = format!("{range} (95 % confidence interval), {off} {side} the expectation");
        return ExpectationResult { verdict: CriterionVerdict::Missed, basis: Some(basis), ..result };
    }
    let bound_text = figure(bound);
    let reason = format!("too close to call: the 95 % confidence interval {range} includes {bound_text}");
    let verdict = CriterionVerdict::inconclusive(reason, Some(needed_runtime(case, interval, bound)));
    ExpectationResult { verdict, ..result }
}

/// The runtime that would decide: intervals shrink with the root of the time.
fn needed_runtime(case: &ExpectationCase<'_>, interval: ConfidenceInterval, bound: f64) -> String {
    let value = (interval.low + interval.high) / 2.0;
    let (half, off) = ((interval.high - interval.low) / 2.0, (value - bound).abs());
    let now = case.row.summary.measured_ns as f64 / 1e9;
    let needed = now * (half / off.max(f64::MIN_POSITIVE)).powi(2) * 1.5;
    match needed.is_finite() && needed <= LONGEST_ADVICE_S {
        true => format!("use --runtime {}", (needed.max(now * 2.0).ceil() as u64)),
        false => "use a longer --runtime; a value this close to the bound may need hours".to_owned(),
    }
}

fn of_share(
    case: &ExpectationCase<'_>,
    expected: ShareRecord,
    result: ExpectationResult,
) -> ExpectationResult {
    let ExpectationCase { row, expectation, quantity, direction, comparison, .. } = *case;
    let bound = comparison.bound(expectation.value, expectation.tolerance_percent);
    let rates = interval::timed_rates(&row.test, quantity.kind, direction);
    // An interval longer than a second counts as that many seconds.
    let good = rates.iter().flat_map(|&(rate, seconds)| {
        std::iter::repeat_n(comparison.holds(rate, bound), seconds.round().max(1.0) as usize)
    });
    let good: Vec<bool> = good.collect();
    let judged = share::judge(&good, expected, result);
    let doubt = match judged.verdict {
        CriterionVerdict::Met => conditions::flatters(case),
        CriterionVerdict::Missed => conditions::excuses(case, bound, None),
        CriterionVerdict::Inconclusive { .. } => None,
    };
    match doubt {
        Some(doubt) => ExpectationResult { verdict: doubt.verdict(), basis: None, ..judged },
        None => judged,
    }
}

/// Why the metric has no value.
fn unmeasured(case: &ExpectationCase<'_>) -> CriterionVerdict {
    let ExpectationCase { row, quantity, direction, .. } = *case;
    let MetricKind::Latency(_, statistic @ Statistic::Percentile(_)) = quantity.kind else {
        let reason = format!("the test has no {} of {}", quantity.label(), direction.name());
        return CriterionVerdict::inconclusive(reason, None);
    };
    let ios = match direction {
        MetricDirection::Sync => row.summary.sync.as_ref().map(|sync| sync.ios),
        _ => direction.of(&row.summary).map(|op| op.ios),
    };
    too_few_samples(statistic, ios.unwrap_or(0), LONGER)
}

#[cfg(test)]
mod tests;
