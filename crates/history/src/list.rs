//! The list of past runs.

use std::collections::BTreeMap;

use fathom_record::{ActivityKind, BestFigures, HistoryRow, RecordError, TestStatus};
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
    /// Only runs of this host.
    pub host: Option<String>,
    /// Only runs on the device with this identity, or with a part of it.
    pub device: Option<String>,
    /// Only runs on volumes of this type.
    pub volume_type: Option<String>,
    /// Only runs with this test.
    pub test: Option<String>,
    /// Only runs from this moment on, ms since the epoch; of a simulated run the time it was stored counts.
    pub since_unix_ms: Option<u64>,
    /// Only runs before this moment.
    pub until_unix_ms: Option<u64>,
    /// Only runs with this text in a note, tag, label, target, device, host or command, in capitals or not.
    pub text: Option<String>,
    /// At most this many, the newest.
    pub newest: Option<usize>,
}

impl Filter {
    pub(crate) fn admits(&self, row: &HistoryRow) -> bool {
        let is = |wanted: &Option<String>, found: &str| wanted.as_ref().is_none_or(|wanted| wanted == found);
        let dated = row.dated_unix_ms();
        self.status.is_none_or(|status| status == row.status)
            && is(&self.target, &row.target)
            && is(&self.host, &row.hostname)
            && self.device.as_ref().is_none_or(|device| row.device.contains(device))
            && (self.volume_type.is_none() || self.volume_type == row.volume_type)
            && self.kind.is_none_or(|kind| kind == row.kind)
            && self.since_unix_ms.is_none_or(|since| dated >= since)
            && self.until_unix_ms.is_none_or(|until| dated < until)
            && self.labels.iter().all(|(name, value)| {
                let found = row.labels.get(name);
                found.is_some_and(|found| value.as_ref().is_none_or(|value| value == found))
            })
            && self.text.as_ref().is_none_or(|text| mentions(row, &text.to_lowercase()))
    }
}

/// Whether a text of the run contains `text`, which is in lower case.
fn mentions(row: &HistoryRow, text: &str) -> bool {
    let labels = row.labels.iter().flat_map(|(name, value)| [name.as_str(), value]);
    let single = [&row.target, &row.command, &row.hostname, &row.device];
    let volume_type = row.volume_type.iter();
    let texts = single.into_iter().chain(&row.tags).chain(&row.notes).chain(volume_type).map(String::as_str);
    texts.chain(labels).any(|found| found.to_lowercase().contains(text))
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

/// The index holds every column, so that the records between them are not read.
const LISTED: &str = "SELECT id, status, stored_unix_ms, verdict, started_unix_ms, target, kind, command, hostname, device,
        volume_type, labels, tool_version, tests, finding_count, read_iops, write_iops, bytes_per_second, lat_p50_ns
    FROM runs INDEXED BY runs_listed
    WHERE (?1 IS NULL OR id IN (SELECT run_id FROM tags WHERE tag = ?1))
        AND (?2 IS NULL OR id IN (SELECT run_id FROM tests WHERE tests.id = ?2))
    ORDER BY id DESC";

impl History {
    /// The runs that match `filter`. An unreadable run does not affect the others.
    ///
    /// # Errors
    /// Those of the database.
    pub fn list(&self, filter: &Filter) -> Result<Listing, Error> {
        let failed = |error| self.failed("list the runs", error);
        let mut statement = self.connection.prepare(LISTED).map_err(failed)?;
        let mut found = statement.query(params![filter.tag, filter.test]).map_err(failed)?;
        let mut tags = self.texts("SELECT run_id, tag FROM tags ORDER BY tag").map_err(failed)?;
        let mut notes = self.texts("SELECT run_id, text FROM notes ORDER BY rowid").map_err(failed)?;
        let mut listing = Listing::default();
        while listing.rows.len() < filter.newest.unwrap_or(usize::MAX) {
            let Some(row) = found.next().map_err(failed)? else { break };
            let id = RunId(row.get(0).map_err(failed)?);
            let tags = tags.remove(&id).unwrap_or_default();
            let notes = notes.remove(&id).unwrap_or_default();
            match read_row(id, row).map(|row| HistoryRow { tags, notes, ..row }) {
                Ok(row) if filter.admits(&row) => listing.rows.push(row),
                Ok(_) => {}
                Err(error) => listing.unreadable.push(self.unreadable(id, error)),
            }
        }
        listing.rows.reverse();
        listing.unreadable.reverse();
        Ok(listing)
    }

    /// The texts of each run, in the order of `query`.
    fn texts(&self, query: &str) -> rusqlite::Result<BTreeMap<RunId, Vec<String>>> {
        let mut statement = self.connection.prepare(query)?;
        let mut found = statement.query([])?;
        let mut texts: BTreeMap<RunId, Vec<String>> = BTreeMap::new();
        while let Some(row) = found.next()? {
            texts.entry(RunId(row.get(0)?)).or_default().push(row.get(1)?);
        }
        Ok(texts)
    }
}

fn read_row(id: RunId, row: &Row<'_>) -> Result<HistoryRow, RecordError> {
    let text = |index: usize, name: &str| text_of(row, index, name).map(str::to_owned);
    let count =
        |index: usize| row.get(index).ok().and_then(|value: i64| u64::try_from(value).ok()).unwrap_or(0);
    let status = text_of(row, 1, "status")?;
    // Without it the header could not be read.
    let target = text(5, "header")?;
    let labels = serde_json::from_str(text_of(row, 11, "labels")?).map_err(RecordError::Malformed)?;
    let started_unix_ms = count(4);
    Ok(HistoryRow {
        id: id.0 as u64,
        started: rfc3339(started_unix_ms),
        started_unix_ms,
        stored_unix_ms: count(2),
        target,
        kind: ActivityKind::named(text_of(row, 6, "command")?).unwrap_or_default(),
        command: text(7, "command line")?,
        status: status_named(status),
        tests: count(13),
        best: BestFigures {
            read_iops: row.get(15).unwrap_or_default(),
            write_iops: row.get(16).unwrap_or_default(),
            bytes_per_second: row.get(17).unwrap_or_default(),
            lat_p50_ns: row.get(18).unwrap_or_default(),
        },
        verdict: row.get(3).unwrap_or_default(),
        findings: count(14),
        hostname: text(8, "host name")?,
        device: text(9, "device")?,
        volume_type: row.get(10).unwrap_or_default(),
        tags: Vec::new(),
        notes: Vec::new(),
        labels,
        tool_version: text(12, "version")?,
    })
}

/// The text in a column; other types give an error.
pub(crate) fn text_of<'row>(row: &'row Row<'_>, index: usize, name: &str) -> Result<&'row str, RecordError> {
    let wrong = |what: &str| {
        RecordError::Malformed(serde_json::Error::custom(format!("the {name} is {what}, not a text")))
    };
    match row.get_ref(index) {
        Ok(ValueRef::Text(text)) => std::str::from_utf8(text).map_err(|_| wrong("no valid UTF-8")),
        Ok(ValueRef::Null) => Err(wrong("missing")),
        Ok(other) => Err(wrong(&format!("of type {}", other.data_type()))),
        Err(error) => Err(wrong(&error.to_string())),
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
