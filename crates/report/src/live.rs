//! A run while it goes on: its state, as the full-screen view and the live streams show it, and the texts of the streams.
//!
//! A [`LiveState`] grows by the events of the run; nothing here reads a clock or keeps more than a bounded number of points.

mod followed;
pub mod json;
pub mod metrics;
mod state;
#[cfg(test)]
mod tests;

use fathom_analysis::monitor::{MonitorInterval, Presence};
use fathom_analysis::ping::{PingAccount, PingHow, PingProgress};
use fathom_model::{Op, PerOp};
use fathom_record::{DeviceTick, Histogram, HostInterval, Latency, Snapshot};
use serde::{Deserialize, Serialize};

pub use followed::FollowedRun;
pub use state::{
    LiveLatency, LiveStage, LiveState, LiveStep, LiveStepState, LiveTest, STALLED_FROM_NS, StepFigures,
};

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
