//! The list of past runs.

use fathom_record::{HistoryRow, RecordError, RunHeader, TestStatus};

use crate::{Error, History, RunId};

/// Which runs to list. The default is all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only runs that ended so.
    pub status: Option<TestStatus>,
    /// Only runs of this target, as it was named then.
    pub target: Option<String>,
    /// Only runs of this command (`bench`, `fio`).
    pub kind: Option<String>,
    /// Only runs that bear this tag.
    pub tag: Option<String>,
    /// Only the newest so many.
    pub newest: Option<usize>,
}

impl Filter {
    fn admits(&self, row: &HistoryRow) -> bool {
        self.status.is_none_or(|status| status == row.status)
            && self.target.as_ref().is_none_or(|target| *target == row.target)
            && self.kind.as_ref().is_none_or(|kind| *kind == row.kind)
    }
}

impl History {
    /// The runs that `filter` admits, oldest first.
    ///
    /// # Errors
    /// Those of the database; [`Error::Unreadable`] where a stored header is broken.
    pub fn list(&self, filter: &Filter) -> Result<Vec<HistoryRow>, Error> {
        let failed = |error| self.failed("list the runs", error);
        let mut statement = self
            .connection
            .prepare(
                "SELECT id, status, header, (SELECT count(*) FROM tests WHERE run_id = id) FROM runs
                 WHERE ?1 IS NULL OR id IN (SELECT run_id FROM tags WHERE tag = ?1) ORDER BY id DESC",
            )
            .map_err(failed)?;
        let mut found = statement.query([&filter.tag]).map_err(failed)?;
        let mut rows = Vec::new();
        while rows.len() < filter.newest.unwrap_or(usize::MAX) {
            let Some(row) = found.next().map_err(failed)? else { break };
            let id = RunId(row.get(0).map_err(failed)?);
            let status: String = row.get(1).map_err(failed)?;
            let text: String = row.get(2).map_err(failed)?;
            let tests: i64 = row.get(3).map_err(failed)?;
            let header = serde_json::from_str(&text)
                .map_err(|error| self.unreadable(id, RecordError::Malformed(error)))?;
            let row = history_row(id, &status, tests as u64, header);
            if filter.admits(&row) {
                rows.push(row);
            }
        }
        rows.reverse();
        Ok(rows)
    }
}

fn history_row(id: RunId, status: &str, tests: u64, header: RunHeader) -> HistoryRow {
    HistoryRow {
        id: id.0 as u64,
        started: rfc3339(header.started_unix_ms),
        started_unix_ms: header.started_unix_ms,
        target: header.target,
        kind: header.kind,
        command: header.command.join(" "),
        status: status_named(status),
        tests,
        hostname: header.conditions.host.hostname,
        labels: header.labels,
        tool_version: header.tool_version,
    }
}

/// The status that is stored under `name`; the database admits no other names than these.
pub(crate) fn status_named(name: &str) -> TestStatus {
    [TestStatus::Complete, TestStatus::Failed, TestStatus::Skipped]
        .into_iter()
        .find(|status| status.name() == name)
        .unwrap_or(TestStatus::Incomplete)
}

/// UTC to the second; empty where there is no time.
fn rfc3339(unix_ms: u64) -> String {
    let seconds = i64::try_from(unix_ms / 1000).ok().filter(|&seconds| seconds > 0);
    seconds
        .and_then(|seconds| jiff::Timestamp::from_second(seconds).ok())
        .map(|time| time.to_string())
        .unwrap_or_default()
}
