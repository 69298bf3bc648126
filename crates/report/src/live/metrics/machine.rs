//! The metrics of the devices, by the kernel's counters, and of the machine.

use super::super::state::LiveState;
use super::{NS, add_by_direction};
use crate::metrics_text::{Family, LabelSet, Samples};

static IOPS: Family =
    Family::gauge("fathom_live_device_iops", "", "I/Os per second at a device, by the kernel's counters.");
static RATE: Family = Family::gauge(
    "fathom_live_device",
    "bytes_per_second",
    "Bandwidth at a device, by the kernel's counters.",
);
static AWAIT: Family = Family::gauge(
    "fathom_live_device_await",
    "seconds",
    "Mean time of a read or write in the queue and at a device, by the kernel's counters.",
);
static DEPTH: Family = Family::gauge("fathom_live_device_queue_depth", "", "Mean queue depth at a device.");
static BUSY: Family = Family::gauge(
    "fathom_live_device_utilisation",
    "ratio",
    "Share of the time with a request in flight at a device.",
);
static CPU: Family =
    Family::gauge("fathom_live_cpu", "ratio", "Shares of the CPU time of the machine: busy, steal, iowait.");

/// Adds the devices' own view, and the machine.
pub(super) fn add(state: &LiveState, run: &LabelSet, samples: &mut Samples) {
    for load in state.devices() {
        let labels = run.and(&[("block_device", &load.name)]);
        add_by_direction(samples, &IOPS, &labels, [load.read_iops, load.write_iops, load.trim_iops]);
        let rates = [("read", load.read_bytes_per_second), ("write", load.write_bytes_per_second)];
        for (direction, rate) in rates {
            samples.add(&RATE, &labels.and(&[("direction", direction)]), rate);
        }
        if let Some(ns) = load.await_mean_ns {
            samples.add(&AWAIT, &labels, ns / NS);
        }
        samples.add(&DEPTH, &labels, load.queue_depth_mean);
        samples.add(&BUSY, &labels, load.utilisation);
    }
    if let Some(shares) = state.host_shares() {
        for (mode, share) in [("busy", shares.busy), ("steal", shares.steal), ("iowait", shares.iowait)] {
            samples.add(&CPU, &run.and(&[("mode", mode)]), share);
        }
    }
}
