//! Input that the program cannot use: each gets one message that names it and the remedy, its exit status, no trace of
//! a panic, and nothing stays behind.

mod access;
mod histories;
mod surroundings;

use fathom_tests::{Ended, LoopDevice, LoopOptions, MIB, fathom, loading, must_run, need, run, scratch};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// A home, and a target that everybody may write to, both gone afterwards.
struct Place {
    home: TempDir,
    target: TempDir,
}

impl Place {
    fn new() -> Self {
        let place = Place { home: scratch(), target: scratch() };
        for directory in [&place.home, &place.target] {
            fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777)).expect("it is ours");
        }
        place
    }

    fn target(&self) -> &Path {
        self.target.path()
    }

    /// `fathom` with `words`, in which `%` is the target.
    fn command(&self, words: &[&str]) -> Command {
        let mut command = fathom(self.home.path());
        let target = self.target().to_string_lossy();
        command.args(words.iter().map(|word| word.replace('%', &target)));
        command
    }

    /// `fathom fio` with a job on the target's directory.
    fn fio(&self, more: &[&str]) -> Command {
        self.command(&[&["fio", "--name=bad", "--directory=%"], more].concat())
    }

    /// A bench of a quarter of a second on `target`.
    fn bench(&self, target: &Path, more: &[&str]) -> Command {
        self.command(&[SHORT, more, &[&target.to_string_lossy()]].concat())
    }

    fn side_files(&self, directory: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(directory)
            .expect("it can be listed")
            .map(|entry| entry.expect("it is there").path());
        entries.filter(|path| path.extension().is_some_and(|extension| extension == "json")).collect()
    }
}

const SHORT: &[&str] = &["bench", "--quick", "--runtime=100ms", "--size=16m", "--only=lat-read"];

/// As a user who owns nothing here.
const NOBODY: &[&str] = &["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];

fn names_in(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("it can be listed");
    entries.map(|entry| entry.expect("it is there").file_name().to_string_lossy().into_owned()).collect()
}

/// One message and one remedy, and what went to stdout is no report.
#[track_caller]
fn assert_refused(ended: &Ended, code: i32, parts: &[&str]) {
    ended.assert_code(code).assert_told(parts);
    assert!(
        ended.stderr.lines().filter(|line| !line.is_empty()).count() <= 5,
        "more than a message and a remedy:\n{ended}"
    );
    assert!(!ended.stdout.contains("IOPS="), "{ended}");
}

#[test]
fn arguments_that_are_not_utf8_are_refused() {
    let _loading = loading();
    let place = Place::new();
    let word = OsStr::from_bytes(b"--name=\xff\xfe");
    assert_refused(&run(place.command(&["fio"]).arg(word)), 1, &["not valid UTF-8"]);
    assert_refused(&run(place.command(&[]).arg(OsStr::from_bytes(b"\xff"))), 2, &["--help"]);
    assert_refused(
        &run(place.command(&["bench"]).arg(OsStr::from_bytes(b"/nope\xff"))),
        1,
        &["no such file"],
    );
    // Invalid option text is not interpreted as another name.
    let odd = place.target().join(OsStr::from_bytes(b"odd \xff"));
    fs::create_dir(&odd).expect("the directory is ours");
    assert_refused(&run(place.command(SHORT).arg(&odd)), 1, &["not valid UTF-8", "link"]);
    let plain = place.target().join("plain: a\\b %s");
    std::os::unix::fs::symlink(&odd, &plain).expect("the directory is ours");
    run(place.command(SHORT).arg(&plain)).assert_code(0);
    assert_eq!(names_in(&odd), [""; 0]);
}

#[test]
fn very_long_command_lines_are_handled() {
    let _loading = loading();
    let place = Place::new();
    let many = |word: &str, count: usize| {
        (0..count).map(|number| word.replace('#', &number.to_string())).collect::<Vec<_>>()
    };
    let ended = run(place.command(&["fio"]).args(many("--name=job#", 20_000)));
    assert_refused(&ended, 1, &["maximum number of jobs (4096)", "numjobs"]);
    run(place.fio(&["--size=64k", "--rw=write"]).args(many("--bs=4k", 20_000))).assert_code(0);
    run(place.command(SHORT).arg(place.target()).args(many("--label=l#=v", 5_000))).assert_code(0);
    let long = format!("--name={}", "x".repeat(100_000));
    run(&mut place.command(&["fio", "--directory=%", &long, "--size=64k"]))
        .assert_code(1)
        .assert_told(&["File name too long"]);
}

#[test]
fn blocks_unsuitable_for_direct_io_are_refused() {
    need!(root, tool "losetup");
    let _loading = loading();
    let place = Place::new();
    let device = LoopDevice::with(&LoopOptions { sector: 4096, ..LoopOptions::of_size(32 * MIB) });
    let filename = format!("--filename={}", device.path().display());
    for engine in ["psync", "io_uring", "libaio"] {
        for bs in ["1000", "512", "3"] {
            let words = ["fio", "--name=bad", "--direct=1", &filename, "--size=1m", "--rw=randread"];
            let ended =
                run(place.command(&words).args([format!("--bs={bs}"), format!("--ioengine={engine}")]));
            assert_refused(&ended, 1, &[&format!("bs={bs}"), "multiple of 4096", "direct=0"]);
        }
    }
    let ended = run(&mut place.fio(&["--size=1m", "--bs=1000", "--direct=1", "--rw=write"]));
    assert_refused(&ended, 1, &["bs=1000", "direct=0"]);
}

#[test]
fn names_of_devices_are_not_removed() {
    need!(root);
    let _loading = loading();
    let place = Place::new();
    let node = place.target().join("null");
    must_run(Command::new("mknod").arg(&node).args(["c", "1", "3"]));
    let name = format!("--filename={}", node.display());
    let delete = ["--name=d", "--ioengine=filedelete", "--size=4k", &name];
    let write = ["--name=w", "--rw=write", "--size=4k", &name];
    for jobs in [delete.to_vec(), [&write[..], &delete].concat()] {
        assert_refused(&run(place.command(&["fio"]).args(jobs)), 1, &["is a device", "name regular files"]);
        assert!(node.exists());
    }
    run(place.command(&["fio"]).args(write).arg("--unlink=1")).assert_code(0);
    assert!(node.exists());
}
