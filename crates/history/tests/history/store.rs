//! A history that fails sends the record elsewhere, and nothing is lost.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use fathom_history::{ErrorKind, Filter, HistoryPath, Kept, Location, RunId, SideFile, Store};
use fathom_record::{RunRecord, TestStatus};

use crate::fixture::{PATIENCE, Place, findings, header, on_both, open, place, record, test, test_ids};

on_both!(
    the_history_where_it_can_be_used,
    a_history_that_can_neither_be_written_nor_read,
    a_run_that_somebody_removed_goes_on_in_a_file,
);

fn impatient(history: PathBuf) -> HistoryPath {
    HistoryPath { patience: Duration::ZERO, ..in_file(history) }
}

fn in_file(history: PathBuf) -> HistoryPath {
    HistoryPath::new(Some(Location::File(history)))
}

fn side_file(store: &Store) -> PathBuf {
    match store.kept() {
        Kept::File(path) => path,
        other => panic!("{other:?}"),
    }
}

fn read(path: &std::path::Path) -> RunRecord {
    RunRecord::from_json(&fs::read_to_string(path).unwrap()).unwrap()
}

fn the_history_where_it_can_be_used(place: &Place) {
    let (mut store, warning) = Store::begin(&place.path(PATIENCE), &header("/mnt"));
    assert!(warning.is_none());
    assert!(store.append(&test("a")).is_none());
    assert!(store.finish(TestStatus::Complete, &header("/mnt"), &findings()).is_none());
    assert_eq!(store.kept(), Kept::Run(RunId(1)));
    drop(store);
    assert_eq!(place.open().load(RunId(1)).unwrap(), record("/mnt", &["a"]));
    let files = fs::read_dir(place.directory.path()).unwrap().count();
    assert_eq!(files, usize::from(!place.is_server()));
}

#[test]
fn nothing_where_nothing_is_wanted() {
    let (mut store, warning) = Store::begin(&HistoryPath::new(None), &header("/mnt"));
    assert!(warning.is_none());
    assert!(store.append(&test("a")).is_none());
    assert!(store.finish(TestStatus::Complete, &header("/mnt"), &[]).is_none());
    assert_eq!(store.kept(), Kept::Nowhere);
}

#[test]
fn a_file_beside_a_history_that_cannot_be_opened() {
    let (directory, path) = place();
    fs::write(&path, "not a database").unwrap();
    let (mut store, warning) = Store::begin(&in_file(path.clone()), &header("/mnt"));
    let file = side_file(&store);
    assert_eq!(file.parent(), Some(directory.path()));
    let name = format!("fathom-20260921T141320Z-{}.json", std::process::id());
    assert_eq!(file.file_name().unwrap().to_str(), Some(name.as_str()));
    let warning = warning.unwrap();
    assert!(warning.hint().is_some());
    assert_eq!(
        warning.to_string(),
        format!(
            "history {}: is not a fathom history: file is not a database (SQLite code 26); the record is kept in {} instead",
            path.display(),
            file.display()
        )
    );

    assert_eq!(read(&file).status, TestStatus::Incomplete);
    for (id, expected) in [("a", &["a"][..]), ("b", &["a", "b"])] {
        assert!(store.append(&test(id)).is_none());
        assert_eq!(test_ids(&read(&file)), expected);
    }
    assert!(store.finish(TestStatus::Complete, &header("/mnt"), &findings()).is_none());
    assert_eq!(read(&file), record("/mnt", &["a", "b"]));
    // Nothing else is left: the history that could not be read, and the record.
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
}

#[test]
fn a_file_in_the_directory_that_was_named() {
    let (directory, path) = place();
    let elsewhere = tempfile::tempdir().unwrap();
    let place =
        HistoryPath { side_files: Some(elsewhere.path().into()), ..impatient(directory.path().into()) };
    let (store, warning) = Store::begin(&place, &header("/mnt"));
    let error = warning.unwrap().error;
    assert!(error.to_string().ends_with("is a directory, not a file"), "{error}");
    assert_eq!(side_file(&store).parent(), Some(elsewhere.path()));
    assert!(!path.exists());
}

#[test]
fn a_lock_in_the_middle_of_a_run() {
    for finishing in [false, true] {
        let (_directory, path) = place();
        let (mut store, warning) = Store::begin(&impatient(path.clone()), &header("/mnt"));
        assert!(warning.is_none());
        assert!(store.append(&test("a")).is_none());
        let other = rusqlite::Connection::open(&path).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        let warning = if finishing {
            store.finish(TestStatus::Complete, &header("/mnt"), &findings())
        } else {
            store.append(&test("b"))
        };
        let warning = warning.unwrap();
        assert_eq!(warning.error.kind, ErrorKind::Locked, "{warning}");
        let file = side_file(&store);
        assert_eq!(warning.instead, Kept::File(file.clone()));
        other.execute_batch("COMMIT").unwrap();
        if !finishing {
            // The run stays where it went.
            assert!(store.append(&test("c")).is_none());
            assert!(store.finish(TestStatus::Complete, &header("/mnt"), &findings()).is_none());
        }
        let expected = record("/mnt", if finishing { &["a"] } else { &["a", "b", "c"] });
        assert_eq!(read(&file), expected);

        let mut history = open(&path);
        assert_eq!(history.load(RunId(1)).unwrap().status, TestStatus::Incomplete);
        assert_eq!(history.import_file(&file).unwrap(), RunId(1));
        assert_eq!(history.load(RunId(1)).unwrap(), expected);
        assert_eq!(history.list(&Filter::default()).unwrap().rows.len(), 1);
    }
}

fn a_history_that_can_neither_be_written_nor_read(place: &Place) {
    let (mut store, _) = Store::begin(&place.path(Duration::ZERO), &header("/mnt"));
    assert!(store.append(&test("a")).is_none());
    // As if it had been replaced under us: the tables are not those of a history.
    place.sql("ALTER TABLE runs RENAME TO away");
    assert!(store.append(&test("b")).is_some());
    let file = side_file(&store);
    assert!(store.append(&test("c")).is_none());
    assert!(store.finish(TestStatus::Complete, &header("/mnt"), &findings()).is_none());
    // With the tests that were stored before, which may be lost.
    assert_eq!(read(&file), record("/mnt", &["a", "b", "c"]));
    place.sql("ALTER TABLE away RENAME TO runs");
    let mut history = place.open();
    let run = history.import_file(&file).unwrap();
    assert_eq!(history.load(run).unwrap(), record("/mnt", &["a", "b", "c"]));
    assert_eq!(history.list(&Filter::default()).unwrap().rows.len(), 1);
}

fn a_run_that_somebody_removed_goes_on_in_a_file(place: &Place) {
    let (mut store, _) = Store::begin(&place.path(PATIENCE), &header("/mnt"));
    assert!(store.append(&test("a")).is_none());
    place.open().remove(&[RunId(1)]).unwrap();
    let warning = store.append(&test("b")).unwrap();
    assert_eq!(warning.error.kind, ErrorKind::UnknownRun, "{warning}");
    assert_eq!(test_ids(&read(&side_file(&store))), ["a", "b"]);
}

#[test]
fn side_files_of_one_moment_do_not_meet() {
    let directory = tempfile::tempdir().unwrap();
    let begin = |header: &fathom_record::RunHeader| {
        let file = SideFile::begin(directory.path(), header).unwrap();
        file.path().file_name().unwrap().to_str().unwrap().to_owned()
    };
    let pid = std::process::id();
    assert_eq!(begin(&header("/a")), format!("fathom-20260921T141320Z-{pid}.json"));
    assert_eq!(begin(&header("/b")), format!("fathom-20260921T141320Z-{pid}-2.json"));
    assert_eq!(begin(&header("/c")), format!("fathom-20260921T141320Z-{pid}-3.json"));
    assert_eq!(begin(&Default::default()), format!("fathom-simulated-{pid}.json"));
}

#[test]
fn a_side_file_that_cannot_be_written_keeps_what_it_had() {
    let directory = tempfile::tempdir().unwrap();
    let mut file = SideFile::begin(directory.path(), &header("/mnt")).unwrap();
    file.append(&test("a")).unwrap();
    let away = directory.path().with_extension("away");
    fs::rename(directory.path(), &away).unwrap();
    let error = file.append(&test("b")).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Io, "{error}");
    fs::rename(&away, directory.path()).unwrap();
    assert_eq!(test_ids(&read(file.path())), ["a"]);
    // What did not reach the file is not forgotten.
    file.append(&test("c")).unwrap();
    assert_eq!(test_ids(&read(file.path())), ["a", "b", "c"]);
}
