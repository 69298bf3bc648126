//! POSIX AIO as glibc has it: a thread per file executes the requests to it, one after the other.
//!
//! So requests to one file never overlap at the device, whatever the queue depth; several files make them do.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use fathom_model::{Nanos, Op, Request};
use fathom_sys::buffer::BufferPool;
use fathom_sys::transfer;

use crate::targets::{self, EngineTarget, Targets};
use crate::{Completion, Engine, EngineEntry, EngineError, EngineSetup, EngineTraits, Queued, Reaped};

/// The engine's entry.
pub const ENTRY: EngineEntry = EngineEntry {
    name: "posixaio",
    aliases: &[],
    doc: "POSIX AIO as glibc has it: a thread per file, which executes one request after the other.",
    traits: EngineTraits {
        synchronous: false,
        needs_files: true,
        moves_data: true,
        lacks: &[],
        synchronous_alone: false,
        names: None,
    },
    options: &[],
    open,
};

/// The driver never touches a slot in flight.
const IN_FLIGHT: &str = "the slot is in flight";

/// A request on its way through a thread, with its buffer.
struct Work {
    slot: u32,
    request: Request,
    buffer: BufferPool,
    result: i64,
}

/// A list that one side fills and the other empties. It never grows: a slot is in one list at a time.
struct List {
    works: Mutex<(VecDeque<Work>, bool)>,
    changed: Condvar,
}

impl List {
    fn new(slots: u32) -> Arc<List> {
        let works = Mutex::new((VecDeque::with_capacity(slots as usize), false));
        Arc::new(List { works, changed: Condvar::new() })
    }

    fn lock(&self) -> MutexGuard<'_, (VecDeque<Work>, bool)> {
        self.works.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, work: Work) {
        self.lock().0.push_back(work);
        self.changed.notify_one();
    }

    /// The first work, waiting for one; `None` when the list is closed and empty.
    fn pop(&self) -> Option<Work> {
        let mut works = self.lock();
        loop {
            if let Some(work) = works.0.pop_front() {
                return Some(work);
            }
            if works.1 {
                return None;
            }
            works = self.changed.wait(works).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn close(&self) {
        self.lock().1 = true;
        self.changed.notify_all();
    }
}

struct PosixAio {
    targets: Targets,
    /// The buffer of each slot, unless the slot is in flight.
    buffers: Vec<Option<BufferPool>>,
    /// Accepted requests, to be submitted.
    accepted: Vec<Work>,
    /// The requests of each file, and the thread that executes them.
    files: Vec<(Arc<List>, Option<JoinHandle<()>>)>,
    done: Arc<List>,
    in_flight: u32,
}

fn open(setup: EngineSetup) -> Result<Box<dyn Engine>, EngineError> {
    let targets = Targets::new(ENTRY.name, &setup)?;
    let one = EngineSetup { depth: 1, ..setup.clone() };
    let buffers = (0..setup.depth).map(|_| targets::buffers(ENTRY.name, &one).map(Some));
    let buffers = buffers.collect::<Result<Vec<_>, _>>()?;
    let done = List::new(setup.depth);
    let mut engine = PosixAio {
        targets,
        buffers,
        accepted: Vec::with_capacity(setup.depth as usize),
        files: Vec::new(),
        done,
        in_flight: 0,
    };
    for file in engine.targets.files().into_iter().zip(setup.files.iter().map(|open| open.is_block_device)) {
        let (requests, done) = (List::new(setup.depth), engine.done.clone());
        let target = EngineTarget { file: file.0, is_block_device: file.1 };
        let todo = requests.clone();
        let body = move || {
            while let Some(work) = todo.pop() {
                done.push(execute(&target, work));
            }
        };
        let thread =
            std::thread::Builder::new().name("posixaio".to_owned()).stack_size(256 << 10).spawn(body);
        let thread = thread.map_err(|source| EngineError {
            engine: ENTRY.name,
            attempted: "start a thread".to_owned(),
            source,
            hint: Some("lower nrfiles or numjobs, or raise `ulimit -u`".to_owned()),
        })?;
        engine.files.push((requests, Some(thread)));
    }
    Ok(Box::new(engine))
}

fn execute(target: &EngineTarget, mut work: Work) -> Work {
    let request = work.request;
    let bytes = &mut work.buffer.bytes(0)[..request.len as usize];
    work.result = match request.op {
        Op::Read => transfer::read_at(&target.file, bytes, request.offset),
        Op::Write => transfer::write_at(&target.file, bytes, request.offset),
        Op::Trim | Op::Sync | Op::Datasync => target.execute(&request),
    };
    work
}

impl Engine for PosixAio {
    fn queue(&mut self, slots: &[u32], requests: &[Request]) -> Queued {
        for (accepted, &slot) in slots.iter().enumerate() {
            let request = requests[slot as usize];
            match self.targets.check(&request) {
                Ok(_) => {}
                Err(errno) if accepted == 0 => return Queued::Done(errno),
                Err(_) => return Queued::Accepted(accepted as u32),
            }
            let buffer = self.buffers[slot as usize].take().expect(IN_FLIGHT);
            self.accepted.push(Work { slot, request, buffer, result: 0 });
        }
        Queued::Accepted(slots.len() as u32)
    }

    fn submit(&mut self) -> Result<u32, EngineError> {
        let count = self.accepted.len() as u32;
        self.in_flight += count;
        for work in self.accepted.drain(..) {
            self.files[work.request.file as usize].0.push(work);
        }
        Ok(count)
    }

    fn reap(
        &mut self,
        min: u32,
        max: u32,
        wait: Option<Nanos>,
        done: &mut Vec<Completion>,
    ) -> Result<Reaped, EngineError> {
        let wanted = min.min(self.in_flight) as usize;
        let mut works = self.done.lock();
        let is_short = |works: &mut (VecDeque<Work>, bool)| works.0.len() < wanted;
        works = match wait {
            None => self.done.changed.wait_while(works, is_short).unwrap_or_else(PoisonError::into_inner),
            Some(wait) => {
                let limit = Duration::from_nanos(wait.0);
                let waited = self.done.changed.wait_timeout_while(works, limit, is_short);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
        };
        let taken = works.0.len().min(max as usize);
        for Work { slot, buffer, result, .. } in works.0.drain(..taken) {
            self.buffers[slot as usize] = Some(buffer);
            done.push(Completion { slot, result });
        }
        self.in_flight -= taken as u32;
        Ok(Reaped::Some(taken as u32))
    }

    fn payload(&mut self, slot: u32) -> &mut [u8] {
        self.buffers[slot as usize].as_mut().expect(IN_FLIGHT).bytes(0)
    }
}

impl Drop for PosixAio {
    fn drop(&mut self) {
        self.files.iter().for_each(|(requests, _)| requests.close());
        for thread in self.files.iter_mut().filter_map(|(_, thread)| thread.take()) {
            // A thread that panicked has left nothing to wait for.
            let _ = thread.join();
        }
    }
}
