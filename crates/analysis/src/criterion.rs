//! Criteria: a metric, a comparison and a value, as `--expect`, suites, profiles, `--slo` and `--reach` use them. The only
//! module that parses and prints them; metrics are defined in `fathom-record`.
//!
//! The grammar is `[TEST.][DIRECTION.]METRIC COMPARISON VALUE [±TOLERANCE%]`, such as `rand-read.read.lat_ns.p99<5ms±2%`.

mod objective;

use std::fmt;

use fathom_model::units::{parse_bytes, parse_duration};
use serde::Serialize;

pub use fathom_record::{Comparison, LatencySpan, Metric, MetricDirection, MetricKind, Statistic};
pub(crate) use objective::{LONGER, too_few_samples};
pub use objective::{LatencyObjective, ObjectiveVerdict, RateGoal};

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "verdict", rename_all = "lowercase")]
pub enum CriterionVerdict {
    /// The measurement meets the criterion.
    Met,
    /// The measurement misses the criterion.
    Missed,
    /// The measurement cannot decide.
    Inconclusive {
        /// Why not.
        reason: String,
        /// What would decide it.
        #[serde(skip_serializing_if = "Option::is_none")]
        remedy: Option<String>,
    },
}

impl CriterionVerdict {
    /// The word in JSON and text.
    pub const fn name(&self) -> &'static str {
        match self {
            CriterionVerdict::Met => "met",
            CriterionVerdict::Missed => "missed",
            CriterionVerdict::Inconclusive { .. } => "inconclusive",
        }
    }

    /// A verdict that cannot be reached, with the reason and what would decide it.
    pub fn inconclusive(reason: impl Into<String>, remedy: Option<String>) -> CriterionVerdict {
        CriterionVerdict::Inconclusive { reason: reason.into(), remedy }
    }

    /// The verdict of a check that ran.
    pub const fn of(is_met: bool) -> CriterionVerdict {
        if is_met { CriterionVerdict::Met } else { CriterionVerdict::Missed }
    }

    /// As JSON has it: null where it is inconclusive.
    pub const fn decided(&self) -> Option<bool> {
        match self {
            CriterionVerdict::Met => Some(true),
            CriterionVerdict::Missed => Some(false),
            CriterionVerdict::Inconclusive { .. } => None,
        }
    }

    /// True where the measurement meets the criterion.
    pub const fn is_met(&self) -> bool {
        matches!(self, CriterionVerdict::Met)
    }

    /// True where the measurement misses the criterion.
    pub const fn is_missed(&self) -> bool {
        matches!(self, CriterionVerdict::Missed)
    }

    /// True where the measurement cannot decide.
    pub const fn is_inconclusive(&self) -> bool {
        matches!(self, CriterionVerdict::Inconclusive { .. })
    }

    /// Why it is inconclusive, and what would decide it.
    pub fn reason(&self) -> Option<(&str, Option<&str>)> {
        match self {
            CriterionVerdict::Inconclusive { reason, remedy } => Some((reason, remedy.as_deref())),
            CriterionVerdict::Met | CriterionVerdict::Missed => None,
        }
    }
}

/// A criterion as it was written.
#[derive(Clone, Debug, PartialEq)]
pub struct Criterion {
    /// The test; `None` = the only one there is.
    pub test: Option<String>,
    /// What is compared.
    pub metric: Metric,
    /// How.
    pub comparison: Comparison,
    /// I/Os per second, bytes per second or ns, as the metric has it.
    pub value: f64,
    /// By how much, in percent of the value, a measurement may miss it.
    pub tolerance_percent: Option<f64>,
}

impl Criterion {
    /// Reads a criterion.
    ///
    /// # Errors
    /// The text is not valid; the message names the wrong part and what to write instead.
    pub fn parse(text: &str) -> Result<Criterion, String> {
        let CriterionParts { test, metric, comparison, right } = CriterionParts::split(text)?;
        let (value, tolerance) = match right.split_once('±').or_else(|| right.split_once("+-")) {
            Some((value, tolerance)) => (value.trim(), Some(parse_percent(tolerance)?)),
            None => (right, None),
        };
        let value = parse_value(metric.kind, value)?;
        Ok(Criterion { test, metric, comparison, value, tolerance_percent: tolerance })
    }

    /// The value less or plus the tolerance.
    pub fn bound(&self) -> f64 {
        self.comparison.bound(self.value, self.tolerance_percent.unwrap_or(0.0))
    }

    /// Whether `measured` meets it.
    pub fn is_met_by(&self, measured: f64) -> bool {
        self.comparison.holds(measured, self.bound())
    }
}

/// A criterion up to its value.
pub(crate) struct CriterionParts<'a> {
    pub(crate) test: Option<String>,
    pub(crate) metric: Metric,
    pub(crate) comparison: Comparison,
    /// What stands behind the comparison.
    pub(crate) right: &'a str,
}

impl CriterionParts<'_> {
    /// Splits `[TEST.]METRIC COMPARISON …`.
    pub(crate) fn split(text: &str) -> Result<CriterionParts<'_>, String> {
        let at = text
            .find(['<', '>'])
            .ok_or_else(|| format!("'{}' has no comparison: use >=, <=, > or <", text.trim()))?;
        let (address, right) = text.split_at(at);
        let sign = if right[1..].starts_with('=') { &right[..2] } else { &right[..1] };
        let comparison = Comparison::of(sign).unwrap_or(Comparison::AtLeast);
        let (test, metric) = parse_address(address.trim())?;
        Ok(CriterionParts { test, metric, comparison, right: right[sign.len()..].trim() })
    }
}

/// Canonical form, which [`Criterion::parse`] reads back to the same criterion.
impl fmt::Display for Criterion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(test) = &self.test {
            write!(f, "{test}.")?;
        }
        write!(f, "{}{}", self.metric, self.comparison.sign())?;
        if self.metric.is_latency() {
            // The largest unit in which the value is a whole number.
            let units = [("s", 1e9), ("ms", 1e6), ("us", 1e3)];
            let whole = units.into_iter().find(|(_, scale)| self.value % scale == 0.0);
            let (unit, scale) = whole.unwrap_or(("ns", 1.0));
            write!(f, "{}{unit}", self.value / scale)?;
        } else {
            write!(f, "{}", self.value)?;
        }
        self.tolerance_percent.map_or(Ok(()), |percent| write!(f, "±{percent}%"))
    }
}

/// Reads `TEST.METRIC`, or a metric alone. A name that is a direction is one where a metric follows.
///
/// # Errors
/// There is no such metric.
pub fn parse_address(text: &str) -> Result<(Option<String>, Metric), String> {
    if let Some(metric) = Metric::parse(text) {
        return Ok((None, metric));
    }
    match text.split_once('.') {
        Some(("", _)) => Err(format!("'{text}' has no name before the dot: write TEST.METRIC")),
        Some((test, metric)) => match Metric::parse(metric) {
            Some(metric) => Ok((Some(test.to_owned()), metric)),
            None => Err(format!("'{metric}' is not a metric: use {}", Metric::KNOWN)),
        },
        None => Err(format!("'{text}' names no metric: write TEST.METRIC with {}", Metric::KNOWN)),
    }
}

/// A value in the unit of the metric: I/Os per second, bytes per second, ns.
///
/// # Errors
/// The text is not valid; the message says what to write.
pub fn parse_value(kind: MetricKind, text: &str) -> Result<f64, String> {
    let text = text.trim();
    let value = match kind {
        MetricKind::Iops => {
            text.parse::<f64>().map_err(|_| format!("'{text}' is not a number of IOPS: write 5000"))?
        }
        MetricKind::BytesPerSecond => {
            parse_bytes(text.strip_suffix("/s").unwrap_or(text)).map_err(|error| error.to_string())? as f64
        }
        MetricKind::Latency(..) => {
            if text.ends_with(|end: char| end.is_ascii_digit()) {
                return Err(format!("'{text}' has no unit: write {text}ms, {text}us or {text}ns"));
            }
            parse_duration(text).map_err(|error| error.to_string())?.0 as f64
        }
    };
    match value.is_finite() && value > 0.0 {
        true => Ok(value),
        false => Err(format!("'{text}' is not above 0")),
    }
}

/// Reads `2%`, `99.9 %`: from 0 to below 100.
///
/// # Errors
/// It is no such percentage.
pub fn parse_percent(text: &str) -> Result<f64, String> {
    let number =
        text.trim().strip_suffix('%').map(str::trim_end).and_then(|number| number.parse::<f64>().ok());
    number
        .filter(|percent| (0.0..100.0).contains(percent))
        .ok_or_else(|| format!("'{}' is not a percentage from 0% to below 100%", text.trim()))
}

#[cfg(test)]
mod tests;
