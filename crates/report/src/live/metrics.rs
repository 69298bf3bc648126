//! The live figures as OpenMetrics 1.0 text. Pure.

use std::io::{self, Write};

use fathom_analysis::monitor::OpActivity;
use fathom_record::{Histogram, LatencySpan, latency_bin, latency_bin_lower_edge};

use super::{LiveDevice, LiveMonitor, LivePing};
use super::{LiveLatency, LiveStage, LiveState};
use crate::metrics_text::{Family, LabelSet, Samples, end};

/// The `Content-Type` of the text.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

static RUNNING: Family =
    Family::gauge("fathom_live_running", "", "Whether a test runs: 1, and 0 between tests and before them.");
static TEST: Family = Family::gauge("fathom_live_test_number", "", "Number of the test, from 1.");
static TESTS: Family = Family::gauge("fathom_live_tests", "", "Number of tests; absent if unknown.");
static ELAPSED: Family = Family::gauge("fathom_live_test_elapsed", "seconds", "Time of the test so far.");
static LEFT: Family = Family::gauge(
    "fathom_live_run_remaining",
    "seconds",
    "Time until the run is expected to end; absent if unknown.",
);
static FINDINGS: Family =
    Family::gauge("fathom_live_findings", "", "Findings on the tests that have ended, by severity.");
static LATENCY: Family = Family::gauge(
    "fathom_live_latency",
    "seconds",
    "Latency of the last interval (now) and of the measured part of the test (so_far); span: completion (clat), total (lat), \
     response from the due time (response), service at the device (service).",
);
static STALLED: Family = Family::gauge(
    "fathom_live_stalled",
    "seconds",
    "For how long nothing has completed although requests are in flight.",
);
static IN_FLIGHT: Family = Family::gauge("fathom_live_in_flight", "", "Requests in flight.");
static COMPLETION: Family = Family::histogram(
    "fathom_live_completion_latency",
    "seconds",
    "Completion latencies (clat) since the run began, ramps included.",
);
static TOTAL: Family =
    Family::histogram("fathom_live_total_latency", "seconds", "Total latencies (lat) since the run began.");

const NS: f64 = 1e9;
/// Upper limits of the histogram: powers of two from 1 µs to 69 s.
const LIMITS: std::ops::RangeInclusive<u32> = 10..=36;
const DIRECTIONS: [&str; 3] = ["read", "write", "trim"];

/// Writes the figures of `state`.
///
/// # Errors
/// Those of `out`.
pub fn render(state: &LiveState, out: &mut dyn Write) -> io::Result<()> {
    let run = LabelSet::of(&[
        ("host", &state.host),
        ("device", &state.device),
        ("target", &state.target),
        ("volume_type", &state.volume_type),
        ("command", &state.command),
    ])
    .with_users(&state.labels);
    let test = state.test.as_ref().map_or("", |test| test.id.as_str());
    let test = run.and(&[("test", test)]);
    let mut samples = Samples::default();
    add_place(state, &run, &test, &mut samples);
    if let Some(monitor) = &state.monitor {
        add_monitor(monitor, &run, &mut samples);
    } else {
        add_running(state, &run, &test, &mut samples);
    }
    if let Some(ping) = &state.ping {
        add_ping(ping, &test, &mut samples);
    }
    add_machine(state, &run, &mut samples);
    samples.write(out)?;
    if let Some(monitor) = &state.monitor {
        write_histograms(monitor, &run, out)?;
    } else {
        let family = if state.span == LatencySpan::Total { &TOTAL } else { &COMPLETION };
        family.head(out)?;
        write_histogram(family, &run, &state.run_clat, state.run_clat_sum_ns, out)?;
    }
    end(out)
}

/// Where the run stands.
fn add_place(state: &LiveState, run: &LabelSet, test: &LabelSet, samples: &mut Samples) {
    samples.add(&RUNNING, run, f64::from(u8::from(is_running(state))));
    if let Some(live) = &state.test {
        samples.add(&TEST, run, live.number as f64);
        if let Some(of) = live.of {
            samples.add(&TESTS, run, of as f64);
        }
    }
    if state.test.is_some() || state.monitor.is_some() {
        samples.add(&ELAPSED, test, state.snapshot.elapsed_ns as f64 / NS);
    }
    if let Some(left) = state.time_left {
        samples.add(&LEFT, run, left.as_secs_f64());
    }
    for severity in ["info", "warning", "error"] {
        let count = state.findings.iter().filter(|finding| finding.severity.name() == severity).count();
        samples.add(&FINDINGS, &run.and(&[("severity", severity)]), count as f64);
    }
}

fn is_running(state: &LiveState) -> bool {
    matches!(state.stage, LiveStage::Ramp | LiveStage::Measuring)
}

/// The percentiles of `latency`, which spans `span`, as those of `window`.
fn add_latency(samples: &mut Samples, labels: &LabelSet, (span, window): (&str, &str), latency: LiveLatency) {
    let LiveLatency { p50, p90, p99, p999, max, .. } = latency;
    let statistics = [("p50", p50), ("p90", p90), ("p99", p99), ("p99.9", p999), ("max", max)];
    for (statistic, ns) in statistics.into_iter().filter_map(|(name, ns)| Some((name, ns?))) {
        let labels = labels.and(&[("span", span), ("statistic", statistic), ("window", window)]);
        samples.add(&LATENCY, &labels, ns as f64 / NS);
    }
}

/// A sample for each data operation.
fn add_by_direction(samples: &mut Samples, family: &'static Family, labels: &LabelSet, values: [f64; 3]) {
    for (direction, value) in DIRECTIONS.into_iter().zip(values) {
        samples.add(family, &labels.and(&[("direction", direction)]), value);
    }
}

/// Latencies below limits that are edges of bins, so that each count is exact.
fn write_histogram(
    family: &Family,
    labels: &LabelSet,
    latencies: &Histogram,
    sum_ns: u128,
    out: &mut dyn Write,
) -> io::Result<()> {
    let name = family.name();
    let mut bins = latencies.sparse().peekable();
    let mut below = 0;
    for power in LIMITS {
        let limit = latency_bin(1 << power);
        while let Some((_, count)) = bins.next_if(|(bin, _)| *bin < limit) {
            below += count;
        }
        // A bin holds its lower edge, so the highest value below the limit is 1 ns less.
        let edge = (latency_bin_lower_edge(limit) - 1) as f64 / NS;
        writeln!(out, "{name}_bucket{{{}}} {below}", labels.and(&[("le", &edge.to_string())]))?;
    }
    let count = latencies.samples();
    writeln!(out, "{name}_bucket{{{}}} {count}", labels.and(&[("le", "+Inf")]))?;
    writeln!(out, "{name}_sum{{{labels}}} {}", sum_ns as f64 / NS)?;
    writeln!(out, "{name}_count{{{labels}}} {count}")
}

static DEVICE_IOPS: Family =
    Family::gauge("fathom_live_device_iops", "", "I/Os per second at a device, by the kernel's counters.");
static DEVICE_RATE: Family = Family::gauge(
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
fn add_machine(state: &LiveState, run: &LabelSet, samples: &mut Samples) {
    for load in state.devices() {
        let labels = run.and(&[("block_device", &load.name)]);
        add_by_direction(samples, &DEVICE_IOPS, &labels, [load.read_iops, load.write_iops, load.trim_iops]);
        let rates = [("read", load.read_bytes_per_second), ("write", load.write_bytes_per_second)];
        for (direction, rate) in rates {
            samples.add(&DEVICE_RATE, &labels.and(&[("direction", direction)]), rate);
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

static DEVICE_IOS: Family = Family::counter(
    "fathom_live_device_ios",
    "",
    "I/Os that a device has completed since the monitor began, by the kernel's counters.",
);
static DEVICE_BYTES: Family = Family::counter(
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
fn add_monitor(monitor: &LiveMonitor, run: &LabelSet, samples: &mut Samples) {
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
    add_by_direction(samples, &DEVICE_IOS, labels, done.map(|op| op.ios as f64));
    add_by_direction(samples, &DEVICE_BYTES, labels, done.map(|op| op.bytes as f64));
    samples.add(&FLUSHES, labels, device.so_far.activity.flush.ios as f64);
    for (direction, op) in DIRECTIONS.into_iter().zip(each(&device.now.activity.ops)) {
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
fn write_histograms(monitor: &LiveMonitor, run: &LabelSet, out: &mut dyn Write) -> io::Result<()> {
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

static REQUESTS: Family = Family::counter("fathom_live_requests", "", "Requests that were made.");
static ERRORS: Family = Family::counter("fathom_live_errors", "", "Requests that failed.");
static TIMEOUTS: Family = Family::counter(
    "fathom_live_timeouts",
    "",
    "Requests that took longer than the time-out, or were never answered.",
);
static STALLS: Family =
    Family::counter("fathom_live_stalls", "", "Requests that took long enough to be reported.");
static INTERVAL: Family =
    Family::gauge("fathom_live_request_interval", "seconds", "Time from one request to the next.");
static MISSED: Family = Family::gauge(
    "fathom_live_missed_intervals",
    "",
    "Intervals that have passed without their request: never made, or with a fixed schedule still to be made.",
);

/// Adds the figures of `ping`.
fn add_ping(ping: &LivePing, test: &LabelSet, samples: &mut Samples) {
    let counts = &ping.account.counts;
    for (family, count) in [
        (&REQUESTS, counts.requests),
        (&ERRORS, counts.errors),
        (&TIMEOUTS, counts.timeouts),
        (&STALLS, counts.stall_count),
    ] {
        samples.add(family, test, count as f64);
    }
    if let Some(missed) = ping.missed_intervals() {
        samples.add(&INTERVAL, test, ping.how.interval_ns as f64 / NS);
        samples.add(&MISSED, test, missed as f64);
    }
    for (window, latency) in [("now", ping.response_now), ("so_far", ping.response_so_far())] {
        if let Some(latency) = latency {
            add_latency(samples, test, ("response", window), latency);
        }
    }
}

static IOPS: Family = Family::gauge("fathom_live_iops", "", "I/Os per second over the last interval.");
static RATE: Family = Family::gauge("fathom_live", "bytes_per_second", "Bandwidth over the last interval.");
static IOS: Family =
    Family::counter("fathom_live_ios", "", "I/Os completed since the run began, ramps included.");
static BYTES: Family =
    Family::counter("fathom_live", "bytes", "Bytes completed since the run began, ramps included.");

/// Adds what the test does now. Nothing between tests: the rates of one that has ended are none of the present.
fn add_running(state: &LiveState, run: &LabelSet, test: &LabelSet, samples: &mut Samples) {
    if is_running(state) {
        let snapshot = &state.snapshot;
        add_by_direction(samples, &IOPS, test, snapshot.iops);
        add_by_direction(samples, &RATE, test, snapshot.bytes_per_second);
        samples.add(&IN_FLIGHT, test, snapshot.in_flight as f64);
        samples.add(&STALLED, test, state.stalled_ns().unwrap_or(0) as f64 / NS);
        let span = state.span.name();
        add_latency(samples, test, (span, "now"), state.latency_now());
        add_latency(samples, test, (span, "so_far"), state.latency_so_far());
    }
    add_by_direction(samples, &IOS, run, state.run_ios.map(|ios| ios as f64));
    add_by_direction(samples, &BYTES, run, state.run_bytes.map(|bytes| bytes as f64));
}
