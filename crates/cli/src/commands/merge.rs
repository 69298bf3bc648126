//! `fathom fleet merge`: one report from the records of many hosts.

use std::ffi::OsString;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::thread;

use clap::{Args, ValueEnum};
use fathom_history::Location;
use fathom_record::{FleetMerger, MergeRules, RunRecord};
use fathom_sys::files::{RECORD, check_output};

use super::compare::sources::SourceReader;
use super::format_arguments::FormatArguments;
use super::run_arguments::{KeepArguments, words};
use super::{report, shown};
use crate::exit::{Complaint, Exit, with_causes};
use crate::output;
use crate::ranks::keep_and_print;

/// What `fathom fleet merge` takes.
#[derive(Args)]
#[command(after_long_help = EXAMPLES)]
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
    #[command(flatten, next_help_heading = "Output")]
    form: FormatArguments,
    /// Write the report as a page with charts as well
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    #[command(flatten, next_help_heading = "History")]
    keeping: KeepArguments,
    /// Do not keep the merged run [default: measured runs are kept, simulated ones are not]
    #[arg(long, conflicts_with_all = ["history", "keep"])]
    no_history: bool,
}

const EXAMPLES: &str = "\
Examples:
  fathom history export last > $(hostname).json     on each host, after its run
  fathom fleet merge results/                       all records in a directory
  fathom fleet merge h1.json h2.json h3.json -o fleet.json
  fathom fleet merge results/ --ranks 64 --report fleet.html
  fathom fleet merge results/ --format csv > hosts.csv   a row for each host
  fathom fleet merge tag:fleet1 --tag merged        runs of a history that all hosts share
  fathom compare before.json after.json             two merged records

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
    let names = expand(&arguments.sources)?;
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
    read_files(&files, |read| merging.add(read))?;
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

/// Endings of the files that are read of a directory.
const ENDINGS: [&str; 3] = ["json", "jsonl", "rec"];
/// Files that a thread reads before their records are merged, and most threads that read.
const FILES_AT_A_TIME: usize = 4;
const MAX_THREADS: usize = 8;
/// What every record of fathom has.
const OWN_SCHEMA: &str = "\"fathom.record/";

/// A source as it is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceName {
    /// A file of records.
    File(PathBuf),
    /// Runs of the history.
    Run(String),
}

impl SourceName {
    /// The file.
    pub fn file(&self) -> Option<&Path> {
        match self {
            SourceName::File(path) => Some(path),
            SourceName::Run(_) => None,
        }
    }

    /// The name of runs.
    pub fn run(&self) -> Option<&str> {
        match self {
            SourceName::File(_) => None,
            SourceName::Run(name) => Some(name),
        }
    }
}

/// A record, or why it cannot be read.
#[derive(Debug)]
pub struct ReadRecord {
    /// The file, with its line where there are several, or the run.
    pub source: String,
    /// The record.
    pub record: Result<RunRecord, String>,
}

/// The sources behind the names on the command line, the files of a directory in the order of their names.
///
/// # Errors
/// A directory cannot be read, or has no records; standard input is named.
pub fn expand(names: &[String]) -> Result<Vec<SourceName>, Complaint> {
    let mut sources = Vec::new();
    for name in names {
        let path = Path::new(name);
        if name == "-" {
            let hint = "write the records to files; a file may hold several, one a line".to_owned();
            return Err(Complaint::usage("merge reads no standard input", Some(hint)));
        }
        if path.is_dir() {
            sources.extend(of_directory(path)?.into_iter().map(SourceName::File));
        } else if path.exists() || name.contains('/') {
            sources.push(SourceName::File(path.to_path_buf()));
        } else {
            sources.push(SourceName::Run(name.clone()));
        }
    }
    Ok(sources)
}

fn of_directory(path: &Path) -> Result<Vec<PathBuf>, Complaint> {
    let failed = |error: std::io::Error| {
        Complaint::failed(format!("cannot read {}: {}", path.display(), crate::output::plain(&error)), None)
    };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).map_err(failed)? {
        let file = entry.map_err(failed)?.path();
        let is_record = file
            .extension()
            .and_then(|ending| ending.to_str())
            .is_some_and(|ending| ENDINGS.contains(&ending.to_ascii_lowercase().as_str()));
        let is_hidden = file.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if is_record && !is_hidden && !file.is_dir() {
            files.push(file);
        }
    }
    if files.is_empty() {
        let message = format!("{} has no files of records", path.display());
        let endings = ENDINGS.map(|ending| format!(".{ending}")).join(", ");
        return Err(Complaint::usage(message, Some(format!("their names end in {endings}"))));
    }
    files.sort();
    Ok(files)
}

/// Reads the records of all files, in their order. Several are read at a time, and no more.
///
/// # Errors
/// Those of `take`.
pub fn read_files(
    files: &[&Path],
    mut take: impl FnMut(ReadRecord) -> Result<(), Complaint>,
) -> Result<(), Complaint> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(MAX_THREADS);
    in_order(files, threads, |file| of_file(file), &mut take)
}

/// Applies `read` on several threads and `take` to the results in order.
fn in_order<T: Sync>(
    inputs: &[T],
    threads: usize,
    read: impl Fn(&T) -> Vec<ReadRecord> + Sync,
    take: &mut impl FnMut(ReadRecord) -> Result<(), Complaint>,
) -> Result<(), Complaint> {
    for batch in inputs.chunks(threads * FILES_AT_A_TIME) {
        let found: Vec<Vec<ReadRecord>> = thread::scope(|scope| {
            let read = &read;
            let parts: Vec<_> = batch
                .chunks(batch.len().div_ceil(threads))
                .map(|part| scope.spawn(move || part.iter().flat_map(read).collect::<Vec<ReadRecord>>()))
                .collect();
            let joined = parts.into_iter().map(thread::ScopedJoinHandle::join);
            joined.map(|part| part.unwrap_or_else(|cause| std::panic::resume_unwind(cause))).collect()
        });
        found.into_iter().flatten().try_for_each(&mut *take)?;
    }
    Ok(())
}

fn of_file(path: &Path) -> Vec<ReadRecord> {
    let source = path.display().to_string();
    match RECORD.read_text(path) {
        Ok(text) => records(&source, &text),
        Err(error) => vec![ReadRecord { source, record: Err(error.to_string()) }],
    }
}

/// The records of a text: one, or one a line.
fn records(source: &str, text: &str) -> Vec<ReadRecord> {
    let one = |source: String, text: &str| {
        let record = RunRecord::from_json(text).map_err(|error| with_causes(&error));
        ReadRecord { source, record }
    };
    if !text.contains(OWN_SCHEMA) {
        // Figures of another program, or of a report of fathom.
        let record = fathom_import::import(text, source).map_err(|error| error.to_string());
        return vec![ReadRecord { source: source.to_owned(), record }];
    }
    let lines: Vec<(usize, &str)> =
        text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).collect();
    let is_record = |line: &str| line.starts_with('{') && line.contains(OWN_SCHEMA);
    match lines.as_slice() {
        [_, _, ..] if lines.iter().all(|(_, line)| is_record(line)) => {
            lines.iter().map(|(at, line)| one(format!("{source}:{}", at + 1), line)).collect()
        }
        _ => vec![one(source.to_owned(), text)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_one_record_or_one_a_line() {
        let read = |text: &str| -> Vec<(String, Result<(), String>)> {
            records("x", text).into_iter().map(|read| (read.source, read.record.map(drop))).collect()
        };
        const RECORD: &str =
            r#"{"schema":"fathom.record/2","header":{"target":"","activity":{"kind":"bench"}},"tests":[]}"#;
        assert_eq!(read(RECORD), [("x".to_owned(), Ok(()))]);
        let two = read(&format!("{RECORD}\n\n{{\"schema\":\"fathom.record/9\"}}\n"));
        assert_eq!(two[0], ("x:1".to_owned(), Ok(())));
        assert_eq!(two[1].0, "x:3");
        assert!(two[1].1.as_ref().unwrap_err().contains("version 9"), "{two:?}");
        let reason = |text: &str| read(text)[0].1.clone().unwrap_err();
        assert!(!reason(" ").is_empty() && !reason("hello").is_empty());
        assert!(reason("{\"schema\":\"fathom.record/2\",\"tests\":[").contains("EOF"));
        let spread = format!("{{\n{}", &RECORD[1..]);
        assert_eq!(read(&spread), [("x".to_owned(), Ok(()))]);
    }

    #[test]
    fn records_come_in_the_order_of_their_files() {
        let files: Vec<String> = (0..57).map(|number: usize| number.to_string()).collect();
        let read = |name: &String| records(name, "{\"schema\":\"fathom.record/2\"}");
        let mut names = Vec::new();
        in_order(&files, 3, read, &mut |read| {
            names.push(read.source);
            Ok(())
        })
        .unwrap();
        assert_eq!(names, files);
    }
}
