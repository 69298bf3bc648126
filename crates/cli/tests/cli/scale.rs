//! Runs of many jobs and many files: memory and CPU time grow in proportion to their number.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Stdio};

use rustix::process::{Pid, Resource, WaitId, WaitIdOptions, getrlimit, waitid};

use tempfile::TempDir;

use crate::program;

/// Most memory of one job, KiB.
const JOB_KIB: u64 = 300;
/// Descriptors of a run besides those of its files.
const OTHER_DESCRIPTORS: u64 = 100;

/// A directory in memory: a disk would make thousands of files last for minutes.
fn in_memory() -> TempDir {
    tempfile::Builder::new().prefix("cli-").tempdir_in("/dev/shm").unwrap()
}

/// Peak memory of a run of `jobs` jobs, KiB, once its report begins to appear.
fn peak_kib(dir: &Path, jobs: u64, options: &[&str]) -> u64 {
    let mut child = program(dir)
        .args(["fio", "--name=many", "--filename=file", "--size=4m", "--bs=4k", "--io_size=80k"])
        .args(["--output-format=json", "--eta=never", &format!("--numjobs={jobs}")])
        .args(options)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = child.stdout.take().unwrap();
    // The report of hundreds of jobs is longer than a pipe holds, so the program waits until the rest is read.
    stdout.read_exact(&mut [0]).unwrap();
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    stdout.read_to_end(&mut Vec::new()).unwrap();
    assert!(child.wait().unwrap().success());
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    peak.trim().strip_suffix(" kB").unwrap().parse().unwrap()
}

#[test]
fn a_job_needs_less_than_300_kib() {
    let dir = in_memory();
    for options in [
        &["--rw=randread"][..],
        &["--rw=randrw", "--ioengine=libaio", "--iodepth=16"],
        &["--rw=randwrite", "--fsync=1", "--thinktime=1"],
    ] {
        let (few, many) = (peak_kib(dir.path(), 100, options), peak_kib(dir.path(), 500, options));
        let each = many.saturating_sub(few) / 400;
        assert!(each < JOB_KIB, "{options:?}: {each} KiB");
    }
}

/// User CPU time of a process that has ended and was not waited for, clock ticks.
fn user_ticks(child: &Child) -> u64 {
    waitid(WaitId::Pid(Pid::from_child(child)), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).unwrap();
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    fields.split(' ').nth(11).unwrap().parse().unwrap()
}

/// User CPU time of a job of so many files, all of which are created, written and removed, clock ticks.
fn ticks_of_files(dir: &Path, files: u64) -> u64 {
    let sizes = [format!("--nrfiles={files}"), format!("--size={}", files * 4096)];
    let mut child = program(dir)
        .args(["fio", "--name=many", "--rw=write", "--bs=4k", "--unlink=1", "--eta=never"])
        .args(sizes)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let ticks = user_ticks(&child);
    assert!(child.wait().unwrap().success());
    ticks
}

#[test]
fn cpu_time_grows_in_proportion_to_the_number_of_files() {
    let dir = in_memory();
    let limit = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
    let many = limit.saturating_sub(OTHER_DESCRIPTORS).min(16_000);
    let (few, many) = (ticks_of_files(dir.path(), many / 8), ticks_of_files(dir.path(), many));
    // A tick is 10 ms. Eight times as many files take eight times as long; 64 times, where each is compared with each.
    assert!(many < 24 * few.max(2), "{few} ticks, then {many}");
}
