//! Documents of runs: the verdict, the run itself, the results as the analysis has them, and the findings.

use std::io::{self, Write};

use fathom_record::{RunRecord, TestRecord};
use serde::Serialize;
use serde_json::{Value, json};

use crate::document::{self, object};
use crate::{Style, history};

/// Writes the document of a run, indented: its `verdict`, and `result` as members between those of the run and the findings.
///
/// # Errors
/// Those of `out`.
pub(crate) fn write(
    schema: &str,
    record: &RunRecord,
    verdict: impl Serialize,
    result: impl Serialize,
    style: &Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    let header = &record.header;
    let head = json!({
        "schema": schema,
        "verdict": verdict,
        "run": run(record, style),
        "target": header.target,
        "conditions": { "host": header.host(), "target": header.conditions.target },
    });
    document::write(&object([head, json!(result), json!({ "findings": record.findings })]), out)
}

/// What a test begins with in every document.
pub(crate) fn test_head(test: &TestRecord) -> Value {
    let TestRecord { id, title, status, reason, fio, .. } = test;
    let mut head = json!({ "id": id, "title": title, "status": status });
    if let Some(reason) = reason {
        head["reason"] = json!(reason);
    }
    head["fio"] = json!(fio);
    head
}

/// The member `run`. `id` is null where the run is not kept in the history; the kind of the activity and its settings follow.
fn run(record: &RunRecord, style: &Style) -> Value {
    let header = &record.header;
    let started = (header.started_unix_ms > 0).then(|| history::started(header.started_unix_ms));
    let rest = json!({
        "status": record.status,
        "interrupted": header.interrupted,
        "command": header.command,
        "started": started,
        "started_unix_ms": header.started_unix_ms,
        "tool_version": header.tool_version,
        "size_bytes": header.size_bytes,
        "seed": header.seed,
        "labels": header.labels,
        "notes": header.notes,
    });
    object([json!({ "id": style.run_id }), json!(header.activity), rest])
}
