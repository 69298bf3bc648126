//! File systems that are full or read-only. Mounting needs root: without it these tests are reported as skipped, which
//! counts as a failure if `CI` is set.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use fathom_history::{ErrorKind, Filter, History, HistoryPath, Kept, RunId, Store};
use tempfile::TempDir;

use crate::fixture::{PATIENCE, assert_sound, at, header, open, record, test, test_ids};

/// A small file system, unmounted at the end.
struct Mount {
    directory: TempDir,
}

impl Mount {
    fn new(options: &str) -> Option<Mount> {
        let directory = tempfile::tempdir().unwrap();
        let mounted = mount(&["-t", "tmpfs", "-o", options, "tmpfs"], directory.path());
        if !mounted {
            assert!(std::env::var_os("CI").is_none(), "mounting a tmpfs failed; in CI these tests must run");
            // Not by a macro, whose output the harness captures.
            #[expect(clippy::disallowed_methods, reason = "the rule is for what users run")]
            let mut stderr = std::io::stderr();
            writeln!(stderr, "skipped: mounting a tmpfs needs root").unwrap();
            return None;
        }
        Some(Mount { directory })
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(self.path()).status();
    }
}

fn mount(arguments: &[&str], directory: &Path) -> bool {
    Command::new("mount").args(arguments).arg(directory).output().is_ok_and(|output| output.status.success())
}

#[test]
fn a_full_file_system() {
    let Some(mount) = Mount::new("size=1m") else { return };
    let path = mount.path().join("history.db");
    let (mut store, warning) = Store::begin(&HistoryPath::new(Some(at(&path))), &header("/mnt"));
    assert!(warning.is_none());
    let mut large = test("0");
    large.notes = vec!["x".repeat(100 << 10)];
    let mut stored = 0;
    let warning = loop {
        large.id = stored.to_string();
        match store.append(&large) {
            None => stored += 1,
            Some(warning) => break warning,
        }
    };
    assert_eq!(warning.error.kind, ErrorKind::NoSpace, "{warning}");
    assert!(stored > 0);
    let Kept::File(file) = store.kept() else { panic!("{warning}") };
    assert!(!file.starts_with(mount.path()), "the directory of the history is as full as the history");
    let text = fs::read_to_string(&file).unwrap();
    fs::remove_file(&file).unwrap();
    assert_eq!(fathom_record::RunRecord::from_json(&text).unwrap().tests.len(), stored + 1);
    // Stored tests can be read, and with free space the others can be added.
    let mut history = open(&path);
    assert_eq!(history.load(RunId(1)).unwrap().tests.len(), stored);
    assert!(self::mount(&["-o", "remount,size=8m"], mount.path()));
    let whole = fathom_record::RunRecord::from_json(&text).unwrap();
    assert_eq!(history.import(&whole).unwrap(), RunId(1));
    assert_eq!(history.load(RunId(1)).unwrap(), whole);
    drop(history);
    assert_sound(&path);
}

#[test]
fn a_file_system_without_space_for_a_history() {
    let Some(mount) = Mount::new("size=8k") else { return };
    let error = History::open(&at(&mount.path().join("history.db")), PATIENCE).unwrap_err();
    assert_eq!(error.kind, ErrorKind::NoSpace, "{error:?}");
    assert!(error.hint().unwrap().contains("space"));
}

#[test]
fn a_read_only_file_system() {
    let Some(mounted) = Mount::new("size=4m") else { return };
    let path = mounted.path().join("a ?#%/history.db");
    let run = open(&path).import(&record("/mnt", &["a", "b"])).unwrap();
    assert!(mount(&["-o", "remount,ro"], mounted.path()));

    let error = History::open(&at(&path), PATIENCE).unwrap_err();
    assert_eq!(error.kind, ErrorKind::ReadOnly, "{error:?}");
    let mut history = History::open_existing(&at(&path), PATIENCE).unwrap();
    assert_eq!(history.list(&Filter::default()).unwrap().rows.len(), 1);
    assert_eq!(test_ids(&history.load(run).unwrap()), ["a", "b"]);
    let error = history.remove(&[run]).unwrap_err();
    assert_eq!(error.kind, ErrorKind::ReadOnly, "{error:?}");

    let new = mounted.path().join("new.db");
    let error = History::open(&at(&new), PATIENCE).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Io, "{error:?}");
    assert!(error.hint().unwrap().contains("writable for this user"), "{error}");
    let (store, warning) = Store::begin(&HistoryPath::new(Some(at(&new))), &header("/mnt"));
    let Kept::File(file) = store.kept() else { panic!("{:?}", store.kept()) };
    fs::remove_file(&file).unwrap();
    assert_eq!(warning.unwrap().instead, Kept::File(file));
}
