//! Where the record of the run in hand goes: the history, else a file beside it, else nowhere.
//!
//! No call here fails. What could not be done comes back as a [`Warning`] that says where the record goes instead,
//! and from then on it goes there.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fathom_record::{Finding, RunHeader, RunRecord, TestRecord, TestStatus};
use fathom_sys::files::{is_own_directory, make_private_directories, private_directory};

use crate::{Error, History, PATIENCE, RunId, SideFile, default_path};

/// Where to keep a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryPath {
    /// The history; `None` keeps nothing.
    pub history: Option<PathBuf>,
    /// Where side files go; `None` is the directory of the history.
    pub side_files: Option<PathBuf>,
    /// The directory of this user's own data, where they go where that one takes none.
    pub own_directory: Option<PathBuf>,
    /// How long other processes' locks are waited for.
    pub patience: Duration,
}

impl HistoryPath {
    /// A place whose side files go beside the history.
    pub fn new(history: Option<PathBuf>) -> HistoryPath {
        let usual = default_path(|name| std::env::var_os(name));
        let own_directory = usual.and_then(|path| path.parent().map(Path::to_path_buf));
        HistoryPath { history, side_files: None, own_directory, patience: PATIENCE }
    }

    /// The directories in which a side file is tried, best first. One that others may write to comes after this user's
    /// own, and what all share is the last resort.
    fn directories(&self) -> Vec<Directory> {
        let history = self.history.as_ref().and_then(|path| std::path::absolute(path).ok());
        // What a device or a pipe is named by is no place for files.
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

/// Where a side file may go.
#[derive(Clone, Debug)]
enum Directory {
    Named(PathBuf),
    /// A directory made for it, which nobody else can look into, among the temporary files.
    Temporary,
}

impl Directory {
    /// Keeps `record` in it; a directory of this user's own is made where it is missing.
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
                    // It is empty, and was made for this alone.
                    let _ = std::fs::remove_dir(&path);
                }
                taken
            }
        }
    }
}

/// Where a run is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    /// In the history, under this number.
    Run(RunId),
    /// In a file of its own.
    File(PathBuf),
    /// Nowhere.
    Nowhere,
}

/// Something that could not be stored, and what became of the record. Displayed with the causes, on one line.
#[derive(Debug)]
pub struct Warning {
    /// What went wrong.
    pub error: Error,
    /// Where the record goes from now on.
    pub instead: Kept,
}

impl Warning {
    /// What to do about it.
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

/// A run in the history, with what is needed to go on elsewhere.
#[derive(Debug)]
pub struct RunInProgress {
    history: History,
    run: RunId,
    header: RunHeader,
    directories: Vec<Directory>,
}

/// The keeper of one run's record.
#[derive(Debug)]
pub enum Store {
    /// The history.
    Database(Box<RunInProgress>),
    /// A file of its own.
    SideFile(Box<SideFile>),
    /// Nothing is kept.
    None,
}

impl Store {
    /// Enters a run where `place` says.
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

    /// The record as far as it can be had: a history that cannot be written can mostly still be read. Where it cannot,
    /// the tests it took stay in it, and [`History::import`] brings both parts together.
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

    /// Keeps `record` in the next place that takes it.
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
        // A directory that does not take it is passed over: the warning is about the history.
        if let Some(side_file) = directory.take(record.clone()) {
            return Store::SideFile(Box::new(side_file));
        }
    }
    Store::None
}
