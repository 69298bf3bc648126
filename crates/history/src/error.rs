//! Errors of the history, with its location and the remedy. None of them stops a measurement.

use std::fmt::Display;
use std::io;
use std::path::Path;

use fathom_record::RecordError;
use fathom_sys::files::{InputError, PathRefusal};
use fathom_sys::libpq::LOADS_LIBRARIES;
use rusqlite::ErrorCode;

use crate::{Location, RunId};

/// The remedy where the client library of a server cannot be loaded.
const NO_CLIENT_HINT: &str = match LOADS_LIBRARIES {
    true => "install libpq (Debian and Ubuntu: libpq5; Fedora and RHEL: libpq; Arch: postgresql-libs)",
    false => "use a fathom that loads libraries: from a package, or built with cargo install",
};

/// The remedy that is left where the history itself cannot be used.
pub(crate) const ANOTHER: &str = "use another history with --history or FATHOM_HISTORY";

/// The kinds of failures that callers treat differently, and those that databases report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// There is no history yet.
    Missing,
    /// Its path, its owner, its format or its URI is not one that can be used.
    Unusable,
    /// A file or directory could not be inspected, created or written.
    Io,
    /// Its name leads elsewhere now, so that what was written cannot be found.
    Displaced,
    NotADatabase,
    Corrupt,
    Locked,
    ReadOnly,
    /// This user of the server lacks a privilege.
    Denied,
    NoSpace,
    /// SQLite could not open the file and gives no reason.
    CannotOpen,
    Unreachable,
    /// The client library of a server is missing.
    NoClient,
    /// Unknown runs were named. Nothing was changed.
    UnknownRun,
    /// A stored run, or a side file, is not a record.
    Unreadable,
    /// A file given as a record cannot be read.
    Input,
    /// A tag or a note that a run cannot have.
    BadText,
    Other,
}

/// A failure of a database, before it is known what failed.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}{}", if code.is_empty() { String::new() } else { format!(" ({code})") })]
pub(crate) struct Failure {
    pub(crate) kind: ErrorKind,
    pub(crate) message: String,
    /// SQLite's extended result code, or the server's SQLSTATE; empty if the failure was not the database's.
    pub(crate) code: String,
}

impl Failure {
    /// A failure that is not the database's own.
    pub(crate) fn new(kind: ErrorKind, message: String) -> Failure {
        Failure { kind, message, code: String::new() }
    }
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Failure {
        let code = error.sqlite_error().map(|error| (error.code, error.extended_code));
        let kind = match code {
            Some((ErrorCode::NotADatabase, _)) => ErrorKind::NotADatabase,
            Some((ErrorCode::DatabaseCorrupt, _)) => ErrorKind::Corrupt,
            Some((
                ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed,
                _,
            )) => ErrorKind::Locked,
            Some((ErrorCode::ReadOnly | ErrorCode::PermissionDenied, _)) => ErrorKind::ReadOnly,
            // The shared memory of a write-ahead log is a file too, and fails first on a full disk.
            Some((ErrorCode::DiskFull, _) | (_, rusqlite::ffi::SQLITE_IOERR_SHMSIZE)) => ErrorKind::NoSpace,
            Some((_, code)) if code & 0xff == rusqlite::ffi::SQLITE_CANTOPEN => ErrorKind::CannotOpen,
            _ => ErrorKind::Other,
        };
        let code = code.map_or(String::new(), |(_, code)| format!("SQLite code {code}"));
        Failure { kind, message: error.to_string(), code }
    }
}

/// A failure of the history.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    pub kind: ErrorKind,
    message: String,
    hint: Option<String>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>, hint: impl Into<String>) -> Error {
        Error { kind, message: message.into(), hint: Some(hint.into()), source: None }
    }

    /// What is wrong with the history at `at`.
    pub(crate) fn at(
        at: impl Display,
        kind: ErrorKind,
        what: impl Display,
        hint: impl Into<String>,
    ) -> Error {
        Error::new(kind, format!("history {at}: {what}"), hint)
    }

    pub(crate) fn missing(at: impl Display, what: &str) -> Error {
        let hint = format!("run `fathom bench`, which creates it; or {ANOTHER}");
        Error::at(at, ErrorKind::Missing, what, hint)
    }

    pub(crate) fn read_only(at: &Location) -> Error {
        Error::from_failure(at, "", Failure::new(ErrorKind::ReadOnly, String::new()))
    }

    /// The error of `action` on the history at `at`.
    pub(crate) fn from_failure(at: &Location, action: &str, failure: Failure) -> Error {
        let what = match failure.kind {
            ErrorKind::NotADatabase => "is not a fathom history",
            ErrorKind::Corrupt => "is damaged",
            ErrorKind::Locked => "is locked by another process",
            ErrorKind::ReadOnly => "cannot be written",
            ErrorKind::NoSpace => "no space left on its file system",
            ErrorKind::Unreachable => "no connection to the server",
            ErrorKind::NoClient => "cannot load PostgreSQL's client library",
            _ => &format!("cannot {action}"),
        };
        let hint = match (failure.kind, at.file().map(Path::display)) {
            (ErrorKind::NotADatabase | ErrorKind::Corrupt, Some(path)) => format!(
                "move it away (mv '{path}' '{path}.damaged') to start a new one; recover it with `sqlite3 '{path}.damaged' .recover`"
            ),
            (ErrorKind::NotADatabase | ErrorKind::Corrupt, None) => {
                "restore the database from a backup; the log of the server has details".to_owned()
            }
            (ErrorKind::Locked, Some(path)) => {
                format!("wait for the other process (see `fuser '{path}'`), or {ANOTHER}")
            }
            (ErrorKind::Locked, None) => {
                format!("wait for the other process (see pg_stat_activity), or {ANOTHER}")
            }
            (ErrorKind::ReadOnly, Some(path)) => {
                format!("make '{path}' and its directory writable for this user, or {ANOTHER}")
            }
            (ErrorKind::ReadOnly, None) => {
                format!("name the primary server: this one accepts no changes; or {ANOTHER}")
            }
            (ErrorKind::NoSpace, _) => format!("free some space, or {ANOTHER}"),
            (ErrorKind::NoClient, _) => NO_CLIENT_HINT.to_owned(),
            (ErrorKind::Unreachable, _) => {
                format!("check that the server runs and accepts this user; or {ANOTHER}")
            }
            (ErrorKind::Denied, _) => {
                "grant this user CREATE on the database, or on schema fathom USAGE and on its tables SELECT, INSERT, UPDATE and DELETE"
                    .to_owned()
            }
            _ => ANOTHER.to_owned(),
        };
        let error = Error::at(at, failure.kind, what, hint);
        // What databases say of a read-only one adds nothing.
        let has_source = failure.kind != ErrorKind::ReadOnly;
        Error { source: has_source.then(|| failure.into()), ..error }
    }

    pub(crate) fn io(action: &str, path: &Path, source: io::Error) -> Error {
        let hint = match (PathRefusal::of(&source), source.kind()) {
            (Some(refusal), _) => refusal.hint().to_owned(),
            (None, io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem) => {
                format!("make the directory writable for this user, or {ANOTHER}")
            }
            (None, io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) => {
                format!("free some space, or {ANOTHER}")
            }
            _ => ANOTHER.to_owned(),
        };
        let error = Error::new(ErrorKind::Io, format!("cannot {action} {}", path.display()), hint);
        Error { source: Some(source.into()), ..error }
    }

    /// `what` of the history or the side file at `at` is not a record.
    pub(crate) fn unreadable(at: &Location, what: &str, source: RecordError) -> Error {
        Error {
            kind: ErrorKind::Unreadable,
            message: format!("{at}: cannot read {what}"),
            hint: source.hint().map(str::to_owned),
            source: Some(source.into()),
        }
    }

    /// True where there is no history yet.
    pub fn is_missing(&self) -> bool {
        self.kind == ErrorKind::Missing
    }

    /// The remedy, if there is one.
    pub fn hint(&self) -> Option<String> {
        self.hint.clone()
    }
}

impl From<InputError> for Error {
    fn from(error: InputError) -> Error {
        Error::new(ErrorKind::Input, error.to_string(), error.hint())
    }
}

pub(crate) fn listed(ids: &[RunId]) -> String {
    ids.iter().map(RunId::to_string).collect::<Vec<_>>().join(", ")
}
