//! `monitor --record`: its options, and what is said of it on standard error.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use fathom_assess::monitor::{RecordingBegun, RecordingProgress, RecordingSettings};
use fathom_model::text::shell_quoted;
use fathom_model::units::{bytes, grouped, parse_bytes};
use fathom_observed::recording::RecordingDetail;

use crate::exit::Complaint;

/// Smallest file of several.
const MIN_BYTES: u64 = 1 << 20;

/// Where to record to.
#[derive(Args)]
pub struct RecordingArguments {
    /// Record every I/O of one device for `fathom trace info` (needs root; else sums of each second)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["trace", "to_job"])]
    record: Option<PathBuf>,
    /// Begin another file at this size: FILE.00001, FILE.00002, ...
    #[arg(long, value_name = "SIZE", value_parser = file_size, requires = "record")]
    record_size: Option<u64>,
    /// Keep the N latest files [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), requires = "record_size")]
    record_files: Option<u32>,
}

fn file_size(text: &str) -> Result<u64, String> {
    match parse_bytes(text) {
        Ok(size) if size < MIN_BYTES => Err("the smallest size is 1 MiB".to_owned()),
        Ok(size) => Ok(size),
        Err(error) => Err(error.to_string()),
    }
}

impl RecordingArguments {
    /// What is asked for, if anything.
    pub fn settings(&self) -> Option<RecordingSettings> {
        let path = self.record.clone()?;
        Some(RecordingSettings { path, most_bytes: self.record_size, most_files: self.record_files })
    }
}

/// Lines on a recording that begins.
pub fn begun(begun: &RecordingBegun) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some((reason, hint)) = &begun.refused {
        lines.push(format!("monitor: cannot record requests, only counters of each second: {reason}"));
        lines.extend(hint.map(|hint| format!("hint: {hint}")));
    }
    // The first note of counters says what the line above says.
    let notes = begun.notes.iter().skip(usize::from(begun.refused.is_some()));
    lines.extend(notes.map(|note| format!("monitor: {note}")));
    let what = match begun.detail {
        RecordingDetail::Requests => "every I/O",
        RecordingDetail::Sums => "counters of each second",
    };
    lines.push(format!("monitor: recording {what} to {}", quoted(&begun.path)));
    lines
}

/// A line on events that were lost.
pub fn lost(events: u64) -> String {
    format!(
        "monitor: lost {} events: the kernel's buffers were full; they are counted in the recording",
        grouped(events)
    )
}

/// A line on a recording that has ended.
pub fn recorded(progress: &RecordingProgress) -> String {
    let files = match progress.files {
        1 => "1 file".to_owned(),
        files => format!("{files} files"),
    };
    let lost = match progress.lost {
        0 => "no event lost".to_owned(),
        lost => format!("{} events lost", grouped(lost)),
    };
    let (entries, size) = (grouped(progress.entries), bytes(progress.bytes));
    format!("monitor: recorded {entries} entries in {files}, {size}; {lost}")
}

/// A recording that ended early.
pub fn failed(reason: &str) -> Complaint {
    let hint = "free space or name a file elsewhere; `fathom trace info` reads what was written".to_owned();
    Complaint::failed(reason, Some(hint))
}

fn quoted(path: &std::path::Path) -> String {
    shell_quoted(&path.to_string_lossy()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_files_are_refused() {
        assert_eq!(file_size("1GiB"), Ok(1 << 30));
        assert_eq!(file_size("64k"), Err("the smallest size is 1 MiB".to_owned()));
        assert!(file_size("much").is_err());
    }

    #[test]
    fn losses_and_refusals_are_said() {
        let progress = RecordingProgress { entries: 1_234, bytes: 12_345, files: 2, lost: 5, failed: None };
        let line = recorded(&progress);
        assert!(line.contains("1,234 entries in 2 files") && line.ends_with("5 events lost"), "{line}");
        let refused = RecordingBegun {
            path: PathBuf::from("a b"),
            detail: RecordingDetail::Sums,
            refused: Some(("not allowed".to_owned(), Some("run as root"))),
            notes: vec!["counters".to_owned(), "another".to_owned()],
        };
        let lines = begun(&refused);
        assert_eq!(lines[1..3], ["hint: run as root".to_owned(), "monitor: another".to_owned()]);
        assert!(lines[3].ends_with("counters of each second to 'a b'"), "{lines:?}");
    }
}
