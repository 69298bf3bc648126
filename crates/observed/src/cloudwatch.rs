//! Metrics of AWS/EBS and AWS/EC2 from CloudWatch: `get-metric-statistics` and `get-metric-data`.
//!
//! Neither answer has its period: it is the smallest step between two times of a metric, the same for all. Counts are sums of a
//! period. Averages of counts are refused, since their meaning depends on the hypervisor.

use std::collections::{BTreeMap, HashMap};

use crate::clock_text::{self, SECOND_NS};
use crate::cloudwatch_metric::{CloudwatchMetric, resource_in};
use crate::interval_table::{IntervalFigure, IntervalTable, MOST, Stretch, impossible};
use crate::json::{JsonFault, JsonNode, JsonText};
use crate::load::{LoadClock, ObservedLoad};
use crate::{LoadError, LoadFormat};

/// Shortest period of these metrics, ns.
const MIN_PERIOD_NS: u64 = 60 * SECOND_NS;

/// Words that statistics have in labels.
const STATISTICS: [&str; 5] = ["Average", "Maximum", "Minimum", "SampleCount", "Sum"];
/// The largest share, percent: the whole, which a mean may exceed by its rounding.
const MAX_PERCENT: f64 = 100.01;

/// Values as an export has them, in any order.
#[derive(Debug, Default)]
pub(crate) struct CloudwatchSeries {
    values: HashMap<(String, &'static str, u64), f64>,
    samples: Vec<CloudwatchSample>,
    pub table: IntervalTable,
}

#[derive(Debug)]
struct CloudwatchSample {
    device: String,
    metric: &'static CloudwatchMetric,
    at_ns: u64,
    value: f64,
}

impl CloudwatchSeries {
    /// Adds a value.
    ///
    /// # Errors
    /// It is not possible, or the same period has another one.
    pub fn push(
        &mut self,
        device: &str,
        metric: &'static CloudwatchMetric,
        at_ns: u64,
        value: f64,
    ) -> Result<(), String> {
        if !(0.0..=MOST).contains(&value) {
            return Err(impossible(value));
        }
        if matches!(metric.figure, IntervalFigure::Ops(_)) && value.fract() != 0.0 {
            return Err(format!("{value} I/Os cannot be a sum: the values are those of another statistic"));
        }
        if metric.unit == "Percent" && value > MAX_PERCENT {
            return Err(format!(
                "{value} % is more than the whole: the values are those of another statistic"
            ));
        }
        match self.values.insert((device.to_owned(), metric.name, at_ns), value) {
            Some(other) if other != value => {
                Err(format!("{} has two values for this time, {other} and {value}", metric.name))
            }
            Some(_) => Ok(()),
            None => {
                self.samples.push(CloudwatchSample { device: device.to_owned(), metric, at_ns, value });
                Ok(())
            }
        }
    }

    /// The load of all values; `period_ns` where the export says it.
    ///
    /// # Errors
    /// The period is unknown, too short or not that of all values, a value is not possible, or it has several devices and none is
    /// chosen.
    pub fn finish(
        mut self,
        format: LoadFormat,
        period_ns: Option<u64>,
        device: Option<&str>,
    ) -> Result<ObservedLoad, LoadError> {
        if self.samples.is_empty() {
            return Err(LoadError::empty("value of a metric of EBS"));
        }
        let step_ns = if period_ns.is_none() { self.step_ns()? } else { None };
        let length_ns = period_ns.or(step_ns).ok_or_else(|| {
            let problem = "each metric has a single time, which does not say the period of its values";
            LoadError::new(0, problem, "export at least two periods")
        })?;
        if length_ns < MIN_PERIOD_NS {
            let problem = format!("its times are {} s apart", length_ns / SECOND_NS);
            let hint = "export a period of at least 60 s; do not join exports of different periods";
            return Err(LoadError::new(0, problem, hint));
        }
        self.need_one_beginning(length_ns)?;
        for CloudwatchSample { device, metric, at_ns, value } in std::mem::take(&mut self.samples) {
            let at = Stretch { start_ns: at_ns, length_ns };
            let set = self.table.set(&device, at, metric.figure, value * metric.scale);
            set.map_err(|problem| LoadError::new(0, problem, "check this metric").in_field(metric.name))?;
        }
        self.table.note(format!("values are sums and means of {} s", length_ns / SECOND_NS));
        self.table.finish(format, LoadClock::Utc, device)
    }

    /// The smallest step between two times of a metric of a device. A mean, which needs no period, may have a longer one than sums.
    fn step_ns(&self) -> Result<Option<u64>, LoadError> {
        let mut series: BTreeMap<_, Vec<u64>> = BTreeMap::new();
        for CloudwatchSample { device, metric, at_ns, .. } in &self.samples {
            // Sums come first.
            series.entry((!metric.is_sum(), device, metric.name)).or_default().push(*at_ns);
        }
        let mut found: Option<(&str, u64)> = None;
        for ((is_mean, _, name), mut times) in series {
            times.sort_unstable();
            let Some(step_ns) = times.windows(2).map(|pair| pair[1] - pair[0]).min() else { continue };
            match found {
                Some((first, other_ns)) if !is_mean && step_ns != other_ns => {
                    let (other, step) = (other_ns / SECOND_NS, step_ns / SECOND_NS);
                    let problem = format!("its period is {step} s, that of {first} {other} s");
                    let hint = "export all metrics with one period, or as a CSV with the row Period";
                    return Err(LoadError::new(0, problem, hint).in_field(name));
                }
                Some(_) => {}
                None => found = Some((name, step_ns)),
            }
        }
        Ok(found.map(|(_, step_ns)| step_ns))
    }

    /// Checks that the periods of all metrics of a device begin together.
    fn need_one_beginning(&self, period_ns: u64) -> Result<(), LoadError> {
        let mut firsts: HashMap<&str, u64> = HashMap::new();
        for CloudwatchSample { device, metric, at_ns, .. } in &self.samples {
            let begins_ns = at_ns % period_ns;
            let first_ns = *firsts.entry(device).or_insert(begins_ns);
            if begins_ns != first_ns {
                let late = (begins_ns + period_ns - first_ns) % period_ns / SECOND_NS;
                let problem = format!("a period begins {late} s after the beginning of another");
                let hint = "export all metrics with one period and one beginning";
                return Err(LoadError::new(0, problem, hint).in_field(metric.name));
            }
        }
        Ok(())
    }
}

const ONE_VOLUME: &str = "export one volume at a time, or label each series with its VolumeId";

/// Reads the documents of one query or of several.
///
/// # Errors
/// A value has no meaning, a statistic is not readable, or it has several volumes and none is chosen.
pub(crate) fn read(format: LoadFormat, text: &str, device: Option<&str>) -> Result<ObservedLoad, LoadError> {
    let json = JsonText::parse(text)?;
    let mut series = CloudwatchSeries::default();
    for root in json.roots() {
        let documents: Vec<JsonNode<'_>> = if root.is_array() { root.items().collect() } else { vec![root] };
        for document in &documents {
            let read = match format {
                LoadFormat::CloudwatchData => metric_data(document, &mut series),
                _ => metric_statistics(document, &mut series),
            };
            read.map_err(|fault| json.error(&fault))?;
        }
    }
    series.finish(format, None, device)
}

/// The metric of a label; of others a note.
fn known(label: &str, identifier: &str, table: &mut IntervalTable) -> Option<&'static CloudwatchMetric> {
    let found = CloudwatchMetric::named(label).or_else(|| CloudwatchMetric::named(identifier));
    if found.is_none() {
        let name = if label.is_empty() { identifier } else { label };
        table.note(format!("the metric '{name}' is not used"));
    }
    found
}

fn time_of(node: &JsonNode<'_>) -> Result<u64, JsonFault> {
    let parsed = match node.text() {
        Some(text) => clock_text::iso(text).map(|instant| instant.unix_ns),
        None => node.number().ok().and_then(clock_text::unix_seconds),
    };
    parsed.ok_or_else(|| node.fault(format!("{} is not a time", node.excerpt())))
}

fn metric_statistics(document: &JsonNode<'_>, series: &mut CloudwatchSeries) -> Result<(), JsonFault> {
    let label = document.text_of("Label");
    let Some(metric) = known(label, "", &mut series.table) else { return Ok(()) };
    let device = resource_in(label).unwrap_or_default();
    let points = document.need_array("Datapoints")?;
    for point in points.items() {
        let at_ns = time_of(&point.need("Timestamp")?)?;
        let unit = point.text_of("Unit");
        if !unit.is_empty() && unit != metric.unit && metric.unit != "None" {
            return Err(point.fault(format!("the unit of {} is {unit}, not {}", metric.name, metric.unit)));
        }
        let Some(value) = metric.statistics.iter().find_map(|statistic| point.get(statistic)) else {
            let (problem, hint) = metric.refusal("");
            return Err(point.fault_with(problem, hint));
        };
        let pushed = series.push(device, metric, at_ns, value.number()?);
        pushed.map_err(|problem| value.fault_with(problem, ONE_VOLUME))?;
    }
    Ok(())
}

fn metric_data(document: &JsonNode<'_>, series: &mut CloudwatchSeries) -> Result<(), JsonFault> {
    if document.get("NextToken").is_some() {
        series.table.note("the answer has a NextToken: it is not the whole result");
    }
    let results = document.need_array("MetricDataResults")?;
    for result in results.items() {
        let label = result.text_of("Label");
        let Some(metric) = known(label, result.text_of("Id"), &mut series.table) else { continue };
        let status = result.text_of("StatusCode");
        if !matches!(status, "" | "Complete") {
            series.table.note(format!("the status of {} is {status}: values may be missing", metric.name));
        }
        let named = || STATISTICS.iter().filter(|word| label.contains(*word));
        if let Some(other) = named().find(|word| !metric.takes(word)) {
            let (problem, hint) = metric.refusal(other);
            return Err(result.fault_with(problem, hint));
        }
        if metric.is_sum() {
            series
                .table
                .note("an answer of get-metric-data does not name its statistic: counts are read as Sum");
        } else if !metric.takes("Sum") && named().next().is_none() {
            let (name, statistic) = (metric.name, metric.statistics[0]);
            series
                .table
                .note(format!("the label of {name} does not name its statistic: it is read as {statistic}"));
        }
        let device = resource_in(label).unwrap_or_default();
        let (times, values) = (result.need_array("Timestamps")?, result.need_array("Values")?);
        if times.len() != values.len() {
            let problem = format!("it has {} times and {} values", times.len(), values.len());
            return Err(result.fault(problem));
        }
        for (time, value) in times.items().zip(values.items()) {
            let pushed = series.push(device, metric, time_of(&time)?, value.number()?);
            pushed.map_err(|problem| value.fault_with(problem, ONE_VOLUME))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{LoadCourse, ObservedInterval};

    fn statistics(label: &str, points: &[(&str, &str, &str)]) -> String {
        let one = |(minute, statistic, value): &(&str, &str, &str)| {
            format!(
                "{{\"Timestamp\":\"2026-11-22T10:{minute}:00+00:00\",\"{statistic}\":{value},\"Unit\":\"Count\"}}"
            )
        };
        let points: Vec<String> = points.iter().map(one).collect();
        format!("{{\"Label\":\"{label}\",\"Datapoints\":[\n{}]}}\n", points.join(",\n"))
    }

    fn read_statistics(text: &str) -> Result<ObservedLoad, LoadError> {
        read(LoadFormat::CloudwatchStatistics, text, None)
    }

    fn intervals(load: &ObservedLoad) -> &[ObservedInterval] {
        let LoadCourse::Intervals(intervals) = &load.course else { panic!("these are intervals") };
        intervals
    }

    #[test]
    fn unordered_sums_become_intervals() {
        let text = statistics(
            "VolumeReadOps",
            &[("05", "Sum", "300.0"), ("00", "Sum", "600.0"), ("15", "Sum", "30.0")],
        ) + &statistics("VolumeQueueLength", &[("00", "Average", "0.5")]);
        let load = read_statistics(&text).unwrap();
        let found = intervals(&load);
        assert_eq!(
            found.iter().map(|one| one.total.ops).collect::<Vec<_>>(),
            [Some(600), Some(300), Some(30)]
        );
        assert_eq!((found[0].length_ns, found[0].queue_depth_milli), (300 * SECOND_NS, Some(500)));
        assert_eq!((load.gaps.len(), load.gaps[0].start_ns), (1, 600 * SECOND_NS));
    }

    #[test]
    fn other_statistics_units_and_periods_are_refused() {
        let refused = |text: &str| read_statistics(text).unwrap_err().to_string();
        let points = [("00", "Average", "6.5"), ("05", "Average", "1.5")];
        assert_eq!(
            refused(&statistics("VolumeReadOps", &points)),
            "line 2: Datapoints[0]: VolumeReadOps has no Sum"
        );
        assert!(
            refused(&statistics("VolumeReadBytes", &[("00", "Sum", "1")])).ends_with("is Count, not Bytes")
        );
        let one = statistics("VolumeReadOps", &[("00", "Sum", "1")]);
        assert!(refused(&one).contains("single time"));
        let two = one.clone() + &statistics("VolumeReadOps", &[("00", "Sum", "2"), ("05", "Sum", "2")]);
        assert!(refused(&two).contains("two values for this time"));
        let fine = statistics("VolumeReadOps", &[("00", "Sum", "1"), ("05", "Sum", "2")]);
        assert!(refused(&fine.replace("05:00", "00:30")).contains("30 s apart"));
        assert!(refused(&fine.replace("\"Sum\":1", "\"Sum\":1.5")).contains("cannot be a sum"));
        for (value, shown) in [("-5", "-5"), ("1e300", "1e300"), ("1e19", "1e19")] {
            assert_eq!(
                refused(&fine.replace("\"Sum\":1", &format!("\"Sum\":{value}"))),
                format!("line 2: Datapoints[0].Sum: {shown} is not possible")
            );
        }
        assert!(
            refused(&statistics("CPUUtilization", &[("00", "Sum", "1")])).contains("no value of a metric")
        );
    }

    #[test]
    fn the_period_is_that_of_each_metric_by_itself() {
        let sums = |name: &str, minutes: &[&str]| {
            let points: Vec<_> = minutes.iter().map(|minute| (*minute, "Sum", "3000")).collect();
            statistics(name, &points)
        };
        let reads = sums("VolumeReadOps", &["00", "05", "10"]);
        let refused = |other: &str| read_statistics(&(reads.clone() + other)).unwrap_err().to_string();
        assert_eq!(
            refused(&sums("VolumeWriteOps", &["01", "06", "11"])),
            "VolumeWriteOps: a period begins 60 s after the beginning of another"
        );
        assert_eq!(
            refused(&sums("VolumeWriteOps", &["00", "10"])),
            "VolumeWriteOps: its period is 600 s, that of VolumeReadOps 300 s"
        );
        let depth = statistics("VolumeQueueLength", &[("00", "Average", "2"), ("10", "Average", "4")]);
        let load = read_statistics(&(reads + &sums("VolumeWriteOps", &["05"]) + &depth)).unwrap();
        let found: Vec<_> = intervals(&load).iter().map(|one| (one.length_ns, one.total.ops)).collect();
        let period = 300 * SECOND_NS;
        assert_eq!(found, [(period, Some(3_000)), (period, Some(6_000)), (period, Some(3_000))]);
    }

    #[test]
    fn metrics_and_volumes_are_found_in_labels() {
        let named = |text: &str| CloudwatchMetric::named(text).map(|metric| metric.name);
        assert_eq!(named("vol-0123456789abcdef0 VolumeReadOps"), Some("VolumeReadOps"));
        assert_eq!(named("volume_read_ops"), Some("VolumeReadOps"));
        assert_eq!(named("EBSIOBalance%"), Some("EBSIOBalance%"));
        assert_eq!(named("MyVolumeReadOps"), None);
        assert_eq!(resource_in("Volume (vol-0123456789abcdef0) ReadOps"), Some("vol-0123456789abcdef0"));
        assert_eq!((resource_in("vol-x"), resource_in("")), (None, None));
    }

    #[test]
    fn get_metric_data_has_times_and_values_apart() {
        let text = "{\"MetricDataResults\":[{\"Id\":\"m1\",\"Label\":\"VolumeReadOps\",\"Timestamps\":[\"2026-11-22T10:01:00+00:00\",\
            \"2026-11-22T10:00:00+00:00\"],\"Values\":[60.0,120.0],\"StatusCode\":\"Complete\"},\n{\"Id\":\"m2\",\"Label\":\"CPU\",\
            \"Timestamps\":[],\"Values\":[]}],\"NextToken\":\"x\"}";
        let load = read(LoadFormat::CloudwatchData, text, None).unwrap();
        assert_eq!(
            intervals(&load).iter().map(|one| one.total.ops).collect::<Vec<_>>(),
            [Some(120), Some(60)]
        );
        assert!(load.notes.iter().any(|note| note.contains("NextToken")));
        assert!(load.notes.iter().any(|note| note.contains("'CPU' is not used")));
        let refused = |text: String| read(LoadFormat::CloudwatchData, &text, None).unwrap_err().to_string();
        assert!(refused(text.replace("[60.0,", "[")).contains("2 times and 1 values"));
        assert!(
            refused(text.replace("\"VolumeReadOps\"", "\"VolumeReadOps Average\""))
                .contains("a series of Average")
        );
    }

    #[test]
    fn sums_of_means_and_shares_are_refused() {
        let text = |label: &str, value: &str| {
            let series = |label: &str, value: &str| {
                format!(
                    "{{\"Id\":\"m\",\"Label\":\"{label}\",\"Timestamps\":[\"2026-11-22T10:00:00Z\",\"2026-11-22T10:05:00Z\"],\
                     \"Values\":[{value},{value}]}}"
                )
            };
            let (reads, other) = (series("VolumeReadOps Sum", "60"), series(label, value));
            read(LoadFormat::CloudwatchData, &format!("{{\"MetricDataResults\":[{reads},{other}]}}"), None)
        };
        let refused = |label: &str, value: &str| text(label, value).unwrap_err().problem;
        assert_eq!(
            refused("VolumeQueueLength Sum", "10"),
            "VolumeQueueLength is a series of Sum, not of Average"
        );
        assert_eq!(refused("BurstBalance Sum", "100"), "BurstBalance is a series of Sum, not of Minimum");
        assert!(refused("BurstBalance", "101").starts_with("101 % is more than the whole"));
        assert!(
            text("VolumeIOPSExceededCheck Sum", "5").is_ok() && text("BurstBalance Average", "100").is_ok()
        );
        let note = "the label of VolumeQueueLength does not name its statistic: it is read as Average";
        assert!(text("VolumeQueueLength", "2").unwrap().notes.iter().any(|found| found == note));
    }
}
