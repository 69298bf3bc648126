//! fathom's counts of a device, compared with the kernel's counters of the same device.
//!
//! Direct I/O to a raw loop device without a ramp: every request is the kernel's, and the kernel has no other. The lock
//! each test holds on its device keeps udev from looking into it.

use std::fs::File;

use fathom_tests::{LoopDevice, MIB, Mount, loading, need};

use crate::ours::{Ours, filename};

/// Places in `/sys/block/NAME/stat`.
const READS: usize = 0;
const WRITES: usize = 4;
const TRIMS: usize = 11;

/// Requests completed or merged, and bytes, that `stat` gained of the operation whose counters begin at `at`.
fn gained(before: &[u64], after: &[u64], at: usize) -> (u64, u64) {
    let gain = |index: usize| after[index] - before[index];
    (gain(at) + gain(at + 1), gain(at + 2) * 512)
}

/// Runs `arguments` on a new device; ours, fathom's reading of the kernel and the test's own must be the same.
fn check(size_mib: u64, arguments: &str) {
    let (ours, device) = (Ours::new(), LoopDevice::in_memory(size_mib * MIB));
    let lock = File::open(device.path()).expect("the device is ours");
    lock.lock().expect("nobody else knows the device");
    let before = device.stat();
    let name = filename(device.path());
    let report = ours.fio(["--name=counted", "--direct=1", &name].into_iter().chain(arguments.split(' ')));
    let after = device.stat();
    drop(lock);

    let jobs = report.document["jobs"].as_array().expect("fio's document has jobs");
    let disk = &report.document["disk_util"][0];
    assert_eq!(disk["name"], device.name(), "{arguments}");
    let number = |key: String| disk[&key].as_u64().unwrap_or_else(|| panic!("no {key} in {disk:#}"));
    let writes_too = jobs.iter().any(|job| job["write"]["total_ios"].as_u64() > Some(0));
    for (op, at) in [("read", READS), ("write", WRITES)] {
        let sum =
            |key: &str| jobs.iter().map(|job| job[op][key].as_u64().expect("fio counts integers")).sum();
        let (ios, bytes): (u64, u64) = (sum("total_ios"), sum("io_bytes"));
        let kernel = (
            number(format!("{op}_ios")) + number(format!("{op}_merges")),
            number(format!("{op}_sectors")) * 512,
        );
        let what = format!("{op}s of {arguments}");
        // The kernel splits requests above its largest size, so only bytes can be compared there.
        let is_split = arguments.contains("--bs=1m");
        assert_eq!(kernel.1, bytes, "{what}: bytes in disk_util");
        assert!(is_split || kernel.0 == ios, "{what}: {} in disk_util for {ios}", kernel.0);
        // Before writing, fathom reads the device to detect existing data.
        if !(op == "read" && writes_too) {
            let independent = gained(&before, &after, at);
            assert_eq!(independent.1, bytes, "{what}: bytes in sysfs");
            assert!(is_split || independent.0 == ios, "{what}: {} in sysfs for {ios}", independent.0);
        }
    }
}

#[test]
fn the_kernel_counts_the_requests_and_bytes_that_are_reported() {
    need!(root, tool "losetup", path "/dev/shm");
    let _loading = loading();
    for engine in ["io_uring", "libaio", "psync"] {
        for rw in ["read", "randread", "write", "randwrite", "rw", "randrw"] {
            for bs in ["4k", "64k", "1m"] {
                check(8, &format!("--ioengine={engine} --iodepth=16 --rw={rw} --bs={bs}"));
            }
        }
    }
}

#[test]
fn the_kernel_counts_what_several_jobs_report() {
    need!(root, tool "losetup", path "/dev/shm");
    let _loading = loading();
    for engine in ["io_uring", "libaio", "psync"] {
        for rw in ["randread", "write", "randrw"] {
            check(8, &format!("--ioengine={engine} --iodepth=8 --rw={rw} --bs=4k --numjobs=3"));
        }
    }
    check(8, "--ioengine=io_uring --iodepth=8 --rw=randrw --bs=4k --numjobs=2 --group_reporting");
}

#[test]
fn the_kernel_counts_what_a_timed_run_reports() {
    need!(root, tool "losetup", path "/dev/shm");
    let _loading = loading();
    for engine in ["io_uring", "libaio", "psync"] {
        let timed = format!("--ioengine={engine} --iodepth=32 --bs=4k --time_based --runtime=700ms");
        check(16, &format!("{timed} --rw=randread"));
        check(16, &format!("{timed} --rw=randrw --rwmixread=30"));
    }
}

#[test]
fn the_kernel_counts_the_trims_that_are_reported() {
    need!(root, tool "losetup", path "/dev/shm");
    let _loading = loading();
    let (ours, device) = (Ours::new(), LoopDevice::in_memory(8 * MIB));
    let before = device.stat();
    let name = filename(device.path());
    let report = ours.fio(["--name=trims", "--rw=randtrim", "--bs=64k", "--direct=1", &name]);
    let (ios, bytes) = (report.number("/trim/total_ios"), report.number("/trim/io_bytes"));
    assert_eq!((ios, bytes), (128.0, (8 * MIB) as f64));
    assert_eq!(gained(&before, &device.stat(), TRIMS), (128, 8 * MIB));
}

#[test]
fn the_disks_under_a_file_are_named() {
    need!(root, tool "losetup", tool "mkfs.ext4");
    let _loading = loading();
    let (ours, device) = (Ours::new(), LoopDevice::new(64 * MIB));
    let mount = Mount::made(device.path(), "ext4");
    let name = filename(&mount.join("file"));
    let (report, record) =
        ours.record(["--name=file", "--rw=randread", "--bs=4k", "--size=16m", "--direct=1", &name]);
    let disks = report.document["disk_util"].as_array().expect("a list of disks");
    let disk = disks.iter().find(|disk| disk["name"] == device.name());
    let disk = disk.unwrap_or_else(|| panic!("{} is not in {disks:?}", device.name()));
    // Reads of the file system itself may come on top.
    assert!((4096..4200).contains(&disk["read_ios"].as_u64().expect("an integer")), "{disk:#}");
    let devices = &record["header"]["conditions"]["target"]["devices"];
    assert_eq!((&devices[0]["name"], &devices[0]["kind"]), (&device.name().into(), &"loop".into()));
    // The disk that holds the backing file, where that is on one.
    let source = record["header"]["conditions"]["target"]["filesystem"]["source"].as_str();
    assert_eq!(source, device.path().to_str());
}
