//! The metrics that only a monitor has: what is known of a device beyond the load that every command shows.

use std::io::{self, Write};

use fathom_analysis::monitor::OpActivity;

use super::super::{LiveDevice, LiveMonitor};
use super::{IN_FLIGHT, NS, STALLED, add_by_direction, add_latency, write_histogram};
use crate::metrics_text::{Family, LabelSet, Samples};

static IOS: Family = Family::counter(
    "fathom_live_device_ios",
    "",
    "I/Os that a device has completed since the monitor began, by the kernel's counters.",
);
static BYTES: Family = Family::counter(
    "fathom_live_device",
    "bytes",
    "Bytes that a device has moved since the monitor began, by the kernel's counters.",
);
static FLUSHES: Family = Family::counter(
    "fathom_live_device_flushes",
    "",
    "Flushes that a device has completed since the monitor began.",
);
static SIZE: Family = Family::gauge(
    "fathom_live_device_request_size",
    "bytes",
    "Mean size of the requests that completed in the last interval.",
);
static LOST: Family = Family::counter(
    "fathom_live_device_trace_lost_events",
    "",
    "Trace events that came faster than they were read.",
);
static PROCESS: Family = Family::gauge(
    "fathom_live_process",
    "bytes_per_second",
    "Bytes per second of a process that has a device open, or a file on it, on all devices together.",
);
static SERVICE: Family = Family::histogram(
    "fathom_live_device_service",
    "seconds",
    "Service times from issue to completion since the monitor began.",
);

/// Adds the devices of `monitor`.
pub(super) fn add(monitor: &LiveMonitor, run: &LabelSet, samples: &mut Samples) {
    for device in &monitor.devices {
        let labels = run.and(&[("block_device", device.name())]);
        add_device(device, &labels, samples);
        for owner in &device.now.owners {
            let process = owner.process.to_string();
            let labels = labels.and(&[("process", &process), ("process_name", &owner.command)]);
            let rates = [("read", owner.read_bytes_per_second), ("write", owner.write_bytes_per_second)];
            for (direction, rate) in rates {
                samples.add(&PROCESS, &labels.and(&[("direction", direction)]), rate);
            }
        }
    }
}

fn add_device(device: &LiveDevice, labels: &LabelSet, samples: &mut Samples) {
    let each = |ops: &fathom_model::PerOp<OpActivity>| [ops.read, ops.write, ops.trim];
    let done = each(&device.so_far.activity.ops);
    add_by_direction(samples, &IOS, labels, done.map(|op| op.ios as f64));
    add_by_direction(samples, &BYTES, labels, done.map(|op| op.bytes as f64));
    samples.add(&FLUSHES, labels, device.so_far.activity.flush.ios as f64);
    for (direction, op) in super::DIRECTIONS.into_iter().zip(each(&device.now.activity.ops)) {
        if let Some(bytes) = op.mean_bytes() {
            samples.add(&SIZE, &labels.and(&[("direction", direction)]), bytes);
        }
    }
    samples.add(&IN_FLIGHT, labels, device.now.in_flight.last as f64);
    samples.add(&STALLED, labels, device.now.stalled_ns.unwrap_or(0) as f64 / NS);
    if let Some(load) = &device.so_far.load {
        samples.add(&LOST, labels, load.lost as f64);
        add_latency(samples, labels, ("service", "now"), device.service_now());
        add_latency(samples, labels, ("service", "so_far"), device.service_so_far());
    }
}

/// Writes the service times of the devices whose requests are traced.
pub(super) fn write_histograms(monitor: &LiveMonitor, run: &LabelSet, out: &mut dyn Write) -> io::Result<()> {
    let mut traced = monitor.devices.iter().filter(|device| device.is_traced()).peekable();
    if traced.peek().is_some() {
        SERVICE.head(out)?;
    }
    for device in traced {
        let loads = device.so_far.load.iter().flat_map(|load| load.ops.values());
        let sum_ns = loads.map(|load| load.service.moments.sum).sum();
        let labels = run.and(&[("block_device", device.name())]);
        write_histogram(&SERVICE, &labels, &LiveDevice::service(&device.so_far), sum_ns, out)?;
    }
    Ok(())
}
