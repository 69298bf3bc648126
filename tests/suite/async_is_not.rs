//! Requests of asynchronous engines: reported if they are not asynchronous, and not reported otherwise.
//!
//! One target that passes requests to kernel worker threads, one on which the submission blocks, one on which it
//! completes requests immediately, and one that is asynchronous.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use fathom_tests::{
    FioReport, LoopDevice, MIB, Mount, NbdDisk, fathom_path, measuring_alone, measuring_capped, need,
    scratch, wait_for, with_environment,
};
use serde_json::Value;

use crate::ours::{Ours, filename, steadily, within};

/// A new file of `size` bytes in `directory`, all of it written, as words of a command.
fn file(directory: &Path, size: u64) -> String {
    let path = directory.join("file");
    let bytes: Vec<u8> = (0..size).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    fs::write(&path, bytes).expect("the file system is larger than the file");
    filename(&path)
}

/// The words of a run of `engine` at depth 16, for `runtime`.
fn words<'a>(engine: &'a str, name: &'a str, more: &'a str) -> Vec<&'a str> {
    let always = ["--name=q", "--rw=randread", "--bs=4k", "--iodepth=16", engine, name];
    always.into_iter().chain(more.split_whitespace()).collect()
}

/// The finding of a record about asynchrony.
fn findings(record: &Value) -> Vec<&Value> {
    let all = record["findings"].as_array().expect("a record has a list of findings");
    all.iter().filter(|finding| finding["id"] == "async-is-not").collect()
}

/// The notes in fathom's part of a JSON document.
fn notes(own: &Value) -> Vec<&str> {
    own["notes"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// CPU time per request that the percentages of fio's document amount to, ns.
fn own_cpu_ns(report: &FioReport) -> f64 {
    let percent = report.number("/usr_cpu") + report.number("/sys_cpu");
    percent / 100.0 * report.number("/job_runtime") * 1e6 / report.number("/read/total_ios")
}

#[test]
fn requests_executed_by_kernel_workers_are_reported_and_psync_is_cheaper() {
    need!(root);
    let _alone = measuring_alone();
    let (ours, mount) = (Ours::new(), Mount::tmpfs(80 * MIB));
    let name = file(mount.path(), 64 * MIB);
    let timed = "--time_based --runtime=1s";
    steadily(|| {
        let (report, record) = ours.record(words("--ioengine=io_uring", &name, timed));
        let [finding] = findings(&record)[..] else { return Err(format!("{:#}", record["findings"])) };
        let evidence = &finding["evidence"];
        assert_eq!((&evidence["way"], &evidence["job"]), (&"kernel-workers".into(), &"q".into()));
        assert_eq!(finding["severity"], "warning");
        let number = |name: &str| evidence[name].as_f64().unwrap_or_else(|| panic!("{name}: {evidence:#}"));
        let workers = number("kernel_workers_cpu_ns_per_request");
        assert!((1.0..=16.0).contains(&number("kernel_workers")) && workers > 0.0, "{evidence:#}");
        within("own CPU time", number("own_cpu_ns_per_request"), own_cpu_ns(&report), 1.0)?;

        let own = &report.document["fathom"];
        let claim = finding["claim"].as_str().expect("a sentence");
        assert!(notes(own).iter().any(|note| note.starts_with(claim)), "{own:#}");
        let threads = &own["kernel_threads"][0];
        assert_eq!((&threads["jobname"], &threads["workers"]), (&"q".into(), &evidence["kernel_workers"]));
        let per_request = threads["workers_ns"].as_f64().expect("ns") / report.number("/read/total_ios");
        assert!((per_request - workers).abs() < 0.01, "{per_request} {workers}");

        // The claim itself.
        let (psync, record) = ours.record(words("--ioengine=psync", &name, timed));
        assert_eq!(findings(&record), [&Value::Null; 0]);
        assert!(psync.document["fathom"]["kernel_threads"].is_null());
        let (theirs, all) = (own_cpu_ns(&psync), workers + number("own_cpu_ns_per_request"));
        if theirs < all { Ok(()) } else { Err(format!("psync {theirs} ns, io_uring {all} ns per request")) }
    });
}

/// CPU time of the kernel's workers among the threads of process `id`, ns, by thread.
fn workers_of(id: u32, seen: &mut BTreeMap<String, u64>) {
    let Ok(tasks) = fs::read_dir(format!("/proc/{id}/task")) else { return };
    for task in tasks.flatten() {
        let read = |name: &str| fs::read_to_string(task.path().join(name)).unwrap_or_default();
        let cpu_ns = read("schedstat").split(' ').next().and_then(|text| text.parse().ok());
        if let (true, Some(cpu_ns)) = (read("comm").starts_with("iou-wrk-"), cpu_ns) {
            seen.insert(task.file_name().to_string_lossy().into_owned(), cpu_ns);
        }
    }
}

/// Runs `command` and observes its workers from outside: their CPU time, ns, and the printed document.
fn watched(command: &mut Command) -> (u64, FioReport) {
    let mut child = command.stdout(Stdio::piped()).spawn().expect("the program runs");
    let mut seen = BTreeMap::new();
    let has_ended = wait_for(Duration::from_secs(60), || {
        workers_of(child.id(), &mut seen);
        !matches!(child.try_wait(), Ok(None))
    });
    assert!(has_ended, "{command:?} does not end");
    let report = FioReport::read(&child.wait_with_output().expect("it has ended"));
    (seen.values().sum(), report)
}

#[test]
fn the_cpu_time_of_workers_equals_the_kernels_count() {
    need!(root, path "/proc/self/schedstat");
    let _alone = measuring_alone();
    let (ours, mount) = (Ours::new(), Mount::tmpfs(80 * MIB));
    let name = file(mount.path(), 64 * MIB);
    let numbers = |report: &FioReport| {
        let threads = report.document["fathom"]["kernel_threads"].as_array().cloned().unwrap_or_default();
        let of_each: Vec<u64> = threads.iter().filter_map(|entry| entry["workers_ns"].as_u64()).collect();
        assert!(of_each.iter().all(|&ns| ns > 0), "{of_each:?}");
        (of_each.len(), of_each.iter().sum::<u64>())
    };
    for (more, entries) in [("--numjobs=2", 2), ("--numjobs=2 --group_reporting", 1)] {
        steadily(|| {
            // Jobs and workers have all processors: who observes them has to come first.
            let mut command = with_environment(Command::new("nice"), &ours.command());
            command.args(["-n", "19"]).arg(fathom_path());
            command.args(["fio", "--output-format=json", "--eta=never", "--time_based", "--runtime=800ms"]);
            command.args(words("--ioengine=io_uring", &name, more));
            let (witnessed, report) = watched(&mut command);
            let (found, counted) = numbers(&report);
            assert_eq!(found, entries);
            within(more, counted as f64, witnessed as f64, 10.0)
        });
    }
}

#[test]
fn a_ramp_is_excluded_from_the_cpu_time_of_workers() {
    need!(root);
    let _alone = measuring_alone();
    let (ours, mount) = (Ours::new(), Mount::tmpfs(80 * MIB));
    let name = file(mount.path(), 64 * MIB);
    let more = "--time_based --runtime=600ms --ramp_time=900ms";
    let (_, record) = ours.record(words("--ioengine=io_uring", &name, more));
    let job = &record["tests"][0]["jobs"][0];
    let per_request = |phase: &Value| {
        let used = phase["kernel_threads"]["workers_ns"].as_f64().expect("the kernel's workers were seen");
        used / phase["read"]["ios"].as_f64().expect("requests")
    };
    // The same work, so the same cost; with wrong attribution it would be half in one and double in the other.
    let (ramp, measured) = (per_request(&job["ramp"]), per_request(&job["measured"]));
    assert!(
        (0.6..1.67).contains(&(ramp / measured)),
        "{ramp} ns per request in the ramp, then {measured} ns"
    );
}

#[test]
fn workers_are_found_in_a_pid_namespace() {
    need!(root, tool "unshare");
    let _alone = measuring_alone();
    let (ours, mount) = (Ours::new(), Mount::tmpfs(80 * MIB));
    let name = file(mount.path(), 64 * MIB);
    let plain = ours.command();
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork", "--mount-proc"]).arg(plain.get_program());
    command.args(["fio", "--output-format=json", "--eta=never", "--time_based", "--runtime=600ms"]);
    command.args(words("--ioengine=io_uring", &name, "--numjobs=2"));
    let report = FioReport::read(&command.output().expect("unshare runs"));
    let threads = report.document["fathom"]["kernel_threads"].as_array().cloned().unwrap_or_default();
    assert_eq!(threads.len(), 2, "{:#}", report.document["fathom"]);
}

#[test]
fn a_blocking_submission_is_reported() {
    need!(root, tool "nbdfuse", tool "nbdkit", tool "fusermount3");
    let _capped = measuring_capped();
    let ours = Ours::new();
    // Every page is read once, so none comes from the page cache.
    let disk = NbdDisk::new(64 * MIB, &["delay"], &["rdelay=2ms"]);
    let name = filename(&disk.path());
    let (report, record) =
        ours.record(words("--ioengine=libaio", &name, "--direct=0 --time_based --runtime=1s"));
    let [finding] = findings(&record)[..] else { panic!("{:#}", record["findings"]) };
    let evidence = &finding["evidence"];
    assert_eq!((&evidence["way"], &finding["severity"]), (&"submission-waits".into(), &"warning".into()));
    assert!(evidence["in_flight"].as_f64() < Some(1.0), "{evidence:#}");
    // One at a time at any queue depth: the delay permits no more.
    assert!(report.iops("read") <= 500.0, "{} IOPS", report.iops("read"));
    let remedy = finding["remedy"].as_str().expect("there is something to do about it");
    assert!(remedy.contains("--direct=1") && remedy.contains("--numjobs=16"), "{remedy}");
}

#[test]
fn reads_that_complete_in_submission_are_reported_without_a_cheaper_engine() {
    let _alone = measuring_alone();
    let (ours, directory) = (Ours::new(), scratch());
    // Data just written is in the page cache.
    let name = file(directory.path(), 32 * MIB);
    let more = "--invalidate=0 --time_based --runtime=300ms";
    let (_, record) = ours.record(words("--ioengine=libaio", &name, more));
    let [finding] = findings(&record)[..] else { panic!("{:#}", record["findings"]) };
    assert_eq!(finding["evidence"]["way"], "submission-completes");
    assert_eq!(
        (&finding["severity"], &finding["remedy"]),
        (&"info".into(), &"--direct=1 bypasses the page cache.".into())
    );
    // A synchronous engine has no depth to hold.
    let (_, record) = ours.record(words("--ioengine=psync", &name, more));
    assert_eq!(findings(&record), [&Value::Null; 0]);
}

#[test]
fn asynchronous_requests_give_no_finding() {
    need!(root, tool "losetup", path "/dev/shm");
    let _alone = measuring_alone();
    let (ours, device) = (Ours::new(), LoopDevice::in_memory(32 * MIB));
    let name = filename(device.path());
    for engine in ["--ioengine=io_uring", "--ioengine=libaio"] {
        for rw in ["--rw=randread", "--rw=randwrite"] {
            let more = format!("--direct=1 --time_based --runtime=300ms {rw}");
            let (report, record) = ours.record(words(engine, &name, &more));
            assert_eq!(findings(&record), [&Value::Null; 0], "{engine} {rw}");
            let own = &report.document["fathom"];
            assert!(own["kernel_threads"].is_null(), "{engine} {rw}: {own:#}");
            assert!(!notes(own).iter().any(|note| note.contains("asynchronous")), "{engine} {rw}: {own:#}");
        }
    }
}
