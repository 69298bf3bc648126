//! What a test of a suite is expected to reach. Pure.
//!
//! Metrics are addressed within a test as `direction.metric` (`write.iops`, `read.lat_ns.p99`).

pub use fathom_analysis::criterion::Comparison;
use fathom_analysis::criterion::{Metric, parse_value};
use serde::Serialize;

/// What a volume of one class is expected to reach.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Expectation {
    /// The class of machine or volume this holds for (`standard`).
    pub class: String,
    /// `direction.metric`.
    pub metric: String,
    /// How the value is to compare.
    pub is: Comparison,
    /// Requests per second, bytes per second or ns, as the metric has it.
    pub value: f64,
}

/// Reads an expectation; the error says what is wrong with which field.
pub(crate) fn read(class: &str, metric: &str, is: &str, value: &str) -> Result<Expectation, String> {
    let comparison =
        Comparison::of(is).ok_or_else(|| format!("'{is}' is not a comparison: use >=, <=, > or <"))?;
    let recorded = Metric::parse(metric).filter(|metric| metric.direction.is_some() && metric.is_recorded());
    let quantity = recorded.ok_or_else(|| {
        format!("'{metric}' is not a metric: write one such as read.iops or write.lat_ns.p99")
    })?;
    let value = parse_value(quantity.kind, value)?;
    Ok(Expectation { class: class.to_owned(), metric: quantity.to_string(), is: comparison, value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_in_the_unit_of_their_metric() {
        for (metric, value, expected) in [
            ("read.iops", "5000", Some(5000.0)),
            ("read.iops", "5k", None),
            ("write.bytes_per_second", "200MB", Some(200e6)),
            ("write.bytes_per_second", "200MiB", Some(209_715_200.0)),
            ("read.lat_ns.p99", "5ms", Some(5e6)),
            ("total.clat_ns.mean", "250us", Some(250e3)),
            ("read.iops", "0", None),
            ("read.iops", "nan", None),
            ("read.lat_ns", "5ms", None),
            ("iops", "1", None),
            ("read.iops.mean", "1", None),
        ] {
            let read = read("c", metric, ">=", value);
            assert_eq!(
                read.as_ref().ok().map(|expectation| expectation.value),
                expected,
                "{metric} {value}: {read:?}"
            );
        }
    }
}
