//! `fathom history import`: results of other programs, whole pages among them, as runs.

use std::path::PathBuf;

use clap::Args;
use fathom_assess::compare::{PRICE_LABEL, set_volume_type};
use fathom_assess::{VolumeTypes, findings_of};
use fathom_history::{History, ImportedRun, Location, PATIENCE};
use fathom_import::ImportError;
use fathom_model::text::listed;
use fathom_record::{Activity, RunRecord, TestRecord};
use fathom_sys::files::IMPORT;
use jiff::tz::TimeZone;

use crate::commands::compare::monthly_price;
use crate::commands::run_arguments::label;
use crate::commands::words::date_in;
use crate::exit::{Complaint, Exit};
use crate::output;

/// What `fathom history import` takes.
#[derive(Args)]
pub struct ImportArguments {
    /// Files to read; - for the standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Only tests whose name or heading contains this (repeatable)
    #[arg(long, value_name = "TEXT")]
    only: Vec<String>,
    /// Volume type of the runs: aws-gp2?size=50GiB
    ///
    /// Its published rules then count.
    #[arg(long = "type", value_name = "TYPE")]
    volume_type: Option<String>,
    /// Price of the volume: 12USD/month
    #[arg(long, value_name = "PRICE", value_parser = price)]
    price: Option<String>,
    /// Label of the runs (repeatable)
    #[arg(long = "label", value_name = "NAME=VALUE", value_parser = label)]
    labels: Vec<(String, String)>,
    /// Date of runs that have none: 2017-09-14
    #[arg(long, value_name = "DATE", value_parser = date)]
    date: Option<u64>,
}

fn price(text: &str) -> Result<String, String> {
    monthly_price(text).map(|_| text.to_owned())
}

fn date(text: &str) -> Result<u64, String> {
    date_in(text, &TimeZone::system()).ok_or_else(|| format!("'{text}' is not a date: write 2017-09-14"))
}

impl ImportArguments {
    /// Enters what the command line says of a run.
    fn complete(&self, record: &mut RunRecord) -> Result<(), Complaint> {
        record.header.labels.extend(self.labels.iter().cloned());
        if let Some(price) = &self.price {
            record.header.labels.insert(PRICE_LABEL.to_owned(), price.clone());
        }
        if let Some(date) = self.date.filter(|_| record.header.started_unix_ms == 0) {
            record.header.started_unix_ms = date;
        }
        if let Some(named) = &self.volume_type {
            set_volume_type(record, named, &VolumeTypes::default())?;
        }
        if matches!(record.header.activity, Activity::Import(_)) {
            record.findings = findings_of(record);
        }
        Ok(())
    }

    /// Leaves out the tests that were not asked for.
    fn choose(&self, record: &mut RunRecord) -> Result<(), Complaint> {
        let has = |test: &TestRecord, only: &String| {
            format!("{} {}", test.id, test.title).to_lowercase().contains(&only.to_lowercase())
        };
        if let Some(only) = self.only.iter().find(|only| !record.tests.iter().any(|test| has(test, only))) {
            let names: Vec<&str> = record.tests.iter().map(|test| test.title.as_str()).collect();
            let message = format!("no test has '{only}' in its name or heading");
            return Err(Complaint::usage(message, Some(format!("the tests are {}", listed(&names, 8)))));
        }
        if !self.only.is_empty() {
            record.tests.retain(|test| self.only.iter().any(|only| has(test, only)));
        }
        // Another part of the same source is another run.
        let chosen = self.only.iter().flat_map(|only| ["--only".to_owned(), only.clone()]);
        let file = record.header.command.len().saturating_sub(1);
        record.header.command.splice(file..file, chosen);
        Ok(())
    }
}

/// Imports.
///
/// # Errors
/// A file has no figures, or the history cannot be written.
pub fn run(arguments: &ImportArguments, location: &Location) -> Result<Exit, Complaint> {
    let mut records: Vec<RunRecord> = Vec::new();
    for file in &arguments.files {
        let name = file.to_string_lossy();
        let bytes =
            IMPORT.read(file).map_err(|error| Complaint::usage(error.to_string(), Some(error.hint())))?;
        let text = fathom_import::decode(&bytes);
        let found = fathom_import::records(&text, &name).map_err(|error| refused(&name, &error))?;
        records.extend(found);
    }
    for record in &mut records {
        arguments.choose(record)?;
        arguments.complete(record)?;
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
