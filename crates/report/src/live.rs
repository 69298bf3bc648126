//! A run while it goes on: its state, as the full-screen view and the live streams show it, and the texts of the streams.
//!
//! A [`LiveState`] grows by the events of the run; nothing here reads a clock or keeps more than a bounded number of points.

mod followed;
pub mod json;
pub mod metrics;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use fathom_analysis::monitor::{MonitorInterval, Presence};
use fathom_analysis::ping::{PingAccount, PingHow, PingProgress};
use fathom_model::{Nanos, Op, PerOp};
use fathom_record::{
    DeviceTick, Finding, Histogram, HostInterval, Latency, LatencySpan, RunHeader, Snapshot, TestRecord,
    TestStatus, TestSummary,
};
use serde::{Deserialize, Serialize};

pub use followed::FollowedRun;

/// Bytes of a sector in the kernel's counters.
const SECTOR: u64 = 512;

/// What one device did in one tick.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeviceLoad {
    /// Kernel name.
    pub name: String,
    /// Completed reads, writes and discards per second, after merging and splitting.
    pub iops: f64,
    /// Completed reads per second.
    pub read_iops: f64,
    /// Completed writes per second.
    pub write_iops: f64,
    /// Completed discards per second.
    pub trim_iops: f64,
    /// Bytes read per second.
    pub read_bytes_per_second: f64,
    /// Bytes written per second.
    pub write_bytes_per_second: f64,
    /// Mean time of a completed read or write in the queue and at the device, ns; null where none completed.
    pub await_mean_ns: Option<f64>,
    /// Mean queue depth at the device.
    pub queue_depth_mean: f64,
    /// Share of the time with a request in flight, 0 to 1.
    pub utilisation: f64,
}

impl DeviceLoad {
    /// The load of `tick`; `None` where it has no length.
    pub fn of(tick: &DeviceTick) -> Option<DeviceLoad> {
        let seconds = tick.span_ns as f64 / 1e9;
        if tick.span_ns == 0 {
            return None;
        }
        let counters = &tick.counters;
        let (moved, waited_ms) =
            (counters.read_ios + counters.write_ios, counters.read_ticks_ms + counters.write_ticks_ms);
        let per_second = |count: u64| count as f64 / seconds;
        Some(DeviceLoad {
            name: tick.name.clone(),
            iops: per_second(moved + counters.discard_ios),
            read_iops: per_second(counters.read_ios),
            write_iops: per_second(counters.write_ios),
            trim_iops: per_second(counters.discard_ios),
            read_bytes_per_second: per_second(counters.read_sectors * SECTOR),
            write_bytes_per_second: per_second(counters.write_sectors * SECTOR),
            await_mean_ns: (moved > 0).then(|| waited_ms as f64 * 1e6 / moved as f64),
            queue_depth_mean: counters.queue_ms as f64 / 1e3 / seconds,
            utilisation: (counters.busy_ms as f64 / 1e3 / seconds).min(1.0),
        })
    }

    /// The load of a device that is watched; `None` where it has no rates: it was not there, or did not respond.
    pub fn of_interval(interval: &MonitorInterval) -> Option<DeviceLoad> {
        let ops = &interval.activity.ops;
        let (moved, waited_ms) = (ops.read.ios + ops.write.ios, ops.read.ticks_ms + ops.write.ticks_ms);
        Some(DeviceLoad {
            name: interval.device.name.clone(),
            iops: interval.per_second(moved + ops.trim.ios)?,
            read_iops: interval.per_second(ops.read.ios)?,
            write_iops: interval.per_second(ops.write.ios)?,
            trim_iops: interval.per_second(ops.trim.ios)?,
            read_bytes_per_second: interval.per_second(ops.read.bytes)?,
            write_bytes_per_second: interval.per_second(ops.write.bytes)?,
            await_mean_ns: (moved > 0).then(|| waited_ms as f64 * 1e6 / moved as f64),
            queue_depth_mean: interval.queue_depth_mean()?,
            utilisation: interval.utilisation()?,
        })
    }
}

/// Shares of the CPU time of the machine in one tick, 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct HostShares {
    /// Busy time.
    pub busy: f64,
    /// Time that the hypervisor gave to other guests.
    pub steal: f64,
    /// Idle time while a thread waited for I/O.
    pub iowait: f64,
    /// Share of the tick in which at least one thread waited for a CPU.
    pub cpu_pressure: f64,
}

impl HostShares {
    /// The shares of `tick`; `None` where it has no length.
    pub fn of(tick: &HostInterval) -> Option<HostShares> {
        let counters = &tick.counters;
        if counters.cpu_ns == 0 {
            return None;
        }
        let share = |ns: u64| (ns as f64 / counters.cpu_ns as f64).min(1.0);
        let length_ns = tick.end_ns.saturating_sub(tick.start_ns).max(1);
        Some(HostShares {
            busy: share(counters.busy_ns),
            steal: share(counters.steal_ns),
            iowait: share(counters.iowait_ns),
            cpu_pressure: (counters.cpu_pressure_ns as f64 / length_ns as f64).min(1.0),
        })
    }
}

/// The data operations in the order of snapshots.
const OPS: [Op; 3] = [Op::Read, Op::Write, Op::Trim];

/// Where a ping ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PingEnd {
    /// After so many requests.
    pub count: Option<u64>,
    /// After this time, ns.
    pub work_ns: Option<u64>,
}

/// A ping that goes on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LivePing {
    /// How it is made.
    pub how: PingHow,
    /// Where it ends.
    pub end: PingEnd,
    /// What its requests add up to so far.
    pub account: PingAccount,
    /// Response times of the last tick; `None` where no schedule is kept.
    pub response_now: Option<LiveLatency>,
    /// When the last tick ended, ns since the ping began.
    ticked_ns: u64,
}

impl LivePing {
    /// A ping that begins.
    pub fn new(how: PingHow, end: PingEnd) -> LivePing {
        LivePing { how, end, ..LivePing::default() }
    }

    /// Response times so far; `None` where no schedule is kept.
    pub fn response_so_far(&self) -> Option<LiveLatency> {
        self.account.response_ns.as_ref().map(|response| LiveLatency::of(&response.histogram))
    }

    /// Intervals of the schedule that passed without their request; `None` without a schedule.
    pub fn missed_intervals(&self) -> Option<u64> {
        self.account.missed_intervals(self.how.interval_ns)
    }

    /// Goes on to `progress`, and returns the tick that it ends. Its latencies are those from a request to its answer.
    fn advance(&mut self, progress: &PingProgress) -> Snapshot {
        let PingProgress { elapsed_ns, account, waits_ns, devices, host } = progress;
        let before = std::mem::replace(&mut self.account, account.clone());
        let tick_ns = elapsed_ns.saturating_sub(self.ticked_ns);
        self.ticked_ns = *elapsed_ns;
        let since = |now: &PerOp<u64>, before: &PerOp<u64>| OPS.map(|op| now[op] - before[op]);
        let (ios, bytes) = (since(&account.ios, &before.ios), since(&account.bytes, &before.bytes));
        let per_second = |counts: [u64; 3]| counts.map(|count| count as f64 * 1e9 / tick_ns.max(1) as f64);
        let moments = (&account.lat_ns.moments, &before.lat_ns.moments);
        let (counted, sum_ns) = (moments.0.count - moments.1.count, moments.0.sum - moments.1.sum);
        let response = account.response_ns.as_ref().map(|now| {
            let before = before.response_ns.as_ref().map(|response| &response.histogram);
            LiveLatency::of(&grown(&now.histogram, before))
        });
        self.response_now = response;
        let Latency { histogram, .. } = &account.lat_ns;
        let bins = grown(histogram, Some(&before.lat_ns.histogram));
        let waits_ns = waits_ns.unwrap_or(0);
        Snapshot {
            elapsed_ns: *elapsed_ns,
            remaining_ns: self.remaining_ns(*elapsed_ns),
            iops: per_second(ios),
            bytes_per_second: per_second(bytes),
            clat_mean_ns: sum_ns.checked_div(u128::from(counted)).and_then(|mean| u64::try_from(mean).ok()),
            running: 1,
            workers: 1,
            stalled_ns: waits_ns,
            stalled_in_flight: u64::from(waits_ns >= STALLED_FROM_NS),
            tick_ns,
            ios,
            bytes,
            clat_sum_ns: u64::try_from(sum_ns).unwrap_or(u64::MAX),
            in_flight: u64::from(progress.waits_ns.is_some()),
            clat_bins: bins.sparse().map(|(bin, count)| (bin as u16, count)).collect(),
            devices: devices.clone(),
            host: *host,
            ..Snapshot::default()
        }
    }

    /// Time until its end, ns; `None` where it has none.
    fn remaining_ns(&self, elapsed_ns: u64) -> Option<u64> {
        let by_time = self.end.work_ns.map(|work_ns| work_ns.saturating_sub(elapsed_ns));
        let made = self.account.counts.requests;
        let by_count = self.end.count.filter(|_| made > 0).map(|count| {
            let each_ns = self.how.interval_ns.max(elapsed_ns / made);
            count.saturating_sub(made).saturating_mul(each_ns)
        });
        [by_time, by_count].into_iter().flatten().min()
    }
}

/// What `now` has beyond `before`.
fn grown(now: &Histogram, before: Option<&Histogram>) -> Histogram {
    let mut known: Vec<(usize, u64)> = before.map(|before| before.sparse().collect()).unwrap_or_default();
    known.reverse();
    Histogram::from_sparse(now.sparse().filter_map(|(bin, count)| {
        while known.last().is_some_and(|(earlier, _)| *earlier < bin) {
            known.pop();
        }
        let known = known.last().filter(|(earlier, _)| *earlier == bin).map_or(0, |(_, count)| *count);
        (count > known).then(|| (bin, count - known))
    }))
}

/// The devices of a `monitor` that goes on.
#[derive(Clone, Debug, Default)]
pub struct LiveMonitor {
    /// As they are listed, each once.
    pub devices: Vec<LiveDevice>,
    /// Since it began, ns.
    pub elapsed_ns: u64,
    /// Number of the interval that ended, from 1.
    pub number: u64,
    /// How many there will be, where that is known.
    pub of: Option<u64>,
}

/// One device.
#[derive(Clone, Debug, Default)]
pub struct LiveDevice {
    /// The interval that ended.
    pub now: MonitorInterval,
    /// All intervals as one.
    pub so_far: MonitorInterval,
    /// Its rates and latencies over time.
    pub series: LiveSeries,
}

impl LiveDevice {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.now.device.name
    }

    /// Whether its requests are traced one by one.
    pub fn is_traced(&self) -> bool {
        self.so_far.load.is_some()
    }

    /// Service times of all kinds of requests in an interval, from issue to completion; empty where they are not traced.
    pub fn service(interval: &MonitorInterval) -> Histogram {
        let mut all = Histogram::default();
        let loads = interval.load.iter().flat_map(|load| load.ops.values());
        loads.for_each(|load| all.merge(&load.service.histogram));
        all
    }

    /// Service times of the interval that ended.
    pub fn service_now(&self) -> LiveLatency {
        LiveLatency::of(&LiveDevice::service(&self.now))
    }

    /// Service times so far.
    pub fn service_so_far(&self) -> LiveLatency {
        LiveLatency::of(&LiveDevice::service(&self.so_far))
    }
}

/// What an interval of a monitor brings.
#[derive(Clone, Copy, Debug)]
pub struct MonitorTick<'a> {
    /// An entry per device.
    pub intervals: &'a [MonitorInterval],
    /// The machine meanwhile.
    pub host: Option<HostInterval>,
    /// Since the monitor began, ns.
    pub elapsed_ns: u64,
    /// How many intervals there will be, where that is known.
    pub of: Option<u64>,
}

impl LiveMonitor {
    /// Adds an interval. A device that is not in it is not shown any more.
    fn advance(&mut self, tick: &MonitorTick<'_>) {
        let MonitorTick { intervals, elapsed_ns, of, .. } = *tick;
        (self.elapsed_ns, self.of) = (elapsed_ns, of);
        self.number = intervals.first().map_or(self.number + 1, |interval| interval.number);
        let mut before = std::mem::take(&mut self.devices);
        for interval in intervals {
            let known = before.iter().position(|device| device.name() == interval.device.name);
            let mut device = known.map(|index| before.swap_remove(index)).unwrap_or_default();
            if device.so_far.device.name.is_empty() {
                device.so_far.device.clone_from(&interval.device);
            }
            device.so_far.add(interval);
            if interval.presence != Presence::Gone && interval.elapsed_ns > 0 {
                device.series.push(point(interval));
            }
            device.now = interval.clone();
            self.devices.push(device);
        }
    }

    /// The device called `name`, or else the one that has done most so far.
    pub fn shown(&self, name: Option<&str>) -> Option<&LiveDevice> {
        let named = self.devices.iter().find(|device| Some(device.name()) == name);
        // The first of several that have done the same.
        let most = || self.devices.iter().rev().max_by_key(|device| device.so_far.activity.total().ios);
        named.or_else(most)
    }

    /// The name of the device after the one that is shown for `name`.
    pub fn after(&self, name: Option<&str>) -> Option<String> {
        let shown = self.shown(name)?.name();
        let index = self.devices.iter().position(|device| device.name() == shown)?;
        Some(self.devices[(index + 1) % self.devices.len()].name().to_owned())
    }

    /// Time until its end, ns; `None` where it has none.
    pub fn remaining_ns(&self) -> Option<u64> {
        let each_ns = self.elapsed_ns.checked_div(self.number)?;
        Some(self.of?.saturating_sub(self.number).saturating_mul(each_ns))
    }
}

fn point(interval: &MonitorInterval) -> LivePoint {
    let ops = &interval.activity.ops;
    let of = |op: Op| &ops[op];
    let each = [Op::Read, Op::Write, Op::Trim].map(of);
    let iops = interval.per_second(interval.activity.total().ios).unwrap_or(0.0);
    LivePoint {
        span_ns: interval.elapsed_ns,
        ios: each.map(|done| done.ios),
        bytes: each.map(|done| done.bytes),
        iops_range: (iops, iops),
        latency_bins: LiveDevice::service(interval)
            .sparse()
            .map(|(bin, count)| (bin as u16, count))
            .collect(),
        latency_sum_ns: each.iter().map(|done| done.ticks_ms * 1_000_000).sum(),
        in_flight: interval.in_flight.most,
        is_ramp: false,
    }
}

/// Most points of a series; beyond them adjacent points are joined.
pub const MAX_POINTS: usize = 512;

/// One point: a tick, or several joined.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LivePoint {
    /// Length, ns.
    pub span_ns: u64,
    /// Requests completed: read, write, trim.
    pub ios: [u64; 3],
    /// Bytes completed: read, write, trim.
    pub bytes: [u64; 3],
    /// Lowest and highest IOPS of a tick.
    pub iops_range: (f64, f64),
    /// Latencies of measured parts and ramps: bins and their counts, in ascending order; empty where only their sum is known.
    pub latency_bins: Vec<(u16, u64)>,
    /// Their sum, ns.
    pub latency_sum_ns: u64,
    /// Most requests in flight at the end of a tick.
    pub in_flight: u64,
    /// All of it belongs to a ramp.
    pub is_ramp: bool,
}

impl LivePoint {
    /// The tick that `snapshot` ends.
    pub fn of(snapshot: &Snapshot) -> LivePoint {
        let iops = snapshot.iops.iter().sum();
        LivePoint {
            span_ns: snapshot.tick_ns,
            ios: snapshot.ios,
            bytes: snapshot.bytes,
            iops_range: (iops, iops),
            latency_bins: joined(&snapshot.clat_bins, &snapshot.ramp_clat_bins),
            latency_sum_ns: snapshot.clat_sum_ns,
            in_flight: snapshot.in_flight,
            is_ramp: snapshot.ramping,
        }
    }

    /// Adds the point that follows.
    pub fn join(&mut self, next: &LivePoint) {
        self.span_ns += next.span_ns;
        for (mine, more) in self.ios.iter_mut().chain(&mut self.bytes).zip(next.ios.iter().chain(&next.bytes))
        {
            *mine += more;
        }
        let (low, high) = self.iops_range;
        self.iops_range = (low.min(next.iops_range.0), high.max(next.iops_range.1));
        self.latency_bins = joined(&self.latency_bins, &next.latency_bins);
        self.latency_sum_ns = self.latency_sum_ns.saturating_add(next.latency_sum_ns);
        self.in_flight = self.in_flight.max(next.in_flight);
        self.is_ramp &= next.is_ramp;
    }

    /// Mean IOPS.
    pub fn iops(&self) -> f64 {
        self.ios.iter().sum::<u64>() as f64 * 1e9 / self.span_ns.max(1) as f64
    }

    /// Its latencies.
    pub fn latencies(&self) -> Histogram {
        histogram(&self.latency_bins)
    }

    /// Mean latency, ns; `None` where nothing completed.
    pub fn latency_mean_ns(&self) -> Option<u64> {
        self.latency_sum_ns.checked_div(self.ios.iter().sum())
    }
}

/// Latencies from their bins.
pub(crate) fn histogram(bins: &[(u16, u64)]) -> Histogram {
    Histogram::from_sparse(bins.iter().map(|&(bin, count)| (usize::from(bin), count)))
}

/// The sums of two lists of bins.
fn joined(one: &[(u16, u64)], other: &[(u16, u64)]) -> Vec<(u16, u64)> {
    if one.is_empty() || other.is_empty() {
        return [one, other].concat();
    }
    let mut both = histogram(one);
    both.merge(&histogram(other));
    both.sparse().map(|(bin, count)| (bin as u16, count)).collect()
}

/// The points of one test.
#[derive(Clone, Debug, Default)]
pub struct LiveSeries {
    points: Vec<LivePoint>,
    /// A point is as many ticks as two to this power.
    coarser: u32,
    ticks: u64,
}

impl LiveSeries {
    /// Adds a tick.
    pub fn push(&mut self, tick: LivePoint) {
        let joins = !self.ticks.is_multiple_of(1 << self.coarser);
        match self.points.last_mut().filter(|_| joins) {
            Some(last) => last.join(&tick),
            None => self.points.push(tick),
        }
        self.ticks += 1;
        if self.points.len() >= MAX_POINTS && self.ticks.is_multiple_of(1 << self.coarser) {
            self.points = by_twos(&self.points);
            self.coarser += 1;
        }
    }

    /// The points so far, oldest first.
    pub fn points(&self) -> &[LivePoint] {
        &self.points
    }

    /// The same joined to at most `most` columns: each has as many points, but for the last.
    pub fn columns(&self, most: usize) -> Vec<LivePoint> {
        let each = self.points.len().div_ceil(most.max(1)).max(1).next_power_of_two();
        self.points.chunks(each).map(whole).collect()
    }

    /// How many columns of a chart of `most` one of `columns` takes, so that a test of `planned_ns` fills the chart as it ends.
    pub fn columns_each(columns: &[LivePoint], planned_ns: u64, most: usize) -> usize {
        let span_ns = columns.first().map_or(0, |point| point.span_ns).max(1);
        let planned = (planned_ns / span_ns).max(columns.len() as u64).max(1);
        (most as u64 / planned).max(1) as usize
    }
}

fn by_twos(points: &[LivePoint]) -> Vec<LivePoint> {
    points.chunks(2).map(whole).collect()
}

/// Adjacent points as one.
fn whole(points: &[LivePoint]) -> LivePoint {
    let mut joined = points[0].clone();
    points[1..].iter().for_each(|next| joined.join(next));
    joined
}

/// Nothing completes for this long, although requests are in flight: a stall, ns.
pub const STALLED_FROM_NS: u64 = 1_000_000_000;
/// The word for a step that runs.
const RUNNING: &str = "running";
/// Messages that are kept.
const MAX_MESSAGES: usize = 20;

/// A measurement that begins.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LiveTest {
    /// The id of its test.
    pub id: String,
    /// What it does, for people.
    pub title: String,
    /// Its number, from 1.
    pub number: usize,
    /// How many there will be, where that is known.
    pub of: Option<usize>,
}

/// What the run does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LiveStage {
    /// Targets are inspected and opened.
    #[default]
    Preparing,
    /// A file is laid out: bytes done and in all.
    Layout(u64, u64),
    /// Workers run, and what they do is not counted yet.
    Ramp,
    /// Workers run and are measured.
    Measuring,
    /// Between two tests.
    Between,
    /// The next run of a schedule is waited for.
    Waiting,
    /// Everything has been measured.
    Ended,
}

impl LiveStage {
    /// The word used in streams and on the screen.
    pub const fn name(&self) -> &'static str {
        match self {
            LiveStage::Preparing => "preparing",
            LiveStage::Layout(..) => "file layout",
            LiveStage::Ramp => "ramp",
            LiveStage::Measuring => "measuring",
            LiveStage::Between => "between tests",
            LiveStage::Waiting => "waiting",
            LiveStage::Ended => "ended",
        }
    }
}

/// How far a step of the plan is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LiveStepState {
    /// It is still to come.
    #[default]
    Planned,
    /// It runs.
    Running,
    /// It has ended.
    Ended(TestStatus),
}

impl LiveStepState {
    /// The word used in streams.
    pub const fn name(&self) -> &'static str {
        match self {
            LiveStepState::Planned => "planned",
            LiveStepState::Running => RUNNING,
            LiveStepState::Ended(status) => status.name(),
        }
    }
}

/// Headline figures of a test that has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StepFigures {
    /// I/Os per second.
    pub iops: f64,
    /// Bytes per second.
    pub bytes_per_second: f64,
    /// Mean completion latency, ns.
    pub clat_mean_ns: Option<f64>,
    /// 99th percentile of the completion latency, ns.
    pub clat_p99_ns: Option<u64>,
    /// Mean total latency, ns.
    pub lat_mean_ns: Option<f64>,
    /// 99th percentile of the total latency, ns.
    pub lat_p99_ns: Option<u64>,
}

/// One step of the plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LiveStep {
    /// The id of its test.
    pub id: String,
    /// What it does, for people.
    pub title: String,
    /// How far it is.
    pub state: LiveStepState,
    /// What it measured, once it has ended.
    pub figures: Option<StepFigures>,
}

/// Completion latencies, as percentiles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LiveLatency {
    /// Number of samples.
    pub samples: u64,
    /// Median, ns.
    pub p50: Option<u64>,
    /// 90 %, ns.
    pub p90: Option<u64>,
    /// 99 %, ns.
    pub p99: Option<u64>,
    /// 99.9 %, ns.
    pub p999: Option<u64>,
    /// The highest, ns, to the resolution of a histogram.
    pub max: Option<u64>,
}

impl LiveLatency {
    /// The percentiles of `latencies`; one beyond which no sample lies is absent.
    pub fn of(latencies: &Histogram) -> LiveLatency {
        let samples = latencies.samples();
        let carried =
            |percent: f64, of: u64| (samples >= of).then(|| latencies.percentile(percent)).flatten();
        LiveLatency {
            samples,
            p50: carried(50.0, 1),
            p90: carried(90.0, 10),
            p99: carried(99.0, 100),
            p999: carried(99.9, 1000),
            max: carried(100.0, 1),
        }
    }
}

/// A run that goes on.
#[derive(Clone, Debug, Default)]
pub struct LiveState {
    /// The command (`bench`).
    pub command: String,
    /// Where it runs and on what; empty before its targets are ready.
    pub host: String,
    /// The device, by a name that stays the same from run to run.
    pub device: String,
    /// The target.
    pub target: String,
    /// The type of the volume, where it is known.
    pub volume_type: String,
    /// Labels of the user.
    pub labels: BTreeMap<String, String>,
    /// The plan, as far as it is known, and what came of it.
    pub steps: Vec<LiveStep>,
    /// The test that runs, or ran last.
    pub test: Option<LiveTest>,
    /// What the run does.
    pub stage: LiveStage,
    /// What the latencies span: those of a ping are total latencies, in the places of completion latencies.
    pub span: LatencySpan,
    /// The latest snapshot.
    pub snapshot: Snapshot,
    /// Figures that only a ping has.
    pub ping: Option<Box<LivePing>>,
    /// The devices of a monitor, which has no tests.
    pub monitor: Option<Box<LiveMonitor>>,
    /// Rates and latencies over the time of the test.
    pub series: LiveSeries,
    /// Latencies of the measured part of the test so far.
    pub test_clat: Histogram,
    /// Requests of the run so far, ramps included: read, write, trim.
    pub run_ios: [u64; 3],
    /// Bytes of the run so far, ramps included: read, write, trim.
    pub run_bytes: [u64; 3],
    /// Latencies of the run so far, ramps included.
    pub run_clat: Histogram,
    /// Their sum, ns.
    pub run_clat_sum_ns: u128,
    /// What the tests that have ended tell.
    pub findings: Vec<Finding>,
    /// Messages for people while it runs, the latest last; so many at most.
    pub messages: Vec<String>,
    /// Time until the whole run is expected to end.
    pub time_left: Option<Nanos>,
    /// Changes with each event.
    pub version: u64,
}

impl LiveState {
    /// A run that has not begun, with the steps that are planned: id and title.
    pub fn new(steps: impl IntoIterator<Item = (String, String)>) -> LiveState {
        let step = |(id, title)| LiveStep { id, title, ..LiveStep::default() };
        LiveState { steps: steps.into_iter().map(step).collect(), ..LiveState::default() }
    }

    /// The target is ready; measuring begins.
    pub fn begin(&mut self, header: &RunHeader) {
        self.command = header.activity.kind().name().to_owned();
        self.host.clone_from(&header.host().hostname);
        self.device = header.device_identity();
        self.target.clone_from(&header.target);
        self.volume_type = header.volume_type().unwrap_or_default().to_owned();
        self.labels.clone_from(&header.labels);
        self.stage = LiveStage::Between;
        self.version += 1;
    }

    /// A file is laid out.
    pub fn lay_out(&mut self, done_bytes: u64, total_bytes: u64) {
        self.stage = LiveStage::Layout(done_bytes, total_bytes);
        self.version += 1;
    }

    /// A test begins.
    pub fn begin_test(&mut self, test: LiveTest) {
        let index = self.index_of(&test.id, &test.title);
        for step in self.steps.iter_mut().filter(|step| step.state == LiveStepState::Running) {
            step.state = LiveStepState::Ended(TestStatus::Incomplete);
        }
        self.steps[index].state = LiveStepState::Running;
        (self.series, self.test_clat) = (LiveSeries::default(), Histogram::default());
        self.snapshot = Snapshot::default();
        (self.test, self.stage) = (Some(test), LiveStage::Between);
        self.version += 1;
    }

    /// A test has ended, been skipped or failed.
    pub fn end_test(&mut self, test: &TestRecord) {
        let index = self.index_of(&test.id, &test.title);
        self.steps[index].state = LiveStepState::Ended(test.status);
        self.steps[index].figures = TestSummary::new(test).total.map(|total| StepFigures {
            iops: total.iops,
            bytes_per_second: total.bytes_per_second,
            clat_mean_ns: total.clat_ns.mean,
            clat_p99_ns: total.clat_ns.p99,
            lat_mean_ns: total.lat_ns.mean,
            lat_p99_ns: total.lat_ns.p99,
        });
        self.stage = LiveStage::Between;
        self.version += 1;
    }

    /// The place of a step in the plan, to which it is added where it was not planned.
    fn index_of(&mut self, id: &str, title: &str) -> usize {
        self.steps.iter().position(|step| step.id == id).unwrap_or_else(|| {
            let (id, title) = (id.to_owned(), title.to_owned());
            self.steps.push(LiveStep { id, title, ..LiveStep::default() });
            self.steps.len() - 1
        })
    }

    /// A tick of the running test.
    pub fn tick(&mut self, snapshot: &Snapshot) {
        self.stage = if snapshot.ramping { LiveStage::Ramp } else { LiveStage::Measuring };
        let point = LivePoint::of(snapshot);
        self.test_clat.merge(&histogram(&snapshot.clat_bins));
        self.run_clat.merge(&histogram(&point.latency_bins));
        self.run_clat_sum_ns += u128::from(snapshot.clat_sum_ns);
        for op in 0..self.run_ios.len() {
            self.run_ios[op] += snapshot.ios[op];
            self.run_bytes[op] += snapshot.bytes[op];
        }
        if point.span_ns > 0 {
            self.series.push(point);
        }
        self.snapshot = snapshot.clone();
        self.version += 1;
    }

    /// A ping begins; its latencies are those from a request to its answer.
    pub fn begin_ping(&mut self, ping: LivePing) {
        (self.ping, self.span) = (Some(Box::new(ping)), LatencySpan::Total);
        self.version += 1;
    }

    /// The ping stands so; its time left is that of its test.
    pub fn tick_ping(&mut self, progress: &PingProgress) {
        let Some(ping) = &mut self.ping else { return };
        let snapshot = ping.advance(progress);
        self.time_left = snapshot.remaining_ns.map(Nanos);
        self.tick(&snapshot);
    }

    /// A monitor begins: it watches devices and runs no test.
    pub fn begin_monitor(&mut self) {
        self.monitor = Some(Box::default());
        self.version += 1;
    }

    /// An interval of a monitor has ended.
    pub fn tick_monitor(&mut self, tick: &MonitorTick<'_>) {
        let monitor = self.monitor.get_or_insert_default();
        let tick_ns = tick.elapsed_ns.saturating_sub(monitor.elapsed_ns);
        monitor.advance(tick);
        let remaining_ns = monitor.remaining_ns();
        self.snapshot = Snapshot {
            elapsed_ns: tick.elapsed_ns,
            remaining_ns,
            tick_ns,
            host: tick.host,
            ..Snapshot::default()
        };
        (self.stage, self.time_left) = (LiveStage::Measuring, remaining_ns.map(Nanos));
        self.version += 1;
    }

    /// The run does this now.
    pub fn enter(&mut self, stage: LiveStage) {
        self.stage = stage;
        self.version += 1;
    }

    /// The tests so far tell this.
    pub fn set_findings(&mut self, findings: Vec<Finding>) {
        self.findings = findings;
        self.version += 1;
    }

    /// People are told this.
    pub fn add_message(&mut self, text: &str) {
        self.messages.push(text.to_owned());
        self.messages.drain(..self.messages.len().saturating_sub(MAX_MESSAGES));
        self.version += 1;
    }

    /// The length of the stall that goes on, ns.
    pub fn stalled_ns(&self) -> Option<u64> {
        Some(self.snapshot.stalled_ns).filter(|ns| *ns >= STALLED_FROM_NS)
    }

    /// Latencies of the last tick.
    pub fn latency_now(&self) -> LiveLatency {
        LiveLatency::of(&LivePoint::of(&self.snapshot).latencies())
    }

    /// Latencies of the measured part of the test so far.
    pub fn latency_so_far(&self) -> LiveLatency {
        LiveLatency::of(&self.test_clat)
    }

    /// The devices in the last tick, the target's own first; those of a monitor as they are listed, without those that were not
    /// there or did not respond.
    pub fn devices(&self) -> Vec<DeviceLoad> {
        let watched = self.monitor.iter().flat_map(|monitor| &monitor.devices);
        let watched = watched.filter_map(|device| DeviceLoad::of_interval(&device.now));
        self.snapshot.devices.iter().filter_map(DeviceLoad::of).chain(watched).collect()
    }

    /// The machine in the last tick.
    pub fn host_shares(&self) -> Option<HostShares> {
        HostShares::of(self.snapshot.host.as_ref()?)
    }
}
