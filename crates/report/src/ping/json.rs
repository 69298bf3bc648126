//! The document of `ping --json`, `fathom.ping/1`, and the lines of `ping --events`. Pure.

use std::io::{self, Write};

use fathom_analysis::criterion::ObjectiveVerdict;
use fathom_analysis::ping::classes::{LatencyClass, classes};
use fathom_analysis::ping::{
    DeviceCounts, Note, PingCounts, PingHow, PingLoad, PingSample, PingStall, PingWindow,
};
use fathom_record::{Latency, LatencySummary, RunRecord, TestStatus};
use serde::Serialize;

use super::PingReport;
use crate::{Style, document, history, ping::text as ping_text};

/// The `schema` of the document.
pub const SCHEMA: &str = "fathom.ping/1";

#[derive(Serialize)]
struct PingDocument<'a> {
    schema: &'static str,
    /// Number in the history; null where the run is not kept.
    run_id: Option<u64>,
    /// Null on virtual time.
    started: Option<String>,
    started_unix_ms: u64,
    status: TestStatus,
    interrupted: Option<&'a str>,
    elapsed_ns: u64,
    #[serde(flatten)]
    how: &'a PingHow,
    #[serde(flatten)]
    counts: &'a PingCounts,
    /// All requests that were answered.
    whole: &'a PingLoad,
    iops: f64,
    bytes_per_second: f64,
    lat_ns: LatencySummary,
    response_ns: Option<LatencySummary>,
    histogram: Vec<LatencyClass>,
    device_counts: Option<&'a DeviceCounts>,
    stuck_thread: Option<u32>,
    slo: Vec<ObjectiveVerdict>,
}

impl<'a> PingDocument<'a> {
    fn new(record: &'a RunRecord, style: &Style) -> Self {
        let PingReport { test, ping, slo } = PingReport::of(record);
        let started_unix_ms = record.header.started_unix_ms;
        PingDocument {
            schema: SCHEMA,
            run_id: style.run_id,
            started: (started_unix_ms > 0).then(|| history::started(started_unix_ms)),
            started_unix_ms,
            status: test.status,
            interrupted: test.interrupted.as_deref(),
            elapsed_ns: ping.elapsed_ns,
            how: &ping.how,
            counts: &ping.counts,
            whole: &ping.load,
            iops: ping.load.per_second(ping.load.answered),
            bytes_per_second: ping.load.per_second(ping.load.answered_bytes),
            lat_ns: ping.lat_ns.summary(),
            response_ns: ping.response_ns.as_ref().map(Latency::summary),
            histogram: classes(&ping.lat_ns),
            device_counts: ping.device_counts.as_ref(),
            stuck_thread: ping.stuck_thread,
            slo,
        }
    }
}

/// Writes the document, indented.
///
/// # Errors
/// Those of `out`.
pub fn render(record: &RunRecord, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    document::write(&PingDocument::new(record, style), out)
}

#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum PingEvent<'a> {
    Request {
        unix_ms: u64,
        #[serde(flatten)]
        sample: &'a PingSample,
        note: Option<&'a str>,
        errno: Option<i64>,
        error: Option<String>,
    },
    Period(&'a PingWindow),
    Stalled(&'a PingStall),
    Answered {
        length_ns: u64,
    },
    Summary(Box<PingDocument<'a>>),
}

impl PingEvent<'_> {
    fn line(&self) -> String {
        // Plain fields under names of their own: nothing that could fail.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// The line of a request, answered at `unix_us`.
pub fn sample_line(sample: &PingSample, note: Option<Note>, unix_us: u64) -> String {
    let errno = (sample.result < 0).then_some(-sample.result);
    let error = errno.map(|errno| ping_text::error(errno as i32));
    let note = note.map(|note| note.words());
    PingEvent::Request { unix_ms: unix_us / 1000, sample, note, errno, error }.line()
}

/// The line of a period.
pub fn period_line(period: &PingWindow) -> String {
    PingEvent::Period(period).line()
}

/// The line of a request that has no answer yet.
pub fn stalled_line(stall: &PingStall) -> String {
    PingEvent::Stalled(stall).line()
}

/// The line of its answer.
pub fn answered_line(length_ns: u64) -> String {
    PingEvent::Answered { length_ns }.line()
}

/// The last line: the document.
pub fn summary_line(record: &RunRecord, style: &Style) -> String {
    PingEvent::Summary(Box::new(PingDocument::new(record, style))).line()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fathom_analysis::ping::{Ping, ServedBy};
    use fathom_model::Op;
    use fathom_record::{Observed, TestRecord};

    fn record() -> RunRecord {
        let how = PingHow { operation: "read".to_owned(), fixed_schedule: true, ..PingHow::default() };
        let response_ns = Some(Latency::default());
        let ping = Ping { how, response_ns, stuck_thread: Some(7), ..Ping::default() };
        let observed = Some(Observed::Ping(Box::new(ping)));
        RunRecord { tests: vec![TestRecord { observed, ..TestRecord::default() }], ..RunRecord::default() }
    }

    #[test]
    fn the_document_has_the_fixed_names() {
        let mut out = Vec::new();
        render(&record(), &Style::default(), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.starts_with("{\n  \"schema\": \"fathom.ping/1\",") && text.ends_with("}\n"), "{text}");
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&value["requests"], &value["errors"]), (&0.into(), &0.into()));
        assert_eq!((&value["fixed_schedule"], &value["stuck_thread"]), (&true.into(), &7.into()));
        for latency in ["lat_ns", "response_ns"] {
            assert_eq!(value[latency]["samples"], 0);
            assert!(value[latency]["p999"].is_null());
        }
    }

    #[test]
    fn lines_of_events_say_what_they_are() {
        let sample = PingSample {
            request: 3,
            operation: Op::Write,
            offset_bytes: 8192,
            size_bytes: 4096,
            result: -5,
            lat_ns: 1000,
            response_ns: None,
            served: Some(ServedBy::Device),
            elapsed_ns: 2000,
        };
        let value: serde_json::Value = serde_json::from_str(&sample_line(&sample, None, 5_000_000)).unwrap();
        assert_eq!((&value["event"], &value["error"]), (&"request".into(), &"Input/output error".into()));
        assert_eq!((&value["served"], &value["unix_ms"]), (&"device".into(), &5000.into()));
        let value: serde_json::Value =
            serde_json::from_str(&summary_line(&record(), &Style::default())).unwrap();
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
