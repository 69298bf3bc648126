//! How promises put their figures into words.

use fathom_model::units;

use crate::criterion::{LatencySpan, Metric, MetricKind, Statistic};
use crate::say::count;

/// A value of `measure` with its unit: `5,000`, `200 MB/s`, `556us`.
pub fn figure(measure: MetricKind, value: f64) -> String {
    match measure {
        MetricKind::Iops if value < 99.95 => tenths(value),
        MetricKind::Iops => count(value),
        // A figure without its unit, `>=200`, is meant to be noticed.
        MetricKind::BytesPerSecond if value < 999.95 => format!("{} B/s", tenths(value)),
        MetricKind::BytesPerSecond if value < 99_950.0 => format!("{} kB/s", tenths(value / 1e3)),
        MetricKind::BytesPerSecond => format!("{} MB/s", tenths(value / 1e6)),
        MetricKind::Latency(..) => units::latency(value.max(0.0).round() as u64),
    }
}

/// One decimal below 1,000, where it is not 0.
fn tenths(value: f64) -> String {
    let tenths = (value * 10.0).round() / 10.0;
    if tenths >= 1000.0 || tenths.fract() == 0.0 { count(tenths) } else { format!("{tenths:.1}") }
}

/// From where to where: `4,990-5,006`, `199.1-200 MB/s`; `None` where both read the same.
pub fn span(measure: MetricKind, low: f64, high: f64) -> Option<String> {
    let (from, to) = (figure(measure, low), figure(measure, high));
    let unit = to.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | ','));
    (from != to).then(|| format!("{}-{to}", from.strip_suffix(unit).unwrap_or(&from)))
}

/// The same as in a sentence: `5,000 a second`.
pub(super) fn spoken(measure: MetricKind, value: f64) -> String {
    match measure {
        MetricKind::Iops => format!("{} a second", figure(measure, value)),
        _ => figure(measure, value),
    }
}

/// What a quantity is called in a table: `IOPS`, `read lat p99`.
pub fn quantity_name(quantity: Metric) -> String {
    let name = match quantity.kind {
        MetricKind::Iops => "IOPS".to_owned(),
        MetricKind::BytesPerSecond => "bandwidth".to_owned(),
        MetricKind::Latency(span, statistic) => {
            let span = match span {
                LatencySpan::Submission => "slat",
                LatencySpan::Completion => "clat",
                LatencySpan::Total => "lat",
            };
            let statistic = match statistic {
                Statistic::Least => "min".to_owned(),
                Statistic::Mean => "mean".to_owned(),
                Statistic::Greatest => "max".to_owned(),
                Statistic::Percentile(per_million) => percentile(per_million),
            };
            format!("{span} {statistic}")
        }
    };
    match quantity.direction {
        Some(direction) => format!("{} {name}", direction.name()),
        None => name,
    }
}

/// `p99`, `p99.9`.
pub(super) fn percentile(per_million: u32) -> String {
    format!("p{}", f64::from(per_million) / 1e4)
}

/// A share in percent with three decimals at most, those that it has: `99.97 %`.
pub(super) fn share(share: f64) -> String {
    let text = format!("{:.3}", share * 100.0);
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

/// A small share in percent, two digits of it: `0.0038 %`.
pub(super) fn small_share(share: f64) -> String {
    let percent = share * 100.0;
    let digits = if percent > 0.0 { (1.0 - percent.log10().floor()).clamp(0.0, 9.0) as usize } else { 0 };
    format!("{percent:.digits$} %")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_and_names() {
        for (text, value, name, shown) in [
            ("iops", 4_998.4, "IOPS", "4,998"),
            ("iops", 37.5, "IOPS", "37.5"),
            ("bytes_per_second", 200.0, "bandwidth", "200 B/s"),
            ("bytes_per_second", 65_536.0, "bandwidth", "65.5 kB/s"),
            ("read.bytes_per_second", 200_158_000.0, "read bandwidth", "200.2 MB/s"),
            ("bytes_per_second", 2_000_158_000.0, "bandwidth", "2,000 MB/s"),
            ("lat_ns.p999", 5e6, "lat p99.9", "5.00ms"),
            ("write.clat_ns.mean", 556_000.0, "write clat mean", "556us"),
        ] {
            let quantity = Metric::parse(text).unwrap();
            assert_eq!(
                (quantity_name(quantity), figure(quantity.kind, value)),
                (name.to_owned(), shown.to_owned())
            );
        }
    }

    #[test]
    fn spans_have_one_unit() {
        let check = |measure: MetricKind, low: f64, high: f64, expected: Option<&str>| {
            assert_eq!(span(measure, low, high).as_deref(), expected);
        };
        check(MetricKind::Iops, 4990.0, 5006.0, Some("4,990-5,006"));
        check(MetricKind::Iops, 5000.1, 5000.2, None);
        check(MetricKind::BytesPerSecond, 199.1e6, 200e6, Some("199.1-200 MB/s"));
        check(MetricKind::Latency(LatencySpan::Total, Statistic::Mean), 9e5, 1.1e6, Some("900us-1.10ms"));
        check(MetricKind::Latency(LatencySpan::Total, Statistic::Mean), 1.2e6, 1.31e6, Some("1.20-1.31ms"));
    }

    #[test]
    fn shares_show_what_they_miss() {
        for (value, expected) in
            [(1.0, "100 %"), (0.5, "50 %"), (0.953, "95.3 %"), (0.999, "99.9 %"), (0.99991, "99.991 %")]
        {
            assert_eq!(share(value), expected);
        }
        for (value, expected) in [(0.000_038, "0.0038 %"), (0.5, "50 %"), (1.0, "100 %"), (0.0, "0 %")] {
            assert_eq!(small_share(value), expected);
        }
    }
}
