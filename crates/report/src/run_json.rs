//! What every document of a run says of the run itself.

use std::collections::BTreeMap;

use fathom_record::{ActivityKind, Conditions, RunRecord, TestStatus};
use serde::Serialize;

use crate::{Style, history};

/// The members that such a document begins with.
#[derive(Serialize)]
pub(crate) struct DocumentHead<'a> {
    schema: &'static str,
    run: RunDocument<'a>,
    target: &'a str,
    conditions: &'a Conditions,
}

impl<'a> DocumentHead<'a> {
    pub(crate) fn new(schema: &'static str, record: &'a RunRecord, style: &Style) -> Self {
        let header = &record.header;
        let run = RunDocument::new(record, style);
        DocumentHead { schema, run, target: &header.target, conditions: &header.conditions }
    }
}

/// The member `run`.
#[derive(Serialize)]
struct RunDocument<'a> {
    /// Number in the history; null where the run is not kept.
    id: Option<u64>,
    kind: ActivityKind,
    /// Null where the command has none.
    suite: Option<&'a str>,
    status: TestStatus,
    interrupted: Option<&'a str>,
    command: &'a [String],
    started: Option<String>,
    started_unix_ms: u64,
    tool_version: &'a str,
    size_bytes: u64,
    seed: Option<u64>,
    labels: &'a BTreeMap<String, String>,
    notes: &'a [String],
}

impl<'a> RunDocument<'a> {
    fn new(record: &'a RunRecord, style: &Style) -> Self {
        let header = &record.header;
        RunDocument {
            id: style.run_id,
            kind: header.activity.kind(),
            suite: header.activity.suite(),
            status: record.status,
            interrupted: header.interrupted.as_deref(),
            command: &header.command,
            started: (header.started_unix_ms > 0).then(|| history::started(header.started_unix_ms)),
            started_unix_ms: header.started_unix_ms,
            tool_version: &header.tool_version,
            size_bytes: header.size_bytes,
            seed: header.seed,
            labels: &header.labels,
            notes: &header.notes,
        }
    }
}
