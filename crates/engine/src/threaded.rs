//! Threads that execute requests: the engines of POSIX AIO and of offloaded submission.
//!
//! A request and its buffer travel through a queue to a thread, and back. Each file has a queue with one thread, or all files
//! have one queue with a thread per slot.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use fathom_model::{Nanos, Op, Request};
use fathom_sys::buffer::BufferPool;
use fathom_sys::transfer::{self, TransferFlags};

use crate::pvsync2::RequestFlags;
use crate::targets::{self, Targets};
use crate::{Completion, Engine, EngineError, EngineSetup, Queued, Reaped};

/// Stack of a thread, which executes system calls alone.
const STACK_BYTES: usize = 256 << 10;

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

/// Which thread executes a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Threads {
    /// That of its file, one request after the other.
    OfFiles,
    /// Any that is free, of as many as there are slots.
    OfSlots,
}

/// An engine whose requests are executed by threads.
pub(crate) struct ThreadedEngine {
    targets: Arc<Targets>,
    /// The buffer of each slot, unless the slot is in flight.
    buffers: Vec<Option<BufferPool>>,
    /// Accepted requests, to be submitted.
    accepted: Vec<Work>,
    /// Submitted requests: a queue for each file, or one for all.
    queues: Vec<Arc<List>>,
    threads: Vec<JoinHandle<()>>,
    done: Arc<List>,
    in_flight: u32,
}

impl ThreadedEngine {
    /// Opens the engine called `name` on the files of `setup`.
    pub fn open(
        name: &'static str,
        setup: &EngineSetup,
        threads: Threads,
        flags: RequestFlags,
    ) -> Result<Box<dyn Engine>, EngineError> {
        let targets = Arc::new(Targets::new(name, setup)?);
        let one = EngineSetup { depth: 1, ..setup.clone() };
        let buffers = (0..setup.depth).map(|_| targets::buffers(name, &one).map(Some));
        let buffers = buffers.collect::<Result<Vec<_>, _>>()?;
        let mut engine = ThreadedEngine {
            targets,
            buffers,
            accepted: Vec::with_capacity(setup.depth as usize),
            queues: Vec::new(),
            threads: Vec::new(),
            done: List::new(setup.depth),
            in_flight: 0,
        };
        let (queues, of_each) = match threads {
            Threads::OfFiles => (setup.files.len(), 1),
            Threads::OfSlots => (1, setup.depth),
        };
        for _ in 0..queues {
            let queue = List::new(setup.depth);
            engine.queues.push(Arc::clone(&queue));
            for _ in 0..of_each {
                engine.start_thread(name, &queue, flags.clone())?;
            }
        }
        Ok(Box::new(engine))
    }

    fn start_thread(
        &mut self,
        name: &'static str,
        queue: &Arc<List>,
        mut flags: RequestFlags,
    ) -> Result<(), EngineError> {
        let (queue, done, targets) = (Arc::clone(queue), Arc::clone(&self.done), Arc::clone(&self.targets));
        let body = move || {
            while let Some(work) = queue.pop() {
                done.push(execute(&targets, flags.next(), work));
            }
        };
        let thread = std::thread::Builder::new().name(name.to_owned()).stack_size(STACK_BYTES).spawn(body);
        self.threads.push(thread.map_err(|source| EngineError {
            engine: name,
            attempted: "start a thread".to_owned(),
            source,
            hint: Some("lower iodepth, nrfiles or numjobs, or raise `ulimit -u`".to_owned()),
        })?);
        Ok(())
    }
}

fn execute(targets: &Targets, flags: TransferFlags, mut work: Work) -> Work {
    let request = work.request;
    let bytes = &mut work.buffer.bytes(0)[..request.len as usize];
    work.result = match (targets.check(&request), request.op) {
        (Err(errno), _) => errno,
        (Ok(target), Op::Read) => {
            transfer::read_vectored_at(&target.file, bytes, request.offset, flags.of_reads())
        }
        (Ok(target), Op::Write) => transfer::write_vectored_at(&target.file, bytes, request.offset, flags),
        (Ok(target), Op::Trim | Op::Sync | Op::Datasync) => target.execute(&request),
    };
    work
}

impl Engine for ThreadedEngine {
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
            let queue = work.request.file as usize % self.queues.len();
            self.queues[queue].push(work);
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

impl Drop for ThreadedEngine {
    fn drop(&mut self) {
        self.queues.iter().for_each(|queue| queue.close());
        for thread in self.threads.drain(..) {
            // A thread that panicked has left nothing to wait for.
            let _ = thread.join();
        }
    }
}
