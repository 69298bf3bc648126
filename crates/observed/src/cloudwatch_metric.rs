//! The metrics of AWS/EBS and AWS/EC2: names, units and the statistics that are read.

use fathom_model::Op;

use crate::interval_table::IntervalFigure;

/// A metric of a volume or of an instance.
#[derive(Debug)]
pub(crate) struct CloudwatchMetric {
    pub name: &'static str,
    pub figure: IntervalFigure,
    /// Base units of one.
    pub scale: f64,
    pub unit: &'static str,
    /// Statistics that are read, the best first.
    pub statistics: &'static [&'static str],
}

const SUM: &[&str] = &["Sum"];
const READ: Option<Op> = Some(Op::Read);
const WRITE: Option<Op> = Some(Op::Write);

const fn metric(
    name: &'static str,
    figure: IntervalFigure,
    scale: f64,
    unit: &'static str,
    statistics: &'static [&'static str],
) -> CloudwatchMetric {
    CloudwatchMetric { name, figure, scale, unit, statistics }
}

const fn ops(name: &'static str, op: Option<Op>) -> CloudwatchMetric {
    metric(name, IntervalFigure::Ops(op), 1.0, "Count", SUM)
}

const fn bytes(name: &'static str, op: Option<Op>) -> CloudwatchMetric {
    metric(name, IntervalFigure::Bytes(op), 1.0, "Bytes", SUM)
}

const fn time(name: &'static str, op: Option<Op>) -> CloudwatchMetric {
    metric(name, IntervalFigure::LatencySum(op), 1.0, "Seconds", SUM)
}

const fn balance(name: &'static str) -> CloudwatchMetric {
    metric(name, IntervalFigure::Credits, 0.01, "Percent", &["Minimum", "Average"])
}

const fn check(name: &'static str) -> CloudwatchMetric {
    metric(name, IntervalFigure::LimitReached, 1.0, "None", &["Maximum", "Sum", "Average"])
}

/// The metrics that are read. A name that begins with another stands before it.
const METRICS: &[CloudwatchMetric] = &[
    ops("VolumeReadOps", READ),
    ops("VolumeWriteOps", WRITE),
    bytes("VolumeReadBytes", READ),
    bytes("VolumeWriteBytes", WRITE),
    time("VolumeTotalReadTime", READ),
    time("VolumeTotalWriteTime", WRITE),
    metric("VolumeQueueLength", IntervalFigure::QueueDepth, 1.0, "Count", &["Average"]),
    balance("BurstBalance"),
    check("VolumeIOPSExceededCheck"),
    check("VolumeThroughputExceededCheck"),
    ops("EBSReadOps", READ),
    ops("EBSWriteOps", WRITE),
    bytes("EBSReadBytes", READ),
    bytes("EBSWriteBytes", WRITE),
    balance("EBSIOBalance%"),
    balance("EBSByteBalance%"),
    check("InstanceEBSIOPSExceededCheck"),
    check("InstanceEBSThroughputExceededCheck"),
];

impl CloudwatchMetric {
    /// The metric that a label or the identifier of a query names.
    pub fn named(text: &str) -> Option<&'static CloudwatchMetric> {
        let plain = |text: &str| text.replace('_', "").to_ascii_lowercase();
        let wanted = plain(text);
        let is_part = |sign: char| sign.is_ascii_alphanumeric();
        METRICS.iter().find(|metric| {
            let name = plain(metric.name);
            wanted.match_indices(&name).any(|(at, _)| {
                !wanted[..at].ends_with(is_part) && !wanted[at + name.len()..].starts_with(is_part)
            })
        })
    }

    /// True where values are sums of a period.
    pub fn is_sum(&self) -> bool {
        self.statistics == SUM
    }

    /// True where this statistic is read.
    pub fn takes(&self, statistic: &str) -> bool {
        self.statistics.contains(&statistic)
    }

    /// Why another statistic is refused, and what to export instead.
    pub fn refusal(&self, found: &str) -> (String, String) {
        let wanted = self.statistics[0];
        let problem = match found {
            "" => format!("{} has no {wanted}", self.name),
            found => format!("{} is a series of {found}, not of {wanted}", self.name),
        };
        let why = if self.is_sum() { ": the meaning of an average depends on the hypervisor" } else { "" };
        (problem, format!("export the statistic {wanted}{why}"))
    }
}

/// The volume or instance in a label.
pub(crate) fn resource_in(label: &str) -> Option<&str> {
    let mut words = label.split(|sign: char| !(sign.is_ascii_alphanumeric() || sign == '-'));
    let is_id = |word: &&str| {
        let digits = word.strip_prefix("vol-").or_else(|| word.strip_prefix("i-"));
        digits
            .is_some_and(|digits| digits.len() >= 8 && digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
    };
    words.find(is_id)
}
