//! The document of `ping --json`, `fathom.ping/1`, and the lines of `ping --events`. Pure.

use std::io::{self, Write};

use fathom_analysis::ping::classes::classes;
use fathom_analysis::ping::{Note, PingSample, PingStall, PingWindow, suitability};
use fathom_record::{Latency, RunRecord};
use serde_json::{Value, json};

use super::PingReport;
use crate::document::{self, object};
use crate::{Style, history, ping::text as ping_text};

/// The `schema` of the document.
pub const SCHEMA: &str = "fathom.ping/1";

/// The document. `run_id` is null where the run is not kept in the history, `started` on virtual time; `whole` are all requests that were
/// answered.
fn summary(record: &RunRecord, style: &Style) -> Value {
    let PingReport { test, ping, slo } = PingReport::of(record);
    let started_unix_ms = record.header.started_unix_ms;
    let head = json!({
        "schema": SCHEMA,
        "verdict": {
            "suitability": suitability(ping),
            "objectives": slo.iter().map(|one| one.verdict.name()).collect::<Vec<&str>>(),
            "lat_p50_ns": ping.lat_ns.summary().p50,
            "lat_p99_ns": ping.lat_ns.summary().p99,
            "lat_max_ns": ping.lat_ns.summary().max,
        },
        "run_id": style.run_id,
        "started": (started_unix_ms > 0).then(|| history::started(started_unix_ms)),
        "started_unix_ms": started_unix_ms,
        "status": test.status,
        "interrupted": test.interrupted,
        "elapsed_ns": ping.elapsed_ns,
    });
    let figures = json!({
        "whole": ping.load,
        "iops": ping.load.per_second(ping.load.answered),
        "bytes_per_second": ping.load.per_second(ping.load.answered_bytes),
        "lat_ns": ping.lat_ns.summary(),
        "response_ns": ping.response_ns.as_ref().map(Latency::summary),
        "histogram": classes(&ping.lat_ns),
        "device_counts": ping.device_counts,
        "stuck_thread": ping.stuck_thread,
        "slo": slo,
    });
    object([head, json!(ping.how), json!(ping.counts), figures])
}

/// Writes the document, indented.
///
/// # Errors
/// Those of `out`.
pub fn render(record: &RunRecord, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    document::write(&summary(record, style), out)
}

/// The line of an event of this kind.
fn event(kind: &str, members: impl IntoIterator<Item = Value>) -> String {
    object([json!({ "event": kind })].into_iter().chain(members)).to_string()
}

/// The line of a request, answered at `unix_us`.
pub fn sample_line(sample: &PingSample, note: Option<Note>, unix_us: u64) -> String {
    let errno = (sample.result < 0).then_some(-sample.result);
    let error = errno.map(|errno| ping_text::error(errno as i32));
    let rest = json!({ "note": note.map(Note::words), "errno": errno, "error": error });
    event("request", [json!({ "unix_ms": unix_us / 1000 }), json!(sample), rest])
}

/// The line of a period.
pub fn period_line(period: &PingWindow) -> String {
    event("period", [json!(period)])
}

/// The line of a request that has no answer yet.
pub fn stalled_line(stall: &PingStall) -> String {
    event("stalled", [json!(stall)])
}

/// The line of its answer.
pub fn answered_line(length_ns: u64) -> String {
    event("answered", [json!({ "length_ns": length_ns })])
}

/// The last line: the document.
pub fn summary_line(record: &RunRecord, style: &Style) -> String {
    event("summary", [summary(record, style)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use fathom_analysis::ping::{Ping, PingHow, ServedBy};
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
