//! Writing follows no link that somebody else may have made, and writes to nothing but files and what shows text.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use fathom_sys::files::{
    HISTORY_OWNER, PathRefusal, PrivateAccess, SUITE, VERIFY_STATE, check_output, create_new, create_output,
    keep_history, private_directory, replace_output, resolve_private_file,
};
use rustix::fs::{FileType, Mode};

use super::planted::{ANOTHER, Ground, give, is_root};

fn refusal<T: std::fmt::Debug>(result: io::Result<T>) -> PathRefusal {
    let error = result.unwrap_err();
    PathRefusal::of(&error).unwrap_or_else(|| panic!("{error:?}")).clone()
}

/// Every way of writing to `path`; each must be refused for `expected`.
#[track_caller]
fn refused(path: &Path, expected: &PathRefusal) {
    assert_eq!(&refusal(check_output(path)), expected, "check {path:?}");
    assert_eq!(&refusal(create_output(path).map(drop)), expected, "create {path:?}");
    assert_eq!(
        &refusal(replace_output(path, 0o644, |out| out.write_all(b"x"))),
        expected,
        "replace {path:?}"
    );
    let resolved = resolve_private_file(path, PrivateAccess::Create);
    assert_eq!(&refusal(resolved), expected, "resolve {path:?}");
}

fn link_refusal() -> PathRefusal {
    PathRefusal::Link { link: "link".into() }
}

fn fifo(path: &Path) {
    rustix::fs::mknodat(rustix::fs::CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}

#[test]
fn links_in_directories_that_others_may_write_to_are_not_followed() {
    for mode in [0o777, 0o775, 0o757, 0o2775] {
        let ground = Ground::new(mode);
        refused(&ground.link(None), &link_refusal());
        assert!(ground.is_untouched(), "{mode:o}");
    }
}

#[test]
fn own_links_in_sticky_directories_are_followed() {
    for mode in [0o1777, 0o1775] {
        let ground = Ground::new(mode);
        create_output(&ground.link(None)).unwrap().write_all(b"mine").unwrap();
        assert_eq!(fs::read_to_string(ground.victim()).unwrap(), "mine", "{mode:o}");
        if is_root() {
            let ground = Ground::new(mode);
            refused(&ground.link(Some(ANOTHER)), &link_refusal());
            assert!(ground.is_untouched(), "{mode:o}");
        }
    }
}

#[test]
fn links_with_two_names_are_not_followed() {
    let ground = Ground::new(0o1777);
    let link = ground.link(None);
    fs::hard_link(&link, ground.shared("second")).unwrap();
    refused(&link, &link_refusal());
    assert!(ground.is_untouched());
}

#[test]
fn links_in_another_users_directory_are_not_followed() {
    if !is_root() {
        return;
    }
    for (mode, owner) in [(0o755, None), (0o755, Some(ANOTHER)), (0o1755, None)] {
        let ground = Ground::new(mode);
        let link = ground.link(owner);
        ground.give_shared_to(ANOTHER);
        refused(&link, &link_refusal());
        assert!(ground.is_untouched());
    }
}

#[test]
fn links_to_directories_and_chains_of_links_are_checked_as_well() {
    let ground = Ground::new(0o777);
    symlink(ground.victim().parent().unwrap(), ground.shared("link")).unwrap();
    refused(&ground.shared("link/victim"), &link_refusal());
    refused(&ground.shared("link/new"), &link_refusal());
    assert!(!ground.victim().with_file_name("new").exists());
    // A link of our own that leads to a planted one.
    let own = ground.victim().with_file_name("own");
    symlink(ground.shared("link/victim"), &own).unwrap();
    refused(&own, &link_refusal());
    assert!(ground.is_untouched());
}

#[test]
fn links_in_own_directories_are_followed() {
    let directory = tempfile::tempdir().unwrap();
    let (target, link) = (directory.path().join("a/target"), directory.path().join("link"));
    fs::create_dir(directory.path().join("a")).unwrap();
    symlink("./a/../a/target", &link).unwrap();
    create_output(&link).unwrap().write_all(b"one").unwrap();
    assert_eq!(fs::read_to_string(&target).unwrap(), "one");
    replace_output(&link, 0o600, |out| out.write_all(b"two")).unwrap();
    assert_eq!(fs::read_to_string(&target).unwrap(), "two");
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink(), "the link stays one");
    let circle = directory.path().join("circle");
    symlink("circle", &circle).unwrap();
    assert_eq!(create_output(&circle).unwrap_err().raw_os_error(), Some(40), "ELOOP");
}

#[test]
fn a_planted_file_in_a_sticky_directory_is_not_written_to() {
    if !is_root() {
        return;
    }
    for mode in [0o1777, 0o1775] {
        let ground = Ground::new(mode);
        let file = ground.shared("file");
        fs::write(&file, "bait").unwrap();
        give(&file, ANOTHER);
        refused(&file, &PathRefusal::ForeignFile);
        let pipe = ground.shared("pipe");
        fifo(&pipe);
        give(&pipe, ANOTHER);
        refused(&pipe, &PathRefusal::ForeignFile);
        assert_eq!(fs::read_to_string(&file).unwrap(), "bait");
    }
    // Outside of sticky directories root may write to what users have, as `sudo` in a home does.
    let ground = Ground::new(0o755);
    let file = ground.shared("file");
    fs::write(&file, "old").unwrap();
    give(&file, ANOTHER);
    ground.give_shared_to(ANOTHER);
    replace_output(&file, 0o644, |out| out.write_all(b"new")).unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "new");
    assert_eq!(fs::metadata(&file).unwrap().uid(), ANOTHER, "it stays theirs");
}

#[test]
fn a_second_name_of_a_victims_file_is_not_written_to() {
    for mode in [0o777, 0o775, 0o1777] {
        let ground = Ground::new(mode);
        let name = ground.shared("name");
        fs::hard_link(ground.victim(), &name).unwrap();
        refused(&name, &PathRefusal::HardLink);
        assert!(ground.is_untouched(), "{mode:o}");
    }
}

#[test]
fn non_files_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    refused(&socket, &PathRefusal::NotAFile("a socket"));
    refused(Path::new("/dev/urandom"), &PathRefusal::NotAFile("a character device"));
    for path in [directory.path(), Path::new("/"), Path::new("."), &directory.path().join("new/")] {
        assert_eq!(create_output(path).unwrap_err().kind(), io::ErrorKind::IsADirectory, "{path:?}");
    }
    assert_eq!(create_output(Path::new("")).unwrap_err().kind(), io::ErrorKind::NotFound);
    let below = directory.path().join("file/below");
    fs::write(directory.path().join("file"), "").unwrap();
    assert_eq!(create_output(&below).unwrap_err().kind(), io::ErrorKind::NotADirectory);
    assert_eq!(refusal(create_output(Path::new("/proc/self/comm")).map(drop)), PathRefusal::KernelFile);
    if is_root() {
        let disk = directory.path().join("disk");
        let made = rustix::fs::mknodat(
            rustix::fs::CWD,
            &disk,
            FileType::BlockDevice,
            Mode::RUSR,
            rustix::fs::makedev(7, 99),
        );
        made.unwrap();
        refused(&disk, &PathRefusal::NotAFile("a block device"));
        assert!(fs::symlink_metadata(&disk).unwrap().file_type().is_block_device());
    }
}

#[test]
fn pipes_terminals_and_the_null_device_can_be_written_to() {
    for device in ["/dev/null", "/dev/full", "/dev/zero"] {
        create_output(Path::new(device)).unwrap();
    }
    replace_output(Path::new("/dev/null"), 0o644, |out| out.write_all(b"x")).unwrap();
    assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device(), "it is not replaced");

    let (mut reader, writer) = io::pipe().unwrap();
    // Other tests open files at the same time and get the lowest free number: a high one stays closed.
    let writer = rustix::io::fcntl_dupfd_cloexec(writer, 700).unwrap();
    for name in ["/dev/fd", "/proc/self/fd", "/proc/thread-self/fd"] {
        let path = format!("{name}/{}", writer.as_raw_fd());
        create_output(Path::new(&path)).unwrap().write_all(b"to a pipe;").unwrap();
    }
    let path = format!("/dev/fd/{}", writer.as_raw_fd());
    replace_output(Path::new(&path), 0o644, |out| out.write_all(b"whole")).unwrap();
    drop(writer);
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    assert_eq!(text, "to a pipe;to a pipe;to a pipe;whole");
    assert!(create_output(Path::new(&path)).is_err(), "the descriptor is closed");
}

#[test]
fn an_open_file_is_not_truncated() {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(b"before ").unwrap();
    let path = format!("/dev/fd/{}", file.as_raw_fd());
    create_output(Path::new(&path)).unwrap().write_all(b"after").unwrap();
    let mut text = String::new();
    io::Seek::rewind(&mut file).unwrap();
    file.read_to_string(&mut text).unwrap();
    assert_eq!(text, "before after");
}

#[test]
fn a_fifo_without_a_reader_is_refused_immediately() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pipe");
    fifo(&path);
    assert_eq!(refusal(create_output(&path).map(drop)), PathRefusal::NoReader);
    let mut reader = File::options().read(true).write(true).open(&path).unwrap();
    create_output(&path).unwrap().write_all(b"here").unwrap();
    let mut bytes = [0; 4];
    reader.read_exact(&mut bytes).unwrap();
    assert_eq!(&bytes, b"here");
    assert_eq!(
        refusal(resolve_private_file(&path, PrivateAccess::Existing)),
        PathRefusal::NotAFile("a FIFO")
    );
}

#[test]
fn existing_files_are_truncated_and_new_ones_have_their_mode() {
    let directory = tempfile::tempdir().unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let path = directory.path().join("file");
    fs::write(&path, "a long old text").unwrap();
    create_output(&path).unwrap().write_all(b"new").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "new");

    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    replace_output(&path, 0o600, |out| out.write_all(b"replaced")).unwrap();
    assert_eq!((fs::read_to_string(&path).unwrap().as_str(), mode(&path)), ("replaced", 0o640));
    let failed = replace_output(&path, 0o600, |out| {
        out.write_all(b"half")?;
        Err(io::Error::other("broken"))
    });
    assert_eq!(failed.unwrap_err().to_string(), "broken");
    assert_eq!(fs::read_to_string(&path).unwrap(), "replaced", "a failure leaves the old text");

    let private = directory.path().join("private");
    create_new(&private).unwrap();
    assert_eq!(mode(&private), 0o600);
    assert_eq!(create_new(&private).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    let names = fs::read_dir(directory.path()).unwrap().count();
    assert_eq!(names, 2, "nothing temporary is left");
}

#[test]
fn private_files_and_the_directories_above_them_are_private() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a/b/history.db");
    let missing = resolve_private_file(&path, PrivateAccess::Existing).unwrap_err();
    assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    for _ in 0..2 {
        let resolved = resolve_private_file(&path, PrivateAccess::Create).unwrap();
        assert!(resolved.exists && resolved.path == fs::canonicalize(&path).unwrap(), "{resolved:?}");
    }
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
    let other = resolve_private_file(&path.with_file_name("none"), PrivateAccess::Existing).unwrap();
    assert!(!other.exists && !other.path.exists());

    let own = private_directory().unwrap();
    assert_eq!(mode(&own), 0o700);
    fs::remove_dir(own).unwrap();
}

/// Every output to `path` must be refused with these words, and what lies there stays.
#[track_caller]
fn refused_in_use(path: &Path, words: &str) {
    let before = fs::read(path).ok();
    let refusals = [
        refusal(check_output(path)),
        refusal(create_output(path).map(drop)),
        refusal(replace_output(path, 0o644, |out| out.write_all(b"x"))),
    ];
    for refusal in refusals {
        let PathRefusal::InUse(why) = &refusal else { panic!("{refusal:?}") };
        assert!(why.contains(words), "{why}");
    }
    assert_eq!(fs::read(path).ok(), before);
}

#[test]
fn nothing_takes_the_place_of_the_history_or_its_side_files() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    keep_history(&at("h.db"));
    for name in ["h.db", "h.db-wal", "h.db-shm", "h.db-journal"] {
        refused_in_use(&at(name), "the history in use");
        fs::write(at(name), "of the history").unwrap();
        refused_in_use(&at(name), "the history in use");
        for link in ["symbolic", "hard"] {
            let link = at(&format!("{name}-{link}"));
            match link.to_string_lossy().ends_with("hard") {
                true => fs::hard_link(at(name), &link).unwrap(),
                false => symlink(at(name), &link).unwrap(),
            }
            refused_in_use(&link, "the history in use");
        }
    }
    fs::create_dir(at("d")).unwrap();
    fs::write(at("d/h.db"), "another of this name").unwrap();
    replace_output(&at("d/h.db"), 0o644, |out| out.write_all(b"x")).unwrap();
    // The history that a link leads to.
    symlink(at("d/other.db"), at("l.db")).unwrap();
    keep_history(&at("l.db"));
    refused_in_use(&at("d/other.db"), "the history in use");
    fs::write(at("d/other.db"), "").unwrap();
    fs::write(at("d/other.db-wal"), "").unwrap();
    refused_in_use(&at("d/other.db-wal"), "the history in use");
}

#[test]
fn nothing_takes_the_place_of_an_input() {
    let directory = tempfile::tempdir().unwrap();
    let (input, link) = (directory.path().join("input"), directory.path().join("link"));
    fs::write(&input, "x").unwrap();
    SUITE.read(&input).unwrap();
    symlink(&input, &link).unwrap();
    refused_in_use(&input, "it is the suite that this command reads");
    refused_in_use(&link, "it is the suite that this command reads");
    // A new file of the same name is another.
    fs::rename(&input, directory.path().join("moved")).unwrap();
    create_output(&input).unwrap();
    // The program's own state is read and written anew.
    fs::write(&input, "x").unwrap();
    VERIFY_STATE.read(&input).unwrap();
    create_output(&input).unwrap();
}

#[test]
fn nothing_takes_the_place_of_any_history() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("h");
    let mut database = b"SQLite format 3\0".to_vec();
    database.resize(68, 0);
    database.extend(HISTORY_OWNER);
    database.resize(4096, 0);
    fs::write(&path, &database).unwrap();
    refused_in_use(&path, "it is a history");
    fs::write(&path, [0x37, 0x7f, 0x06, 0x82, 0, 0]).unwrap();
    refused_in_use(&path, "it is the log of a database");
    database[68] = b'x';
    fs::write(&path, &database).unwrap();
    create_output(&path).unwrap();
}
