//! Imports records from other histories and from side files.

use std::collections::HashSet;
use std::path::Path;

use fathom_record::{RunHeader, RunRecord, TestRecord, TestStatus};
use fathom_sys::files::RECORD;
use serde::Deserialize;

use crate::columns::insert_run;
use crate::database::{MORE, Transaction};
use crate::error::Failure;
use crate::history::{insert_test, json, update_run};
use crate::list::status_named;
use crate::{Error, History, Location, RunId};

impl History {
    /// Imports a whole record, such as an export or a side file. If the history already has a part of the same run,
    /// only the remaining tests are added.
    ///
    /// # Errors
    /// Those of the database.
    pub fn import(&mut self, record: &RunRecord) -> Result<RunId, Error> {
        self.enter(record).map(|imported| imported.run)
    }

    /// As [`History::import`]; says what of the record is new.
    ///
    /// # Errors
    /// Those of the database.
    pub fn enter(&mut self, record: &RunRecord) -> Result<ImportedRun, Error> {
        let bodies: Vec<String> = record.tests.iter().map(json).collect();
        let imported = self.write_much("enter a record", |transaction| {
            transaction.exclude_others()?;
            let found = find_stored(transaction, record, &bodies)?;
            let is_new = found.is_none();
            let mut added = 0;
            let stored = match found {
                Some(stored) => stored,
                None => StoredRun {
                    run: insert_run(transaction, &record.header)?,
                    bodies: Vec::new(),
                    ended: false,
                },
            };
            let known: HashSet<&String> = stored.bodies.iter().collect();
            let tests = record.tests.iter().zip(&bodies);
            for (test, body) in tests.filter(|(_, body)| !known.contains(body)) {
                insert_test(transaction, stored.run, test, body)?;
                added += 1;
            }
            // An older side file must not undo the stored end of the run.
            if !stored.ended {
                update_run(transaction, stored.run, record.status, &record.header, &record.findings)?;
            }
            Ok(ImportedRun { run: stored.run, is_new, added })
        })?;
        self.store_verdict(imported.run)?;
        Ok(imported)
    }

    /// Imports the record in the file at `path`, as [`History::import`].
    ///
    /// # Errors
    /// The file cannot be read or is not a record; those of the database.
    pub fn import_file(&mut self, path: &Path) -> Result<RunId, Error> {
        let text = RECORD.read_text(path)?;
        let record = RunRecord::from_json(&text)
            .map_err(|source| Error::unreadable(&Location::File(path.to_path_buf()), "the record", source))?;
        self.import(&record)
    }
}

/// A record that was imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImportedRun {
    /// Its number.
    pub run: RunId,
    /// The history had no part of it.
    pub is_new: bool,
    /// Tests of it that the history did not have.
    pub added: usize,
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
) -> Result<Option<StoredRun>, Failure> {
    const STARTED: &str = "SELECT id, status, header FROM runs WHERE started_unix_ms = ?1 ORDER BY id DESC";
    let started = i64::try_from(record.header.started_unix_ms).unwrap_or(0);
    let mut candidates = Vec::new();
    transaction.each(STARTED, &[started.into()], |row| {
        // An unreadable header does not match.
        let header = row.text(2).and_then(|text| RunHeader::from_json(text).ok());
        if header.is_some_and(|stored| same_run(stored, &record.header)) {
            let status = row.text(1);
            let ended = status.is_some_and(|status| status_named(status) != TestStatus::Incomplete);
            candidates.push((row.run(0), ended));
        }
        MORE
    })?;
    for (run, ended) in candidates {
        // Neither does a run with an unreadable test.
        let Some(stored) = stored_tests(transaction, run)? else { continue };
        let has_body: HashSet<&String> = stored.iter().map(|stored| &stored.body).collect();
        let has_id: HashSet<&String> = stored.iter().map(|stored| &stored.id).collect();
        let differs =
            |(test, body): (&TestRecord, &String)| !has_body.contains(body) && has_id.contains(&test.id);
        if !record.tests.iter().zip(bodies).any(differs) {
            let bodies = stored.into_iter().map(|test| test.body).collect();
            return Ok(Some(StoredRun { run, bodies, ended }));
        }
    }
    Ok(None)
}

/// A stored test.
struct StoredTest {
    id: String,
    body: String,
}

/// The tests of a run; `None` if one cannot be read.
fn stored_tests(transaction: &Transaction<'_>, run: RunId) -> Result<Option<Vec<StoredTest>>, Failure> {
    #[derive(Deserialize)]
    struct Named {
        id: String,
    }
    const BODIES: &str = "SELECT body FROM tests WHERE run_id = ?1 ORDER BY position";
    let mut stored = Some(Vec::new());
    transaction.each(BODIES, &[run.0.into()], |row| {
        let named = row.text(0).and_then(|body| Some((body, serde_json::from_str::<Named>(body).ok()?)));
        match (named, &mut stored) {
            (Some((body, named)), Some(tests)) => {
                tests.push(StoredTest { id: named.id, body: body.to_owned() });
            }
            _ => stored = None,
        }
        MORE
    })?;
    Ok(stored)
}

/// Whether two headers belong to the same run. Fields that are known only at its end may differ.
fn same_run(mut stored: RunHeader, header: &RunHeader) -> bool {
    stored.notes.clone_from(&header.notes);
    stored.interrupted.clone_from(&header.interrupted);
    stored == *header
}
