//! Files with known contents, and requests on an engine.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use fathom_engine::registry::ENGINES;
use fathom_engine::{
    Completion, Engine, EngineEntry, EngineSetup, OpenFile, Queued, RawEngineOptions, Reaped,
};
use fathom_model::{Op, Request};
use fathom_sys::io::{OpenFlags, open_target};

pub const BLOCK: usize = 8192;
pub const DEPTH: u32 = 16;
pub const EBADF: i64 = -9;
pub const EINVAL: i64 = -22;
pub const EIO: i64 = 5;
pub const ENOSPC: i64 = 28;
pub const EAGAIN: i64 = 11;
pub const EOPNOTSUPP: i64 = 95;

/// A file with known contents, and whether engines open it for direct I/O.
pub struct TestFile {
    pub dir: tempfile::TempDir,
    pub size: u64,
    pub direct: bool,
}

impl TestFile {
    pub fn on(parent: &Path, size: u64, direct: bool) -> Option<TestFile> {
        let dir = tempfile::tempdir_in(parent).ok()?;
        let test_file = TestFile { dir, size, direct };
        let bytes: Vec<u8> = (0..size).map(content).collect();
        std::fs::write(test_file.path(), bytes).unwrap();
        let flags = OpenFlags { direct, ..OpenFlags::default() };
        open_target(&test_file.path(), flags).ok().map(|_| test_file)
    }

    pub fn path(&self) -> std::path::PathBuf {
        self.dir.path().join("test_file")
    }

    pub fn setup(&self, entry: &EngineEntry, write: bool) -> EngineSetup {
        let flags = OpenFlags { write, direct: self.direct, ..OpenFlags::default() };
        let file = Arc::new(open_target(&self.path(), flags).unwrap());
        setup_on(entry, file, self.size, write, self.direct)
    }
}

/// The byte of a new test file at `offset`.
pub fn content(offset: u64) -> u8 {
    (offset / 512 * 7 + offset) as u8
}

pub fn setup_on(entry: &EngineEntry, file: Arc<File>, size: u64, writes: bool, direct: bool) -> EngineSetup {
    EngineSetup {
        depth: if entry.traits.synchronous { 1 } else { DEPTH },
        max_block: BLOCK,
        files: vec![OpenFile { file: Some(file), size, is_block_device: false, volume: 0 }],
        paths: Vec::new(),
        direct,
        writes,
        random: true,
        options: RawEngineOptions::default(),
        priorities: Default::default(),
    }
}

/// Opens an engine; `None`, and the reason printed, if this machine cannot.
pub fn open(entry: &EngineEntry, setup: EngineSetup) -> Option<Box<dyn Engine>> {
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
pub fn real_engines() -> impl Iterator<Item = &'static EngineEntry> {
    ENGINES.iter().filter(|entry| entry.traits.moves_data)
}

/// The files of every data test: direct and buffered in the temporary directory, buffered on tmpfs.
pub fn test_files(entry: &EngineEntry, size: u64) -> Vec<TestFile> {
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

pub fn request(op: Op, offset: u64, len: usize) -> Request {
    Request { op, file: 0, len: len as u32, offset }
}

/// Executes `requests`, one slot each, and returns their results.
pub fn run(engine: &mut dyn Engine, requests: &[Request]) -> Vec<i64> {
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
pub fn offer(engine: &mut dyn Engine, slot: u32, request: &Request) -> Queued {
    engine.queue(&[slot], &vec![*request; slot as usize + 1])
}

/// Reaps at least `min` completions.
pub fn reap(engine: &mut dyn Engine, min: u32) -> Vec<(u32, i64)> {
    let mut done: Vec<Completion> = Vec::new();
    while (done.len() as u32) < min {
        let before = done.len() as u32;
        let reaped = engine.reap(min - before, u32::MAX, None, &mut done).unwrap();
        assert_eq!(reaped, Reaped::Some(done.len() as u32 - before));
    }
    done.into_iter().map(|completion| (completion.slot, completion.result)).collect()
}

/// Executes one request in slot 0.
pub fn one(engine: &mut dyn Engine, op: Op, offset: u64, len: usize) -> i64 {
    run(engine, &[request(op, offset, len)])[0]
}

pub fn width(entry: &EngineEntry) -> u32 {
    if entry.traits.synchronous { 1 } else { DEPTH }
}

pub fn raw(options: &[(&str, &str)]) -> RawEngineOptions {
    RawEngineOptions(options.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect())
}
