//! Records of runs whose server could not be reached: side files in a directory of the user's own for each server, which later
//! runs send.
//!
//! A record that is sent twice is one run: [`History::import`] joins them. So the file of a run that goes on may be sent too,
//! and two processes may send the same file.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fathom_record::{RunRecord, TestStatus};
use fathom_sys::clock::monotonic_ns;
use fathom_sys::files::RECORD;

use crate::database::is_in_a_hurry;
use crate::error::ErrorKind;
use crate::location::DIRECTORY_PREFIX;
use crate::{Error, History, HistoryPath, Location, RunId};

/// Longest time to send records at the end of a run; the others are sent by later runs.
const SENDING: Duration = Duration::from_secs(5);
/// The same after a request to end the process.
const HURRIED: Duration = Duration::from_millis(500);

/// What was sent to a server.
#[derive(Debug, Default)]
pub struct Sent {
    /// The side files that were, and are removed, with the run that each became.
    pub runs: Vec<(PathBuf, RunId)>,
    /// Side files that cannot be sent.
    pub errors: Vec<Error>,
}

/// The directory for side files of the server of `place`; `None` for a file, and without a directory of the user's own.
pub(crate) fn directory(place: &HistoryPath) -> Option<PathBuf> {
    match place.history.as_ref()? {
        Location::Server(server) => Some(place.own_directory.as_ref()?.join(server.directory_name()?)),
        Location::File(_) => None,
    }
}

/// Whether a side file is in such a directory, and not in one of the temporary files.
pub(crate) fn is_sent_later(file: &Path) -> bool {
    let directory = file.parent().and_then(Path::file_name);
    directory.is_some_and(|name| name.to_string_lossy().starts_with(DIRECTORY_PREFIX))
}

/// Sends side files to the server of `place`, through `history` where it is open; `own` is the file of this run.
pub(crate) fn send(place: &HistoryPath, history: Option<&mut History>, own: Option<&Path>) -> Sent {
    let mut sent = Sent::default();
    let files = directory(place).map(|directory| side_files(&directory)).unwrap_or_default();
    let (Some(location), false) = (&place.history, files.is_empty()) else { return sent };
    let start = monotonic_ns();
    let mut opened = None;
    let history = match history {
        Some(history) => history,
        // Why it cannot be opened was said when the side file was begun.
        None => match History::open(location, place.patience) {
            Ok(history) => opened.insert(history),
            Err(_) => return sent,
        },
    };
    for file in files {
        let limit = if is_in_a_hurry() { HURRIED } else { SENDING };
        if Duration::from_nanos(monotonic_ns().saturating_sub(start)) >= limit {
            break;
        }
        if own != Some(&file) && is_being_written(&file) {
            continue;
        }
        match history.import_file(&file) {
            Ok(run) => {
                // Another process may have sent and removed it.
                let _ = fs::remove_file(&file);
                sent.runs.push((file, run));
            }
            // Another process has sent it.
            Err(error) if error.kind == ErrorKind::Input && !file.exists() => {}
            Err(error) => {
                let is_of_file =
                    matches!(error.kind, ErrorKind::Unreadable | ErrorKind::Input) && file.exists();
                sent.errors.push(error);
                if !is_of_file {
                    break;
                }
            }
        }
    }
    sent
}

/// The records in side files that wait for the server of `place`, oldest first; those of runs that go on are among them. Unreadable
/// files are reported when they are sent.
pub(crate) fn records(place: &HistoryPath) -> Vec<RunRecord> {
    let files = directory(place).map(|directory| side_files(&directory)).unwrap_or_default();
    let read = |file: &PathBuf| RunRecord::from_json(&RECORD.read_text(file).ok()?).ok();
    files.iter().filter_map(read).collect()
}

/// The side files in `directory`, oldest first.
fn side_files(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let mut files: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).filter(|path| process_of(path).is_some()).collect();
    files.sort();
    files
}

/// The process that wrote a side file, by its name `fathom-STARTED-PID[-NUMBER].json`.
fn process_of(path: &Path) -> Option<u32> {
    let name = path.file_name()?.to_str()?.strip_prefix("fathom-")?.strip_suffix(".json")?;
    name.split('-').nth(1)?.parse().ok()
}

/// Whether the run in a side file goes on.
fn is_being_written(path: &Path) -> bool {
    let lives = process_of(path).is_some_and(|pid| Path::new("/proc").join(pid.to_string()).exists());
    let read = || RunRecord::from_json(&RECORD.read_text(path).ok()?).ok();
    lives && read().is_some_and(|record| record.status == TestStatus::Incomplete)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn side_files_are_recognised_by_their_names() {
        let check = |name: &str, expected| assert_eq!(process_of(Path::new(name)), expected, "{name}");
        check("/x/fathom-20260921T141320Z-71.json", Some(71));
        check("fathom-simulated-71-2.json", Some(71));
        check("fathom-simulated.json", None);
        check("history.db", None);
        check("fathom-20260921T141320Z-71.json.tmp", None);
    }
}
