//! What the entries of an imported test add up to, and its headline numbers.

use fathom_model::Op;

use super::{Figure, FigureNumber, ImportedEntry, ImportedLatency, ImportedOp, ImportedTest};
use crate::{
    CpuSummary, LatencySpan, LatencySummary, Metric, MetricDirection, MetricKind, OpSummary, Statistic,
    SyncSummary, TestSummary,
};

impl ImportedTest {
    /// One operation of all entries; `None` where no entry has it.
    pub fn op(&self, op: Op) -> Option<ImportedOp> {
        added(self.entries.iter().filter_map(|entry| entry.op(op)))
    }

    /// All operations of all entries together.
    pub fn total(&self) -> Option<ImportedOp> {
        let totals: Vec<ImportedOp> = self.entries.iter().filter_map(ImportedEntry::all_ops).collect();
        added(totals.iter())
    }

    /// The longest runtime, ns; 0 where none is known.
    pub fn runtime_ns(&self) -> u64 {
        let runtime = |entry: &ImportedEntry| Some(entry.all_ops()?.runtime_ns?.value);
        self.entries.iter().filter_map(runtime).max().unwrap_or(0)
    }

    /// The figure of a metric, of all operations where it names none and the test has several.
    pub fn figure(&self, metric: Metric) -> Option<Figure<f64>> {
        let op = match metric.direction_in(&self.summary()) {
            MetricDirection::Read => self.op(Op::Read),
            MetricDirection::Write => self.op(Op::Write),
            MetricDirection::Trim => self.op(Op::Trim),
            MetricDirection::Total => self.total(),
            MetricDirection::Sync => self.op(Op::Sync),
        }?;
        match metric.kind {
            MetricKind::Iops => op.iops,
            MetricKind::BytesPerSecond => op.bytes_per_second,
            MetricKind::Latency(span, statistic) => {
                let latency = match span {
                    LatencySpan::Submission => &op.slat,
                    LatencySpan::Completion => &op.clat,
                    LatencySpan::Total => &op.lat,
                };
                latency.statistic(statistic).map(Figure::real)
            }
        }
    }

    /// The headline numbers. A rate that the source does not say is 0, which no rate of a test that ran is.
    pub(crate) fn summary(&self) -> TestSummary {
        let of = |op: Op| self.op(op).map(|op| op_summary(&op));
        let runtime_ns = self.runtime_ns();
        TestSummary {
            read: of(Op::Read),
            write: of(Op::Write),
            trim: of(Op::Trim),
            total: self.total().map(|total| op_summary(&total)),
            sync: self.op(Op::Sync).map(|sync| sync_summary(&sync, runtime_ns)),
            cpu: self.cpu(),
            elapsed_ns: runtime_ns,
            measured_ns: runtime_ns,
            ..TestSummary::default()
        }
    }

    /// Processor time of the jobs; `None` where an entry does not say it.
    fn cpu(&self) -> Option<CpuSummary> {
        let mut sum = CpuSummary::default();
        let mut ios = Some(0);
        for entry in &self.entries {
            let runtime = entry.job_runtime_ns.map(|runtime| runtime.value).or_else(|| {
                let runtime = entry.all_ops()?.runtime_ns?.value;
                runtime.checked_mul(u64::from(entry.jobs.unwrap_or(1)))
            })? as f64;
            let spent = |percent: Option<Figure<f64>>| u64::of_real(percent?.value / 100.0 * runtime);
            sum.user_ns = sum.user_ns.saturating_add(spent(entry.cpu.user_percent)?);
            sum.system_ns = sum.system_ns.saturating_add(spent(entry.cpu.system_percent)?);
            ios = ios.and_then(|ios: u64| ios.checked_add(entry.all_ops()?.ios?.value));
        }
        let all = sum.user_ns as f64 + sum.system_ns as f64;
        sum.per_request_ns = ios.filter(|&ios| ios > 0).map(|ios| all / ios as f64);
        (!self.entries.is_empty()).then_some(sum)
    }
}

impl ImportedLatency {
    /// A figure of the distribution.
    pub fn statistic(&self, statistic: Statistic) -> Option<Figure<u64>> {
        match statistic {
            Statistic::Least => self.min,
            Statistic::Mean => self.mean,
            Statistic::Greatest => self.max,
            Statistic::Percentile(per_million) => {
                let is_it = |percent: f64| (percent * 1e4 - f64::from(per_million)).abs() < 1e-2;
                self.percentiles.iter().find(|found| is_it(found.percent)).map(|found| found.ns)
            }
        }
    }
}

impl ImportedEntry {
    /// All operations of this entry together, as printed or added up.
    pub fn all_ops(&self) -> Option<ImportedOp> {
        self.total.clone().or_else(|| added([&self.read, &self.write, &self.trim].into_iter().flatten()))
    }
}

/// What ran at the same time, added up. One alone is as it is printed; of several, only what can be added is known.
fn added<'a>(ops: impl Iterator<Item = &'a ImportedOp>) -> Option<ImportedOp> {
    let ops: Vec<&ImportedOp> = ops.collect();
    match ops.as_slice() {
        [] => None,
        [one] => Some((*one).clone()),
        _ => Some(ImportedOp {
            iops: sum(&ops, |op| op.iops),
            bytes_per_second: sum(&ops, |op| op.bytes_per_second),
            bytes: sum(&ops, |op| op.bytes),
            ios: sum(&ops, |op| op.ios),
            short: sum(&ops, |op| op.short),
            dropped: sum(&ops, |op| op.dropped),
            runtime_ns: extreme(&ops, |op| op.runtime_ns, |one, other| one.value > other.value),
            slat: added_latency(&ops, |op| &op.slat),
            clat: added_latency(&ops, |op| &op.clat),
            lat: added_latency(&ops, |op| &op.lat),
            ..ImportedOp::default()
        }),
    }
}

fn sum<T: FigureNumber>(
    ops: &[&ImportedOp],
    field: impl Fn(&ImportedOp) -> Option<Figure<T>>,
) -> Option<Figure<T>> {
    let (mut value, mut resolution) = (0.0, 0.0);
    for op in ops {
        let figure = field(op)?.real();
        value += figure.value;
        resolution += figure.resolution;
    }
    Figure::derived(value, resolution)
}

/// The figure that `wins` over all others; `None` where one is not known.
fn extreme(
    ops: &[&ImportedOp],
    field: impl Fn(&ImportedOp) -> Option<Figure<u64>>,
    wins: impl Fn(Figure<u64>, Figure<u64>) -> bool,
) -> Option<Figure<u64>> {
    let all: Option<Vec<Figure<u64>>> = ops.iter().map(|op| field(op)).collect();
    all?.into_iter().reduce(|one, other| if wins(other, one) { other } else { one })
}

fn added_latency(ops: &[&ImportedOp], latency: impl Fn(&ImportedOp) -> &ImportedLatency) -> ImportedLatency {
    let samples_of = |op: &ImportedOp| latency(op).samples.or(op.ios).map(|samples| samples.value as f64);
    let mean = || {
        let (mut samples, mut total, mut resolution) = (0.0, 0.0, 0_f64);
        for op in ops {
            let mean = latency(op).mean?.real();
            samples += samples_of(op)?;
            total += mean.value * samples_of(op)?;
            resolution = resolution.max(mean.resolution);
        }
        if samples > 0.0 { Figure::derived(total / samples, resolution) } else { None }
    };
    ImportedLatency {
        samples: sum(ops, |op| latency(op).samples),
        min: extreme(ops, |op| latency(op).min, |one, other| one.value < other.value),
        mean: mean(),
        max: extreme(ops, |op| latency(op).max, |one, other| one.value > other.value),
        ..ImportedLatency::default()
    }
}

fn op_summary(op: &ImportedOp) -> OpSummary {
    let ios = op.ios.map_or(0, |ios| ios.value);
    OpSummary {
        ios,
        bytes: op.bytes.map_or(0, |bytes| bytes.value),
        iops: op.iops.map_or(0.0, |iops| iops.value),
        bytes_per_second: op.bytes_per_second.map_or(0.0, |rate| rate.value),
        slat_ns: latency_summary(&op.slat, ios),
        clat_ns: latency_summary(&op.clat, ios),
        lat_ns: latency_summary(&op.lat, ios),
        ..OpSummary::default()
    }
}

/// fio prints no rate of the calls of fsync.
fn sync_summary(sync: &ImportedOp, runtime_ns: u64) -> SyncSummary {
    let ios = sync.ios.map_or(0, |ios| ios.value);
    let iops = if runtime_ns > 0 { ios as f64 * 1e9 / runtime_ns as f64 } else { 0.0 };
    SyncSummary { ios, iops, lat_ns: latency_summary(&sync.lat, ios) }
}

fn latency_summary(latency: &ImportedLatency, ios: u64) -> LatencySummary {
    let ns = |figure: Option<Figure<u64>>| figure.map(|figure| figure.value);
    let percentile = |per_million: u32| ns(latency.statistic(Statistic::Percentile(per_million)));
    let is_known = *latency != ImportedLatency::default();
    LatencySummary {
        samples: ns(latency.samples).unwrap_or(if is_known { ios } else { 0 }),
        min: ns(latency.min),
        mean: ns(latency.mean).map(|ns| ns as f64),
        max: ns(latency.max),
        stdev: ns(latency.stddev).map(|ns| ns as f64),
        p50: percentile(500_000),
        p90: percentile(900_000),
        p95: percentile(950_000),
        p99: percentile(990_000),
        p999: percentile(999_000),
        p9999: percentile(999_900),
        ..LatencySummary::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Observed, RunRecord, TestRecord};

    fn op(iops: f64, ios: u64, mean_ns: u64) -> ImportedOp {
        ImportedOp {
            iops: Figure::printed(iops, 1.0),
            ios: Figure::printed(ios as f64, 0.0),
            lat: ImportedLatency {
                mean: Figure::printed(mean_ns as f64, 5.0),
                min: Figure::printed(10.0, 0.0),
                ..ImportedLatency::default()
            },
            ..ImportedOp::default()
        }
    }

    fn test(reads: &[ImportedOp]) -> ImportedTest {
        let entry = |read: &ImportedOp| ImportedEntry { read: Some(read.clone()), ..Default::default() };
        ImportedTest { entries: reads.iter().map(entry).collect(), ..ImportedTest::default() }
    }

    #[test]
    fn clones_add_up_and_say_that_they_are_sums() {
        let read = test(&[op(100.0, 1_000, 50), op(300.0, 3_000, 90)]).op(Op::Read).unwrap();
        assert_eq!(read.iops, Figure::derived(400.0, 2.0));
        assert_eq!(read.ios, Figure::derived(4_000.0, 0.0));
        assert_eq!(read.lat.mean, Figure::derived(80.0, 5.0));
        assert_eq!(read.bytes_per_second, None);
    }

    #[test]
    fn a_sum_is_unknown_where_a_part_is() {
        let unknown = ImportedOp { iops: None, ..op(1.0, 10, 50) };
        let read = test(&[op(100.0, 1_000, 50), unknown]).op(Op::Read).unwrap();
        assert_eq!((read.iops, read.ios.map(|ios| ios.value)), (None, Some(1_010)));
    }

    #[test]
    fn figures_survive_a_record() {
        let imported = test(&[op(4_200.5, 1_000, 50)]);
        let observed = Some(Observed::Import(Box::new(imported)));
        let test = TestRecord { observed, ..TestRecord::default() };
        let record = RunRecord { tests: vec![test], ..RunRecord::default() };
        assert_eq!(RunRecord::from_json(&record.to_json()).unwrap(), record);
        let summary = TestSummary::new(&record.tests[0]);
        let figure =
            |metric: &str| record.tests[0].imported().unwrap().figure(Metric::parse(metric).unwrap());
        assert_eq!((figure("iops"), figure("write.iops")), (Figure::printed(4_200.5, 1.0), None));
        assert_eq!(figure("read.lat_ns.mean"), Figure::printed(50.0, 5.0));
        let total = summary.total.unwrap();
        assert_eq!((total.iops, total.lat_ns.mean, total.lat_ns.p99), (4_200.5, Some(50.0), None));
        assert_eq!((summary.write, summary.cpu), (None, None));
    }

    #[test]
    fn rounding_to_whole_units_widens_the_resolution() {
        let figure: Figure<u64> = Figure::printed(1_234.4, 0.05).unwrap();
        assert_eq!((figure.value, figure.resolution), (1_234, 1));
        assert_eq!(Figure::<u64>::printed(1e17, 0.0), None);
        assert_eq!(Figure::<u64>::printed(-1.0, 0.0), None);
        assert_eq!(Figure::<f64>::printed(f64::NAN, 0.0), None);
    }
}
