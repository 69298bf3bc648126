//! The course of a test: rates and latencies over time, what stalled or throttled it, and where its limits lie.

use fathom_model::Op;
use fathom_record::forecast::{CreditCourse, ForecastSlice};
use fathom_record::{
    FindingId, Histogram, HostCounters, HostInterval, HostRecord, Interval, IntervalOp, JobRecord, Observed,
    RunRecord, TestRecord, merge_jobs,
};

use super::axes::{percent_text, plot};
use super::monitored;
use crate::axis_text::{MIB, latency_text, rate_text, time_axis};
use crate::columns::capital;
use crate::view::{Axis, Plot, PlotForm, PlotLimit, PlotMark, PlotPoint, PlotSeries};

/// I/Os of an interval from which on its p99 is shown.
const MIN_FOR_P99: u64 = 100;
/// An interval that is so many times shorter than usual was cut.
const SHORT: u64 = 4;
/// Most points of a course at a glance.
const GLANCE: usize = 60;

/// A stretch of time of all workers together.
pub(super) struct Slice {
    pub(super) from: u64,
    pub(super) to: u64,
    /// Completed I/Os and bytes of reads, writes and trims.
    ios: [u64; 3],
    bytes: [u64; 3],
    /// Latencies of each operation; in place of reads those of all where they are not told apart.
    pub(super) latencies: [Histogram; 3],
}

impl Slice {
    fn of_interval(interval: &Interval) -> Slice {
        let histogram = |op: &IntervalOp| {
            Histogram::from_sparse(op.clat_bins.iter().map(|&(bin, count)| (usize::from(bin), count)))
        };
        Slice {
            from: interval.start_ns,
            to: interval.end_ns,
            ios: interval.ops().map(|op| op.ios),
            bytes: interval.ops().map(|op| op.bytes),
            latencies: interval.ops().map(histogram),
        }
    }

    fn of_forecast(slice: &ForecastSlice) -> Slice {
        Slice {
            from: slice.start_ns,
            to: slice.end_ns,
            ios: slice.counted.ios,
            bytes: slice.counted.bytes,
            latencies: [slice.lat.histogram.clone(), Histogram::default(), Histogram::default()],
        }
    }

    /// Adds the slice that follows this one.
    fn absorb(&mut self, next: &Slice) {
        self.to = next.to;
        for op in 0..3 {
            self.ios[op] += next.ios[op];
            self.bytes[op] += next.bytes[op];
            self.latencies[op].merge(&next.latencies[op]);
        }
    }

    fn per_second(&self, count: u64) -> f64 {
        count as f64 * 1e9 / (self.to - self.from).max(1) as f64
    }

    /// The rate of all I/Os together.
    pub(super) fn total(&self) -> PlotPoint {
        self.point(self.per_second(self.ios.iter().sum()))
    }

    fn point(&self, y: f64) -> PlotPoint {
        PlotPoint { from: self.from as f64, to: self.to as f64, y, interval: None }
    }
}

/// The course of a test in order of time, and whether its latencies are told apart by operation.
pub(super) fn slices(test: &TestRecord) -> (Vec<Slice>, bool) {
    if let Some(Observed::Forecast(forecast)) = &test.observed {
        return (forecast.slices.iter().map(Slice::of_forecast).collect(), false);
    }
    if let Some(Observed::Ping(ping)) = &test.observed {
        return (ping.series.iter().map(Slice::of_interval).collect(), true);
    }
    let mut slices: Vec<Slice> = phases(&test.jobs)
        .iter()
        .flat_map(|phase| of_phase(phase))
        .filter(|slice| slice.to > slice.from)
        .collect();
    slices.sort_by_key(|slice| slice.from);
    (without_cuts(slices), true)
}

/// The rate of all I/Os over time at a glance: means of so many stretches at most.
pub(super) fn glance(test: &TestRecord) -> Vec<f64> {
    let (slices, _) = slices(test);
    let length = slices.len().div_ceil(GLANCE).max(1);
    let mean = |part: &[Slice]| {
        let (first, last) = (part.first()?, part.last()?);
        let ios: u64 = part.iter().flat_map(|slice| slice.ios).sum();
        Some(ios as f64 * 1e9 / (last.to - first.from).max(1) as f64)
    };
    slices.chunks(length).filter_map(mean).collect()
}

/// The slices without those that the end of a phase cut so short that they have no rate: they are added to the one before.
fn without_cuts(slices: Vec<Slice>) -> Vec<Slice> {
    let mut lengths: Vec<u64> = slices.iter().map(|slice| slice.to - slice.from).collect();
    lengths.sort_unstable();
    let usual = lengths.get(lengths.len() / 2).copied().unwrap_or(0);
    let mut whole: Vec<Slice> = Vec::with_capacity(slices.len());
    for slice in slices {
        match whole.last_mut().filter(|last| last.to == slice.from && (slice.to - slice.from) * SHORT < usual)
        {
            Some(last) => last.absorb(&slice),
            None => whole.push(slice),
        }
    }
    whole
}

/// The jobs that ran at the same time.
fn phases(jobs: &[JobRecord]) -> Vec<Vec<&JobRecord>> {
    let mut numbers: Vec<u32> = jobs.iter().map(|job| job.phase).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers.into_iter().map(|number| jobs.iter().filter(|job| job.phase == number).collect()).collect()
}

fn of_phase(jobs: &[&JobRecord]) -> Vec<Slice> {
    let merged = merge_jobs(jobs);
    let ramp = merged.ramp.iter().flat_map(|ramp| &ramp.series);
    ramp.chain(&merged.measured.series).map(Slice::of_interval).collect()
}

/// The plots of a test; none where it has fewer than two intervals.
pub(super) fn plots(record: &RunRecord, test: &TestRecord) -> Vec<Plot> {
    if let Some(Observed::Monitor(device)) = &test.observed {
        return monitored::plots(device);
    }
    let (slices, by_op) = slices(test);
    let [first, .., last] = slices.as_slice() else { return Vec::new() };
    let time = || time_axis(first.from, last.to);
    let each = |of: &dyn Fn(&Slice, usize) -> f64| -> Vec<PlotSeries> {
        let used = (0..3).filter(|&op| slices.iter().any(|slice| slice.ios[op] > 0));
        let points = |op: usize| slices.iter().map(|slice| slice.point(of(slice, op))).collect();
        used.map(|op| PlotSeries { name: Op::DATA[op].name().to_owned(), points: points(op) }).collect()
    };
    // The rate of a ping is its interval.
    let has_rate = test.ping().is_none();
    let rates = |of: &dyn Fn(&Slice, usize) -> f64| if has_rate { each(of) } else { Vec::new() };
    let iops = rates(&|slice, op| slice.per_second(slice.ios[op]));
    let bandwidth = rates(&|slice, op| slice.per_second(slice.bytes[op]) / MIB);
    let marks = marks(test);
    let [iops_limits, bandwidth_limits] = limits(record, test);
    let marked = |plot: Plot, limits: Vec<PlotLimit>| Plot { marks: marks.clone(), limits, ..plot };
    let mut plots: Vec<Plot> = [
        plot("IOPS over time", PlotForm::Steps, time(), Axis::linear("IOPS", rate_text), iops)
            .map(|plot| marked(plot, iops_limits)),
        plot("Bandwidth over time", PlotForm::Steps, time(), Axis::linear("MiB/s", rate_text), bandwidth)
            .map(|plot| marked(plot, bandwidth_limits)),
        plot(
            format!("{} over time", capital(latency_name(test))),
            PlotForm::Steps,
            time(),
            Axis::logarithmic("latency", latency_text),
            latencies(&slices, by_op),
        )
        .map(|plot| marked(plot, Vec::new())),
        credits(test, time()),
        host(record, test),
        by_host(record, test),
    ]
    .into_iter()
    .flatten()
    .collect();
    plots.retain(|plot| plot.series.iter().any(|series| series.points.len() > 1));
    plots
}

/// Which latency the intervals of a test have.
pub(super) fn latency_name(test: &TestRecord) -> &'static str {
    if test.observed.is_some() { "latency" } else { "completion latency" }
}

fn latencies(slices: &[Slice], by_op: bool) -> Vec<PlotSeries> {
    let used: Vec<usize> =
        (0..3).filter(|&op| slices.iter().any(|slice| slice.latencies[op].samples() > 0)).collect();
    let mut series = Vec::new();
    for &op in &used {
        let before =
            if by_op && used.len() > 1 { format!("{} ", Op::DATA[op].name()) } else { String::new() };
        for (percent, name, least) in [(50.0, "p50", 1), (99.0, "p99", MIN_FOR_P99), (100.0, "maximum", 1)] {
            let point = |slice: &Slice| {
                let latencies = &slice.latencies[op];
                let ns = latencies.percentile(percent).filter(|_| latencies.samples() >= least)?;
                Some(slice.point(ns.max(1) as f64))
            };
            let points = slices.iter().filter_map(point).collect();
            series.push(PlotSeries { name: format!("{before}{name}"), points });
        }
    }
    series
}

/// Ramps, stalls, and times in which the control group held the program back.
fn marks(test: &TestRecord) -> Vec<PlotMark> {
    let mark = |from: u64, to: u64, reason| PlotMark { series: 0, from: from as f64, to: to as f64, reason };
    let of_job = |job: &JobRecord| {
        let ramp = job.ramp.as_ref().map(|ramp| mark(ramp.start_ns, ramp.end_ns, "ramp"));
        let stalls =
            job.stalls.iter().map(|stall| mark(stall.start_ns, stall.start_ns + stall.length_ns, "stalled"));
        ramp.into_iter().chain(stalls).collect::<Vec<_>>()
    };
    let mut marks: Vec<PlotMark> = test.jobs.iter().flat_map(of_job).collect();
    let throttled = test.host_load.iter().filter(|interval| interval.counters.throttled_ns > 0);
    marks.extend(throttled.map(|interval| mark(interval.start_ns, interval.end_ns, "CPU throttled")));
    match &test.observed {
        Some(Observed::Forecast(forecast)) => {
            let stalls = forecast.stalls.iter();
            marks.extend(
                stalls.map(|stall| mark(stall.start_ns, stall.start_ns + stall.length_ns, "stalled")),
            );
        }
        Some(Observed::Ping(ping)) => {
            let stalls = ping.counts.stalls.iter();
            marks.extend(
                stalls.map(|stall| mark(stall.begin_ns, stall.begin_ns + stall.length_ns, "stalled")),
            );
        }
        _ => {}
    }
    marks.sort_by(|one, other| one.from.total_cmp(&other.from).then(one.to.total_cmp(&other.to)));
    // Of all workers together.
    let mut joined: Vec<PlotMark> = Vec::with_capacity(marks.len());
    for mark in marks {
        let before = joined.iter_mut().rfind(|other| other.reason == mark.reason);
        match before.filter(|before| mark.from <= before.to) {
            Some(before) => before.to = before.to.max(mark.to),
            None => joined.push(mark),
        }
    }
    joined
}

/// The limits that were found of this test: IOPS, and MiB/s. Those of single hosts say nothing of the rates of all.
fn limits(record: &RunRecord, test: &TestRecord) -> [Vec<PlotLimit>; 2] {
    let mut limits = [Vec::new(), Vec::new()];
    if test.fleet.is_some() {
        return limits;
    }
    let of_test = record.findings.iter().filter(|finding| finding.tests.contains(&test.id));
    for finding in of_test {
        let value = |name: &str| finding.evidence.get(name).and_then(serde_json::Value::as_f64);
        let limit = |name: &str, y: f64| PlotLimit { name: name.to_owned(), series: 0, y };
        match finding.id {
            FindingId::IopsCap => limits[0].extend(value("iops").map(|iops| limit("IOPS limit", iops))),
            FindingId::BandwidthCap => {
                let rate = value("bytes_per_second").map(|rate| rate / MIB);
                limits[1].extend(rate.map(|rate| limit("bandwidth limit", rate)));
            }
            FindingId::BurstSuspected => {
                limits[0].extend(value("baseline_iops").map(|iops| limit("baseline", iops)));
            }
            _ => {}
        }
    }
    limits
}

/// What is left of the burst credits of a simulated volume.
fn credits(test: &TestRecord, time: Axis) -> Option<Plot> {
    let Some(Observed::Forecast(forecast)) = &test.observed else { return None };
    let course = |(place, credit): (usize, &CreditCourse)| {
        let capacity = credit.capacity.filter(|capacity| *capacity > 0)? as f64;
        let left = |slice: &ForecastSlice| {
            let left = (*slice.credits_left.get(place)?)?;
            Some(PlotPoint::at(slice.end_ns as f64, left as f64 / capacity * 100.0))
        };
        let points = forecast.slices.iter().filter_map(left).collect();
        Some(PlotSeries { name: credit.of.clone(), points })
    };
    let series = forecast.credits.iter().enumerate().filter_map(course).collect();
    let y = Axis::linear("credits left", percent_text).ending(0.0, 100.0);
    plot("Burst credits over time", PlotForm::Lines, time, y, series)
}

/// What the machine did meanwhile, in percent of its CPUs.
fn host(record: &RunRecord, test: &TestRecord) -> Option<Plot> {
    // The intervals at the edges of a phase are cut short.
    let mut lengths: Vec<u64> =
        test.host_load.iter().map(|interval| interval.end_ns.saturating_sub(interval.start_ns)).collect();
    lengths.sort_unstable();
    let usual = lengths.get(lengths.len() / 2).copied().unwrap_or(0);
    let is_whole = |interval: &&HostInterval| {
        let length = interval.end_ns.saturating_sub(interval.start_ns);
        length > 0 && length * SHORT >= usual
    };
    let whole: Vec<&HostInterval> = test.host_load.iter().filter(is_whole).collect();
    let [first, .., last] = whole.as_slice() else { return None };
    let series = |name: &str, of: fn(&HostCounters) -> u64| {
        let point = |interval: &HostInterval| {
            let cpus =
                record.header.hosts.get(interval.host as usize).map_or(1, |host| host.cpus_online.max(1));
            let elapsed = interval.end_ns.saturating_sub(interval.start_ns).max(1) as f64 * f64::from(cpus);
            let share = of(&interval.counters) as f64 / elapsed * 100.0;
            let (from, to) = (interval.start_ns as f64, interval.end_ns as f64);
            PlotPoint { from, to, y: share.min(100.0), interval: None }
        };
        let of_first = whole.iter().copied().filter(|interval| interval.host == first.host);
        let points: Vec<PlotPoint> = of_first.map(point).collect();
        let is_there = points.iter().any(|point| point.y > 0.0);
        PlotSeries { name: name.to_owned(), points: if is_there { points } else { Vec::new() } }
    };
    let all = vec![
        series("busy", |counters| counters.busy_ns),
        series("steal", |counters| counters.steal_ns),
        series("waiting for I/O", |counters| counters.iowait_ns),
    ];
    let named = all.iter().filter(|series| !series.points.is_empty()).count();
    let x = time_axis(first.start_ns, last.end_ns);
    let y = Axis::linear("share of the CPUs", percent_text).ending(0.0, 100.0);
    let mut plot = plot("CPUs of the host over time", PlotForm::Steps, x, y, all)?;
    if named == 1 {
        plot.title = "CPUs of the host over time: busy".to_owned();
    }
    Some(plot)
}

/// IOPS of each host, where there are several.
fn by_host(record: &RunRecord, test: &TestRecord) -> Option<Plot> {
    let hosts = &record.header.hosts;
    // The workers of a merged record are added up; its hosts have strips.
    if hosts.len() < 2 || record.header.fleet.is_some() {
        return None;
    }
    let of_host = |(place, host): (usize, &HostRecord)| {
        let jobs: Vec<JobRecord> =
            test.jobs.iter().filter(|job| job.host as usize == place).cloned().collect();
        let slices = phases(&jobs).iter().flat_map(|phase| of_phase(phase)).collect::<Vec<_>>();
        let points = slices.iter().filter(|slice| slice.to > slice.from);
        let points = points.map(|slice| slice.point(slice.per_second(slice.ios.iter().sum())));
        PlotSeries { name: host.hostname.clone(), points: points.collect() }
    };
    let series: Vec<PlotSeries> = hosts.iter().enumerate().map(of_host).collect();
    let points = || series.iter().flat_map(|series| &series.points);
    let (from, to) = (
        points().map(|point| point.from).reduce(f64::min)?,
        points().map(|point| point.to).reduce(f64::max)?,
    );
    let x = time_axis(from as u64, to as u64);
    plot("IOPS of each host over time", PlotForm::Steps, x, Axis::linear("IOPS", rate_text), series)
}

#[cfg(test)]
mod tests {
    use fathom_record::{Finding, FleetTest, PhaseOutcome, RunHeader, Stall};

    use super::super::heat;
    use super::*;
    use crate::view::Cell;

    const HALF_SECOND: u64 = 500_000_000;

    /// A worker with so many reads of 1 ms in each half second; the last interval is cut after 1 ms.
    fn job(host: u32, reads: &[u64]) -> JobRecord {
        let interval = |(place, ios): (usize, &u64)| {
            let start_ns = place as u64 * HALF_SECOND;
            let length = if place + 1 == reads.len() { 1_000_000 } else { HALF_SECOND };
            let read = IntervalOp {
                ios: *ios,
                bytes: ios * 4096,
                clat_sum_ns: ios * 1_000_000,
                clat_bins: vec![(fathom_record::latency_bin(1_000_000) as u16, *ios)],
            };
            Interval { tick: place as u32, start_ns, end_ns: start_ns + length, read, ..Interval::default() }
        };
        let series: Vec<Interval> = reads.iter().enumerate().map(interval).collect();
        let measured = PhaseOutcome {
            end_ns: series.last().map_or(0, |last| last.end_ns),
            series,
            ..PhaseOutcome::default()
        };
        JobRecord { host, measured, ..JobRecord::default() }
    }

    fn test(jobs: Vec<JobRecord>) -> TestRecord {
        TestRecord { id: "t".to_owned(), jobs, ..TestRecord::default() }
    }

    fn titled<'a>(plots: &'a [Plot], title: &str) -> &'a Plot {
        plots.iter().find(|plot| plot.title == title).unwrap_or_else(|| panic!("no plot {title}"))
    }

    #[test]
    fn limits_of_single_hosts_are_not_drawn_with_the_rates_of_all() {
        let cap = Finding { id: FindingId::IopsCap, tests: vec!["t".to_owned()], ..Finding::default() };
        let run = RunRecord { findings: vec![cap.with("iops", 700.0)], ..RunRecord::default() };
        let mut test = test(vec![job(0, &[350, 350, 350])]);
        let drawn = |test: &TestRecord| titled(&plots(&run, test), "IOPS over time").limits.len();
        assert_eq!(drawn(&test), 1);
        test.fleet = Some(FleetTest::default());
        assert_eq!(drawn(&test), 0);
    }

    #[test]
    fn workers_add_up_and_a_cut_interval_has_no_rate_of_its_own() {
        let test = test(vec![job(0, &[500, 400, 1]), job(0, &[100, 100, 0])]);
        let plots = plots(&RunRecord::default(), &test);
        let iops = &titled(&plots, "IOPS over time").series[0].points;
        assert_eq!(iops.len(), 2, "{iops:?}");
        assert!((iops[0].y - 1200.0).abs() < 1e-6);
        let last_ns = (HALF_SECOND + 1_000_000) as f64;
        assert!((iops[1].y - 501.0 * 1e9 / last_ns).abs() < 1e-6, "{iops:?}");
        let map = heat::map(&test).expect("it has two columns");
        let counts = map.rows.iter().flat_map(|(_, cells)| cells).flatten().filter_map(Cell::number);
        assert_eq!(counts.sum::<f64>(), 1101.0);
        assert_eq!(map.columns, ["0 s", "0.5 s"]);
        // The marks of time lie where that time is, not at the edges of columns.
        let texts: Vec<&str> = map.column_ticks.iter().map(|tick| tick.text.as_str()).collect();
        assert_eq!(texts, ["0 s", "0.5 s", "1 s"]);
        assert_eq!((map.column_ticks[0].place, map.column_ticks[1].place), (0.0, 1.0));
        assert!((1.9..2.0).contains(&map.column_ticks[2].place));
    }

    #[test]
    fn each_host_has_a_line() {
        let mut record = RunRecord { header: RunHeader::default(), ..RunRecord::default() };
        record.header.hosts =
            ["a", "b"].map(|name| HostRecord { hostname: name.to_owned(), ..HostRecord::default() }).into();
        let test = test(vec![job(0, &[500, 400, 1]), job(1, &[50, 40, 0])]);
        let plots = plots(&record, &test);
        let series = &titled(&plots, "IOPS of each host over time").series;
        let first: Vec<(&str, f64)> =
            series.iter().map(|line| (line.name.as_str(), line.points[0].y)).collect();
        assert_eq!(first, [("a", 1000.0), ("b", 100.0)]);
    }

    #[test]
    fn stalls_of_workers_at_the_same_time_are_one_mark() {
        let stall = |start_ns: u64| Stall { start_ns, length_ns: 1000, ..Stall::default() };
        let stalled = |stalls: Vec<Stall>| JobRecord { stalls, ..job(0, &[1, 1, 1]) };
        let test = test(vec![stalled(vec![stall(100), stall(5000)]), stalled(vec![stall(600)])]);
        let spans: Vec<(f64, f64)> = marks(&test).iter().map(|mark| (mark.from, mark.to)).collect();
        assert_eq!(spans, [(100.0, 1600.0), (5000.0, 6000.0)]);
    }
}
