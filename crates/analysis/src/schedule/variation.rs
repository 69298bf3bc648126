//! How the figures of the runs of a schedule vary: over all runs, from change to change, by hour and by host.

use std::collections::BTreeMap;
use std::sync::Arc;

use fathom_record::{LatencySpan, Metric, MetricDirection, MetricKind, Statistic};
use serde::Serialize;

use crate::trend::{
    ERROR, GroupDifference, GroupSpread, TrendRow, TrendSeries, by_key, by_time, difference, series_within,
};

/// From this many bytes per I/O on the bandwidth of a test leads, below it its IOPS.
const LARGE_BYTES: f64 = 65_536.0;

/// A figure of one run; the key of the row is the host.
#[derive(Clone, Debug, PartialEq)]
pub struct ScheduledValue {
    /// What it is.
    pub metric: Metric,
    /// Its test, host, instant and value.
    pub row: TrendRow,
}

/// Whether groups of runs differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum VariationVerdict {
    /// They do.
    Differs,
    /// No difference is significant.
    NoDifference,
    /// There are too few runs to show one.
    Inconclusive,
}

impl VariationVerdict {
    /// The words in text.
    pub const fn text(self) -> &'static str {
        match self {
            VariationVerdict::Differs => "differs",
            VariationVerdict::NoDifference => "no difference shown",
            VariationVerdict::Inconclusive => "inconclusive",
        }
    }
}

/// The runs of a figure by hour or by host.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GroupVariation {
    /// Whether the groups differ; all figures together claim a difference where there is none with the probability [`ERROR`].
    pub verdict: VariationVerdict,
    /// The group with the worst median, where they differ.
    pub worst: Option<String>,
    /// The groups and the test.
    #[serde(flatten)]
    pub difference: GroupDifference,
}

/// How one figure of a test varies.
#[derive(Clone, Debug, PartialEq)]
pub struct FigureVariation {
    /// Id of the test.
    pub test: Arc<str>,
    /// The figure.
    pub metric: Metric,
    /// All runs.
    pub all: GroupSpread,
    /// The lowest value.
    pub least: f64,
    /// The highest value.
    pub greatest: f64,
    /// The runs of each host with the changes of their level.
    pub series: Vec<TrendSeries>,
    /// By hour of the day.
    pub by_hour: GroupVariation,
    /// By host.
    pub by_host: GroupVariation,
}

/// The figures of which a test's leading ones are chosen: its rates and latencies over all I/Os.
pub fn leading_metrics() -> [Metric; 4] {
    let latency = |statistic| MetricKind::Latency(LatencySpan::Total, statistic);
    [
        MetricKind::Iops,
        MetricKind::BytesPerSecond,
        latency(Statistic::Percentile(990_000)),
        latency(Statistic::Mean),
    ]
    .map(|kind| Metric { direction: Some(MetricDirection::Total), kind })
}

/// How the leading figures of each test vary, by test: IOPS, or bandwidth of large I/Os, and the 99th percentile of the latency, or
/// its mean where a run has too few I/Os for that. `hour` names the hour of an instant.
pub fn variation(values: &[ScheduledValue], hour: impl Fn(u64) -> String) -> Vec<FigureVariation> {
    let mut tests: BTreeMap<Arc<str>, [Vec<TrendRow>; 4]> = BTreeMap::new();
    let metrics = leading_metrics();
    for ScheduledValue { metric, row } in values {
        let Some(place) = metrics.iter().position(|known| known == metric) else { continue };
        tests.entry(row.test.clone()).or_default()[place].push(row.clone());
    }
    let chosen = tests.into_values().flat_map(|[iops, bytes, p99, mean]| {
        let sum = |rows: &[TrendRow]| rows.iter().map(|row| row.point.value).sum::<f64>();
        let is_large = iops.is_empty() || sum(&bytes) >= LARGE_BYTES * sum(&iops);
        let rate = if is_large { (metrics[1], bytes) } else { (metrics[0], iops) };
        let latency = if p99.len() < mean.len() { (metrics[3], mean) } else { (metrics[2], p99) };
        [rate, latency]
    });
    let chosen: Vec<(Metric, Vec<TrendRow>)> = chosen.filter(|(_, rows)| !rows.is_empty()).collect();
    let error = ERROR / chosen.len().max(1) as f64;
    chosen.into_iter().filter_map(|(metric, rows)| of_figure(metric, rows, &hour, error)).collect()
}

fn of_figure(
    metric: Metric,
    mut rows: Vec<TrendRow>,
    hour: &impl Fn(u64) -> String,
    error: f64,
) -> Option<FigureVariation> {
    rows.sort_by(|one, other| {
        let place = |row: &TrendRow| (row.point.dated_unix_ms, row.point.run);
        one.key.cmp(&other.key).then_with(|| place(one).cmp(&place(other)))
    });
    let values: Vec<f64> = rows.iter().map(|row| row.point.value).collect();
    let series = series_within(rows, error);
    let is_rate = matches!(metric.kind, MetricKind::Iops | MetricKind::BytesPerSecond);
    let tested = |found: Vec<(Arc<str>, GroupDifference)>| {
        let (_, difference) = found.into_iter().next()?;
        Some(tested(difference, is_rate, error))
    };
    Some(FigureVariation {
        test: series.first()?.test.clone(),
        metric,
        all: difference(&[(String::new(), values.clone())], 1.0).groups.pop()?,
        least: values.iter().copied().reduce(f64::min)?,
        greatest: values.iter().copied().reduce(f64::max)?,
        by_hour: tested(by_time(&series, hour))?,
        by_host: tested(by_key(&series))?,
        series,
    })
}

fn tested(difference: GroupDifference, is_rate: bool, error: f64) -> GroupVariation {
    let verdict = match difference.p {
        None => VariationVerdict::Inconclusive,
        Some(p) if p < error => VariationVerdict::Differs,
        Some(_) => VariationVerdict::NoDifference,
    };
    let by_median = |one: &&GroupSpread, other: &&GroupSpread| one.median.total_cmp(&other.median);
    let worst = || match is_rate {
        true => difference.groups.iter().min_by(by_median),
        false => difference.groups.iter().max_by(by_median),
    };
    let worst = (verdict == VariationVerdict::Differs).then(worst).flatten().map(|group| group.key.clone());
    GroupVariation { verdict, worst, difference }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trend::{TrendPoint, TrendVerdict};

    const HOUR_MS: u64 = 3_600_000;

    fn value(metric: Metric, host: &str, run: u64, value: f64) -> ScheduledValue {
        let instant = run * HOUR_MS;
        let point = TrendPoint {
            run,
            dated_unix_ms: instant,
            started_unix_ms: instant,
            target: "/mnt".into(),
            value,
        };
        ScheduledValue { metric, row: TrendRow { test: "rand-read".into(), key: host.into(), point } }
    }

    /// A test of 4 KiB I/Os over so many hours, whose rate is a multiple of 1,000 IOPS and noise of one percent.
    fn hourly(host: &str, hours: u64, share: impl Fn(u64) -> f64) -> Vec<ScheduledValue> {
        let [iops, bytes, _, mean] = leading_metrics();
        (1..=hours)
            .flat_map(|run| {
                let noise = 1.0 + ((run * 7919 % 101) as f64 / 50.0 - 1.0) * 0.01;
                let rate = 1000.0 * share(run) * noise;
                [
                    value(iops, host, run, rate),
                    value(bytes, host, run, rate * 4096.0),
                    value(mean, host, run, 1e9 / rate),
                ]
            })
            .collect()
    }

    fn hour(unix_ms: u64) -> String {
        format!("{:02}", unix_ms / HOUR_MS % 24)
    }

    #[test]
    fn a_slow_hour_is_found_in_a_week_and_not_in_a_day() {
        let slow = |run: u64| if run % 24 == 3 { 0.8 } else { 1.0 };
        let week = variation(&hourly("web1", 168, slow), hour);
        let names: Vec<String> = week.iter().map(|one| one.metric.to_string()).collect();
        assert_eq!(names, ["total.iops", "total.lat_ns.mean"]);
        for figure in &week {
            assert_eq!(figure.by_hour.verdict, VariationVerdict::Differs);
            assert_eq!(figure.by_hour.worst.as_deref(), Some("03"));
            assert!(figure.by_hour.difference.explained.is_some_and(|share| share > 0.0));
            assert_eq!(figure.by_host.verdict, VariationVerdict::Inconclusive, "there is one host");
            assert_eq!(figure.all.runs, 168);
        }
        assert!(week[0].least < 810.0 && week[0].greatest < 1011.0);
        let day = variation(&hourly("web1", 24, slow), hour);
        assert!(day.iter().all(|one| one.by_hour.verdict == VariationVerdict::Inconclusive));
        let even = variation(&hourly("web1", 168, |_| 1.0), hour);
        assert!(even.iter().all(|one| one.by_hour.verdict == VariationVerdict::NoDifference), "{even:?}");
        assert!(even.iter().all(|one| one.by_hour.worst.is_none()));
    }

    #[test]
    fn hosts_and_changes_are_told_apart() {
        let mut both = hourly("web1", 96, |run| if run <= 48 { 1.0 } else { 0.5 });
        both.extend(hourly("web2", 96, |_| 2.0));
        let found = variation(&both, hour);
        let rate = &found[0];
        assert_eq!(
            (rate.by_host.verdict, rate.by_host.worst.as_deref()),
            (VariationVerdict::Differs, Some("web1"))
        );
        let verdicts: Vec<TrendVerdict> = rate.series.iter().map(|one| one.analysis.verdict).collect();
        assert_eq!(verdicts, [TrendVerdict::Changed, TrendVerdict::NoChange]);
        assert_ne!(rate.by_hour.verdict, VariationVerdict::Differs, "neither host nor change is an hour");
    }

    #[test]
    fn large_blocks_lead_with_their_bandwidth() {
        let [iops, bytes, p99, mean] = leading_metrics();
        let values = [(iops, 100.0), (bytes, 100.0 * 1_048_576.0), (p99, 2e7), (mean, 1e7)];
        let values: Vec<ScheduledValue> =
            values.into_iter().map(|(metric, number)| value(metric, "", 1, number)).collect();
        let names: Vec<String> = variation(&values, hour).iter().map(|one| one.metric.to_string()).collect();
        assert_eq!(names, ["total.bytes_per_second", "total.lat_ns.p99"]);
    }
}
