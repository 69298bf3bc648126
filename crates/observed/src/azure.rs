//! Metrics of disks and virtual machines from Azure Monitor, as `az monitor metrics list` prints them.
//!
//! Rates are per second, averaged over the interval. Metrics of data disks have a LUN where they were split by it.

use fathom_model::Op;

use crate::clock_text;
use crate::interval_table::{IntervalFigure, IntervalTable, Stretch};
use crate::json::{JsonFault, JsonNode, JsonText};
use crate::load::{LoadClock, ObservedLoad};
use crate::{LoadError, LoadFormat};

/// What a metric says. The order is that in which they are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum AzureFigure {
    /// I/Os per second.
    OpsRate(Op),
    /// Bytes per second.
    BytesRate(Op),
    QueueDepth,
    /// Mean latency of an I/O, ms.
    Latency,
    /// Share of a limit, percent.
    LimitShare,
    /// Share of burst credits that is exhausted, percent.
    CreditsShare,
}

/// The ends of metrics' names in lower case, what they say, and their unit.
const METRICS: &[(&str, AzureFigure, &str)] = &[
    ("read operations/sec", AzureFigure::OpsRate(Op::Read), "CountPerSecond"),
    ("write operations/sec", AzureFigure::OpsRate(Op::Write), "CountPerSecond"),
    ("read bytes/sec", AzureFigure::BytesRate(Op::Read), "BytesPerSecond"),
    ("write bytes/sec", AzureFigure::BytesRate(Op::Write), "BytesPerSecond"),
    ("queue depth", AzureFigure::QueueDepth, "Count"),
    ("latency", AzureFigure::Latency, "MilliSeconds"),
    ("iops consumed percentage", AzureFigure::LimitShare, "Percent"),
    ("bandwidth consumed percentage", AzureFigure::LimitShare, "Percent"),
    ("used burst io credits percentage", AzureFigure::CreditsShare, "Percent"),
    ("used burst bps credits percentage", AzureFigure::CreditsShare, "Percent"),
];

/// The beginnings of metrics' names, in lower case, and the disk that they are about.
const SCOPES: &[(&str, &str)] = &[
    ("composite disk ", ""),
    ("data disk ", "data disk"),
    ("os disk ", "OS disk"),
    ("temp disk ", "temporary disk"),
    ("disk ", ""),
];

/// A metric that is read.
#[derive(Clone, Copy, Debug)]
struct AzureMetric {
    figure: AzureFigure,
    scope: &'static str,
    unit: &'static str,
}

impl AzureMetric {
    fn named(name: &str) -> Option<AzureMetric> {
        let name = name.to_ascii_lowercase();
        let (rest, scope) =
            SCOPES.iter().find_map(|(begin, scope)| Some((name.strip_prefix(begin)?, *scope)))?;
        let (_, figure, unit) = METRICS.iter().find(|(end, ..)| *end == rest)?;
        Some(AzureMetric { figure: *figure, scope, unit })
    }
}

/// Reads the documents of one query or of several.
///
/// # Errors
/// A value has no meaning, or it has several disks and none is chosen.
pub(crate) fn read(text: &str, device: Option<&str>) -> Result<ObservedLoad, LoadError> {
    let json = JsonText::parse(text)?;
    let mut table = IntervalTable::default();
    let fault = |fault: JsonFault| json.error(&fault);
    for root in json.roots() {
        let length_ns = interval(&root).map_err(fault)?;
        let values = root.need_array("value").map_err(fault)?;
        let mut metrics: Vec<(AzureMetric, JsonNode<'_>)> = Vec::new();
        for value in values.items() {
            let name = name_of(&value);
            match AzureMetric::named(name) {
                Some(metric) => metrics.push((metric, value)),
                None => table.note(format!("the metric '{name}' is not used")),
            }
        }
        // Latencies are multiplied by the I/Os, which come first.
        metrics.sort_by_key(|(metric, _)| metric.figure);
        for (metric, value) in &metrics {
            read_metric(*metric, value, length_ns, &mut table).map_err(fault)?;
        }
    }
    table.finish(LoadFormat::AzureMonitor, LoadClock::Utc, device)
}

/// The length of the intervals of a document, ns.
fn interval(root: &JsonNode<'_>) -> Result<u64, JsonFault> {
    let interval = root.need("interval")?;
    let parsed = interval.text().and_then(clock_text::span);
    parsed.ok_or_else(|| interval.fault(format!("{} is not the length of an interval", interval.excerpt())))
}

fn name_of<'a>(value: &JsonNode<'a>) -> &'a str {
    value.member_text(&["name", "value"])
}

/// The resource in the identifier of a metric: the word before `/providers/Microsoft.Insights`.
fn resource(id: &str) -> &str {
    let (before, _) = id.split_once("/providers/Microsoft.Insights").unwrap_or((id, ""));
    before.rsplit('/').next().unwrap_or_default()
}

fn read_metric(
    metric: AzureMetric,
    value: &JsonNode<'_>,
    length_ns: u64,
    table: &mut IntervalTable,
) -> Result<(), JsonFault> {
    let unit = value.text_of("unit");
    if !unit.is_empty() && !unit.eq_ignore_ascii_case(metric.unit) {
        return Err(value.fault(format!("the unit is {unit}, not {}", metric.unit)));
    }
    let resource = resource(value.text_of("id"));
    let series = value.need_array("timeseries")?;
    for one in series.items() {
        let device = device_of(resource, metric.scope, &one);
        let data = one.need_array("data")?;
        for point in data.items() {
            read_point(metric, &device, &point, length_ns, table)?;
        }
    }
    Ok(())
}

/// The disk of a series: resource, kind and LUN, as far as they are known.
fn device_of(resource: &str, scope: &str, series: &JsonNode<'_>) -> String {
    let mut parts = vec![resource.to_owned(), scope.to_owned()];
    if let Some(dimensions) = series.get("metadatavalues") {
        for dimension in dimensions.items() {
            let (name, value) = (dimension.member_text(&["name", "value"]), dimension.text_of("value"));
            if name.eq_ignore_ascii_case("lun") {
                parts.push(format!("LUN {value}"));
            }
        }
    }
    parts.retain(|part| !part.is_empty());
    parts.join(" ")
}

fn read_point(
    metric: AzureMetric,
    device: &str,
    point: &JsonNode<'_>,
    length_ns: u64,
    table: &mut IntervalTable,
) -> Result<(), JsonFault> {
    let time = point.need("timeStamp")?;
    let start = time.text().and_then(clock_text::iso);
    let start_ns = start.ok_or_else(|| time.fault(format!("{} is not a time", time.excerpt())))?.unix_ns;
    // Consumption counts as a limit reached where its highest sample does.
    let is_share = metric.figure == AzureFigure::LimitShare;
    let highest = if is_share { point.number_of("maximum")? } else { None };
    let Some(value) = highest.or(point.number_of("average")?) else {
        let has_other = ["total", "maximum", "count"].iter().any(|name| point.get(name).is_some());
        return match has_other {
            true => {
                Err(point.fault_with("'average' is missing", "export with --aggregation Average Maximum"))
            }
            // No data for this interval.
            false => Ok(()),
        };
    };
    let seconds = length_ns as f64 / 1e9;
    let (figure, value) = match metric.figure {
        AzureFigure::OpsRate(op) => (IntervalFigure::Ops(Some(op)), value * seconds),
        AzureFigure::BytesRate(op) => (IntervalFigure::Bytes(Some(op)), value * seconds),
        AzureFigure::QueueDepth => (IntervalFigure::QueueDepth, value),
        AzureFigure::LimitShare => (IntervalFigure::LimitReached, f64::from(u8::from(value >= 100.0))),
        AzureFigure::CreditsShare => (IntervalFigure::Credits, (1.0 - value / 100.0).max(0.0)),
        AzureFigure::Latency => match table.ops(device, start_ns) {
            Some(ops) => (IntervalFigure::LatencySum(None), value * 1e-3 * ops as f64),
            None => return Ok(()),
        },
    };
    let set = table.set(device, Stretch { start_ns, length_ns }, figure, value);
    set.map_err(|problem| point.fault(problem))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{LoadCourse, ServedIo};

    fn metric(name: &str, unit: &str, metadata: &str, averages: &[&str]) -> String {
        let points: Vec<String> = averages
            .iter()
            .enumerate()
            .map(|(minute, average)| format!("{{\"timeStamp\":\"2026-11-22T10:0{minute}:00Z\"{average}}}"))
            .collect();
        format!(
            "{{\"id\":\"/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/disks/data1/providers/Microsoft.Insights/\
             metrics/x\",\"name\":{{\"value\":\"{name}\"}},\"unit\":\"{unit}\",\"timeseries\":[{{\"metadatavalues\":[{metadata}],\
             \"data\":[{}]}}]}}",
            points.join(",")
        )
    }

    fn document(metrics: &[String]) -> String {
        format!("{{\"interval\":\"PT1M\",\"value\":[\n{}]}}", metrics.join(",\n"))
    }

    #[test]
    fn rates_become_counts_and_points_without_an_average_gaps() {
        let reads = metric(
            "Composite Disk Read Operations/sec",
            "CountPerSecond",
            "",
            &[",\"average\":2.5", "", ",\"average\":1"],
        );
        let bytes = metric("Composite Disk Read Bytes/sec", "BytesPerSecond", "", &[",\"average\":4096"]);
        let latency = metric("Data Disk Latency", "MilliSeconds", "", &[",\"average\":2"]);
        let credits =
            metric("Composite Disk Used Burst IO Credits Percentage", "Percent", "", &[",\"average\":30"]);
        let other = metric("Disk Mirrors", "Count", "", &[]);
        let load = read(&document(&[credits, bytes, latency, reads, other]), None).unwrap();
        let LoadCourse::Intervals(intervals) = &load.course else { panic!("these are intervals") };
        let first = ServedIo { ops: Some(150), bytes: Some(245_760), latency_sum_ns: None };
        assert_eq!((intervals[0].by_op.read, intervals[0].credits_ppm), (first, Some(700_000)));
        assert_eq!((intervals[1].start_ns, load.gaps.len()), (120_000_000_000, 1));
        assert_eq!(
            (load.device.as_str(), load.notes[0].as_str()),
            ("data1", "the metric 'Disk Mirrors' is not used")
        );
    }

    #[test]
    fn disks_of_a_machine_are_told_apart() {
        let lun = |number: u8| {
            let metadata = format!("{{\"name\":{{\"value\":\"LUN\"}},\"value\":\"{number}\"}}");
            metric("Data Disk Read Operations/Sec", "CountPerSecond", &metadata, &[",\"average\":10"])
        };
        let latency = "{\"name\":{\"value\":\"LUN\"},\"value\":\"0\"}";
        let latency = metric("Data Disk Latency", "MilliSeconds", latency, &[",\"average\":2"]);
        let text = document(&[latency, lun(0), lun(1)]);
        let error = read(&text, None).unwrap_err();
        assert_eq!(error.problem, "it has several devices: data1 data disk LUN 0, data1 data disk LUN 1");
        let load = read(&text, Some("data1 data disk LUN 0")).unwrap();
        let LoadCourse::Intervals(intervals) = &load.course else { panic!("these are intervals") };
        assert_eq!(intervals[0].total.latency_sum_ns, Some(1_200_000_000));
    }

    #[test]
    fn what_has_no_meaning_is_refused_by_field() {
        let refused = |text: String| read(&text, None).unwrap_err().to_string();
        let reads =
            |point: &str| document(&[metric("Disk Read Operations/Sec", "CountPerSecond", "", &[point])]);
        assert_eq!(
            refused(reads(",\"average\":\"x\"")),
            "line 2: value[0].timeseries[0].data[0].average: 'x' is not a number"
        );
        assert!(refused(reads(",\"total\":9")).ends_with("'average' is missing"));
        assert!(refused(reads("").replace("PT1M", "soon")).contains("interval: 'soon' is not the length"));
        assert!(
            refused(reads("").replace("CountPerSecond", "Count"))
                .ends_with("the unit is Count, not CountPerSecond")
        );
        assert_eq!(refused(reads("")), "it contains no interval of a disk");
    }
}
