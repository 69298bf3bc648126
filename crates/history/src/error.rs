//! Errors of the history, with the file and the remedy.

use std::io;
use std::path::{Path, PathBuf};

use fathom_record::RecordError;
use fathom_sys::files::{InputError, PathRefusal};
use rusqlite::ErrorCode;

use crate::RunId;

/// SQLite's error.
#[derive(Debug, thiserror::Error)]
#[error("{message}{}", if *code == 0 { String::new() } else { format!(" (SQLite code {code})") })]
pub struct SqliteError {
    /// SQLite's message.
    pub message: String,
    /// SQLite's extended result code; 0 if the failure was not SQLite's.
    pub code: i32,
}

impl From<rusqlite::Error> for SqliteError {
    fn from(error: rusqlite::Error) -> SqliteError {
        let code = error.sqlite_error().map_or(0, |error| error.extended_code);
        SqliteError { message: error.to_string(), code }
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
    #[error("history {}: is not a fathom history", path.display())]
    NotADatabase {
        /// The history.
        path: PathBuf,
        /// SQLite's error.
        source: SqliteError,
    },
    /// The file is an SQLite database of another program.
    #[error("history {}: is the database of another program (application id {application_id:#x})", path.display())]
    Foreign {
        /// The history.
        path: PathBuf,
        /// Its application id; 0 if it has none.
        application_id: i32,
    },
    /// The file was written by a newer fathom.
    #[error("history {}: has format {found}; this version of fathom supports formats up to {known}", path.display())]
    Newer {
        /// The history.
        path: PathBuf,
        /// Its format.
        found: i32,
        /// The newest supported format.
        known: i32,
    },
    /// The database is damaged.
    #[error("history {}: is damaged", path.display())]
    Corrupt {
        /// The history.
        path: PathBuf,
        /// SQLite's error.
        source: SqliteError,
    },
    /// Another process kept the lock for longer than the time limit.
    #[error("history {}: is locked by another process", path.display())]
    Locked {
        /// The history.
        path: PathBuf,
        /// SQLite's error.
        source: SqliteError,
    },
    /// The file, its directory or its file system cannot be written.
    #[error("history {}: cannot be written", path.display())]
    ReadOnly {
        /// The history.
        path: PathBuf,
    },
    /// The file system is full.
    #[error("history {}: no space left on its file system", path.display())]
    NoSpace {
        /// The history.
        path: PathBuf,
        /// SQLite's error.
        source: SqliteError,
    },
    /// Any other failure of the database.
    #[error("history {}: cannot {action}", path.display())]
    Database {
        /// The history.
        path: PathBuf,
        /// The failed action, a verb.
        action: &'static str,
        /// SQLite's error.
        source: SqliteError,
    },
    /// Unknown runs were named. Nothing was changed.
    #[error("history {}: no run {}", path.display(), listed(ids))]
    UnknownRun {
        /// The history.
        path: PathBuf,
        /// The unknown ids.
        ids: Vec<RunId>,
    },
    /// A stored run, or a side file, cannot be read.
    #[error("{}: cannot read {what}", path.display())]
    Unreadable {
        /// The history or the side file.
        path: PathBuf,
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
    /// Classifies SQLite's error of `action` on the history at `path`.
    pub(crate) fn from_sqlite(path: &Path, action: &'static str, source: rusqlite::Error) -> Error {
        let path = path.to_path_buf();
        let code = source.sqlite_error().map(|error| (error.code, error.extended_code));
        let source = SqliteError::from(source);
        match code {
            Some((ErrorCode::NotADatabase, _)) => Error::NotADatabase { path, source },
            Some((ErrorCode::DatabaseCorrupt, _)) => Error::Corrupt { path, source },
            Some((
                ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed,
                _,
            )) => Error::Locked { path, source },
            Some((ErrorCode::ReadOnly | ErrorCode::PermissionDenied, _)) => Error::ReadOnly { path },
            // The shared memory of a write-ahead log is a file too, and fails first on a full disk.
            Some((ErrorCode::DiskFull, _) | (_, rusqlite::ffi::SQLITE_IOERR_SHMSIZE)) => {
                Error::NoSpace { path, source }
            }
            _ => Error::Database { path, action, source },
        }
    }

    /// True if SQLite could not open the file and gave no reason.
    pub(crate) fn is_cannot_open(&self) -> bool {
        matches!(self, Error::Database { source, .. } if source.code & 0xff == rusqlite::ffi::SQLITE_CANTOPEN)
    }

    /// The remedy, if there is one.
    pub fn hint(&self) -> Option<String> {
        const ANOTHER: &str = "use another file with --history FILE or FATHOM_HISTORY";
        Some(match self {
            Error::IsDirectory { path } => {
                format!("name a file in it: --history {}", path.join("history.db").display())
            }
            Error::NotAFile { .. } | Error::Foreign { .. } => ANOTHER.to_owned(),
            Error::Missing { .. } => {
                format!("run `fathom bench`, which creates it; or {ANOTHER}")
            }
            Error::NotADatabase { path, .. } | Error::Corrupt { path, .. } => format!(
                "move it away (mv '{0}' '{0}.damaged') to start a new one; recover it with `sqlite3 '{0}.damaged' .recover`",
                path.display()
            ),
            Error::Newer { .. } => {
                format!("use the version of fathom that wrote it or a newer one; or {ANOTHER}")
            }
            Error::Locked { path, .. } => {
                format!("wait for the other process (see `fuser '{}'`), or {ANOTHER}", path.display())
            }
            Error::ReadOnly { path } => {
                format!("make '{}' and its directory writable for this user, or {ANOTHER}", path.display())
            }
            Error::NoSpace { .. } => format!("free some space, or {ANOTHER}"),
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

fn listed(ids: &[RunId]) -> String {
    ids.iter().map(RunId::to_string).collect::<Vec<_>>().join(", ")
}
