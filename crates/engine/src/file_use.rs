//! Engines around an engine: requests that lock their file, and syncs of the range that was written.
//!
//! They exist only in jobs that ask for them, so that other jobs pay nothing.

use std::fs::File;
use std::sync::Arc;

use fathom_model::plan::{FileLocking, FileUsage, RangeSync};
use fathom_model::{Nanos, Op, Request};
use fathom_sys::file_use::{FileLock, RangeSyncFlags, lock, sync_range};

use crate::{Completion, Engine, EngineError, OpenFile, Queued, Reaped};

const EBADF: i64 = -9;
const EIO: i32 = 5;

/// Puts around `engine`, which has `depth` slots, what `usage` asks for. `files` are those that the engine was opened on.
pub fn use_files(
    engine: Box<dyn Engine>,
    usage: &FileUsage,
    files: &[OpenFile],
    depth: u32,
) -> Box<dyn Engine> {
    let files: Vec<Option<Arc<File>>> = files.iter().map(|open| open.file.clone()).collect();
    let mut engine = engine;
    if let Some(plan) = usage.range_sync {
        let written = vec![Written::default(); files.len()];
        engine =
            Box::new(RangeSyncing { inner: engine, flags: flags_of(plan), files: files.clone(), written });
    }
    if usage.locking != FileLocking::None {
        let is_shared = usage.locking == FileLocking::ReadWrite;
        let held = vec![Held { lock: FileLock::Free, requests: 0, joined: 0 }; files.len()];
        let file_of = vec![0; depth as usize];
        engine = Box::new(Locking { inner: engine, is_shared, files, held, file_of, in_flight: 0, depth });
    }
    engine
}

fn flags_of(plan: RangeSync) -> RangeSyncFlags {
    RangeSyncFlags { wait_before: plan.wait_before, write: plan.write, wait_after: plan.wait_after }
}

/// The range of a file that was written since its last sync; empty where `end` is 0.
#[derive(Clone, Copy, Debug, Default)]
struct Written {
    start: u64,
    end: u64,
}

impl Written {
    fn add(&mut self, request: &Request) {
        let end = request.offset.saturating_add(u64::from(request.len));
        self.start = if self.end == 0 { request.offset } else { self.start.min(request.offset) };
        self.end = self.end.max(end);
    }
}

/// Answers datasyncs by sync_file_range(2).
struct RangeSyncing {
    inner: Box<dyn Engine>,
    flags: RangeSyncFlags,
    files: Vec<Option<Arc<File>>>,
    /// By file.
    written: Vec<Written>,
}

impl RangeSyncing {
    fn sync(&mut self, file: usize) -> i64 {
        let (Some(Some(open)), Some(written)) = (self.files.get(file), self.written.get_mut(file)) else {
            return EBADF;
        };
        let Written { start, end } = std::mem::take(written);
        if end == 0 { 0 } else { sync_range(open, start, end - start, self.flags) }
    }

    fn note(&mut self, request: &Request) {
        let Some(written) = self.written.get_mut(request.file as usize) else { return };
        match request.op {
            Op::Write => written.add(request),
            Op::Sync => *written = Written::default(),
            Op::Read | Op::Trim | Op::Datasync => {}
        }
    }
}

impl Engine for RangeSyncing {
    fn queue(&mut self, slots: &[u32], requests: &[Request]) -> Queued {
        let is_ours = |slot: &&u32| requests[**slot as usize].op == Op::Datasync;
        let before = slots.iter().take_while(|slot| !is_ours(slot)).count();
        if before == 0 {
            return Queued::Done(self.sync(requests[slots[0] as usize].file as usize));
        }
        let queued = self.inner.queue(&slots[..before], requests);
        let taken = match queued {
            Queued::Done(_) => 1,
            Queued::Accepted(count) => count as usize,
        };
        slots[..taken].iter().for_each(|&slot| self.note(&requests[slot as usize]));
        queued
    }

    fn submit(&mut self) -> Result<u32, EngineError> {
        self.inner.submit()
    }

    fn reap(
        &mut self,
        min: u32,
        max: u32,
        wait: Option<Nanos>,
        done: &mut Vec<Completion>,
    ) -> Result<Reaped, EngineError> {
        self.inner.reap(min, max, wait, done)
    }

    fn payload(&mut self, slot: u32) -> &mut [u8] {
        self.inner.payload(slot)
    }

    fn priority(&self, slot: u32) -> Option<u16> {
        self.inner.priority(slot)
    }
}

/// The lock of a file.
#[derive(Clone, Copy, Debug)]
struct Held {
    lock: FileLock,
    /// Requests in flight under it.
    requests: u32,
    /// Requests since it was taken: after a full queue others have their turn.
    joined: u32,
}

/// Holds a lock on the file of each request while that is in flight.
struct Locking {
    inner: Box<dyn Engine>,
    /// Reads share the lock.
    is_shared: bool,
    files: Vec<Option<Arc<File>>>,
    /// By file.
    held: Vec<Held>,
    /// The file of the request of each slot.
    file_of: Vec<u32>,
    in_flight: u32,
    depth: u32,
}

impl Locking {
    /// Takes the lock for a request. `Ok(false)` where it is held: then completions must be reaped first.
    fn take(&mut self, request: &Request) -> Result<bool, i64> {
        let file = request.file as usize;
        let (Some(Some(open)), Some(held)) = (self.files.get(file), self.held.get_mut(file)) else {
            return Err(EBADF);
        };
        let wanted = if self.is_shared && request.op == Op::Read { FileLock::Read } else { FileLock::Write };
        if held.requests > 0 {
            let joins = wanted == FileLock::Read && held.lock == FileLock::Read && held.joined < self.depth;
            held.requests += u32::from(joins);
            held.joined += u32::from(joins);
            return Ok(joins);
        }
        // Only a worker without requests waits: it holds no lock that another may wait for.
        match lock(open, wanted, self.in_flight == 0) {
            Ok(true) => *held = Held { lock: wanted, requests: 1, joined: 1 },
            Ok(false) => return Ok(false),
            Err(error) => return Err(-i64::from(error.raw_os_error().unwrap_or(EIO))),
        }
        Ok(true)
    }

    fn release(&mut self, file: u32) {
        let (Some(Some(open)), Some(held)) =
            (self.files.get(file as usize), self.held.get_mut(file as usize))
        else {
            return;
        };
        held.requests -= 1;
        if held.requests == 0 {
            held.lock = FileLock::Free;
            // Releasing an own lock does not fail.
            let _ = lock(open, FileLock::Free, false);
        }
    }
}

impl Engine for Locking {
    /// One request at a time, so that each waits for its own lock.
    fn queue(&mut self, slots: &[u32], requests: &[Request]) -> Queued {
        let slot = slots[0];
        let request = &requests[slot as usize];
        match self.take(request) {
            Ok(true) => {}
            Ok(false) => return Queued::Accepted(0),
            Err(errno) => return Queued::Done(errno),
        }
        let queued = self.inner.queue(&slots[..1], requests);
        match queued {
            Queued::Accepted(1) => {
                self.file_of[slot as usize] = request.file;
                self.in_flight += 1;
            }
            Queued::Done(_) | Queued::Accepted(_) => self.release(request.file),
        }
        queued
    }

    fn submit(&mut self) -> Result<u32, EngineError> {
        self.inner.submit()
    }

    fn reap(
        &mut self,
        min: u32,
        max: u32,
        wait: Option<Nanos>,
        done: &mut Vec<Completion>,
    ) -> Result<Reaped, EngineError> {
        let before = done.len();
        let reaped = self.inner.reap(min, max, wait, done);
        for completion in &done[before..] {
            self.in_flight -= 1;
            let file = self.file_of[completion.slot as usize];
            self.release(file);
        }
        reaped
    }

    fn payload(&mut self, slot: u32) -> &mut [u8] {
        self.inner.payload(slot)
    }

    fn priority(&self, slot: u32) -> Option<u16> {
        self.inner.priority(slot)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;
    use crate::{EngineSetup, RawEngineOptions, registry};

    fn opened(path: &std::path::Path, engine: &str, usage: &FileUsage) -> Box<dyn Engine> {
        let file = File::options().read(true).write(true).open(path).unwrap();
        let file = OpenFile { file: Some(Arc::new(file)), size: 65536, is_block_device: false, volume: 0 };
        let setup = EngineSetup {
            depth: 4,
            max_block: 4096,
            files: vec![file],
            paths: Vec::new(),
            direct: false,
            writes: true,
            random: false,
            options: RawEngineOptions::default(),
            priorities: Default::default(),
        };
        let files = setup.files.clone();
        let inner = (registry::find(engine).unwrap().open)(setup).unwrap();
        use_files(inner, usage, &files, 4)
    }

    fn request(op: Op, block: u64) -> Request {
        let len = if matches!(op, Op::Read | Op::Write) { 4096 } else { 0 };
        Request { op, file: 0, offset: block * 4096, len }
    }

    #[test]
    fn a_request_waits_for_the_lock_of_its_file() {
        let named = tempfile::NamedTempFile::new().unwrap();
        named.as_file().set_len(65536).unwrap();
        let other = File::options().read(true).write(true).open(named.path()).unwrap();
        let others_can = |wanted| {
            let got = lock(&other, wanted, false).unwrap();
            lock(&other, FileLock::Free, false).unwrap();
            got
        };
        let check = |locking, engine: &str, ops: [Op; 2], accepted: [bool; 2], others_read: bool| {
            let usage = FileUsage { locking, ..FileUsage::default() };
            let mut engine = opened(named.path(), engine, &usage);
            let requests = [request(ops[0], 0), request(ops[1], 1)];
            let mut done = Vec::new();
            for (slot, accepted) in accepted.into_iter().enumerate() {
                let queued = engine.queue(&[slot as u32], &requests);
                assert_eq!(queued, Queued::Accepted(u32::from(accepted)), "{locking:?} {ops:?} {slot}");
            }
            assert_eq!(others_can(FileLock::Read), others_read, "{locking:?} {ops:?}");
            assert!(!others_can(FileLock::Write));
            let all = accepted.into_iter().filter(|accepted| *accepted).count();
            engine.submit().unwrap();
            while done.len() < all {
                engine.reap(1, 4, None, &mut done).unwrap();
            }
            assert!(others_can(FileLock::Write), "completions release it");
        };
        check(FileLocking::Exclusive, "libaio", [Op::Read, Op::Read], [true, false], false);
        check(FileLocking::ReadWrite, "libaio", [Op::Read, Op::Read], [true, true], true);
        check(FileLocking::ReadWrite, "libaio", [Op::Read, Op::Write], [true, false], true);
        check(FileLocking::ReadWrite, "libaio", [Op::Write, Op::Read], [true, false], false);
        let usage = FileUsage { locking: FileLocking::Exclusive, ..FileUsage::default() };
        let mut engine = opened(named.path(), "psync", &usage);
        assert_eq!(engine.queue(&[0], &[request(Op::Write, 0)]), Queued::Done(4096));
        assert!(others_can(FileLock::Write));
    }

    #[test]
    fn syncs_are_of_the_range_that_was_written() {
        let named = tempfile::NamedTempFile::new().unwrap();
        named.as_file().write_all_at(&[1; 65536], 0).unwrap();
        let plan = RangeSync { every: 1, wait_before: true, write: true, wait_after: true };
        let usage = FileUsage { range_sync: Some(plan), ..FileUsage::default() };
        let mut engine = opened(named.path(), "libaio", &usage);
        let requests = [request(Op::Write, 3), request(Op::Write, 1), request(Op::Datasync, 0)];
        assert_eq!(engine.queue(&[0, 1, 2], &requests), Queued::Accepted(2), "up to the sync");
        assert_eq!(engine.queue(&[2], &requests), Queued::Done(0));
        engine.submit().unwrap();
        let mut done = Vec::new();
        while done.len() < 2 {
            engine.reap(1, 4, None, &mut done).unwrap();
        }
        let mut written = Written::default();
        requests[..2].iter().for_each(|request| written.add(request));
        assert_eq!((written.start, written.end), (4096, 16384));
        assert_eq!(engine.queue(&[2], &requests), Queued::Done(0), "nothing was written since");
    }
}
