//! The live figures as OpenMetrics 1.0 text. Pure.

mod machine;
mod monitor;
mod ping;
mod running;

use std::io::{self, Write};

use fathom_record::{Histogram, LatencySpan, latency_bin, latency_bin_lower_edge};

use super::state::{LiveLatency, LiveStage, LiveState};
use crate::metrics_text::{Family, LabelSet, Samples, end};

/// The `Content-Type` of the text.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

static RUNNING: Family =
    Family::gauge("fathom_live_running", "", "Whether a test runs: 1, and 0 between tests and before them.");
static TEST: Family = Family::gauge("fathom_live_test_number", "", "Number of the test, from 1.");
static TESTS: Family =
    Family::gauge("fathom_live_tests", "", "Number of tests; absent where that is unknown.");
static ELAPSED: Family = Family::gauge("fathom_live_test_elapsed", "seconds", "Time of the test so far.");
static LEFT: Family = Family::gauge(
    "fathom_live_run_remaining",
    "seconds",
    "Time until the run is expected to end; absent where that is unknown.",
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
        monitor::add(monitor, &run, &mut samples);
    } else {
        running::add(state, &run, &test, &mut samples);
    }
    if let Some(ping) = &state.ping {
        ping::add(ping, &test, &mut samples);
    }
    machine::add(state, &run, &mut samples);
    samples.write(out)?;
    if let Some(monitor) = &state.monitor {
        monitor::write_histograms(monitor, &run, out)?;
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
