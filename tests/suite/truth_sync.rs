//! Syncs: those that are reported are those that were made, seen by `strace` and by the device.

use fathom_tests::{LoopDevice, loading, need, scratch};

use crate::ours::{Ours, filename};

/// Flushes completed, in `/sys/block/NAME/stat`.
const FLUSHES: usize = 15;

/// 64 blocks written with psync and `more`: how many `fsync` and `fdatasync` were made, and how many are reported.
fn check(ours: &Ours, more: &str, made: (usize, usize), reported: u64) {
    let directory = scratch();
    let path = directory.path().join("file");
    std::fs::write(&path, vec![1; 64 * 4096]).expect("the scratch directory has room");
    let name = filename(&path);
    let options = ["-e", "trace=fsync,fdatasync", "-P", path.to_str().expect("ASCII")];
    let arguments = ["--name=syncs", "--bs=4k", "--ioengine=psync", &name];
    let (report, trace) = ours.fio_traced(&options, arguments.into_iter().chain(more.split(' ')));
    let calls = |name: &str| trace.matches(&format!(" {name}(")).count();
    assert_eq!((calls("fsync"), calls("fdatasync")), made, "{more}: made");
    assert_eq!(report.job("/sync/total_ios").as_u64(), Some(reported), "{more}: reported");
    assert_eq!(report.job("/sync/lat_ns/N").as_u64(), Some(reported), "{more}: latencies");
    let [min, mean, max] = ["min", "mean", "max"].map(|key| report.number(&format!("/sync/lat_ns/{key}")));
    assert!(min <= mean && mean <= max && (reported == 0 || min > 0.0), "{more}: {min} {mean} {max}");
}

#[test]
fn syncs_are_issued_as_configured_and_reported() {
    need!(tool "strace");
    let _loading = loading();
    let ours = Ours::new();
    // The last write has no sync, as in fio: syncs are only between a write and the next request.
    check(&ours, "--rw=write --fsync=1", (63, 0), 63);
    check(&ours, "--rw=randwrite --fsync=7", (9, 0), 9);
    check(&ours, "--rw=write --fdatasync=8", (0, 7), 7);
    check(&ours, "--rw=randwrite --fsync=32 --fdatasync=8", (1, 6), 7);
    check(&ours, "--rw=read --fsync=1", (0, 0), 0);
    // The sync at the end belongs to no write, and fio does not count it either.
    check(&ours, "--rw=write --end_fsync=1", (1, 0), 0);
    check(&ours, "--rw=write --fsync=16 --end_fsync=1", (4, 0), 3);
}

#[test]
fn the_device_is_flushed_once_for_each_sync() {
    need!(root, tool "losetup", path "/dev/shm");
    let _loading = loading();
    let (ours, device) = (Ours::new(), LoopDevice::in_memory(4 << 20));
    let name = filename(device.path());
    for engine in ["io_uring", "libaio", "psync", "sync", "pvsync2"] {
        for (sync, depth, at_end) in
            [("--fsync=1", 1, 0), ("--fdatasync=1", 1, 0), ("--fdatasync=8", 4, 0), ("--end_fsync=1", 4, 1)]
        {
            let (engine_option, depth) = (format!("--ioengine={engine}"), format!("--iodepth={depth}"));
            let before = device.stat()[FLUSHES];
            let arguments = ["--name=flushes", "--rw=randwrite", "--bs=4k", "--size=1m", "--direct=1", &name];
            let report = ours.fio(arguments.into_iter().chain([sync, &engine_option, &depth]));
            let syncs = report.job("/sync/total_ios").as_u64().expect("a count");
            let flushes = device.stat()[FLUSHES] - before;
            // Of two syncs that are in flight together the kernel may make one flush.
            let fewest = if sync == "--fdatasync=8" { 1 } else { syncs + at_end };
            assert!(
                (fewest..=syncs + at_end).contains(&flushes),
                "{engine} {sync} {depth}: {flushes} of {syncs}"
            );
            if sync.ends_with("=1") && at_end == 0 {
                assert_eq!(syncs, 255, "{engine} {sync}");
            }
        }
    }
}

#[test]
fn sync_and_direct_reach_the_open_call() {
    need!(tool "strace");
    let _loading = loading();
    let (ours, directory) = (Ours::new(), scratch());
    let path = directory.path().join("file");
    std::fs::write(&path, vec![1; 1 << 20]).expect("the scratch directory has room");
    let name = filename(&path);
    for (option, expected) in [
        ("--sync=1", "O_SYNC"),
        ("--sync=sync", "O_SYNC"),
        ("--sync=dsync", "O_DSYNC"),
        ("--direct=1", "O_DIRECT"),
        ("--buffered=0", "O_DIRECT"),
        ("--sync=0", ""),
    ] {
        for engine in ["psync", "io_uring"] {
            let engine = format!("--ioengine={engine}");
            let arguments = ["--name=opened", "--rw=write", "--bs=64k", &name, option, &engine];
            // The file is opened through the descriptor that holds it, so its name is not in the call.
            let (_, trace) = ours.fio_traced(&["-e", "trace=open,openat"], arguments);
            let opened: Vec<&str> = trace.lines().filter(|line| line.contains("O_WRONLY")).collect();
            assert_eq!(opened.len(), 1, "{option}: {trace}");
            for flag in ["O_SYNC", "O_DSYNC", "O_DIRECT"] {
                assert_eq!(opened[0].contains(flag), flag == expected, "{option}: {}", opened[0]);
            }
        }
    }
}
