//! The document of `ping --json`, `fathom.ping/1`, and the lines of `ping --live ndjson`. Pure.

use std::collections::BTreeMap;
use std::io::{self, Write};

use fathom_analysis::ping::{Note, Ping, Sample, Stall, Window};
use fathom_analysis::ping_classes::classes;
use fathom_record::LatencySummary;
use serde::Serialize;
use serde_json::{Value, json};

use crate::{history, ping_text};

/// The `schema` of the document.
pub const SCHEMA: &str = "fathom.ping/1";

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    target: Target<'a>,
    operation: &'a str,
    block_size_bytes: u64,
    range_bytes: u64,
    direct: bool,
    flushed: bool,
    engine: &'a str,
    schedule: &'static str,
    interval_ns: u64,
    started: String,
    started_unix_ms: u64,
    elapsed_ns: u64,
    interrupted: Option<&'a str>,
    requests: u64,
    errors: u64,
    /// By the system's number of the error.
    errors_by_errno: BTreeMap<String, u64>,
    timeouts: u64,
    short: u64,
    again: u64,
    too_fast: u64,
    too_slow: u64,
    iops: f64,
    bytes_per_second: f64,
    /// Of the requests that count: without warm-up and what `-t` and `-T` leave out.
    time_ns: LatencySummary,
    /// From the moment a request was due; null where no schedule was kept.
    response_ns: Option<LatencySummary>,
    /// Of the first request, which is warm-up unless `-a 0`.
    first_ns: Option<u64>,
    served: BTreeMap<&'static str, u64>,
    device_view: Option<Value>,
    histogram: Vec<Value>,
    stall_count: u64,
    stalls: Vec<Value>,
    slo: Vec<Value>,
}

#[derive(Serialize)]
struct Target<'a> {
    path: &'a str,
    fstype: &'a str,
    device: &'a str,
    device_size_bytes: u64,
}

/// The document as a value.
pub fn document(ping: &Ping) -> Value {
    let (how, result) = (&ping.how, &ping.result);
    let counts = &result.counts;
    let wall = result.whole.wall_ns();
    let rate = |count: u64| if wall > 0 { count as f64 * 1e9 / wall as f64 } else { 0.0 };
    let document = Document {
        schema: SCHEMA,
        target: Target {
            path: &how.target.path,
            fstype: &how.target.fs_type,
            device: &how.target.device,
            device_size_bytes: how.target.device_bytes,
        },
        operation: how.operation,
        block_size_bytes: how.size,
        range_bytes: how.range,
        direct: how.direct,
        flushed: how.flushed,
        engine: &how.engine,
        schedule: if how.fixed { "fixed" } else { "waiting" },
        interval_ns: how.interval_ns,
        started: history::started(ping.started_unix_us / 1000),
        started_unix_ms: ping.started_unix_us / 1000,
        elapsed_ns: ping.elapsed_ns,
        interrupted: ping.interrupted.as_deref(),
        requests: counts.requests,
        errors: counts.failed(),
        errors_by_errno: counts.errors.iter().map(|(errno, count)| (errno.to_string(), *count)).collect(),
        timeouts: counts.timeouts,
        short: counts.short,
        again: counts.again,
        too_fast: result.whole.too_fast,
        too_slow: result.whole.too_slow,
        iops: rate(result.whole.all),
        bytes_per_second: rate(result.whole.all_bytes),
        time_ns: result.time.summary(),
        response_ns: result.response.as_ref().map(|response| response.summary()),
        first_ns: counts.first_ns,
        served: BTreeMap::from([("device", counts.device), ("cache", counts.cache), ("hole", counts.hole)]),
        device_view: ping.device.as_ref().map(|device| {
            json!({"name": device.name, "reads": device.reads, "writes": device.writes, "flushes": device.flushes})
        }),
        histogram: classes(&result.time)
            .map(|(from, to, count)| json!({"from_ns": from, "below_ns": to, "samples": count}))
            .collect(),
        stall_count: counts.stall_count,
        stalls: counts.stalls.iter().map(stall).collect(),
        slo: ping
            .verdicts
            .iter()
            .map(|verdict| {
                json!({"objective": verdict.objective, "observed_ns": verdict.observed_ns, "met": verdict.met,
                       "low_sample": verdict.low_sample})
            })
            .collect(),
    };
    serde_json::to_value(document).unwrap_or_default()
}

fn stall(stall: &Stall) -> Value {
    json!({"begin_ns": stall.begin_ns, "length_ns": stall.length_ns, "offset_bytes": stall.offset,
           "unanswered": stall.unanswered})
}

/// Writes the document, indented.
///
/// # Errors
/// Those of `out`.
pub fn render(ping: &Ping, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, &document(ping))?;
    out.write_all(b"\n")
}

/// The live line of a request, answered at `unix_us`.
pub fn sample_line(sample: &Sample, note: Option<Note>, unix_us: u64) -> String {
    let errno = (sample.result < 0).then_some(-sample.result);
    json!({
        "event": "request",
        "request": sample.number,
        "unix_ms": unix_us / 1000,
        "elapsed_ns": sample.at_ns,
        "operation": sample.op.name(),
        "offset_bytes": sample.offset,
        "size_bytes": sample.len,
        "time_ns": sample.time_ns,
        "response_ns": sample.response_ns,
        "served": sample.served.map(|served| served.word()),
        "note": note.map(|note| note.words()),
        "errno": errno,
        "error": errno.map(|errno| ping_text::error(errno as i32)),
    })
    .to_string()
}

/// The live line of a period.
pub fn period_line(period: &Window) -> String {
    let moments = &period.time;
    json!({
        "event": "period",
        "begin_ns": period.begin_ns,
        "end_ns": period.end_ns,
        "requests": period.all,
        "time_ns": {"samples": moments.count, "min": moments.min_or_zero(), "mean": moments.mean(),
                    "max": moments.max},
    })
    .to_string()
}

/// The live line of a request that has no answer yet.
pub fn stalled_line(at: &Stall) -> String {
    json!({"event": "stalled", "begin_ns": at.begin_ns, "length_ns": at.length_ns, "offset_bytes": at.offset})
        .to_string()
}

/// The live line of its answer.
pub fn answered_line(length_ns: u64) -> String {
    json!({"event": "answered", "length_ns": length_ns}).to_string()
}

/// The last live line: the document.
pub fn summary_line(ping: &Ping) -> String {
    let mut document = document(ping);
    if let Some(fields) = document.as_object_mut() {
        fields.insert("event".to_owned(), Value::from("summary"));
    }
    document.to_string()
}
