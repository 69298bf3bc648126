//! The metrics of the test that runs, and the counters of the run.

use super::super::state::LiveState;
use super::{IN_FLIGHT, NS, STALLED, add_by_direction, add_latency, is_running};
use crate::metrics_text::{Family, LabelSet, Samples};

static IOPS: Family = Family::gauge("fathom_live_iops", "", "I/Os per second over the last interval.");
static RATE: Family = Family::gauge("fathom_live", "bytes_per_second", "Bandwidth over the last interval.");
static IOS: Family =
    Family::counter("fathom_live_ios", "", "I/Os completed since the run began, ramps included.");
static BYTES: Family =
    Family::counter("fathom_live", "bytes", "Bytes completed since the run began, ramps included.");

/// Adds what the test does now. Nothing between tests: the rates of one that has ended are none of the present.
pub(super) fn add(state: &LiveState, run: &LabelSet, test: &LabelSet, samples: &mut Samples) {
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
