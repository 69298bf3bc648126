//! A history in an SQLite file: checks owner and version, and chooses the journal mode.
//!
//! Formats are numbered by `PRAGMA user_version`.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

pub(crate) use fathom_sys::files::PrivateAccess as Access;
use rusqlite::{Connection, OpenFlags};

use super::{APPLICATION_ID, Database, Mode, Transaction};
use crate::error::{ErrorKind, Failure};
use crate::migrations::{self, DatabaseOwner, FORMAT};
use crate::{Error, Location, PATIENCE, place};

/// Interval between two attempts to take a lock of another process.
const LOOK: Duration = Duration::from_millis(10);
/// Longest wait for a lock after a request to end the process.
pub(super) const HURRIED: Duration = Duration::from_millis(500);

/// Set after a request to end the process.
static HURRY: AtomicBool = AtomicBool::new(false);

/// Limits waits for other processes' locks, and for answers of a server, to half a second from now on, current waits included: the process was asked
/// to end, and runs that cannot be stored in the history are stored in a side file.
pub fn hurry() {
    HURRY.store(true, Ordering::Release);
}

/// Whether the process was asked to end.
pub(crate) fn is_in_a_hurry() -> bool {
    HURRY.load(Ordering::Acquire)
}

/// Waits for a lock after `looks` failed attempts; false on a timeout.
fn wait_for_lock(looks: i32) -> bool {
    let patience = if is_in_a_hurry() { HURRIED } else { PATIENCE };
    let waits = looks as u128 * LOOK.as_millis() < patience.as_millis();
    if waits {
        // After an early wake-up it tries early.
        std::thread::park_timeout(LOOK);
    }
    waits
}

/// Opens the history in the file at the absolute `path`, waiting up to `patience` for other processes' locks.
///
/// [`Access::Create`] is for writing: a missing file is created, a read-only one is refused. [`Access::Existing`] is
/// for reading a history, which may be read-only.
pub(super) fn open(
    at: &Location,
    path: &Path,
    access: Access,
    patience: Duration,
) -> Result<Connection, Error> {
    let failed = |error: rusqlite::Error| Error::from_failure(at, "open it", error.into());
    // SQLite gets a path without links, and must not follow any.
    let real = &place::resolve(path, access)?;
    let mut connection = connect(real).map_err(|error| explained(at, path, real, "open it", error.into()))?;
    let read_only = connection.is_readonly("main").map_err(failed)?;
    if read_only && access == Access::Create {
        return Err(Error::read_only(at));
    }
    if read_only && !has_log(real) {
        connection = connect_immutable(real).map_err(failed)?;
    }
    let owner = prepare(&mut connection, patience).map_err(Failure::from);
    let database = Database::Sqlite(connection);
    // In one transaction, because another process may be creating the history.
    let owner = owner.and_then(|()| database.transaction(Mode::Read, migrations::identify));
    let owner = owner.map_err(|failure| explained(at, path, real, "open it", failure))?;
    let found = migrations::permitted(owner, at)?;
    if found != DatabaseOwner::Ours(FORMAT) {
        if read_only {
            return Err(Error::read_only(at));
        }
        release_pages_one_by_one(&database)
            .map_err(|failure| explained(at, path, real, "migrate it to the current format", failure))?;
        migrations::migrate(&database, at, migrations::STEPS)?;
    }
    let Database::Sqlite(connection) = database else { unreachable!("it was made here") };
    if !read_only {
        choose_journal(&connection, place::is_shared(real));
    }
    Ok(connection)
}

fn connect(real: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(real, flags | OpenFlags::SQLITE_OPEN_NOFOLLOW)
}

/// Whether a log has changes that are not in the database file yet.
fn has_log(real: &Path) -> bool {
    std::fs::symlink_metadata(place::with_suffix(real, "-wal")).is_ok_and(|log| log.len() > 0)
}

/// Opens a history that this user cannot write. Without `immutable`, SQLite creates files next to it even for reading,
/// which is impossible on a read-only medium, and which would lock out its owner elsewhere.
fn connect_immutable(real: &Path) -> rusqlite::Result<Connection> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    let uri = place::uri(real, "immutable=1");
    Connection::open_with_flags(uri, flags | OpenFlags::SQLITE_OPEN_NOFOLLOW)
}

/// The error of `action`, with the reason in place of SQLite's "unable to open database file".
fn explained(at: &Location, path: &Path, real: &Path, action: &'static str, failure: Failure) -> Error {
    let cannot_open = failure.kind == ErrorKind::CannotOpen;
    match cannot_open.then(|| place::why_not_writable(real)).flatten() {
        Some(source) => Error::io("create the history", path, source),
        None => Error::from_failure(at, action, failure),
    }
}

/// Settings of this connection.
fn prepare(connection: &mut Connection, patience: Duration) -> rusqlite::Result<()> {
    if patience == PATIENCE {
        connection.busy_handler(Some(wait_for_lock))?;
    } else {
        connection.busy_timeout(patience)?;
    }
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    // No temporary files in other directories.
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    // A test takes seconds or minutes, and some disks under test crash their machine: a finished test must be durable
    // when `append` returns. NORMAL would lose the last tests in a power failure; FULL costs one fsync per test,
    // between tests.
    connection.pragma_update(None, "synchronous", "FULL")
}

/// See [`Transaction::format`].
pub(super) fn format(transaction: &Transaction<'_>) -> Result<Option<(i64, i64)>, Failure> {
    let application_id = transaction.number("PRAGMA application_id")?;
    let format = transaction.number("PRAGMA user_version")?;
    let is_empty =
        (application_id, format) == (0, 0) && transaction.number("SELECT count(*) FROM sqlite_schema")? == 0;
    Ok((!is_empty).then_some((application_id, format)))
}

/// See [`Transaction::set_format`].
pub(super) fn set_format(connection: &Connection, format: i32) -> Result<(), Failure> {
    connection.pragma_update(None, "application_id", APPLICATION_ID)?;
    Ok(connection.pragma_update(None, "user_version", format)?)
}

/// Pages of removed runs are released one by one, without the exclusive lock and the copy of the whole file that VACUUM
/// needs. Effective only while the database is empty.
fn release_pages_one_by_one(database: &Database) -> Result<(), Failure> {
    match database {
        Database::Sqlite(connection) => Ok(connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?),
        Database::Server(_) => Ok(()),
    }
}

/// Truncates unused pages from the file.
pub(super) fn give_back_space(connection: &Connection) -> rusqlite::Result<()> {
    // Each step of the pragma frees one page.
    let mut vacuum = connection.prepare("PRAGMA incremental_vacuum")?;
    let mut steps = vacuum.query([])?;
    while steps.next()?.is_some() {}
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
}

/// The bytes of the database and of the log of changes that are not in it yet, and those of its unused pages.
pub(super) fn bytes(connection: &Connection, path: Option<&Path>) -> Result<(u64, Option<u64>), Failure> {
    let read = |sql: &str| {
        connection.query_row(sql, [], |row| row.get::<_, i64>(0)).map(|number| number.max(0) as u64)
    };
    let free = read("PRAGMA freelist_count")? * read("PRAGMA page_size")?;
    let length = |suffix: &str| {
        path.and_then(|path| std::fs::metadata(place::with_suffix(path, suffix)).ok())
            .map_or(0, |file| file.len())
    };
    Ok((length("") + length("-wal"), Some(free)))
}

/// A write-ahead log permits readers while a measurement writes, at one fsync per test; its users share memory, so on a
/// file system shared between machines the history uses a rollback journal. Both are correct if locks work, so a switch
/// that would have to wait for other users is left to the next opening.
fn choose_journal(connection: &Connection, shared: bool) {
    let wanted = if shared { "delete" } else { "wal" };
    let read = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, String>(0));
    if read("PRAGMA journal_mode").is_ok_and(|present| present != wanted) {
        let _ = read(&format!("PRAGMA journal_mode = {wanted}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(5);

    fn opened(path: &Path) -> Connection {
        open(&Location::File(path.to_path_buf()), path, Access::Create, PATIENCE).unwrap()
    }

    #[test]
    fn a_new_database_has_the_expected_settings() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("h.db");
        let connection = opened(&path);
        fn check(connection: &Connection, pragma: &str, expected: &str) {
            let found: rusqlite::types::Value =
                connection.query_row(&format!("PRAGMA {pragma}"), [], |row| row.get(0)).unwrap();
            let found = match found {
                rusqlite::types::Value::Integer(number) => number.to_string(),
                rusqlite::types::Value::Text(text) => text,
                other => panic!("{other:?}"),
            };
            assert_eq!(found, expected, "{pragma}");
        }
        check(&connection, "application_id", "1718904941");
        check(&connection, "user_version", &FORMAT.to_string());
        check(&connection, "auto_vacuum", "2");
        check(&connection, "synchronous", "2");
        check(&connection, "foreign_keys", "1");
        check(&connection, "journal_mode", "wal");
    }

    #[test]
    fn the_journal_mode_depends_on_the_file_system() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("h.db");
        let connection = opened(&path);
        fn check(connection: &Connection, shared: bool, expected: &str) {
            choose_journal(connection, shared);
            let mode: String = connection.query_row("PRAGMA journal_mode", [], |row| row.get(0)).unwrap();
            assert_eq!(mode, expected);
        }
        check(&connection, true, "delete");
        check(&connection, false, "wal");
    }
}
