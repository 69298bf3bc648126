//! The live figures as OpenMetrics 1.0 text. Pure.

use std::io::{self, Write};

use fathom_record::{latency_bin, latency_bin_lower_edge};

use super::state::{LiveLatency, LiveStage, LiveState};
use crate::metrics_text::{Family, FamilyKind, LabelSet, Samples, end};

/// The `Content-Type` of the text.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

const RUNNING: Family =
    Family::gauge("fathom_live_running", "Whether a test runs: 1, and 0 between tests and before them.");
const TEST: Family = Family::gauge("fathom_live_test_number", "Number of the test, from 1.");
const TESTS: Family = Family::gauge("fathom_live_tests", "Number of tests; absent where that is unknown.");
const ELAPSED: Family =
    Family::gauge_in("seconds", "fathom_live_test_elapsed_seconds", "Time of the test so far.");
const LEFT: Family = Family::gauge_in(
    "seconds",
    "fathom_live_run_remaining_seconds",
    "Time until the run is expected to end; absent where that is unknown.",
);
const STALLED: Family = Family::gauge_in(
    "seconds",
    "fathom_live_stalled_seconds",
    "For how long nothing has completed although requests are in flight.",
);
const IOPS: Family = Family::gauge("fathom_live_iops", "I/Os per second over the last half second.");
const RATE: Family = Family::gauge_in(
    "bytes_per_second",
    "fathom_live_bytes_per_second",
    "Bandwidth over the last half second.",
);
const LATENCY: Family = Family::gauge_in(
    "seconds",
    "fathom_live_latency_seconds",
    "Completion latency (clat): of the last half second, and of the measured part of the test so far.",
);
const IN_FLIGHT: Family = Family::gauge("fathom_live_in_flight", "Requests in flight.");
const DEVICE_IOPS: Family =
    Family::gauge("fathom_live_device_iops", "I/Os per second at a device, by the kernel's counters.");
const DEVICE_RATE: Family = Family::gauge_in(
    "bytes_per_second",
    "fathom_live_device_bytes_per_second",
    "Bandwidth at a device, by the kernel's counters.",
);
const DEVICE_DEPTH: Family = Family::gauge("fathom_live_device_queue_depth", "Mean queue depth at a device.");
const DEVICE_BUSY: Family = Family::gauge_in(
    "ratio",
    "fathom_live_device_utilisation_ratio",
    "Share of the time with a request in flight at a device.",
);
const CPU: Family = Family::gauge_in(
    "ratio",
    "fathom_live_cpu_ratio",
    "Shares of the CPU time of the machine: busy, steal, iowait.",
);
const FINDINGS: Family =
    Family::gauge("fathom_live_findings", "Findings on the tests that have ended, by severity.");
const IOS: Family = Family {
    name: "fathom_live_ios",
    unit: "",
    help: "I/Os completed since the run began, ramps included.",
    kind: FamilyKind::Counter,
};
const BYTES: Family = Family {
    name: "fathom_live_bytes",
    unit: "bytes",
    help: "Bytes completed since the run began, ramps included.",
    kind: FamilyKind::Counter,
};
const FAMILIES: [Family; 18] = [
    RUNNING,
    TEST,
    TESTS,
    ELAPSED,
    LEFT,
    STALLED,
    IOPS,
    RATE,
    LATENCY,
    IN_FLIGHT,
    DEVICE_IOPS,
    DEVICE_RATE,
    DEVICE_DEPTH,
    DEVICE_BUSY,
    CPU,
    FINDINGS,
    IOS,
    BYTES,
];
const COMPLETION: Family = Family {
    name: "fathom_live_completion_latency_seconds",
    unit: "seconds",
    help: "Completion latencies (clat) since the run began, ramps included.",
    kind: FamilyKind::Histogram,
};

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
    add_figures(state, &test, &mut samples);
    add_machine(state, &run, &mut samples);
    for (index, direction) in DIRECTIONS.into_iter().enumerate() {
        let labels = run.and(&[("direction", direction)]);
        samples.add(&IOS, &labels, state.run_ios[index] as f64);
        samples.add(&BYTES, &labels, state.run_bytes[index] as f64);
    }
    samples.write(&FAMILIES, out)?;
    histogram(state, &run, out)?;
    end(out)
}

/// Where the run stands.
fn add_place(state: &LiveState, run: &LabelSet, test: &LabelSet, samples: &mut Samples) {
    let runs = matches!(state.stage, LiveStage::Ramp | LiveStage::Measuring);
    samples.add(&RUNNING, run, f64::from(u8::from(runs)));
    if let Some(live) = &state.test {
        samples.add(&TEST, run, live.number as f64);
        if let Some(of) = live.of {
            samples.add(&TESTS, run, of as f64);
        }
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

/// What the test does now. Nothing between tests: the rates of one that has ended are none of the present.
fn add_figures(state: &LiveState, test: &LabelSet, samples: &mut Samples) {
    if !matches!(state.stage, LiveStage::Ramp | LiveStage::Measuring) {
        return;
    }
    let snapshot = &state.snapshot;
    for (index, direction) in DIRECTIONS.into_iter().enumerate() {
        let labels = test.and(&[("direction", direction)]);
        samples.add(&IOPS, &labels, snapshot.iops[index]);
        samples.add(&RATE, &labels, snapshot.bytes_per_second[index]);
    }
    samples.add(&IN_FLIGHT, test, snapshot.in_flight as f64);
    samples.add(&STALLED, test, state.stalled_ns().unwrap_or(0) as f64 / NS);
    for (window, latency) in [("now", state.latency_now()), ("so_far", state.latency_so_far())] {
        let LiveLatency { p50, p90, p99, p999, max, .. } = latency;
        let statistics = [("p50", p50), ("p90", p90), ("p99", p99), ("p99.9", p999), ("max", max)];
        for (statistic, ns) in statistics.into_iter().filter_map(|(name, ns)| Some((name, ns?))) {
            let labels = test.and(&[("span", "clat"), ("statistic", statistic), ("window", window)]);
            samples.add(&LATENCY, &labels, ns as f64 / NS);
        }
    }
}

/// The devices' own view, and the machine.
fn add_machine(state: &LiveState, run: &LabelSet, samples: &mut Samples) {
    for load in state.devices() {
        let labels = run.and(&[("block_device", &load.name)]);
        samples.add(&DEVICE_IOPS, &labels, load.iops);
        let directions = [("read", load.read_bytes_per_second), ("write", load.write_bytes_per_second)];
        for (direction, rate) in directions {
            samples.add(&DEVICE_RATE, &labels.and(&[("direction", direction)]), rate);
        }
        samples.add(&DEVICE_DEPTH, &labels, load.queue_depth_mean);
        samples.add(&DEVICE_BUSY, &labels, load.utilisation);
    }
    if let Some(shares) = state.host_shares() {
        for (mode, share) in [("busy", shares.busy), ("steal", shares.steal), ("iowait", shares.iowait)] {
            samples.add(&CPU, &run.and(&[("mode", mode)]), share);
        }
    }
}

/// The latencies of the run, below limits that are edges of bins, so that each count is exact.
fn histogram(state: &LiveState, run: &LabelSet, out: &mut dyn Write) -> io::Result<()> {
    let name = COMPLETION.name;
    COMPLETION.head(out)?;
    let mut bins = state.run_clat.sparse().peekable();
    let mut below = 0;
    for power in LIMITS {
        let limit = latency_bin(1 << power);
        while let Some((_, count)) = bins.next_if(|(bin, _)| *bin < limit) {
            below += count;
        }
        // A bin holds its lower edge, so the highest value below the limit is 1 ns less.
        let edge = (latency_bin_lower_edge(limit) - 1) as f64 / NS;
        writeln!(out, "{name}_bucket{{{}}} {below}", run.and(&[("le", &edge.to_string())]))?;
    }
    let count = state.run_clat.samples();
    writeln!(out, "{name}_bucket{{{}}} {count}", run.and(&[("le", "+Inf")]))?;
    writeln!(out, "{name}_sum{{{run}}} {}", state.run_clat_sum_ns as f64 / NS)?;
    writeln!(out, "{name}_count{{{run}}} {count}")
}
