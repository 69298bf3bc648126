//! What a surface tells: its points and their spread, access time, burst rate, processor use, the file benchmark and the
//! scan. Made from the stored tests alone.

pub mod file;
pub mod findings;
pub mod plan;
pub mod point;
pub mod probes;
pub mod scan;
mod touch;

use fathom_record::{JobRecord, Latency, LatencySummary, RunRecord, TestRecord, TestStatus};
use fathom_stats::sample::{mean, median};
use serde::Serialize;

use crate::plateau::SettledRate;
use crate::steady::coefficient_of_variation;
use crate::surface::file::FileRow;
use crate::surface::point::{ACCESS, State, SurfacePoint, TRANSFER, job, longest_stall, moved};
use crate::surface::probes::{batches, is_held_up};
use crate::surface::scan::Scan;
pub use crate::surface::touch::SurfaceFirstTouch;

/// A surface as a reader wants it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Surface {
    /// In the order they were measured.
    pub points: Vec<SurfacePoint>,
    /// The rates of the points that have one, bytes per second.
    pub transfer_rate: Option<RateSpread>,
    /// The rate with many requests in flight, where it was measured.
    pub saturated_rate: Option<SaturatedRate>,
    /// The burst rate, where it was measured.
    pub burst_rate: Option<SurfaceRate>,
    /// Single requests all over the area, without those that a limit held up unless all were.
    pub access_lat_ns: LatencySummary,
    /// A limit held the single requests up: the access time includes waiting for it.
    pub is_access_limited: bool,
    /// What first accesses cost, where that was seen.
    pub first_touch: Option<SurfaceFirstTouch>,
    /// Where each went and how long it took, of the tests that kept all of theirs.
    pub probes: Vec<SingleAccess>,
    /// CPU time of the transfers over their time: 1 is one CPU.
    pub cpu_fraction: Option<f64>,
    /// Share of all CPUs of the machine that was busy meanwhile, by any process.
    pub machine_busy_fraction: Option<f64>,
    /// The file benchmark.
    pub file_benchmark: Vec<FileRow>,
    /// The scan.
    pub scan: Option<Scan>,
}

/// The spread of the rates of points, bytes per second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RateSpread {
    /// Points.
    pub points: usize,
    /// All bytes over all time: the mean rate of a reader of all points.
    pub weighted_mean: f64,
    /// Least.
    pub min: f64,
    /// Greatest.
    pub max: f64,
    /// Arithmetic mean over the points, however long each took.
    pub mean: f64,
    /// Median.
    pub median: f64,
    /// 5 % of the points have less.
    pub p5: f64,
    /// Standard deviation over the mean.
    pub cv: f64,
}

/// The rate with many requests in flight.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SaturatedRate {
    /// Mean over the places that have a rate, bytes per second; `None` where none has.
    pub mean: Option<f64>,
    /// Requests in flight; `None` where no test began.
    pub iodepth: Option<u32>,
    /// Bytes of each.
    pub block_size_bytes: Option<u64>,
    /// Place by place.
    pub points: Vec<SurfaceRate>,
}

impl SaturatedRate {
    fn add(&mut self, test: &TestRecord) {
        let job = test.jobs.first();
        self.iodepth = job.map(JobRecord::iodepth);
        self.block_size_bytes = job.map(JobRecord::largest_blocks).map(|sizes| sizes.read.max(sizes.write));
        self.points.push(rate(test, settled_rate));
        let rates: Vec<f64> = self.points.iter().filter_map(|point| point.bytes_per_second).collect();
        self.mean = (!rates.is_empty()).then(|| mean(&rates));
    }
}

/// One rate, or why there is none.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SurfaceRate {
    /// Where it begins, bytes.
    pub offset_bytes: u64,
    /// Bytes per second; `None` where nothing completed or a stall is part of it.
    pub bytes_per_second: Option<f64>,
    /// Nothing completed for so many ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stalled_ns: Option<u64>,
    /// Why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A single request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SingleAccess {
    /// Where it went, bytes.
    pub offset_bytes: u64,
    /// How long it took, ns.
    pub lat_ns: u64,
    /// From the beginning of the surface to the beginning of its test, ns.
    pub elapsed_ns: u64,
}

/// The tests beside the points.
pub const SATURATED: &str = "saturated-";
/// Those that read again what such a test or the probes of a point read.
pub const AGAIN_SATURATED: &str = "again-saturated-";
/// See [`AGAIN_SATURATED`].
pub const AGAIN_ACCESS: &str = "again-access-";
/// The burst rate's test.
pub const BURST: &str = "burst";
/// All zero, this many times as fast as what is not, and as fast as hardly any of it: nothing was read from a medium.
const TOO_FAST: f64 = 1.5;

/// Assesses the tests of `record`.
pub fn assess(record: &RunRecord) -> Surface {
    let began = record.tests.first().map_or(0, |test| test.started_unix_ms);
    let mut elapsed_ns = 0;
    let mut surface = Surface::default();
    for test in &record.tests {
        if test.started_unix_ms > 0 {
            elapsed_ns = test.started_unix_ms.saturating_sub(began).saturating_mul(1_000_000);
        }
        surface.points.extend(SurfacePoint::of(test, elapsed_ns));
        surface.file_benchmark.extend(FileRow::of(test));
        if let Some(probed) = job(test, ACCESS).filter(|_| !test.id.starts_with(AGAIN_ACCESS)) {
            // A record keeps the slowest requests; where those are not all, they would tell of the others' places.
            let samples = moved(probed).lat.samples();
            let kept = probed.slowest.iter().filter(|_| probed.slowest.len() as u64 == samples);
            surface.probes.extend(kept.map(|slow| SingleAccess {
                offset_bytes: slow.offset,
                lat_ns: slow.lat_ns,
                elapsed_ns,
            }));
        }
        if test.id.starts_with(SATURATED) {
            surface.saturated_rate.get_or_insert_default().add(test);
        } else if test.id == BURST {
            surface.burst_rate = Some(rate(test, best_rate));
        }
        elapsed_ns = elapsed_ns.saturating_add(test.elapsed_ns);
    }
    name_the_unwritten(&mut surface.points);
    surface.transfer_rate = spread(&surface.points);
    (surface.access_lat_ns, surface.is_access_limited) = access_time(&record.tests);
    surface.first_touch = SurfaceFirstTouch::of(&record.tests);
    surface.cpu_fraction = cpu_fraction(record);
    surface.machine_busy_fraction = machine_busy_fraction(record);
    surface.scan = Scan::of(record);
    surface
}

impl Surface {
    /// Points in a state, by its name.
    pub fn count(&self, state: &str) -> usize {
        self.points.iter().filter(|point| point.state.name() == state).count()
    }

    /// True where a point within `length` bytes from `offset` on was found to be answered by no medium.
    pub fn is_answered_elsewhere(&self, offset: u64, length: u64) -> bool {
        let elsewhere =
            self.points.iter().filter(|point| matches!(point.state, State::Unwritten | State::Cached));
        elsewhere
            .into_iter()
            .any(|point| point.offset_bytes < offset + length && point.offset_bytes + point.bytes > offset)
    }

    /// True where everything that was looked at is zero, and nothing else to hold its rate against.
    pub fn is_all_zero(&self) -> bool {
        let measured = || self.points.iter().filter(|point| point.state == State::Measured);
        measured().next().is_some() && measured().all(|point| point.is_zero)
    }
}

/// The times of single requests, and whether a limit held all of them up.
fn access_time(tests: &[TestRecord]) -> (LatencySummary, bool) {
    let is_limited = batches(tests).next().is_some() && batches(tests).all(is_held_up);
    let mut access = Latency::default();
    let counted = batches(tests).filter(|probed| is_limited || !is_held_up(probed));
    counted.for_each(|probed| access.merge(&moved(probed).lat));
    (access.summary(), is_limited)
}

/// Zeros that come faster than data do come from no medium. Where there are only zeros, it is unknown.
fn name_the_unwritten(points: &mut [SurfacePoint]) {
    let mut data: Vec<f64> =
        points.iter().filter(|point| !point.is_zero).filter_map(SurfacePoint::rate).collect();
    data.sort_by(f64::total_cmp);
    // Where data come at any rate, zeros that are quick are nothing special.
    let Some(quick) = data.get(data.len().saturating_sub(1) * 19 / 20).copied() else { return };
    let Some(usual) = median(&data) else { return };
    for point in points.iter_mut().filter(|point| point.is_zero) {
        if point.rate().is_some_and(|rate| rate >= quick.max(TOO_FAST * usual)) {
            point.state = State::Unwritten;
        }
    }
}

fn spread(points: &[SurfacePoint]) -> Option<RateSpread> {
    let measured: Vec<(&SurfacePoint, f64)> =
        points.iter().filter_map(|point| Some((point, point.rate()?))).collect();
    let mut rates: Vec<f64> = measured.iter().map(|(_, rate)| *rate).collect();
    rates.sort_by(f64::total_cmp);
    let (min, max) = (*rates.first()?, *rates.last()?);
    let count = rates.len();
    let (bytes, ns) = measured.iter().fold((0.0, 0.0), |(bytes, ns), (point, _)| {
        (bytes + point.bytes as f64, ns + point.measured_ns as f64)
    });
    Some(RateSpread {
        points: count,
        min,
        max,
        mean: mean(&rates),
        p5: rates[(count - 1) / 20],
        cv: coefficient_of_variation(&rates),
        weighted_mean: bytes * 1e9 / ns,
        median: median(&rates)?,
    })
}

fn rate(test: &TestRecord, of: fn(&JobRecord) -> Option<f64>) -> SurfaceRate {
    let job = test.jobs.first();
    let stalled_ns = test.jobs.iter().filter_map(longest_stall).max();
    let bytes_per_second = job.and_then(of).filter(|_| stalled_ns.is_none());
    let offset = job.and_then(|job| job.plan.io.offset.bytes()).unwrap_or(0);
    let why = (test.status != TestStatus::Complete).then(|| test.reason.clone()).flatten();
    SurfaceRate { offset_bytes: offset, bytes_per_second, stalled_ns, reason: why }
}

fn mean_rate(job: &JobRecord) -> Option<f64> {
    let (bytes, ns) = (moved(job).bytes, job.measured.elapsed_ns());
    (bytes > 0 && ns > 0).then(|| bytes as f64 * 1e9 / ns as f64)
}

/// Without what a limiter saved up before.
fn settled_rate(job: &JobRecord) -> Option<f64> {
    SettledRate::of(&[job]).map(|settled| settled.bytes_per_second()).or_else(|| mean_rate(job))
}

/// Intervals shorter than this are ends, not samples, ns.
const WHOLE_INTERVAL_NS: u64 = 400_000_000;

/// The best half second, or the whole where there is none.
fn best_rate(job: &JobRecord) -> Option<f64> {
    let rates = job.measured.series.iter().filter_map(|interval| {
        // A damaged record may have it end before it begins.
        let length_ns = interval.end_ns.checked_sub(interval.start_ns);
        let length_ns = length_ns.filter(|length| *length >= WHOLE_INTERVAL_NS)?;
        let bytes = interval.read.bytes + interval.write.bytes;
        Some(bytes as f64 * 1e9 / length_ns as f64)
    });
    rates.chain(mean_rate(job)).max_by(f64::total_cmp)
}

fn cpu_fraction(record: &RunRecord) -> Option<f64> {
    let jobs = || {
        record.tests.iter().filter_map(|test| job(test, TRANSFER)).filter(|job| longest_stall(job).is_none())
    };
    let used = |job: &JobRecord| {
        let (own, kernel) = (&job.measured.cpu, &job.measured.kernel_threads);
        own.user_ns + own.system_ns + kernel.workers_ns + kernel.submitter_ns
    };
    let (cpu, time): (u64, u64) =
        jobs().fold((0, 0), |(cpu, time), job| (cpu + used(job), time + job.measured.elapsed_ns()));
    // Virtual time has no cost to report.
    (time > 0 && cpu > 0).then(|| cpu as f64 / time as f64)
}

fn machine_busy_fraction(record: &RunRecord) -> Option<f64> {
    let of_points = record.tests.iter().filter(|test| job(test, TRANSFER).is_some());
    let (busy, all) = of_points.flat_map(|test| &test.host_load).fold((0, 0), |(busy, all), interval| {
        (busy + interval.counters.busy_ns, all + interval.counters.cpu_ns)
    });
    (all > 0).then(|| busy as f64 / all as f64)
}

#[cfg(test)]
mod tests {
    use fathom_record::{ContentRecord, Interval, IntervalOp, Stall};

    use super::*;
    use crate::surface::point::tests::point;

    const MIB: f64 = 1_048_576.0;

    fn record(tests: Vec<TestRecord>) -> RunRecord {
        RunRecord { tests, ..RunRecord::default() }
    }

    fn zeros(mut test: TestRecord) -> TestRecord {
        test.content = Some(ContentRecord { looked_bytes: 4096, zero_bytes: 4096, is_hole: false });
        test
    }

    #[test]
    fn the_spread_is_over_points_that_are_the_mediums() {
        let mut stalled = point(1 << 30, 1);
        stalled.jobs[0].stalls = vec![Stall { length_ns: 20_000_000_000, ..Stall::default() }];
        let mut tests: Vec<TestRecord> = [100, 80, 120, 100].map(|mib| point(mib << 20, mib)).to_vec();
        tests.extend([stalled, zeros(point(2 << 30, 900)), zeros(point(3 << 30, 100))]);
        let surface = assess(&record(tests));
        let spread = surface.transfer_rate.unwrap();
        let rates = [spread.min, spread.max, spread.mean, spread.median].map(|rate| rate / MIB);
        assert_eq!((spread.points, rates), (5, [80.0, 120.0, 100.0, 100.0]));
        assert_eq!(
            (surface.count("stalled"), surface.count("unwritten"), surface.is_all_zero()),
            (1, 1, false)
        );
        assert!((surface.cpu_fraction.unwrap() - 0.01).abs() < 1e-9);
        let elsewhere = [(0, 1 << 30), (2 << 30, 1), ((2 << 30) + (900 << 20), 1), (1 << 30, 1 << 30)];
        let elsewhere = elsewhere.map(|(offset, length)| surface.is_answered_elsewhere(offset, length));
        assert_eq!(elsewhere, [false, true, false, false]);
        assert_eq!((surface.access_lat_ns.samples, surface.access_lat_ns.mean), (35, Some(200_000.0)));
    }

    #[test]
    fn zeros_among_data_of_any_rate_are_nothing_special() {
        let mut tests: Vec<TestRecord> = (1..21u64).map(|mib| point(mib << 30, 50 * mib)).collect();
        tests.push(zeros(point(0, 900)));
        assert_eq!(assess(&record(tests.clone())).count("unwritten"), 0);
        tests.push(zeros(point(1 << 40, 4_000)));
        assert_eq!(assess(&record(tests)).count("unwritten"), 1);
    }

    #[test]
    fn zeros_alone_are_measured_and_said_to_be_zeros() {
        let surface = assess(&record(vec![zeros(point(0, 900)), zeros(point(1 << 30, 100))]));
        assert!(surface.is_all_zero() && surface.transfer_rate.is_some_and(|spread| spread.points == 2));
        let nothing = assess(&RunRecord::default());
        assert_eq!(
            (nothing.transfer_rate, nothing.access_lat_ns.samples, nothing.is_all_zero()),
            (None, 0, false)
        );
    }

    #[test]
    fn times_of_a_damaged_record_do_not_overflow() {
        let late = TestRecord { started_unix_ms: u64::MAX, elapsed_ns: u64::MAX, ..point(0, 100) };
        let early = TestRecord { started_unix_ms: 1, elapsed_ns: u64::MAX, ..point(1 << 30, 100) };
        assert_eq!(assess(&record(vec![early, late])).points.len(), 2);
    }

    #[test]
    fn the_burst_is_its_best_half_second() {
        let mut test = TestRecord { id: BURST.to_owned(), ..point(0, 100) };
        test.jobs.truncate(1);
        let interval = |start_ns, end_ns, bytes| Interval {
            start_ns,
            end_ns,
            read: IntervalOp { bytes, ..IntervalOp::default() },
            ..Interval::default()
        };
        test.jobs[0].measured.series = vec![
            interval(0, 500_000_000, 40 << 20),
            interval(500_000_000, 1_000_000_000, 60 << 20),
            interval(1_000_000_000, 1_000_001_000, 1 << 20),
            // As a damaged record may say it.
            interval(1_500_000_000, 1_000_000_000, 900 << 20),
        ];
        let burst =
            |test: &TestRecord| assess(&record(vec![test.clone()])).burst_rate.unwrap().bytes_per_second;
        assert_eq!(burst(&test), Some(120.0 * MIB));
        test.jobs[0].measured.series.clear();
        assert_eq!(burst(&test), Some(100.0 * MIB));
    }

    #[test]
    fn times_count_from_the_first_test() {
        let mut tests = vec![point(0, 100), point(1 << 30, 100)];
        let elapsed = |tests: &[TestRecord]| assess(&record(tests.to_vec())).points[1].elapsed_ns;
        assert_eq!(elapsed(&tests), 1_000_000_000);
        (tests[0].started_unix_ms, tests[1].started_unix_ms) = (5_000, 7_500);
        assert_eq!(elapsed(&tests), 2_500_000_000);
    }
}
