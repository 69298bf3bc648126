//! The document of `ping --json`, `fathom.ping/1`, and the lines of `ping --live ndjson`. Pure.

use std::io::{self, Write};

use fathom_analysis::ping::{Note, Ping, PingSample, PingStall, PingWindow};
use serde::Serialize;

use crate::document;
use crate::{history, ping::text as ping_text};

/// The `schema` of the document.
pub const SCHEMA: &str = "fathom.ping/1";

#[derive(Serialize)]
struct PingDocument<'a> {
    schema: &'static str,
    /// Null on virtual time.
    started: Option<String>,
    started_unix_ms: u64,
    #[serde(flatten)]
    ping: &'a Ping,
}

impl<'a> PingDocument<'a> {
    fn new(ping: &'a Ping) -> Self {
        let started_unix_ms = ping.started_unix_us / 1000;
        let started = (ping.started_unix_us > 0).then(|| history::started(started_unix_ms));
        PingDocument { schema: SCHEMA, started, started_unix_ms, ping }
    }
}

/// Writes the document, indented.
///
/// # Errors
/// Those of `out`.
pub fn render(ping: &Ping, out: &mut dyn Write) -> io::Result<()> {
    document::write(&PingDocument::new(ping), out)
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
    Summary(PingDocument<'a>),
}

impl PingEvent<'_> {
    fn line(&self) -> String {
        // Plain fields under names of their own: nothing that could fail.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// The live line of a request, answered at `unix_us`.
pub fn sample_line(sample: &PingSample, note: Option<Note>, unix_us: u64) -> String {
    let errno = (sample.result < 0).then_some(-sample.result);
    let error = errno.map(|errno| ping_text::error(errno as i32));
    let note = note.map(|note| note.words());
    PingEvent::Request { unix_ms: unix_us / 1000, sample, note, errno, error }.line()
}

/// The live line of a period.
pub fn period_line(period: &PingWindow) -> String {
    PingEvent::Period(period).line()
}

/// The live line of a request that has no answer yet.
pub fn stalled_line(stall: &PingStall) -> String {
    PingEvent::Stalled(stall).line()
}

/// The live line of its answer.
pub fn answered_line(length_ns: u64) -> String {
    PingEvent::Answered { length_ns }.line()
}

/// The last live line: the document.
pub fn summary_line(ping: &Ping) -> String {
    PingEvent::Summary(PingDocument::new(ping)).line()
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
                block_size_bytes: 4096,
                range_bytes: 1 << 20,
                direct: true,
                flushed: false,
                engine: "io_uring".to_owned(),
                fixed_schedule: true,
                interval_ns: 5_000_000,
                notes: Vec::new(),
            },
            result: PingResult { response_ns: Some(Default::default()), ..PingResult::default() },
            started_unix_us: 1_795_213_535_882_301,
            elapsed_ns: 7,
            interrupted: None,
            device_counts: None,
            stuck_thread: Some(7),
            slo: Vec::new(),
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
        assert_eq!((&value["fixed_schedule"], &value["stuck_thread"]), (&true.into(), &7.into()));
        for latency in ["lat_ns", "response_ns"] {
            assert_eq!(value[latency]["samples"], 0);
            assert!(value[latency]["p999"].is_null());
        }
    }

    #[test]
    fn live_lines_say_what_they_are() {
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
