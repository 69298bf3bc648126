//! One point of a surface: where it lies and what was measured there. Read back from a stored test, so that a surface
//! can be assessed again from the history alone.

use fathom_record::{JobRecord, OpOutcome, TestRecord, TestStatus};
use serde::Serialize;

/// The request before the measured ones, which takes the way to the place.
pub const SEEK: &str = "seek";
/// The job that reads or writes in order.
pub const TRANSFER: &str = "transfer";
/// The job of single requests all over the area.
pub const ACCESS: &str = "access";

/// What became of a point.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "lowercase")]
pub enum State {
    /// It has a rate.
    Measured,
    /// Nothing was ever written there: what answered is no medium.
    Unwritten,
    /// Memory of this machine answered, not the device.
    Cached,
    /// Nothing completed for a time.
    Stalled {
        /// How long, ns.
        stalled_ns: u64,
    },
    /// Nothing came through.
    Failed {
        /// Why.
        reason: String,
    },
}

impl State {
    /// The word in documents.
    pub const fn name(&self) -> &'static str {
        match self {
            State::Measured => "measured",
            State::Unwritten => "unwritten",
            State::Cached => "cached",
            State::Stalled { .. } => "stalled",
            State::Failed { .. } => "failed",
        }
    }
}

/// What was measured at a point.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SurfacePoint {
    /// The test it comes from.
    pub id: String,
    /// Where it begins, bytes.
    pub offset_bytes: u64,
    /// Bytes that were moved in order.
    pub bytes: u64,
    /// How long that took, ns.
    pub measured_ns: u64,
    /// Bytes per second as they were counted, whatever the state; `None` where nothing came through or a stall is part of it.
    pub bytes_per_second: Option<f64>,
    /// From the beginning of the surface to that of the point, ns.
    pub elapsed_ns: u64,
    /// What became of it.
    #[serde(flatten)]
    pub state: State,
    /// Everything that was looked at there is zero.
    pub is_zero: bool,
    /// Requests that failed.
    pub errors: u64,
}

/// Nothing completing for this long is a stall.
pub const STALL_NS: u64 = 2_000_000_000;
/// Share of our bytes below which what the device counted says that memory answered.
const FROM_DEVICE: f64 = 0.5;

impl SurfacePoint {
    /// The rate, where it is one of the medium.
    pub fn rate(&self) -> Option<f64> {
        self.bytes_per_second.filter(|_| self.state == State::Measured)
    }

    /// The point that `test` measured, `elapsed_ns` after the beginning; `None` where it is none of a surface's.
    pub fn of(test: &TestRecord, elapsed_ns: u64) -> Option<SurfacePoint> {
        if !test.id.starts_with(POINT) {
            return None;
        }
        let offset_bytes = offset_of(test)?;
        let job = job(test, TRANSFER);
        // A test of probes alone, or one that never began.
        if job.is_none() && test.status == TestStatus::Complete {
            return None;
        }
        let op = job.map(moved).unwrap_or_default();
        let measured_ns = job.map_or(0, |job| job.measured.elapsed_ns());
        let stalled_ns = job.and_then(longest_stall);
        let some = op.bytes > 0 && measured_ns > 0 && stalled_ns.is_none();
        let content = test.content.unwrap_or_default();
        let state = match stalled_ns {
            Some(ns) => State::Stalled { stalled_ns: ns },
            None if op.bytes == 0 => State::Failed { reason: why(test) },
            // Holes are answered from memory, so a place that is one in part looks like a cached one with zeros in it.
            None if content.is_hole || (content.zero_bytes > 0 && is_cached(test)) => State::Unwritten,
            None if is_cached(test) => State::Cached,
            None => State::Measured,
        };
        Some(SurfacePoint {
            id: test.id.clone(),
            offset_bytes,
            elapsed_ns,
            bytes: op.bytes,
            measured_ns,
            bytes_per_second: some.then(|| op.bytes as f64 * 1e9 / measured_ns as f64),
            state,
            is_zero: content.looked_bytes > 0 && content.zero_bytes == content.looked_bytes,
            errors: test.jobs.iter().flat_map(|job| &job.errors).map(|error| error.count).sum(),
        })
    }
}

/// What the id of a point's test begins with.
pub const POINT: &str = "point-";

/// The job of that name.
pub(crate) fn job<'a>(test: &'a TestRecord, name: &str) -> Option<&'a JobRecord> {
    test.jobs.iter().find(|job| job.name == name)
}

/// Reads, or writes where those were made.
pub(crate) fn moved(job: &JobRecord) -> OpOutcome {
    let measured = &job.measured;
    if job.rw().ends_with("write") { measured.write.clone() } else { measured.read.clone() }
}

/// The longest time of a job without a completion, where it was a stall.
pub(crate) fn longest_stall(job: &JobRecord) -> Option<u64> {
    let longest = job.stalls.iter().map(|stall| stall.length_ns).max();
    longest.filter(|&length| length >= STALL_NS)
}

fn why(test: &TestRecord) -> String {
    let given = test.reason.clone().or_else(|| {
        let error = test.jobs.iter().flat_map(|job| &job.errors).next()?;
        Some(format!("every {} failed, errno {}", error.op, error.errno))
    });
    given.unwrap_or_else(|| "no I/O completed".to_owned())
}

fn offset_of(test: &TestRecord) -> Option<u64> {
    let of_job = job(test, TRANSFER).and_then(|job| job.plan.io.offset.bytes());
    // A test that could not begin has no jobs, and the place is in its name.
    of_job.or_else(|| test.id.strip_prefix(POINT)?.parse().ok())
}

/// True where the device under the target counted much less than all jobs of the test read from it.
fn is_cached(test: &TestRecord) -> bool {
    let own = test.disks.iter().filter(|disk| disk.under.is_none());
    let sectors: Option<u64> = own.map(|disk| disk.counters.read_sectors).reduce(|sum, next| sum + next);
    let ours: u64 = test.jobs.iter().map(|job| job.measured.read.bytes).sum();
    sectors.is_some_and(|sectors| (sectors * 512) as f64 * (1.0 / FROM_DEVICE) < ours as f64)
}

#[cfg(test)]
pub(crate) mod tests {
    use fathom_model::Op;
    use fathom_model::plan::{IoPlan, SizeSpec};
    use fathom_record::{
        ContentRecord, DiskCounters, DiskOutcome, ErrorCount, PhaseOutcome, PlanRecord, Stall,
    };

    use super::*;
    use crate::fixture::latency;

    fn at(offset: u64) -> PlanRecord {
        let io = IoPlan { offset: SizeSpec::Bytes(offset), ..IoPlan::default() };
        PlanRecord { io, ..PlanRecord::default() }
    }

    /// The test of a point at `offset` that moved `mib` MiB in a second.
    pub(crate) fn point(offset: u64, mib: u64) -> TestRecord {
        let job = |name: &str, ios: u64, bytes: u64, ns: u64| JobRecord {
            name: name.to_owned(),
            plan: at(offset),
            measured: PhaseOutcome {
                end_ns: 1_000_000_000,
                read: OpOutcome { ios, bytes, lat: latency(ios, ns), ..OpOutcome::default() },
                ..PhaseOutcome::default()
            },
            ..JobRecord::default()
        };
        let mut jobs = vec![job(TRANSFER, 16 * mib, mib << 20, 1_000), job(ACCESS, 5, 5 * 4096, 200_000)];
        jobs[0].measured.cpu.user_ns = 10_000_000;
        let sectors = (mib << 11) + 40;
        TestRecord {
            id: format!("{POINT}{offset}"),
            status: TestStatus::Complete,
            elapsed_ns: 1_000_000_000,
            jobs,
            disks: vec![DiskOutcome {
                counters: DiskCounters { read_sectors: sectors, ..Default::default() },
                ..DiskOutcome::default()
            }],
            ..TestRecord::default()
        }
    }

    #[test]
    fn states() {
        let check = |change: &dyn Fn(&mut TestRecord), expected: State, has_rate: bool| {
            let mut test = point(4096, 100);
            change(&mut test);
            let point = SurfacePoint::of(&test, 5).unwrap();
            assert_eq!((&point.state, point.offset_bytes, point.elapsed_ns), (&expected, 4096, 5));
            assert_eq!(point.rate().is_some(), has_rate, "{expected:?}");
        };
        check(&|_| {}, State::Measured, true);
        let hole = ContentRecord { is_hole: true, ..ContentRecord::default() };
        check(&|test| test.content = Some(hole), State::Unwritten, false);
        check(&|test| test.disks[0].counters.read_sectors = 8, State::Cached, false);
        let part = ContentRecord { looked_bytes: 3, zero_bytes: 2, is_hole: false };
        check(&|test| test.content = Some(part), State::Measured, true);
        let in_part = |test: &mut TestRecord| {
            test.content = Some(part);
            test.disks[0].counters.read_sectors = 8;
        };
        check(&in_part, State::Unwritten, false);
        // There are no counters, so there is no result.
        check(&|test| test.disks.clear(), State::Measured, true);
        let stall = |length_ns| Stall { length_ns, ..Stall::default() };
        check(
            &|test| test.jobs[0].stalls.push(stall(20_000_000_000)),
            State::Stalled { stalled_ns: 20_000_000_000 },
            false,
        );
        check(&|test| test.jobs[0].stalls.push(stall(1_100_000_000)), State::Measured, true);
        let failed = |test: &mut TestRecord| {
            test.jobs[0].measured.read = OpOutcome::default();
            test.jobs[0].errors = vec![ErrorCount { op: Op::Read, errno: 5, count: 3 }];
        };
        check(&failed, State::Failed { reason: "every read failed, errno 5".to_owned() }, false);
        let never = |test: &mut TestRecord| {
            *test = TestRecord { id: test.id.clone(), status: TestStatus::Failed, ..TestRecord::default() };
            test.reason = Some("no such device".to_owned());
        };
        check(&never, State::Failed { reason: "no such device".to_owned() }, false);
    }

    #[test]
    fn rates_and_what_is_no_point() {
        let found = SurfacePoint::of(&point(0, 100), 0).unwrap();
        assert_eq!((found.rate(), found.bytes), (Some(104_857_600.0), 100 << 20));
        assert_eq!(SurfacePoint::of(&TestRecord { id: "burst".to_owned(), ..point(0, 1) }, 0), None);
        let mut probes = point(0, 1);
        probes.jobs.remove(0);
        assert_eq!(SurfacePoint::of(&probes, 0), None);
    }
}
