//! `fathom history import`: keeps runs from elsewhere: records of fathom, and the output of other programs.

use std::path::PathBuf;

use fathom_history::{History, ImportedRun, Location, PATIENCE};
use fathom_import::ImportError;
use fathom_record::{Activity, RunRecord};
use fathom_sys::files::IMPORT;

use crate::exit::{Complaint, Exit};
use crate::output;

/// Stores the runs of all files, or none where one cannot be read.
///
/// # Errors
/// A file cannot be read; the history cannot be written.
pub fn run(files: &[PathBuf], location: &Location) -> Result<Exit, Complaint> {
    let mut records: Vec<RunRecord> = Vec::new();
    for file in files {
        let name = file.to_string_lossy();
        let bytes =
            IMPORT.read(file).map_err(|error| Complaint::usage(error.to_string(), Some(error.hint())))?;
        // Pasted text may have characters of another encoding.
        let text = String::from_utf8_lossy(&bytes);
        let found = fathom_import::records(&text, &name).map_err(|error| refused(&name, &error))?;
        records.extend(found);
    }
    let mut history = History::open(location, PATIENCE)?;
    for record in &records {
        let ImportedRun { run, is_new, added } = history.enter(record)?;
        let described = described(record);
        let said = match (is_new, added) {
            (true, _) => format!("Imported run {run}: {described}."),
            (false, 0) => format!("Already in the history as run {run}: {described}."),
            (false, 1) => format!("Completed run {run} by 1 test: {described}."),
            (false, added) => format!("Completed run {run} by {added} tests: {described}."),
        };
        output::print(|out| writeln!(out, "{said}"))?;
    }
    Ok(Exit::Done)
}

fn refused(name: &str, error: &ImportError) -> Complaint {
    let name = if name == "-" { "the standard input" } else { name };
    Complaint::usage(format!("cannot import {name}: {error}"), Some(error.hint.clone()))
}

/// `fio.txt, fio text, 1 test, 2 figures missing`.
fn described(record: &RunRecord) -> String {
    let count =
        |number: usize, one: &str, more: &str| format!("{number} {}", if number == 1 { one } else { more });
    let tests = count(record.tests.len(), "test", "tests");
    let Activity::Import(source) = &record.header.activity else {
        return format!("{}, {tests}", record.header.activity.kind());
    };
    let file = if source.file == "-" { "standard input" } else { &source.file };
    let missing: usize =
        record.tests.iter().filter_map(|test| test.imported()).map(|imported| imported.missing.len()).sum();
    let missing = match missing {
        0 => String::new(),
        number => format!(", {} missing", count(number, "figure", "figures")),
    };
    format!("{file}, {}, {tests}{missing}", source.format.title())
}
