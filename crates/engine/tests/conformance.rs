//! Requirements on every registered engine, on real files. An engine that this machine refuses is skipped, with the
//! reason printed.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "everything here is a test")]

use std::collections::BTreeMap;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use fathom_engine::registry::ENGINES;
use fathom_engine::{
    Completion, Engine, EngineEntry, EngineError, EngineSetup, OpenFile, Queued, RawEngineOptions, Reaped,
};
use fathom_model::{Nanos, Op, OptionValueKind, Request};
use fathom_sys::io::{OpenFlags, open_target};

const BLOCK: usize = 8192;
const DEPTH: u32 = 16;
const EBADF: i64 = -9;
const EINVAL: i64 = -22;
const EIO: i64 = 5;
const ENOSPC: i64 = 28;
const EAGAIN: i64 = 11;
const EOPNOTSUPP: i64 = 95;

/// A file with known contents, and whether engines open it for direct I/O.
struct TestFile {
    dir: tempfile::TempDir,
    size: u64,
    direct: bool,
}

impl TestFile {
    fn on(parent: &Path, size: u64, direct: bool) -> Option<TestFile> {
        let dir = tempfile::tempdir_in(parent).ok()?;
        let test_file = TestFile { dir, size, direct };
        let bytes: Vec<u8> = (0..size).map(content).collect();
        std::fs::write(test_file.path(), bytes).unwrap();
        let flags = OpenFlags { direct, ..OpenFlags::default() };
        open_target(&test_file.path(), flags).ok().map(|_| test_file)
    }

    fn path(&self) -> std::path::PathBuf {
        self.dir.path().join("test_file")
    }

    fn setup(&self, entry: &EngineEntry, write: bool) -> EngineSetup {
        let flags = OpenFlags { write, direct: self.direct, ..OpenFlags::default() };
        let file = Arc::new(open_target(&self.path(), flags).unwrap());
        setup_on(entry, file, self.size, write, self.direct)
    }
}

/// The byte of a new test file at `offset`.
fn content(offset: u64) -> u8 {
    (offset / 512 * 7 + offset) as u8
}

fn setup_on(entry: &EngineEntry, file: Arc<File>, size: u64, writes: bool, direct: bool) -> EngineSetup {
    EngineSetup {
        depth: if entry.traits.synchronous { 1 } else { DEPTH },
        max_block: BLOCK,
        files: vec![OpenFile { file: Some(file), size, is_block_device: false, volume: 0 }],
        paths: Vec::new(),
        direct,
        writes,
        random: true,
        options: RawEngineOptions::default(),
    }
}

/// Opens an engine; `None`, and the reason printed, if this machine cannot.
fn open(entry: &EngineEntry, setup: EngineSetup) -> Option<Box<dyn Engine>> {
    match (entry.open)(setup) {
        Ok(engine) => Some(engine),
        Err(error) if matches!(error.source.kind(), ErrorKind::PermissionDenied | ErrorKind::Unsupported) => {
            println!("skipped {}: {error}", entry.name);
            None
        }
        Err(error) => panic!("{}: {error}", entry.name),
    }
}

/// Engines that move real bytes.
fn real_engines() -> impl Iterator<Item = &'static EngineEntry> {
    ENGINES.iter().filter(|entry| entry.traits.moves_data)
}

/// The files of every data test: direct and buffered in the temporary directory, buffered on tmpfs.
fn test_files(entry: &EngineEntry, size: u64) -> Vec<TestFile> {
    let here = std::env::temp_dir();
    let mut test_files = vec![TestFile::on(&here, size, false).expect("the temporary directory takes files")];
    if entry.name != "mmap" {
        match TestFile::on(&here, size, true) {
            Some(test_file) => test_files.push(test_file),
            None => println!("skipped direct I/O: {} has none", here.display()),
        }
    }
    match TestFile::on(Path::new("/dev/shm"), size, false) {
        Some(test_file) => test_files.push(test_file),
        None => println!("skipped tmpfs: /dev/shm takes no files"),
    }
    test_files
}

fn request(op: Op, offset: u64, len: usize) -> Request {
    Request { op, file: 0, len: len as u32, offset }
}

/// Executes `requests`, one slot each, and returns their results.
fn run(engine: &mut dyn Engine, requests: &[Request]) -> Vec<i64> {
    let mut results = BTreeMap::new();
    let mut later = 0;
    let slots: Vec<u32> = (0..requests.len() as u32).collect();
    let mut offered = 0;
    while offered < slots.len() {
        match engine.queue(&slots[offered..], requests) {
            Queued::Done(result) => {
                assert!(results.insert(slots[offered], result).is_none());
                offered += 1;
            }
            Queued::Accepted(0) => panic!("full at {offered} of {}", requests.len()),
            Queued::Accepted(count) => {
                later += count;
                offered += count as usize;
            }
        }
    }
    let mut submitted = 0;
    while submitted < later {
        submitted += engine.submit().unwrap();
    }
    while results.len() < requests.len() {
        for (slot, result) in reap(engine, 1) {
            assert!(results.insert(slot, result).is_none(), "slot {slot} completed twice");
        }
    }
    results.into_values().collect()
}

/// Offers one request under `slot`.
fn offer(engine: &mut dyn Engine, slot: u32, request: &Request) -> Queued {
    engine.queue(&[slot], &vec![*request; slot as usize + 1])
}

/// Reaps at least `min` completions.
fn reap(engine: &mut dyn Engine, min: u32) -> Vec<(u32, i64)> {
    let mut done: Vec<Completion> = Vec::new();
    while (done.len() as u32) < min {
        let before = done.len() as u32;
        let reaped = engine.reap(min - before, u32::MAX, None, &mut done).unwrap();
        assert_eq!(reaped, Reaped::Some(done.len() as u32 - before));
    }
    done.into_iter().map(|completion| (completion.slot, completion.result)).collect()
}

/// Executes one request in slot 0.
fn one(engine: &mut dyn Engine, op: Op, offset: u64, len: usize) -> i64 {
    run(engine, &[request(op, offset, len)])[0]
}

fn width(entry: &EngineEntry) -> u32 {
    if entry.traits.synchronous { 1 } else { DEPTH }
}

#[test]
fn written_data_is_read_back() {
    for entry in real_engines() {
        for test_file in test_files(entry, 64 * BLOCK as u64) {
            let Some(mut engine) = open(entry, test_file.setup(entry, true)) else { continue };
            let width = width(entry);
            for first in (0..64).step_by(width as usize) {
                for slot in 0..width {
                    engine.payload(slot).fill((first + slot) as u8 ^ 0xA5);
                }
                let writes: Vec<_> = (first..first + width)
                    .map(|block| request(Op::Write, u64::from(block) * BLOCK as u64, BLOCK))
                    .collect();
                assert!(
                    run(&mut *engine, &writes).iter().all(|&result| result == BLOCK as i64),
                    "{}",
                    entry.name
                );
            }
            let bytes = std::fs::read(test_file.path()).unwrap();
            for (block, bytes) in bytes.chunks(BLOCK).enumerate() {
                assert!(
                    bytes.iter().all(|&byte| byte == block as u8 ^ 0xA5),
                    "{}: block {block}",
                    entry.name
                );
            }
            for first in (0..64).step_by(width as usize) {
                // Backwards, so that slot and offset do not rise together.
                let blocks: Vec<u32> = (first..first + width).rev().collect();
                let reads: Vec<_> = blocks
                    .iter()
                    .map(|&block| request(Op::Read, u64::from(block) * BLOCK as u64, BLOCK))
                    .collect();
                assert!(
                    run(&mut *engine, &reads).iter().all(|&result| result == BLOCK as i64),
                    "{}",
                    entry.name
                );
                for (slot, &block) in blocks.iter().enumerate() {
                    let payload = engine.payload(slot as u32);
                    assert_eq!(payload.len(), BLOCK);
                    assert!(
                        payload.iter().all(|&byte| byte == block as u8 ^ 0xA5),
                        "{}: block {block}",
                        entry.name
                    );
                }
            }
        }
    }
}

#[test]
fn reads_past_the_end_are_short() {
    let size = 3 * BLOCK as u64 + 4096;
    for entry in real_engines() {
        for test_file in test_files(entry, size) {
            let Some(mut engine) = open(entry, test_file.setup(entry, false)) else { continue };
            let table = [
                (0, BLOCK, BLOCK as i64),
                (3 * BLOCK as u64, BLOCK, 4096),
                (size, BLOCK, 0),
                (size + (1 << 40), 4096, 0),
            ];
            for (offset, len, expected) in table {
                assert_eq!(one(&mut *engine, Op::Read, offset, len), expected, "{} at {offset}", entry.name);
                let read = &engine.payload(0)[..expected as usize];
                assert!(
                    read.iter().zip(offset..).all(|(&byte, at)| byte == content(at)),
                    "{} at {offset}",
                    entry.name
                );
            }
            if !test_file.direct {
                assert_eq!(one(&mut *engine, Op::Read, size - 1, 3), 1, "{}", entry.name);
                assert_eq!(engine.payload(0)[0], content(size - 1));
                assert_eq!(
                    one(&mut *engine, Op::Read, 5, 3),
                    3,
                    "{}: odd sizes are fine buffered",
                    entry.name
                );
            }
        }
    }
}

#[test]
fn failed_requests_carry_their_errno() {
    for entry in real_engines() {
        for test_file in test_files(entry, 4 * BLOCK as u64) {
            let Some(mut engine) = open(entry, test_file.setup(entry, false)) else { continue };
            let results = [
                one(&mut *engine, Op::Write, 0, BLOCK),
                one(&mut *engine, Op::Read, 0, BLOCK + 1),
                one(&mut *engine, Op::Read, u64::MAX, 4096),
                one(&mut *engine, Op::Write, u64::MAX - 4095, 4096),
                run(&mut *engine, &[Request { file: 1, ..request(Op::Read, 0, 4096) }])[0],
                one(&mut *engine, Op::Trim, 0, 4096),
                one(&mut *engine, Op::Read, 0, BLOCK),
            ];
            let expected = [EBADF, EINVAL, EINVAL, EINVAL, EBADF, EBADF, BLOCK as i64];
            assert_eq!(results, expected, "{}", entry.name);
            if test_file.direct {
                assert_eq!(one(&mut *engine, Op::Read, 0, 100), EINVAL, "{}", entry.name);
                assert_eq!(one(&mut *engine, Op::Read, 100, 4096), EINVAL, "{}", entry.name);
            }
        }
    }
}

#[test]
fn a_failed_request_does_not_affect_its_batch() {
    for entry in real_engines().filter(|entry| !entry.traits.synchronous) {
        for test_file in test_files(entry, 16 * BLOCK as u64) {
            let Some(mut engine) = open(entry, test_file.setup(entry, false)) else { continue };
            let batch: Vec<_> = (0..DEPTH)
                .map(|slot| match slot % 4 {
                    1 => request(Op::Write, 0, BLOCK),
                    3 => request(Op::Sync, 0, 0),
                    _ => request(Op::Read, u64::from(slot) * BLOCK as u64, BLOCK),
                })
                .collect();
            for (slot, result) in run(&mut *engine, &batch).into_iter().enumerate() {
                let expected = [BLOCK as i64, EBADF, BLOCK as i64, 0][slot % 4];
                assert_eq!(result, expected, "{} slot {slot}", entry.name);
            }
        }
    }
}

#[test]
fn syncs_and_trims_take_effect() {
    for entry in real_engines() {
        for test_file in test_files(entry, 16 * BLOCK as u64) {
            let Some(mut engine) = open(entry, test_file.setup(entry, true)) else { continue };
            assert_eq!(one(&mut *engine, Op::Sync, 0, 0), 0, "{}", entry.name);
            assert_eq!(one(&mut *engine, Op::Datasync, 0, 0), 0, "{}", entry.name);
            assert_eq!(one(&mut *engine, Op::Trim, BLOCK as u64, BLOCK), BLOCK as i64, "{}", entry.name);
            let bytes = std::fs::read(test_file.path()).unwrap();
            let trimmed = BLOCK as u64..2 * BLOCK as u64;
            assert_eq!(bytes.len() as u64, test_file.size, "a trim keeps the size");
            for (at, byte) in (0..).zip(bytes) {
                assert_eq!(
                    byte,
                    if trimmed.contains(&at) { 0 } else { content(at) },
                    "{} at {at}",
                    entry.name
                );
            }
        }
    }
}

#[test]
fn the_whole_depth_can_be_queued_before_anything_is_submitted() {
    for entry in ENGINES.iter().filter(|entry| !entry.traits.synchronous) {
        let test_file = TestFile::on(&std::env::temp_dir(), 64 * BLOCK as u64, false).unwrap();
        let Some(mut engine) = open(entry, test_file.setup(entry, false)) else { continue };
        for round in 0..3 {
            for slot in 0..DEPTH {
                let read = request(Op::Read, u64::from(slot) * BLOCK as u64, BLOCK);
                assert_eq!(
                    offer(&mut *engine, slot, &read),
                    Queued::Accepted(1),
                    "{} round {round}",
                    entry.name
                );
            }
            let mut done = Vec::new();
            assert_eq!(
                engine.reap(5, 100, None, &mut done).unwrap(),
                Reaped::Some(0),
                "{}: none submitted",
                entry.name
            );
            let mut submitted = 0;
            while submitted < DEPTH {
                submitted += engine.submit().unwrap();
            }
            assert_eq!((submitted, engine.submit().unwrap()), (DEPTH, 0), "{}", entry.name);
            let mut slots: Vec<u32> = Vec::new();
            while slots.len() < DEPTH as usize {
                done.clear();
                let Reaped::Some(count) = engine.reap(3, 5, None, &mut done).unwrap() else {
                    panic!("real time")
                };
                assert!(count as usize == done.len() && (1..=5).contains(&count), "{}: {count}", entry.name);
                slots.extend(done.iter().map(|completion| completion.slot));
            }
            slots.sort_unstable();
            assert!(slots.iter().copied().eq(0..DEPTH), "{}: {slots:?}", entry.name);
            done.clear();
            assert_eq!(
                engine.reap(1, 100, None, &mut done).unwrap(),
                Reaped::Some(0),
                "{}: none left",
                entry.name
            );
            assert_eq!(
                engine.reap(0, 100, Some(Nanos::ZERO), &mut done).unwrap(),
                Reaped::Some(0),
                "{}",
                entry.name
            );
        }
    }
}

#[test]
fn a_batch_ends_before_a_request_that_needs_a_plain_call() {
    for entry in real_engines().filter(|entry| !entry.traits.synchronous) {
        let test_file = TestFile::on(&std::env::temp_dir(), 16 * BLOCK as u64, false).unwrap();
        let Some(mut engine) = open(entry, test_file.setup(entry, true)) else { continue };
        let read = |block: u64| request(Op::Read, block * BLOCK as u64, BLOCK);
        // Longer than a buffer: refused alone, and only once it is the first of a batch.
        let odd = request(Op::Read, 0, BLOCK + 1);
        let requests = [read(0), read(1), odd, read(3)];
        assert_eq!(engine.queue(&[0, 1, 2, 3], &requests), Queued::Accepted(2), "{}", entry.name);
        assert_eq!(engine.queue(&[2, 3], &requests), Queued::Done(-22), "{}", entry.name);
        assert_eq!(engine.queue(&[3], &requests), Queued::Accepted(1), "{}", entry.name);
        assert_eq!(engine.submit().unwrap(), 3, "{}", entry.name);
        let mut done = reap(&mut *engine, 3);
        done.sort_unstable();
        assert_eq!(done, [0, 1, 3].map(|slot| (slot, BLOCK as i64)), "{}", entry.name);
    }
}

#[test]
fn polling_finds_completions_without_waiting() {
    for entry in real_engines().filter(|entry| !entry.traits.synchronous) {
        for test_file in test_files(entry, 16 * BLOCK as u64) {
            let Some(mut engine) = open(entry, test_file.setup(entry, false)) else { continue };
            assert_eq!(offer(&mut *engine, 3, &request(Op::Read, 0, BLOCK)), Queued::Accepted(1));
            assert_eq!(engine.submit().unwrap(), 1);
            let mut done = Vec::new();
            while engine.reap(0, 1, None, &mut done).unwrap() == Reaped::Some(0) {
                std::thread::yield_now();
            }
            assert_eq!(done, [Completion { slot: 3, result: BLOCK as i64 }], "{}", entry.name);
        }
    }
}

#[test]
fn the_buffer_of_a_slot_in_flight_is_inaccessible() {
    for entry in real_engines().filter(|entry| !entry.traits.synchronous) {
        let test_file = TestFile::on(&std::env::temp_dir(), 16 * BLOCK as u64, false).unwrap();
        let Some(mut engine) = open(entry, test_file.setup(entry, false)) else { continue };
        let read = request(Op::Read, 0, BLOCK);
        assert_eq!(offer(&mut *engine, 2, &read), Queued::Accepted(1));
        assert!(catch_unwind(AssertUnwindSafe(|| engine.payload(2).len())).is_err(), "{}", entry.name);
        assert!(catch_unwind(AssertUnwindSafe(|| offer(&mut *engine, 2, &read))).is_err(), "{}", entry.name);
        assert!(
            catch_unwind(AssertUnwindSafe(|| offer(&mut *engine, DEPTH, &read))).is_err(),
            "{}",
            entry.name
        );
        assert_eq!(engine.payload(1).len(), BLOCK);
        assert_eq!(engine.submit().unwrap(), 1, "{}: the attempts queued nothing", entry.name);
        assert_eq!(reap(&mut *engine, 1), [(2, BLOCK as i64)], "{}", entry.name);
        assert_eq!(engine.payload(2)[0], content(0));
    }
}

#[test]
fn engines_can_be_dropped_with_requests_queued_or_in_flight() {
    for entry in real_engines().filter(|entry| !entry.traits.synchronous) {
        for test_file in test_files(entry, 16 << 20) {
            for (queued, submitted) in [(DEPTH, false), (DEPTH, true), (1, true)] {
                let mut setup = test_file.setup(entry, true);
                setup.max_block = 1 << 20;
                let Some(mut engine) = open(entry, setup) else { continue };
                for slot in 0..queued {
                    let (op, offset) =
                        if slot % 3 == 0 { (Op::Write, 0) } else { (Op::Read, u64::from(slot) << 20) };
                    assert_eq!(offer(&mut *engine, slot, &request(op, offset, 1 << 20)), Queued::Accepted(1));
                }
                if submitted {
                    engine.submit().unwrap();
                }
                drop(engine);
                let file = File::open(test_file.path()).unwrap();
                let mut byte = [0];
                file.read_exact_at(&mut byte, 1).unwrap();
                // What was submitted may have been cancelled.
                let kept = byte[0] == content(1);
                assert!(kept || submitted, "{}: an unsubmitted request was executed", entry.name);
            }
        }
    }
}

#[test]
fn waits_end_in_time_and_unfinished_reads_are_cancelled() {
    for entry in real_engines().filter(|entry| entry.name == "io_uring") {
        for options in [&[][..], &[("fixedbufs", "0")], &[("registerfiles", "0")], &[("sqthread_poll", "1")]]
        {
            let (reader, writer) = std::io::pipe().unwrap();
            let file = Arc::new(File::from(std::os::fd::OwnedFd::from(reader)));
            let mut setup = setup_on(entry, file, 1 << 20, false, false);
            setup.options = raw(options);
            let Some(mut engine) = open(entry, setup) else { continue };
            for slot in 0..3 {
                assert_eq!(offer(&mut *engine, slot, &request(Op::Read, 0, BLOCK)), Queued::Accepted(1));
            }
            assert_eq!(engine.submit().unwrap(), 3);
            let mut done = Vec::new();
            for wait in [Nanos::ZERO, Nanos(1), Nanos::from_millis(2)] {
                assert_eq!(engine.reap(1, 8, Some(wait), &mut done).unwrap(), Reaped::Some(0), "{options:?}");
            }
            std::io::Write::write_all(&mut { &writer }, b"abc").unwrap();
            assert_eq!(engine.reap(1, 8, Some(Nanos::from_secs(60)), &mut done).unwrap(), Reaped::Some(1));
            assert_eq!(done[0].result, 3);
            assert_eq!(&engine.payload(done[0].slot)[..3], b"abc");
            drop(engine);
        }
    }
}

fn raw(options: &[(&str, &str)]) -> RawEngineOptions {
    RawEngineOptions(options.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect())
}

#[test]
fn every_private_option_is_taken_and_checked() {
    for entry in ENGINES {
        for row in entry.options {
            let mut options = RawEngineOptions::default();
            let other = match row.kind {
                OptionValueKind::Choice(words) => words.iter().find(|word| **word != row.default).unwrap(),
                _ if row.default == "1" => "0",
                _ => "1",
            };
            (row.apply)(&mut options, other).unwrap();
            assert_eq!(options, raw(&[(row.name, other)]), "{} {}", entry.name, row.name);
            for wrong in ["-1", "x", "0x", "4294967296"] {
                assert!((row.apply)(&mut options, wrong).is_err(), "{} {}={wrong}", entry.name, row.name);
            }
            assert!(row.doc.ends_with('.') && !row.doc.contains('\n'), "{} {}", entry.name, row.name);
        }
    }
}

#[test]
fn private_options_do_not_corrupt_data() {
    // Options whose requests may fail because the device or kernel does not support them.
    const MAY_FAIL: [&str; 3] = ["hipri", "nowait", "uncached"];
    for entry in real_engines() {
        for row in entry.options.iter().filter(|row| row.name != "sqthread_poll_cpu") {
            for test_file in test_files(entry, 16 * BLOCK as u64) {
                let mut setup = test_file.setup(entry, true);
                (row.apply)(&mut setup.options, if row.default == "1" { "0" } else { "1" }).unwrap();
                let Some(mut engine) = open(entry, setup) else { continue };
                let width = width(entry);
                for slot in 0..width {
                    engine.payload(slot).fill(slot as u8 + 1);
                }
                let mut written = vec![false; width as usize];
                for op in [Op::Write, Op::Sync, Op::Read] {
                    let len = if op == Op::Sync { 0 } else { BLOCK };
                    let batch: Vec<_> =
                        (0..width).map(|slot| request(op, u64::from(slot) * BLOCK as u64, len)).collect();
                    for (slot, result) in run(&mut *engine, &batch).into_iter().enumerate() {
                        let refused = MAY_FAIL.contains(&row.name) && matches!(-result, EAGAIN | EOPNOTSUPP);
                        assert!(
                            refused || result == len as i64,
                            "{} {}: {op} {result}",
                            entry.name,
                            row.name
                        );
                        written[slot] |= op == Op::Write && !refused;
                        if op == Op::Read && !refused && written[slot] {
                            let payload = engine.payload(slot as u32);
                            assert!(
                                payload.iter().all(|&byte| byte == slot as u8 + 1),
                                "{} {}",
                                entry.name,
                                row.name
                            );
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn impossible_setups_are_refused_with_a_remedy() {
    let test_file = TestFile::on(&std::env::temp_dir(), BLOCK as u64, false).unwrap();
    let refused = |name: &str, change: &dyn Fn(&mut EngineSetup)| -> Option<EngineError> {
        let entry = fathom_engine::registry::find(name).unwrap();
        open(entry, test_file.setup(entry, false))?;
        let mut setup = test_file.setup(entry, false);
        change(&mut setup);
        Some((entry.open)(setup).err().unwrap_or_else(|| panic!("{name} opened")))
    };
    type Change = &'static dyn Fn(&mut EngineSetup);
    let table: [(&str, Change, &str, &str); 6] = [
        ("io_uring", &|setup| setup.depth = 100_000, "100000", "iodepth=100000"),
        ("libaio", &|setup| setup.depth = 400_000_000, "queue depth 400000000", "iodepth=400000000"),
        ("psync", &|setup| setup.max_block = 1 << 47, "140737488355328", "bs"),
        ("mmap", &|setup| setup.direct = true, "direct", "direct=0"),
        ("mmap", &|setup| setup.files[0].size = 1 << 20, "8192", "create the file"),
        ("mmap", &|setup| setup.files[0].size = 0, "0 bytes", "create the file"),
    ];
    for (name, change, message, hint) in table {
        let Some(error) = refused(name, change) else { continue };
        assert!(error.to_string().contains(message), "{error}");
        assert!(error.hint().is_some_and(|text| text.contains(hint)), "{error}: {:?}", error.hint());
    }
    for entry in real_engines() {
        if let Some(error) = refused(entry.name, &|setup| setup.files[0].file = None) {
            assert!(error.to_string().contains("file 0"), "{error}");
        }
    }
}

#[test]
fn files_are_distinct_and_shared_ones_keep_their_positions() {
    for entry in real_engines() {
        let test_file = TestFile::on(&std::env::temp_dir(), 4 * BLOCK as u64, false).unwrap();
        let mut setup = test_file.setup(entry, false);
        let other = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(other.path(), vec![0xEE; BLOCK]).unwrap();
        let second = Arc::new(File::open(other.path()).unwrap());
        setup.files.push(OpenFile {
            file: Some(second),
            size: BLOCK as u64,
            is_block_device: false,
            volume: 0,
        });
        let shared = EngineSetup {
            files: setup.files.clone(),
            paths: Vec::new(),
            options: RawEngineOptions::default(),
            ..setup
        };
        let (Some(mut first), Some(mut second)) = (open(entry, setup), open(entry, shared)) else { continue };
        for offset in [0, 512, 1024, 4096] {
            assert_eq!(one(&mut *first, Op::Read, offset, 512), 512, "{}", entry.name);
            assert_eq!(one(&mut *second, Op::Read, offset + 1, 512), 512, "{}", entry.name);
            assert_eq!(first.payload(0)[0], content(offset), "{}", entry.name);
            assert_eq!(second.payload(0)[0], content(offset + 1), "{}", entry.name);
        }
        assert_eq!(
            run(&mut *first, &[Request { file: 1, ..request(Op::Read, 9, 512) }]),
            [512],
            "{}",
            entry.name
        );
        assert!(first.payload(0)[..512].iter().all(|&byte| byte == 0xEE), "{}", entry.name);
    }
}

/// A loop device on a file of `size` bytes with known contents; detached when dropped.
struct LoopDevice {
    path: std::path::PathBuf,
    backing: tempfile::NamedTempFile,
}

impl LoopDevice {
    /// `None`, and the reason printed, if this machine cannot create one.
    fn new(size: u64) -> Option<LoopDevice> {
        let backing = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(backing.path(), (0..size).map(content).collect::<Vec<u8>>()).unwrap();
        let made = Command::new("losetup").args(["--find", "--show"]).arg(backing.path()).output();
        match made {
            Ok(made) if made.status.success() => {
                let path = String::from_utf8(made.stdout).unwrap().trim().into();
                Some(LoopDevice { path, backing })
            }
            Ok(made) => {
                println!("skipped: no loop device: {}", String::from_utf8_lossy(&made.stderr).trim());
                None
            }
            Err(error) => {
                println!("skipped: no losetup: {error}");
                None
            }
        }
    }

    fn setup(&self, entry: &EngineEntry, size: u64, direct: bool) -> EngineSetup {
        let flags = OpenFlags { write: true, direct, ..OpenFlags::default() };
        let file = Arc::new(open_target(&self.path, flags).unwrap());
        let mut setup = setup_on(entry, file, size, true, direct);
        setup.files[0].is_block_device = true;
        setup
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let detached = Command::new("losetup").arg("--detach").arg(&self.path).status();
        assert!(detached.is_ok_and(|status| status.success()), "{} stays behind", self.path.display());
    }
}

#[test]
fn block_devices_are_written_read_and_trimmed() {
    let size = 64 * BLOCK as u64;
    for entry in real_engines() {
        let Some(device) = LoopDevice::new(size) else { return };
        let Some(mut engine) = open(entry, device.setup(entry, size, entry.name != "mmap")) else { continue };
        engine.payload(0).fill(0x5A);
        assert_eq!(one(&mut *engine, Op::Write, 0, BLOCK), BLOCK as i64, "{}", entry.name);
        assert_eq!(one(&mut *engine, Op::Sync, 0, 0), 0, "{}", entry.name);
        assert_eq!(one(&mut *engine, Op::Trim, 8 * BLOCK as u64, BLOCK), BLOCK as i64, "{}", entry.name);
        for (block, byte) in [(0, 0x5A), (8, 0), (9, content(9 * BLOCK as u64))] {
            assert_eq!(
                one(&mut *engine, Op::Read, block * BLOCK as u64, BLOCK),
                BLOCK as i64,
                "{}",
                entry.name
            );
            assert_eq!(engine.payload(0)[0], byte, "{} block {block}", entry.name);
        }
        assert_eq!(one(&mut *engine, Op::Read, size, BLOCK), 0, "{}", entry.name);
        assert_eq!(one(&mut *engine, Op::Write, size, BLOCK), -ENOSPC, "{}", entry.name);
    }
}

#[test]
fn device_errors_are_results() {
    let size = 64 * BLOCK as u64;
    for entry in real_engines() {
        let Some(device) = LoopDevice::new(size) else { return };
        let Some(mut engine) = open(entry, device.setup(entry, size, entry.name != "mmap")) else { continue };
        device.backing.as_file().set_len(size / 2).unwrap();
        assert_eq!(one(&mut *engine, Op::Read, size - BLOCK as u64, BLOCK), -EIO, "{}", entry.name);
        assert_eq!(one(&mut *engine, Op::Read, 0, BLOCK), BLOCK as i64, "{}", entry.name);
        assert_eq!(engine.payload(0)[1], content(1), "{}", entry.name);
    }
}

#[test]
fn the_null_engine_accepts_no_more_than_its_depth() {
    let entry = fathom_engine::registry::find("null").unwrap();
    let setup = |depth| EngineSetup {
        depth,
        max_block: BLOCK,
        files: Vec::new(),
        paths: Vec::new(),
        direct: false,
        writes: true,
        random: false,
        options: RawEngineOptions::default(),
    };
    let mut engine = open(entry, setup(2)).unwrap();
    let write = request(Op::Write, 0, 4096);
    let answers: Vec<_> = (0..3).map(|_| engine.queue(&[0, 1, 2], &[write; 3])).collect();
    assert_eq!(answers, [Queued::Accepted(2), Queued::Accepted(0), Queued::Accepted(0)]);
    assert_eq!(engine.submit().unwrap(), 2);
    assert_eq!(reap(&mut *engine, 2), [(0, 4096), (1, 4096)]);
    assert!(engine.payload(0).is_empty());

    let mut engine = open(entry, setup(1)).unwrap();
    assert_eq!(engine.queue(&[0], &[write]), Queued::Done(4096), "at depth 1 there is nothing to wait for");
}

#[test]
fn engine_names_are_unique_and_documented() {
    let mut names: Vec<&str> =
        ENGINES.iter().flat_map(|entry| entry.aliases.iter().copied().chain([entry.name])).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
    for entry in ENGINES {
        assert!(entry.doc.ends_with('.') && entry.doc.is_ascii(), "{}", entry.name);
        assert_eq!(fathom_engine::registry::find(entry.name).map(|found| found.name), Some(entry.name));
    }
    assert!(fathom_engine::registry::find("nothing").is_none());
}

#[test]
fn allocating_engines_change_the_file_and_move_nothing() {
    let entry = |name: &str| ENGINES.iter().find(|entry| entry.name == name).unwrap();
    let test_file = TestFile::on(&std::env::temp_dir(), 4 * BLOCK as u64, false).unwrap();
    let size = || std::fs::metadata(test_file.path()).unwrap().len();
    let run_on = |name: &str, requests: &[Request]| {
        let mut engine = open(entry(name), test_file.setup(entry(name), true)).unwrap();
        run(engine.as_mut(), requests)
    };
    let whole = BLOCK as i64;
    assert_eq!(run_on("falloc", &[request(Op::Write, 8 * BLOCK as u64, BLOCK)]), [whole]);
    assert_eq!(size(), 9 * BLOCK as u64);
    assert_eq!(run_on("falloc", &[request(Op::Read, 20 * BLOCK as u64, BLOCK)]), [whole]);
    assert_eq!(size(), 9 * BLOCK as u64);
    assert_eq!(run_on("falloc", &[request(Op::Trim, 0, BLOCK)]), [whole]);
    assert_eq!(std::fs::read(test_file.path()).unwrap()[..BLOCK], [0; BLOCK]);
    assert_eq!(run_on("ftruncate", &[request(Op::Write, 3 * BLOCK as u64, BLOCK)]), [whole]);
    assert_eq!(size(), 3 * BLOCK as u64);
    assert_eq!(run_on("ftruncate", &[request(Op::Read, 0, BLOCK)]), [EINVAL]);
}
