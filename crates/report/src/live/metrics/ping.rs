//! The metrics that only a ping has.

use super::super::LivePing;
use super::{NS, add_latency};
use crate::metrics_text::{Family, LabelSet, Samples};

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
pub(super) fn add(ping: &LivePing, test: &LabelSet, samples: &mut Samples) {
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
