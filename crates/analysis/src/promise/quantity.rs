//! What a promise is about: a rate or a latency of one direction of a test, as our JSON addresses it (`read.lat_ns.p99`).

use fathom_record::{LatencySummary, OpSummary, TestSummary};

/// How a measured value is to compare with a promised one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `>=`
    AtLeast,
    /// `<=`
    AtMost,
    /// `>`
    Above,
    /// `<`
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
        COMPARISONS.iter().find(|(_, comparison)| *comparison == self).map_or("", |(sign, _)| *sign)
    }

    /// True where more is better.
    pub fn wants_more(self) -> bool {
        matches!(self, Comparison::AtLeast | Comparison::Above)
    }

    /// `value` less or plus what it may miss by.
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
pub enum PromiseDirection {
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

const DIRECTIONS: [(&str, PromiseDirection); 5] = [
    ("read", PromiseDirection::Read),
    ("write", PromiseDirection::Write),
    ("trim", PromiseDirection::Trim),
    ("total", PromiseDirection::Total),
    ("sync", PromiseDirection::Sync),
];

impl PromiseDirection {
    /// The word in an address.
    pub fn name(self) -> &'static str {
        DIRECTIONS.iter().find(|(_, direction)| *direction == self).map_or("", |(name, _)| *name)
    }
}

/// From when to when a latency counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LatencySpan {
    /// Start to issued.
    Submission,
    /// Issued to completed.
    Completion,
    /// Start to completed.
    Total,
}

const SPANS: [(&str, LatencySpan); 3] = [
    ("slat_ns", LatencySpan::Submission),
    ("clat_ns", LatencySpan::Completion),
    ("lat_ns", LatencySpan::Total),
];

/// Which figure of a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statistic {
    /// The smallest.
    Least,
    /// The arithmetic mean.
    Mean,
    /// The greatest.
    Greatest,
    /// Not exceeded by so many in 10,000.
    Percentile(u32),
}

const STATISTICS: [(&str, Statistic); 9] = [
    ("min", Statistic::Least),
    ("mean", Statistic::Mean),
    ("max", Statistic::Greatest),
    ("p50", Statistic::Percentile(5_000)),
    ("p90", Statistic::Percentile(9_000)),
    ("p95", Statistic::Percentile(9_500)),
    ("p99", Statistic::Percentile(9_900)),
    ("p999", Statistic::Percentile(9_990)),
    ("p9999", Statistic::Percentile(9_999)),
];

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PromiseMeasure {
    /// Requests per second.
    Iops,
    /// Bytes per second.
    BytesPerSecond,
    /// ns.
    Latency(LatencySpan, Statistic),
}

/// A quantity of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quantity {
    /// `None` = the one that the test has, all together where it has several.
    pub direction: Option<PromiseDirection>,
    /// What is measured of it.
    pub measure: PromiseMeasure,
}

fn named<T: Copy>(table: &[(&str, T)], name: &str) -> Option<T> {
    table.iter().find(|(known, _)| *known == name).map(|&(_, value)| value)
}

impl Quantity {
    /// What there is to write, for messages.
    pub const KNOWN: &'static str = "iops, bytes_per_second, or lat_ns, clat_ns, slat_ns with \
         .mean, .min, .max, .p50, .p90, .p95, .p99, .p999 or .p9999; before it read, write, trim, total or sync and a dot";

    /// Reads `read.iops`, `lat_ns.p99`.
    pub fn parse(text: &str) -> Option<Quantity> {
        let (direction, rest) = match text.split_once('.') {
            Some((first, rest)) if named(&DIRECTIONS, first).is_some() => (named(&DIRECTIONS, first), rest),
            _ => (None, text),
        };
        let measure = match rest.split_once('.') {
            None if rest == "iops" => PromiseMeasure::Iops,
            None if rest == "bytes_per_second" => PromiseMeasure::BytesPerSecond,
            None => return None,
            Some((span, statistic)) => {
                PromiseMeasure::Latency(named(&SPANS, span)?, named(&STATISTICS, statistic)?)
            }
        };
        let has_no_such = direction == Some(PromiseDirection::Sync)
            && !matches!(measure, PromiseMeasure::Iops | PromiseMeasure::Latency(LatencySpan::Total, _));
        (!has_no_such).then_some(Quantity { direction, measure })
    }

    /// The direction that is meant in a test.
    pub fn direction_in(&self, summary: &TestSummary) -> PromiseDirection {
        let has = [
            (summary.read.is_some(), PromiseDirection::Read),
            (summary.write.is_some(), PromiseDirection::Write),
            (summary.trim.is_some(), PromiseDirection::Trim),
        ];
        let mut present = has.into_iter().filter(|(has, _)| *has).map(|(_, direction)| direction);
        self.direction.unwrap_or_else(|| match (present.next(), present.next()) {
            (Some(only), None) => only,
            _ => PromiseDirection::Total,
        })
    }

    /// Its value; `None` where nothing was measured or the sample does not carry it.
    pub fn of(&self, summary: &TestSummary) -> Option<f64> {
        let op: &OpSummary = match self.direction_in(summary) {
            PromiseDirection::Sync => {
                let sync = summary.sync.as_ref()?;
                return match self.measure {
                    PromiseMeasure::Latency(_, statistic) => of_latency(&sync.lat_ns, statistic),
                    _ => Some(sync.iops),
                };
            }
            PromiseDirection::Read => summary.read.as_ref(),
            PromiseDirection::Write => summary.write.as_ref(),
            PromiseDirection::Trim => summary.trim.as_ref(),
            PromiseDirection::Total => summary.total.as_ref(),
        }?;
        match self.measure {
            PromiseMeasure::Iops => Some(op.iops),
            PromiseMeasure::BytesPerSecond => Some(op.bytes_per_second),
            PromiseMeasure::Latency(LatencySpan::Submission, statistic) => of_latency(&op.slat_ns, statistic),
            PromiseMeasure::Latency(LatencySpan::Completion, statistic) => of_latency(&op.clat_ns, statistic),
            PromiseMeasure::Latency(LatencySpan::Total, statistic) => of_latency(&op.lat_ns, statistic),
        }
    }
}

fn of_latency(latency: &LatencySummary, statistic: Statistic) -> Option<f64> {
    let percentile = match statistic {
        Statistic::Least => latency.min,
        Statistic::Mean => return latency.mean,
        Statistic::Greatest => latency.max,
        Statistic::Percentile(5_000) => latency.p50,
        Statistic::Percentile(9_000) => latency.p90,
        Statistic::Percentile(9_500) => latency.p95,
        Statistic::Percentile(9_900) => latency.p99,
        Statistic::Percentile(9_990) => latency.p999,
        Statistic::Percentile(_) => latency.p9999,
    };
    percentile.map(|ns| ns as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        let check = |text: &str, direction: Option<PromiseDirection>, measure: Option<PromiseMeasure>| {
            let expected = measure.map(|measure| Quantity { direction, measure });
            assert_eq!(Quantity::parse(text), expected, "{text}");
        };
        let p99 = PromiseMeasure::Latency(LatencySpan::Total, Statistic::Percentile(9_900));
        check("iops", None, Some(PromiseMeasure::Iops));
        check("read.iops", Some(PromiseDirection::Read), Some(PromiseMeasure::Iops));
        check("total.bytes_per_second", Some(PromiseDirection::Total), Some(PromiseMeasure::BytesPerSecond));
        check("lat_ns.p99", None, Some(p99));
        check("write.lat_ns.p99", Some(PromiseDirection::Write), Some(p99));
        check("sync.iops", Some(PromiseDirection::Sync), Some(PromiseMeasure::Iops));
        check("sync.bytes_per_second", None, None);
        for text in ["", "read", "lat_ns", "lat_ns.p98", "iops.mean", "raed.iops", "read.iops.", "IOPS"] {
            check(text, None, None);
        }
    }

    #[test]
    fn the_direction_is_the_one_there_is() {
        let op = |iops: f64| Some(OpSummary { iops, ..OpSummary::default() });
        let one = TestSummary { write: op(7.0), total: op(7.0), ..TestSummary::default() };
        let two = TestSummary { read: op(3.0), write: op(7.0), total: op(10.0), ..TestSummary::default() };
        let of = |text: &str, summary: &TestSummary| Quantity::parse(text).unwrap().of(summary);
        assert_eq!((of("iops", &one), of("iops", &two)), (Some(7.0), Some(10.0)));
        assert_eq!((of("read.iops", &one), of("read.iops", &two)), (None, Some(3.0)));
        assert_eq!(of("lat_ns.p99", &two), None);
    }

    #[test]
    fn bounds_lie_on_the_side_that_forgives() {
        for (sign, bound, at) in
            [(">=", 95.0, true), (">", 95.0, false), ("<=", 105.0, true), ("<", 105.0, false)]
        {
            let comparison = Comparison::of(sign).unwrap();
            assert_eq!((comparison.sign(), comparison.bound(100.0, 5.0)), (sign, bound));
            assert_eq!(comparison.holds(bound, bound), at, "{sign}");
        }
        assert_eq!(Comparison::of("="), None);
    }
}
