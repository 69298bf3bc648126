//! The fixtures behave as documented, measured with Debian's fio and never with fathom: a wrong fixture must not be
//! able to agree with a wrong fathom.

use std::io::ErrorKind;
use std::os::unix::fs::FileExt as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use fathom_tests::{
    Cap, FioReport, LoopDevice, LoopOptions, MIB, Mount, NbdDisk, Throttle, fio, fio_under, loading,
    measuring_capped, need, wait_for,
};

use crate::ours::steadily;

/// Runs direct random I/O on `device` under `cap` for `seconds`.
fn capped(device: &LoopDevice, cap: &Cap, op: &str, bs: &str, depth: u32, seconds: u32) -> FioReport {
    let throttle = Throttle::new(device.path(), cap);
    let report = fio_under(
        &throttle,
        [
            "--name=capped",
            "--direct=1",
            "--ioengine=libaio",
            "--time_based",
            &format!("--filename={}", device.path().display()),
            &format!("--rw=rand{op}"),
            &format!("--bs={bs}"),
            &format!("--iodepth={depth}"),
            &format!("--runtime={seconds}"),
        ],
    );
    assert_eq!(report.error(), 0, "{}", report.said);
    report
}

/// A throttle never lets more through than its cap; a host that pauses the machine takes a part of it.
fn delivers(what: &str, rate: f64, cap: f64) -> Result<(), String> {
    let share = rate / cap;
    if (0.85..=1.02).contains(&share) { Ok(()) } else { Err(format!("{what}: {rate:.0} of {cap}")) }
}

#[test]
fn a_capped_device_delivers_its_iops() {
    need!(root, limits, tool "losetup", tool "fio", path "/dev/shm");
    let _capped = measuring_capped();
    let device = LoopDevice::in_memory(128 * MIB);
    for op in ["read", "write"] {
        for (cap, bs, depth) in [(500, "4k", 1), (500, "256k", 4), (2000, "4k", 8), (2000, "16k", 8)] {
            steadily(|| {
                let report = capped(&device, &Cap::iops(cap), op, bs, depth, 2);
                delivers(&format!("{op} {bs} depth {depth}"), report.iops(op), cap as f64)
            });
        }
    }
}

#[test]
fn a_capped_device_delivers_its_bandwidth() {
    need!(root, limits, tool "losetup", tool "fio", path "/dev/shm");
    let _capped = measuring_capped();
    let device = LoopDevice::in_memory(128 * MIB);
    for op in ["read", "write"] {
        for (bs, depth) in [("4k", 8), ("64k", 4)] {
            let cap = 20 * MIB;
            steadily(|| {
                let report = capped(&device, &Cap::bytes_per_second(cap), op, bs, depth, 2);
                delivers(&format!("{op} {bs} depth {depth}"), report.bytes_per_second(op), cap as f64)
            });
        }
    }
}

#[test]
fn a_cap_can_change_while_a_process_runs_under_it() {
    need!(root, limits, tool "losetup", tool "fio", path "/dev/shm");
    let _capped = measuring_capped();
    let device = LoopDevice::in_memory(64 * MIB);
    let throttle = Throttle::new(device.path(), &Cap::iops(1000));
    let mut command = throttle.command("fio");
    command.args([
        "--name=drying", "--rw=randread", "--bs=4k", "--direct=1", "--ioengine=libaio", "--iodepth=4",
    ]);
    command.args(["--time_based", "--runtime=4", "--output-format=json", "--eta=never"]);
    let child = command
        .arg(format!("--filename={}", device.path().display()))
        .stdout(Stdio::piped())
        .spawn()
        .expect("fio was found on the path");
    let reads_before = device.stat()[0];
    assert!(
        wait_for(Duration::from_secs(20), || device.stat()[0] > reads_before + 1000),
        "no second of full rate"
    );
    throttle.set(&Cap::iops(100));
    let report = FioReport::read(&child.wait_with_output().expect("it is our child"));
    // One second or a little more at 1000, the rest at 100.
    let reads = report.number("/read/total_ios");
    assert!((1200.0..2000.0).contains(&reads), "{reads} reads in 4 s");
}

#[test]
fn dropping_a_cap_releases_its_processes() {
    need!(root, limits, tool "losetup", tool "fio", path "/dev/shm");
    let _loading = loading();
    let device = LoopDevice::in_memory(16 * MIB);
    let throttle = Throttle::new(device.path(), &Cap { read_iops: Some(1), ..Cap::default() });
    let mut command = throttle.command("fio");
    command
        .args(["--name=held", "--rw=randread", "--bs=4k", "--direct=1", "--ioengine=libaio", "--iodepth=16"]);
    command.args(["--time_based", "--runtime=300", "--output-format=json", "--eta=never"]);
    let mut child = command
        .arg(format!("--filename={}", device.path().display()))
        .stdout(Stdio::null())
        .spawn()
        .expect("fio was found on the path");
    let reads_before = device.stat()[0];
    assert!(wait_for(Duration::from_secs(20), || device.stat()[0] > reads_before), "fio never read");
    drop(throttle);
    let has_ended = wait_for(Duration::from_secs(20), || matches!(child.try_wait(), Ok(Some(_))));
    child.kill().ok();
    assert!(has_ended, "fio outlived its group");
}

#[test]
fn a_loop_device_counts_requests_exactly() {
    need!(root, tool "losetup", tool "fio", path "/dev/shm");
    let _loading = loading();
    let device = LoopDevice::in_memory(32 * MIB);
    let before = device.stat();
    let filename = format!("--filename={}", device.path().display());
    let report = fio(["--name=all", "--rw=randwrite", "--bs=16k", "--direct=1", "--size=32m", &filename]);
    let after = device.stat();
    // Writes completed and merged, then sectors of 512 bytes.
    assert_eq!(after[4] + after[5] - before[4] - before[5], report.number("/write/total_ios") as u64);
    assert_eq!((after[6] - before[6]) * 512, 32 * MIB);
}

#[test]
fn sector_size_and_write_protection_are_as_configured() {
    need!(root, tool "losetup");
    let _loading = loading();
    let options = LoopOptions { sector: 4096, read_only: true, ..LoopOptions::of_size(8 * MIB) };
    let device = LoopDevice::with(&options);
    let queue = format!("/sys/block/{}/queue/logical_block_size", device.name());
    assert_eq!(std::fs::read_to_string(queue).expect("a loop device has a queue").trim(), "4096");
    // Recent kernels let a protected device be opened for writing and refuse the write itself.
    let open = std::fs::OpenOptions::new().write(true).open(device.path());
    let write = open.and_then(|file| file.write_all_at(&[1; 4096], 0));
    assert_eq!(write.map_err(|error| error.kind()).err(), Some(ErrorKind::PermissionDenied));
}

#[test]
fn reads_past_a_cut_backing_file_fail_and_writes_extend_it() {
    need!(root, tool "losetup", tool "fio");
    let _loading = loading();
    let device = LoopDevice::written(16 * MIB);
    device.truncate_backing(8 * MIB);
    let filename = format!("--filename={}", device.path().display());
    let half = |rw: &str, offset: &str| {
        fio(["--name=half", "--bs=4k", "--direct=1", "--size=1m", &filename, &format!("--rw={rw}"), offset])
    };
    assert_eq!(half("read", "--offset=0").error(), 0);
    assert_eq!(half("read", "--offset=12m").error(), rustix::io::Errno::IO.raw_os_error() as u64);
    assert_eq!(half("write", "--offset=12m").error(), 0);
    assert_eq!(std::fs::metadata(device.backing()).expect("it is ours").len(), 13 * MIB);
}

#[test]
fn a_small_memory_file_system_fills_up() {
    need!(root, tool "mount");
    let _loading = loading();
    let mount = Mount::tmpfs(MIB);
    let file = std::fs::File::create(mount.join("file")).expect("an empty file fits");
    let filled = (0..).map(|i| file.write_all_at(&[1; 65536], i * 65536)).find_map(Result::err);
    assert_eq!(filled.map(|error| error.kind()), Some(ErrorKind::StorageFull));
}

#[test]
fn file_systems_are_created_and_mounted() {
    need!(root, tool "losetup", tool "mkfs.ext4", tool "mkfs.xfs", path "/dev/loop-control");
    let _loading = loading();
    for kind in ["ext4", "xfs"] {
        let device = LoopDevice::new(320 * MIB);
        let mount = Mount::made(device.path(), kind);
        std::fs::write(mount.join("file"), "content").expect("a new file system has room");
        let mounts = std::fs::read_to_string("/proc/self/mounts").expect("proc is mounted");
        let line = format!("{} {} {kind} ", device.path().display(), mount.path().display());
        assert!(mounts.contains(&line), "no \"{line}\" in {mounts}");
    }
}

#[test]
fn fixtures_leave_nothing_behind() {
    need!(root, limits, tool "losetup", tool "mkfs.ext4");
    let _loading = loading();
    let device = LoopDevice::new(16 * MIB);
    let mount = Mount::made(device.path(), "ext4");
    let throttle = Throttle::new(device.path(), &Cap::iops(10));
    let (name, backing, mounted) =
        (device.name().to_owned(), device.backing().to_owned(), mount.path().to_owned());
    drop((throttle, mount, device));
    // Detaching ends a moment after the last user has gone.
    let attached = format!("/sys/block/{name}/loop/backing_file");
    let is_detached = || {
        std::fs::read_to_string(&attached).map_or(true, |file| !file.starts_with(&*backing.to_string_lossy()))
    };
    assert!(wait_for(Duration::from_secs(10), is_detached), "{name} is still attached");
    assert!(!backing.exists() && !mounted.exists());
}

#[test]
fn a_delayed_disk_completes_after_its_delay() {
    need!(root, tool "nbdkit", tool "nbdfuse", tool "fusermount3", tool "fio", path "/dev/fuse");
    let _capped = measuring_capped();
    let disk = NbdDisk::new(16 * MIB, &["delay"], &["rdelay=20ms", "wdelay=10ms"]);
    let filename = format!("--filename={}", disk.path().display());
    for (op, delay_ms) in [("read", 20.0), ("write", 10.0)] {
        let rw = format!("--rw=rand{op}");
        steadily(|| {
            let report = fio([
                "--name=slow", "--bs=4k", "--direct=1", "--size=16m", "--number_ios=50", &rw, &filename,
            ]);
            let mean_ms = report.number(&format!("/{op}/clat_ns/mean")) / 1e6;
            let is_right = (delay_ms..delay_ms * 1.5).contains(&mean_ms);
            if is_right { Ok(()) } else { Err(format!("{op}: mean {mean_ms:.2} ms for {delay_ms} ms")) }
        });
    }
}

#[test]
fn a_failing_disk_fails_and_logs_it() {
    need!(root, tool "nbdkit", tool "nbdfuse", tool "fusermount3", tool "fio", path "/dev/fuse");
    let _loading = loading();
    let disk = NbdDisk::new(16 * MIB, &["error"], &["error=EIO", "error-pread-rate=10%"]);
    let filename = format!("--filename={}", disk.path().display());
    let report = fio([
        "--name=bad",
        "--rw=randread",
        "--bs=4k",
        "--direct=1",
        "--size=16m",
        "--number_ios=1000",
        "--continue_on_error=all",
        &filename,
    ]);
    let errors = report.number("/total_err");
    // 1000 draws at 10 %: five standard deviations to each side.
    assert!((50.0..=150.0).contains(&errors), "{errors} errors in 1000 reads");
    assert_eq!(disk.said().matches("injecting EIO").count(), errors as usize);
}

#[test]
fn a_hanging_disk_completes_requests_after_resuming() {
    need!(root, tool "nbdkit", tool "nbdfuse", tool "fusermount3", tool "fio", path "/dev/fuse");
    let _loading = loading();
    let disk = NbdDisk::new(MIB, &[], &[]);
    let file = format!("--filename={}", disk.path().display());
    disk.hang();
    let mut child = Command::new("fio")
        .args([
            "--name=hung", "--rw=read", "--bs=4k", "--direct=1", "--size=64k", "--output=/dev/null", &file,
        ])
        .spawn()
        .expect("fio was found on the path");
    let has_ended = wait_for(Duration::from_millis(500), || matches!(child.try_wait(), Ok(Some(_))));
    disk.resume();
    let status = child.wait().expect("it is our child");
    assert!(!has_ended && status.success(), "ended during the hang: {has_ended}, {status}");
}

#[test]
fn a_disk_fails_when_its_server_dies() {
    need!(root, tool "nbdkit", tool "nbdfuse", tool "fusermount3", path "/dev/fuse");
    let _loading = loading();
    let mut disk = NbdDisk::new(MIB, &[], &[]);
    let file = std::fs::File::open(disk.path()).expect("it is mounted");
    let mut block = [0; 4096];
    file.read_exact_at(&mut block, 0).expect("the server runs");
    disk.end_server();
    assert!(file.read_exact_at(&mut block, 512 * 1024).is_err());
}
