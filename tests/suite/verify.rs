//! Data written with checksums: checked crosswise with Debian's fio, and corrupted behind the program's back.

use std::path::{Path, PathBuf};
use std::process::Command;

use fathom_tests::{Ended, is_long, loading, need, run, scratch};
use tempfile::TempDir;

use crate::ours::Ours;

const BLOCK: usize = 4096;

/// The methods of fio 3.33, with the additions that one of them needs.
const METHODS: [&str; 18] = [
    "md5",
    "crc7",
    "crc16",
    "crc32",
    "crc32c",
    "crc32c-intel",
    "crc64",
    "xxhash",
    "sha1",
    "sha256",
    "sha512",
    "sha3-224",
    "sha3-256",
    "sha3-384",
    "sha3-512",
    "meta",
    "pattern --verify_pattern=0xdeadbeef",
    "null",
];

/// What the headers of a job look like besides their method.
const SHAPES: [&str; 7] = [
    "--bs=4k",
    "--bs=1003",
    "--bs=4k --verify_interval=512",
    "--bs=8k --verify_interval=1k --verify_offset=300",
    "--bs=4k --verify_pattern=\"abcdefg\"%o",
    "--bs=4k --buffer_compress_percentage=50",
    "--bssplit=2k/50:4k/50 --rw=randwrite",
];

/// A directory with a file to write to, and both programs.
struct Place {
    ours: Ours,
    directory: TempDir,
}

impl Place {
    fn new() -> Self {
        Place { ours: Ours::new(), directory: scratch() }
    }

    fn run(&self, mut program: Command, arguments: &str) -> Ended {
        let common = ["--name=a", "--filename=data", "--size=1m", "--verify_state_save=0", "--output=report"];
        run(program.current_dir(self.directory.path()).args(common).args(arguments.split_whitespace()))
    }

    fn ours(&self, arguments: &str) -> Ended {
        let mut program = self.ours.command();
        program.arg("fio");
        self.run(program, arguments)
    }

    fn fio(&self, arguments: &str) -> Ended {
        self.run(Command::new("fio"), arguments)
    }

    fn file(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    fn edit(&self, edit: impl FnOnce(&mut Vec<u8>)) {
        edit_file(&self.file(), edit);
    }
}

fn edit_file(path: &Path, edit: impl FnOnce(&mut Vec<u8>)) {
    let mut data = std::fs::read(path).expect("the file was written");
    edit(&mut data);
    std::fs::write(path, data).expect("the file is ours");
}

#[test]
fn each_program_accepts_what_the_other_has_written() {
    need!(tool "fio");
    let _loading = loading();
    let place = Place::new();
    for (index, method) in METHODS.into_iter().enumerate() {
        // A second pattern would replace the first, and larger headers need larger intervals.
        let is_fit = |shape: &&str| {
            !(method.contains("pattern=") && shape.contains("pattern=")
                || method.starts_with("sha512") && shape.contains("interval"))
        };
        // One shape, in turn, is enough for a method: it writes the sum, the shape places it.
        let most = if is_long() { SHAPES.len() } else { 1 };
        for shape in SHAPES.into_iter().cycle().skip(index).take(SHAPES.len()).filter(is_fit).take(most) {
            let what = format!("--size=128k --verify={method} {shape}");
            let write = format!("--rw=write {what} --do_verify=0");
            let read = format!("--rw=read {what}").replace("--rw=randwrite", "");
            let _ = std::fs::remove_file(place.file());
            place.ours(&write).assert_code(0);
            // fio has no map of blocks of mixed sizes: it finds them in the order of its own writes alone.
            if !shape.contains("bssplit") {
                let ended = place.fio(&read);
                assert_eq!(ended.status.code(), Some(0), "fio reads ours, {what}: {}", ended.stderr);
                let _ = std::fs::remove_file(place.file());
                place.fio(&write).assert_code(0);
                let ended = place.ours(&read);
                assert_eq!(ended.status.code(), Some(0), "we read fio's, {what}: {}", ended.stderr);
            }
            let _ = std::fs::remove_file(place.file());
            let ended = place.ours(&format!("--rw=write {what}"));
            assert_eq!(ended.status.code(), Some(0), "write and read back, {what}: {}", ended.stderr);
        }
    }
}

/// A way to corrupt the file of 256 blocks, and the offset at which it must be found.
type Corruption = (&'static str, fn(&mut Vec<u8>), usize);

const CORRUPTIONS: [Corruption; 5] = [
    ("a flipped bit", |data| data[70 * BLOCK + 3000] ^= 0x10, 70 * BLOCK),
    (
        "swapped blocks",
        |data| {
            let (first, second) = data.split_at_mut(91 * BLOCK);
            first[40 * BLOCK..41 * BLOCK].swap_with_slice(&mut second[..BLOCK]);
        },
        40 * BLOCK,
    ),
    ("a misdirected write", |data| data.copy_within(10 * BLOCK..11 * BLOCK, 200 * BLOCK), 200 * BLOCK),
    ("a torn write", |data| data[5 * BLOCK + 2048..6 * BLOCK].fill(0), 5 * BLOCK),
    ("a lost write", |data| data[17 * BLOCK..18 * BLOCK].fill(0), 17 * BLOCK),
];

#[test]
fn corruption_is_found_with_its_place() {
    let _loading = loading();
    let place = Place::new();
    for engine in ["psync", "io_uring --iodepth=64 --direct=1", "libaio --iodepth=64 --direct=1"] {
        for order in ["write", "randwrite"] {
            for (what, corrupt, offset) in CORRUPTIONS {
                let job = format!("--rw={order} --bs=4k --verify=crc32c --ioengine={engine}");
                place.ours(&format!("{job} --do_verify=0")).assert_code(0);
                place.edit(corrupt);
                for check in [format!("{job} --verify_only"), job.replace("write", "read")] {
                    let ended = place.ours(&check);
                    let place_of = format!("at file data offset {offset}, length 4096");
                    assert_eq!(ended.status.code(), Some(1), "{what}, {check}: {}", ended.stderr);
                    // The other of two swapped blocks may be the first to be read.
                    if what != "swapped blocks" {
                        assert!(ended.stderr.contains(&place_of), "{what}, {check}: {}", ended.stderr);
                    }
                }
                place.edit(|data| data.clear());
            }
        }
    }
}

#[test]
fn a_stale_block_is_found_among_those_of_the_last_run() {
    let _loading = loading();
    let place = Place::new();
    let job = |seed: u32| {
        format!("--rw=randwrite --bs=4k --verify=md5 --ioengine=libaio --iodepth=64 --randseed={seed}")
    };
    place.ours(&format!("{} --do_verify=0", job(1))).assert_code(0);
    let old = std::fs::read(place.file()).expect("it was written");
    place.ours(&format!("{} --do_verify=0", job(2))).assert_code(0);
    place.edit(|data| data[33 * BLOCK..34 * BLOCK].copy_from_slice(&old[33 * BLOCK..34 * BLOCK]));
    let ended = place.ours(&format!("{} --verify_only", job(2)));
    ended.assert_code(1);
    let expected = "bad header rand_seed";
    assert!(ended.stderr.contains(expected), "{}", ended.stderr);
    assert!(ended.stderr.contains(&format!("offset {}, length 4096", 33 * BLOCK)), "{}", ended.stderr);
    let ended = place.ours(&format!("{} --verify_only --verify_header_seed=0", job(2)));
    ended.assert_code(0);
    // The blocks of another program, or another job, have other seeds throughout.
    place.ours(&format!("{} --verify_only", job(3))).assert_code(0);
}

#[test]
fn both_blocks_are_dumped() {
    let _loading = loading();
    let place = Place::new();
    let job = "--rw=write --bs=4k --verify=sha1";
    place.ours(&format!("{job} --do_verify=0")).assert_code(0);
    let good = std::fs::read(place.file()).expect("it was written")[8192..12288].to_vec();
    place.edit(|data| data[9000] ^= 1);
    let bad = std::fs::read(place.file()).expect("it is there")[8192..12288].to_vec();
    let ended = place.ours("--rw=read --bs=4k --verify=sha1 --verify_dump=1");
    ended.assert_code(1).assert_told(&["data.8192.received", "data.8192.expected"]);
    let dumped = |kind: &str| {
        std::fs::read(place.directory.path().join(format!("data.8192.{kind}"))).expect("it was dumped")
    };
    assert!(dumped("received") == bad && dumped("expected") == good);
}

#[test]
fn several_jobs_check_their_own_parts() {
    let _loading = loading();
    let place = Place::new();
    let job =
        "--rw=write --bs=4k --verify=crc64 --size=256k --offset_increment=256k --numjobs=4 --group_reporting";
    place.ours(job).assert_code(0);
    place.edit(|data| data[600 << 10] ^= 1);
    let ended = place.ours(&format!("{job} --verify_only"));
    ended.assert_code(1).assert_told(&["offset 614400, length 4096"]);
}

#[test]
fn amounts_and_ends_are_those_of_fio() {
    need!(tool "fio");
    let _loading = loading();
    for job in [
        "--rw=write --bs=4k --verify=crc32c",
        "--rw=randwrite --bs=4k --verify=md5 --loops=3",
        "--rw=randwrite --bs=4k --verify=crc32c --io_size=2m",
        "--rw=write --bs=4k --verify=crc32c --verify_backlog=16",
        "--rw=randwrite --bs=4k --verify=crc32c --verify_backlog=16 --verify_backlog_batch=4 --ioengine=libaio --iodepth=8",
        "--rw=write --bs=4k --verify=sha256 --ioengine=libaio --iodepth=16 --direct=1",
        "--rw=write --bs=64k --verify=crc7 --do_verify=0",
        "--rw=read --bs=4k --verify=crc32c",
        "--rw=randread --bs=4k --verify=crc32c --verify_fatal=1",
        "--rw=read --bs=4k --verify=crc32c --continue_on_error=verify",
        "--rw=write --bs=4k --verify=null",
    ] {
        let place = Place::new();
        let amounts = |program: &str| {
            let _ = std::fs::remove_file(place.file());
            if job.contains("read") {
                place.fio("--rw=write --bs=4k --verify=crc32c --do_verify=0").assert_code(0);
                place.edit(|data| {
                    data[BLOCK + 100] ^= 1;
                    data[BLOCK * 2 + 100] ^= 1;
                });
            }
            let arguments = format!("{job} --output-format=json");
            let ended = if program == "fio" { place.fio(&arguments) } else { place.ours(&arguments) };
            let text = std::fs::read_to_string(place.directory.path().join("report")).expect("a report");
            let document: serde_json::Value =
                serde_json::from_str(&text[text.find("{\n").expect("a document")..]).expect("JSON");
            let job = &document["jobs"][0];
            let of = |op: &str| (job[op]["total_ios"].clone(), job[op]["io_bytes"].clone());
            (ended.status.code(), job["error"].clone(), of("read"), of("write"))
        };
        let (fio, ours) = (amounts("fio"), amounts("fathom"));
        // Where a random read stops depends on the order.
        if job.contains("randread") {
            assert_eq!((ours.0, &ours.1), (fio.0, &fio.1), "{job}");
        } else {
            assert_eq!(ours, fio, "{job}");
        }
    }
}
