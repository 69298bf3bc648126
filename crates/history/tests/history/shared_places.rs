//! Histories and side files in directories that others may write to.

use std::error::Error as _;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use fathom_history::{History, HistoryPath, Kept, SideFile, Store};
use fathom_record::RunRecord;
use fathom_sys::files::PathRefusal;
use tempfile::TempDir;

use crate::fixture::{PATIENCE, at, header, test, test_ids};

const PRECIOUS: &str = "precious";

/// A victim's file, and a directory of this mode.
fn ground(mode: u32) -> (TempDir, PathBuf, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let (victim, shared) = (directory.path().join("victim"), directory.path().join("shared"));
    fs::write(&victim, PRECIOUS).unwrap();
    fs::create_dir(&shared).unwrap();
    fs::set_permissions(&shared, Permissions::from_mode(mode)).unwrap();
    (directory, victim, shared)
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o777
}

fn kept(store: &Store) -> PathBuf {
    match store.kept() {
        Kept::File(path) => path,
        other => panic!("{other:?}"),
    }
}

#[test]
fn side_files_follow_no_planted_name() {
    for bits in [0o777, 0o1777] {
        let (_directory, victim, shared) = ground(bits);
        let pid = std::process::id();
        for name in ["fathom-simulated", "fathom-20260921T141320Z"] {
            for end in ["json", "json.tmp", "tmp"] {
                symlink(&victim, shared.join(format!("{name}-{pid}.{end}"))).unwrap();
            }
        }
        for header in [header("/mnt"), Default::default()] {
            let mut file = SideFile::begin(&shared, &header).unwrap();
            file.append(&test("a")).unwrap();
            assert_eq!(mode(file.path()), 0o600);
            let record = RunRecord::from_json(&fs::read_to_string(file.path()).unwrap()).unwrap();
            assert_eq!(test_ids(&record), ["a"]);
        }
        assert_eq!(fs::read_to_string(&victim).unwrap(), PRECIOUS, "{bits:o}");
        assert_eq!(fs::read_dir(&shared).unwrap().count(), 6 + 2, "nothing temporary is left");
    }
}

#[test]
fn a_history_follows_no_planted_link() {
    let (directory, victim, shared) = ground(0o777);
    let path = shared.join("h.db");
    symlink(&victim, &path).unwrap();
    for opened in [History::open(&at(&path), PATIENCE), History::open_existing(&at(&path), PATIENCE)] {
        let error = opened.unwrap_err();
        let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>()).unwrap();
        assert!(matches!(PathRefusal::of(cause), Some(PathRefusal::Link { .. })));
    }
    // A link of a journal is one as well.
    let path = shared.join("fresh.db");
    symlink(&victim, shared.join("fresh.db-wal")).unwrap();
    assert!(History::open(&at(&path), PATIENCE).is_err());
    assert_eq!(fs::read_to_string(&victim).unwrap(), PRECIOUS);

    // In a directory of one's own links work.
    let link = directory.path().join("link.db");
    symlink(directory.path().join("real.db"), &link).unwrap();
    History::open(&at(&link), PATIENCE).unwrap().begin(&header("/mnt")).unwrap();
    assert!(directory.path().join("real.db").is_file() && link.is_symlink());
}

#[test]
fn files_and_directories_that_are_made_are_for_their_user_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("share/fathom/history.db");
    let mut history = History::open(&at(&path), PATIENCE).unwrap();
    history.begin(&header("/mnt")).unwrap();
    for (name, expected) in
        [("", 0o700), ("fathom", 0o700), ("fathom/history.db", 0o600), ("fathom/history.db-wal", 0o600)]
    {
        assert_eq!(mode(&directory.path().join("share").join(name)), expected, "{name}");
    }
}

#[test]
fn side_files_go_to_the_users_own_directory_before_one_that_others_may_write_to() {
    let (directory, _, shared) = ground(0o1777);
    let history = shared.join("h.db");
    fs::write(&history, "not a database").unwrap();
    let own = directory.path().join("data/fathom");
    let place = HistoryPath { own_directory: Some(own.clone()), ..HistoryPath::new(Some(at(&history))) };
    let (store, _) = Store::begin(&place, &header("/mnt"));
    assert_eq!(kept(&store).parent(), Some(own.as_path()));
    assert_eq!((mode(&own), mode(&kept(&store))), (0o700, 0o600));
    assert_eq!(fs::read_dir(&shared).unwrap().count(), 1);
}

#[test]
fn the_directory_for_temporary_files_is_the_last_resort_and_gets_a_private_one() {
    let place =
        HistoryPath { own_directory: None, ..HistoryPath::new(Some(at(Path::new("/proc/none/h.db")))) };
    let (store, warning) = Store::begin(&place, &header("/mnt"));
    assert!(warning.is_some());
    let (file, temporary) = (kept(&store), std::env::temp_dir());
    let directory = file.parent().unwrap();
    assert_eq!(directory.parent(), Some(temporary.as_path()));
    assert_eq!((mode(directory), mode(&file)), (0o700, 0o600));
    fs::remove_dir_all(directory).unwrap();
}
