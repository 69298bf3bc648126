//! Metrics of disks from Google Cloud Monitoring: `timeSeries.list`, or the series alone as gcloud prints them.
//!
//! A DELTA is a sum of its interval, a GAUGE of these metrics a mean per second: what ALIGN_RATE returns.

use std::collections::BTreeSet;

use fathom_model::Op;

use crate::clock_text;
use crate::interval_table::{IntervalFigure, IntervalTable, Stretch};
use crate::json::{JsonFault, JsonNode, JsonText};
use crate::load::{LoadClock, ObservedLoad};
use crate::{LoadError, LoadFormat};

/// What every metric of disks begins with.
const DISK: &str = "compute.googleapis.com/instance/disk/";

/// The metrics: the end of their name, and what they sum up.
const METRICS: &[(&str, IntervalFigure)] = &[
    ("read_ops_count", IntervalFigure::Ops(Some(Op::Read))),
    ("write_ops_count", IntervalFigure::Ops(Some(Op::Write))),
    ("read_bytes_count", IntervalFigure::Bytes(Some(Op::Read))),
    ("write_bytes_count", IntervalFigure::Bytes(Some(Op::Write))),
    ("throttled_read_ops_count", IntervalFigure::LimitReached),
    ("throttled_write_ops_count", IntervalFigure::LimitReached),
    ("throttled_read_bytes_count", IntervalFigure::LimitReached),
    ("throttled_write_bytes_count", IntervalFigure::LimitReached),
    ("max_read_ops_count", IntervalFigure::PeakOps(Op::Read)),
    ("max_write_ops_count", IntervalFigure::PeakOps(Op::Write)),
];

const HINT: &str = "export with the aligner ALIGN_DELTA or ALIGN_RATE";

/// Reads the documents of one query or of several.
///
/// # Errors
/// A value has no meaning, or it has several disks and none is chosen.
pub(crate) fn read(text: &str, device: Option<&str>) -> Result<ObservedLoad, LoadError> {
    let json = JsonText::parse(text)?;
    let mut table = IntervalTable::default();
    let mut instances = BTreeSet::new();
    for root in json.roots() {
        for_each_series(&root, &mut |series| {
            instances.insert(instance(series).to_owned());
            Ok(())
        })
        .map_err(|fault| json.error(&fault))?;
    }
    let has_several = instances.len() > 1;
    for root in json.roots() {
        for_each_series(&root, &mut |series| read_series(series, has_several, &mut table))
            .map_err(|fault| json.error(&fault))?;
    }
    table.finish(LoadFormat::GcpMonitoring, LoadClock::Utc, device)
}

fn for_each_series(
    root: &JsonNode<'_>,
    visit: &mut dyn FnMut(&JsonNode<'_>) -> Result<(), JsonFault>,
) -> Result<(), JsonFault> {
    if root.is_array() {
        return root.items().try_for_each(|series| visit(&series));
    }
    let array = root.need_array("timeSeries")?;
    array.items().try_for_each(|series| visit(&series))
}

fn instance<'a>(series: &JsonNode<'a>) -> &'a str {
    series.member_text(&["resource", "labels", "instance_id"])
}

fn read_series(series: &JsonNode<'_>, has_several: bool, table: &mut IntervalTable) -> Result<(), JsonFault> {
    let metric = series.need("metric")?;
    let name = metric.text_of("type");
    let known = name.strip_prefix(DISK).and_then(|name| METRICS.iter().find(|(metric, _)| *metric == name));
    let Some((_, figure)) = known else {
        table.note(format!("the metric '{name}' is not used"));
        return Ok(());
    };
    let disk = metric.member_text(&["labels", "device_name"]);
    let device = if has_several { format!("{}/{disk}", instance(series)) } else { disk.to_owned() };
    let kind = series.text_of("metricKind");
    // A peak is the same however it is aligned.
    let is_rate = match kind {
        "DELTA" => false,
        "GAUGE" => !matches!(figure, IntervalFigure::PeakOps(_)),
        other => return Err(series.fault_with(format!("'{other}' is neither DELTA nor GAUGE"), HINT)),
    };
    let points = series.need_array("points")?;
    let spans: Vec<PointSpan> = points.items().map(|point| span_of(&point)).collect::<Result<_, _>>()?;
    let mut ends: Vec<u64> = spans.iter().map(|span| span.end_ns).collect();
    ends.sort_unstable();
    let step_ns = ends.windows(2).map(|pair| pair[1] - pair[0]).filter(|step| *step > 0).min();
    for (point, span) in points.items().zip(spans) {
        // A gauge may have its end alone, and holds since the one before.
        let length_ns = match span.end_ns - span.start_ns {
            0 => step_ns.ok_or_else(|| point.fault_with("its interval has no length", HINT))?,
            length => length,
        };
        let start_ns = span.end_ns.saturating_sub(length_ns);
        let values = point.need("value")?;
        let value = match values.number_of("int64Value")? {
            Some(value) => value,
            None => values.need("doubleValue")?.number()?,
        };
        let value = if is_rate { value * length_ns as f64 / 1e9 } else { value };
        let set = table.set(&device, Stretch { start_ns, length_ns }, *figure, value);
        set.map_err(|problem| values.fault(problem))?;
    }
    Ok(())
}

/// The interval of a point, ns since the epoch.
#[derive(Clone, Copy, Debug)]
struct PointSpan {
    start_ns: u64,
    end_ns: u64,
}

fn span_of(point: &JsonNode<'_>) -> Result<PointSpan, JsonFault> {
    let interval = point.need("interval")?;
    let time = |node: &JsonNode<'_>| {
        let parsed = node.text().and_then(clock_text::iso).map(|instant| instant.unix_ns);
        parsed.ok_or_else(|| node.fault(format!("{} is not a time", node.excerpt())))
    };
    let end_ns = time(&interval.need("endTime")?)?;
    let start_ns = match interval.get("startTime") {
        Some(start) => time(&start)?,
        None => end_ns,
    };
    match start_ns <= end_ns {
        true => Ok(PointSpan { start_ns, end_ns }),
        false => Err(interval.fault("it ends before it starts")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::LoadCourse;

    fn series(name: &str, kind: &str, instance: &str, points: &[&str]) -> String {
        format!(
            "{{\"metric\":{{\"type\":\"{DISK}{name}\",\"labels\":{{\"device_name\":\"data\"}}}},\"resource\":{{\"labels\":\
             {{\"instance_id\":\"{instance}\"}}}},\"metricKind\":\"{kind}\",\"points\":[\n{}]}}",
            points.join(",\n")
        )
    }

    fn point(from: &str, to: &str, value: &str) -> String {
        format!(
            "{{\"interval\":{{\"startTime\":\"2026-11-22T10:{from}Z\",\"endTime\":\"2026-11-22T10:{to}Z\"}},\"value\":{{{value}}}}}"
        )
    }

    fn document(series: &[String]) -> String {
        format!("{{\"timeSeries\":[{}]}}", series.join(","))
    }

    #[test]
    fn deltas_are_sums_and_gauges_rates() {
        let late = point("01:00", "02:00", "\"int64Value\":\"60\"");
        let early = point("00:00", "01:00", "\"int64Value\":\"120\"");
        let reads = series("read_ops_count", "DELTA", "1", &[&late, &early]);
        let gauge = |minute: &str| point(minute, minute, "\"doubleValue\":2.5");
        let writes = series("write_ops_count", "GAUGE", "1", &[&gauge("02:00"), &gauge("01:00")]);
        let peaks = series("max_read_ops_count", "GAUGE", "1", &[&gauge("02:00"), &gauge("01:00")]);
        let throttled = series("throttled_read_ops_count", "DELTA", "1", &[&late]);
        for text in [
            document(&[reads.clone(), writes.clone(), peaks.clone(), throttled.clone()]),
            format!("[{reads},{writes},{peaks},{throttled}]"),
        ] {
            let load = read(&text, None).unwrap();
            let LoadCourse::Intervals(intervals) = &load.course else { panic!("these are intervals") };
            let found: Vec<_> =
                intervals.iter().map(|one| (one.by_op.read.ops, one.by_op.write.ops)).collect();
            assert_eq!(found, [(Some(120), Some(150)), (Some(60), Some(150))]);
            assert_eq!((intervals[0].limit_reached, intervals[1].limit_reached), (None, Some(true)));
            assert_eq!(intervals[0].peak_ops_per_second.read, Some(3));
            assert_eq!(load.device, "data");
        }
    }

    #[test]
    fn what_has_no_meaning_is_refused_by_field() {
        let refused = |text: String| read(&text, None).unwrap_err().to_string();
        let good = point("00:00", "01:00", "\"int64Value\":\"120\"");
        let two = document(&[
            series("read_ops_count", "DELTA", "1", &[&good]),
            series("read_ops_count", "DELTA", "2", &[&good]),
        ]);
        assert_eq!(refused(two), "it has several devices: 1/data, 2/data");
        let broken = good.replace("\"120\"", "\"x\"");
        assert_eq!(
            refused(document(&[series("read_ops_count", "DELTA", "1", &[&good, &broken])])),
            "line 3: timeSeries[0].points[1].value.int64Value: 'x' is not a number"
        );
        let cumulative = document(&[series("read_ops_count", "CUMULATIVE", "1", &[&good])]);
        assert!(refused(cumulative).contains("neither DELTA nor GAUGE"));
        let short = point("00:00", "00:00", "\"int64Value\":\"1\"");
        assert!(
            refused(document(&[series("read_ops_count", "DELTA", "1", &[&short])])).contains("has no length")
        );
        let other = document(&[series("uptime", "DELTA", "1", &[&good])]);
        assert_eq!(refused(other), "it contains no interval of a disk");
    }
}
