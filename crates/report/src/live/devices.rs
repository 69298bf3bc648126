//! The device's own view and the state of the machine, from the kernel's counters of one tick.

use fathom_analysis::monitor::MonitorInterval;
use fathom_record::{DeviceTick, HostInterval};
use serde::Serialize;

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
