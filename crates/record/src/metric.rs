//! Metrics: a rate or a latency of one direction of a test, under the name that JSON has (`read.lat_ns.p99`), and its short
//! forms (`read.lat.p99`, `p99`).

mod display;

use std::fmt;

use crate::{LatencySummary, OpSummary, TestSummary};
use fathom_model::Op;
use serde::Serialize;

/// How a measured value is to compare with the value of a criterion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Comparison {
    /// No less.
    #[serde(rename = ">=")]
    AtLeast,
    /// No more.
    #[serde(rename = "<=")]
    AtMost,
    /// More.
    #[serde(rename = ">")]
    Above,
    /// Less.
    #[serde(rename = "<")]
    Below,
}

const COMPARISONS: [(&str, Comparison); 4] = [
    (">=", Comparison::AtLeast),
    ("<=", Comparison::AtMost),
    (">", Comparison::Above),
    ("<", Comparison::Below),
];

impl Comparison {
    /// The comparison that is written so.
    pub fn of(sign: &str) -> Option<Comparison> {
        COMPARISONS.iter().find(|(known, _)| *known == sign).map(|&(_, comparison)| comparison)
    }

    /// As it is written.
    pub fn sign(self) -> &'static str {
        COMPARISONS.iter().find(|(_, known)| *known == self).map_or("", |(sign, _)| *sign)
    }

    /// True where more is better.
    pub fn wants_more(self) -> bool {
        matches!(self, Comparison::AtLeast | Comparison::Above)
    }

    /// `value` less or plus the tolerance.
    pub fn bound(self, value: f64, tolerance_percent: f64) -> f64 {
        let slack = value * tolerance_percent / 100.0;
        if self.wants_more() { value - slack } else { value + slack }
    }

    /// Whether `measured` is on the right side of `bound`.
    pub fn holds(self, measured: f64, bound: f64) -> bool {
        match self {
            Comparison::AtLeast => measured >= bound,
            Comparison::AtMost => measured <= bound,
            Comparison::Above => measured > bound,
            Comparison::Below => measured < bound,
        }
    }
}

/// Whose figures they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricDirection {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Trims.
    Trim,
    /// All of them together.
    Total,
    /// The calls of fsync and fdatasync.
    Sync,
}

const DIRECTIONS: [(&str, MetricDirection); 5] = [
    ("read", MetricDirection::Read),
    ("write", MetricDirection::Write),
    ("trim", MetricDirection::Trim),
    ("total", MetricDirection::Total),
    ("sync", MetricDirection::Sync),
];

impl MetricDirection {
    /// The figures that `summary` has of it; `None` for syncs, which have others.
    pub fn of(self, summary: &TestSummary) -> Option<&OpSummary> {
        match self {
            MetricDirection::Read => summary.read.as_ref(),
            MetricDirection::Write => summary.write.as_ref(),
            MetricDirection::Trim => summary.trim.as_ref(),
            MetricDirection::Total => summary.total.as_ref(),
            MetricDirection::Sync => None,
        }
    }

    /// The operations that it covers; syncs are counted apart.
    pub const fn ops(self) -> &'static [Op] {
        match self {
            MetricDirection::Read => &[Op::Read],
            MetricDirection::Write => &[Op::Write],
            MetricDirection::Trim => &[Op::Trim],
            MetricDirection::Total => &Op::DATA,
            MetricDirection::Sync => &[],
        }
    }

    /// The word in an address.
    pub fn name(self) -> &'static str {
        name_of(&DIRECTIONS, self)
    }
}

/// From when to when a latency counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LatencySpan {
    /// Start to issued.
    Submission,
    /// Issued to completed.
    #[default]
    Completion,
    /// Start to completed.
    Total,
}

const SPANS: [(&str, LatencySpan); 3] =
    [("slat", LatencySpan::Submission), ("clat", LatencySpan::Completion), ("lat", LatencySpan::Total)];

/// Which figure of a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statistic {
    /// The smallest.
    Least,
    /// The arithmetic mean.
    Mean,
    /// The greatest.
    Greatest,
    /// Not exceeded by so many in a million.
    Percentile(u32),
}

const STATISTICS: [(&str, Statistic); 9] = [
    ("min", Statistic::Least),
    ("mean", Statistic::Mean),
    ("max", Statistic::Greatest),
    ("p50", Statistic::Percentile(500_000)),
    ("p90", Statistic::Percentile(900_000)),
    ("p95", Statistic::Percentile(950_000)),
    ("p99", Statistic::Percentile(990_000)),
    ("p999", Statistic::Percentile(999_000)),
    ("p9999", Statistic::Percentile(999_900)),
];

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// Requests per second.
    Iops,
    /// Bytes per second.
    BytesPerSecond,
    /// ns.
    Latency(LatencySpan, Statistic),
}

/// A quantity of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// `None` = the one that the test has, all together where it has several.
    pub direction: Option<MetricDirection>,
    /// What is measured of it.
    pub kind: MetricKind,
}

/// The value that `name` has in a table.
fn named<T: Copy>(table: &[(&str, T)], name: &str) -> Option<T> {
    table.iter().find(|(known, _)| *known == name).map(|&(_, value)| value)
}

/// The name that `value` has in a table.
fn name_of<T: PartialEq>(table: &[(&'static str, T)], value: T) -> &'static str {
    table.iter().find(|(_, known)| *known == value).map_or("", |(name, _)| *name)
}

impl LatencySpan {
    /// The word in an address.
    pub fn name(self) -> &'static str {
        name_of(&SPANS, self)
    }
}

impl Statistic {
    /// Those that records have, for messages.
    pub const RECORDED: &str = "mean, min, max, p50, p90, p95, p99, p999 or p9999";

    /// Reads `mean`, `p99`, `p99.9` or `p999`.
    pub fn parse(text: &str) -> Option<Statistic> {
        if text == "avg" {
            return Some(Statistic::Mean);
        }
        named(&STATISTICS, text).or_else(|| {
            let digits = text.strip_prefix('p')?;
            if !digits.chars().all(|c| c.is_ascii_digit() || c == '.') {
                return None;
            }
            // p999 is 99.9 %.
            let percent = match digits.len() {
                3.. if digits.starts_with('9') && !digits.contains('.') => {
                    format!("{}.{}", &digits[..2], &digits[2..])
                }
                _ => digits.to_owned(),
            };
            let per_million = percent.parse::<f64>().ok()? * 1e4;
            let whole = per_million.round();
            let is_one = (per_million - whole).abs() < 1e-6 && (1.0..1e6).contains(&whole);
            is_one.then_some(Statistic::Percentile(whole as u32))
        })
    }

    /// The name in JSON: `mean`, `p99`, `p999`, `p12.5`.
    pub fn name(self) -> String {
        match (name_of(&STATISTICS, self), self) {
            ("", Statistic::Percentile(per_million)) => format!("p{}", f64::from(per_million) / 1e4),
            (name, _) => name.to_owned(),
        }
    }

    /// True where records have it.
    pub fn is_recorded(self) -> bool {
        STATISTICS.iter().any(|(_, statistic)| *statistic == self)
    }

    /// I/Os of a million that it speaks for; `None` = the mean, and the minimum.
    pub fn per_million(self) -> Option<u32> {
        match self {
            Statistic::Least | Statistic::Mean => None,
            Statistic::Greatest => Some(1_000_000),
            Statistic::Percentile(per_million) => Some(per_million),
        }
    }

    /// The share of the samples that lies beyond it; 1 for what every sample counts in.
    pub fn share_beyond(self) -> f64 {
        match self {
            Statistic::Percentile(per_million) => f64::from(1_000_000 - per_million.min(999_999)) / 1e6,
            _ => 1.0,
        }
    }

    /// Its value, ns; `None` where the sample does not carry it or records do not have it.
    pub fn of(self, latency: &LatencySummary) -> Option<f64> {
        let ns = match self {
            Statistic::Least => latency.min,
            Statistic::Mean => return latency.mean,
            Statistic::Greatest => latency.max,
            Statistic::Percentile(500_000) => latency.p50,
            Statistic::Percentile(900_000) => latency.p90,
            Statistic::Percentile(950_000) => latency.p95,
            Statistic::Percentile(990_000) => latency.p99,
            Statistic::Percentile(999_000) => latency.p999,
            Statistic::Percentile(999_900) => latency.p9999,
            Statistic::Percentile(_) => None,
        };
        ns.map(|ns| ns as f64)
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(direction) = self.direction {
            write!(f, "{}.", direction.name())?;
        }
        match self.kind {
            MetricKind::Iops => f.write_str("iops"),
            MetricKind::BytesPerSecond => f.write_str("bytes_per_second"),
            MetricKind::Latency(span, statistic) => write!(f, "{}_ns.{}", span.name(), statistic.name()),
        }
    }
}

impl Metric {
    /// The metrics, for messages.
    pub const KNOWN: &str = "iops, bytes_per_second, or lat_ns, clat_ns, slat_ns with .mean, .min, .max or a percentile such as \
         .p99; optional prefix read., write., trim., total. or sync.";

    /// Reads `read.iops`, `lat_ns.p99`, and the short forms `lat.p99`, `p99` and `bw`.
    pub fn parse(text: &str) -> Option<Metric> {
        let (direction, rest) = match text.split_once('.') {
            Some((first, rest)) if named(&DIRECTIONS, first).is_some() => (named(&DIRECTIONS, first), rest),
            _ => (None, text),
        };
        let kind = match rest {
            "iops" => MetricKind::Iops,
            "bytes_per_second" | "bw" => MetricKind::BytesPerSecond,
            _ => match (Statistic::parse(rest), rest.split_once('.')) {
                (Some(statistic), _) => MetricKind::Latency(LatencySpan::Total, statistic),
                (None, Some((span, statistic))) => {
                    let span = named(&SPANS, span.strip_suffix("_ns").unwrap_or(span))?;
                    MetricKind::Latency(span, Statistic::parse(statistic)?)
                }
                (None, None) => return None,
            },
        };
        Some(Metric { direction, kind }).filter(Metric::exists)
    }

    /// False for what syncs do not have: bandwidth, and parts of a latency.
    pub fn exists(&self) -> bool {
        self.direction != Some(MetricDirection::Sync)
            || matches!(self.kind, MetricKind::Iops | MetricKind::Latency(LatencySpan::Total, _))
    }

    /// True for latencies.
    pub fn is_latency(&self) -> bool {
        matches!(self.kind, MetricKind::Latency(..))
    }

    /// True where records have it: a rate, or a statistic that they have.
    pub fn is_recorded(&self) -> bool {
        !matches!(self.kind, MetricKind::Latency(_, statistic) if !statistic.is_recorded())
    }

    /// The direction that is meant in a test.
    pub fn direction_in(&self, summary: &TestSummary) -> MetricDirection {
        self.direction_among([summary.read.is_some(), summary.write.is_some(), summary.trim.is_some()])
    }

    /// The direction that is meant where there are reads, writes and trims, or not.
    pub fn direction_among(&self, [reads, writes, trims]: [bool; 3]) -> MetricDirection {
        let has = [
            (reads, MetricDirection::Read),
            (writes, MetricDirection::Write),
            (trims, MetricDirection::Trim),
        ];
        let mut present = has.into_iter().filter(|(has, _)| *has).map(|(_, direction)| direction);
        self.direction.unwrap_or_else(|| match (present.next(), present.next()) {
            (Some(only), None) => only,
            _ => MetricDirection::Total,
        })
    }

    /// Every metric that `summary` has, with its direction, and its value.
    pub fn all_of(summary: &TestSummary) -> Vec<(Metric, f64)> {
        let latencies = SPANS
            .iter()
            .flat_map(|&(_, span)| STATISTICS.iter().map(move |&(_, of)| MetricKind::Latency(span, of)));
        let kinds: Vec<MetricKind> =
            [MetricKind::Iops, MetricKind::BytesPerSecond].into_iter().chain(latencies).collect();
        let metrics = DIRECTIONS.iter().flat_map(|&(_, direction)| {
            kinds.iter().map(move |&kind| Metric { direction: Some(direction), kind })
        });
        metrics.filter(Metric::exists).filter_map(|metric| Some((metric, metric.of(summary)?))).collect()
    }

    /// Its value; `None` where nothing was measured or the sample does not carry it.
    pub fn of(&self, summary: &TestSummary) -> Option<f64> {
        let direction = self.direction_in(summary);
        if direction == MetricDirection::Sync {
            let sync = summary.sync.as_ref()?;
            return match self.kind {
                MetricKind::Latency(_, statistic) => statistic.of(&sync.lat_ns),
                _ => Some(sync.iops),
            };
        }
        let op = direction.of(summary)?;
        // A source of other programs may lack a rate; what ran has none of 0.
        let rate = |rate: f64| Some(rate).filter(|&rate| rate > 0.0);
        match self.kind {
            MetricKind::Iops => rate(op.iops),
            MetricKind::BytesPerSecond => rate(op.bytes_per_second),
            MetricKind::Latency(LatencySpan::Submission, statistic) => statistic.of(&op.slat_ns),
            MetricKind::Latency(LatencySpan::Completion, statistic) => statistic.of(&op.clat_ns),
            MetricKind::Latency(LatencySpan::Total, statistic) => statistic.of(&op.lat_ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        let check = |text: &str, direction: Option<MetricDirection>, kind: Option<MetricKind>| {
            let expected = kind.map(|kind| Metric { direction, kind });
            assert_eq!(Metric::parse(text), expected, "{text}");
        };
        let p99 = MetricKind::Latency(LatencySpan::Total, Statistic::Percentile(990_000));
        check("iops", None, Some(MetricKind::Iops));
        check("read.iops", Some(MetricDirection::Read), Some(MetricKind::Iops));
        check("total.bytes_per_second", Some(MetricDirection::Total), Some(MetricKind::BytesPerSecond));
        check("lat_ns.p99", None, Some(p99));
        check("write.lat_ns.p99", Some(MetricDirection::Write), Some(p99));
        for short in ["lat.p99", "p99", "p99.0", "lat_ns.p99.0"] {
            check(short, None, Some(p99));
        }
        check("bw", None, Some(MetricKind::BytesPerSecond));
        check("sync.iops", Some(MetricDirection::Sync), Some(MetricKind::Iops));
        check("sync.bytes_per_second", None, None);
        for text in [
            "", "read", "lat_ns", "iops.mean", "raed.iops", "read.iops.", "IOPS", "p0", "p100", "p",
            "lat_ns.p1e1",
        ] {
            check(text, None, None);
        }
    }

    #[test]
    fn every_metric_of_a_summary_is_read_back_by_its_name() {
        let lat_ns =
            LatencySummary { samples: 9, mean: Some(5.5), p50: Some(5), ..LatencySummary::default() };
        let read = Some(OpSummary { iops: 3.0, bytes_per_second: 12.0, lat_ns, ..OpSummary::default() });
        let summary = TestSummary { total: read.clone(), read, ..TestSummary::default() };
        let all = Metric::all_of(&summary);
        let names: Vec<String> = all.iter().map(|(metric, _)| metric.to_string()).collect();
        assert_eq!(names[..4], ["read.iops", "read.bytes_per_second", "read.lat_ns.mean", "read.lat_ns.p50"]);
        assert_eq!(names.len(), 8);
        for (metric, value) in all {
            assert_eq!(Metric::parse(&metric.to_string()), Some(metric));
            assert_eq!(metric.of(&summary), Some(value));
        }
    }

    #[test]
    fn the_direction_is_the_one_there_is() {
        let op = |iops: f64| Some(OpSummary { iops, ..OpSummary::default() });
        let one = TestSummary { write: op(7.0), total: op(7.0), ..TestSummary::default() };
        let two = TestSummary { read: op(3.0), write: op(7.0), total: op(10.0), ..TestSummary::default() };
        let of = |text: &str, summary: &TestSummary| Metric::parse(text).unwrap().of(summary);
        assert_eq!((of("iops", &one), of("iops", &two)), (Some(7.0), Some(10.0)));
        assert_eq!((of("read.iops", &one), of("read.iops", &two)), (None, Some(3.0)));
        assert_eq!(of("lat_ns.p99", &two), None);
    }
}
