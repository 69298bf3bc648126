//! Recording requests and replaying them, and engines that act on the names of files.

use std::path::Path;

use serde_json::Value;

use crate::{run, scratch};

/// The document of `fathom fio` with `options` in `place`.
fn document(place: &Path, options: &[&str]) -> Value {
    let ended = run(place, &[&["fio", "--output-format=json", "--name=a"], options].concat());
    serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"))
}

fn number(document: &Value, path: &str) -> u64 {
    document.pointer(path).and_then(Value::as_u64).unwrap_or_else(|| panic!("no {path} in {document:#}"))
}

/// Requests and bytes of reads and writes, and syncs.
fn counts(document: &Value) -> [u64; 5] {
    ["read/total_ios", "read/io_bytes", "write/total_ios", "write/io_bytes", "sync/total_ios"]
        .map(|field| number(document, &format!("/jobs/0/{field}")))
}

/// The requests of a log, without their times.
fn requests(log: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(log).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("fio version 3 iolog"));
    let without_time = |line: &str| line.split_once(' ').expect("a time").1.to_owned();
    lines.map(without_time).collect()
}

#[test]
fn what_is_recorded_can_be_replayed() {
    for options in [
        &["--rw=randrw", "--fsync=8", "--end_fsync=1", "--nrfiles=2"][..],
        &["--rw=randwrite", "--ioengine=io_uring", "--iodepth=8", "--fdatasync=3"],
        &["--rw=randwrite", "--thinktime=50", "--ioengine=libaio", "--iodepth=4"],
        &["--rw=write", "--verify=crc32c"],
        &["--rw=trim"],
    ] {
        let place = scratch();
        let base = ["--size=64k", "--bs=4k", "--write_iolog=log"];
        let made = document(place.path(), &[&base, options].concat());
        let lines = requests(&place.path().join("log"));
        let issued = lines.iter().filter(|line| line.split(' ').count() == 4).count() as u64;
        let trims = number(&made, "/jobs/0/trim/total_ios");
        let [reads, _, writes, _, syncs] = counts(&made);
        assert!(issued >= reads + writes + trims + syncs, "{options:?}: {lines:?}");
        let replayed = document(place.path(), &["--read_iolog=log", "--write_iolog=again"]);
        let [again, ..] = counts(&replayed);
        assert_eq!(
            (again, counts(&replayed)[..4].to_vec()),
            (reads, counts(&made)[..4].to_vec()),
            "{options:?}"
        );
        assert_eq!(number(&replayed, "/jobs/0/trim/total_ios"), trims, "{options:?}");
        assert!(!place.path().join("again").exists(), "what is replayed is not recorded again");
    }
}

#[test]
fn each_clone_has_a_log_of_its_own() {
    let place = scratch();
    document(place.path(), &["--rw=write", "--size=8k", "--bs=4k", "--numjobs=2", "--write_iolog=log"]);
    assert_eq!(requests(&place.path().join("log"))[0], "a.0.0 add");
    assert_eq!(requests(&place.path().join("log.2"))[0], "a.1.0 add");
    let both = document(place.path(), &["--numjobs=2", "--read_iolog=log:log.2", "--group_reporting"]);
    assert_eq!(counts(&both)[..4], [0, 0, 4, 16384]);
}

const LOG: &str = "fio version 3 iolog\n0 x add\n0 x open\n1000 x write 0 4096\n200000 x write 8192 4096\n\
                   200001 x read 0 4096\n200002 x sync 0 0\n200003 x datasync 0 0\n200004 x close\n";

#[test]
fn a_replay_keeps_its_times_and_takes_its_options() {
    let place = scratch();
    std::fs::write(place.path().join("log"), LOG).unwrap();
    let replayed = |options: &[&str]| {
        let document = document(place.path(), &[&["--read_iolog=log"], options].concat());
        (counts(&document), number(&document, "/jobs/0/job_runtime"))
    };
    let all = [1, 4096, 2, 8192, 2];
    let (counted, runtime) = replayed(&[]);
    assert_eq!((counted[..4].to_vec(), runtime >= 199), (all[..4].to_vec(), true), "{runtime}");
    assert_eq!(std::fs::metadata(place.path().join("x")).unwrap().len(), 12288);
    let (counted, runtime) = replayed(&["--replay_time_scale=50"]);
    assert_eq!((counted[..4].to_vec(), runtime >= 399), (all[..4].to_vec(), true), "{runtime}");
    assert_eq!(replayed(&["--replay_skip=write,sync"]).0, [1, 4096, 0, 0, 0]);
    assert_eq!(replayed(&["--runtime=100ms", "--time_based"]).0[..4], [0, 0, 1, 4096]);
    // A size and loops are those of the recording.
    assert_eq!(replayed(&["--replay_no_stall=1", "--size=4k", "--loops=2"]).0[..4], all[..4]);
    replayed(&["--replay_no_stall=1", "--replay_redirect=y", "--replay_scale=2", "--replay_align=4096"]);
    assert_eq!(std::fs::metadata(place.path().join("y")).unwrap().len(), 8192);
}

#[test]
fn a_replay_on_a_simulated_volume_takes_its_time() {
    let place = scratch();
    std::fs::write(place.path().join("log"), LOG).unwrap();
    let volume = "--replay_redirect=sim:custom?size=1GiB&latency=1ms";
    let simulated = document(place.path(), &["--read_iolog=log", volume]);
    assert_eq!(counts(&simulated)[..4], [1, 4096, 2, 8192]);
    assert!((200..250).contains(&number(&simulated, "/jobs/0/job_runtime")));
}

#[test]
fn broken_recordings_are_refused_by_line() {
    let place = scratch();
    for (text, expected) in [
        ("hello\n", "log:1: it is neither an iolog"),
        ("fio version 3 iolog\n0 x add\n0 x open\n5 x raed 0 1\n", "log:4: unknown action 'raed'"),
        ("fio version 3 iolog\n", "it contains no request"),
    ] {
        std::fs::write(place.path().join("log"), text).unwrap();
        let refused = run(place.path(), &["fio", "--name=a", "--read_iolog=log"]);
        assert_eq!(refused.code, Some(1));
        assert!(
            refused.stderr.contains(expected) && refused.stderr.lines().count() == 2,
            "{}",
            refused.stderr
        );
        run(place.path(), &["fio", "--name=a", "--read_iolog=log", "--parse-only"]).quietly();
    }
    let refused = run(place.path(), &["fio", "--name=a", "--read_iolog=none"]);
    assert!(refused.stderr.contains("cannot read the recording none"), "{}", refused.stderr);
}

/// Each file has one request; what is made stays, what is inspected is laid out, what is removed is gone.
#[test]
fn engines_on_names_have_a_request_per_file() {
    for (engine, left, in_two_loops) in [
        ("filecreate", 5, 10),
        ("filestat", 5, 10),
        ("filedelete", 0, 5),
        ("dircreate", 5, 5),
        ("dirstat", 5, 10),
        ("dirdelete", 0, 5),
    ] {
        for (options, requests) in [(&[][..], 5), (&["--rw=randwrite", "--loops=2"], in_two_loops)] {
            let place = scratch();
            let base = [&format!("--ioengine={engine}"), "--nrfiles=5", "--filesize=4k"];
            let made = document(place.path(), &[&base, options].concat());
            let [reads, _, writes, ..] = counts(&made);
            assert_eq!(reads + writes, requests, "{engine} {options:?}");
            let op = if reads > 0 { "read" } else { "write" };
            assert_eq!(number(&made, &format!("/jobs/0/{op}/clat_ns/N")), requests, "{engine}");
            assert_eq!(number(&made, &format!("/jobs/0/{op}/lat_ns/N")), 0, "{engine}");
            assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), left, "{engine} {options:?}");
            assert_eq!(place.path().join("a.0.0").exists(), left > 0, "{engine}");
            // With unlink=1 nothing stays.
            let base = [&base[..], &["--unlink=1", "--filename_format=u.$filenum"]].concat();
            document(place.path(), &base);
            assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), left, "{engine} with unlink");
        }
    }
}

#[test]
fn what_is_not_the_jobs_own_is_neither_made_nor_removed() {
    let place = scratch();
    let path = |name: &str| place.path().join(name);
    std::fs::create_dir(path("dir")).unwrap();
    std::fs::write(path("dir/file"), "kept").unwrap();
    std::os::unix::fs::symlink("elsewhere", path("link")).unwrap();
    for (engine, name, expected) in [
        ("filecreate", "dir", "exists and is not a regular file"),
        ("filecreate", "link", "exists and is not a regular file"),
        ("filedelete", "dir", "is a directory"),
        ("dircreate", "dir", "exists already"),
        ("dirdelete", "dir/file", "is not a directory"),
        ("dirdelete", "link", "is not a directory"),
        ("filecreate", "/dev/fathom-no-such-device", "/dev"),
    ] {
        let (engine, name) = (format!("--ioengine={engine}"), format!("--filename={name}"));
        let refused = run(place.path(), &["fio", "--name=a", &engine, &name]);
        assert!(refused.stderr.contains(expected), "{engine} {name}: {}", refused.stderr);
    }
    // A directory that is not empty stays.
    let failed = run(place.path(), &["fio", "--name=a", "--ioengine=dirdelete", "--filename=dir"]);
    assert_eq!(failed.code, Some(1), "{failed:?}");
    assert_eq!(std::fs::read_to_string(path("dir/file")).unwrap(), "kept");
    assert!(!path("elsewhere").exists());
}

#[test]
fn data_passes_through_splice() {
    let place = scratch();
    let base = ["--ioengine=splice", "--size=3m", "--bs=1m", "--filename=data"];
    for options in
        [&["--rw=write", "--verify=crc32c"][..], &["--rw=randrw", "--bs=5k"], &["--rw=read", "--direct=1"]]
    {
        let done = document(place.path(), &[&base, options].concat());
        let [_, read, _, written, _] = counts(&done);
        assert!(number(&done, "/jobs/0/error") == 0 && read + written > 0, "{options:?}");
    }
}

#[test]
fn engines_that_cannot_be_tested_are_refused_with_the_reason() {
    let place = scratch();
    let refused = run(place.path(), &["fio", "--name=a", "--ioengine=io_uring_cmd", "--filename=/dev/ng0n1"]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("NVMe character devices"), "{}", refused.stderr);
    assert!(refused.stderr.contains("use ioengine=io_uring on the block device"), "{}", refused.stderr);
}

#[test]
fn a_read_only_run_changes_nothing() {
    let place = scratch();
    std::fs::write(place.path().join("log"), LOG).unwrap();
    std::fs::write(place.path().join("x"), [7; 12288]).unwrap();
    let replayed = document(place.path(), &["--readonly", "--read_iolog=log", "--replay_no_stall=1"]);
    assert_eq!(counts(&replayed)[..4], [1, 4096, 0, 0]);
    assert_eq!(std::fs::read(place.path().join("x")).unwrap(), [7; 12288]);
    for engine in ["filecreate", "filedelete", "dircreate", "dirdelete"] {
        let engine = format!("--ioengine={engine}");
        let refused = run(place.path(), &["fio", "--readonly", "--name=a", &engine, "--filename=x"]);
        assert_eq!(refused.code, Some(1));
        assert!(refused.stderr.contains("makes or removes files"), "{}", refused.stderr);
    }
    assert_eq!(std::fs::read(place.path().join("x")).unwrap(), [7; 12288]);
}
