//! The lines of the live stream, `fathom.live/1`: one JSON object each. Pure.

use std::io::{self, Write};

use fathom_analysis::ping::PingCounts;
use fathom_record::ping::ServedCounts;
use fathom_record::{Finding, LatencySpan, TestRecord};
use serde::Serialize;

use super::LiveMonitor;
use super::LivePing;
use super::LivePoint;
use super::state::{LiveLatency, LiveStage, LiveState, LiveStep, LiveTest, StepFigures};
use super::{DeviceLoad, HostShares};
use crate::monitor::json::{MonitorLineDocument, document};

/// The `schema` of each line.
pub const SCHEMA: &str = "fathom.live/1";

/// The place of a line in its stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
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
    /// The run began.
    Begun,
    /// A file is laid out.
    Layout,
    /// A test began.
    TestBegun,
    /// The figures of the last tick.
    Snapshot,
    /// A test ended.
    TestEnded(&'a TestRecord),
    /// A finding appeared.
    Finding(&'a Finding),
    /// A message for people.
    Message(&'a str),
    /// The run ended.
    Ended,
}

#[derive(Serialize)]
struct Envelope<'a, T> {
    schema: &'static str,
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(flatten)]
    place: LinePlace,
    command: &'a str,
    target: &'a str,
    #[serde(flatten)]
    content: T,
}

#[derive(Serialize)]
struct LayoutDocument {
    done_bytes: u64,
    total_bytes: u64,
}

#[derive(Serialize)]
struct TestDocument<'a> {
    test: Option<&'a LiveTest>,
}

#[derive(Serialize)]
struct TestEndDocument<'a> {
    test: TestEnd<'a>,
}

#[derive(Serialize)]
struct TestEnd<'a> {
    id: &'a str,
    title: &'a str,
    status: &'static str,
    reason: Option<&'a str>,
    elapsed_ns: u64,
    /// Null where nothing completed.
    figures: Option<StepFigures>,
}

#[derive(Serialize)]
struct FindingDocument<'a> {
    finding: &'a Finding,
}

#[derive(Serialize)]
struct MessageDocument<'a> {
    text: &'a str,
}

#[derive(Serialize)]
struct Nothing {}

/// Points of a series that a follower begins with.
const MOST_FIRST_POINTS: usize = 128;

#[derive(Serialize)]
struct StateDocument<'a> {
    test: Option<&'a LiveTest>,
    stage: &'static str,
    run_remaining_ns: Option<u64>,
    steps: Vec<StepDocument<'a>>,
    /// Rates and latencies of the test so far.
    points: Vec<LivePoint>,
}

#[derive(Serialize)]
struct StepDocument<'a> {
    id: &'a str,
    title: &'a str,
    /// `planned`, `running`, or how it ended.
    state: &'static str,
    figures: Option<StepFigures>,
}

fn state_document(state: &LiveState) -> StateDocument<'_> {
    let steps = state.steps.iter().map(|LiveStep { id, title, state, figures }| StepDocument {
        id,
        title,
        state: state.name(),
        figures: *figures,
    });
    StateDocument {
        test: state.test.as_ref(),
        stage: state.stage.name(),
        run_remaining_ns: state.time_left.map(|left| left.0),
        steps: steps.collect(),
        points: state.series.columns(MOST_FIRST_POINTS),
    }
}

#[derive(Serialize)]
struct SnapshotDocument<'a> {
    test: Option<&'a LiveTest>,
    /// `ramp` or `measuring`.
    stage: &'static str,
    /// Time of the test so far.
    elapsed_ns: u64,
    /// Time until the test is expected to end; null where that is unknown.
    remaining_ns: Option<u64>,
    /// Time until the whole run is expected to end; null where that is unknown.
    run_remaining_ns: Option<u64>,
    /// What the rates count over.
    interval_ns: u64,
    workers: u32,
    running: u32,
    /// Requests in flight at the end of the interval.
    in_flight: u64,
    /// For how long nothing has completed although requests are in flight; null where that is no stall.
    stalled_ns: Option<u64>,
    read: OpDocument,
    write: OpDocument,
    trim: OpDocument,
    #[serde(flatten)]
    latency: SpanDocument,
    /// Figures that only a ping has.
    #[serde(skip_serializing_if = "Option::is_none")]
    ping: Option<PingDocument<'a>>,
    devices: Vec<DeviceLoad>,
    /// Shares of the CPU time of the machine; null in virtual time.
    cpu: Option<HostShares>,
}

/// Latencies under the name of what they span.
#[derive(Serialize)]
enum SpanDocument {
    #[serde(rename = "slat_ns")]
    Submission(LatencyDocument),
    #[serde(rename = "clat_ns")]
    Completion(LatencyDocument),
    #[serde(rename = "lat_ns")]
    Total(LatencyDocument),
}

#[derive(Serialize)]
struct PingDocument<'a> {
    operation: &'a str,
    block_size_bytes: u64,
    /// From one request to the next.
    interval_ns: u64,
    fixed_schedule: bool,
    requests: u64,
    errors: u64,
    again: u64,
    short: u64,
    timeouts: u64,
    served: ServedCounts,
    stall_count: u64,
    /// Intervals that have passed without their request; null without an interval.
    missed_intervals: Option<u64>,
    /// From the moments the requests were due; null without a fixed schedule.
    response_ns: Option<ResponseDocument>,
}

#[derive(Serialize)]
struct ResponseDocument {
    now: LiveLatency,
    so_far: LiveLatency,
}

/// The snapshot of a monitor, which makes no requests.
#[derive(Serialize)]
struct MonitorDocument<'a> {
    stage: &'static str,
    elapsed_ns: u64,
    run_remaining_ns: Option<u64>,
    interval_ns: u64,
    devices: Vec<DeviceLoad>,
    cpu: Option<HostShares>,
    /// The devices as in `monitor --json`.
    intervals: Vec<MonitorLineDocument<'a>>,
}

#[derive(Serialize)]
struct OpDocument {
    ios: u64,
    bytes: u64,
    iops: f64,
    bytes_per_second: f64,
}

#[derive(Serialize)]
struct LatencyDocument {
    /// Of the interval.
    now: LatencyNow,
    /// Of the measured part of the test.
    so_far: LiveLatency,
}

#[derive(Serialize)]
struct LatencyNow {
    mean: Option<u64>,
    #[serde(flatten)]
    percentiles: LiveLatency,
    /// Lower edge of each bin of the histogram in ns, and its count.
    bins: Vec<(u64, u64)>,
}

/// Writes `line` about `state`.
///
/// # Errors
/// Those of `out`.
pub fn write(line: LiveLine<'_>, state: &LiveState, place: LinePlace, out: &mut dyn Write) -> io::Result<()> {
    match line {
        LiveLine::State => envelope("state", state_document(state), state, place, out),
        LiveLine::Begun => envelope("begin", Nothing {}, state, place, out),
        LiveLine::Ended => envelope("end", Nothing {}, state, place, out),
        LiveLine::Layout => {
            let (done_bytes, total_bytes) = match state.stage {
                LiveStage::Layout(done, total) => (done, total),
                _ => (0, 0),
            };
            envelope("layout", LayoutDocument { done_bytes, total_bytes }, state, place, out)
        }
        LiveLine::TestBegun => {
            envelope("test_begin", TestDocument { test: state.test.as_ref() }, state, place, out)
        }
        LiveLine::TestEnded(test) => {
            let step = state.steps.iter().find(|step| step.id == test.id);
            let document = TestEnd {
                id: &test.id,
                title: &test.title,
                status: test.status.name(),
                reason: test.reason.as_deref(),
                elapsed_ns: test.elapsed_ns,
                figures: step.and_then(|step| step.figures),
            };
            envelope("test_end", TestEndDocument { test: document }, state, place, out)
        }
        LiveLine::Finding(finding) => envelope("finding", FindingDocument { finding }, state, place, out),
        LiveLine::Message(text) => envelope("message", MessageDocument { text }, state, place, out),
        LiveLine::Snapshot => match &state.monitor {
            Some(monitor) => envelope("snapshot", watched(state, monitor), state, place, out),
            None => envelope("snapshot", snapshot(state), state, place, out),
        },
    }
}

fn envelope(
    kind: &'static str,
    content: impl Serialize,
    LiveState { command, target, .. }: &LiveState,
    place: LinePlace,
    out: &mut dyn Write,
) -> io::Result<()> {
    let line = Envelope { schema: SCHEMA, kind, place, command, target, content };
    serde_json::to_writer(&mut *out, &line)?;
    out.write_all(b"\n")
}

fn snapshot(state: &LiveState) -> SnapshotDocument<'_> {
    let snapshot = &state.snapshot;
    let op = |index: usize| OpDocument {
        ios: snapshot.ios[index],
        bytes: snapshot.bytes[index],
        iops: snapshot.iops[index],
        bytes_per_second: snapshot.bytes_per_second[index],
    };
    let bins = LivePoint::of(snapshot).latency_bins;
    let edge = |(bin, count): (u16, u64)| (fathom_record::latency_bin_lower_edge(usize::from(bin)), count);
    SnapshotDocument {
        test: state.test.as_ref(),
        stage: state.stage.name(),
        elapsed_ns: snapshot.elapsed_ns,
        remaining_ns: snapshot.remaining_ns,
        run_remaining_ns: state.time_left.map(|left| left.0),
        interval_ns: snapshot.tick_ns,
        workers: snapshot.workers,
        running: snapshot.running,
        in_flight: snapshot.in_flight,
        stalled_ns: state.stalled_ns(),
        read: op(0),
        write: op(1),
        trim: op(2),
        latency: spanned(
            state.span,
            LatencyDocument {
                now: LatencyNow {
                    mean: snapshot.clat_mean_ns,
                    percentiles: state.latency_now(),
                    bins: bins.into_iter().map(edge).collect(),
                },
                so_far: state.latency_so_far(),
            },
        ),
        ping: state.ping.as_deref().map(ping),
        devices: state.devices(),
        cpu: state.host_shares(),
    }
}

fn spanned(span: LatencySpan, document: LatencyDocument) -> SpanDocument {
    match span {
        LatencySpan::Submission => SpanDocument::Submission(document),
        LatencySpan::Completion => SpanDocument::Completion(document),
        LatencySpan::Total => SpanDocument::Total(document),
    }
}

fn ping(ping: &LivePing) -> PingDocument<'_> {
    let PingCounts { requests, errors, again, short, timeouts, served, stall_count, .. } =
        ping.account.counts;
    let response = ping.response_now.zip(ping.response_so_far());
    PingDocument {
        operation: &ping.how.operation,
        block_size_bytes: ping.how.block_size_bytes,
        interval_ns: ping.how.interval_ns,
        fixed_schedule: ping.how.fixed_schedule,
        requests,
        errors,
        again,
        short,
        timeouts,
        served,
        stall_count,
        missed_intervals: ping.missed_intervals(),
        response_ns: response.map(|(now, so_far)| ResponseDocument { now, so_far }),
    }
}

fn watched<'a>(state: &LiveState, monitor: &'a LiveMonitor) -> MonitorDocument<'a> {
    MonitorDocument {
        stage: state.stage.name(),
        elapsed_ns: monitor.elapsed_ns,
        run_remaining_ns: state.time_left.map(|left| left.0),
        interval_ns: state.snapshot.tick_ns,
        devices: state.devices(),
        cpu: state.host_shares(),
        intervals: monitor.devices.iter().map(|device| document(&device.now)).collect(),
    }
}
