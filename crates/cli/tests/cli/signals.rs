//! Ctrl-C, SIGTERM and `kill -9`, while laying out and while measuring: a report where one can be made, nothing left.

use std::path::Path;
use std::process::{Child, Stdio};

use serde_json::Value;

use crate::{Ended, ended, files_in, program, run, scratch, scratch_with};

fn start(dir: &Path, args: &[&str]) -> Child {
    program(dir).args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn signal(child: &Child, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_child(child);
    rustix::process::kill_process(pid, signal).unwrap();
}

/// Waits until `seen` holds; a program that ends before it does has failed.
#[track_caller]
fn until(child: &mut Child, seen: impl Fn() -> bool) {
    while !seen() {
        if let Some(status) = child.try_wait().unwrap() {
            panic!("ended with {status} before it was to be stopped");
        }
        std::thread::yield_now();
    }
}

fn finish(child: Child) -> Ended {
    ended(child.wait_with_output().unwrap())
}

/// A count of `/proc/PID/io`; 0 where the process is gone.
fn counted(pid: u32, field: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
    let value = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(": "));
    value.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
}

const LONG: [&str; 7] =
    ["fio", "--name=a", "--filename=f", "--size=1m", "--rw=randread", "--time_based", "--runtime=100s"];

#[test]
fn fio_reports_what_it_did_and_exits_128() {
    for (number, what) in [
        (rustix::process::Signal::INT, "fio: terminating on signal 2"),
        (rustix::process::Signal::TERM, "fio: terminating on signal 15"),
    ] {
        let dir = scratch();
        let mut child = start(dir.path(), &LONG);
        let pid = child.id();
        until(&mut child, || counted(pid, "rchar") > 64 << 20);
        signal(&child, number);
        let ended = finish(child);
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(128), ""), "{ended:?}");
        assert!(ended.stdout.contains(what) && ended.stdout.contains("   READ: bw="), "{}", ended.stdout);
    }
}

#[test]
fn fio_keeps_its_json_whole() {
    let dir = scratch();
    let mut args = LONG.to_vec();
    args.push("--output-format=json");
    let mut child = start(dir.path(), &args);
    let target = dir.path().join("f");
    until(&mut child, || target.metadata().is_ok_and(|file| file.len() == 1 << 20));
    signal(&child, rustix::process::Signal::INT);
    let ended = finish(child);
    assert_eq!(ended.code, Some(128));
    serde_json::from_str::<Value>(&ended.stdout).unwrap();
    assert_eq!(ended.stderr, "fio: terminating on signal 2\n");
}

fn bench<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let mut args = vec!["bench", "--history", "h.db", "--buffered", "--quick", "target"];
    args.extend(more);
    args
}

#[test]
fn bench_broken_off_while_laying_out_leaves_nothing() {
    for number in [rustix::process::Signal::INT, rustix::process::Signal::KILL] {
        let dir = scratch();
        let target = dir.path().join("target");
        std::fs::create_dir(&target).unwrap();
        let mut child = start(dir.path(), &bench(&["--size", "2g"]));
        let pid = child.id();
        until(&mut child, || counted(pid, "wchar") > 4 << 20);
        signal(&child, number);
        let ended = finish(child);
        assert_eq!(files_in(&target), [] as [&Path; 0]);
        if number == rustix::process::Signal::INT {
            assert_eq!(ended.code, Some(130), "{ended:?}");
            assert!(
                ended.stderr.contains("signal 2") && ended.stderr.contains("nothing was measured"),
                "{ended:?}"
            );
        }
    }
}

#[test]
fn commands_without_jobs_keep_what_they_observed() {
    let commands: [(&[&str], &str); 2] = [
        (&["ping", "-i", "1h", "--buffered", "."], "ping"),
        (
            &["simulate", "--profile=oltp", "--for=3650d", "custom?iops=9000&latency=1ms&size=9GiB"],
            "simulate",
        ),
    ];
    for (command, kind) in commands {
        for (number, tests) in [(rustix::process::Signal::TERM, 1), (rustix::process::Signal::KILL, 0)] {
            let dir = scratch();
            let history =
                |args: &[&str]| run(dir.path(), &[&["history", "--history", "h.db"], args].concat());
            let list = || serde_json::from_str::<Value>(&history(&["list", "--format=json"]).stdout);
            let is_begun = || list().is_ok_and(|rows| rows[0]["kind"] == kind);
            let mut child = start(dir.path(), &[command, &["--history", "h.db"]].concat());
            until(&mut child, is_begun);
            signal(&child, number);
            let ended = finish(child);
            assert!(tests == 0 || ended.code == Some(130), "{ended:?}");
            let rows = list().unwrap();
            assert_eq!(
                (&rows[0]["status"], &rows[0]["tests"]),
                (&"incomplete".into(), &tests.into()),
                "{rows}"
            );
            for format in ["text", "markdown", "csv", "json"] {
                history(&["show", "--show-fio", "--format", format]).quietly();
            }
        }
    }
}

#[test]
fn bench_broken_off_in_a_test_keeps_what_was_finished() {
    for number in [rustix::process::Signal::TERM, rustix::process::Signal::KILL] {
        let dir = scratch();
        let target = dir.path().join("target");
        std::fs::create_dir(&target).unwrap();
        let more = ["--size", "16m", "--runtime", "1s", "--only", "lat-read,lat-write,rand-read,rand-write"];
        let mut child = start(dir.path(), &bench(&more));
        let tests_kept = || {
            let listed = run(dir.path(), &["history", "list", "--json", "--history", "h.db"]).stdout;
            serde_json::from_str::<Value>(&listed)
                .ok()
                .and_then(|rows| rows[0]["tests"].as_u64())
                .unwrap_or(0)
        };
        until(&mut child, || tests_kept() >= 1);
        signal(&child, number);
        let ended = finish(child);
        assert_eq!(files_in(&target), [] as [&Path; 0]);
        if number == rustix::process::Signal::TERM {
            assert_eq!(ended.code, Some(130), "{ended:?}");
            assert!(
                ended.stdout.contains("lat-read") && ended.stdout.contains("signal 15"),
                "{}",
                ended.stdout
            );
        }
        let listed = run(dir.path(), &["history", "list", "--json", "--history", "h.db"]).quietly().stdout;
        let rows: Value = serde_json::from_str(&listed).unwrap();
        assert_eq!(rows[0]["status"], "incomplete");
        assert!(rows[0]["tests"].as_u64().unwrap() >= 1);
        let shown = run(dir.path(), &["history", "show", "--json", "--history", "h.db"]).quietly().stdout;
        assert_eq!(serde_json::from_str::<Value>(&shown).unwrap()["tests"][0]["status"], "complete");
    }
}

#[test]
fn a_comparison_that_is_broken_off_keeps_its_blocks() {
    let dir = scratch_with(&["a", "b"]);
    let args = [
        "bench", "a", "--against", "b", "--buffered", "--size=16m", "--quick", "--runtime=300ms",
        "--only=rand-read", "--history=h.db",
    ];
    let mut child = start(dir.path(), &args);
    let runs = || {
        let listed = run(dir.path(), &["history", "list", "--json", "--history", "h.db"]).stdout;
        serde_json::from_str::<Value>(&listed).ok().and_then(|rows| Some(rows.as_array()?.len())).unwrap_or(0)
    };
    until(&mut child, || runs() >= 5);
    signal(&child, rustix::process::Signal::INT);
    let ended = finish(child);
    assert_eq!(ended.code, Some(130), "{ended:?}");
    assert!(ended.stdout.contains("  Verdict ") && ended.stdout.contains("rand-read: "), "{}", ended.stdout);
    let compared = ["compare", "tag:against-1-a", "tag:against-1-b", "--history", "h.db"];
    let compared = run(dir.path(), &compared).quietly().stdout;
    let verdict =
        |text: &str| text.split("  Result ").next().unwrap().split("  Verdict ").nth(1).unwrap().to_owned();
    assert_eq!(verdict(&compared), verdict(&ended.stdout));
    assert!(files_in(&dir.path().join("a")).is_empty() && files_in(&dir.path().join("b")).is_empty());
}

/// What `fio` is to lay out in `dir`, far more than it comes to before it is stopped.
fn layout<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let mut args = vec!["fio", "--name=a", "--rw=randread", "--size=3g", "--direct=1"];
    args.extend(more);
    args
}

#[test]
fn a_layout_that_is_broken_off_leaves_no_file_of_its_own() {
    for more in [&["--filename=new"][..], &["--filename=new", "--unlink=1"], &["--filename=new:other"]] {
        let dir = scratch();
        let mut child = start(dir.path(), &layout(more));
        let pid = child.id();
        until(&mut child, || counted(pid, "wchar") > 4 << 20);
        signal(&child, rustix::process::Signal::TERM);
        let ended = finish(child);
        assert_eq!(ended.code, Some(128), "{ended:?}");
        assert_eq!(files_in(dir.path()), [] as [&Path; 0], "{more:?}");
    }
}

#[test]
fn a_file_that_was_there_is_as_it_was_after_a_layout_that_is_broken_off() {
    use std::os::unix::fs::MetadataExt;
    let dir = scratch();
    let path = dir.path().join("old");
    let data: Vec<u8> = (0..1 << 20).map(|at: u32| (at % 251) as u8).collect();
    std::fs::write(&path, &data).unwrap();
    std::fs::File::open(&path).unwrap().sync_all().unwrap();
    let blocks = path.metadata().unwrap().blocks();
    let mut child = start(dir.path(), &layout(&["--filename=old"]));
    let pid = child.id();
    until(&mut child, || counted(pid, "wchar") > 4 << 20);
    signal(&child, rustix::process::Signal::TERM);
    assert_eq!(finish(child).code, Some(128));
    assert!(std::fs::read(&path).unwrap() == data, "the file is not what it was");
    // The file system may keep a block of its own for the file.
    let now = path.metadata().unwrap().blocks();
    assert!(now < blocks + 64, "what was reserved is still reserved: {now} blocks, {blocks} before");
}

#[test]
fn of_several_files_those_that_would_be_removed_are_removed() {
    let dir = scratch();
    let more = ["--directory=.", "--nrfiles=600", "--unlink=1", "--fallocate=none"];
    let mut child = start(dir.path(), &layout(&more));
    // One has been completed where there are three.
    until(&mut child, || files_in(dir.path()).len() >= 3);
    signal(&child, rustix::process::Signal::TERM);
    assert_eq!(finish(child).code, Some(128));
    assert_eq!(files_in(dir.path()), [] as [&Path; 0]);
}

#[test]
fn a_limit_on_file_sizes_is_an_error_with_a_hint() {
    let under_limit = |args: &[&str]| {
        let dir = scratch();
        let program = program(dir.path());
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", "ulimit -f 2048; exec \"$0\" \"$@\""]).arg(program.get_program()).args(args);
        shell.current_dir(dir.path()).env("HOME", dir.path().join("home"));
        let ended = ended(shell.output().unwrap());
        assert!(ended.stderr.contains("File too large") && ended.stderr.contains("ulimit -f"), "{ended:?}");
        assert_eq!(ended.code, Some(1), "{ended:?}");
        files_in(dir.path()).iter().filter_map(|path| path.file_name()?.to_str().map(str::to_owned)).collect()
    };
    let read: Vec<String> = under_limit(&["fio", "--name=a", "--filename=f", "--rw=read", "--size=30m"]);
    assert_eq!(read, [] as [String; 0]);
    under_limit(&["fio", "--name=a", "--filename=f", "--rw=write", "--size=30m", "--fallocate=none"]);
    let bench = under_limit(&["bench", "--quick", "--no-history", "--buffered", "--size=32m", "."]);
    assert_eq!(bench, [] as [String; 0]);
}
