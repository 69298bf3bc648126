//! `fathom merge`: one report from the records of many hosts.

pub mod reading;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use fathom_history::Location;
use fathom_record::{FleetMerger, MergeRules, RunRecord};
use fathom_sys::files::check_output;

use self::reading::{ReadRecord, SourceName};
use super::compare::sources::SourceReader;
use super::format_arguments::FormatArguments;
use super::run_arguments::{KeepArguments, words};
use super::{report, shown};
use crate::exit::{Complaint, Exit};
use crate::output;
use crate::ranks::keep_and_print;

/// What `fathom merge` takes.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct MergeArguments {
    /// Records of the hosts: files, directories of files (.json, .jsonl, .rec), or runs of the history
    #[arg(required = true, value_name = "RUN|FILE|DIR")]
    sources: Vec<String>,
    /// Write the merged record to this file, for `compare`, `report` and `history import`; - is standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Ranks that the job has, to name the missing ones [default: as the launcher told each rank]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=MAX_RANKS))]
    ranks: Option<u32>,
    /// Merge records that differ in this (repeatable)
    #[arg(long, value_enum, value_name = "DIFFERENCE")]
    allow: Vec<Difference>,
    #[command(flatten)]
    form: FormatArguments,
    /// Write the report as a page with charts as well
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    #[command(flatten)]
    keeping: KeepArguments,
    /// Do not keep the merged run [default: measured runs are kept, simulated ones are not]
    #[arg(long, conflicts_with_all = ["history", "keep"])]
    no_history: bool,
}

const EXAMPLES: &str = "\
Examples:
  fathom history export last > $(hostname).json        on each host, after its run
  fathom merge results/                                all records in a directory
  fathom merge h1.json h2.json h3.json -o fleet.json
  fathom merge results/ --ranks 64 --report fleet.html
  fathom merge results/ --format csv > hosts.csv       a row for each host
  fathom merge tag:fleet1 --tag merged                 runs of a history that all hosts share
  fathom compare before.json after.json                two merged records

Exit status: 0 done, 1 failed, 2 usage, 75 merged, but ranks are missing or records unreadable.";

/// Most ranks of a job.
const MAX_RANKS: i64 = 1 << 20;

/// What records may differ in where it is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Difference {
    /// The version of fathom
    Version,
    /// The kind of target: directory, file, block device, simulated
    Target,
}

/// Merges the records and reports what they tell.
///
/// # Errors
/// No record can be read; records are of different jobs; the record or the page cannot be written.
pub fn run(arguments: MergeArguments, command: &[OsString]) -> Result<Exit, Complaint> {
    for path in arguments.output.iter().filter(|path| path.as_os_str() != "-") {
        check_output(path).map_err(|error| report::unwritable(path, &error))?;
    }
    if let Some(path) = &arguments.report {
        report::check_page(path)?;
    }
    let names = reading::expand(&arguments.sources)?;
    let rules = MergeRules {
        versions_may_differ: arguments.allow.contains(&Difference::Version),
        targets_may_differ: arguments.allow.contains(&Difference::Target),
        ranks: arguments.ranks,
        records: names.len(),
    };
    let history = arguments.keeping.history.clone();
    let mut record = merged(&names, rules, history, words(command))?;
    record.header.labels.extend(arguments.keeping.labels());
    let is_whole = record.header.fleet.as_ref().is_some_and(|fleet| fleet.is_complete());
    if let Some(path) = &arguments.output {
        let mut text = record.to_json().into_bytes();
        text.push(b'\n');
        if path.as_os_str() == "-" {
            output::print_whole(&text)?;
            return Ok(exit(is_whole));
        }
        report::write(path, &text)?;
    }
    let style = arguments.form.style();
    if let Some(path) = &arguments.report {
        report::write_page(path, &record, &style)?;
    }
    keep_and_print_merged(&arguments, &record)?;
    Ok(exit(is_whole))
}

const fn exit(is_whole: bool) -> Exit {
    if is_whole { Exit::Done } else { Exit::Partial }
}

/// Keeps the run as far as that is asked for, and prints its report.
fn keep_and_print_merged(arguments: &MergeArguments, record: &RunRecord) -> Result<(), Complaint> {
    let is_simulated = record.header.started_unix_ms == 0;
    let keeps = !arguments.no_history && (arguments.keeping.is_asked_for() || !is_simulated);
    keep_and_print(record, arguments.keeping.place(keeps), keeps, &arguments.form, shown::show)?;
    Ok(())
}

/// The merged record with its findings.
fn merged(
    names: &[SourceName],
    rules: MergeRules,
    history: Option<Location>,
    command: Vec<String>,
) -> Result<RunRecord, Complaint> {
    let mut merging = Merging::new(rules);
    let runs = SourceReader::new(Vec::new(), history, command);
    let files: Vec<&Path> = names.iter().filter_map(SourceName::file).collect();
    reading::read_files(&files, |read| merging.add(read))?;
    for name in names.iter().filter_map(SourceName::run) {
        for run in runs.recorded(name)? {
            merging.add(ReadRecord { source: run.origin, record: Ok(run.record) })?;
        }
    }
    merging.finish()
}

/// A merger, and what could not be read.
pub struct Merging {
    merger: FleetMerger,
    first_unreadable: Option<(String, String)>,
}

impl Merging {
    /// Begins to merge by these rules.
    pub fn new(rules: MergeRules) -> Merging {
        Merging { merger: FleetMerger::new(rules), first_unreadable: None }
    }

    /// True where no record was added yet.
    pub fn is_empty(&self) -> bool {
        self.merger.merged() == 0
    }

    /// Adds a record, or notes why there is none.
    ///
    /// # Errors
    /// The record cannot be merged with those before it.
    pub fn add(&mut self, read: ReadRecord) -> Result<(), Complaint> {
        let ReadRecord { source, record } = read;
        match record {
            Ok(record) => self.merger.add(&source, record).map_err(|refusal| {
                Complaint::usage(format!("cannot merge {source}: {refusal}"), Some(refusal.hint.to_owned()))
            }),
            Err(reason) => {
                output::warn(&format!("warning: cannot read {source}: {reason}"));
                self.merger.add_unreadable(&source, &reason);
                self.first_unreadable.get_or_insert((source, reason));
                Ok(())
            }
        }
    }

    /// The merged record with its findings.
    ///
    /// # Errors
    /// No record was read.
    pub fn finish(self) -> Result<RunRecord, Complaint> {
        let hint = "`fathom history export RUN > FILE` on each host writes its record".to_owned();
        let message = match &self.first_unreadable {
            Some((source, reason)) => format!("no record can be merged: {source}: {reason}"),
            None => "there is no record to merge".to_owned(),
        };
        let mut record = self.merger.finish().ok_or_else(|| Complaint::usage(message, Some(hint)))?;
        record.findings = fathom_analysis::Analysis::of(&record).findings();
        Ok(record)
    }
}
