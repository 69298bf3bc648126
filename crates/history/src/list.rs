//! The list of past runs.

use std::collections::BTreeMap;

use fathom_record::{ActivityKind, BestFigures, HistoryRow, RecordError, RunHeader, TestStatus};
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
    /// Only runs with these labels; without a value, any.
    pub labels: Vec<(String, Option<String>)>,
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
            && self.labels.iter().all(|(name, value)| {
                let found = row.labels.get(name);
                found.is_some_and(|found| value.as_ref().is_none_or(|value| value == found))
            })
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
                     (SELECT count(*) FROM tests WHERE run_id = id), stored_unix_ms, verdict,
                     iif(json_valid(findings), json_array_length(findings), 0),
                     (SELECT json_group_array(tag) FROM tags WHERE run_id = id) FROM runs
                 WHERE ?1 IS NULL OR id IN (SELECT run_id FROM tags WHERE tag = ?1) ORDER BY id DESC",
            )
            .map_err(failed)?;
        let mut found = statement.query(params![filter.tag, LONGEST_HEADER]).map_err(failed)?;
        let mut listing = Listing::default();
        let mut best = self.best_figures().map_err(failed)?;
        while listing.rows.len() < filter.newest.unwrap_or(usize::MAX) {
            let Some(row) = found.next().map_err(failed)? else { break };
            let id = RunId(row.get(0).map_err(failed)?);
            match read_row(id, row) {
                Ok(row) if filter.admits(&row) => {
                    let best = best.remove(&id).unwrap_or_default();
                    listing.rows.push(HistoryRow { best, ..row });
                }
                Ok(_) => {}
                Err(error) => listing.unreadable.push(self.unreadable(id, error)),
            }
        }
        listing.rows.reverse();
        listing.unreadable.reverse();
        Ok(listing)
    }

    /// The best figures of every run that has any.
    fn best_figures(&self) -> rusqlite::Result<BTreeMap<RunId, BestFigures>> {
        let mut statement = self.connection.prepare(
            "SELECT run_id, metric, max(value), min(value) FROM metrics
             WHERE metric IN ('read.iops', 'write.iops', 'total.bytes_per_second', 'total.lat_ns.p50')
             GROUP BY run_id, metric",
        )?;
        let mut found = statement.query([])?;
        let mut best: BTreeMap<RunId, BestFigures> = BTreeMap::new();
        while let Some(row) = found.next()? {
            let figures = best.entry(RunId(row.get(0)?)).or_default();
            let (most, least): (f64, f64) = (row.get(2)?, row.get(3)?);
            match row.get::<_, String>(1)?.as_str() {
                "read.iops" => figures.read_iops = Some(most),
                "write.iops" => figures.write_iops = Some(most),
                "total.bytes_per_second" => figures.bytes_per_second = Some(most),
                _ => figures.lat_p50_ns = Some(least),
            }
        }
        Ok(best)
    }
}

fn read_row(id: RunId, row: &Row<'_>) -> Result<HistoryRow, RecordError> {
    let status = text_of(row, 1, "status")?;
    let header = serde_json::from_str(text_of(row, 2, "header")?).map_err(RecordError::Malformed)?;
    let count =
        |index: usize| row.get(index).ok().and_then(|value: i64| u64::try_from(value).ok()).unwrap_or(0);
    Ok(HistoryRow {
        tests: count(3),
        stored_unix_ms: count(4),
        verdict: row.get(5).unwrap_or_default(),
        findings: count(6),
        tags: tags_of(row).unwrap_or_default(),
        ..history_row(id, status, header)
    })
}

fn tags_of(row: &Row<'_>) -> Option<Vec<String>> {
    let mut tags: Vec<String> = serde_json::from_str(row.get_ref(7).ok()?.as_str().ok()?).ok()?;
    tags.sort_unstable();
    Some(tags)
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

fn history_row(id: RunId, status: &str, header: RunHeader) -> HistoryRow {
    let hostname = header.host().hostname.clone();
    HistoryRow {
        id: id.0 as u64,
        started: rfc3339(header.started_unix_ms),
        started_unix_ms: header.started_unix_ms,
        target: header.target,
        kind: header.activity.kind(),
        command: header.command.join(" "),
        status: status_named(status),
        hostname,
        labels: header.labels,
        tool_version: header.tool_version,
        ..HistoryRow::default()
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
