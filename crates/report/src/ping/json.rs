//! The document of `ping --json`, `fathom.ping/1`, and the lines of `ping --live ndjson`. Pure.

use std::collections::BTreeMap;
use std::io::{self, Write};

use fathom_analysis::criterion::ObjectiveVerdict;
use fathom_analysis::ping::classes::classes;
use fathom_analysis::ping::{Note, Ping, PingSample, PingStall, PingWindow};
use fathom_record::LatencySummary;
use serde::Serialize;

use crate::document;
use crate::{history, ping::text as ping_text};

/// The `schema` of the document.
pub const SCHEMA: &str = "fathom.ping/1";

#[derive(Serialize)]
struct PingDocument<'a> {
    schema: &'static str,
    target: PingTargetDocument<'a>,
    operation: &'a str,
    block_size_bytes: u64,
    range_bytes: u64,
    direct: bool,
    flushed: bool,
    engine: &'a str,
    schedule: &'static str,
    interval_ns: u64,
    /// Null on virtual time.
    started: Option<String>,
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
    served: ServedDocument,
    device_view: Option<DeviceView<'a>>,
    histogram: Vec<LatencyClassDocument>,
    stall_count: u64,
    stalls: Vec<StallView>,
    stuck_thread: Option<u32>,
    slo: Vec<ObjectiveDocument<'a>>,
    notes: &'a [String],
}

/// What the kernel counted at the device meanwhile, whoever asked.
#[derive(Serialize)]
struct DeviceView<'a> {
    name: &'a str,
    reads: u64,
    writes: u64,
    flushes: u64,
}

#[derive(Serialize)]
struct LatencyClassDocument {
    from_ns: u64,
    below_ns: u64,
    samples: u64,
}

#[derive(Serialize)]
struct StallView {
    begin_ns: u64,
    length_ns: u64,
    offset_bytes: u64,
    unanswered: bool,
}

#[derive(Serialize)]
struct ObjectiveDocument<'a> {
    objective: &'a str,
    observed_ns: Option<u64>,
    met: Option<bool>,
    low_sample: bool,
}

#[derive(Serialize)]
struct ServedDocument {
    device: u64,
    cache: u64,
    hole: u64,
}

#[derive(Serialize)]
struct PingTargetDocument<'a> {
    path: &'a str,
    fstype: &'a str,
    device: &'a str,
    device_size_bytes: u64,
}

fn document(ping: &Ping) -> PingDocument<'_> {
    let (how, result) = (&ping.how, &ping.result);
    let counts = &result.counts;
    let wall = result.whole.wall_ns();
    let rate = |count: u64| if wall > 0 { count as f64 * 1e9 / wall as f64 } else { 0.0 };
    PingDocument {
        schema: SCHEMA,
        target: PingTargetDocument {
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
        started: (ping.started_unix_us > 0).then(|| history::started(ping.started_unix_us / 1000)),
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
        served: ServedDocument { device: counts.device, cache: counts.cache, hole: counts.hole },
        device_view: ping.device.as_ref().map(|device| DeviceView {
            name: &device.name,
            reads: device.reads,
            writes: device.writes,
            flushes: device.flushes,
        }),
        histogram: classes(&result.time)
            .map(|(from_ns, below_ns, samples)| LatencyClassDocument { from_ns, below_ns, samples })
            .collect(),
        stall_count: counts.stall_count,
        stalls: counts.stalls.iter().map(stall).collect(),
        stuck_thread: ping.stuck_thread,
        slo: ping.verdicts.iter().map(objective).collect(),
        notes: &how.notes,
    }
}

fn objective(verdict: &ObjectiveVerdict) -> ObjectiveDocument<'_> {
    let ObjectiveVerdict { objective, observed_ns, verdict, low_sample } = verdict;
    ObjectiveDocument { objective, observed_ns: *observed_ns, met: verdict.is_met(), low_sample: *low_sample }
}

fn stall(stall: &PingStall) -> StallView {
    let PingStall { begin_ns, length_ns, offset, unanswered } = *stall;
    StallView { begin_ns, length_ns, offset_bytes: offset, unanswered }
}

/// Writes the document, indented.
///
/// # Errors
/// Those of `out`.
pub fn render(ping: &Ping, out: &mut dyn Write) -> io::Result<()> {
    document::write(&document(ping), out)
}

#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum PingEventDocument<'a> {
    Request {
        request: u64,
        unix_ms: u64,
        elapsed_ns: u64,
        operation: &'a str,
        offset_bytes: u64,
        size_bytes: u32,
        time_ns: u64,
        response_ns: Option<u64>,
        served: Option<&'a str>,
        note: Option<&'a str>,
        errno: Option<i64>,
        error: Option<String>,
    },
    Period {
        begin_ns: u64,
        end_ns: u64,
        requests: u64,
        counted: u64,
        min_ns: u64,
        mean_ns: f64,
        max_ns: u64,
    },
    Stalled {
        begin_ns: u64,
        length_ns: u64,
        offset_bytes: u64,
    },
    Answered {
        length_ns: u64,
    },
    Summary(Box<PingDocument<'a>>),
}

fn line(event: &PingEventDocument<'_>) -> String {
    // Plain fields under names of their own: nothing that could fail.
    serde_json::to_string(event).unwrap_or_default()
}

/// The live line of a request, answered at `unix_us`.
pub fn sample_line(sample: &PingSample, note: Option<Note>, unix_us: u64) -> String {
    let errno = (sample.result < 0).then_some(-sample.result);
    line(&PingEventDocument::Request {
        request: sample.number,
        unix_ms: unix_us / 1000,
        elapsed_ns: sample.at_ns,
        operation: sample.op.name(),
        offset_bytes: sample.offset,
        size_bytes: sample.len,
        time_ns: sample.time_ns,
        response_ns: sample.response_ns,
        served: sample.served.map(|served| served.word()),
        note: note.map(|note| note.words()),
        errno,
        error: errno.map(|errno| ping_text::error(errno as i32)),
    })
}

/// The live line of a period.
pub fn period_line(period: &PingWindow) -> String {
    let moments = &period.time;
    line(&PingEventDocument::Period {
        begin_ns: period.begin_ns,
        end_ns: period.end_ns,
        requests: period.all,
        counted: moments.count,
        min_ns: moments.min_or_zero(),
        mean_ns: moments.mean(),
        max_ns: moments.max,
    })
}

/// The live line of a request that has no answer yet.
pub fn stalled_line(stall: &PingStall) -> String {
    let PingStall { begin_ns, length_ns, offset, .. } = *stall;
    line(&PingEventDocument::Stalled { begin_ns, length_ns, offset_bytes: offset })
}

/// The live line of its answer.
pub fn answered_line(length_ns: u64) -> String {
    line(&PingEventDocument::Answered { length_ns })
}

/// The last live line: the document.
pub fn summary_line(ping: &Ping) -> String {
    line(&PingEventDocument::Summary(Box::new(document(ping))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fathom_analysis::ping::{PingHow, PingResult, PingTarget, ServedBy};
    use fathom_model::Op;

    fn ping() -> Ping {
        Ping {
            how: PingHow {
                target: PingTarget { path: "/mnt".to_owned(), ..PingTarget::default() },
                operation: "read",
                size: 4096,
                range: 1 << 20,
                direct: true,
                flushed: false,
                engine: "io_uring".to_owned(),
                fixed: true,
                interval_ns: 5_000_000,
                notes: Vec::new(),
            },
            result: PingResult { response: Some(Default::default()), ..PingResult::default() },
            started_unix_us: 1_795_213_535_882_301,
            elapsed_ns: 7,
            interrupted: None,
            device: None,
            stuck_thread: Some(7),
            verdicts: Vec::new(),
        }
    }

    #[test]
    fn the_document_has_the_fixed_names() {
        let mut out = Vec::new();
        render(&ping(), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.starts_with("{\n  \"schema\": \"fathom.ping/1\",") && text.ends_with("}\n"), "{text}");
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&value["requests"], &value["errors"]), (&0.into(), &0.into()));
        assert_eq!((&value["schedule"], &value["stuck_thread"]), (&"fixed".into(), &7.into()));
        for latency in ["time_ns", "response_ns"] {
            assert_eq!(value[latency]["samples"], 0);
            assert!(value[latency]["p999"].is_null());
        }
    }

    #[test]
    fn live_lines_say_what_they_are() {
        let sample = PingSample {
            number: 3,
            op: Op::Write,
            offset: 8192,
            len: 4096,
            result: -5,
            time_ns: 1000,
            response_ns: None,
            served: Some(ServedBy::Device),
            at_ns: 2000,
        };
        let value: serde_json::Value = serde_json::from_str(&sample_line(&sample, None, 5_000_000)).unwrap();
        assert_eq!((&value["event"], &value["error"]), (&"request".into(), &"Input/output error".into()));
        assert_eq!((&value["served"], &value["unix_ms"]), (&"device".into(), &5000.into()));
        let value: serde_json::Value = serde_json::from_str(&summary_line(&ping())).unwrap();
        assert_eq!((&value["event"], &value["schema"]), (&"summary".into(), &"fathom.ping/1".into()));
        for (line, event) in [
            (stalled_line(&PingStall::default()), "stalled"),
            (answered_line(7), "answered"),
            (period_line(&PingWindow::default()), "period"),
        ] {
            assert_eq!(serde_json::from_str::<serde_json::Value>(&line).unwrap()["event"], event);
        }
    }
}
