//! The list of past runs.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use fathom_record::{ActivityKind, BestFigures, HistoryRow, RecordError, TestStatus};

use crate::database::{MORE, Row, Transaction};
use crate::error::Failure;
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
    /// One `ErrorKind::Unreadable` for each run that cannot be listed, oldest first; whether the filter matches it is
    /// unknown.
    pub unreadable: Vec<Error>,
}

macro_rules! columns {
    () => {
        "SELECT id, status, stored_unix_ms, verdict, started_unix_ms, target, kind, command, hostname, device,
            volume_type, labels, tool_version, tests, finding_count, read_iops, write_iops, bytes_per_second, lat_p50_ns
        FROM runs "
    };
}

/// The index holds every column, so that the records between them are not read.
const LISTED: &str = concat!(
    columns!(),
    "INDEXED BY runs_listed
    WHERE (?1 IS NULL OR id IN (SELECT run_id FROM tags WHERE tag = ?1))
        AND (?2 IS NULL OR id IN (SELECT run_id FROM tests WHERE tests.id = ?2))
    ORDER BY id DESC"
);
const ROW: &str = concat!(columns!(), "WHERE id = ?1");

impl History {
    /// The runs that match `filter`. An unreadable run does not affect the others.
    ///
    /// # Errors
    /// Those of the database.
    pub fn list(&self, filter: &Filter) -> Result<Listing, Error> {
        let mut listing = self.read("list the runs", |transaction| {
            let mut tags = texts(transaction, "SELECT run_id, tag FROM tags ORDER BY tag")?;
            let mut notes = texts(transaction, "SELECT run_id, text FROM notes ORDER BY rowid")?;
            let mut listing = Listing::default();
            let most = filter.newest.unwrap_or(usize::MAX);
            let values = [filter.tag.as_deref().into(), filter.test.as_deref().into()];
            transaction.scan(LISTED, &values, |row| {
                if listing.rows.len() >= most {
                    return Ok(ControlFlow::Break(()));
                }
                let id = row.run(0);
                let tags = tags.remove(&id).unwrap_or_default();
                let notes = notes.remove(&id).unwrap_or_default();
                match read_row(id, row).map(|row| HistoryRow { tags, notes, ..row }) {
                    Ok(row) if filter.admits(&row) => listing.rows.push(row),
                    Ok(_) => {}
                    Err(error) => listing.unreadable.push(self.unreadable(id, error)),
                }
                MORE
            })?;
            Ok(listing)
        })?;
        listing.rows.reverse();
        listing.unreadable.reverse();
        Ok(listing)
    }

    /// What the list says of one run.
    ///
    /// # Errors
    /// Those of the database; `ErrorKind::UnknownRun`; `ErrorKind::Unreadable` if it cannot be listed.
    pub fn row(&self, run: RunId) -> Result<HistoryRow, Error> {
        let found = self.read("read a run", |transaction| {
            transaction.first(ROW, &[run.0.into()], |row| read_row(run, row))
        })?;
        let row = found.ok_or_else(|| self.unknown(vec![run]))?;
        let row = row.map_err(|error| self.unreadable(run, error))?;
        Ok(HistoryRow { tags: self.tags(run)?, notes: self.notes(run)?, ..row })
    }
}

/// The texts of each run, in the order of `query`.
fn texts(transaction: &Transaction<'_>, query: &str) -> Result<BTreeMap<RunId, Vec<String>>, Failure> {
    let mut texts: BTreeMap<RunId, Vec<String>> = BTreeMap::new();
    transaction.scan(query, &[], |row| {
        texts.entry(row.run(0)).or_default().extend(row.text(1).map(str::to_owned));
        MORE
    })?;
    Ok(texts)
}

/// True where the highest rates are figures of a volume: those of probes, which begin with full credits, and of the short
/// transfers of a surface, which a cache may answer, are none.
const fn has_rates_of_tests(kind: ActivityKind) -> bool {
    !matches!(kind, ActivityKind::Identify | ActivityKind::Surface)
}

fn read_row(id: RunId, row: &Row<'_>) -> Result<HistoryRow, RecordError> {
    let text = |index: usize, name: &str| row.part(index, name).map(str::to_owned);
    let count = |index: usize| row.int(index).and_then(|value| u64::try_from(value).ok()).unwrap_or(0);
    let status = row.part(1, "status")?;
    // Without it the header could not be read.
    let target = text(5, "header")?;
    let labels = serde_json::from_str(row.part(11, "labels")?).map_err(RecordError::Malformed)?;
    let started_unix_ms = count(4);
    let kind = ActivityKind::named(row.part(6, "command")?).unwrap_or_default();
    let best = BestFigures {
        read_iops: row.real(15),
        write_iops: row.real(16),
        bytes_per_second: row.real(17),
        lat_p50_ns: row.real(18),
    };
    Ok(HistoryRow {
        id: id.0 as u64,
        started: rfc3339(started_unix_ms),
        started_unix_ms,
        stored_unix_ms: count(2),
        target,
        kind,
        command: text(7, "command line")?,
        status: status_named(status),
        tests: count(13),
        best: if has_rates_of_tests(kind) { best } else { BestFigures::default() },
        verdict: row.text(3).map(str::to_owned),
        findings: count(14),
        hostname: text(8, "host name")?,
        device: text(9, "device")?,
        volume_type: row.text(10).map(str::to_owned),
        tags: Vec::new(),
        notes: Vec::new(),
        labels,
        tool_version: text(12, "version")?,
    })
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
