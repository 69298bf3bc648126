//! Opens the database: checks owner and version, and chooses the journal mode.
//!
//! Formats are numbered by `PRAGMA user_version`; `migrations/` holds one SQL file per step, after which code may fill columns
//! from the stored records. A released step is never edited: changes get the next number.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fathom_sys::files::PrivateAccess as Access;
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};

use crate::{Error, PATIENCE, columns, place};

/// `fthm`, in the header of every history, to distinguish it from other databases.
pub(crate) const APPLICATION_ID: i32 = 0x6674_686d;

/// One step from a format to the next.
#[derive(Clone, Copy)]
struct Migration {
    sql: &'static str,
    /// What SQL cannot derive from the stored records.
    fill: Option<fn(&Transaction<'_>) -> rusqlite::Result<()>>,
}

impl Migration {
    const fn sql(sql: &'static str) -> Migration {
        Migration { sql, fill: None }
    }
}

/// The steps from an empty database to the current format; the format's number is the number of steps.
const MIGRATIONS: &[Migration] = &[
    Migration::sql(include_str!("../migrations/0001.sql")),
    Migration::sql(include_str!("../migrations/0002.sql")),
    Migration::sql(include_str!("../migrations/0003.sql")),
    Migration { sql: include_str!("../migrations/0004.sql"), fill: Some(columns::fill) },
];

/// The newest format this crate knows.
pub(crate) const FORMAT: i32 = MIGRATIONS.len() as i32;

/// Interval between two attempts to take a lock of another process.
const LOOK: Duration = Duration::from_millis(10);
/// Longest wait for a lock after a request to end the process.
const HURRIED: Duration = Duration::from_millis(500);

/// Set after a request to end the process.
static HURRY: AtomicBool = AtomicBool::new(false);

/// Limits waits for other processes' locks to half a second from now on, current waits included: the process was asked
/// to end, and runs that cannot be stored in the history are stored in a side file.
pub fn hurry() {
    HURRY.store(true, Ordering::Release);
}

/// Waits for a lock after `looks` failed attempts; false on a timeout.
fn wait_for_lock(looks: i32) -> bool {
    let patience = if HURRY.load(Ordering::Acquire) { HURRIED } else { PATIENCE };
    let waits = looks as u128 * LOOK.as_millis() < patience.as_millis();
    if waits {
        // After an early wake-up it tries early.
        std::thread::park_timeout(LOOK);
    }
    waits
}

/// Opens the history at the absolute `path`, waiting up to `patience` for other processes' locks.
///
/// [`Access::Create`] is for writing: a missing file is created, a read-only one is refused. [`Access::Existing`] is
/// for reading a history, which may be read-only.
pub(crate) fn open(path: &Path, access: Access, patience: Duration) -> Result<Connection, Error> {
    // SQLite gets a path without links, and must not follow any.
    let real = &place::resolve(path, access)?;
    let mut connection =
        connect(real).map_err(|error| explain(Error::from_sqlite(path, "open it", error), path, real))?;
    let read_only =
        connection.is_readonly("main").map_err(|error| Error::from_sqlite(path, "open it", error))?;
    if read_only && access == Access::Create {
        return Err(Error::ReadOnly { path: path.to_path_buf() });
    }
    if read_only && !has_log(real) {
        connection = connect_immutable(real).map_err(|error| Error::from_sqlite(path, "open it", error))?;
    }
    let mut found = settle(&mut connection, path, patience).map_err(|error| explain(error, path, real))?;
    if read_only && found != DatabaseOwner::Ours(FORMAT) {
        return Err(Error::ReadOnly { path: path.to_path_buf() });
    }
    if found != DatabaseOwner::Ours(FORMAT) {
        found = migrate(&mut connection, path, MIGRATIONS).map_err(|error| explain(error, path, real))?;
    }
    debug_assert!(found == DatabaseOwner::Ours(FORMAT));
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

/// Replaces SQLite's "unable to open database file" by the reason.
fn explain(error: Error, path: &Path, real: &Path) -> Error {
    let reason = error.is_cannot_open().then(|| place::why_not_writable(real)).flatten();
    match reason {
        Some(source) => Error::Io { action: "create the history", path: path.to_path_buf(), source },
        None => error,
    }
}

/// Sets up the connection and returns the owner of the database.
fn settle(connection: &mut Connection, path: &Path, patience: Duration) -> Result<DatabaseOwner, Error> {
    let failed = |error| Error::from_sqlite(path, "open it", error);
    prepare(connection, patience).map_err(failed)?;
    // In one transaction, because another process may be creating the history.
    let transaction = connection.unchecked_transaction().map_err(failed)?;
    identify(&transaction, path, FORMAT)
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

/// The owner of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DatabaseOwner {
    /// None: no table, no id.
    Empty,
    /// fathom, in this format.
    Ours(i32),
}

/// Must run in a transaction, because it reads several values.
fn identify(transaction: &Transaction<'_>, path: &Path, known: i32) -> Result<DatabaseOwner, Error> {
    let read = |sql: &str| {
        transaction
            .query_row(sql, [], |row| row.get::<_, i32>(0))
            .map_err(|error| Error::from_sqlite(path, "open it", error))
    };
    let application_id = read("PRAGMA application_id")?;
    let format = read("PRAGMA user_version")?;
    let path = path.to_path_buf();
    match (application_id, format) {
        (APPLICATION_ID, format) if format > known => Err(Error::Newer { path, found: format, known }),
        (APPLICATION_ID, format) if format > 0 => Ok(DatabaseOwner::Ours(format)),
        (0, 0) if read("SELECT count(*) FROM sqlite_schema")? == 0 => Ok(DatabaseOwner::Empty),
        _ => Err(Error::Foreign { path, application_id }),
    }
}

/// Runs the missing steps in one transaction: a killed process leaves the old format or the new one.
fn migrate(connection: &mut Connection, path: &Path, steps: &[Migration]) -> Result<DatabaseOwner, Error> {
    let failed = |error| Error::from_sqlite(path, "migrate it to the current format", error);
    // Effective only while the database is empty. Pages of removed runs are released one by one, without the exclusive
    // lock and the copy of the whole file that VACUUM needs.
    connection.pragma_update(None, "auto_vacuum", "INCREMENTAL").map_err(failed)?;
    let transaction = Transaction::new(connection, TransactionBehavior::Immediate).map_err(failed)?;
    // Another process may have migrated it while this one waited for the lock.
    let from = match identify(&transaction, path, steps.len() as i32)? {
        DatabaseOwner::Empty => 0,
        DatabaseOwner::Ours(format) => format as usize,
    };
    for step in steps.iter().skip(from) {
        transaction.execute_batch(step.sql).map_err(failed)?;
        step.fill.map_or(Ok(()), |fill| fill(&transaction)).map_err(failed)?;
    }
    let format = steps.len() as i32;
    transaction.pragma_update(None, "application_id", APPLICATION_ID).map_err(failed)?;
    transaction.pragma_update(None, "user_version", format).map_err(failed)?;
    transaction.commit().map_err(failed)?;
    Ok(DatabaseOwner::Ours(format))
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

    fn format_of(connection: &Connection) -> i32 {
        connection.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap()
    }

    #[test]
    fn a_new_database_has_the_expected_settings() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("h.db");
        let connection = open(&path, Access::Create, PATIENCE).unwrap();
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
        let connection = open(&path, Access::Create, PATIENCE).unwrap();
        fn check(connection: &Connection, shared: bool, expected: &str) {
            choose_journal(connection, shared);
            let mode: String = connection.query_row("PRAGMA journal_mode", [], |row| row.get(0)).unwrap();
            assert_eq!(mode, expected);
        }
        check(&connection, true, "delete");
        check(&connection, false, "wal");
    }

    #[test]
    fn migrations_run_once_and_in_order() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("h.db");
        let mut connection = open(&path, Access::Create, PATIENCE).unwrap();
        let longer =
            [MIGRATIONS, &["CREATE TABLE later (x)", "INSERT INTO later VALUES (7)"].map(Migration::sql)]
                .concat();
        for _ in 0..2 {
            assert_eq!(migrate(&mut connection, &path, &longer).unwrap(), DatabaseOwner::Ours(FORMAT + 2));
        }
        assert_eq!(format_of(&connection), FORMAT + 2);
        let rows: i32 = connection.query_row("SELECT count(*) FROM later", [], |row| row.get(0)).unwrap();
        assert_eq!(rows, 1);
        drop(connection);
        let newer = open(&path, Access::Create, PATIENCE).unwrap_err();
        assert!(matches!(newer, Error::Newer { found, known: FORMAT, .. } if found == FORMAT + 2), "{newer}");
    }

    #[test]
    fn a_failing_migration_changes_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("h.db");
        let mut connection = open(&path, Access::Create, PATIENCE).unwrap();
        let broken = [MIGRATIONS, &["CREATE TABLE later (x)", "no SQL"].map(Migration::sql)].concat();
        assert!(migrate(&mut connection, &path, &broken).is_err());
        assert_eq!(format_of(&connection), FORMAT);
        let tables: i32 = connection
            .query_row("SELECT count(*) FROM sqlite_schema WHERE name = 'later'", [], |row| row.get(0))
            .unwrap();
        assert_eq!(tables, 0);
    }
}
