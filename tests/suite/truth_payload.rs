//! Written data, read back from the file: a device cannot store it in less space.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use fathom_tests::{loading, must_run, need, scratch};

use crate::ours::{Ours, filename};

const MIB: usize = 1 << 20;
const SECTOR: usize = 512;

/// Writes `size` bytes to `path` with `more` arguments and reads the file.
fn written(ours: &Ours, path: &Path, more: &str) -> Vec<u8> {
    let name = filename(path);
    let arguments = ["--name=payload", "--size=4m", "--direct=1", "--iodepth=16", &name];
    ours.fio(arguments.into_iter().chain(more.split(' ')));
    std::fs::read(path).expect("fathom made it")
}

/// Bytes that `gzip` makes of `content`.
fn gzipped(directory: &Path, content: &[u8]) -> usize {
    let path = directory.join("content");
    std::fs::write(&path, content).expect("the scratch directory is ours");
    must_run(Command::new("gzip").args(["-1", "--force", "--keep"]).arg(&path));
    std::fs::metadata(directory.join("content.gz")).expect("gzip made it").len() as usize
}

/// No two sectors of `contents` are equal, and therefore no two blocks.
fn assert_all_differ(contents: &[Vec<u8>], what: &str) {
    let sectors = || contents.iter().flat_map(|content| content.chunks(SECTOR));
    let distinct: HashSet<&[u8]> = sectors().collect();
    assert_eq!(distinct.len(), sectors().count(), "{what}: sectors are equal");
}

#[test]
fn no_two_sectors_are_equal() {
    let _loading = loading();
    let (ours, directory) = (Ours::new(), scratch());
    let path = directory.path().join("file");
    for arguments in [
        "--rw=write --bs=4k --ioengine=io_uring",
        "--rw=randwrite --bs=4k --ioengine=libaio",
        "--rw=randwrite --bs=512 --ioengine=psync --direct=0",
        "--rw=write --bs=1m --ioengine=io_uring",
        "--rw=randrw --rwmixread=50 --bs=4k --loops=3 --ioengine=io_uring --overwrite=1",
        "--rw=write --bs=64k --ioengine=mmap --direct=0",
    ] {
        std::fs::remove_file(&path).ok();
        assert_all_differ(&[written(&ours, &path, arguments)], arguments);
    }
}

#[test]
fn no_two_jobs_write_equal_data() {
    let _loading = loading();
    let (ours, directory) = (Ours::new(), scratch());
    let place = format!("--directory={}", directory.path().display());
    let arguments =
        ["--name=both", "--rw=write", "--bs=4k", "--size=2m", "--numjobs=3", "--direct=1", &place];
    ours.fio(arguments.into_iter().chain(["--ioengine=io_uring", "--iodepth=4"]));
    let files: Vec<PathBuf> = std::fs::read_dir(directory.path())
        .expect("it is ours")
        .map(|entry| entry.expect("a file").path())
        .collect();
    assert_eq!(files.len(), 3, "{files:?}");
    let contents: Vec<Vec<u8>> = files.iter().map(|file| std::fs::read(file).expect("a file")).collect();
    contents.iter().for_each(|content| assert_eq!(content.len(), 2 * MIB));
    assert_all_differ(&contents, "three jobs");
}

#[test]
fn a_second_run_writes_different_data_only_without_randrepeat() {
    let _loading = loading();
    let (ours, directory) = (Ours::new(), scratch());
    let path = directory.path().join("file");
    let run = |more: &str| written(&ours, &path, &format!("--rw=write --bs=4k --ioengine=psync {more}"));
    assert_eq!(run("--randrepeat=1"), run("--randrepeat=1"));
    assert_ne!(run("--randrepeat=0"), run("--randrepeat=0"));
}

#[test]
fn single_blocks_do_not_compress() {
    need!(tool "gzip");
    let _loading = loading();
    let (ours, directory) = (Ours::new(), scratch());
    let path = directory.path().join("file");
    let content = written(&ours, &path, "--rw=randwrite --bs=64k --ioengine=io_uring");
    for block in content.chunks(64 << 10).take(8) {
        let left = gzipped(directory.path(), block);
        assert!(left as f64 >= block.len() as f64 * 0.99, "{left} of {}", block.len());
    }
}

#[test]
fn small_blocks_do_not_compress_together() {
    need!(tool "gzip");
    let _loading = loading();
    let (ours, directory) = (Ours::new(), scratch());
    let path = directory.path().join("file");
    for arguments in [
        "--rw=write --bs=4k --ioengine=psync",
        "--rw=randwrite --bs=4k --ioengine=io_uring",
        "--rw=write --bs=128k --ioengine=libaio",
        "--rw=randwrite --bs=4k --refill_buffers --ioengine=io_uring",
        "--rw=randwrite --bs=4k --refill_buffers --ioengine=psync",
    ] {
        std::fs::remove_file(&path).ok();
        let content = written(&ours, &path, arguments);
        assert_all_differ(std::slice::from_ref(&content), arguments);
        let left = gzipped(directory.path(), &content);
        assert!(left as f64 >= content.len() as f64 * 0.99, "{arguments}: {left} of {}", content.len());
        // Nor over a distance that gzip does not see: no run of bytes comes again.
        let runs: HashSet<&[u8]> = content.chunks(16).collect();
        assert_eq!(runs.len(), content.len() / 16, "{arguments}");
    }
}

#[test]
fn zeroed_buffers_hold_zeros() {
    let _loading = loading();
    let (ours, directory) = (Ours::new(), scratch());
    let path = directory.path().join("file");
    std::fs::write(&path, vec![7; 4 * MIB]).expect("the scratch directory has room");
    for engine in ["io_uring", "psync"] {
        let content =
            written(&ours, &path, &format!("--rw=randwrite --bs=4k --zero_buffers --ioengine={engine}"));
        assert!(content.len() == 4 * MIB && content.iter().all(|&byte| byte == 0), "{engine}");
    }
}

#[test]
fn a_file_laid_out_for_reading_is_not_zeros() {
    need!(tool "gzip");
    let _loading = loading();
    let (ours, directory) = (Ours::new(), scratch());
    let content = written(&ours, &directory.path().join("file"), "--rw=randread --bs=4k --ioengine=psync");
    assert_all_differ(std::slice::from_ref(&content), "laid out");
    let left = gzipped(directory.path(), &content);
    assert!(left as f64 >= content.len() as f64 * 0.99, "{left} of {}", content.len());
}
