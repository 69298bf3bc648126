//! The store of the current run's record: the history, a side file, or none.
//!
//! No call fails. A failure returns a [`Warning`] with the new location of the record, which is used from then on.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fathom_record::{Finding, RunHeader, RunRecord, TestRecord, TestStatus};
use fathom_sys::files::{is_own_directory, make_private_directories, private_directory};

use crate::{Error, History, PATIENCE, RunId, SideFile, default_path};

/// The locations for a run's record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryPath {
    /// The history; `None` stores nothing.
    pub history: Option<PathBuf>,
    /// The directory of side files; `None` = the directory of the history.
    pub side_files: Option<PathBuf>,
    /// The user's data directory, the alternative if that one is not writable.
    pub own_directory: Option<PathBuf>,
    /// How long other processes' locks are waited for.
    pub patience: Duration,
}

impl HistoryPath {
    /// A location with side files next to the history.
    pub fn new(history: Option<PathBuf>) -> HistoryPath {
        let usual = default_path(|name| std::env::var_os(name));
        let own_directory = usual.and_then(|path| path.parent().map(Path::to_path_buf));
        HistoryPath { history, side_files: None, own_directory, patience: PATIENCE }
    }

    /// The directories to try for a side file, best first. Directories that others may write to come after the user's
    /// own, shared ones last.
    fn directories(&self) -> Vec<Directory> {
        let history = self.history.as_ref().and_then(|path| std::path::absolute(path).ok());
        // The directory of a device or a pipe is not suitable.
        let beside = history.filter(|path| !path.exists() || path.is_file() || path.is_dir());
        let beside = beside.as_deref().and_then(Path::parent).map(Path::to_path_buf);
        let wanted = self.side_files.clone().or(beside);
        let is_shared = wanted.as_ref().is_some_and(|wanted| !is_own_directory(wanted));
        let mut named: Vec<PathBuf> = wanted.into_iter().chain(self.own_directory.clone()).collect();
        if is_shared && self.side_files.is_none() {
            named.reverse();
        }
        named.into_iter().map(Directory::Named).chain([Directory::Temporary]).collect()
    }
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
        self.error.hint()
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
    header: RunHeader,
    directories: Vec<Directory>,
}

/// The store of one run's record.
#[derive(Debug)]
pub enum Store {
    /// The history.
    Database(Box<RunInProgress>),
    /// A side file.
    SideFile(Box<SideFile>),
    /// Nothing is stored.
    None,
}

impl Store {
    /// Begins a run at the location `place`.
    pub fn begin(place: &HistoryPath, header: &RunHeader) -> (Store, Option<Warning>) {
        let Some(path) = &place.history else { return (Store::None, None) };
        let begun = History::open(path, place.patience).and_then(|mut history| {
            let run = history.begin(header)?;
            Ok((history, run))
        });
        match begun {
            Ok((history, run)) => {
                let (header, directories) = (header.clone(), place.directories());
                (Store::Database(Box::new(RunInProgress { history, run, header, directories })), None)
            }
            Err(error) => {
                let record = RunRecord { header: header.clone(), ..RunRecord::default() };
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
            Store::Database(running) => running.history.append(running.run, test).err()?,
            Store::SideFile(side_file) => side_file.append(test).err()?,
            Store::None => return None,
        };
        let mut record = self.record_so_far();
        if matches!(self, Store::Database(_)) {
            record.tests.push(test.clone());
        }
        Some(self.move_on(record, error))
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
                running.history.finish(running.run, status, header, findings).err()?
            }
            Store::SideFile(side_file) => side_file.finish(status, header, findings).err()?,
            Store::None => return None,
        };
        let mut record = self.record_so_far();
        record.status = status;
        record.header.clone_from(header);
        record.findings = findings.to_vec();
        Some(self.move_on(record, error))
    }

    /// Where the record is.
    pub fn kept(&self) -> Kept {
        match self {
            Store::Database(running) => Kept::Run(running.run),
            Store::SideFile(side_file) => Kept::File(side_file.path().to_path_buf()),
            Store::None => Kept::Nowhere,
        }
    }

    /// The record so far: a history that cannot be written can usually still be read. If not, the stored tests stay in
    /// it, and [`History::import`] joins both parts.
    fn record_so_far(&self) -> RunRecord {
        match self {
            Store::Database(running) => running
                .history
                .load(running.run)
                .unwrap_or_else(|_| RunRecord { header: running.header.clone(), ..RunRecord::default() }),
            Store::SideFile(side_file) => side_file.record().clone(),
            Store::None => RunRecord::default(),
        }
    }

    /// Stores `record` in the next usable location.
    fn move_on(&mut self, record: RunRecord, error: Error) -> Warning {
        let directories = match self {
            Store::Database(running) => std::mem::take(&mut running.directories),
            Store::SideFile(side_file) => {
                let was_last = side_file.path().starts_with(std::env::temp_dir());
                if was_last { Vec::new() } else { vec![Directory::Temporary] }
            }
            Store::None => Vec::new(),
        };
        let next = to_side_file(record, &directories);
        let instead = next.kept();
        *self = next;
        Warning { error, instead }
    }
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
