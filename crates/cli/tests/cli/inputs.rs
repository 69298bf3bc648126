//! Files that a user names as input, and that never end, never begin, or hold too much of one thing.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use rustix::fs::{FileType, Mode};

use crate::{program, scratch};

/// Most memory of a run, KiB of address space: the program itself takes half of it.
const ADDRESS_SPACE_KIB: u64 = 512 << 10;

/// Runs the program with limited memory, and `stdin`.
fn limited(dir: &Path, args: &[&str], variables: &[(&str, &str)], stdin: Stdio) -> Output {
    let program = program(dir);
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("ulimit -v {ADDRESS_SPACE_KIB}; exec \"$@\"")).arg("sh");
    command.arg(program.get_program()).args(args).current_dir(dir).env_clear();
    for (name, value) in program.get_envs() {
        command.envs(value.map(|value| (name, value)));
    }
    command.envs(variables.iter().copied()).stdin(stdin).output().unwrap()
}

#[track_caller]
fn refused(dir: &Path, args: &[&str], expected: &str) {
    refused_with(dir, args, &[], expected);
}

#[track_caller]
fn refused_with(dir: &Path, args: &[&str], variables: &[(&str, &str)], expected: &str) {
    let output = limited(dir, args, variables, Stdio::null());
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(1 | 2)), "{args:?}: {:?} {stderr}", output.status);
    assert!(stderr.contains(expected), "{args:?} lacks {expected:?}: {stderr}");
    for bug in ["panicked", "memory allocation"] {
        assert!(!stderr.contains(bug), "{args:?}: {stderr}");
    }
}

/// The commands that read each kind of input, up to the name of the file.
const READERS: &[&[&str]] = &[
    &["catalog", "list", "--catalog"],
    &["catalog", "check"],
    &["bench", "--no-history", ".", "--suite"],
    &["bench", "--no-history", ".", "--expect-file"],
    &["simulate", "custom?iops=5", "--trace"],
    &["simulate", "custom?iops=5", "--job"],
    &["fio"],
];

#[test]
fn only_regular_files_are_read_by_name() {
    let dir = scratch();
    let fifo = dir.path().join("fifo.toml");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let _listener = std::os::unix::net::UnixListener::bind(dir.path().join("socket.toml")).unwrap();
    std::fs::create_dir(dir.path().join("directory.toml")).unwrap();
    for reader in READERS {
        for (name, kind) in [
            ("/dev/zero", "a character device"),
            ("./fifo.toml", "a FIFO"),
            ("./socket.toml", "a socket"),
            ("./directory.toml", "a directory"),
        ] {
            let line = [*reader, &[name]].concat();
            refused(dir.path(), &line, &format!("it is {kind}, not a regular file"));
        }
    }
    let variable = [("FATHOM_CATALOG", "/dev/zero")];
    let expected =
        "error: cannot read the catalogue /dev/zero: it is a character device, not a regular file\nhint: ";
    refused_with(dir.path(), &["catalog", "list"], &variable, expected);
    refused_with(
        dir.path(),
        &["history", "list"],
        &[("FATHOM_HISTORY", "/dev/zero")],
        "is not a regular file",
    );
    refused_with(
        dir.path(),
        &["history", "list"],
        &[("FATHOM_HISTORY", "fifo.toml")],
        "is not a regular file",
    );
}

#[test]
fn files_that_are_too_large_are_refused_in_little_memory() {
    let dir = scratch();
    File::create(dir.path().join("huge.toml")).unwrap().set_len(1 << 40).unwrap();
    for reader in READERS {
        let expected =
            if reader.contains(&"--trace") { "is longer than 16384 bytes" } else { "it is larger than" };
        refused(dir.path(), &[*reader, &["./huge.toml"]].concat(), expected);
    }
}

#[test]
fn an_endless_standard_input_is_refused() {
    let dir = scratch();
    for (args, expected) in [
        (&["fio", "-"][..], "larger than 1 MiB"),
        (&["fio", "/dev/stdin"], "larger than 1 MiB"),
        (&["simulate", "custom?iops=5", "--job", "-"], "larger than 1 MiB"),
        (&["simulate", "custom?iops=5", "--trace", "-"], "standard input: line 1 is longer than 16384 bytes"),
        (&["catalog", "list", "--catalog", "/dev/stdin"], "larger than 4 MiB"),
    ] {
        let output = limited(dir.path(), args, &[], File::open("/dev/zero").unwrap().into());
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(stderr.contains(expected), "{args:?} lacks {expected:?}: {stderr}");
    }
}

#[test]
fn pipes_that_were_given_open_are_read() {
    let dir = scratch();
    let trace = b"fio version 3 iolog\n0 /t read 0 4096\n";
    for name in ["-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"] {
        let mut child = program(dir.path())
            .args(["simulate", "custom?iops=5", "--trace", name])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(trace).unwrap();
        let output = child.wait_with_output().unwrap();
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && stdout.contains("the 1 requests"), "{name}: {output:?}");
    }
}

#[test]
fn deep_nesting_and_large_numbers_are_refused() {
    let dir = scratch();
    let deep = |open: &str, count: usize| open.repeat(count);
    for (text, expected) in [
        (format!("a={}", deep("[", 1_000_000)), "recurs"),
        (format!("a={}", deep("{a=", 300_000)), "recurs"),
        (format!("[{}a]", deep("a.", 500_000)), "recursion limit"),
        (format!("[[{}a]]", deep("a.", 500_000)), "recursion limit"),
        (format!("{}a=1", deep("a.", 500_000)), "recursion limit"),
    ] {
        std::fs::write(dir.path().join("deep.toml"), text).unwrap();
        for reader in &READERS[..4] {
            refused(dir.path(), &[*reader, &["./deep.toml"]].concat(), expected);
        }
    }
    let mine = include_str!("../../../catalog/tests/mine.toml");
    for number in ["99999999999999999999", "9223372036854775807", "1e400"] {
        std::fs::write(dir.path().join("large.toml"), mine.replace("5000", number)).unwrap();
        refused(dir.path(), &["catalog", "check", "large.toml"], "large.toml:12: mine: iops_max");
    }
}

#[test]
fn what_is_no_text_is_refused_by_line() {
    let dir = scratch();
    std::fs::write(dir.path().join("bytes.toml"), b"# fine\n\xff\xfe\n").unwrap();
    for reader in &READERS[..5] {
        let expected = if reader.contains(&"--trace") { "is neither" } else { "line 2 is not valid UTF-8" };
        refused(dir.path(), &[*reader, &["./bytes.toml"]].concat(), expected);
    }
}

#[test]
fn job_files_of_many_lines_and_sections_are_refused_in_little_memory() {
    let dir = scratch();
    for (text, expected) in [
        ("[a]\n".repeat(200_000), "maximum number of jobs (4096) reached"),
        (format!("[a]\n{}", "a\n".repeat(400_000)), "more than 65536 option lines"),
        (format!("[a]\nfilename={}", "${V}".repeat(100_000)), "expand to more than"),
    ] {
        std::fs::write(dir.path().join("many.fio"), text).unwrap();
        let long = "x".repeat(100_000);
        refused_with(dir.path(), &["fio", "--parse-only", "many.fio"], &[("V", &long)], expected);
    }
}
