//! A promise in one line: `rand-read.iops>=5000`, `lat-read.lat_ns.p99<5ms +-2%`. Pure.

use fathom_analysis::promise::{Comparison, PromiseMeasure, Quantity};
use fathom_model::units::{parse_bytes, parse_duration};

/// What a line says.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ExpectationLine {
    pub(super) test: String,
    pub(super) metric: String,
    pub(super) quantity: Quantity,
    pub(super) is: Comparison,
    pub(super) value: f64,
    pub(super) tolerance_percent: Option<f64>,
}

/// True where `text` compares something, and does not name a type of volume.
pub(super) fn is_one(text: &str) -> bool {
    text.contains(['<', '>'])
}

/// Reads a line; the error says what is wrong with it.
pub(super) fn read(text: &str) -> Result<ExpectationLine, String> {
    let at = text.find(['<', '>']).ok_or_else(|| "it compares nothing: use >=, <=, > or <".to_owned())?;
    let (left, right) = text.split_at(at);
    let sign = if right[1..].starts_with('=') { &right[..2] } else { &right[..1] };
    let is = Comparison::of(sign).ok_or_else(|| format!("'{sign}' is no comparison"))?;
    let right = right[sign.len()..].trim();
    let (value, tolerance) = match right.split_once('±').or_else(|| right.split_once("+-")) {
        Some((value, tolerance)) => (value.trim(), Some(percent(tolerance)?)),
        None => (right, None),
    };
    let (test, metric) = left
        .trim()
        .split_once('.')
        .ok_or_else(|| format!("'{}' names no metric: write TEST.METRIC", left.trim()))?;
    let quantity = Quantity::parse(metric)
        .ok_or_else(|| format!("'{metric}' is no metric: there are {}", Quantity::KNOWN))?;
    Ok(ExpectationLine {
        test: test.to_owned(),
        metric: metric.to_owned(),
        quantity,
        is,
        value: figure(quantity.measure, value)?,
        tolerance_percent: tolerance,
    })
}

/// A value in the unit of what is measured: requests a second, bytes a second, ns.
pub(crate) fn figure(measure: PromiseMeasure, text: &str) -> Result<f64, String> {
    let text = text.trim();
    let value = match measure {
        PromiseMeasure::Iops => {
            text.parse::<f64>().map_err(|_| format!("'{text}' is not a number of requests a second"))?
        }
        PromiseMeasure::BytesPerSecond => {
            parse_bytes(text.strip_suffix("/s").unwrap_or(text)).map_err(|error| error.to_string())? as f64
        }
        PromiseMeasure::Latency(..) => {
            if text.ends_with(|end: char| end.is_ascii_digit()) {
                return Err(format!("'{text}' has no unit: write 5ms, 250us or 5000000ns"));
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
pub fn percent(text: &str) -> Result<f64, String> {
    let number =
        text.trim().strip_suffix('%').map(str::trim_end).and_then(|number| number.parse::<f64>().ok());
    number
        .filter(|percent| (0.0..100.0).contains(percent))
        .ok_or_else(|| format!("'{}' is no percentage from 0% to below 100%", text.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read() {
        let check = |text: &str, expected: (&str, &str, &str, f64, Option<f64>)| {
            let said = read(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            let found = (
                said.test.as_str(),
                said.metric.as_str(),
                said.is.sign(),
                said.value,
                said.tolerance_percent,
            );
            assert_eq!(found, expected, "{text}");
        };
        check("rand-read.iops>=5000", ("rand-read", "iops", ">=", 5000.0, None));
        check("rand-mixed.read.iops > 2250.5", ("rand-mixed", "read.iops", ">", 2250.5, None));
        check("bw-write.bytes_per_second>=200MB", ("bw-write", "bytes_per_second", ">=", 2e8, None));
        check(
            "bw-write.bytes_per_second>=200MiB/s",
            ("bw-write", "bytes_per_second", ">=", 209_715_200.0, None),
        );
        check("lat-read.lat_ns.p99<5ms", ("lat-read", "lat_ns.p99", "<", 5e6, None));
        check("a.iops>=5000±2%", ("a", "iops", ">=", 5000.0, Some(2.0)));
        check(" a.iops <= 5000 +- 0.5 % ", ("a", "iops", "<=", 5000.0, Some(0.5)));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let check = |text: &str, expected: &str| {
            let error = read(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        };
        check("a.iops=5", "compares nothing");
        check("rand-read>=5", "names no metric");
        check("a.ipos>=5", "'ipos' is no metric: there are iops");
        check("a.iops>=5k", "'5k' is not a number");
        check("a.iops>=", "'' is not a number");
        check("a.iops>=0", "not above 0");
        check("a.iops>=-5", "not above 0");
        check("a.iops>=inf", "not above 0");
        check("a.bytes_per_second>=5ms", "is not a size");
        check("a.lat_ns.p99<5000000", "has no unit");
        check("a.lat_ns.p99<5MB", "is not a duration");
        check("a.iops>=5±2", "is no percentage");
        check("a.iops>=5±100%", "is no percentage");
        check("a.iops>=5+-x%", "is no percentage");
    }
}
