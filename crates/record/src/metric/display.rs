//! Metrics and their values as people read them.

use fathom_model::units::{self, UnitSystem, grouped};

use super::{Comparison, Metric, MetricKind, Statistic};

impl Statistic {
    /// `p99.9`, `mean`.
    pub fn label(self) -> String {
        match self {
            Statistic::Percentile(per_million) => format!("p{}", f64::from(per_million) / 1e4),
            other => other.name(),
        }
    }
}

impl MetricKind {
    /// `IOPS`, `bandwidth`, `lat p99.9`.
    pub fn label(self) -> String {
        match self {
            MetricKind::Iops => "IOPS".to_owned(),
            MetricKind::BytesPerSecond => "bandwidth".to_owned(),
            MetricKind::Latency(span, statistic) => format!("{} {}", span.name(), statistic.label()),
        }
    }

    /// A value of a criterion for a column whose head names the metric: `5,000`, `200 MB/s`, `128 MiB/s`, `556 µs`.
    pub fn figure(self, value: f64) -> String {
        self.figure_beside(value, value)
    }

    /// A measured value in the unit that the value of its criterion, `promised`, was written in.
    pub fn figure_beside(self, value: f64, promised: f64) -> String {
        let system = UnitSystem::of(promised);
        let mega = system.mega();
        match self {
            MetricKind::Iops if value < 99.95 => tenths(value),
            MetricKind::Iops => grouped(value.max(0.0).round() as u64),
            // A value without its unit, `>=200`, has to be noticed.
            MetricKind::BytesPerSecond if value < 999.95 => format!("{} B/s", tenths(value)),
            MetricKind::BytesPerSecond if value < mega * 0.09995 && system == UnitSystem::Si => {
                format!("{} kB/s", tenths(value / 1e3))
            }
            MetricKind::BytesPerSecond if value < mega * 0.09995 => {
                format!("{} KiB/s", tenths(value / 1024.0))
            }
            MetricKind::BytesPerSecond => format!("{} {}", tenths(value / mega), system.rate_unit()),
            MetricKind::Latency(..) => units::latency(value.max(0.0).round() as u64),
        }
    }

    /// The same, with as many digits as show whether the comparison with `promised` holds: `6,000.3` is above 6,000.
    pub fn figure_against(self, value: f64, is: Comparison, promised: f64) -> String {
        let text = self.figure_beside(value, promised);
        let is_hidden =
            text == self.figure(promised) && is.holds(value, promised) != is.holds(promised, promised);
        if is_hidden { self.in_digits(value, promised).unwrap_or(text) } else { text }
    }

    /// `value` in the unit of `promised`, with the digits that tell them apart; `None` where a billionth does not.
    fn in_digits(self, value: f64, promised: f64) -> Option<String> {
        const MAX_DIGITS: usize = 9;
        let system = UnitSystem::of(promised);
        let (scale, unit) = match self {
            MetricKind::Iops => (1.0, ""),
            MetricKind::BytesPerSecond => (system.mega(), system.rate_unit()),
            MetricKind::Latency(..) => match promised {
                ..1e3 => (1.0, "ns"),
                ..1e6 => (1e3, "µs"),
                ..1e9 => (1e6, "ms"),
                _ => (1e9, "s"),
            },
        };
        let shown = |value: f64, digits: usize| format!("{:.digits$}", value / scale);
        let digits = (1..=MAX_DIGITS).find(|digits| shown(value, *digits) != shown(promised, *digits))?;
        let number = shown(value, digits);
        let (whole, fraction) = number.split_once('.')?;
        Some(format!("{}.{fraction} {unit}", grouped(whole.parse().ok()?)).trim_end().to_owned())
    }

    /// A value of a criterion for a sentence, with its unit: `5,000 IOPS`, `200 MB/s`.
    pub fn quantity(self, value: f64) -> String {
        self.quantity_beside(value, value)
    }

    /// A measured value for a sentence, in the unit of its criterion.
    pub fn quantity_beside(self, value: f64, promised: f64) -> String {
        match self {
            MetricKind::Iops => format!("{} IOPS", self.figure(value)),
            _ => self.figure_beside(value, promised),
        }
    }

    /// A measured range in the unit of its criterion: `4,990-5,006`, `199.1-200 MB/s`; `None` where both ends read the same.
    pub fn range_beside(self, low: f64, high: f64, promised: f64) -> Option<String> {
        let (from, to) = (self.figure_beside(low, promised), self.figure_beside(high, promised));
        let unit = to.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | ','));
        (from != to).then(|| format!("{}-{to}", from.strip_suffix(unit).unwrap_or(&from)))
    }
}

impl Metric {
    /// The name in a table: `IOPS`, `read lat p99`.
    pub fn label(self) -> String {
        let name = self.kind.label();
        match self.direction {
            Some(direction) => format!("{} {name}", direction.name()),
            None => name,
        }
    }
}

/// One decimal below 1,000, where it is not 0.
fn tenths(value: f64) -> String {
    let tenths = (value * 10.0).round() / 10.0;
    if tenths >= 1000.0 || tenths.fract() == 0.0 {
        grouped(tenths.max(0.0).round() as u64)
    } else {
        format!("{tenths:.1}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LatencySpan;

    #[test]
    fn labels_and_figures() {
        for (text, value, name, shown) in [
            ("iops", 4_998.4, "IOPS", "4,998"),
            ("iops", 37.5, "IOPS", "37.5"),
            ("bytes_per_second", 200.0, "bandwidth", "200 B/s"),
            ("bytes_per_second", 65_536.0, "bandwidth", "64 KiB/s"),
            ("bytes_per_second", 65_500.0, "bandwidth", "65.5 kB/s"),
            ("bytes_per_second", 134_217_728.0, "bandwidth", "128 MiB/s"),
            ("read.bytes_per_second", 200_158_000.0, "read bandwidth", "200.2 MB/s"),
            ("bytes_per_second", 2_000_158_000.0, "bandwidth", "2,000 MB/s"),
            ("lat_ns.p999", 5e6, "lat p99.9", "5.00 ms"),
            ("write.clat_ns.mean", 556_000.0, "write clat mean", "556 µs"),
        ] {
            let metric = Metric::parse(text).unwrap();
            assert_eq!((metric.label(), metric.kind.figure(value)), (name.to_owned(), shown.to_owned()));
        }
    }

    #[test]
    fn a_relation_is_not_hidden_by_rounding() {
        let latency = MetricKind::Latency(LatencySpan::Total, Statistic::Mean);
        for (kind, value, is, promised, shown) in [
            (MetricKind::Iops, 6000.3, Comparison::Above, 6000.0, "6,000.3"),
            (MetricKind::Iops, 6_000.000_2, Comparison::Above, 6000.0, "6,000.0002"),
            (MetricKind::Iops, 6000.3, Comparison::AtLeast, 6000.0, "6,000"),
            (MetricKind::Iops, 5999.8, Comparison::AtLeast, 6000.0, "5,999.8"),
            (MetricKind::Iops, 6000.0, Comparison::Above, 6000.0, "6,000"),
            (MetricKind::Iops, 6013.0, Comparison::Above, 6000.0, "6,013"),
            (MetricKind::BytesPerSecond, 200_001_000.0, Comparison::Above, 2e8, "200.001 MB/s"),
            (latency, 4_999_000.0, Comparison::Below, 5e6, "4.999 ms"),
            (latency, 556_400.0, Comparison::AtMost, 556_000.0, "556.4 µs"),
        ] {
            assert_eq!(kind.figure_against(value, is, promised), shown, "{value} {} {promised}", is.sign());
        }
    }

    #[test]
    fn ranges_have_one_unit() {
        let check = |kind: MetricKind, low: f64, high: f64, expected: Option<&str>| {
            assert_eq!(kind.range_beside(low, high, 2e8).as_deref(), expected);
        };
        let mebibytes = MetricKind::BytesPerSecond.range_beside(199.1e6, 210e6, 209_715_200.0);
        assert_eq!(mebibytes.as_deref(), Some("189.9-200.3 MiB/s"));
        let latency = MetricKind::Latency(LatencySpan::Total, Statistic::Mean);
        check(MetricKind::Iops, 4990.0, 5006.0, Some("4,990-5,006"));
        check(MetricKind::Iops, 5000.1, 5000.2, None);
        check(MetricKind::BytesPerSecond, 199.1e6, 200e6, Some("199.1-200 MB/s"));
        check(latency, 9e5, 1.1e6, Some("900 µs-1.10 ms"));
        check(latency, 1.2e6, 1.31e6, Some("1.20-1.31 ms"));
    }
}
