//! The runs in one history file: stored test by test, listed, read, removed.
//!
//! Every method is one transaction. The parts of a [`RunRecord`] are stored as JSON text, so that an export equals the
//! stored text, including fields of a later version. A test of 15 s has 15 to 150 KB of text per worker, most of it the
//! histograms of its series.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use fathom_analysis::verdict::verdict;
use fathom_record::{Finding, RecordError, RunHeader, RunRecord, TestRecord, TestStatus, TestSummary};
use fathom_sys::files::PrivateAccess as Access;
use rusqlite::{Connection, Row, Transaction, TransactionBehavior, params};

use crate::columns::{count_test, insert_metrics, insert_run, set_header};
use crate::connection;
use crate::list::text_of;
use crate::{Error, place};

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

/// An open history.
#[derive(Debug)]
pub struct History {
    pub(crate) connection: Connection,
    path: PathBuf,
}

impl History {
    /// Opens the history at `path` for writing; creates it and missing directories above it. Waits up to `patience` for
    /// other processes, in this and every later call.
    ///
    /// # Errors
    /// `path` is not a history; the file is damaged, of a newer format, locked, or cannot be written.
    pub fn open(path: &Path, patience: Duration) -> Result<History, Error> {
        let path = place::absolute(path)?;
        Ok(History { connection: connection::open(&path, Access::Create, patience)?, path })
    }

    /// Opens an existing history; one on a read-only medium can be read.
    ///
    /// # Errors
    /// As for [`History::open`]; [`Error::Missing`] if there is none.
    pub fn open_existing(path: &Path, patience: Duration) -> Result<History, Error> {
        let path = place::absolute(path)?;
        Ok(History { connection: connection::open(&path, Access::Existing, patience)?, path })
    }

    /// The absolute path of the file.
    pub fn path(&self) -> &Path {
        &self.path
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
    /// Those of the database; [`Error::UnknownRun`] if the run was removed meanwhile.
    pub fn append(&mut self, run: RunId, test: &TestRecord) -> Result<(), Error> {
        let body = json(test);
        self.write_run(run, "store a test", |transaction| insert_test(transaction, run, test, &body))
    }

    /// Stores the end of a run: its status, final header and findings, and the result of its checks.
    ///
    /// # Errors
    /// Those of the database; [`Error::UnknownRun`] if the run was removed meanwhile.
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
        self.write_run(run, "store a verdict", |transaction| {
            let values = params![run.0, verdict.name()];
            transaction.execute("UPDATE runs SET verdict = ?2 WHERE id = ?1", values).map(drop)
        })
    }

    /// The run as one JSON document on one line: a run record.
    ///
    /// # Errors
    /// Those of the database; [`Error::UnknownRun`]; [`Error::Unreadable`] where what is stored is no record.
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
        let transaction =
            self.connection.unchecked_transaction().map_err(|error| self.failed("read a run", error))?;
        let parts = export_from(&transaction, run).map_err(|error| self.failed("read a run", error))?;
        let text = parts.ok_or_else(|| self.unknown(vec![run]))?;
        text.map_err(|error| self.unreadable(run, error))
    }

    /// Reads a run back.
    ///
    /// # Errors
    /// Those of the database; [`Error::UnknownRun`]; [`Error::Unreadable`] if a newer version wrote it.
    pub fn load(&self, run: RunId) -> Result<RunRecord, Error> {
        RunRecord::from_json(&self.stored(run)?).map_err(|error| self.unreadable(run, error))
    }

    /// Removes runs and releases their space to the file system. Removes none if one does not exist.
    ///
    /// # Errors
    /// Those of the database; [`Error::UnknownRun`] with the unknown ids.
    pub fn remove(&mut self, runs: &[RunId]) -> Result<(), Error> {
        let runs = {
            let mut runs = runs.to_vec();
            runs.sort_unstable();
            runs.dedup();
            runs
        };
        let missing = self.write("remove runs", |transaction| {
            let mut missing = Vec::new();
            for &run in &runs {
                if !exists(transaction, run)? {
                    missing.push(run);
                }
            }
            if !missing.is_empty() {
                return Ok(Err(missing));
            }
            for run in &runs {
                transaction.execute("DELETE FROM runs WHERE id = ?1", [run.0])?;
            }
            Ok(Ok(()))
        })?;
        missing.map_err(|missing| self.unknown(missing))?;
        // The runs are removed; if another process is reading, their space is released with the next removal.
        let _ = self.give_back_space();
        Ok(())
    }

    /// Truncates unused pages from the file.
    fn give_back_space(&self) -> rusqlite::Result<()> {
        // Each step of the pragma frees one page.
        let mut vacuum = self.connection.prepare("PRAGMA incremental_vacuum")?;
        let mut steps = vacuum.query([])?;
        while steps.next()?.is_some() {}
        self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
    }

    /// Runs `work` in a transaction that takes the write lock first: two transactions that begin by reading could block
    /// each other's writes.
    pub(crate) fn write<T>(
        &mut self,
        action: &'static str,
        work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, Error> {
        let run = |connection: &mut Connection| {
            let transaction = Transaction::new(connection, TransactionBehavior::Immediate)?;
            let value = work(&transaction)?;
            transaction.commit()?;
            Ok(value)
        };
        run(&mut self.connection).map_err(|error| Error::from_sqlite(&self.path, action, error))
    }

    /// The same for an existing run.
    pub(crate) fn write_run<T>(
        &mut self,
        run: RunId,
        action: &'static str,
        work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, Error> {
        let value = self.write(action, |transaction| {
            if exists(transaction, run)? { work(transaction).map(Some) } else { Ok(None) }
        })?;
        value.ok_or_else(|| self.unknown(vec![run]))
    }

    pub(crate) fn failed(&self, action: &'static str, error: rusqlite::Error) -> Error {
        Error::from_sqlite(&self.path, action, error)
    }

    fn unknown(&self, ids: Vec<RunId>) -> Error {
        Error::UnknownRun { path: self.path.clone(), ids }
    }

    pub(crate) fn unreadable(&self, run: RunId, source: RecordError) -> Error {
        Error::Unreadable { path: self.path.clone(), what: format!("run {run}"), source }
    }
}

fn exists(transaction: &Transaction<'_>, run: RunId) -> rusqlite::Result<bool> {
    transaction.query_row("SELECT EXISTS (SELECT 1 FROM runs WHERE id = ?1)", [run.0], |row| row.get(0))
}

/// Stores `test`, whose JSON is `body`, with its figures.
pub(crate) fn insert_test(
    transaction: &Transaction<'_>,
    run: RunId,
    test: &TestRecord,
    body: &str,
) -> rusqlite::Result<()> {
    transaction.execute(
        "INSERT INTO tests (run_id, position, id, body)
         SELECT ?1, coalesce(max(position) + 1, 0), ?2, ?3 FROM tests WHERE run_id = ?1",
        params![run.0, test.id, body],
    )?;
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
) -> rusqlite::Result<()> {
    transaction.execute(
        "UPDATE runs SET status = ?2, findings = ?3, finding_count = ?4 WHERE id = ?1",
        params![run.0, status.name(), json(&findings), findings.len() as i64],
    )?;
    set_header(transaction, run, header, &json(header))
}

/// Joins the stored parts to one document; `None` if there is no such run.
fn export_from(
    transaction: &Transaction<'_>,
    run: RunId,
) -> rusqlite::Result<Option<Result<String, RecordError>>> {
    let mut statement =
        transaction.prepare("SELECT schema, status, header, findings FROM runs WHERE id = ?1")?;
    let mut rows = statement.query([run.0])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let parts = || Ok((head_of(row)?, text_of(row, 3, "findings")?));
    let (mut text, findings) = match parts() {
        Ok(parts) => parts,
        Err(error) => return Ok(Some(Err(error))),
    };
    let mut statement = transaction.prepare("SELECT body FROM tests WHERE run_id = ?1 ORDER BY position")?;
    let mut tests = statement.query([run.0])?;
    let mut separator = "";
    while let Some(test) = tests.next()? {
        text += separator;
        match text_of(test, 0, "test") {
            Ok(body) => text += body,
            Err(error) => return Ok(Some(Err(error))),
        }
        separator = ",";
    }
    text += &format!(r#"],"findings":{findings}}}"#);
    Ok(Some(Ok(text)))
}

/// The document up to the start of its tests.
fn head_of(row: &Row<'_>) -> Result<String, RecordError> {
    let (schema, status) = (json(text_of(row, 0, "schema")?), json(text_of(row, 1, "status")?));
    let header = text_of(row, 2, "header")?;
    Ok(format!(r#"{{"schema":{schema},"status":{status},"header":{header},"tests":["#))
}

pub(crate) fn json<T: serde::Serialize + ?Sized>(value: &T) -> String {
    serde_json::to_string(value).expect("every map key is a string and no value can fail to be written")
}
