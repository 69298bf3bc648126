//! Documents of runs: the run itself, the results as the analysis has them, and the findings.

use std::collections::BTreeMap;
use std::io::{self, Write};

use fathom_record::{Activity, Finding, HostRecord, RunRecord, TargetRecord, TestRecord, TestStatus};
use serde::Serialize;

use crate::{Style, document, history};

/// Writes the document of a run, indented: `result` are its members between those of the run and the findings.
///
/// # Errors
/// Those of `out`.
pub(crate) fn write(
    schema: &'static str,
    record: &RunRecord,
    result: &impl Serialize,
    style: &Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    #[derive(Serialize)]
    struct Document<'a, T> {
        #[serde(flatten)]
        head: DocumentHead<'a>,
        #[serde(flatten)]
        result: &'a T,
        findings: &'a [Finding],
    }
    let head = DocumentHead::new(schema, record, style);
    document::write(&Document { head, result, findings: &record.findings }, out)
}

/// The members that such a document begins with.
#[derive(Serialize)]
struct DocumentHead<'a> {
    schema: &'static str,
    run: RunDocument<'a>,
    target: &'a str,
    conditions: ConditionsDocument<'a>,
}

impl<'a> DocumentHead<'a> {
    fn new(schema: &'static str, record: &'a RunRecord, style: &Style) -> Self {
        let header = &record.header;
        let run = RunDocument::new(record, style);
        let conditions = ConditionsDocument { host: header.host(), target: &header.conditions.target };
        DocumentHead { schema, run, target: &header.target, conditions }
    }
}

/// What a test begins with in every document.
#[derive(Serialize)]
pub(crate) struct TestHead<'a> {
    id: &'a str,
    title: &'a str,
    status: TestStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    fio: &'a str,
}

impl TestHead<'_> {
    pub(crate) fn of(test: &TestRecord) -> TestHead<'_> {
        let TestRecord { id, title, status, reason, fio, .. } = test;
        TestHead { id, title, status: *status, reason: reason.as_deref(), fio }
    }
}

/// The member `conditions`: those of the first host.
#[derive(Serialize)]
struct ConditionsDocument<'a> {
    host: &'a HostRecord,
    target: &'a TargetRecord,
}

/// The member `run`.
#[derive(Serialize)]
struct RunDocument<'a> {
    /// Number in the history; null where the run is not kept.
    id: Option<u64>,
    /// `kind` and the settings of that command.
    #[serde(flatten)]
    activity: &'a Activity,
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
            activity: &header.activity,
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
