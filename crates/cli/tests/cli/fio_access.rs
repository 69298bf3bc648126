//! Options about offsets, files and the course of jobs, on simulated volumes, where every number is exact.

use serde_json::Value;

use crate::{run, scratch};

/// A volume of one latency and no limits.
const VOLUME: &str = "--filename=sim:custom?size=1GiB&latency=1ms";

/// The document of `fathom fio` with a job of 1 MiB on the volume.
fn document(options: &[&str]) -> Value {
    let dir = scratch();
    let base = ["fio", "--output-format=json", "--name=a", VOLUME, "--size=1m", "--bs=4k"];
    let ended = run(dir.path(), &[&base, options].concat());
    serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"))
}

fn number(document: &Value, path: &str) -> u64 {
    document.pointer(path).and_then(Value::as_u64).unwrap_or_else(|| panic!("no {path} in {document:#}"))
}

/// A size limits a job that goes on to the end of the file system, and only sequential writes may have none.
#[test]
fn filling_a_device_keeps_to_a_size() {
    let dir = scratch();
    let filling = ["fio", "--name=f", "--filename=data", "--bs=64k", "--fill_device=1"];
    for rw in ["--rw=write", "--rw=randwrite", "--rw=read"] {
        run(dir.path(), &[&filling[..], &["--size=1m", rw]].concat()).quietly();
        assert_eq!(std::fs::metadata(dir.path().join("data")).unwrap().len(), 1 << 20, "{rw}");
    }
    for rw in ["--rw=randwrite", "--rw=read"] {
        let refused = run(dir.path(), &[&filling[..], &[rw]].concat());
        assert_eq!(refused.code, Some(1), "{rw}");
        assert!(refused.stderr.contains("add size="), "{}", refused.stderr);
    }
}

/// An engine has no operation that its system call cannot do.
#[test]
fn engines_refuse_what_they_lack() {
    let dir = scratch();
    let job = |engine: &str, rw: &str| {
        run(dir.path(), &["fio", "--name=e", "--filename=data", "--size=64k", engine, rw])
    };
    job("--ioengine=falloc", "--rw=read").quietly();
    job("--ioengine=ftruncate", "--rw=write").quietly();
    let refused = job("--ioengine=ftruncate", "--rw=randrw");
    assert!(refused.stderr.contains("engine ftruncate cannot read"), "{}", refused.stderr);
}

#[test]
fn access_options_decide_how_many_requests_there_are() {
    for (options, ios, bytes) in [
        (&["--rw=randread", "--number_ios=7"][..], 7, 7 * 4096),
        (&["--rw=randread", "--random_distribution=zipf:1.1"], 256, 1 << 20),
        (&["--rw=randread", "--random_distribution=zoned:50/10:50/90"], 256, 1 << 20),
        (&["--rw=randread:8", "--rw_sequencer=identical"], 256, 1 << 20),
        // The range ends within the volume.
        (&["--rw=read:4k"], 128, 512 << 10),
        (&["--rw=read", "--zonemode=strided", "--zonesize=64k", "--zoneskip=64k"], 256, 1 << 20),
        (&["--rw=read", "--bsrange=4k-16k"], 98, 1 << 20),
    ] {
        let document = document(options);
        let read = ["total_ios", "io_bytes"].map(|field| number(&document, &format!("/jobs/0/read/{field}")));
        assert_eq!(read, [ios, bytes], "{options:?}");
    }
}

#[test]
fn overlapping_requests_wait_for_each_other() {
    let one_block = ["--rw=randwrite", "--norandommap", "--iodepth=8", "--size=4k", "--io_size=1m"];
    for (more, runtime) in [(&[][..], 32), (&["--serialize_overlap=1"], 256)] {
        let document = document(&[&one_block[..], more].concat());
        assert_eq!(number(&document, "/jobs/0/write/total_ios"), 256);
        assert_eq!(number(&document, "/jobs/0/write/runtime"), runtime, "{more:?}");
    }
    // Requests of other blocks do not wait.
    let apart = document(&["--rw=randwrite", "--iodepth=8", "--serialize_overlap=1"]);
    assert_eq!(number(&apart, "/jobs/0/write/runtime"), 32);
}

#[test]
fn a_slow_request_ends_the_job_with_an_error() {
    let document = document(&["--rw=randread", "--max_latency=500us"]);
    assert_eq!((number(&document, "/jobs/0/error"), number(&document, "/jobs/0/read/total_ios")), (110, 1));
    assert_eq!(number(&self::document(&["--rw=randread", "--max_latency=2ms"]), "/jobs/0/error"), 0);
}

#[test]
fn a_job_waits_for_another_one_and_both_take_their_time() {
    let document =
        document(&["--rw=read", "--name=b", VOLUME, "--size=1m", "--bs=4k", "--rw=read", "--wait_for=a"]);
    let runtimes = [0, 1].map(|job| number(&document, &format!("/jobs/{job}/read/runtime")));
    assert_eq!(runtimes, [256, 256]);
    assert!(number(&document, "/jobs/0/groupid") == number(&document, "/jobs/1/groupid"));
}

#[test]
fn the_end_of_a_job_ends_its_group_the_phase_or_the_run() {
    let second = ["--name=b", VOLUME, "--size=1m", "--bs=4k", "--rw=read", "--time_based", "--runtime=2s"];
    let third = ["--name=c", VOLUME, "--size=1m", "--bs=4k", "--rw=read", "--stonewall"];
    for (exits, of_second, of_third) in [
        (&[][..], 2000, 256),
        (&["--exitall"], 256, 256),
        (&["--exitall", "--exit_what=stonewall"], 256, 256),
        (&["--exitall", "--exit_what=all"], 256, 0),
        (&["--exitall_on_error"], 2000, 256),
        (&["--exitall_on_error", "--max_latency=10us", "--exit_what=all"], 1, 0),
    ] {
        let document = document(&[&["--rw=read"], exits, &second, &third].concat());
        let runtime =
            |job: usize| document.pointer(&format!("/jobs/{job}/read/runtime")).and_then(Value::as_u64);
        assert_eq!((runtime(1).unwrap(), runtime(2).unwrap_or(0)), (of_second, of_third), "{exits:?}");
    }
    // Another reporting group goes on unless all that run are ended.
    for (scope, expected) in [("group", 2000), ("stonewall", 256)] {
        let scope = format!("--exit_what={scope}");
        let document =
            document(&[&["--rw=read", "--exitall", &scope][..], &second, &["--new_group"]].concat());
        assert_eq!(number(&document, "/jobs/1/read/runtime"), expected, "{scope}");
    }
}
