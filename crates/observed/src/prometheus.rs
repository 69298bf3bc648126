//! The answer of a Prometheus server to `query_range` on the disk counters of node_exporter.
//!
//! Counters only grow. Where one falls, the host restarted or the device was replaced, and what was counted between both samples is
//! unknown. Intervals lie between the times at which every counter of a device has a sample.

use std::collections::{BTreeMap, BTreeSet};

use fathom_model::Op;

use crate::clock_text::unix_seconds;
use crate::interval_table::{IntervalFigure, IntervalTable, Stretch, impossible};
use crate::json::{JsonFault, JsonNode, JsonText};
use crate::load::{GapReason, LoadClock, ObservedLoad};
use crate::{LoadError, LoadFormat};

/// The counters: name without `node_disk_`, and what they sum up. Times are in seconds.
const COUNTERS: &[(&str, IntervalFigure)] = &[
    ("reads_completed_total", IntervalFigure::Ops(Some(Op::Read))),
    ("writes_completed_total", IntervalFigure::Ops(Some(Op::Write))),
    ("discards_completed_total", IntervalFigure::Ops(Some(Op::Trim))),
    ("read_bytes_total", IntervalFigure::Bytes(Some(Op::Read))),
    ("written_bytes_total", IntervalFigure::Bytes(Some(Op::Write))),
    ("read_time_seconds_total", IntervalFigure::LatencySum(Some(Op::Read))),
    ("write_time_seconds_total", IntervalFigure::LatencySum(Some(Op::Write))),
    ("discard_time_seconds_total", IntervalFigure::LatencySum(Some(Op::Trim))),
    ("io_time_seconds_total", IntervalFigure::Utilization),
    ("io_time_weighted_seconds_total", IntervalFigure::QueueDepth),
];

const QUERY: &str =
    "query the counters themselves: query_range with {__name__=~\"node_disk_.*_total\", device=\"DEVICE\"}";

/// The counters of a device: value by time, ns since the epoch.
type DeviceCounters = BTreeMap<usize, BTreeMap<u64, f64>>;

/// Reads the documents of one query or of several.
///
/// # Errors
/// It is no such answer, a value has no meaning, or it has several devices and none is chosen.
pub(crate) fn read(text: &str, device: Option<&str>) -> Result<ObservedLoad, LoadError> {
    let json = JsonText::parse(text)?;
    let mut devices: BTreeMap<(String, String), DeviceCounters> = BTreeMap::new();
    let mut table = IntervalTable::default();
    for root in json.roots() {
        document(&root, &mut devices, &mut table).map_err(|fault| json.error(&fault))?;
    }
    let instances: BTreeSet<&String> = devices.keys().map(|(instance, _)| instance).collect();
    let has_several = instances.len() > 1;
    for ((instance, name), counters) in &devices {
        let name = if has_several { format!("{instance}/{name}") } else { name.clone() };
        intervals(&name, counters, &mut table).map_err(|problem| LoadError::new(0, problem, QUERY))?;
    }
    table.finish(LoadFormat::PrometheusRange, LoadClock::Utc, device)
}

fn document(
    root: &JsonNode<'_>,
    devices: &mut BTreeMap<(String, String), DeviceCounters>,
    table: &mut IntervalTable,
) -> Result<(), JsonFault> {
    let data = root.need("data")?;
    let kind = data.need("resultType")?;
    if kind.text() != Some("matrix") {
        let problem = format!("{} is not a matrix", kind.excerpt());
        return Err(kind.fault_with(problem, "ask /api/v1/query_range, not /api/v1/query"));
    }
    let results = data.need_array("result")?;
    for series in results.items() {
        let metric = series.need("metric")?;
        let name = metric.text_of("__name__");
        if name.is_empty() {
            let problem = "'__name__' is missing: it is the result of a function such as rate()";
            return Err(metric.fault_with(problem, QUERY));
        }
        let known = name
            .strip_prefix("node_disk_")
            .and_then(|name| COUNTERS.iter().position(|(counter, _)| *counter == name));
        let Some(counter) = known else {
            table.note(format!("the metric {name} is not used"));
            continue;
        };
        let device = metric.need("device")?.text().unwrap_or_default().to_owned();
        let key = (metric.text_of("instance").to_owned(), device);
        let samples = devices.entry(key).or_default().entry(counter).or_default();
        let values = series.need_array("values")?;
        for sample in values.items() {
            let mut parts = sample.items();
            let (Some(time), Some(value)) = (parts.next(), parts.next()) else {
                return Err(sample.fault("expected a time and a value"));
            };
            let at = time.number()?;
            let at = unix_seconds(at).ok_or_else(|| time.fault(format!("{at} is not a time in seconds")))?;
            let count = value.number()?;
            if count < 0.0 {
                return Err(value.fault(impossible(count)));
            }
            if count.is_finite() {
                samples.insert(at, count);
            }
        }
    }
    Ok(())
}

/// The intervals between the samples of a device.
fn intervals(name: &str, counters: &DeviceCounters, table: &mut IntervalTable) -> Result<(), String> {
    let mut every = counters.values();
    let Some(first) = every.next() else { return Ok(()) };
    let mut times: Vec<u64> = first.keys().copied().collect();
    for samples in every {
        times.retain(|at| samples.contains_key(at));
    }
    let step = times.windows(2).map(|pair| pair[1] - pair[0]).min().unwrap_or(0);
    let mut long = 0;
    for pair in times.windows(2) {
        let at = Stretch { start_ns: pair[0], length_ns: pair[1] - pair[0] };
        let deltas: Vec<(usize, f64)> = counters
            .iter()
            .map(|(counter, samples)| (*counter, samples[&pair[1]] - samples[&pair[0]]))
            .collect();
        if deltas.iter().any(|(_, delta)| *delta < 0.0) {
            table.gap(name, at, GapReason::CounterReset)?;
            continue;
        }
        long += usize::from(at.length_ns > step + step / 2);
        let seconds = at.length_ns as f64 / 1e9;
        for (counter, delta) in deltas {
            let figure = COUNTERS[counter].1;
            let value = match figure {
                IntervalFigure::Utilization | IntervalFigure::QueueDepth => delta / seconds,
                _ => delta,
            };
            table.set(name, at, figure, value)?;
        }
    }
    if long > 0 {
        table.note(format!("{name}: {long} intervals are longer than the step, for samples are missing"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{LoadCourse, ServedIo};

    fn answer(series: &[(&str, &str, &str)]) -> String {
        let one = |(name, device, values): &(&str, &str, &str)| {
            format!(
                "{{\"metric\":{{\"__name__\":\"{name}\",\"device\":\"{device}\",\"instance\":\"h:9100\"}},\"values\":[{values}]}}"
            )
        };
        let series: Vec<String> = series.iter().map(one).collect();
        format!(
            "{{\"status\":\"success\",\"data\":{{\"resultType\":\"matrix\",\"result\":[\n{}]}}}}",
            series.join(",\n")
        )
    }

    const READS: &str = "node_disk_reads_completed_total";
    const TIME: &str = "node_disk_read_time_seconds_total";
    const WEIGHTED: &str = "node_disk_io_time_weighted_seconds_total";

    #[test]
    fn counters_are_summed_up_between_samples_and_resets_are_gaps() {
        let text = answer(&[
            (
                READS,
                "sda",
                "[1795341600,\"100\"],[1795341660,\"160\"],[1795341720,\"5\"],[1795341780,\"25\"]",
            ),
            (TIME, "sda", "[1795341600,\"1\"],[1795341660,\"1.5\"],[1795341720,\"0\"],[1795341780,\"0.1\"]"),
            (
                WEIGHTED,
                "sda",
                "[1795341600,\"1\"],[1795341660,\"31\"],[1795341720,\"0\"],[1795341780,\"NaN\"]",
            ),
        ]);
        let load = read(&text, None).unwrap();
        let LoadCourse::Intervals(intervals) = &load.course else { panic!("these are intervals") };
        assert_eq!(intervals.len(), 1, "the last time has no sample of one counter");
        let expected = ServedIo { ops: Some(60), bytes: None, latency_sum_ns: Some(500_000_000) };
        assert_eq!((intervals[0].by_op.read, intervals[0].queue_depth_milli), (expected, Some(500)));
        let text = answer(&[(
            READS,
            "sda",
            "[1795341600,\"100\"],[1795341660,\"160\"],[1795341720,\"5\"],[1795341780,\"25\"]",
        )]);
        let load = read(&text, None).unwrap();
        assert_eq!(load.gaps.iter().map(|gap| gap.reason).collect::<Vec<_>>(), [GapReason::CounterReset]);
        assert_eq!(load.started_unix_ns, Some(1_795_341_600_000_000_000));
    }

    #[test]
    fn other_answers_are_refused() {
        let refused = |text: &str| read(text, None).unwrap_err().to_string();
        let two = answer(&[
            (READS, "sda", "[1795341600,\"1\"],[1795341660,\"2\"]"),
            (READS, "sdb", "[1795341600,\"1\"],[1795341660,\"2\"]"),
        ]);
        assert_eq!(refused(&two), "it has several devices: sda, sdb");
        assert!(
            refused(&two.replace("matrix", "vector")).ends_with("data.resultType: 'vector' is not a matrix")
        );
        assert!(
            refused(&two.replace("__name__", "name"))
                .starts_with("line 2: data.result[0].metric: '__name__' is missing")
        );
        let broken = answer(&[(READS, "sda", "[1795341600,\"x\"]")]);
        assert_eq!(refused(&broken), "line 2: data.result[0].values[0][1]: 'x' is not a number");
        let below = answer(&[(READS, "sda", "[1795341600,\"-3\"]")]);
        assert_eq!(refused(&below), "line 2: data.result[0].values[0][1]: -3 is not possible");
        assert!(refused(&answer(&[(READS, "sda", "[-1,\"1\"]")])).contains("-1 is not a time in seconds"));
    }
}
