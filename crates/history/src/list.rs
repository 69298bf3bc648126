//! The list of past runs.

use fathom_record::{ActivityKind, HistoryRow, RecordError, RunHeader, TestStatus};
use rusqlite::types::ValueRef;
use rusqlite::{Row, params};
use serde::de::Error as _;

use crate::{Error, History, RunId};

/// Which runs to list. The default is all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only runs with this status.
    pub status: Option<TestStatus>,
    /// Only runs of this target, as the user named it.
    pub target: Option<String>,
    /// Only runs of this command.
    pub kind: Option<ActivityKind>,
    /// Only runs with this tag.
    pub tag: Option<String>,
    /// At most this many, the newest.
    pub newest: Option<usize>,
}

impl Filter {
    fn admits(&self, row: &HistoryRow) -> bool {
        self.status.is_none_or(|status| status == row.status)
            && self.target.as_ref().is_none_or(|target| *target == row.target)
            && self.kind.is_none_or(|kind| kind == row.kind)
    }
}

/// The contents of a history.
#[derive(Debug, Default)]
pub struct Listing {
    /// The runs, oldest first.
    pub rows: Vec<HistoryRow>,
    /// One [`Error::Unreadable`] for each run that cannot be listed, oldest first; whether the filter matches it is
    /// unknown.
    pub unreadable: Vec<Error>,
}

/// Longest header that is read, bytes; those of bench have a few KiB.
const LONGEST_HEADER: i64 = 16 << 20;

impl History {
    /// The runs that match `filter`. An unreadable run does not affect the others.
    ///
    /// # Errors
    /// Those of the database.
    pub fn list(&self, filter: &Filter) -> Result<Listing, Error> {
        let failed = |error| self.failed("list the runs", error);
        let mut statement = self
            .connection
            .prepare(
                "SELECT id, status, iif(octet_length(header) <= ?2, header, NULL),
                     (SELECT count(*) FROM tests WHERE run_id = id) FROM runs
                 WHERE ?1 IS NULL OR id IN (SELECT run_id FROM tags WHERE tag = ?1) ORDER BY id DESC",
            )
            .map_err(failed)?;
        let mut found = statement.query(params![filter.tag, LONGEST_HEADER]).map_err(failed)?;
        let mut listing = Listing::default();
        while listing.rows.len() < filter.newest.unwrap_or(usize::MAX) {
            let Some(row) = found.next().map_err(failed)? else { break };
            let id = RunId(row.get(0).map_err(failed)?);
            match read_row(id, row) {
                Ok(row) if filter.admits(&row) => listing.rows.push(row),
                Ok(_) => {}
                Err(error) => listing.unreadable.push(self.unreadable(id, error)),
            }
        }
        listing.rows.reverse();
        listing.unreadable.reverse();
        Ok(listing)
    }
}

fn read_row(id: RunId, row: &Row<'_>) -> Result<HistoryRow, RecordError> {
    let status = text_of(row, 1, "status")?;
    let header = serde_json::from_str(text_of(row, 2, "header")?).map_err(RecordError::Malformed)?;
    let tests: i64 = row.get(3).unwrap_or(0);
    Ok(history_row(id, status, tests as u64, header))
}

/// The text in a column; other types give an error.
pub(crate) fn text_of<'row>(row: &'row Row<'_>, index: usize, name: &str) -> Result<&'row str, RecordError> {
    let wrong = |what: &str| {
        RecordError::Malformed(serde_json::Error::custom(format!("the {name} is {what}, not a text")))
    };
    match row.get_ref(index) {
        Ok(ValueRef::Text(text)) => std::str::from_utf8(text).map_err(|_| wrong("no valid UTF-8")),
        Ok(ValueRef::Null) => Err(wrong("missing or too long")),
        Ok(other) => Err(wrong(&format!("of type {}", other.data_type()))),
        Err(error) => Err(wrong(&error.to_string())),
    }
}

fn history_row(id: RunId, status: &str, tests: u64, header: RunHeader) -> HistoryRow {
    let hostname = header.host().hostname.clone();
    HistoryRow {
        id: id.0 as u64,
        started: rfc3339(header.started_unix_ms),
        started_unix_ms: header.started_unix_ms,
        target: header.target,
        kind: header.activity.kind(),
        command: header.command.join(" "),
        status: status_named(status),
        tests,
        hostname,
        labels: header.labels,
        tool_version: header.tool_version,
    }
}

/// The status with the stored name `name`; the database permits only these names.
pub(crate) fn status_named(name: &str) -> TestStatus {
    [TestStatus::Complete, TestStatus::Failed, TestStatus::Skipped]
        .into_iter()
        .find(|status| status.name() == name)
        .unwrap_or(TestStatus::Incomplete)
}

/// UTC to the second; empty without a time.
fn rfc3339(unix_ms: u64) -> String {
    let seconds = i64::try_from(unix_ms / 1000).ok().filter(|&seconds| seconds > 0);
    seconds
        .and_then(|seconds| jiff::Timestamp::from_second(seconds).ok())
        .map(|time| time.to_string())
        .unwrap_or_default()
}
