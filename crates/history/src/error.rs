//! Errors of the history, with its location and the remedy.

use std::io;
use std::path::PathBuf;

use fathom_record::RecordError;
use fathom_sys::files::{InputError, PathRefusal};
use fathom_sys::libpq::LOADS_LIBRARIES;
use rusqlite::ErrorCode;

use crate::{Location, OtherName, RunId};

/// The remedy where the client library of a server cannot be loaded.
const NO_CLIENT_HINT: &str = match LOADS_LIBRARIES {
    true => "install libpq (Debian and Ubuntu: libpq5; Fedora and RHEL: libpq; Arch: postgresql-libs)",
    false => "use a fathom that loads libraries: from a package, or built with cargo install",
};

/// The remedy where the history has gone from its place.
const DISPLACED_HINT: &str =
    "`fathom history import` adds the record to a history; move one only while nothing uses it";

/// The error of a database.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}{}", if code.is_empty() { String::new() } else { format!(" ({code})") })]
pub struct DatabaseError {
    /// Its message.
    pub message: String,
    /// Its code: SQLite's extended result code, or the server's SQLSTATE; empty if the failure was not the database's.
    pub code: String,
}

/// The kinds of failures of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailureKind {
    NotADatabase,
    Corrupt,
    Locked,
    ReadOnly,
    Denied,
    NoSpace,
    /// SQLite could not open the file and gives no reason.
    CannotOpen,
    Unreachable,
    /// The client library of a server is missing.
    NoClient,
    Other,
}

/// A failure of a database, before it is known what failed.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) kind: FailureKind,
    pub(crate) message: String,
    pub(crate) code: String,
}

impl Failure {
    /// A failure that is not the database's own.
    pub(crate) fn new(kind: FailureKind, message: String) -> Failure {
        Failure { kind, message, code: String::new() }
    }
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Failure {
        let code = error.sqlite_error().map(|error| (error.code, error.extended_code));
        let kind = match code {
            Some((ErrorCode::NotADatabase, _)) => FailureKind::NotADatabase,
            Some((ErrorCode::DatabaseCorrupt, _)) => FailureKind::Corrupt,
            Some((
                ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed,
                _,
            )) => FailureKind::Locked,
            Some((ErrorCode::ReadOnly | ErrorCode::PermissionDenied, _)) => FailureKind::ReadOnly,
            // The shared memory of a write-ahead log is a file too, and fails first on a full disk.
            Some((ErrorCode::DiskFull, _) | (_, rusqlite::ffi::SQLITE_IOERR_SHMSIZE)) => FailureKind::NoSpace,
            Some((_, code)) if code & 0xff == rusqlite::ffi::SQLITE_CANTOPEN => FailureKind::CannotOpen,
            _ => FailureKind::Other,
        };
        let code = code.map_or(String::new(), |(_, code)| format!("SQLite code {code}"));
        Failure { kind, message: error.to_string(), code }
    }
}

/// A failure of the history. None of them stops a measurement.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The path names a directory.
    #[error("history {}: is a directory, not a file", path.display())]
    IsDirectory {
        /// The path given for the history.
        path: PathBuf,
    },
    /// The path names a device, a pipe or a socket.
    #[error("history {}: is not a regular file", path.display())]
    NotAFile {
        /// The path given for the history.
        path: PathBuf,
    },
    /// The file does not exist.
    #[error("history {}: no such file", path.display())]
    Missing {
        /// The path given for the history.
        path: PathBuf,
    },
    /// The file has further names, by which another process may use it unseen.
    #[error("history {}: {name}", path.display())]
    OtherNames {
        /// The path given for the history.
        path: PathBuf,
        /// By what.
        name: OtherName,
    },
    /// Its name leads elsewhere now, so that what was written cannot be found.
    #[error("history {at}: was removed, moved or replaced while it was in use")]
    Displaced {
        /// The history.
        at: Location,
    },
    /// A file or directory could not be inspected, created or written.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// The failed action, a verb.
        action: &'static str,
        /// Its object.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The file is not an SQLite database.
    #[error("history {at}: is not a fathom history")]
    NotADatabase {
        /// The history.
        at: Location,
        /// The error of the database.
        source: DatabaseError,
    },
    /// The database is that of another program.
    #[error("history {at}: is the database of another program (application id {application_id:#x})")]
    Foreign {
        /// The history.
        at: Location,
        /// Its application id; 0 if it has none.
        application_id: i32,
    },
    /// It was written by a newer fathom.
    #[error("history {at}: has format {found}; this version of fathom supports formats up to {known}")]
    Newer {
        /// The history.
        at: Location,
        /// Its format.
        found: i32,
        /// The newest supported format.
        known: i32,
    },
    /// The database is damaged.
    #[error("history {at}: is damaged")]
    Corrupt {
        /// The history.
        at: Location,
        /// The error of the database.
        source: DatabaseError,
    },
    /// Another process kept the lock for longer than the time limit.
    #[error("history {at}: is locked by another process")]
    Locked {
        /// The history.
        at: Location,
        /// The error of the database.
        source: DatabaseError,
    },
    /// The file, its directory or its file system cannot be written.
    #[error("history {at}: cannot be written")]
    ReadOnly {
        /// The history.
        at: Location,
    },
    /// The file system is full.
    #[error("history {at}: no space left on its file system")]
    NoSpace {
        /// The history.
        at: Location,
        /// The error of the database.
        source: DatabaseError,
    },
    /// Any other failure of the database.
    #[error("history {at}: cannot {action}")]
    Database {
        /// The history.
        at: Location,
        /// The failed action, a verb.
        action: &'static str,
        /// The error of the database.
        source: DatabaseError,
    },
    /// Unknown runs were named. Nothing was changed.
    #[error("history {at}: no run {}", listed(ids))]
    UnknownRun {
        /// The history.
        at: Location,
        /// The unknown ids.
        ids: Vec<RunId>,
    },
    /// The server has no history yet.
    #[error("history {at}: the database has none")]
    Empty {
        /// The history.
        at: Location,
    },
    /// The URI of a server is malformed.
    #[error("history {at}: the connection URI is malformed")]
    BadUri {
        /// The history.
        at: Location,
        /// The remedy.
        problem: &'static str,
    },
    /// PostgreSQL's client library is not installed.
    #[error("history {at}: cannot load PostgreSQL's client library")]
    NoClient {
        /// The history.
        at: Location,
        /// The loader's message.
        source: DatabaseError,
    },
    /// There is no connection to the server, or it is lost.
    #[error("history {at}: no connection to the server")]
    Unreachable {
        /// The history.
        at: Location,
        /// The cause.
        source: DatabaseError,
    },
    /// This user of the server lacks a privilege.
    #[error("history {at}: cannot {action}")]
    Denied {
        /// The history.
        at: Location,
        /// The failed action, a verb.
        action: &'static str,
        /// The server's error.
        source: DatabaseError,
    },
    /// A stored run, or a side file, cannot be read.
    #[error("{at}: cannot read {what}")]
    Unreadable {
        /// The history or the side file.
        at: Location,
        /// The unreadable part.
        what: String,
        /// The cause.
        source: RecordError,
    },
    /// A file given as a record cannot be read.
    #[error(transparent)]
    Input(#[from] InputError),
    /// A tag that cannot name runs: without a visible character, like a run id, or with a `,`, `~` or `:`.
    #[error("cannot name a run `{tag}`")]
    BadTag {
        /// The tag.
        tag: String,
    },
    /// A note without a visible character.
    #[error("the note is empty")]
    EmptyNote,
}

impl Error {
    /// The error of `action` on the history at `at`.
    pub(crate) fn of(at: &Location, action: &'static str, failure: Failure) -> Error {
        let at = at.clone();
        let source = DatabaseError { message: failure.message, code: failure.code };
        match failure.kind {
            FailureKind::NotADatabase => Error::NotADatabase { at, source },
            FailureKind::Corrupt => Error::Corrupt { at, source },
            FailureKind::Locked => Error::Locked { at, source },
            FailureKind::ReadOnly => Error::ReadOnly { at },
            FailureKind::Denied => Error::Denied { at, action, source },
            FailureKind::NoSpace => Error::NoSpace { at, source },
            FailureKind::Unreachable => Error::Unreachable { at, source },
            FailureKind::NoClient => Error::NoClient { at, source },
            FailureKind::CannotOpen | FailureKind::Other => Error::Database { at, action, source },
        }
    }

    /// True where there is no history yet.
    pub fn is_missing(&self) -> bool {
        matches!(self, Error::Missing { .. } | Error::Empty { .. })
    }

    /// The remedy, if there is one.
    pub fn hint(&self) -> Option<String> {
        const ANOTHER: &str = "use another history with --history or FATHOM_HISTORY";
        Some(match self {
            Error::IsDirectory { path } => {
                format!("name a file in it: --history {}", path.join("history.db").display())
            }
            Error::NotAFile { .. } => ANOTHER.to_owned(),
            Error::Foreign { at: Location::Server(_), .. } => {
                format!("give fathom a database of its own, without another schema named fathom; or {ANOTHER}")
            }
            Error::Foreign { .. } => ANOTHER.to_owned(),
            Error::OtherNames { name, .. } => format!("{}; or {ANOTHER}", name.remedy()),
            Error::Displaced { .. } => DISPLACED_HINT.to_owned(),
            Error::Missing { .. } | Error::Empty { .. } => {
                format!("run `fathom bench`, which creates it; or {ANOTHER}")
            }
            Error::NotADatabase { at: Location::File(path), .. }
            | Error::Corrupt { at: Location::File(path), .. } => format!(
                "move it away (mv '{0}' '{0}.damaged') to start a new one; recover it with `sqlite3 '{0}.damaged' .recover`",
                path.display()
            ),
            Error::NotADatabase { .. } | Error::Corrupt { .. } => {
                "restore the database from a backup; the log of the server has details".to_owned()
            }
            Error::Newer { .. } => {
                format!("use the version of fathom that wrote it or a newer one; or {ANOTHER}")
            }
            Error::Locked { at: Location::File(path), .. } => {
                format!("wait for the other process (see `fuser '{}'`), or {ANOTHER}", path.display())
            }
            Error::Locked { .. } => {
                format!("wait for the other process (see pg_stat_activity), or {ANOTHER}")
            }
            Error::ReadOnly { at: Location::File(path) } => {
                format!("make '{}' and its directory writable for this user, or {ANOTHER}", path.display())
            }
            Error::ReadOnly { .. } => {
                format!("name the primary server: this one accepts no changes; or {ANOTHER}")
            }
            Error::NoSpace { .. } => format!("free some space, or {ANOTHER}"),
            Error::BadUri { problem, .. } => (*problem).to_owned(),
            Error::NoClient { .. } => NO_CLIENT_HINT.to_owned(),
            Error::Unreachable { .. } => {
                format!("check that the server runs and accepts this user; or {ANOTHER}")
            }
            Error::Denied { .. } => {
                "grant this user CREATE on the database, or on schema fathom USAGE and on its tables SELECT, INSERT, UPDATE and DELETE"
                    .to_owned()
            }
            Error::Io { source, .. } if PathRefusal::of(source).is_some() => {
                PathRefusal::of(source).map(|refusal| refusal.hint().to_owned())?
            }
            Error::Io { source, .. } => match source.kind() {
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                    format!("make the directory writable for this user, or {ANOTHER}")
                }
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                    format!("free some space, or {ANOTHER}")
                }
                _ => ANOTHER.to_owned(),
            },
            Error::UnknownRun { .. } => "use a run listed by `fathom history list`".to_owned(),
            Error::BadTag { .. } => "use a word that is not a number, without , ~ and :".to_owned(),
            Error::EmptyNote => "write what is to be remembered of the run".to_owned(),
            Error::Database { .. } => ANOTHER.to_owned(),
            Error::Input(error) => error.hint(),
            Error::Unreadable { source, .. } => return source.hint().map(str::to_owned),
        })
    }
}

pub(crate) fn listed(ids: &[RunId]) -> String {
    ids.iter().map(RunId::to_string).collect::<Vec<_>>().join(", ")
}
