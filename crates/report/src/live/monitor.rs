//! Devices that are watched: the interval that ended, what all of them add up to, and their course.

use fathom_analysis::monitor::{MonitorInterval, Presence};
use fathom_model::Op;
use fathom_record::{Histogram, HostInterval};

use super::series::{LivePoint, LiveSeries};
use super::state::LiveLatency;

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
    pub(super) fn advance(&mut self, tick: &MonitorTick<'_>) {
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
