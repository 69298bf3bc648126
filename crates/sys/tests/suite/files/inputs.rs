//! Inputs are read up to their limits; what never ends or never begins is refused at once.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use fathom_sys::files::{Input, InputError, Lines, SUITE, TRACE};
use rustix::fs::{FileType, Mode};

const SMALL: Input = Input {
    noun: "thing",
    takes_stdin: false,
    most_bytes: 1 << 20,
    most_line_bytes: 8,
    most_entries: 2,
    is_state: false,
};

#[track_caller]
fn refused(input: &Input, path: &Path, expected: &str) {
    let error: InputError = input.read(path).unwrap_err();
    assert_eq!(error.to_string(), format!("cannot read the {} {}: {expected}", input.noun, path.display()));
    assert!(!error.hint().is_empty());
}

#[test]
fn only_regular_files_have_a_name() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    refused(&SUITE, Path::new("/dev/zero"), "it is a character device, not a regular file");
    refused(&SUITE, directory.path(), "it is a directory, not a regular file");
    refused(&SUITE, &path("none"), "No such file or directory");
    let fifo = path("fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    refused(&SUITE, &fifo, "it is a FIFO, not a regular file");
    let _listener = std::os::unix::net::UnixListener::bind(path("socket")).unwrap();
    refused(&SUITE, &path("socket"), "it is a socket, not a regular file");
    assert_eq!(SUITE.read(Path::new("/dev/null")).unwrap(), b"");
    assert!(SUITE.read(&path("none")).unwrap_err().is_absence());
    assert!(!SUITE.read(&fifo).unwrap_err().is_absence());
}

#[test]
fn files_are_read_up_to_their_limit() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let file = File::create(&path).unwrap();
    for (length, fits) in [(0, true), (1 << 20, true), ((1 << 20) + 1, false), (1 << 40, false)] {
        file.set_len(length).unwrap();
        match fits {
            true => assert_eq!(SMALL.read(&path).unwrap().len() as u64, length),
            false => refused(&SMALL, &path, "it is larger than 1 MiB"),
        }
    }
}

#[test]
fn open_files_are_read_up_to_the_same_limit() {
    let named = |file: &File| PathBuf::from(format!("/dev/fd/{}", file.as_raw_fd()));
    let zero = File::open("/dev/zero").unwrap();
    refused(&SMALL, &named(&zero), "it is larger than 1 MiB");
    let (reader, mut writer) = io::pipe().unwrap();
    writer.write_all(b"from a pipe").unwrap();
    drop(writer);
    let path = PathBuf::from(format!("/proc/self/fd/{}", reader.as_raw_fd()));
    assert_eq!(SMALL.read(&path).unwrap(), b"from a pipe");
}

#[test]
fn text_is_utf8() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    fs::write(&path, b"one\ntwo \xff").unwrap();
    let error = SMALL.read_text(&path).unwrap_err();
    assert!(error.to_string().ends_with(": line 2 is not valid UTF-8"), "{error}");
    fs::write(&path, "ü").unwrap();
    assert_eq!(SMALL.read_text(&path).unwrap(), "ü");
}

/// The lines of `text`, and how reading them ends.
fn lines(text: &[u8]) -> (Vec<String>, Option<String>) {
    static INPUT: Input = SMALL;
    let mut lines = Lines::new(&INPUT, "t", text);
    let mut found = Vec::new();
    loop {
        match lines.next_line() {
            Ok(Some(line)) => found.push(line.to_owned()),
            Ok(None) => return (found, None),
            Err(error) => return (found, Some(error.to_string())),
        }
    }
}

#[test]
fn lines_have_a_maximum_length() {
    let check = |text: &[u8], expected: &[&str], end: Option<&str>| {
        let (found, error) = lines(text);
        assert_eq!(found, expected, "{text:?}");
        assert_eq!(error.as_deref(), end, "{text:?}");
    };
    check(b"", &[], None);
    check(b"a\n\nb", &["a", "", "b"], None);
    check(b"12345678\n12345678", &["12345678", "12345678"], None);
    check(b"a\n123456789\n", &["a"], Some("cannot read the thing t: line 2 is longer than 8 bytes"));
    check(b"a\n\xff\n", &["a"], Some("cannot read the thing t: line 2 is not valid UTF-8"));
    check(&b"1234567\n".repeat(1 << 17), &vec!["1234567"; 1 << 17], None);
    let (found, error) = lines(&b"1234567\n".repeat((1 << 17) + 1));
    assert_eq!(
        (found.len(), error.as_deref()),
        (1 << 17, Some("cannot read the thing t: it is larger than 1 MiB"))
    );
}

#[test]
fn entries_are_counted() {
    let lines = Lines::new(&TRACE, "t", io::empty());
    assert!(lines.check_entries(16 << 20).is_ok());
    let error = lines.check_entries((16 << 20) + 1).unwrap_err();
    assert_eq!(error.to_string(), "cannot read the trace t: it has more than 16777216 requests");
}

#[test]
fn lines_of_devices_and_endless_lines_are_refused() {
    assert!(TRACE.lines(Path::new("/dev/zero")).is_err());
    let zero = File::open("/dev/zero").unwrap();
    let mut lines = TRACE.lines(Path::new(&format!("/dev/fd/{}", zero.as_raw_fd()))).unwrap();
    assert!(lines.next_line().unwrap_err().to_string().ends_with("line 1 is longer than 16384 bytes"));
}
