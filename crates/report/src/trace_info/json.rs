//! The document of `trace info`: `fathom.trace/1`.

use std::io::{self, Write};

use fathom_observed::{LoadClock, LoadCourse, LoadGap};
use fathom_predict::load_profile::LoadProfile;
use serde::Serialize;

use super::TraceInfo;
use crate::document;

/// The `schema` of the document.
pub const SCHEMA: &str = "fathom.trace/1";

#[derive(Serialize)]
struct TraceDocument<'a> {
    schema: &'static str,
    tool_version: &'static str,
    /// The name of the file.
    file: &'a str,
    /// The format of the file.
    format: &'static str,
    /// The device as the source names it; empty where it has no name.
    device: &'a str,
    /// The files of a log.
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<&'a [String]>,
    /// `requests` or `intervals`.
    detail: &'static str,
    /// Requests or intervals.
    entries: u64,
    /// Where requests were seen; absent for intervals.
    #[serde(skip_serializing_if = "Option::is_none")]
    seen_at: Option<&'static str>,
    /// Whether requests have times of their own.
    has_times: bool,
    /// Wall clock at the beginning; null where it is unknown.
    started_unix_ns: Option<u64>,
    clock: LoadClock,
    #[serde(flatten)]
    profile: &'a LoadProfile,
    gaps: &'a [LoadGap],
    notes: &'a [String],
}

/// Writes the document, indented.
///
/// # Errors
/// Those of `out`.
pub fn render(info: TraceInfo<'_>, out: &mut dyn Write) -> io::Result<()> {
    let TraceInfo { file, load, profile } = info;
    let (detail, entries, trace) = match &load.course {
        LoadCourse::Requests(trace) => ("requests", super::requests(profile), Some(trace)),
        LoadCourse::Intervals(intervals) => ("intervals", intervals.len() as u64, None),
    };
    let document = TraceDocument {
        schema: SCHEMA,
        tool_version: env!("CARGO_PKG_VERSION"),
        file,
        format: load.format.name(),
        device: &load.device,
        files: trace.map(|trace| trace.files.as_slice()).filter(|files| files.len() > 1),
        detail,
        entries,
        seen_at: trace.map(|trace| trace.point.name()),
        has_times: trace.is_none_or(|trace| trace.has_times),
        started_unix_ns: load.started_unix_ns,
        clock: load.clock,
        profile,
        gaps: &load.gaps,
        notes: &load.notes,
    };
    document::write(&document, out)
}
