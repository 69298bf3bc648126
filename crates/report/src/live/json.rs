//! The lines of the live stream, `fathom.live/1`: one JSON object each, which [`super::FollowedRun`] reads again. Pure.

use std::io::{self, Write};

use fathom_analysis::ping::PingCounts;
use fathom_record::{Finding, LatencySpan, TestRecord};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{LiveLatency, LiveStage, LiveState};
use super::{LiveMonitor, LivePing, LivePoint};
use crate::document::object;
use crate::monitor::json::document;

/// The `schema` of each line.
pub const SCHEMA: &str = "fathom.live/1";
/// Points of a series that a follower begins with.
const MAX_FIRST_POINTS: usize = 128;

/// The place of a line in its stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinePlace {
    /// Its number, from 1; a line that was dropped leaves a gap.
    pub line: u64,
    /// Lines dropped so far because the reader was slow.
    pub dropped: u64,
}

/// What a line tells.
#[derive(Clone, Copy, Debug)]
pub enum LiveLine<'a> {
    /// The run as it stands, for who begins to follow it.
    State,
    Begun,
    /// A file is laid out.
    Layout,
    TestBegun,
    /// The figures of the last tick.
    Snapshot,
    TestEnded(&'a TestRecord),
    Finding(&'a Finding),
    /// A message for people.
    Message(&'a str),
    Ended,
}

/// What was done of one operation in an interval.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct OpLine {
    pub ios: u64,
    pub bytes: u64,
    pub iops: f64,
    pub bytes_per_second: f64,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct LatencyLine {
    /// Of the interval.
    pub now: LatencyNow,
    /// Of the measured part of the test.
    pub so_far: LiveLatency,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct LatencyNow {
    mean: Option<u64>,
    #[serde(flatten)]
    pub percentiles: LiveLatency,
    /// Lower edge of each bin of the histogram in ns, and its count.
    pub bins: Vec<(u64, u64)>,
}

/// Writes `line` about `state`.
///
/// # Errors
/// Those of `out`.
pub fn write(line: LiveLine<'_>, state: &LiveState, place: LinePlace, out: &mut dyn Write) -> io::Result<()> {
    let (kind, content) = match line {
        LiveLine::State => ("state", whole(state)),
        LiveLine::Begun => ("begin", json!({})),
        LiveLine::Ended => ("end", json!({})),
        LiveLine::Layout => {
            let (done, total) = match state.stage {
                LiveStage::Layout(done, total) => (done, total),
                _ => (0, 0),
            };
            ("layout", json!({ "done_bytes": done, "total_bytes": total }))
        }
        LiveLine::TestBegun => ("test_begin", json!({ "test": state.test })),
        LiveLine::TestEnded(test) => {
            let step = state.steps.iter().find(|step| step.id == test.id);
            let test = json!({
                "id": test.id,
                "title": test.title,
                "status": test.status.name(),
                "reason": test.reason,
                "elapsed_ns": test.elapsed_ns,
                "figures": step.and_then(|step| step.figures),
            });
            ("test_end", json!({ "test": test }))
        }
        LiveLine::Finding(finding) => ("finding", json!({ "finding": finding })),
        LiveLine::Message(text) => ("message", json!({ "text": text })),
        LiveLine::Snapshot => match &state.monitor {
            Some(monitor) => ("snapshot", watched(state, monitor)),
            None => ("snapshot", snapshot(state)),
        },
    };
    let head = json!({
        "schema": SCHEMA,
        "type": kind,
        "line": place.line,
        "dropped": place.dropped,
        "command": state.command,
        "target": state.target,
    });
    serde_json::to_writer(&mut *out, &object([head, content]))?;
    out.write_all(b"\n")
}

/// A time that is left is null while it is unknown, here and below.
fn whole(state: &LiveState) -> Value {
    let steps = state.steps.iter().map(|step| {
        json!({ "id": step.id, "title": step.title, "state": step.state.name(), "figures": step.figures })
    });
    json!({
        "test": state.test,
        "stage": state.stage.name(),
        "run_remaining_ns": state.time_left.map(|left| left.0),
        "steps": steps.collect::<Vec<_>>(),
        "points": state.series.columns(MAX_FIRST_POINTS),
    })
}

fn snapshot(state: &LiveState) -> Value {
    let snapshot = &state.snapshot;
    let op = |index: usize| OpLine {
        ios: snapshot.ios[index],
        bytes: snapshot.bytes[index],
        iops: snapshot.iops[index],
        bytes_per_second: snapshot.bytes_per_second[index],
    };
    let bins = LivePoint::of(snapshot).latency_bins;
    let edge = |(bin, count): (u16, u64)| (fathom_record::latency_bin_lower_edge(usize::from(bin)), count);
    let now = LatencyNow {
        mean: snapshot.clat_mean_ns,
        percentiles: state.latency_now(),
        bins: bins.into_iter().map(edge).collect(),
    };
    let span = match state.span {
        LatencySpan::Submission => "slat_ns",
        LatencySpan::Completion => "clat_ns",
        LatencySpan::Total => "lat_ns",
    };
    let mut fields = json!({
        "test": state.test,
        "stage": state.stage.name(),
        "elapsed_ns": snapshot.elapsed_ns,
        "remaining_ns": snapshot.remaining_ns,
        "run_remaining_ns": state.time_left.map(|left| left.0),
        "interval_ns": snapshot.tick_ns,
        "workers": snapshot.workers,
        "running": snapshot.running,
        "in_flight": snapshot.in_flight,
        "stalled_ns": state.stalled_ns(),
        "read": op(0),
        "write": op(1),
        "trim": op(2),
        (span): LatencyLine { now, so_far: state.latency_so_far() },
    });
    if let Some(live) = state.ping.as_deref() {
        fields["ping"] = ping(live);
    }
    fields["devices"] = json!(state.devices());
    fields["cpu"] = json!(state.host_shares());
    fields
}

/// Figures that only a ping has; null without an interval or a fixed schedule that they need.
fn ping(ping: &LivePing) -> Value {
    let PingCounts { requests, errors, again, short, timeouts, served, stall_count, .. } =
        ping.account.counts;
    let response = ping.response_now.zip(ping.response_so_far());
    json!({
        "operation": ping.how.operation,
        "block_size_bytes": ping.how.block_size_bytes,
        "interval_ns": ping.how.interval_ns,
        "fixed_schedule": ping.how.fixed_schedule,
        "requests": requests,
        "errors": errors,
        "again": again,
        "short": short,
        "timeouts": timeouts,
        "served": served,
        "stall_count": stall_count,
        "missed_intervals": ping.missed_intervals(),
        "response_ns": response.map(|(now, so_far)| json!({ "now": now, "so_far": so_far })),
    })
}

/// The snapshot of a monitor, which makes no requests; its intervals are as in `monitor --json`.
fn watched(state: &LiveState, monitor: &LiveMonitor) -> Value {
    let intervals = monitor.devices.iter().map(|device| document(&device.now));
    json!({
        "stage": state.stage.name(),
        "elapsed_ns": monitor.elapsed_ns,
        "run_remaining_ns": state.time_left.map(|left| left.0),
        "interval_ns": state.snapshot.tick_ns,
        "devices": state.devices(),
        "cpu": state.host_shares(),
        "intervals": intervals.collect::<Vec<_>>(),
    })
}
