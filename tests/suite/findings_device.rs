//! Findings about what the device does, from devices made to do it: cut requests, read before they write, fetch on first
//! use, serve from a cache, take long to flush or not flush at all, fail. Each does little, so that they run side by side.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use fathom_tests::{
    GoingFirst, LoopDevice, LoopOptions, MIB, Mount, NbdDisk, Partition, Program, measuring_alone, need, run,
    wait_for,
};
use rustix::fs::{Advice, fadvise};
use serde_json::Value;

use crate::findings::{Case, found, number, only, side_by_side, told};
use crate::ours::{Ours, filename, steadily, within};

/// The record of a run past the page cache.
fn measured(ours: &Ours, target: &Path, words: &str) -> Value {
    let mut command = ours.command();
    command.args(["fio", "--keep", "--eta=never", "--name=q", "--direct=1", "--time_based"]);
    run(command.arg(filename(target)).args(words.split_whitespace()));
    ours.newest_record()
}

/// 256 KiB a request, 64 KiB at most to the device.
fn a_device_that_takes_small_requests() -> Result<(), String> {
    let options = LoopOptions { in_memory: true, direct_io: false, ..LoopOptions::of_size(64 * MIB) };
    let small = LoopOptions { written: true, largest_request_kib: Some(64), ..options };
    let (ours, device) = (Ours::new(), LoopDevice::with(&small));
    let words = "--rw=randread --bs=256k --ioengine=io_uring --iodepth=2 --rate_iops=200 --runtime=1100ms";
    let record = measured(&ours, device.path(), words);
    let split = found(&record, "splitting")?;
    within("pieces", number(split, "pieces_per_request"), 4.0, 1.0)?;
    within("the largest", number(split, "max_request_bytes"), 65_536.0, 0.0)?;
    only(&record, &["splitting", "short-run", "low-sample"])
}

/// A device of sectors of 512 bytes on a disk with blocks of 4 KiB.
struct Emulated {
    device: LoopDevice,
    _mount: Mount,
    _disk: LoopDevice,
}

impl Emulated {
    fn new() -> Self {
        let options = LoopOptions { in_memory: true, direct_io: false, ..LoopOptions::of_size(64 * MIB) };
        let disk = LoopDevice::with(&LoopOptions { written: true, sector: 4096, ..options });
        let mount = Mount::made(disk.path(), "ext4");
        let file = mount.join("image");
        fs::write(&file, vec![7; 16 * MIB as usize]).expect("the file system has room");
        Emulated { device: LoopDevice::cached_over(&file), _mount: mount, _disk: disk }
    }
}

fn requests_beside_the_blocks() -> Result<(), String> {
    let (ours, disk) = (Ours::new(), Emulated::new());
    let run = |bs: &str| {
        let words = format!("--rw=randwrite --bs={bs} --ioengine=psync --rate_iops=500 --runtime=300ms");
        measured(&ours, disk.device.path(), &words)
    };
    let record = run("512");
    let beside = found(&record, "alignment")?;
    within("the block", number(beside, "physical_block_size_bytes"), 4096.0, 0.0)?;
    if beside["severity"] != "warning" {
        return Err(format!("{beside:#}"));
    }
    only(&record, &["alignment", "short-run", "low-sample"])?;
    only(&run("4k"), &["short-run", "low-sample"])
}

fn a_partition_beside_the_blocks() -> Result<(), String> {
    let (ours, disk) = (Ours::new(), Emulated::new());
    let part = Partition::add(&disk.device, 1, 2049, 8192);
    let words = "--rw=randwrite --bs=4k --ioengine=psync --rate_iops=500 --runtime=300ms";
    let record = measured(&ours, part.path(), words);
    let beside = found(&record, "alignment")?;
    within("the start", number(beside, "start_bytes"), 2049.0 * 512.0, 0.0)?;
    only(&record, &["alignment", "short-run", "low-sample"])
}

/// A volume that fetches a block from elsewhere when it is first read, 3 ms each.
fn blocks_that_are_fetched_on_first_use() -> Result<(), String> {
    let ours = Ours::new();
    let disk = NbdDisk::new(32 * MIB, &["cache", "delay"], &["rdelay=3ms", "cache-on-read=true"]);
    let words = "--rw=randread --bs=64k --size=32m --ioengine=io_uring --iodepth=1 --runtime=3500ms";
    let record = measured(&ours, &disk.path(), words);
    let first = found(&record, "first-touch")?;
    within("the first time", number(first, "first_pass_p50_ns"), 3.3e6, 20.0)?;
    let later = number(first, "later_passes_p50_ns");
    if later > 1.5e6 {
        return Err(format!("{later} ns afterwards"));
    }
    only(&record, &["first-touch", "small-working-set", "short-run"])
}

/// Reads of a working file, for a suite of one test.
const READS: &str = r#"
title = "Reads"
description = "Random reads."
source = "fathom"
[options]
ioengine = "io_uring"
direct = 1
[profile.quick]
runtime = "3s"
ramp = "0s"
size = "32MiB"
[profile.default]
runtime = "3s"
ramp = "0s"
size = "32MiB"
[profile.thorough]
runtime = "3s"
ramp = "0s"
size = "32MiB"
[[test]]
id = "reads"
title = "reads"
options = { rw = "randread", bs = "64k", iodepth = 1 }
"#;

/// A disk of 3 ms behind a host that has forgotten the working file when it is read first.
fn a_host_that_keeps_what_was_read() -> Result<(), String> {
    let ours = Ours::new();
    let disk = NbdDisk::new(96 * MIB, &["delay"], &["rdelay=3ms"]);
    let device = LoopDevice::cached_over(&disk.path());
    let mount = Mount::made(device.path(), "ext4");
    let suite = mount.join("suite.toml");
    fs::write(&suite, READS).expect("the file system has room");
    let mut command = ours.command();
    command.args(["bench", "--json", "--quick", "--size=32m", "--suite"]).arg(&suite).arg(mount.path());
    let begun = device.stat()[0];
    let mut program = Program::start(&mut command);
    // The file system itself reads a few blocks; the test needs hundreds.
    let host = fs::File::open(disk.path()).expect("the host has the disk's file");
    let is_read = wait_for(Duration::from_secs(30), || {
        host.sync_all()
            .and_then(|()| Ok(fadvise(&host, 0, None, Advice::DontNeed)?))
            .expect("a cache can be dropped");
        program.has_ended() || device.stat()[0] > begun + 60
    });
    let ended = program.finish();
    ended.assert_code(0);
    let document = ended.document();
    let cache = found(&document, "host-cache")?;
    within("the first time", number(cache, "first_pass_p50_ns"), 3.3e6, 30.0)?;
    let later = number(cache, "later_passes_p50_ns");
    if later > 1e6 || !is_read {
        return Err(format!("{later} ns afterwards"));
    }
    let uses = document["conclusions"].as_array().expect("conclusions");
    if let Some(sure) = uses.iter().find(|entry| entry["verdict"] == "yes" || entry["verdict"] == "marginal")
    {
        return Err(format!("{sure:#} rests on the host's memory"));
    }
    only(&document, &["host-cache", "small-working-set", "short-run"])
}

const COMMITS: &str =
    "--rw=write --bs=64k --ioengine=psync --fdatasync=1 --runtime=600ms --size=16m --thinktime=0";

/// Writes go to a cache immediately, and from there to a disk with 5 ms latency.
fn a_cache_that_takes_long_to_flush() -> Result<(), String> {
    let ours = Ours::new();
    let disk = NbdDisk::new(16 * MIB, &["cache", "delay"], &["wdelay=5ms"]);
    let device = LoopDevice::over(&disk.path());
    let record = measured(&ours, device.path(), COMMITS);
    let cost = found(&record, "flush-cost")?;
    within("a sync", number(cost, "sync_mean_ns"), 6.4e6, 25.0)?;
    within("a sync for each write", number(cost, "writes_per_sync"), 1.0, 2.0)?;
    only(&record, &["flush-cost", "short-run", "low-sample"])
}

/// Memory says that it has a volatile cache, and drops every flush.
fn a_cache_that_is_not_flushed() -> Result<(), String> {
    let (ours, device) = (Ours::new(), LoopDevice::in_memory(16 * MIB));
    let record = measured(&ours, device.path(), COMMITS);
    let quick = found(&record, "flush-suspicious")?;
    let (syncs, flushes) = (number(quick, "syncs"), number(quick, "flushes"));
    within("flushes that came", flushes, syncs, 2.0)?;
    if number(quick, "sync_p50_ns") >= 30_000.0 || quick["evidence"]["write_cache"] != "write back" {
        return Err(format!("{quick:#}"));
    }
    only(&record, &["flush-suspicious", "short-run", "low-sample", "small-working-set"])
}

/// One read of ten fails, and the server counts which.
fn reads_that_fail() -> Result<(), String> {
    let ours = Ours::new();
    let disk = NbdDisk::new(16 * MIB, &["error"], &["error-pread=EIO", "error-pread-rate=10%"]);
    let words = "--rw=randread --bs=4k --ioengine=io_uring --iodepth=4 --rate_iops=1000 --runtime=1100ms --continue_on_error=all";
    let record = measured(&ours, &disk.path(), words);
    let failed = found(&record, "errors")?;
    let injected = disk.said().matches("injecting").count() as f64;
    within("what failed", number(failed, "failed"), injected, 2.0)?;
    within(
        "of all",
        number(failed, "failed") / (number(failed, "completed") + number(failed, "failed")),
        0.1,
        40.0,
    )?;
    only(&record, &["errors", "short-run", "low-sample"])
}

#[test]
fn findings_report_the_behaviour_of_a_device() {
    need!(
        root, tool "losetup", tool "mkfs.ext4", tool "mount", tool "addpart", tool "nbdkit", tool "nbdfuse",
        tool "fusermount3", path "/dev/shm"
    );
    let _alone = measuring_alone();
    let cases: [Case; 8] = [
        ("small requests", a_device_that_takes_small_requests),
        ("beside blocks", requests_beside_the_blocks),
        ("a partition", a_partition_beside_the_blocks),
        ("first use", blocks_that_are_fetched_on_first_use),
        ("a host", a_host_that_keeps_what_was_read),
        ("slow flushes", a_cache_that_takes_long_to_flush),
        ("no flushes", a_cache_that_is_not_flushed),
        ("errors", reads_that_fail),
    ];
    side_by_side(&cases);
}

/// A thread that copies out of memory has no time left for more.
#[test]
fn a_busy_client_is_distinguished_from_a_slow_target() {
    need!(root, tool "chrt", path "/dev/shm");
    let _alone = measuring_alone();
    let (ours, device) = (Ours::new(), LoopDevice::in_memory(16 * MIB));
    // A device that is not open has no cached pages.
    let _held = std::fs::File::open(device.path()).expect("the device is there");
    let mut command = Command::new("cat");
    assert!(command.arg(device.path()).stdout(Stdio::null()).status().expect("cat runs").success());
    steadily(|| {
        let record = {
            let _first = GoingFirst::new();
            let words = "--rw=randread --bs=4k --ioengine=psync --direct=0 --invalidate=0 --runtime=1100ms";
            measured(&ours, device.path(), words)
        };
        let bound = found(&record, "client-cpu-bound")?;
        within("the thread", number(bound, "busiest_thread_fraction"), 1.0, 10.0)?;
        within("threads", number(bound, "busy_threads"), 1.0, 0.0)?;
        assert!(told(&record, "cgroup-throttled").is_none(), "{:#}", record["findings"]);
        let expected = ["client-cpu-bound", "buffered", "cache-served", "short-run", "small-working-set"];
        only(&record, &expected)
    });
}
