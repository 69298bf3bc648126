//! Criteria: a metric, a comparison and a value, as `--expect`, suites and profiles use them. The only module that parses and
//! prints them; metrics are defined in `fathom-record`.
//!
//! The grammar is `[TEST.][DIRECTION.]METRIC COMPARISON VALUE [±TOLERANCE%]`, such as `rand-read.read.lat_ns.p99<5ms±2%`.

#[cfg(test)]
mod tests;

use std::fmt;

use fathom_model::units;
use fathom_model::units::{parse_bytes, parse_duration};
use fathom_record::{Latency, LatencySummary};
use serde::Serialize;

use crate::estimate::binomial_at_most;
pub use fathom_record::{Comparison, LatencySpan, Metric, MetricDirection, MetricKind, Statistic};

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

/// Samples that must lie beyond a percentile before it is one.
const MIN_BEYOND: f64 = 10.0;
/// A sample that is less probable than this where an objective is met shows that it is missed, and the other way round.
const IMPROBABLE: f64 = 0.025;
/// What gives a command that runs for a time more samples.
pub(crate) const LONGER: &str = "use a longer --runtime";

/// An objective for latency: `p99<5ms`, short for `lat_ns.p99<5ms`.
#[derive(Clone, Debug, PartialEq)]
pub struct LatencyObjective {
    criterion: Criterion,
    statistic: Statistic,
    text: String,
}

/// A rate to reach: `iops>=5000` or `bytes_per_second>=200MiB`.
#[derive(Clone, Debug, PartialEq)]
pub struct RateGoal {
    criterion: Criterion,
    text: String,
}

/// Why a percentile of a sample this small has no verdict.
pub(crate) fn too_few_samples(statistic: Statistic, samples: u64, remedy: &str) -> CriterionVerdict {
    let needed = (MIN_BEYOND / statistic.share_beyond()).ceil() as u64;
    let (samples, needed) = (units::grouped(samples), units::grouped(needed));
    let reason = format!("too few samples for {} ({samples}; needs {needed})", statistic.label());
    CriterionVerdict::inconclusive(reason, Some(remedy.to_owned()))
}

/// Reads a criterion that applies to all that a command measures.
fn unaddressed(text: &str) -> Result<Criterion, String> {
    let criterion = Criterion::parse(text)?;
    match (&criterion.test, criterion.metric.direction) {
        (Some(test), _) => Err(format!("'{test}' names a test, but this command has none: omit '{test}.'")),
        (_, Some(direction)) => {
            let name = direction.name();
            Err(format!(
                "'{name}' names a direction, but the objective covers all directions: omit '{name}.'"
            ))
        }
        (None, None) => Ok(criterion),
    }
}

impl LatencyObjective {
    /// Reads an objective; any percentile is one.
    ///
    /// # Errors
    /// The text is not valid; the message says how one is written.
    pub fn parse(text: &str) -> Result<LatencyObjective, String> {
        let text = text.trim();
        let wrong =
            |error: String| format!("'{text}' is not an objective such as p99<5ms or mean<=800us: {error}");
        let criterion = unaddressed(&text.to_ascii_lowercase()).map_err(wrong)?;
        match criterion.metric.kind {
            _ if criterion.comparison.wants_more() => {
                Err(wrong("a latency objective needs < or <=".to_owned()))
            }
            MetricKind::Latency(LatencySpan::Total, statistic) => {
                Ok(LatencyObjective { criterion, statistic, text: text.to_owned() })
            }
            _ => Err(wrong("an objective limits lat_ns, for example p99 or mean".to_owned())),
        }
    }

    /// Reads an objective for figures of which only some percentiles are recorded.
    ///
    /// # Errors
    /// The text is not valid; the message says how one is written.
    pub fn parse_recorded(text: &str) -> Result<LatencyObjective, String> {
        let objective = LatencyObjective::parse(text)?;
        match objective.statistic {
            Statistic::Least => {
                Err(format!("'{text}': the minimum cannot be an objective: use mean, p99 or max"))
            }
            statistic if !statistic.is_recorded() => {
                Err(format!("'{text}': {} is not recorded: use {}", statistic.name(), Statistic::RECORDED))
            }
            _ => Ok(objective),
        }
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The statistic that it limits.
    pub fn statistic(&self) -> Statistic {
        self.statistic
    }

    /// The limit, tolerance included, ns.
    pub fn limit_ns(&self) -> f64 {
        self.criterion.bound()
    }

    /// Whether a latency meets it, ns.
    pub fn is_met_by(&self, ns: f64) -> bool {
        self.criterion.is_met_by(ns)
    }

    /// Whether a distribution meets it; inconclusive where the sample is too small for the statistic.
    pub fn verdict(&self, lat: &LatencySummary) -> CriterionVerdict {
        match self.statistic.of(lat) {
            Some(ns) => CriterionVerdict::of(self.is_met_by(ns)),
            None => too_few_samples(self.statistic, lat.samples, LONGER),
        }
    }

    /// Samples that it takes to judge it.
    pub fn samples(&self) -> f64 {
        MIN_BEYOND / self.statistic.share_beyond()
    }

    /// Judges `latency` and `lost` I/Os, which failed or were never answered. These count as slower than any objective, so a
    /// percentile is one of all I/Os.
    pub fn judge(&self, latency: &Latency, lost: u64) -> ObjectiveVerdict {
        let all = latency.samples() + lost;
        let observed_ns = self.observed(latency, lost);
        let is_percentile = matches!(self.statistic, Statistic::Percentile(_));
        let verdict = match observed_ns {
            _ if all == 0 => CriterionVerdict::inconclusive("no I/O was measured", None),
            _ if lost == all => CriterionVerdict::Missed,
            _ if is_percentile && (all as f64) < self.samples() - 1e-6 => self.small_sample(latency, lost),
            Some(ns) => CriterionVerdict::of(self.is_met_by(ns as f64)),
            None => CriterionVerdict::Missed,
        };
        ObjectiveVerdict { objective: self.criterion.to_string(), observed_ns, verdict }
    }

    /// The verdict on a percentile that a sample is too small to show: from how many of its I/Os are slower than the limit, where
    /// that many or that few would be improbable on the other side of it.
    fn small_sample(&self, latency: &Latency, lost: u64) -> CriterionVerdict {
        let all = latency.samples() + lost;
        let slower = latency.fio_bins().into_iter().filter(|(ns, _)| !self.is_met_by(*ns as f64));
        let slower = slower.map(|(_, count)| count).sum::<u64>() + lost;
        let share = self.statistic.share_beyond();
        let at_least = 1.0 - slower.checked_sub(1).map_or(0.0, |fewer| binomial_at_most(fewer, all, share));
        match () {
            () if at_least < IMPROBABLE => CriterionVerdict::Missed,
            () if binomial_at_most(slower, all, share) < IMPROBABLE => CriterionVerdict::of(true),
            () => too_few_samples(self.statistic, all, "make more requests (-c, -w)"),
        }
    }

    fn observed(&self, latency: &Latency, lost: u64) -> Option<u64> {
        let samples = latency.samples();
        if samples == 0 {
            return None;
        }
        match self.statistic {
            Statistic::Least => Some(latency.moments.min),
            Statistic::Mean if lost == 0 => Some(latency.moments.mean().round() as u64),
            Statistic::Greatest if lost == 0 => Some(latency.moments.max),
            Statistic::Mean | Statistic::Greatest => None,
            Statistic::Percentile(per_million) => {
                // The same rank among those that were answered.
                let percent = f64::from(per_million) / 1e4 * (samples + lost) as f64 / samples as f64;
                if percent > 100.0 { None } else { latency.percentile(percent) }
            }
        }
    }
}

/// The result of one objective.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ObjectiveVerdict {
    /// The criterion in canonical form, `lat_ns.p99<5ms`.
    pub objective: String,
    /// The measured value, ns; `None` where no I/O completed, or where so many I/Os failed that the statistic has no value.
    pub observed_ns: Option<u64>,
    /// The result.
    #[serde(flatten)]
    pub verdict: CriterionVerdict,
}

impl RateGoal {
    /// Reads a rate to reach.
    ///
    /// # Errors
    /// The text is not valid; the message says how one is written.
    pub fn parse(text: &str) -> Result<RateGoal, String> {
        let text = text.trim();
        let wrong = |error: String| {
            format!("'{text}' is not a rate such as iops>=5000 or bytes_per_second>=200MiB: {error}")
        };
        let criterion = unaddressed(text).map_err(wrong)?;
        match criterion.metric.is_latency() || !criterion.comparison.wants_more() {
            true => Err(wrong("use iops or bytes_per_second with >= or >".to_owned())),
            false => Ok(RateGoal { criterion, text: text.to_owned() }),
        }
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether rates reach it.
    pub fn is_reached_by(&self, iops: f64, bytes_per_second: f64) -> bool {
        let rate = if self.criterion.metric.kind == MetricKind::Iops { iops } else { bytes_per_second };
        self.criterion.is_met_by(rate)
    }
}

#[cfg(test)]
mod objective_tests {
    use super::*;
    use fathom_stats::Latency;

    fn of(times: impl IntoIterator<Item = u64>) -> Latency {
        let mut latency = Latency::default();
        times.into_iter().for_each(|ns| latency.record(ns));
        latency
    }

    #[test]
    fn objectives_are_read() {
        let check = |text: &str, expected: Result<&str, &str>| match (
            LatencyObjective::parse(text).map(|found| found.criterion.to_string()),
            expected,
        ) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{text}"),
            (Err(error), Err(part)) => assert!(error.contains(part), "{error}"),
            (found, _) => panic!("{text}: {found:?}"),
        };
        check("p99<5ms", Ok("lat_ns.p99<5ms"));
        check(" P99.9 <= 1s ", Ok("lat_ns.p999<=1s"));
        check("p9999<2s", Ok("lat_ns.p9999<2s"));
        check("p12.5<2s", Ok("lat_ns.p12.5<2s"));
        check("avg<800us", Ok("lat_ns.mean<800us"));
        check("max<=1s", Ok("lat_ns.max<=1s"));
        check("min<1us", Ok("lat_ns.min<1us"));
        check("", Err("is not an objective"));
        check("p99>5ms", Err("is not an objective"));
        check("q99<5ms", Err("is not an objective"));
        check("p100<5ms", Err("is not an objective"));
        check("p0<5ms", Err("is not an objective"));
        check("p99<fast", Err("fast"));
        check("p99<5", Err("'5' has no unit: write 5ms"));
        check("p99<0ms", Err("not above 0"));
    }

    #[test]
    fn verdicts() {
        let check = |text: &str, times: &Latency, lost: u64, met: Option<bool>| {
            let judged = LatencyObjective::parse(text).unwrap().judge(times, lost);
            assert_eq!(judged.verdict.decided(), met, "{text} {lost}: {judged:?}");
        };
        let thousand = of((1..=1000).map(|ms| ms * 1_000_000));
        check("p50<510ms", &thousand, 0, Some(true));
        check("p50<490ms", &thousand, 0, Some(false));
        check("max<=1s", &thousand, 0, Some(true));
        check("max<1s", &thousand, 0, Some(false));
        check("max<=1s", &thousand, 1, Some(false));
        check("mean<600ms", &thousand, 0, Some(true));
        check("min<2ms", &thousand, 900, Some(true));
        // A tenth of all is lost: p95 is lost, p50 has moved up.
        check("p95<10s", &thousand, 112, Some(false));
        check("p50<510ms", &thousand, 112, Some(false));
        // Too small a sample for the percentile decides where most of it is slow, or enough of it is quick.
        check("p99<10s", &of([1_000_000; 20]), 0, None);
        check("p99<10s", &of([1_000_000; 400]), 0, Some(true));
        check("p99<10s", &of([1_000_000; 367]), 0, None);
        check("p99<10s", &of([1_000_000; 19]), 1, None);
        check("p99<10s", &of([1_000_000; 18]), 2, Some(false));
        check("p99<10s", &of([]), 0, None);
        check("p50<10s", &of([]), 3, Some(false));
        check("max<10s", &of([1_000_000; 20]), 0, Some(true));
    }
}
