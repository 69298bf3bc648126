//! `--fail-if`: conditions on a comparison, such as `rand-read.iops < 0.95`.
//!
//! The grammar is that of criteria. A bare number is the ratio to the base; an absolute value carries its unit. A condition holds
//! where the whole interval satisfies it, and is inconclusive where the interval includes both.

use serde::Serialize;

use super::figure::{Deltas, Figure};
use super::ratio::{ValueInterval, interval_of, ratio};
use super::rows::ComparedRow;
use super::source::LABELS;
use crate::compare::figure::ratio_text;
use crate::criterion::{Comparison, CriterionParts, Metric, MetricKind, parse_value};

/// A condition as it was written.
#[derive(Clone, Debug, PartialEq)]
pub struct FailCondition {
    text: String,
    test: Option<String>,
    metric: Metric,
    comparison: Comparison,
    value: Limit,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Limit {
    /// B / A.
    Ratio(f64),
    /// Of B alone, in base units.
    Absolute(f64),
}

/// The result of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum GateVerdict {
    /// The whole interval satisfies it: the comparison fails.
    Failed,
    /// No part of the interval satisfies it.
    Passed,
    /// The interval includes both, or there is none.
    Inconclusive,
}

impl GateVerdict {
    /// The word in JSON and text.
    pub const fn name(self) -> &'static str {
        match self {
            GateVerdict::Failed => "failed",
            GateVerdict::Passed => "passed",
            GateVerdict::Inconclusive => "inconclusive",
        }
    }
}

/// A condition on one test of one source.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GateResult {
    /// The condition as it was written.
    pub condition: String,
    /// The test.
    pub test: String,
    /// The source, by its letter.
    pub source: &'static str,
    /// The ratio, or the value in base units; `None` where there is none.
    pub value: Option<f64>,
    /// Ends of its 95 % confidence interval.
    pub low: Option<f64>,
    /// As `low`.
    pub high: Option<f64>,
    /// The result.
    pub verdict: GateVerdict,
    /// Why it is inconclusive.
    pub reason: Option<String>,
    /// The value with its interval, for people.
    #[serde(skip)]
    pub text: String,
}

impl FailCondition {
    /// Reads a condition.
    ///
    /// # Errors
    /// It is not valid; the message says what to write.
    pub fn parse(text: &str) -> Result<FailCondition, String> {
        let CriterionParts { test, metric, comparison, right } = CriterionParts::split(text)?;
        let value = match (right.parse::<f64>(), metric.kind) {
            (Ok(ratio), _) if ratio.is_finite() && ratio > 0.0 => Limit::Ratio(ratio),
            (Ok(_), _) => return Err(format!("'{right}' is not a ratio above 0")),
            (Err(_), MetricKind::Iops) => {
                let number = right.strip_suffix("IOPS").or_else(|| right.strip_suffix("iops"));
                let number = number.ok_or_else(|| {
                    format!("'{right}' is neither a ratio nor a rate: write 0.95, or 5000 IOPS")
                })?;
                Limit::Absolute(parse_value(metric.kind, number)?)
            }
            (Err(_), kind) => Limit::Absolute(parse_value(kind, right)?),
        };
        if !metric.is_recorded() {
            return Err(format!("runs do not record {metric}: use {}", Metric::KNOWN));
        }
        Ok(FailCondition { text: text.trim().to_owned(), test, metric, comparison, value })
    }
}

/// Checks `conditions` on every source but the base.
///
/// # Errors
/// A condition names a test that no source has.
pub fn check(
    conditions: &[FailCondition],
    rows: &[ComparedRow],
    base: usize,
) -> Result<Vec<GateResult>, String> {
    let mut results = Vec::new();
    for condition in conditions {
        let is_meant = |row: &&ComparedRow| condition.test.as_ref().is_none_or(|test| *test == row.test);
        let meant: Vec<&ComparedRow> = rows.iter().filter(is_meant).collect();
        if meant.is_empty() {
            let known: Vec<&str> = rows.iter().map(|row| row.test.as_str()).collect();
            return Err(format!(
                "'{}' names no test of the sources: use one of {}",
                condition.text,
                known.join(", ")
            ));
        }
        for row in meant {
            let others = (0..row.runs.len()).filter(|other| *other != base);
            results.extend(others.filter_map(|other| check_one(condition, row, [base, other])));
        }
    }
    Ok(results)
}

/// `None` where a condition on every test does not concern this one.
fn check_one(condition: &FailCondition, row: &ComparedRow, [base, other]: [usize; 2]) -> Option<GateResult> {
    let first = row.runs.iter().flatten().next()?;
    let direction = condition.metric.direction_in(&first.summary);
    let figure = Figure::Metric(Metric { direction: Some(direction), ..condition.metric });
    let [samples_a, samples_b] = [base, other].map(|source| figure.samples(row, source));
    if condition.test.is_none() && samples_a.is_empty() && samples_b.is_empty() {
        return None;
    }
    let (value, interval, limit) = match condition.value {
        Limit::Ratio(limit) => {
            let found = ratio(&samples_a, &samples_b, figure.threshold(Deltas::default()))
                .filter(|_| row.is_comparable(base, other));
            let interval = found.and_then(|found| Some(ValueInterval { low: found.low?, high: found.high? }));
            (found.map(|found| found.ratio), interval, limit)
        }
        Limit::Absolute(limit) => {
            let cell = figure.cell(row, other);
            (cell.value, interval_of(&samples_b), limit)
        }
    };
    let reason = match (value, interval) {
        (None, _) if row.runs[other].is_empty() => Some(format!("{} does not have this test", LABELS[other])),
        (None, _) if row.runs[base].is_empty() => Some(format!("{} does not have this test", LABELS[base])),
        (None, _) if !row.is_comparable(base, other) => Some("the tests did different work".to_owned()),
        (None, _) => Some("not measured".to_owned()),
        (Some(_), None) => Some("one run has no interval: compare several runs of each".to_owned()),
        (Some(_), Some(_)) => None,
    };
    let holds = |value: f64| condition.comparison.holds(value, limit);
    let verdict = match interval.filter(|_| value.is_some()) {
        Some(ValueInterval { low, high }) if holds(low) && holds(high) => GateVerdict::Failed,
        Some(ValueInterval { low, high }) if !holds(low) && !holds(high) => GateVerdict::Passed,
        _ => GateVerdict::Inconclusive,
    };
    let straddles = verdict == GateVerdict::Inconclusive && reason.is_none();
    let shown = |value: f64| match condition.value {
        Limit::Ratio(_) => ratio_text(value),
        Limit::Absolute(_) => figure.quantity(value),
    };
    let range = interval.map(|of| format!(" ({} to {})", shown(of.low), shown(of.high))).unwrap_or_default();
    Some(GateResult {
        condition: condition.text.clone(),
        test: row.test.clone(),
        source: LABELS[other],
        value,
        low: interval.map(|interval| interval.low),
        high: interval.map(|interval| interval.high),
        verdict,
        reason: reason.or_else(|| straddles.then(|| "its interval includes the limit".to_owned())),
        text: value.map(|value| format!("{}{range}", shown(value))).unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::rows::matched_rows;
    use crate::compare::source::ComparedSource;
    use crate::fixture::TestLoad;

    fn source(rates: &[f64]) -> ComparedSource {
        ComparedSource::at_rates(rates, &TestLoad { seconds: vec![1.0; 5], ..TestLoad::default() })
    }

    fn verdict(text: &str, b: &[f64]) -> GateVerdict {
        let sources = [source(&[1000.0, 1002.0, 998.0]), source(b)];
        let condition = FailCondition::parse(text).unwrap();
        check(&[condition], &matched_rows(&sources), 0).unwrap()[0].verdict
    }

    #[test]
    fn the_whole_interval_decides() {
        let slow = [900.0, 902.0, 898.0];
        for (text, expected) in [
            ("t.iops < 0.95", GateVerdict::Failed),
            ("iops<0.85", GateVerdict::Passed),
            ("t.read.iops < 0.9", GateVerdict::Inconclusive),
            ("t.iops < 950 IOPS", GateVerdict::Failed),
            ("t.bw > 1MiB", GateVerdict::Failed),
            ("t.lat.mean > 2ms", GateVerdict::Passed),
            ("t.lat.mean > 1.05", GateVerdict::Failed),
        ] {
            assert_eq!(verdict(text, &slow), expected, "{text}");
        }
        assert_eq!(verdict("t.iops < 0.95", &[900.0, 1100.0]), GateVerdict::Inconclusive);
        assert_eq!(verdict("t.iops < 0.95", &[100.0]), GateVerdict::Inconclusive);
    }

    #[test]
    fn wrong_conditions_are_refused_with_what_to_write() {
        for (text, part) in [
            ("iops", "has no comparison"),
            ("iops < 5k", "write 0.95, or 5000 IOPS"),
            ("iops < 0", "not a ratio above 0"),
            ("lat.p77 < 2", "do not record"),
        ] {
            let error = FailCondition::parse(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
        let sources = [source(&[1.0]), source(&[1.0])];
        let condition = FailCondition::parse("u.iops < 1").unwrap();
        let error = check(&[condition], &matched_rows(&sources), 0).unwrap_err();
        assert!(error.contains("use one of t"), "{error}");
    }
}
