//! Taking records into the history that were made elsewhere, or beside it.

use std::path::Path;

use fathom_record::{RunHeader, RunRecord, TestStatus};
use fathom_sys::files::RECORD;
use rusqlite::Transaction;
use serde::Deserialize;

use crate::history::{insert_run, insert_test, json, update_run};
use crate::list::{status_named, text_of};
use crate::{Error, History, RunId};

impl History {
    /// Enters a whole record, such as one that was exported or kept in a side file. Where the history already holds
    /// a part of that very run, the rest is added to it, so nothing is entered twice.
    ///
    /// # Errors
    /// Those of the database.
    pub fn import(&mut self, record: &RunRecord) -> Result<RunId, Error> {
        let bodies: Vec<String> = record.tests.iter().map(json).collect();
        let (header, findings) = (json(&record.header), json(&record.findings));
        self.write("enter a record", |transaction| {
            let found = find_stored(transaction, record, &bodies)?;
            let stored = match found {
                Some(stored) => stored,
                None => {
                    StoredRun { run: insert_run(transaction, &header)?, bodies: Vec::new(), ended: false }
                }
            };
            let tests = record.tests.iter().zip(&bodies);
            for (test, body) in tests.filter(|(_, body)| !stored.bodies.contains(body)) {
                insert_test(transaction, stored.run, test, body)?;
            }
            // A file that was left behind must not take back what the history knows of the end.
            if !stored.ended {
                update_run(transaction, stored.run, record.status, &header, &findings)?;
            }
            Ok(stored.run)
        })
    }

    /// Reads the record in the file at `path` and enters it as [`History::import`] does.
    ///
    /// # Errors
    /// The file cannot be read or is not a record; those of the database.
    pub fn import_file(&mut self, path: &Path) -> Result<RunId, Error> {
        let text = RECORD.read_text(path)?;
        let record = RunRecord::from_json(&text).map_err(|source| Error::Unreadable {
            path: path.to_path_buf(),
            what: "the record".to_owned(),
            source,
        })?;
        self.import(&record)
    }
}

/// A run that the history has, at least in part.
struct StoredRun {
    run: RunId,
    bodies: Vec<String>,
    /// Its end was stored too.
    ended: bool,
}

/// The stored run that `record`, whose tests are `bodies`, tells of: the same header, and no test that differs.
fn find_stored(
    transaction: &Transaction<'_>,
    record: &RunRecord,
    bodies: &[String],
) -> rusqlite::Result<Option<StoredRun>> {
    let mut statement = transaction.prepare("SELECT id, status, header FROM runs ORDER BY id DESC")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        // A header that cannot be read is not this one.
        let header = text_of(row, 2, "header").ok().and_then(|text| serde_json::from_str(text).ok());
        if !header.is_some_and(|stored| same_run(stored, &record.header)) {
            continue;
        }
        let run = RunId(row.get(0)?);
        let ended =
            text_of(row, 1, "status").is_ok_and(|status| status_named(status) != TestStatus::Incomplete);
        // Neither is a run of which a test cannot be read.
        let Some((stored, ids)) = stored_tests(transaction, run)? else { continue };
        let mut tests = record.tests.iter().zip(bodies);
        if tests.all(|(test, body)| stored.contains(body) || !ids.contains(&test.id)) {
            return Ok(Some(StoredRun { run, bodies: stored, ended }));
        }
    }
    Ok(None)
}

/// The tests of a run and their names; `None` where one cannot be read.
fn stored_tests(
    transaction: &Transaction<'_>,
    run: RunId,
) -> rusqlite::Result<Option<(Vec<String>, Vec<String>)>> {
    #[derive(Deserialize)]
    struct Named {
        id: String,
    }
    let mut statement = transaction.prepare("SELECT body FROM tests WHERE run_id = ?1 ORDER BY position")?;
    let mut rows = statement.query([run.0])?;
    let (mut bodies, mut ids) = (Vec::new(), Vec::new());
    while let Some(row) = rows.next()? {
        let body = text_of(row, 0, "test").ok();
        let named = body.and_then(|body| Some((body, serde_json::from_str::<Named>(body).ok()?)));
        let Some((body, named)) = named else { return Ok(None) };
        bodies.push(body.to_owned());
        ids.push(named.id);
    }
    Ok(Some((bodies, ids)))
}

/// Whether two headers tell of the same run. What is only known at its end may differ.
fn same_run(mut stored: RunHeader, header: &RunHeader) -> bool {
    stored.notes.clone_from(&header.notes);
    stored.interrupted.clone_from(&header.interrupted);
    stored == *header
}
