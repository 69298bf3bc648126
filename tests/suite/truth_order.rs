//! The order of random I/O, as others saw it: a file that was zero, `strace`, and the log of the disk's own server.

use std::collections::HashSet;
use std::path::Path;

use fathom_tests::{LoopDevice, NbdDisk, loading, need, scratch};

use crate::ours::{Ours, filename};

const BLOCK: u64 = 4096;

/// A file of `blocks` blocks of zeros.
fn zeros(path: &Path, blocks: u64) {
    std::fs::write(path, vec![0; (blocks * BLOCK) as usize]).expect("the scratch directory has room");
}

/// How many of the file's blocks hold anything but zeros.
fn touched(path: &Path) -> u64 {
    let content = std::fs::read(path).expect("the file was made by the test");
    content.chunks(BLOCK as usize).filter(|block| block.iter().any(|&byte| byte != 0)).count() as u64
}

/// The blocks that each thread read, in order, from the `pread64` lines of a trace.
fn blocks_read(trace: &str) -> Vec<Vec<u64>> {
    let mut threads: Vec<(&str, Vec<u64>)> = Vec::new();
    // A call that another thread interrupts is printed in two halves; its arguments are in the second.
    for line in trace.lines().filter(|line| line.contains("pread64") && line.contains(") = ")) {
        let thread = line.split(' ').next().expect("a line has a first word");
        let arguments = line.rsplit_once(") = ").expect("filtered for it").0;
        let offset = arguments.rsplit_once(", ").expect("pread64 has four arguments").1;
        let block = offset.parse::<u64>().expect("an offset is a number") / BLOCK;
        match threads.iter_mut().find(|(name, _)| *name == thread) {
            Some((_, blocks)) => blocks.push(block),
            None => threads.push((thread, vec![block])),
        }
    }
    threads.into_iter().map(|(_, blocks)| blocks).collect()
}

/// Runs random reads of `path` with psync and gives the blocks that each thread read.
fn traced(ours: &Ours, path: &Path, more: &[&str]) -> Vec<Vec<u64>> {
    let file = path.to_str().expect("the test's own path is ASCII");
    let name = filename(path);
    let options = ["-a", "1", "-s", "0", "-e", "trace=pread64", "-P", file];
    let arguments = ["--name=traced", "--rw=randread", "--bs=4k", "--ioengine=psync", &name];
    let (report, trace) = ours.fio_traced(&options, arguments.into_iter().chain(more.iter().copied()));
    let blocks = blocks_read(&trace);
    let jobs = report.document["jobs"].as_array().expect("jobs");
    let reported: u64 = jobs.iter().map(|job| job["read"]["total_ios"].as_u64().expect("a count")).sum();
    assert_eq!(blocks.iter().map(Vec::len).sum::<usize>() as u64, reported, "{more:?}");
    blocks
}

/// `pass` must hold every number below `blocks` once.
fn assert_once_each(pass: &[u64], blocks: u64, what: &str) {
    let mut sorted = pass.to_vec();
    sorted.sort_unstable();
    assert!(sorted.into_iter().eq(0..blocks), "{what}: not every block once");
}

#[test]
fn a_random_pass_writes_every_block() {
    let _loading = loading();
    let (ours, directory) = (Ours::new(), scratch());
    let path = directory.path().join("file");
    let name = filename(&path);
    for (blocks, engine) in [
        (1, "psync"),
        (2, "io_uring"),
        (3, "libaio"),
        (255, "io_uring"),
        (256, "libaio"),
        (257, "io_uring"),
        (1000, "psync"),
        (4097, "io_uring"),
        (5003, "libaio"),
        (16_385, "io_uring"),
    ] {
        zeros(&path, blocks);
        let engine_option = format!("--ioengine={engine}");
        let arguments = ["--name=pass", "--rw=randwrite", "--bs=4k", "--iodepth=32", &name];
        let report = ours.fio(arguments.into_iter().chain([engine_option.as_str()]));
        // As many writes as blocks, and no block missing: each was written once.
        assert_eq!(report.number("/write/total_ios"), blocks as f64, "{engine}");
        assert_eq!(touched(&path), blocks, "{engine}");
    }
}

#[test]
fn a_random_pass_stays_in_its_range() {
    let _loading = loading();
    let (ours, directory) = (Ours::new(), scratch());
    let path = directory.path().join("file");
    zeros(&path, 1000);
    let name = filename(&path);
    let range = ["--offset=400k", "--size=1300k", "--bs=4k"];
    ours.fio(["--name=range", "--rw=randwrite", &name].into_iter().chain(range));
    let content = std::fs::read(&path).expect("it is ours");
    let written: Vec<u64> = content
        .chunks(BLOCK as usize)
        .zip(0..)
        .filter(|(block, _)| block.iter().any(|&byte| byte != 0))
        .map(|(_, number)| number)
        .collect();
    assert!(written.iter().copied().eq(100..425), "{written:?}");
}

#[test]
fn a_random_pass_reads_every_block_once_in_random_order() {
    need!(tool "strace");
    let _loading = loading();
    let (ours, directory) = (Ours::new(), scratch());
    let path = directory.path().join("file");
    for blocks in [1, 2, 16, 17, 1024, 1025] {
        zeros(&path, blocks);
        let threads = traced(&ours, &path, &[]);
        assert_eq!(threads.len(), 1);
        let pass = &threads[0];
        assert_once_each(pass, blocks, "one pass");
        if blocks >= 1024 {
            // In a random order one step is to the next block, and the mean step is a third of the way.
            let steps = || pass.windows(2).map(|pair| pair[1].abs_diff(pair[0]));
            let successors = steps().filter(|&step| step == 1).count();
            assert!(successors < 12, "{successors} neighbours follow each other");
            let mean = steps().sum::<u64>() as f64 / (blocks as f64 - 1.0);
            assert!((mean / (blocks as f64 / 3.0) - 1.0).abs() < 0.1, "the mean step is {mean}");
        }
    }
}

#[test]
fn every_pass_and_every_job_has_a_different_order() {
    need!(tool "strace");
    let _loading = loading();
    let (ours, directory) = (Ours::new(), scratch());
    let path = directory.path().join("file");
    zeros(&path, 257);
    let threads = traced(&ours, &path, &["--loops=3"]);
    let passes: Vec<&[u64]> = threads[0].chunks(257).collect();
    assert_eq!(passes.len(), 3);
    passes.iter().for_each(|pass| assert_once_each(pass, 257, "a loop"));
    assert_eq!(passes.iter().collect::<HashSet<_>>().len(), 3, "two loops have one order");

    let jobs = traced(&ours, &path, &["--numjobs=4"]);
    assert_eq!(jobs.len(), 4);
    jobs.iter().for_each(|job| assert_once_each(job, 257, "a job"));
    assert_eq!(jobs.iter().collect::<HashSet<_>>().len(), 4, "two jobs have one order");
}

#[test]
fn randrepeat_and_randseed_decide_whether_an_order_repeats() {
    need!(tool "strace");
    let _loading = loading();
    let (ours, directory) = (Ours::new(), scratch());
    let path = directory.path().join("file");
    zeros(&path, 200);
    let order = |more: &[&str]| traced(&ours, &path, more).remove(0);
    let usual = order(&[]);
    assert_eq!(order(&[]), usual, "randrepeat is on by default");
    assert_eq!(order(&["--randrepeat=1"]), usual);
    assert_ne!(order(&["--randrepeat=0"]), order(&["--randrepeat=0"]));
    assert_eq!(order(&["--randseed=7"]), order(&["--randseed=7"]));
    assert_ne!(order(&["--randseed=7"]), order(&["--randseed=8"]));
}

#[test]
fn norandommap_draws_with_replacement_over_the_whole_range() {
    need!(tool "strace");
    let _loading = loading();
    let (ours, directory) = (Ours::new(), scratch());
    let path = directory.path().join("file");
    zeros(&path, 1000);
    let blocks = traced(&ours, &path, &["--norandommap"]).remove(0);
    let distinct = blocks.iter().collect::<HashSet<_>>().len();
    // 1000 draws from 1000 leave 1/e of them out: 632 are hit, give or take 10.
    assert!((572..692).contains(&distinct), "{distinct} of 1000 blocks");
    assert!(blocks.iter().any(|&block| block < 20) && blocks.iter().any(|&block| block >= 980));
    assert!(blocks.iter().all(|&block| block < 1000));
}

#[test]
fn the_server_of_the_disk_sees_every_block_once() {
    need!(root, tool "nbdkit", tool "nbdfuse", tool "fusermount3", path "/dev/fuse");
    let _loading = loading();
    let (ours, directory) = (Ours::new(), scratch());
    let log = directory.path().join("requests");
    let parameter = format!("logfile={}", log.display());
    for engine in ["io_uring", "libaio"] {
        std::fs::write(&log, "").expect("the scratch directory is ours");
        let disk = NbdDisk::new(1025 * BLOCK, &["log"], &[&parameter]);
        let name = filename(&disk.path());
        let engine_option = format!("--ioengine={engine}");
        let arguments = ["--name=served", "--rw=randread", "--bs=4k", "--direct=1", "--iodepth=8", &name];
        ours.fio(arguments.into_iter().chain([engine_option.as_str()]));
        drop(disk);
        let log = std::fs::read_to_string(&log).expect("nbdkit wrote it");
        let value = |line: &str, key: &str| {
            let rest = line.split_once(key)?.1;
            u64::from_str_radix(rest.split(' ').next()?.trim_end_matches(','), 16).ok()
        };
        let reads: Vec<u64> = log
            .lines()
            .filter(|line| line.contains(" Read ") && line.contains(" offset=") && !line.contains("...Read"))
            .map(|line| {
                assert_eq!(value(line, "count=0x"), Some(BLOCK), "{line}");
                value(line, "offset=0x").expect("a read has an offset") / BLOCK
            })
            .collect();
        assert_once_each(&reads, 1025, engine);
    }
}

#[test]
fn a_device_is_written_with_blocks_that_do_not_divide_its_size() {
    need!(root, tool "losetup", path "/dev/shm");
    let _loading = loading();
    let (ours, device) = (Ours::new(), LoopDevice::in_memory(4 << 20));
    let before = std::fs::read(device.backing()).expect("it is ours");
    let name = filename(device.path());
    let report = ours.fio(["--name=odd", "--rw=randwrite", "--bs=12k", "--direct=1", "--iodepth=4", &name]);
    // 4 MiB are 341 blocks of 12 KiB and a third of one, which a pass leaves alone.
    assert_eq!(report.number("/write/total_ios"), 341.0);
    let after = std::fs::read(device.backing()).expect("it is ours");
    let same = |number: &usize| before.chunks(12 << 10).nth(*number) == after.chunks(12 << 10).nth(*number);
    assert_eq!((0..342).filter(same).collect::<Vec<_>>(), [341]);
}

/// Buffered passes find nothing in the page cache that an earlier one has left there, as in fio.
#[test]
fn the_cache_is_dropped_before_each_pass() {
    need!(tool "strace");
    let _loading = loading();
    let (ours, directory) = (Ours::new(), scratch());
    let path = directory.path().join("file");
    let file = path.to_str().expect("the test's own path is ASCII");
    let (name, options) = (filename(&path), ["-e", "trace=fadvise64", "-P", file]);
    zeros(&path, 64);
    for (more, expected) in [
        (&["--loops=3"][..], 3),
        (&["--io_size=768k"][..], 3),
        (&["--loops=3", "--ioengine=io_uring", "--iodepth=4"][..], 3),
        (&["--loops=3", "--rate_iops=1000"][..], 3),
        // No pass ends where offsets are drawn independently, but by loops.
        (&["--io_size=768k", "--norandommap"][..], 1),
        (&["--io_size=768k", "--random_distribution=zipf:1.2"][..], 1),
        (&["--loops=3", "--norandommap"][..], 3),
        (&["--loops=3", "--invalidate=0"][..], 0),
        (&["--loops=3", "--direct=1"][..], 1),
    ] {
        let arguments = ["--name=traced", "--rw=randread", "--bs=4k", "--size=256k", &name];
        let (_, trace) = ours.fio_traced(&options, arguments.into_iter().chain(more.iter().copied()));
        let dropped = trace.lines().filter(|line| line.contains("POSIX_FADV_DONTNEED")).count();
        assert_eq!(dropped, expected, "{more:?}: {trace}");
    }
    let part = ["--name=traced", "--rw=read", "--offset=64k", "--size=32k", "--loops=2", &name];
    let (_, trace) = ours.fio_traced(&options, part);
    assert!(trace.contains("65536, 32768, POSIX_FADV_DONTNEED"), "only the range of the job: {trace}");
}
