//! The runs in one history file: kept test by test, listed, read back, removed.
//!
//! Every method is one transaction. What is stored are the parts of a [`RunRecord`] as JSON text, so that an export is
//! what was stored, with the fields of a later version as well. A test of 15 s is 15 to 150 KB of text per worker,
//! most of it the histograms of its series.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use fathom_record::{Finding, RecordError, RunHeader, RunRecord, SCHEMA, TestRecord, TestStatus};
use fathom_sys::files::PrivateAccess as Access;
use rusqlite::{Connection, Row, Transaction, TransactionBehavior, params};

use crate::connection;
use crate::list::text_of;
use crate::trend::insert_metrics;
use crate::{Error, place};

/// Number of a run in its history. Numbers ascend, and one that was removed is not given again.
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

/// How long other processes' locks are waited for: many times what a store takes on a slow disk.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// An open history.
#[derive(Debug)]
pub struct History {
    pub(crate) connection: Connection,
    path: PathBuf,
}

impl History {
    /// Opens the history at `path` for writing; makes it and the directories above it where they are missing. Waits
    /// up to `patience` for other processes, here and in every later call.
    ///
    /// # Errors
    /// Something else lies at `path`; the file is damaged, of a newer format, locked, or cannot be written.
    pub fn open(path: &Path, patience: Duration) -> Result<History, Error> {
        let path = place::absolute(path)?;
        Ok(History { connection: connection::open(&path, Access::Create, patience)?, path })
    }

    /// Opens a history that is there; one on a read-only medium can be read.
    ///
    /// # Errors
    /// As for [`History::open`]; [`Error::Missing`] where there is none.
    pub fn open_existing(path: &Path, patience: Duration) -> Result<History, Error> {
        let path = place::absolute(path)?;
        Ok(History { connection: connection::open(&path, Access::Existing, patience)?, path })
    }

    /// The absolute path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Enters a run. It counts as incomplete until it is finished.
    ///
    /// # Errors
    /// Those of the database.
    pub fn begin(&mut self, header: &RunHeader) -> Result<RunId, Error> {
        let header = json(header);
        self.write("enter a run", |transaction| insert_run(transaction, &header))
    }

    /// Adds a finished test to a run. When this returns, the test outlives a crash of the machine.
    ///
    /// # Errors
    /// Those of the database; [`Error::UnknownRun`] where the run was removed meanwhile.
    pub fn append(&mut self, run: RunId, test: &TestRecord) -> Result<(), Error> {
        let body = json(test);
        self.write_run(run, "store a test", |transaction| insert_test(transaction, run, test, &body))
    }

    /// Says how a run ended, with its header as it stands at the end and what the numbers tell.
    ///
    /// # Errors
    /// Those of the database; [`Error::UnknownRun`] where the run was removed meanwhile.
    pub fn finish(
        &mut self,
        run: RunId,
        status: TestStatus,
        header: &RunHeader,
        findings: &[Finding],
    ) -> Result<(), Error> {
        let (header, findings) = (json(header), json(&findings));
        self.write_run(run, "finish a run", |transaction| {
            update_run(transaction, run, status, &header, &findings)
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
    /// Those of the database; [`Error::UnknownRun`]; [`Error::Unreadable`] where it was written by a newer version.
    pub fn load(&self, run: RunId) -> Result<RunRecord, Error> {
        RunRecord::from_json(&self.stored(run)?).map_err(|error| self.unreadable(run, error))
    }

    /// Removes runs and gives their space back to the file system. All of them, or none where one is not there.
    ///
    /// # Errors
    /// Those of the database; [`Error::UnknownRun`] with the ids that are not there.
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
        // The runs are gone; where somebody reads just now, their space is given back with the next removal.
        let _ = self.give_back_space();
        Ok(())
    }

    /// Gives a run a name; several runs may bear the same.
    ///
    /// # Errors
    /// Those of the database; [`Error::UnknownRun`]; [`Error::BadTag`] for one that reads as a number or as nothing.
    pub fn tag(&mut self, run: RunId, tag: &str) -> Result<(), Error> {
        if tag.trim().is_empty() || tag.chars().any(char::is_control) || tag.parse::<RunId>().is_ok() {
            return Err(Error::BadTag { tag: tag.to_owned() });
        }
        self.write_run(run, "name a run", |transaction| {
            transaction
                .execute("INSERT OR IGNORE INTO tags (run_id, tag) VALUES (?1, ?2)", params![run.0, tag])
                .map(drop)
        })
    }

    /// Takes a name from a run; says whether it bore it.
    ///
    /// # Errors
    /// Those of the database; [`Error::UnknownRun`].
    pub fn untag(&mut self, run: RunId, tag: &str) -> Result<bool, Error> {
        self.write_run(run, "take a name from a run", |transaction| {
            transaction.execute("DELETE FROM tags WHERE run_id = ?1 AND tag = ?2", params![run.0, tag])
        })
        .map(|removed| removed > 0)
    }

    /// The names of a run, sorted.
    ///
    /// # Errors
    /// Those of the database.
    pub fn tags(&self, run: RunId) -> Result<Vec<String>, Error> {
        let read = || {
            let mut statement =
                self.connection.prepare("SELECT tag FROM tags WHERE run_id = ?1 ORDER BY tag")?;
            statement.query_map([run.0], |row| row.get(0))?.collect::<rusqlite::Result<Vec<String>>>()
        };
        read().map_err(|error| self.failed("read the names of a run", error))
    }

    /// Cuts the pages that hold nothing any more off the file.
    fn give_back_space(&self) -> rusqlite::Result<()> {
        // Each step of the pragma frees one page.
        let mut vacuum = self.connection.prepare("PRAGMA incremental_vacuum")?;
        let mut steps = vacuum.query([])?;
        while steps.next()?.is_some() {}
        self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
    }

    /// Runs `work` in a transaction that takes the write lock first: two that both began by reading could each be
    /// unable to go on to write.
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

    /// The same for a run that has to be there.
    fn write_run<T>(
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

pub(crate) fn insert_run(transaction: &Transaction<'_>, header: &str) -> rusqlite::Result<RunId> {
    transaction.execute("INSERT INTO runs (schema, header) VALUES (?1, ?2)", [SCHEMA, header])?;
    Ok(RunId(transaction.last_insert_rowid()))
}

/// Stores `test`, whose JSON is `body`, and its figures.
pub(crate) fn insert_test(
    transaction: &Transaction<'_>,
    run: RunId,
    test: &TestRecord,
    body: &str,
) -> rusqlite::Result<()> {
    transaction.execute(
        "INSERT INTO tests (run_id, position, body)
         SELECT ?1, coalesce(max(position) + 1, 0), ?2 FROM tests WHERE run_id = ?1",
        params![run.0, body],
    )?;
    insert_metrics(transaction, run, test)
}

pub(crate) fn update_run(
    transaction: &Transaction<'_>,
    run: RunId,
    status: TestStatus,
    header: &str,
    findings: &str,
) -> rusqlite::Result<()> {
    transaction
        .execute(
            "UPDATE runs SET status = ?2, header = ?3, findings = ?4 WHERE id = ?1",
            params![run.0, status.name(), header, findings],
        )
        .map(drop)
}

/// Puts the stored parts together to one document; `None` where there is no such run.
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

/// A document up to where its tests begin.
fn head_of(row: &Row<'_>) -> Result<String, RecordError> {
    let (schema, status) = (json(text_of(row, 0, "schema")?), json(text_of(row, 1, "status")?));
    let header = text_of(row, 2, "header")?;
    Ok(format!(r#"{{"schema":{schema},"status":{status},"header":{header},"tests":["#))
}

pub(crate) fn json<T: serde::Serialize + ?Sized>(value: &T) -> String {
    serde_json::to_string(value).expect("every map key is a string and no value can fail to be written")
}
