//! Objectives for the latency of requests (`p99<5ms`) and whether they were kept. Pure.
//!
//! A request that failed or was never answered counts as slower than any objective; a percentile is that of all requests
//! asked for, so a device that answers half of them quickly keeps no promise about the other half.

use fathom_model::units::parse_duration;
use fathom_record::LatencyRecord;

/// An objective as it was said.
#[derive(Clone, Debug, PartialEq)]
pub struct LatencyObjective {
    /// As typed.
    pub text: String,
    measure: LatencyMeasure,
    /// The value itself keeps it (`<=`).
    inclusive: bool,
    limit_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum LatencyMeasure {
    Percentile(f64),
    Min,
    Mean,
    Max,
}

/// What became of an objective.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectiveVerdict {
    /// As typed.
    pub objective: String,
    /// What was measured, ns; `None` where nothing was answered, or where so many requests failed that there is no such time.
    pub observed_ns: Option<u64>,
    /// It was kept; `None` where no request was made.
    pub met: Option<bool>,
    /// The sample is too small to tell how it would be in the long run.
    pub low_sample: bool,
}

/// Beyond a percentile that is to be relied on lie at least so many samples.
const LEAST_BEYOND: f64 = 10.0;

/// Reads objectives separated by commas: `p99<5ms`, `mean<=800us,max<1s`.
///
/// # Errors
/// What is wrong with which of them.
pub fn parse(text: &str) -> Result<Vec<LatencyObjective>, String> {
    text.split(',').map(|part| one(part.trim())).collect()
}

fn one(text: &str) -> Result<LatencyObjective, String> {
    let malformed = || format!("'{text}' is no objective: write one such as p99<5ms or mean<=800us");
    let (name, rest) = text.split_once('<').ok_or_else(malformed)?;
    let (inclusive, value) = match rest.strip_prefix('=') {
        Some(value) => (true, value),
        None => (false, rest),
    };
    let measure = match name.trim().to_ascii_lowercase().as_str() {
        "min" => LatencyMeasure::Min,
        "mean" | "avg" => LatencyMeasure::Mean,
        "max" => LatencyMeasure::Max,
        percentile => {
            let digits = percentile.strip_prefix('p').ok_or_else(malformed)?;
            // p999 is 99.9 %, as in the names of our documents.
            let value: f64 = match digits.len() {
                3.. if digits.starts_with('9') && !digits.contains('.') => {
                    format!("{}.{}", &digits[..2], &digits[2..]).parse()
                }
                _ => digits.parse(),
            }
            .map_err(|_| malformed())?;
            if !(value > 0.0 && value < 100.0) {
                return Err(format!("'{text}': a percentile lies between 0 and 100"));
            }
            LatencyMeasure::Percentile(value)
        }
    };
    let limit_ns = parse_duration(value.trim()).map_err(|error| format!("'{text}': {error}"))?.0;
    if limit_ns == 0 {
        return Err(format!("'{text}': nothing takes less than no time"));
    }
    Ok(LatencyObjective { text: text.to_owned(), measure, inclusive, limit_ns })
}

/// Holds `latency` and `lost` requests, which had no answer, against the objectives.
pub fn judge(objectives: &[LatencyObjective], latency: &LatencyRecord, lost: u64) -> Vec<ObjectiveVerdict> {
    objectives.iter().map(|objective| verdict(objective, latency, lost)).collect()
}

fn verdict(objective: &LatencyObjective, latency: &LatencyRecord, lost: u64) -> ObjectiveVerdict {
    let samples = latency.samples();
    let all = samples + lost;
    let observed_ns = observed(objective.measure, latency, lost);
    let met = match observed_ns {
        Some(ns) => Some(ns < objective.limit_ns || (objective.inclusive && ns == objective.limit_ns)),
        None => (all > 0).then_some(false),
    };
    let low_sample = match objective.measure {
        LatencyMeasure::Percentile(percent) => (all as f64) * (100.0 - percent) / 100.0 < LEAST_BEYOND - 1e-6,
        _ => false,
    };
    ObjectiveVerdict { objective: objective.text.clone(), observed_ns, met, low_sample }
}

fn observed(measure: LatencyMeasure, latency: &LatencyRecord, lost: u64) -> Option<u64> {
    let samples = latency.samples();
    if samples == 0 {
        return None;
    }
    match measure {
        LatencyMeasure::Min => Some(latency.moments.min),
        LatencyMeasure::Mean if lost == 0 => Some(latency.moments.mean().round() as u64),
        LatencyMeasure::Max if lost == 0 => Some(latency.moments.max),
        LatencyMeasure::Mean | LatencyMeasure::Max => None,
        LatencyMeasure::Percentile(percent) => {
            // The same rank among those that were answered.
            let percent = percent * (samples + lost) as f64 / samples as f64;
            if percent > 100.0 { None } else { latency.percentile(percent) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fathom_stats::Latency;

    fn of(times: impl IntoIterator<Item = u64>) -> LatencyRecord {
        let mut latency = Latency::default();
        times.into_iter().for_each(|ns| latency.record(ns));
        LatencyRecord::from_stats(&latency)
    }

    #[test]
    fn objectives_are_read() {
        let check = |text: &str, expected: Result<&[(LatencyMeasure, bool, u64)], &str>| match (
            parse(text),
            expected,
        ) {
            (Ok(found), Ok(expected)) => {
                let found: Vec<_> = found.iter().map(|o| (o.measure, o.inclusive, o.limit_ns)).collect();
                assert_eq!(found, expected, "{text}");
            }
            (Err(error), Err(part)) => assert!(error.contains(part), "{error}"),
            (found, _) => panic!("{text}: {found:?}"),
        };
        check("p99<5ms", Ok(&[(LatencyMeasure::Percentile(99.0), false, 5_000_000)]));
        check(" P99.9 <= 1s ", Ok(&[(LatencyMeasure::Percentile(99.9), true, 1_000_000_000)]));
        check(
            "p999<1s,p9999<2s",
            Ok(&[
                (LatencyMeasure::Percentile(99.9), false, 1_000_000_000),
                (LatencyMeasure::Percentile(99.99), false, 2_000_000_000),
            ]),
        );
        check(
            "mean<800us,max<=1s",
            Ok(&[(LatencyMeasure::Mean, false, 800_000), (LatencyMeasure::Max, true, 1_000_000_000)]),
        );
        check("min<1us", Ok(&[(LatencyMeasure::Min, false, 1_000)]));
        check("", Err("is no objective"));
        check("p99>5ms", Err("is no objective"));
        check("q99<5ms", Err("is no objective"));
        check("p100<5ms", Err("between 0 and 100"));
        check("p0<5ms", Err("between 0 and 100"));
        check("p99<fast", Err("fast"));
        check("p99<0", Err("no time"));
    }

    #[test]
    fn verdicts() {
        let check = |text: &str, times: &LatencyRecord, lost: u64, met: Option<bool>, low: bool| {
            let verdicts = judge(&parse(text).unwrap(), times, lost);
            assert_eq!((verdicts[0].met, verdicts[0].low_sample), (met, low), "{text} {lost}: {verdicts:?}");
        };
        let thousand = of((1..=1000).map(|ms| ms * 1_000_000));
        check("p50<510ms", &thousand, 0, Some(true), false);
        check("p50<490ms", &thousand, 0, Some(false), false);
        check("max<=1s", &thousand, 0, Some(true), false);
        check("max<1s", &thousand, 0, Some(false), false);
        check("max<=1s", &thousand, 1, Some(false), false);
        check("mean<600ms", &thousand, 0, Some(true), false);
        check("min<2ms", &thousand, 900, Some(true), false);
        // A tenth of all is lost: p95 is lost, p50 has moved up.
        check("p95<10s", &thousand, 112, Some(false), false);
        check("p50<510ms", &thousand, 112, Some(false), false);
        check("p99<10s", &of([1_000_000; 20]), 0, Some(true), true);
        check("p99<10s", &of([]), 0, None, true);
        check("p99<10s", &of([]), 3, Some(false), true);
    }
}
