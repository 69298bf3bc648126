//! One point of a sweep: where it lies, and what was measured there. Read back from a stored test, so that a sweep can
//! be assessed again, or go on, from the history alone.

use fathom_record::{LatencySummary, TestRecord, TestStatus, TestSummary};
use serde::{Deserialize, Serialize};

use crate::criterion::RateGoal;
use crate::document;
use crate::pattern::{AccessPattern, block_name};
use crate::plateau::SettledRate;
use crate::sweep::offered::OfferedRate;

/// Where a point lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SweepSpot {
    /// The pattern.
    pub rw: AccessPattern,
    /// Bytes per request.
    pub block_size_bytes: u64,
    /// Requests in flight per job.
    pub iodepth: u32,
    /// Jobs.
    pub numjobs: u32,
}

impl SweepSpot {
    /// Requests in flight over all jobs.
    pub fn in_flight(&self) -> u32 {
        self.iodepth.saturating_mul(self.numjobs)
    }

    /// `randread-4k-d8`, `randread-4k-d4-x2`.
    pub fn id(&self) -> String {
        let jobs = if self.numjobs > 1 { format!("-x{}", self.numjobs) } else { String::new() };
        format!("{}-{}-d{}{jobs}", self.rw.name(), block_name(self.block_size_bytes), self.iodepth)
    }

    /// `random read 4k d8`.
    pub fn title(&self) -> String {
        let jobs = if self.numjobs > 1 { format!(" x{}", self.numjobs) } else { String::new() };
        format!("{} {} d{}{jobs}", self.rw.title(), block_name(self.block_size_bytes), self.iodepth)
    }
}

/// What was measured at a point.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SweepPoint {
    /// Where.
    #[serde(flatten)]
    pub spot: SweepSpot,
    /// How it ended.
    pub status: TestStatus,
    /// Why it failed or was interrupted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Requests completed.
    pub ios: u64,
    /// Requests per second once the rate had settled; 0 where none completed, null in documents.
    #[serde(serialize_with = "document::rate")]
    pub iops: f64,
    /// Bytes per second once the rate had settled; 0 where none completed, null in documents.
    #[serde(serialize_with = "document::rate")]
    pub bytes_per_second: f64,
    /// Start to completed.
    pub lat_ns: LatencySummary,
    /// Requests in flight on average, by Little's law, of several hosts those of each; `None` where nothing completed.
    pub queue_depth_mean: Option<f64>,
    /// CPU time per request, the kernel's own threads included, ns.
    pub cpu_per_request_ns: Option<f64>,
    /// Share of one CPU that a job used, 0 to 1.
    pub cpu_per_job: f64,
    /// Longest time without a completion, ns, where it is long enough to be a stall.
    pub stalled_ns: Option<u64>,
    /// Time that the rate rests on, ns.
    pub settled_ns: u64,
    /// From the start to the end of the last job, ns.
    pub elapsed_ns: u64,
    /// The fio command that measures the same.
    pub fio: String,
}

/// Nothing completing for this long is a stall.
const STALL_NS: u64 = 2_000_000_000;
/// By how much the depth held may differ from the one asked for.
const LITTLE: f64 = 0.05;
/// Time between a completion and the next request that is the program's own, ns. Requests that complete together are
/// dealt with one after the other, so there is this for each that a job has in flight, and once more.
const OWN_GAP_NS: f64 = 1_000.0;
/// A thread that works this share of its time is what limits the rate.
const BUSY: f64 = 0.9;

impl SweepPoint {
    /// The point that `test` measured; `None` where it is none of a sweep's, or offered a rate.
    pub fn of(test: &TestRecord) -> Option<SweepPoint> {
        if OfferedRate::of_id(&test.id).is_some() {
            return None;
        }
        let spot = spot_of(test)?;
        let summary = TestSummary::new(test);
        let total = summary.total.clone().unwrap_or_default();
        let cpu_ns =
            summary.cpu.as_ref().map_or(0, |cpu| cpu.user_ns + cpu.system_ns + cpu.kernel_submitters_ns);
        let settled = SettledRate::of(&test.jobs.iter().collect::<Vec<_>>()).filter(|_| total.ios > 0);
        let iops = settled.map_or(total.iops, |settled| settled.iops());
        let hosts = hosts_of(test);
        let time = summary.measured_ns as f64 * f64::from(spot.numjobs) * hosts;
        Some(SweepPoint {
            spot,
            status: test.status,
            reason: test.reason.clone(),
            ios: total.ios,
            iops,
            bytes_per_second: settled.map_or(total.bytes_per_second, |settled| settled.bytes_per_second()),
            queue_depth_mean: queue_depth_mean(total.iops / hosts, &total.lat_ns),
            lat_ns: total.lat_ns,
            cpu_per_request_ns: summary.cpu.as_ref().and_then(|cpu| cpu.per_request_ns),
            cpu_per_job: if time > 0.0 { cpu_ns as f64 / time } else { 0.0 },
            stalled_ns: stalled_ns(test),
            settled_ns: settled.map_or(summary.measured_ns, |settled| settled.elapsed_ns),
            elapsed_ns: test.elapsed_ns,
            fio: test.fio.clone(),
        })
    }

    /// True where the depth asked for was held: a point that held another belongs elsewhere on the curve. The last
    /// requests, while no new ones follow, are allowed for.
    pub fn holds_its_depth(&self) -> bool {
        let (Some(held), Some(mean)) = (self.queue_depth_mean, self.lat_ns.mean) else { return false };
        let asked = f64::from(self.spot.in_flight());
        let ending = 0.5 * asked / self.ios as f64;
        let own_gap = OWN_GAP_NS * (f64::from(self.spot.iodepth) + 1.0);
        let own_gap = own_gap / (mean + own_gap);
        (held / asked - 1.0).abs() <= LITTLE + ending + own_gap
    }

    /// True where a rule may rest on it. Jobs that are busy all the time hand requests in late: then the rate is what
    /// they can do, which is told as such.
    pub fn is_sound(&self) -> bool {
        let has_its_depth = self.holds_its_depth() || self.is_client_bound();
        self.status == TestStatus::Complete && self.stalled_ns.is_none() && self.ios > 0 && has_its_depth
    }

    /// True where it reaches the rate of `goal`.
    pub fn reaches(&self, goal: &RateGoal) -> bool {
        self.is_sound() && goal.is_reached_by(self.iops, self.bytes_per_second)
    }

    /// Share of the rate that one more or one less round of requests at its end would make.
    pub fn resolution(&self) -> f64 {
        let settled_ios = self.iops * self.settled_ns as f64 / 1e9;
        if settled_ios < 1.0 { 1.0 } else { f64::from(self.spot.in_flight()) / settled_ios }
    }

    /// True where the jobs themselves, not the target, may be what limits the rate.
    pub fn is_client_bound(&self) -> bool {
        self.cpu_per_job >= BUSY
    }
}

/// Requests in flight on average; `None` where nothing completed.
fn queue_depth_mean(iops: f64, lat_ns: &LatencySummary) -> Option<f64> {
    lat_ns.mean.filter(|_| iops > 0.0).map(|mean| iops * mean / 1e9)
}

fn spot_of(test: &TestRecord) -> Option<SweepSpot> {
    // A point that could not be started has no jobs; its name is all there is.
    let Some(job) = test.jobs.first() else { return parse_id(&test.id) };
    let rw = AccessPattern::named(job.rw())?;
    let block = if rw.writes() { job.largest_blocks().write } else { job.largest_blocks().read };
    // Of several hosts there is one entry for all workers, and the spot is that of each host.
    let of_one = || u32::try_from(test.jobs.len()).ok();
    let numjobs = if test.fleet.is_some() { job.plan.numjobs } else { of_one()? };
    Some(SweepSpot { rw, block_size_bytes: block, iodepth: job.iodepth(), numjobs })
}

/// Hosts that measured it: 1 without a merged record.
fn hosts_of(test: &TestRecord) -> f64 {
    test.fleet.as_ref().map_or(1, |fleet| fleet.measured().count().max(1)) as f64
}

/// The spot that [`SweepSpot::id`] named.
fn parse_id(id: &str) -> Option<SweepSpot> {
    let mut words = id.split('-');
    let rw = AccessPattern::named(words.next()?)?;
    let block = fathom_model::units::parse_bytes(words.next()?).ok()?;
    let depth = words.next()?.strip_prefix('d')?.parse().ok()?;
    let jobs = match words.next() {
        Some(word) => word.strip_prefix('x')?.parse().ok()?,
        None => 1,
    };
    Some(SweepSpot { rw, block_size_bytes: block, iodepth: depth, numjobs: jobs })
}

/// The longest stretch of intervals in which no job completed anything; of a single job as long as it was seen to last.
fn stalled_ns(test: &TestRecord) -> Option<u64> {
    let mut busy: Vec<(u64, u64)> = Vec::new();
    let (mut from, mut to) = (u64::MAX, 0);
    for interval in test.jobs.iter().flat_map(|job| &job.measured.series) {
        (from, to) = (from.min(interval.start_ns), to.max(interval.end_ns));
        if interval.ops().iter().any(|op| op.ios > 0) {
            busy.push((interval.start_ns, interval.end_ns));
        }
    }
    busy.sort_unstable();
    let mut longest = 0;
    let mut last = from;
    for (start, end) in busy {
        longest = longest.max(start.saturating_sub(last));
        last = last.max(end);
    }
    longest = longest.max(to.saturating_sub(last));
    // A device so slow that each request takes this long stands still by nature, not by accident.
    let typical = TestSummary::new(test).total.and_then(|total| total.lat_ns.p50).unwrap_or(0);
    let is_stall = longest >= STALL_NS && longest > typical.saturating_mul(2);
    let seen = match &test.jobs[..] {
        [job] => job.stalls.iter().map(|stall| stall.length_ns).max(),
        _ => None,
    };
    is_stall.then_some(longest.max(seen.unwrap_or(0)))
}

#[cfg(test)]
pub(crate) mod model {
    //! A device that obeys the model the rules are made for: latency at rest, an IOPS cap, a bandwidth cap.

    use super::*;

    pub(crate) struct Model {
        pub rest_ns: f64,
        pub iops: f64,
        pub bytes_per_second: f64,
        /// Most bytes that count as one I/O.
        pub unit: Option<u64>,
    }

    impl Model {
        /// 30 µs at rest.
        pub(crate) fn limited(iops: f64, bytes_per_second: f64) -> Model {
            Model { rest_ns: 30_000.0, iops, bytes_per_second, unit: None }
        }

        pub(crate) fn unlimited(rest_ns: f64) -> Model {
            Model { rest_ns, ..Model::limited(1e9, 1e12) }
        }

        /// The point at `spot`, measured for `runtime_ns`, with a deterministic error of up to `noise`.
        pub(crate) fn measure(&self, spot: SweepSpot, runtime_ns: u64, noise: f64) -> SweepPoint {
            let in_flight = f64::from(spot.in_flight());
            let exact = (in_flight * 1e9 / self.rest_ns)
                .min(self.iops / self.unit.map_or(1, |unit| spot.block_size_bytes.div_ceil(unit)) as f64)
                .min(self.bytes_per_second / spot.block_size_bytes as f64);
            let wobble = ((spot.block_size_bytes / 512 * 7919 + u64::from(spot.iodepth) * 104_729) % 1000)
                as f64
                / 500.0
                - 1.0;
            let iops = exact * (1.0 + noise * wobble);
            let lat_ns = in_flight * 1e9 / iops;
            let ios = (iops * runtime_ns as f64 / 1e9).max(1.0) as u64;
            let tail = |p: f64| (ios as f64 * (1.0 - p) >= 10.0).then_some((lat_ns * 1.2) as u64);
            let lat = LatencySummary {
                samples: ios,
                mean: Some(lat_ns),
                p50: tail(0.5),
                p99: tail(0.99),
                p999: tail(0.999),
                ..LatencySummary::default()
            };
            SweepPoint {
                spot,
                status: TestStatus::Complete,
                reason: None,
                ios,
                iops,
                bytes_per_second: iops * spot.block_size_bytes as f64,
                queue_depth_mean: queue_depth_mean(iops, &lat),
                lat_ns: lat,
                cpu_per_request_ns: Some(5_000.0 + 500.0 * f64::from(spot.numjobs)),
                cpu_per_job: 0.1,
                stalled_ns: None,
                settled_ns: runtime_ns,
                elapsed_ns: runtime_ns + 300_000_000,
                fio: String::new(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fathom_record::{Interval, IntervalOp, JobRecord, PhaseOutcome};

    #[test]
    fn names_lead_back_to_their_spots() {
        for (id, block, depth, jobs) in
            [("randread-4k-d1", 4096, 1, 1), ("write-1m-d64", 1 << 20, 64, 1), ("read-512-d4-x2", 512, 4, 2)]
        {
            let spot = parse_id(id).unwrap();
            assert_eq!(
                (spot.block_size_bytes, spot.iodepth, spot.numjobs, spot.id().as_str()),
                (block, depth, jobs, id)
            );
        }
        for id in ["", "rand-read", "randread-4k", "randread-4k-8", "randread-4k-d1-2"] {
            assert_eq!(parse_id(id), None, "{id}");
        }
    }

    #[test]
    fn stalls_are_seen_and_slowness_is_none() {
        let check = |completed: &[u64], expected: Option<u64>| {
            let series = completed.iter().enumerate().map(|(index, &ios)| Interval {
                start_ns: index as u64 * 500_000_000,
                end_ns: (index as u64 + 1) * 500_000_000,
                read: IntervalOp { ios, ..IntervalOp::default() },
                ..Interval::default()
            });
            let measured = PhaseOutcome { series: series.collect(), ..PhaseOutcome::default() };
            let job = JobRecord { measured, ..JobRecord::default() };
            let test = TestRecord { jobs: vec![job], ..TestRecord::default() };
            assert_eq!(stalled_ns(&test), expected, "{completed:?}");
        };
        check(&[5, 5, 0, 0, 0, 5], None);
        check(&[5, 0, 0, 0, 0, 5], Some(2_000_000_000));
        check(&[0, 0, 0, 0, 0], Some(2_500_000_000));
        check(&[5, 5, 0, 0, 0, 0, 0], Some(2_500_000_000));
        check(&[], None);
    }

    #[test]
    fn the_depth_has_to_be_held() {
        let model = model::Model::unlimited(1e6);
        let spot = SweepSpot { rw: AccessPattern::RandRead, block_size_bytes: 4096, iodepth: 8, numjobs: 1 };
        let mut point = model.measure(spot, 1_000_000_000, 0.0);
        assert!(point.is_sound());
        point.queue_depth_mean = Some(0.9 * 8.0);
        assert!(!point.is_sound());
        // As a damaged record may say it: so few requests tell nothing of such a depth.
        point.spot.iodepth = u32::MAX;
        assert!(point.holds_its_depth() && point.resolution() > 1.0);
    }
}
