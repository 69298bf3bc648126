//! Findings from real causes: each provoked on a real device, and a normal run without findings.
//!
//! Two have no cause that can be made by hand, a host that takes CPU time away and CPU credit that is spent: their
//! rules have records of such hosts in the unit tests alone. Findings on limits and on devices are in separate modules.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use fathom_tests::{
    Cap, LoopDevice, MIB, Mount, NbdDisk, Program, Throttle, document, fathom_path, fathom_under, loading,
    measuring_alone, measuring_capped, must_run, need, scratch, test_name, wait_for, with_environment,
};
use serde_json::Value;

use crate::ours::{Ours, filename, steadily, steadily_as, within};

/// The findings of a record or a document, by name.
pub(crate) fn told<'a>(document: &'a Value, id: &str) -> Option<&'a Value> {
    let all = document["findings"].as_array().expect("there is a list of findings");
    all.iter().find(|finding| finding["id"] == id)
}

pub(crate) fn ids(document: &Value) -> Vec<&str> {
    let all = document["findings"].as_array().expect("there is a list of findings");
    all.iter().filter_map(|finding| finding["id"].as_str()).collect()
}

/// The finding of this name, or all there are.
pub(crate) fn found<'a>(document: &'a Value, id: &str) -> Result<&'a Value, String> {
    told(document, id).ok_or_else(|| format!("no {id} in {:#}", document["findings"]))
}

/// Checks that these are the only findings.
pub(crate) fn only(record: &Value, expected: &[&str]) -> Result<(), String> {
    // The load of the host is not the run's, and the harness keeps its disks in memory.
    let all = ids(record);
    // A client without CPU time has an uneven rate as well.
    let is_busy = all.contains(&"cpu-wait");
    let of_host = |id: &str| match id {
        "cpu-wait" | "cpu-steal" | "cpu-credit-suspected" | "generator-late" | "memory-backed" => true,
        "not-steady" => is_busy,
        _ => false,
    };
    match all.iter().find(|id| !expected.contains(id) && !of_host(id)) {
        Some(id) => Err(format!("{id} is reported as well: {:#}", record["findings"])),
        None => Ok(()),
    }
}

/// The properties of a device, and the expected findings.
pub(crate) type Case = (&'static str, fn() -> Result<(), String>);

/// Tries cases that do not load the machine side by side, each three times at most.
pub(crate) fn side_by_side(cases: &[Case]) {
    fathom_path();
    let test = &test_name();
    std::thread::scope(|scope| {
        for (name, case) in cases {
            scope.spawn(move || steadily_as(test, || case().map_err(|error| format!("{name}: {error}"))));
        }
    });
}

pub(crate) fn number(finding: &Value, name: &str) -> f64 {
    finding["evidence"][name].as_f64().unwrap_or_else(|| panic!("no {name} in {finding:#}"))
}

/// Words of a run of random 4 KiB reads past the page cache.
fn reads<'a>(name: &'a str, more: &'a str) -> Vec<&'a str> {
    let always =
        ["--name=q", "--rw=randread", "--bs=4k", "--ioengine=io_uring", "--time_based", "--direct=1"];
    always.into_iter().chain([name]).chain(more.split_whitespace()).collect()
}

#[test]
fn a_normal_run_reports_only_that_its_device_is_in_memory() {
    need!(root, tool "losetup", path "/dev/shm");
    let _alone = measuring_alone();
    let (ours, device) = (Ours::new(), LoopDevice::in_memory(256 * MIB));
    let (_, record) = ours.record(reads(&filename(device.path()), "--iodepth=1 --runtime=3300ms"));
    // Whatever the host does to this machine meanwhile is no fault of the run; it moves rates without a trace in any counter.
    let mut found = ids(&record);
    found.retain(|id| !matches!(*id, "cpu-wait" | "cpu-steal" | "cpu-credit-suspected" | "not-steady"));
    assert_eq!(found, ["memory-backed"], "{:#}", record["findings"]);
    let load = record["tests"][0]["host_load"].as_array().expect("the machine was watched");
    assert!(
        load.len() >= 6 && load[..6].iter().all(|interval| interval["counters"]["cpu_ns"].as_u64() > Some(0)),
        "{load:?}"
    );
}

#[test]
fn a_cap_is_reported_with_its_value() {
    need!(root, limits, tool "losetup", path "/dev/shm");
    let _capped = measuring_capped();
    let (home, device) = (scratch(), LoopDevice::in_memory(128 * MIB));
    let throttle = Throttle::new(device.path(), &Cap::iops(2000));
    steadily(|| {
        let mut command = fathom_under(&throttle, home.path());
        command.args(["bench", "--json", "--no-history", "--quick", "--only=rand-read"]).arg(device.path());
        let document = document(&mut command);
        let cap = found(&document, "iops-cap")?;
        within("the cap", number(cap, "iops"), 2000.0, 3.0)?;
        assert_eq!(cap["evidence"]["group_limit_iops"], 2000);
        assert!(told(&document, "bandwidth-cap").is_none());
        let uses = document["conclusions"].as_array().expect("conclusions");
        let web = uses.iter().find(|entry| entry["id"] == "web-server").expect("every use is listed");
        // 64 in a queue of 2000 a second wait for 32 ms, which says nothing of a lower depth.
        assert_eq!(web["verdict"], "inconclusive", "{web:#}");
        Ok(())
    });
}

/// A group whose members get a fifth of a CPU; removed on drop.
struct FifthOfACpu(PathBuf);

impl FifthOfACpu {
    fn new() -> Self {
        let path = PathBuf::from(format!("/sys/fs/cgroup/cpu/fathom-test-{}", std::process::id()));
        fs::create_dir(&path).expect("root can make a group");
        fs::write(path.join("cpu.cfs_quota_us"), "20000").expect("a group takes a quota");
        FifthOfACpu(path)
    }

    /// `command` inside the group.
    fn around(&self, command: &Command) -> Command {
        let mut inside = Command::new("sh");
        inside.args(["-c", "echo $$ > \"$0\" && exec \"$@\""]).arg(self.0.join("cgroup.procs"));
        let mut inside = with_environment(inside, command);
        inside.arg(command.get_program());
        inside
    }
}

impl Drop for FifthOfACpu {
    fn drop(&mut self) {
        wait_for(Duration::from_secs(5), || fs::remove_dir(&self.0).is_ok());
    }
}

#[test]
fn a_cpu_quota_is_distinguished_from_a_slow_target() {
    need!(root, path "/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
    let _alone = measuring_alone();
    let (ours, group) = (Ours::new(), FifthOfACpu::new());
    let mut command = group.around(&ours.command());
    command
        .args(["fio", "--keep", "--eta=never", "--name=q", "--ioengine=null", "--size=1g", "--rw=randread"]);
    must_run(command.args(["--time_based", "--runtime=1500ms"]));
    let record = ours.newest_record();
    let found = found(&record, "cgroup-throttled").unwrap();
    assert!(number(found, "throttled_fraction") > 0.1, "{found:#}");
    assert_eq!(number(found, "cpu_limit"), 0.2);
    // A throttled thread was not busy.
    assert!(told(&record, "client-cpu-bound").is_none());
    // Without the quota nothing holds it back but itself.
    let (_, record) = ours
        .record(["--name=q", "--ioengine=null", "--size=1g", "--rw=randread", "--time_based", "--runtime=1"]);
    assert!(told(&record, "cgroup-throttled").is_none(), "{:#}", record["findings"]);
}

#[test]
fn page_cache_reads_are_distinguished_from_device_reads() {
    need!(root, tool "losetup", tool "mkfs.ext4", tool "mount", path "/dev/shm");
    let _alone = measuring_alone();
    let (ours, device) = (Ours::new(), LoopDevice::in_memory(128 * MIB));
    let mount = Mount::made(device.path(), "ext4");
    let path = mount.join("file");
    fs::write(&path, vec![7u8; 16 << 20]).expect("the file system has room");
    let name = filename(&path);
    let (report, record) = ours.record(reads(&name, "--direct=0 --invalidate=0 --runtime=500ms"));
    let found = found(&record, "cache-served").unwrap();
    assert!(number(found, "read_fraction_unseen") > 0.98, "{found:#}");
    assert!(told(&record, "buffered").is_some());
    let notes = report.document["fathom"]["notes"].to_string();
    assert!(notes.contains("did not come from"), "{notes}");
    fs::File::open(&path).and_then(|file| file.sync_all()).expect("the device takes it");
    let (_, record) = ours.record(reads(&name, "--runtime=500ms"));
    assert!(
        told(&record, "cache-served").is_none() && told(&record, "buffered").is_none(),
        "{:#}",
        record["findings"]
    );
}

#[test]
fn foreign_io_on_the_device_is_reported() {
    need!(root, tool "losetup", path "/dev/shm");
    let _capped = measuring_capped();
    let (ours, neighbour, device) = (Ours::new(), Ours::new(), LoopDevice::in_memory(64 * MIB));
    let name = filename(device.path());
    steadily(|| {
        let mut busy = neighbour.command();
        busy.args(["fio", "--eta=never"]).args(reads(&name, "--iodepth=1 --runtime=60 --rate_iops=500"));
        let before = device.stat()[0];
        let busy = Program::start(&mut busy);
        let is_busy = wait_for(Duration::from_secs(20), || device.stat()[0] > before + 100);
        assert!(is_busy, "the neighbour does nothing");
        let (_, record) = ours.record(reads(&name, "--iodepth=1 --runtime=1200ms --rate_iops=1000"));
        drop(busy);
        let found = found(&record, "foreign-io")?;
        within("the neighbour's", number(found, "foreign_requests"), 600.0, 10.0)?;
        within("its share", number(found, "foreign_fraction"), 0.5, 10.0)?;
        only(&record, &["foreign-io", "short-run"])
    });
}

#[test]
fn failed_requests_give_an_error_finding() {
    need!(root, tool "losetup", path "/dev/shm");
    let _loading = loading();
    let (ours, device) = (Ours::new(), LoopDevice::in_memory(32 * MIB));
    device.truncate_backing(16 * MIB);
    let mut command = ours.command();
    command
        .args(["bench", "--json", "--no-history", "--quick", "--runtime=500ms", "--only=rand-read"])
        .arg(device.path());
    let output = command.output().expect("the program runs");
    assert_eq!(output.status.code(), Some(1));
    let document: Value = serde_json::from_slice(&output.stdout).expect("one document");
    let found = found(&document, "errors").unwrap();
    assert_eq!((&found["severity"], &found["evidence"]["errno"]), (&"error".into(), &5.into()));
}

/// A bench of commits on a file system: its document.
fn commits(ours: &Ours, place: &Path) -> Value {
    let mut command = ours.command();
    command.args([
        "bench", "--json", "--no-history", "--quick", "--only=commit", "--runtime=600ms", "--size=32m",
    ]);
    document(command.arg(place))
}

#[test]
fn syncs_that_do_not_reach_the_device_are_reported() {
    need!(root, tool "losetup", tool "mkfs.ext4", tool "mount");
    let _alone = measuring_alone();
    let (ours, device) = (Ours::new(), LoopDevice::new(128 * MIB));
    let with_barriers = Mount::made(device.path(), "ext4");
    let document = commits(&ours, with_barriers.path());
    assert!(told(&document, "flush-suspicious").is_none_or(|found| number(found, "flushes") > 0.0));
    drop(with_barriers);
    let without = Mount::of(device.path(), &["barrier=0"]);
    let document = commits(&ours, without.path());
    let found = found(&document, "flush-suspicious").unwrap();
    assert_eq!(found["evidence"]["mounted_without_barriers"], true);
    assert!(number(found, "flushes") < number(found, "syncs") / 2.0, "{found:#}");
}

#[test]
fn a_hanging_disk_is_stalled_and_not_slow() {
    need!(root, tool "nbdfuse", tool "nbdkit", tool "fusermount3");
    let _capped = measuring_capped();
    let (ours, disk) = (Ours::new(), NbdDisk::new(64 * MIB, &["delay"], &["rdelay=2ms"]));
    let name = filename(&disk.path());
    let mut command = ours.command();
    command
        .args(["fio", "--keep", "--eta=never", "--output-format=json"])
        .args(reads(&name, "--iodepth=2 --runtime=4"));
    let mut child = command.stdout(Stdio::null()).spawn().expect("the program runs");
    let tasks = PathBuf::from(format!("/proc/{}/task", child.id()));
    let is_worker =
        |task: fs::DirEntry| fs::read_to_string(task.path().join("comm")).is_ok_and(|name| name == "q\n");
    let has_begun = || fs::read_dir(&tasks).is_ok_and(|tasks| tasks.flatten().any(is_worker));
    assert!(wait_for(Duration::from_secs(20), has_begun), "no worker");
    wait_for(Duration::from_millis(600), || false);
    disk.hang();
    wait_for(Duration::from_millis(2800), || false);
    disk.resume();
    assert!(child.wait().expect("a child can be waited for").success());
    let record = ours.newest_record();
    let found = found(&record, "stalled").unwrap();
    let length_s = number(found, "length_ns") / 1e9;
    assert!((2.0..4.5).contains(&length_s), "{found:#}");
    assert_eq!(number(found, "depth"), 2.0, "{found:#}");
    assert!(told(&record, "errors").is_none());
}
