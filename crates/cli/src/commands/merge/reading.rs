//! Where records come from: files and directories, read a few at a time, and names of runs.

use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::thread;

use fathom_record::RunRecord;
use fathom_sys::files::RECORD;

use crate::exit::{Complaint, with_causes};

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
