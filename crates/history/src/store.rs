//! The store of the current run's record: the history, a side file, or none.
//!
//! No call fails. A failure returns a [`Warning`] with the new location of the record, which is used from then on. The side file
//! of a run whose server cannot be reached is sent later ([`crate::unsent`]).

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fathom_record::{Finding, RunHeader, RunRecord, TestRecord, TestStatus};
use fathom_sys::files::{is_own_directory, make_private_directories, private_directory};

use crate::database::SERVER_PATIENCE;
use crate::unsent::{self, Sent};
use crate::{Error, ErrorKind, History, Location, PATIENCE, RunId, SideFile, default_path};

/// The locations for a run's record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryPath {
    /// The history; `None` stores nothing.
    pub history: Option<Location>,
    /// The directory of side files; `None` = the directory of the history, or one of the user's own for each server.
    pub side_files: Option<PathBuf>,
    /// The user's data directory, the alternative if that one is not writable.
    pub own_directory: Option<PathBuf>,
    /// How long other processes' locks are waited for, during a run.
    pub patience: Duration,
    /// Tags that the run gets.
    pub tags: Vec<String>,
}

impl HistoryPath {
    /// A location with side files next to the history.
    pub fn new(history: Option<Location>) -> HistoryPath {
        let usual = default_path(|name| std::env::var_os(name));
        let own_directory = usual.and_then(|path| path.parent().map(Path::to_path_buf));
        let patience = match history {
            Some(Location::Server(_)) => SERVER_PATIENCE,
            _ => PATIENCE,
        };
        HistoryPath { history, side_files: None, own_directory, patience, tags: Vec::new() }
    }

    /// Sends the records that wait for the server in side files, through `history`, before it is read.
    pub fn send_unsent(&self, history: &mut History) -> Sent {
        unsent::send(self, Some(history), None)
    }

    /// The records that wait for the server in side files, oldest first.
    pub fn unsent_records(&self) -> Vec<RunRecord> {
        unsent::records(self)
    }

    /// The directories to try for a side file, best first. Directories that others may write to come after the user's
    /// own, shared ones last.
    fn directories(&self) -> Vec<Directory> {
        let beside = self.history.as_ref().and_then(Location::file).and_then(beside);
        let wanted = self.side_files.clone().or_else(|| unsent::directory(self));
        let is_shared = wanted.is_none() && beside.as_ref().is_some_and(|beside| !is_own_directory(beside));
        let wanted = wanted.or(beside);
        let mut named: Vec<PathBuf> = wanted.into_iter().chain(self.own_directory.clone()).collect();
        if is_shared {
            named.reverse();
        }
        named.into_iter().map(Directory::Named).chain([Directory::Temporary]).collect()
    }
}

/// The directory of a history in a file. The directory of a device or a pipe is not suitable.
fn beside(path: &Path) -> Option<PathBuf> {
    let path = std::path::absolute(path).ok()?;
    let is_suitable = !path.exists() || path.is_file() || path.is_dir();
    is_suitable.then(|| path.parent().map(Path::to_path_buf)).flatten()
}

/// A directory for side files.
#[derive(Clone, Debug)]
enum Directory {
    Named(PathBuf),
    /// A new private directory among the temporary files.
    Temporary,
}

impl Directory {
    /// Stores `record` in it; a missing user directory is created.
    fn take(&self, record: RunRecord) -> Option<SideFile> {
        match self {
            Directory::Named(path) => {
                make_private_directories(path).ok()?;
                SideFile::take_over(path, record).ok()
            }
            Directory::Temporary => {
                let path = private_directory().ok()?;
                let taken = SideFile::take_over(&path, record).ok();
                if taken.is_none() {
                    // It is empty, and was created only for this.
                    let _ = std::fs::remove_dir(&path);
                }
                taken
            }
        }
    }
}

/// The location of a run's record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    /// In the history, under this number.
    Run(RunId),
    /// In a side file.
    File(PathBuf),
    /// Nowhere.
    Nowhere,
}

/// A failure to store, and the new location of the record. Displayed with the causes, on one line.
#[derive(Debug)]
pub struct Warning {
    /// The failure.
    pub error: Error,
    /// The location of the record from now on.
    pub instead: Kept,
}

impl Warning {
    /// The remedy.
    pub fn hint(&self) -> Option<String> {
        match (self.error.kind, &self.instead) {
            (ErrorKind::Unreachable, Kept::File(path)) => Some(match unsent::is_sent_later(path) {
                true => format!(
                    "a later run sends the record to the server; so does `fathom history import {}`",
                    path.display()
                ),
                false => format!("send the record later with `fathom history import {}`", path.display()),
            }),
            _ => self.error.hint(),
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.error)?;
        let mut cause = std::error::Error::source(&self.error);
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        match &self.instead {
            Kept::Run(run) => write!(f, "; the record is kept as run {run}"),
            Kept::File(path) => write!(f, "; the record is kept in {} instead", path.display()),
            Kept::Nowhere => write!(f, "; the record is not kept"),
        }
    }
}

/// A run in the history, with the data needed to continue elsewhere.
#[derive(Debug)]
pub struct RunInProgress {
    history: History,
    run: RunId,
    /// As it is stored, because a history that fails may not be readable any more.
    record: RunRecord,
    directories: Vec<Directory>,
}

/// The store of one run's record.
#[derive(Debug)]
pub enum Store {
    /// The history.
    Database(Box<RunInProgress>),
    /// A side file.
    SideFile(Box<SideFile>),
    /// The history, to which the side file of this run was sent after its end.
    Sent(RunId),
    /// Nothing is stored.
    None,
}

impl Store {
    /// Begins a run at the location `place`.
    pub fn begin(place: &HistoryPath, header: &RunHeader) -> (Store, Option<Warning>) {
        let Some(location) = &place.history else { return (Store::None, None) };
        let header = &RunHeader { tags: place.tags.clone(), ..header.clone() };
        let begun = History::open(location, place.patience).and_then(|mut history| {
            let run = history.begin(header)?;
            Ok((history, run))
        });
        let record = RunRecord { header: header.clone(), ..RunRecord::default() };
        match begun {
            Ok((history, run)) => {
                let directories = place.directories();
                (Store::Database(Box::new(RunInProgress { history, run, record, directories })), None)
            }
            Err(error) => {
                let store = to_side_file(record, &place.directories());
                let warning = Warning { error, instead: store.kept() };
                (store, Some(warning))
            }
        }
    }

    /// Adds a finished test, durably.
    #[must_use = "a warning is for the user"]
    pub fn append(&mut self, test: &TestRecord) -> Option<Warning> {
        let error = match self {
            Store::Database(running) => {
                let stored = running.history.append(running.run, test);
                running.record.tests.push(test.clone());
                stored.err()?
            }
            Store::SideFile(side_file) => side_file.append(test).err()?,
            Store::Sent(_) | Store::None => return None,
        };
        Some(self.move_on(error))
    }

    /// Says how the run ended, with its header as it stands at the end and what the numbers tell.
    #[must_use = "a warning is for the user"]
    pub fn finish(
        &mut self,
        status: TestStatus,
        header: &RunHeader,
        findings: &[Finding],
    ) -> Option<Warning> {
        let error = match self {
            Store::Database(running) => {
                running.record.status = status;
                replace_header(&mut running.record, header);
                running.record.findings = findings.to_vec();
                running.history.finish_record(running.run, &running.record).err()?
            }
            Store::SideFile(side_file) => side_file.finish(status, header, findings).err()?,
            Store::Sent(_) | Store::None => return None,
        };
        Some(self.move_on(error))
    }

    /// Sends what runs left beside the server of `place`, once this run has ended: others, and this one if it is in a side file.
    pub fn send_unsent(&mut self, place: &HistoryPath) -> Sent {
        let own = match self {
            Store::SideFile(side_file) => side_file.path().to_path_buf(),
            Store::Database(running) => return unsent::send(place, Some(&mut running.history), None),
            Store::Sent(_) | Store::None => return Sent::default(),
        };
        let mut sent = unsent::send(place, None, Some(&own));
        if let Some(index) = sent.runs.iter().position(|(file, _)| *file == own) {
            *self = Store::Sent(sent.runs.remove(index).1);
        }
        sent
    }

    /// Where the record is.
    pub fn kept(&self) -> Kept {
        match self {
            Store::Database(running) => Kept::Run(running.run),
            Store::SideFile(side_file) => Kept::File(side_file.path().to_path_buf()),
            Store::Sent(run) => Kept::Run(*run),
            Store::None => Kept::Nowhere,
        }
    }

    /// Stores the record in the next usable location.
    fn move_on(&mut self, error: Error) -> Warning {
        let next = match self {
            Store::Database(running) => {
                to_side_file(std::mem::take(&mut running.record), &running.directories)
            }
            Store::SideFile(side_file) => {
                let was_last = side_file.path().starts_with(std::env::temp_dir());
                let directories = if was_last { Vec::new() } else { vec![Directory::Temporary] };
                to_side_file(side_file.record().clone(), &directories)
            }
            Store::Sent(_) | Store::None => return Warning { error, instead: self.kept() },
        };
        let instead = next.kept();
        *self = next;
        Warning { error, instead }
    }
}

/// Replaces the header of a record, and keeps the tags that it was given when it began.
pub(crate) fn replace_header(record: &mut RunRecord, header: &RunHeader) {
    let tags = std::mem::take(&mut record.header.tags);
    record.header.clone_from(header);
    record.header.tags = tags;
}

fn to_side_file(record: RunRecord, directories: &[Directory]) -> Store {
    for directory in directories {
        // Unusable directories are skipped: the warning is about the history.
        if let Some(side_file) = directory.take(record.clone()) {
            return Store::SideFile(Box::new(side_file));
        }
    }
    Store::None
}
