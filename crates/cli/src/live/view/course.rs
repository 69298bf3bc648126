//! What the charts show: the course of a test, or of a device that is watched.

use fathom_report::live::{LiveDevice, LiveSeries, LiveState};

/// Rates and latencies over time, and the latest of them.
pub struct Course<'a> {
    /// `None` where nothing is known yet.
    pub series: Option<&'a LiveSeries>,
    /// When it is expected to end, ns.
    pub planned_ns: u64,
    /// IOPS now: read, write, trim.
    pub iops: [f64; 3],
    /// Bandwidth now.
    pub bytes_per_second: f64,
    /// What the latencies span.
    pub span: &'static str,
    /// Mean latency now, ns.
    pub mean_ns: Option<u64>,
    /// There is a chart of rates.
    pub has_rates: bool,
    /// There is a chart of the distribution of latencies.
    pub has_distribution: bool,
    /// Latencies are known one by one, not only as means.
    pub has_bins: bool,
}

impl<'a> Course<'a> {
    /// That of `state`; of a monitor, that of `device`, or of the one that has done most.
    pub fn of(state: &'a LiveState, device: Option<&str>) -> Course<'a> {
        let planned_ns = state.snapshot.elapsed_ns + state.snapshot.remaining_ns.unwrap_or(0);
        if let Some(monitor) = &state.monitor {
            return Course::of_device(monitor.shown(device), planned_ns);
        }
        let snapshot = &state.snapshot;
        Course {
            series: Some(&state.series),
            planned_ns,
            iops: snapshot.iops,
            bytes_per_second: snapshot.bytes_per_second.iter().sum(),
            span: state.span.name(),
            mean_ns: snapshot.clat_mean_ns,
            has_rates: state.ping.is_none(),
            has_distribution: true,
            has_bins: true,
        }
    }

    fn of_device(device: Option<&'a LiveDevice>, planned_ns: u64) -> Course<'a> {
        let is_traced = device.is_some_and(LiveDevice::is_traced);
        let Some(now) = device.map(|device| &device.now) else {
            return Course {
                series: None,
                planned_ns,
                iops: [0.0; 3],
                bytes_per_second: 0.0,
                span: "await",
                mean_ns: None,
                has_rates: true,
                has_distribution: false,
                has_bins: false,
            };
        };
        let ops = &now.activity.ops;
        let mean_ns = if is_traced {
            let loads = || now.load.iter().flat_map(|load| load.ops.values());
            let count: u128 = loads().map(|load| u128::from(load.service.moments.count)).sum();
            loads().map(|load| load.service.moments.sum).sum::<u128>().checked_div(count).map(|ns| ns as u64)
        } else {
            now.activity.total().await_ns().map(|ns| ns as u64)
        };
        let per_second = |count: u64| now.per_second(count).unwrap_or(0.0);
        Course {
            series: device.map(|device| &device.series),
            planned_ns,
            iops: [ops.read.ios, ops.write.ios, ops.trim.ios].map(per_second),
            bytes_per_second: per_second(now.activity.total().bytes),
            span: if is_traced { "service" } else { "await" },
            mean_ns,
            has_rates: true,
            has_distribution: is_traced,
            has_bins: is_traced,
        }
    }
}
