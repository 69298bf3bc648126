//! Invalid files: each gets a specific message and stays unchanged.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use fathom_history::{ErrorKind, History, RunId};

use crate::fixture::{PATIENCE, at, header, open, place, record};

/// Opens `path` for writing and for reading; both must say `message` after the path.
fn check(path: &Path, message: &str) {
    let before = path.is_file().then(|| fs::read(path).unwrap());
    for opened in [History::open(&at(path), PATIENCE), History::open_existing(&at(path), PATIENCE)] {
        let error = opened.unwrap_err();
        assert_eq!(error.to_string(), format!("history {}: {message}", path.display()));
        assert!(error.hint().is_some_and(|hint| !hint.is_empty()), "{error}");
    }
    let after = path.is_file().then(|| fs::read(path).unwrap());
    assert!(before == after, "{} was changed", path.display());
}

#[test]
fn directories_and_devices_are_refused() {
    let (directory, _) = place();
    check(directory.path(), "is a directory, not a file");
    check(Path::new("/dev/null"), "is not a regular file");
    let pipe = directory.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    check(&pipe, "is not a regular file");
}

#[test]
fn other_files_are_refused() {
    let (directory, path) = place();
    fs::write(&path, "This is not a database, but it is long enough to be looked at by SQLite.\n".repeat(90))
        .unwrap();
    check(&path, "is not a fathom history");
    fs::write(&path, "short").unwrap();
    check(&path, "is not a fathom history");

    let foreign = directory.path().join("foreign.db");
    let connection = rusqlite::Connection::open(&foreign).unwrap();
    connection.execute_batch("CREATE TABLE runs (id)").unwrap();
    check(&foreign, "is the database of another program (application id 0x0)");
    connection.execute_batch("PRAGMA application_id = 0x1234; DROP TABLE runs; VACUUM").unwrap();
    drop(connection);
    check(&foreign, "is the database of another program (application id 0x1234)");
}

#[test]
fn histories_of_a_newer_version_are_refused() {
    let (_directory, path) = place();
    drop(open(&path));
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.execute_batch("PRAGMA user_version = 1000").unwrap();
    drop(connection);
    check(&path, "has format 1000; this version of fathom supports formats up to 4");
}

#[test]
fn damaged() {
    let (_directory, path) = place();
    open(&path).import(&record("/mnt", &["a", "b"])).unwrap();
    let whole = fs::read(&path).unwrap();
    // The schema on the first page is gone, the header of the file is not.
    let mut damaged = whole.clone();
    damaged[100..4096].fill(0xa5);
    fs::write(&path, &damaged).unwrap();
    let error = match History::open(&at(&path), PATIENCE) {
        Ok(mut history) => history.begin(&header("/mnt")).unwrap_err(),
        Err(error) => error,
    };
    assert_eq!(error.kind, ErrorKind::Corrupt, "{error:?}");
    assert!(error.hint().unwrap().contains("mv "), "{error}");
    // The tables are gone, the schema is not.
    fs::write(&path, &whole[..4096]).unwrap();
    let error = match History::open(&at(&path), PATIENCE) {
        Ok(history) => history.load(RunId(1)).unwrap_err(),
        Err(error) => error,
    };
    assert_eq!(error.kind, ErrorKind::Corrupt, "{error:?}");
}

#[test]
fn an_empty_file_becomes_a_history() {
    let (_directory, path) = place();
    fs::write(&path, "").unwrap();
    assert_eq!(open(&path).begin(&header("/mnt")).unwrap(), RunId(1));
}

#[test]
fn missing_directories_are_created_for_writing_only() {
    let (directory, _) = place();
    let path = directory.path().join("a/b c/ü%41?x#/history.db");
    let error = History::open_existing(&at(&path), PATIENCE).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Missing, "{error}");
    assert!(!directory.path().join("a").exists());
    open(&path).begin(&header("/mnt")).unwrap();
    assert!(path.is_file());
}

#[test]
fn names_special_to_sqlite_are_plain_file_names() {
    let (directory, _) = place();
    for name in [":memory:", "file:x?mode=memory", " "] {
        let path = directory.path().join(name);
        open(&path).begin(&header("/mnt")).unwrap();
        assert!(path.is_file(), "{name}");
    }
    let error = History::open(&at(Path::new("")), PATIENCE).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Io, "{error}");
}

#[test]
fn a_file_in_place_of_a_directory_is_refused() {
    let (directory, _) = place();
    let file = directory.path().join("file");
    fs::write(&file, "").unwrap();
    let error = History::open(&at(&file.join("deeper/history.db")), PATIENCE).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Io, "{error}");
    assert!(error.hint().is_some());
}

#[test]
fn too_long_names_are_refused() {
    let (directory, _) = place();
    let path = directory.path().join("x".repeat(300));
    let error = History::open(&at(&path), PATIENCE).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Io, "{error}");
}

#[test]
fn a_locked_history_is_refused_for_writing() {
    let (_directory, path) = place();
    let mut history = History::open(&at(&path), Duration::ZERO).unwrap();
    let run = history.begin(&header("/mnt")).unwrap();
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = history.begin(&header("/mnt")).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Locked, "{error:?}");
    assert!(error.hint().unwrap().contains("fuser"), "{error}");
    // Reading still works.
    assert_eq!(history.load(run).unwrap().header, header("/mnt"));
    other.execute_batch("COMMIT").unwrap();
    history.begin(&header("/mnt")).unwrap();
}

#[test]
fn a_locked_rollback_journal_is_refused() {
    let (_directory, path) = place();
    drop(open(&path));
    let other = rusqlite::Connection::open(&path).unwrap();
    other.query_row("PRAGMA journal_mode = delete", [], |_| Ok(())).unwrap();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let error = History::open(&at(&path), Duration::ZERO).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Locked, "{error:?}");
}
