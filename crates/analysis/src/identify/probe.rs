//! One measurement of identifying: what it asks for, and what was seen, read back from a stored test.

use std::ops::Add;

use fathom_record::{HostInterval, JobRecord, OpOutcome, PhaseOutcome, TargetRecord, TestRecord, TestStatus};

use crate::findings::client::{cpu_ns, run_queue_wait_share};
use crate::findings::device_view::{ForeignIo, foreign_io};
use crate::identified::IoScope;
use crate::pattern::block_name;
use crate::rows::RecordRow;

/// A direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum IoDirection {
    /// Reads.
    Read,
    /// Writes.
    Write,
}

impl IoDirection {
    /// This direction alone.
    pub(crate) const fn scope(self) -> IoScope {
        match self {
            IoDirection::Read => IoScope::Reads,
            IoDirection::Write => IoScope::Writes,
        }
    }

    /// True where `scope` covers it.
    pub(crate) fn is_in(self, scope: IoScope) -> bool {
        scope.counts(self == IoDirection::Write)
    }

    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            IoDirection::Read => "read",
            IoDirection::Write => "write",
        }
    }
}

/// A measurement. Places are at random.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdentifyProbe {
    /// What it is for, in a few words.
    pub aim: &'static str,
    /// Idle time before it, ns.
    pub rest_ns: u64,
    /// Bytes per request.
    pub block: u64,
    /// Reads in flight; 0 = none.
    pub reads: u32,
    /// Writes in flight; 0 = none.
    pub writes: u32,
    /// Requests a second in each direction at the most.
    pub rate: Option<u64>,
    /// Time before anything counts, ns.
    pub ramp_ns: u64,
    /// Longest time after that, ns.
    pub runtime_ns: u64,
    /// Requests in each direction, those of the ramp included, after which it ends before its time.
    pub ios: u64,
    /// Its rate counts from its beginning at rest, from the first completion to the last.
    pub counts: bool,
    /// The range it keeps to, bytes from the beginning.
    pub range: u64,
    /// Probes of the same turn, block and range go to the same places in the same order.
    pub turn: u64,
}

impl IdentifyProbe {
    /// Requests in flight in one direction.
    pub fn depth(&self, way: IoDirection) -> u32 {
        match way {
            IoDirection::Read => self.reads,
            IoDirection::Write => self.writes,
        }
    }

    /// The directions it goes.
    pub fn ways(&self) -> impl Iterator<Item = IoDirection> {
        [(IoDirection::Read, self.reads), (IoDirection::Write, self.writes)]
            .into_iter()
            .filter(|one| one.1 > 0)
            .map(|one| one.0)
    }

    /// `p007-read-4k-d16`: unique where it is the `index`th.
    pub fn id(&self, index: usize) -> String {
        let way = match (self.reads, self.writes) {
            (_, 0) => "read",
            (0, _) => "write",
            _ => "both",
        };
        format!("p{index:03}-{way}-{}-d{}", block_name(self.block), self.reads.max(self.writes))
    }

    /// `drain: reads of 4k, 16 at once`.
    pub fn title(&self) -> String {
        let ways = match (self.reads, self.writes) {
            (_, 0) => "reads",
            (0, _) => "writes",
            _ => "reads and writes",
        };
        format!("{}: {ways} of {}, QD {}", self.aim, block_name(self.block), self.reads.max(self.writes))
    }

    /// Time it takes at most, ns, but for what is in flight at its end.
    pub fn max_ns(&self) -> u64 {
        self.rest_ns + self.ramp_ns + self.runtime_ns
    }
}

/// Requests that completed in a span of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ProbeSlice {
    /// ns since the start of the probe.
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    pub(crate) ios: u64,
}

impl ProbeSlice {
    pub(crate) fn seconds(&self) -> f64 {
        self.end_ns.saturating_sub(self.start_ns) as f64 / 1e9
    }

    pub(crate) fn rate(&self) -> f64 {
        self.ios as f64 / self.seconds()
    }

    /// The same where the probe began at `began`, ns.
    pub(crate) fn since(&self, began: u64) -> ProbeSlice {
        ProbeSlice { start_ns: began + self.start_ns, end_ns: began + self.end_ns, ..*self }
    }
}

/// Latencies of requests, ns: of those at rest what a volume takes without load.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Floor {
    pub(crate) mean: f64,
    pub(crate) deviation: f64,
    pub(crate) count: f64,
    /// The latency of the fastest request.
    pub(crate) least: f64,
}

impl Floor {
    /// Between which values the mean lies, ns.
    pub(crate) fn interval(&self) -> (f64, f64) {
        let half = 2.1 * self.deviation / self.count.max(1.0).sqrt() + 0.005 * self.mean + 1.0;
        ((self.mean - half).max(0.0), self.mean + half)
    }

    /// By how much a request may take longer than the quickest, ns.
    pub(crate) fn tail_ns(&self) -> f64 {
        self.mean - self.least + 2.0 * self.deviation
    }

    /// True where the mean is so many times that of `other`, and so many standard errors beyond it.
    pub(crate) fn is_beyond(&self, other: &Floor, times: f64, errors: f64) -> bool {
        let variance = |floor: &Floor| floor.deviation.powi(2) / floor.count.max(1.0);
        let chance = (variance(self) + variance(other)).sqrt();
        self.mean > times * other.mean && self.mean - other.mean > errors * chance
    }

    /// Spread of single requests over their mean.
    pub(crate) fn spread(&self) -> f64 {
        if self.mean > 0.0 { self.deviation / self.mean } else { 0.0 }
    }
}

/// What one direction did.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ProbeCounts {
    pub(crate) block: u64,
    /// Measured: requests, start and end, ns since the start of the probe.
    pub(crate) ios: u64,
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    pub(crate) lat: Floor,
    /// All of it, the ramp included.
    pub(crate) slices: Vec<ProbeSlice>,
    /// Share of its time that the thread was busy.
    pub(crate) busy: f64,
}

impl ProbeCounts {
    pub(crate) fn seconds(&self) -> f64 {
        self.end_ns.saturating_sub(self.start_ns) as f64 / 1e9
    }

    /// Requests a second.
    pub(crate) fn rate(&self) -> f64 {
        if self.ios == 0 { 0.0 } else { self.ios as f64 / self.seconds().max(1e-9) }
    }

    /// Requests a second where it began at rest: from the first completion to the last.
    pub(crate) fn rate_between(&self) -> f64 {
        let seconds = self.seconds() - self.lat.least / 1e9;
        if self.ios < 2 { 0.0 } else { (self.ios - 1) as f64 / seconds.max(1e-9) }
    }

    /// True where it ended at `rate`, as far as its last seconds tell.
    pub(crate) fn ends_at(&self, rate: f64) -> bool {
        let (ios, seconds) = self.at_end();
        let would = rate * seconds;
        (ios - would).abs() <= 0.05 * would + 3.0
    }

    /// True where it ended at more than `rate`, as far as its last seconds tell.
    pub(crate) fn ends_above(&self, rate: f64) -> bool {
        let (ios, seconds) = self.at_end();
        ios > rate * seconds + 3.0
    }

    /// Requests of its last seconds, and those seconds.
    fn at_end(&self) -> (f64, f64) {
        let end = self.slices.last().map_or(0, |slice| slice.end_ns);
        let last = || self.slices.iter().filter(|slice| slice.start_ns + 2_000_000_000 >= end);
        (last().map(|slice| slice.ios).sum::<u64>() as f64, last().map(ProbeSlice::seconds).sum())
    }

    /// Requests, the ramp included.
    pub(crate) fn all_ios(&self) -> u64 {
        self.slices.iter().map(|slice| slice.ios).sum()
    }
}

/// CPU time of the machine, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Cpu {
    pub(crate) all_ns: f64,
    /// What anybody used.
    pub(crate) busy_ns: f64,
    /// What others had of it, what a quota withheld, and what a thread that was ready to run waited for, as a share of its time.
    pub(crate) withheld_ns: f64,
    /// The share of its time for which the busiest worker was on a CPU, of `all_ns`.
    pub(crate) worker_ns: f64,
    /// The same for which that worker was runnable: on a CPU, or waiting for one.
    pub(crate) runnable_ns: f64,
}

impl Cpu {
    /// Of a probe that was played in a test.
    #[cfg(test)]
    pub(crate) fn of_shares(
        all_ns: f64,
        (busy, withheld): (f64, f64),
        (worker, runnable): (f64, f64),
    ) -> Cpu {
        let of = |share: f64| share * all_ns;
        let (busy_ns, withheld_ns) = (of(busy), of(withheld));
        Cpu { all_ns, busy_ns, withheld_ns, worker_ns: of(worker), runnable_ns: of(runnable) }
    }

    pub(crate) fn worker_share(&self) -> f64 {
        self.worker_ns / self.all_ns.max(1.0)
    }

    pub(crate) fn runnable_share(&self) -> f64 {
        self.runnable_ns / self.all_ns.max(1.0)
    }

    pub(crate) fn withheld_share(&self) -> f64 {
        self.withheld_ns / self.all_ns.max(1.0)
    }

    pub(crate) fn busy_share(&self) -> f64 {
        self.busy_ns / self.all_ns.max(1.0)
    }
}

impl Add for Cpu {
    type Output = Cpu;

    fn add(self, other: Cpu) -> Cpu {
        Cpu {
            all_ns: self.all_ns + other.all_ns,
            busy_ns: self.busy_ns + other.busy_ns,
            withheld_ns: self.withheld_ns + other.withheld_ns,
            worker_ns: self.worker_ns + other.worker_ns,
            runnable_ns: self.runnable_ns + other.runnable_ns,
        }
    }
}

/// I/O of other processes on the target's device during a probe.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct OtherIo {
    /// Requests and bytes a second.
    pub(crate) ios: f64,
    pub(crate) bytes: f64,
    /// The larger of its shares of our requests and of our bytes.
    pub(crate) share: f64,
}

/// What was seen of a probe.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    id: String,
    pub(crate) read: ProbeCounts,
    pub(crate) write: ProbeCounts,
    /// From its start, rest included, to its end.
    pub(crate) elapsed_ns: u64,
    /// Its status was complete.
    pub(crate) is_whole: bool,
    pub(crate) is_stalled: bool,
    pub(crate) cpu: Cpu,
    pub(crate) others: OtherIo,
    /// The device that others used.
    pub(crate) device: String,
}

impl Seen {
    /// What `test` on `target` shows; `None` where it is not a test of identify.
    pub fn of(test: &TestRecord, target: &TargetRecord) -> Option<Seen> {
        let number = test.id.strip_prefix('p')?.split('-').next()?;
        number.parse::<usize>().ok()?;
        let mut seen = Seen {
            id: test.id.clone(),
            elapsed_ns: test.elapsed_ns,
            is_whole: test.status == TestStatus::Complete,
            cpu: cpu(test),
            is_stalled: test.jobs.iter().any(|job| !job.stalls.is_empty()),
            ..Seen::default()
        };
        for job in &test.jobs {
            if job.rw().ends_with("write") {
                seen.write = done(job, true);
            } else {
                seen.read = done(job, false);
            }
        }
        let row = RecordRow::of(test);
        if let Some(foreign) = foreign_io(target, &row).filter(ForeignIo::is_load) {
            let total = row.summary.total.as_ref();
            let share = |theirs: f64, ours: Option<u64>| theirs / ours.unwrap_or(0).max(1) as f64;
            seen.others = OtherIo {
                ios: foreign.requests / foreign.seconds,
                bytes: foreign.bytes / foreign.seconds,
                share: share(foreign.requests, total.map(|total| total.ios))
                    .max(share(foreign.bytes, total.map(|total| total.bytes))),
            };
            seen.device = foreign.device;
        }
        Some(seen)
    }

    /// A probe that was played in a test.
    #[cfg(test)]
    pub(crate) fn played(
        id: String,
        read: ProbeCounts,
        elapsed_ns: u64,
        (others, cpu): (OtherIo, Cpu),
    ) -> Seen {
        Seen { id, read, elapsed_ns, others, cpu, is_whole: true, ..Seen::default() }
    }

    pub(crate) fn is_of(&self, probe: &IdentifyProbe, index: usize) -> bool {
        self.id == probe.id(index)
    }

    pub(crate) fn done(&self, way: IoDirection) -> &ProbeCounts {
        match way {
            IoDirection::Read => &self.read,
            IoDirection::Write => &self.write,
        }
    }
}

fn cpu(test: &TestRecord) -> Cpu {
    let sum = |of: fn(&HostInterval) -> u64| test.host_load.iter().map(of).sum::<u64>() as f64;
    let all_ns = sum(|one| one.counters.cpu_ns);
    let busy_ns = sum(|one| one.counters.busy_ns);
    let withheld_ns = sum(|one| one.counters.steal_ns + one.counters.throttled_ns);
    let shares = test.jobs.iter().map(|job| {
        let worker = cpu_ns(job) as f64 / job.measured.elapsed_ns().max(1) as f64;
        (worker, run_queue_wait_share(job))
    });
    let (mut waited, mut worker, mut runnable) = (0.0f64, 0.0, 0.0);
    for (cpu, wait) in shares {
        waited = waited.max(wait);
        if cpu + wait > runnable {
            (worker, runnable) = (cpu, cpu + wait);
        }
    }
    Cpu {
        all_ns,
        busy_ns,
        withheld_ns: withheld_ns + waited.min(1.0) * all_ns,
        worker_ns: worker * all_ns,
        runnable_ns: runnable * all_ns,
    }
}

fn done(job: &JobRecord, is_write: bool) -> ProbeCounts {
    let op = |phase: &PhaseOutcome| if is_write { phase.write.clone() } else { phase.read.clone() };
    let measured = op(&job.measured);
    let mut slices = Vec::new();
    for phase in job.ramp.iter().chain([&job.measured]) {
        let before = slices.len();
        slices.extend(phase.series.iter().map(|interval| ProbeSlice {
            start_ns: interval.start_ns,
            end_ns: interval.end_ns,
            ios: if is_write { interval.write.ios } else { interval.read.ios },
        }));
        if slices.len() == before && op(phase).ios > 0 {
            slices.push(ProbeSlice { start_ns: phase.start_ns, end_ns: phase.end_ns, ios: op(phase).ios });
        }
    }
    let elapsed = job.measured.elapsed_ns().max(1) as f64;
    let cpu =
        job.measured.cpu.user_ns + job.measured.cpu.system_ns + job.measured.kernel_threads.submitter_ns;
    ProbeCounts {
        block: if is_write { job.largest_blocks().write } else { job.largest_blocks().read },
        ios: measured.ios,
        start_ns: job.measured.start_ns,
        end_ns: job.measured.end_ns,
        lat: floor(&measured),
        slices,
        busy: cpu as f64 / elapsed,
    }
}

fn floor(op: &OpOutcome) -> Floor {
    let (moments, count) = (&op.lat.moments, op.ios as f64);
    if moments.count == 0 {
        return Floor { count, ..Floor::default() };
    }
    let mean = moments.sum as f64 / moments.count as f64;
    let square = moments.sum_squares as f64 / moments.count as f64;
    Floor { mean, deviation: (square - mean * mean).max(0.0).sqrt(), count, least: moments.min as f64 }
}
