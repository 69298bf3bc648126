//! Taking records into the history that were made elsewhere, or beside it.

use std::path::Path;

use fathom_record::{RunHeader, RunRecord, TestStatus};
use rusqlite::Transaction;

use crate::history::{insert_run, insert_test, json, update_run};
use crate::list::status_named;
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
                None => Stored { run: insert_run(transaction, &header)?, bodies: Vec::new(), ended: false },
            };
            for body in bodies.iter().filter(|body| !stored.bodies.contains(body)) {
                insert_test(transaction, stored.run, body)?;
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
        let text = std::fs::read_to_string(path).map_err(|source| Error::Io {
            action: "read",
            path: path.to_path_buf(),
            source,
        })?;
        let record = RunRecord::from_json(&text).map_err(|source| Error::Unreadable {
            path: path.to_path_buf(),
            what: "the record".to_owned(),
            source,
        })?;
        self.import(&record)
    }
}

/// A run that the history has, at least in part.
struct Stored {
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
) -> rusqlite::Result<Option<Stored>> {
    let mut statement = transaction.prepare("SELECT id, status, header FROM runs ORDER BY id DESC")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        // A header that cannot be read is not this one.
        let header = serde_json::from_str(row.get_ref(2)?.as_str()?);
        if !header.is_ok_and(|stored| same_run(stored, &record.header)) {
            continue;
        }
        let run = RunId(row.get(0)?);
        let ended = status_named(row.get_ref(1)?.as_str()?) != TestStatus::Incomplete;
        let mut tests = transaction
            .prepare("SELECT body, body ->> '$.id' FROM tests WHERE run_id = ?1 ORDER BY position")?;
        let (stored, ids): (Vec<String>, Vec<String>) = tests
            .query_map([run.0], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<rusqlite::Result<Vec<_>>>()?
            .into_iter()
            .unzip();
        let mut tests = record.tests.iter().zip(bodies);
        if tests.all(|(test, body)| stored.contains(body) || !ids.contains(&test.id)) {
            return Ok(Some(Stored { run, bodies: stored, ended }));
        }
    }
    Ok(None)
}

/// Whether two headers tell of the same run. What is only known at its end may differ.
fn same_run(mut stored: RunHeader, header: &RunHeader) -> bool {
    stored.notes.clone_from(&header.notes);
    stored.interrupted.clone_from(&header.interrupted);
    stored == *header
}
