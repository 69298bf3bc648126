//! The runs in one history: stored test by test, listed, read, removed.
//!
//! Every method is one transaction. The parts of a [`RunRecord`] are stored as JSON text, so that an export equals the
//! stored text, including fields of a later version. A test of 15 s has 15 to 150 KB of text per worker, most of it the
//! histograms of its series.

use std::collections::HashSet;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use fathom_analysis::criterion::CriterionVerdict;
use fathom_analysis::verdict::verdict;
use fathom_record::{Finding, RecordError, RunHeader, RunRecord, TestRecord, TestStatus, TestSummary};

use fathom_sys::files::keep_history;

use crate::columns::{count_test, insert_metrics, insert_run, set_header};
use crate::database::{Access, Database, MORE, Mode, Row, Transaction};
use crate::error::{ErrorKind, Failure, listed};
use crate::place::{self, OpenFiles};
use crate::{Error, Location};

/// Number of a run in its history. Numbers ascend and are not reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(pub i64);

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for RunId {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<RunId, Self::Err> {
        text.parse().map(RunId)
    }
}

/// Longest wait for other processes' locks: many times the duration of a store on a slow disk.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// Runs that one statement removes: a server answers each in time.
const REMOVED_AT_ONCE: usize = 200;

/// An open history.
#[derive(Debug)]
pub struct History {
    database: Database,
    location: Location,
    /// `None` on a server.
    files: Option<OpenFiles>,
}

impl History {
    /// Opens the history at `location` for writing; creates it, and missing directories above a file. Waits up to `patience` for
    /// other processes, in this and every later call, and little longer for the answers of a server.
    ///
    /// # Errors
    /// It is not a history; it is damaged, of a newer format, locked, cannot be reached, or cannot be written.
    pub fn open(location: &Location, patience: Duration) -> Result<History, Error> {
        History::with_access(location, Access::Create, patience)
    }

    /// Opens an existing history; one on a read-only medium or server can be read.
    ///
    /// # Errors
    /// As for [`History::open`]; [`ErrorKind::Missing`] if there is none.
    pub fn open_existing(location: &Location, patience: Duration) -> Result<History, Error> {
        History::with_access(location, Access::Existing, patience)
    }

    /// Opens an existing history; `None` if there is none.
    ///
    /// # Errors
    /// As for [`History::open`].
    pub fn open_if_there(location: &Location, patience: Duration) -> Result<Option<History>, Error> {
        match History::open_existing(location, patience) {
            Err(error) if error.is_missing() => Ok(None),
            opened => opened.map(Some),
        }
    }

    fn with_access(location: &Location, access: Access, patience: Duration) -> Result<History, Error> {
        let location = match location {
            Location::File(path) => Location::File(place::absolute(path)?),
            Location::Server(_) => location.clone(),
        };
        location.file().into_iter().for_each(keep_history);
        let database = Database::open(&location, access, patience)?;
        let files = location.file().map(OpenFiles::at);
        Ok(History { database, location, files })
    }

    /// Where it is: a server, or the absolute path of a file.
    pub fn location(&self) -> &Location {
        &self.location
    }

    /// Adds a run. It counts as incomplete until it is finished.
    ///
    /// # Errors
    /// Those of the database.
    pub fn begin(&mut self, header: &RunHeader) -> Result<RunId, Error> {
        self.write("enter a run", |transaction| insert_run(transaction, header))
    }

    /// Adds a finished test to a run. When this returns, the test outlives a crash of the machine.
    ///
    /// # Errors
    /// Those of the database; [`ErrorKind::UnknownRun`] if the run was removed meanwhile.
    pub fn append(&mut self, run: RunId, test: &TestRecord) -> Result<(), Error> {
        let body = json(test);
        self.write_run(run, "store a test", |transaction| insert_test(transaction, run, test, &body))
    }

    /// Stores the end of a run: its status, final header and findings, and the result of its checks.
    ///
    /// # Errors
    /// Those of the database; [`ErrorKind::UnknownRun`] if the run was removed meanwhile.
    pub fn finish(
        &mut self,
        run: RunId,
        status: TestStatus,
        header: &RunHeader,
        findings: &[Finding],
    ) -> Result<(), Error> {
        self.write_run(run, "finish a run", |transaction| {
            update_run(transaction, run, status, header, findings)
        })?;
        self.store_verdict(run)
    }

    /// Stores the result of the checks of a run that has ended, so that the list need not make it from every record.
    pub(crate) fn store_verdict(&mut self, run: RunId) -> Result<(), Error> {
        // What cannot be read back is reported by whoever asks for it.
        let Some(verdict) = self.load(run).ok().and_then(|record| verdict(&record)) else { return Ok(()) };
        self.write_run(run, "store a verdict", |transaction| set_verdict(transaction, run, verdict))
    }

    /// As [`History::finish`], for a run whose whole `record` is at hand.
    pub(crate) fn finish_record(&mut self, run: RunId, record: &RunRecord) -> Result<(), Error> {
        let verdict = verdict(record);
        self.write_run(run, "finish a run", |transaction| {
            update_run(transaction, run, record.status, &record.header, &record.findings)?;
            verdict.map_or(Ok(()), |verdict| set_verdict(transaction, run, verdict))
        })
    }

    /// The run as one JSON document on one line: a run record.
    ///
    /// # Errors
    /// Those of the database; [`ErrorKind::UnknownRun`]; [`ErrorKind::Unreadable`] where what is stored is no record.
    pub fn export(&self, run: RunId) -> Result<String, Error> {
        let text = self.stored(run)?;
        match RunRecord::from_json(&text) {
            // What a newer version wrote is passed on as it is.
            Ok(_) | Err(RecordError::Newer { .. }) => Ok(text),
            Err(error) => Err(self.unreadable(run, error)),
        }
    }

    fn stored(&self, run: RunId) -> Result<String, Error> {
        // One transaction, so that a run which is being written is read as it was at one moment.
        let parts = self.read("read a run", |transaction| export_from(transaction, run))?;
        let text = parts.ok_or_else(|| self.unknown(vec![run]))?;
        text.map_err(|error| self.unreadable(run, error))
    }

    /// Reads a run back.
    ///
    /// # Errors
    /// Those of the database; [`ErrorKind::UnknownRun`]; [`ErrorKind::Unreadable`] if a newer version wrote it.
    pub fn load(&self, run: RunId) -> Result<RunRecord, Error> {
        RunRecord::from_json(&self.stored(run)?).map_err(|error| self.unreadable(run, error))
    }

    /// Reads the header of a run without its tests.
    ///
    /// # Errors
    /// Those of the database; [`ErrorKind::UnknownRun`]; [`ErrorKind::Unreadable`] if a newer version wrote it.
    pub fn header(&self, run: RunId) -> Result<RunHeader, Error> {
        let read = |row: &Row<'_>| row.part(0, "header").and_then(RunHeader::from_json);
        let found = self.read("read a run", |transaction| {
            transaction.first("SELECT header FROM runs WHERE id = ?1", &[run.0.into()], read)
        })?;
        found.ok_or_else(|| self.unknown(vec![run]))?.map_err(|error| self.unreadable(run, error))
    }

    /// Removes runs and releases their space to the file system. Removes none if one does not exist.
    ///
    /// # Errors
    /// Those of the database; [`ErrorKind::UnknownRun`] with the unknown ids.
    pub fn remove(&mut self, runs: &[RunId]) -> Result<(), Error> {
        let runs = {
            let mut runs = runs.to_vec();
            runs.sort_unstable();
            runs.dedup();
            runs
        };
        let missing = self.write_much("remove runs", |transaction| {
            let mut stored = HashSet::new();
            for part in runs.chunks(REMOVED_AT_ONCE) {
                transaction.each(
                    &format!("SELECT id FROM runs WHERE id IN ({})", listed(part)),
                    &[],
                    |row| {
                        stored.insert(row.run(0));
                        MORE
                    },
                )?;
            }
            let missing: Vec<RunId> = runs.iter().copied().filter(|run| !stored.contains(run)).collect();
            if !missing.is_empty() {
                return Ok(Err(missing));
            }
            for part in runs.chunks(REMOVED_AT_ONCE) {
                transaction.batch(&format!("DELETE FROM runs WHERE id IN ({})", listed(part)))?;
            }
            Ok(Ok(()))
        })?;
        missing.map_err(|missing| self.unknown(missing))?;
        // The runs are removed; if another process is reading, their space is released with the next removal.
        let _ = self.database.give_back_space();
        Ok(())
    }

    pub(crate) fn database(&self) -> &Database {
        &self.database
    }

    /// Runs `work` on one state of the database.
    pub(crate) fn read<T>(
        &self,
        action: &'static str,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, Failure>,
    ) -> Result<T, Error> {
        self.database.transaction(Mode::Read, work).map_err(|failure| self.failed(action, failure))
    }

    /// Runs `work` in a transaction that writes.
    pub(crate) fn write<T>(
        &mut self,
        action: &'static str,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, Failure>,
    ) -> Result<T, Error> {
        let value = self.database.transaction(Mode::Write, work);
        self.in_place(action, value)
    }

    /// Runs `work` in a transaction that writes much.
    pub(crate) fn write_much<T>(
        &mut self,
        action: &'static str,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, Failure>,
    ) -> Result<T, Error> {
        let value = self.database.transaction(Mode::Long, work);
        self.in_place(action, value)
    }

    /// The value of a transaction whose changes can be found again.
    fn in_place<T>(&mut self, action: &'static str, value: Result<T, Failure>) -> Result<T, Error> {
        if self.files.as_mut().is_none_or(OpenFiles::are_in_place) {
            return value.map_err(|failure| self.failed(action, failure));
        }
        let what = "was removed, moved or replaced while it was in use";
        let hint =
            "`fathom history import` adds the record to a history; move one only while nothing uses it";
        Err(Error::at(&self.location, ErrorKind::Displaced, what, hint))
    }

    /// The same for an existing run.
    pub(crate) fn write_run<T>(
        &mut self,
        run: RunId,
        action: &'static str,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, Failure>,
    ) -> Result<T, Error> {
        let value =
            self.write(
                action,
                |transaction| {
                    if transaction.holds(run)? { work(transaction).map(Some) } else { Ok(None) }
                },
            )?;
        value.ok_or_else(|| self.unknown(vec![run]))
    }

    pub(crate) fn failed(&self, action: &'static str, failure: Failure) -> Error {
        Error::from_failure(&self.location, action, failure)
    }

    pub(crate) fn unknown(&self, ids: Vec<RunId>) -> Error {
        let what = format!("no run {}", listed(&ids));
        Error::at(&self.location, ErrorKind::UnknownRun, what, "use a run listed by `fathom history list`")
    }

    pub(crate) fn unreadable(&self, run: RunId, source: RecordError) -> Error {
        Error::unreadable(&self.location, &format!("run {run}"), source)
    }
}

/// Stores `test`, whose JSON is `body`, with its figures.
pub(crate) fn insert_test(
    transaction: &Transaction<'_>,
    run: RunId,
    test: &TestRecord,
    body: &str,
) -> Result<(), Failure> {
    const INSERT: &str = "INSERT INTO tests (run_id, position, id, body)
        SELECT ?1, coalesce(max(position) + 1, 0), ?2, ?3 FROM tests WHERE run_id = ?1";
    transaction.execute(INSERT, &[run.0.into(), test.id.as_str().into(), body.into()])?;
    let summary = TestSummary::new(test);
    count_test(transaction, run, &summary)?;
    insert_metrics(transaction, run, &test.id, &summary)
}

pub(crate) fn update_run(
    transaction: &Transaction<'_>,
    run: RunId,
    status: TestStatus,
    header: &RunHeader,
    findings: &[Finding],
) -> Result<(), Failure> {
    const UPDATE: &str = "UPDATE runs SET status = ?2, findings = ?3, finding_count = ?4 WHERE id = ?1";
    let (text, count) = (json(&findings), findings.len() as i64);
    let values = [run.0.into(), status.name().into(), text.as_str().into(), count.into()];
    transaction.execute(UPDATE, &values)?;
    set_header(transaction, run, header, &json(header))
}

fn set_verdict(transaction: &Transaction<'_>, run: RunId, verdict: CriterionVerdict) -> Result<(), Failure> {
    let values = [run.0.into(), verdict.name().into()];
    transaction.execute("UPDATE runs SET verdict = ?2 WHERE id = ?1", &values).map(drop)
}

/// Joins the stored parts to one document; `None` if there is no such run.
fn export_from(
    transaction: &Transaction<'_>,
    run: RunId,
) -> Result<Option<Result<String, RecordError>>, Failure> {
    const RUN: &str = "SELECT schema, status, header, findings FROM runs WHERE id = ?1";
    const TESTS: &str = "SELECT body FROM tests WHERE run_id = ?1 ORDER BY position";
    let parts = transaction
        .first(RUN, &[run.0.into()], |row| Ok((head_of(row)?, row.part(3, "findings")?.to_owned())))?;
    let (mut text, findings) = match parts {
        None => return Ok(None),
        Some(Err(error)) => return Ok(Some(Err(error))),
        Some(Ok(parts)) => parts,
    };
    let mut separator = "";
    let mut unreadable = None;
    transaction.each(TESTS, &[run.0.into()], |row| {
        text += separator;
        separator = ",";
        match row.part(0, "test") {
            Ok(body) => text += body,
            Err(error) => unreadable = Some(error),
        }
        MORE
    })?;
    text += &format!(r#"],"findings":{findings}}}"#);
    Ok(Some(unreadable.map_or(Ok(text), Err)))
}

/// The document up to the start of its tests.
fn head_of(row: &Row<'_>) -> Result<String, RecordError> {
    let (schema, status) = (json(row.part(0, "schema")?), json(row.part(1, "status")?));
    let header = row.part(2, "header")?;
    Ok(format!(r#"{{"schema":{schema},"status":{status},"header":{header},"tests":["#))
}

pub(crate) fn json<T: serde::Serialize + ?Sized>(value: &T) -> String {
    serde_json::to_string(value).expect("every map key is a string and no value can fail to be written")
}
