//! A history under several names, and one whose name leads elsewhere during a run: no run is said to be kept that cannot be found.

use std::fs;
use std::path::Path;
use std::process::Command;

use fathom_history::{ErrorKind, History, HistoryPath, Kept, RunId, Store};
use fathom_record::{RunRecord, TestStatus};

use crate::fixture::{PATIENCE, assert_sound, at, header, open, record, test};

/// Why the history at `path` is not opened, for writing and for reading, with the remedy.
fn refusal(path: &Path) -> String {
    let names =
        [History::open(&at(path), PATIENCE), History::open_existing(&at(path), PATIENCE)].map(|opened| {
            let error = opened.map(drop).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Unusable, "{error}");
            format!("{error}; {}", error.hint().unwrap())
        });
    assert_eq!(names[0], names[1]);
    names[0].clone()
}

#[test]
fn hard_links_are_refused_under_each_name() {
    let directory = tempfile::tempdir().unwrap();
    let [one, other] = ["one.db", "other.db"].map(|name| directory.path().join(name));
    open(&one).import(&record("/mnt", &["a"])).unwrap();
    fs::hard_link(&one, &other).unwrap();
    for path in [&one, &other] {
        assert!(refusal(path).contains("several names (hard links); remove the other names"));
    }
    fs::remove_file(&one).unwrap();
    assert_eq!(open(&other).load(RunId(1)).unwrap().tests.len(), 1);
}

#[test]
fn links_lead_to_one_history() {
    let directory = tempfile::tempdir().unwrap();
    let (real, link) = (directory.path().join("real.db"), directory.path().join("link.db"));
    let mut through_name = open(&real);
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let mut through_link = open(&link);
    for _ in 0..10 {
        through_name.begin(&header("/mnt")).unwrap();
        through_link.begin(&header("/mnt")).unwrap();
    }
    drop((through_name, through_link));
    assert!(open(&real).load(RunId(20)).is_ok());
    assert_sound(&real);
}

#[test]
fn a_history_that_is_mounted_as_a_file_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let (inside, outside) = (directory.path().join("inside.db"), directory.path().join("outside.db"));
    open(&outside).import(&record("/mnt", &["a"])).unwrap();
    fs::write(&inside, "").unwrap();
    let mount = |program: &str, arguments: &[&Path]| {
        Command::new(program).args(arguments).output().is_ok_and(|output| output.status.success())
    };
    if !mount("mount", &[Path::new("--bind"), &outside, &inside]) {
        return fathom_tests::skip("mounting needs root");
    }
    let name = std::panic::catch_unwind(|| refusal(&inside));
    assert!(mount("umount", &[&inside]));
    assert!(name.unwrap().contains("is mounted as a single file; mount the directory"));
    assert_eq!(open(&outside).load(RunId(1)).unwrap().tests.len(), 1);
}

/// Begins a run, does something to its history, and goes on: the record is where the store says, and whole.
fn displaced(displace: impl Fn(&Path)) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("history.db");
    let place = HistoryPath {
        own_directory: Some(directory.path().join("own")),
        ..HistoryPath::new(Some(at(&path)))
    };
    let (mut store, warning) = Store::begin(&place, &header("/mnt"));
    assert!(warning.is_none());
    assert!(store.append(&test("before")).is_none());
    displace(&path);
    let warning = store.append(&test("after")).unwrap();
    assert_eq!(warning.error.kind, ErrorKind::Displaced, "{warning}");
    assert!(store.finish(TestStatus::Complete, &header("/mnt"), &[]).is_none());
    let Kept::File(file) = store.kept() else { panic!("{:?}", store.kept()) };
    let kept = RunRecord::from_json(&fs::read_to_string(file).unwrap()).unwrap();
    assert_eq!(kept.tests.iter().map(|test| test.id.as_str()).collect::<Vec<_>>(), ["before", "after"]);
}

#[test]
fn a_run_goes_on_in_a_file_where_its_history_is_displaced() {
    displaced(|path| fs::remove_file(path).unwrap());
    displaced(|path| fs::rename(path, path.with_extension("old")).unwrap());
    displaced(|path| {
        fs::rename(path.parent().unwrap(), path.parent().unwrap().with_extension("old")).unwrap()
    });
    displaced(|path| {
        let other = path.with_extension("new");
        open(&other);
        fs::rename(&other, path).unwrap();
    });
    // The changes since the last checkpoint are in the log alone.
    displaced(|path| fs::remove_file(path.with_extension("db-wal")).unwrap());
}

#[test]
fn a_history_that_is_displaced_before_the_end_does_not_keep_the_run() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("history.db");
    let (mut store, _) = Store::begin(&HistoryPath::new(Some(at(&path))), &header("/mnt"));
    assert!(store.append(&test("a")).is_none());
    fs::remove_file(&path).unwrap();
    let warning = store.finish(TestStatus::Complete, &header("/mnt"), &[]).unwrap();
    assert_eq!(warning.error.kind, ErrorKind::Displaced, "{warning}");
    assert!(matches!(warning.instead, Kept::File(_)), "{warning}");
}
