//! The document of `trace info`: `fathom.trace/1`.

use std::io::{self, Write};

use fathom_observed::LoadCourse;
use serde_json::json;

use super::TraceInfo;
use crate::document::{self, object};

/// The `schema` of the document.
pub const SCHEMA: &str = "fathom.trace/1";

/// Writes the document, indented. The device is empty where the source has no name for it; a log of several files names them, and
/// requests say where they were seen.
///
/// # Errors
/// Those of `out`.
pub fn render(info: TraceInfo<'_>, out: &mut dyn Write) -> io::Result<()> {
    let TraceInfo { file, load, profile } = info;
    let mut head = json!({
        "schema": SCHEMA,
        "tool_version": env!("CARGO_PKG_VERSION"),
        "file": file,
        "format": load.format.name(),
        "device": load.device,
    });
    let course = match &load.course {
        LoadCourse::Requests(trace) => {
            if trace.files.len() > 1 {
                head["files"] = json!(trace.files);
            }
            json!({
                "detail": "requests",
                "entries": super::requests(profile),
                "seen_at": trace.point.name(),
                "has_times": trace.has_times,
            })
        }
        LoadCourse::Intervals(intervals) => {
            json!({ "detail": "intervals", "entries": intervals.len(), "has_times": true })
        }
    };
    let clock = json!({ "started_unix_ns": load.started_unix_ns, "clock": load.clock });
    let rest = json!({ "gaps": load.gaps, "notes": load.notes });
    document::write(&object([head, course, clock, json!(profile), rest]), out)
}
