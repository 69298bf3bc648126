//! Imports records from other histories and from side files.

use std::path::Path;

use fathom_record::{RunHeader, RunRecord, TestStatus};
use fathom_sys::files::RECORD;
use rusqlite::Transaction;
use serde::Deserialize;

use crate::columns::insert_run;
use crate::history::{insert_test, json, update_run};
use crate::list::{status_named, text_of};
use crate::{Error, History, RunId};

impl History {
    /// Imports a whole record, such as an export or a side file. If the history already has a part of the same run,
    /// only the remaining tests are added.
    ///
    /// # Errors
    /// Those of the database.
    pub fn import(&mut self, record: &RunRecord) -> Result<RunId, Error> {
        let bodies: Vec<String> = record.tests.iter().map(json).collect();
        let run = self.write("enter a record", |transaction| {
            let found = find_stored(transaction, record, &bodies)?;
            let stored = match found {
                Some(stored) => stored,
                None => StoredRun {
                    run: insert_run(transaction, &record.header)?,
                    bodies: Vec::new(),
                    ended: false,
                },
            };
            let tests = record.tests.iter().zip(&bodies);
            for (test, body) in tests.filter(|(_, body)| !stored.bodies.contains(body)) {
                insert_test(transaction, stored.run, test, body)?;
            }
            // An older side file must not undo the stored end of the run.
            if !stored.ended {
                update_run(transaction, stored.run, record.status, &record.header, &record.findings)?;
            }
            Ok(stored.run)
        })?;
        self.store_verdict(run)?;
        Ok(run)
    }

    /// Imports the record in the file at `path`, as [`History::import`].
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

/// A run of which the history has at least a part.
struct StoredRun {
    run: RunId,
    bodies: Vec<String>,
    /// Its end was stored too.
    ended: bool,
}

/// The stored run of `record`, whose tests are `bodies`: the same header, and no different test.
fn find_stored(
    transaction: &Transaction<'_>,
    record: &RunRecord,
    bodies: &[String],
) -> rusqlite::Result<Option<StoredRun>> {
    let mut statement = transaction
        .prepare("SELECT id, status, header FROM runs WHERE started_unix_ms = ?1 ORDER BY id DESC")?;
    let mut rows = statement.query([i64::try_from(record.header.started_unix_ms).unwrap_or(0)])?;
    while let Some(row) = rows.next()? {
        // An unreadable header does not match.
        let header = text_of(row, 2, "header").ok().and_then(|text| RunHeader::from_json(text).ok());
        if !header.is_some_and(|stored| same_run(stored, &record.header)) {
            continue;
        }
        let run = RunId(row.get(0)?);
        let ended =
            text_of(row, 1, "status").is_ok_and(|status| status_named(status) != TestStatus::Incomplete);
        // Neither does a run with an unreadable test.
        let Some((stored, ids)) = stored_tests(transaction, run)? else { continue };
        let mut tests = record.tests.iter().zip(bodies);
        if tests.all(|(test, body)| stored.contains(body) || !ids.contains(&test.id)) {
            return Ok(Some(StoredRun { run, bodies: stored, ended }));
        }
    }
    Ok(None)
}

/// The tests of a run and their ids; `None` if one cannot be read.
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

/// Whether two headers belong to the same run. Fields that are known only at its end may differ.
fn same_run(mut stored: RunHeader, header: &RunHeader) -> bool {
    stored.notes.clone_from(&header.notes);
    stored.interrupted.clone_from(&header.interrupted);
    stored == *header
}
