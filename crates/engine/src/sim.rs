//! Simulated volumes in virtual time.
//!
//! All workers of a run share one [`World`]: its clock, and volumes that return the completion time of each request
//! when it is made. Only the session's executor advances the clock.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use fathom_model::{Nanos, Request};
use fathom_volume::{RequestOutcome, VolumeLatency, VolumeModel};

pub use fathom_volume::Volume;

use crate::{Completion, Engine, EngineEntry, EngineError, EngineSetup, EngineTraits, Queued, Reaped};

/// The engine's name for jobs on simulated volumes. A session in virtual time opens no engine by its entry.
pub const ENTRY: EngineEntry = EngineEntry {
    name: "sim",
    aliases: &[],
    doc: "Simulated volumes in virtual time, for filename=sim:ID?size=50GiB; replaces other engines there.",
    traits: EngineTraits { needs_files: false, moves_data: false, ..EngineTraits::ASYNCHRONOUS },
    options: &[],
    open,
};

fn open(_: EngineSetup) -> Result<Box<dyn Engine>, EngineError> {
    Err(EngineError {
        engine: ENTRY.name,
        attempted: "open a target in real time".to_owned(),
        source: std::io::ErrorKind::Unsupported.into(),
        hint: Some("use a simulated volume, filename=sim:ID?size=50GiB, or another engine".to_owned()),
    })
}

/// Start of virtual time, ns; not 0, because counters use 0 for "not yet".
pub const BEGIN_NS: u64 = 1_000_000_000;

/// A volume of fixed latencies and parallelism, without limits, whose results are easy to predict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedLatency {
    /// Service time of a read.
    pub read: Nanos,
    /// Service time of a write or trim.
    pub write: Nanos,
    /// Service time of a flush.
    pub flush: Nanos,
    /// Reads, writes and trims served in parallel.
    pub parallelism: u32,
}

impl FixedLatency {
    /// The model of such a volume of `size` bytes.
    pub fn model(&self, size: u64) -> VolumeModel {
        VolumeModel {
            parallelism: Some(self.parallelism),
            read_latency: VolumeLatency::fixed(self.read.0),
            write_latency: VolumeLatency::fixed(self.write.0),
            sync_latency: VolumeLatency::fixed(self.flush.0),
            ..VolumeModel::unlimited(size)
        }
    }
}

/// The volumes of a session and their clock.
#[derive(Debug)]
pub struct World {
    now: Cell<u64>,
    volumes: RefCell<Vec<Volume>>,
}

impl World {
    /// Volumes that begin at [`BEGIN_NS`], the initial time of the clock.
    pub fn new(volumes: Vec<Volume>) -> Rc<World> {
        Rc::new(World { now: Cell::new(BEGIN_NS), volumes: RefCell::new(volumes) })
    }

    /// The current virtual time.
    #[inline]
    pub fn now(&self) -> Nanos {
        Nanos(self.now.get())
    }

    /// Advances virtual time; `time` must not be in the past.
    #[inline]
    pub fn advance_to(&self, time: Nanos) {
        debug_assert!(time.0 >= self.now.get(), "virtual time never goes back");
        self.now.set(time.0.max(self.now.get()));
    }

    /// Advances virtual time by a span in which the volumes stay as they are. No request may be in flight.
    pub fn skip(&self, span: Nanos) {
        self.now.set(self.now.get().saturating_add(span.0));
        self.volumes.borrow_mut().iter_mut().for_each(|volume| volume.skip(span.0));
    }

    /// Bytes of the volume at `index`; 0 if it does not exist.
    pub fn size_of(&self, index: usize) -> u64 {
        self.volumes.borrow().get(index).map_or(0, |volume| volume.model().size_bytes)
    }

    /// Calls `inspect` on the volume at `index`; `None` if it does not exist.
    pub fn inspect<T>(&self, index: usize, inspect: impl FnOnce(&Volume) -> T) -> Option<T> {
        self.volumes.borrow().get(index).map(inspect)
    }
}

/// A request in flight.
#[derive(Clone, Copy, Debug)]
struct PendingRequest {
    at: u64,
    slot: u32,
    result: i32,
}

/// The next completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextCompletion {
    /// Its instant of virtual time.
    pub at: u64,
    /// The completion itself.
    pub completion: Completion,
    /// No other completion has the same instant.
    pub is_alone: bool,
}

/// One worker's connection to the volumes.
pub struct SimEngine {
    world: Rc<World>,
    /// The volume behind each of the worker's files.
    volumes: Vec<usize>,
    /// Each write is on the medium when it completes, as with O_SYNC.
    writes_through: bool,
    queued: Vec<(u32, Request)>,
    /// In the order of completion. Volumes complete requests nearly in order, so a new one belongs at the end or close
    /// to it.
    in_flight: VecDeque<PendingRequest>,
}

impl SimEngine {
    /// Connects a worker to `world`; `volumes` are the indices of the volumes behind its files, and `writes_through` says that
    /// it opens them with O_SYNC or O_DSYNC.
    pub fn new(world: Rc<World>, volumes: Vec<usize>, writes_through: bool) -> Self {
        SimEngine { world, volumes, writes_through, queued: Vec::new(), in_flight: VecDeque::new() }
    }

    /// The next completion; `None` if nothing is in flight.
    #[inline]
    pub fn next(&self) -> Option<NextCompletion> {
        let &PendingRequest { at, slot, result } = self.in_flight.front()?;
        let is_alone = self.in_flight.get(1).is_none_or(|second| second.at > at);
        Some(NextCompletion { at, completion: Completion { slot, result: i64::from(result) }, is_alone })
    }

    /// Removes the next completion.
    #[inline]
    pub fn take_next(&mut self) {
        self.in_flight.pop_front();
    }

    /// Issues one request at the current time.
    #[inline]
    pub fn issue(&mut self, slot: u32, request: &Request) {
        let SimEngine { world, volumes, writes_through, in_flight, .. } = self;
        let volume = &mut world.volumes.borrow_mut()[volumes[request.file as usize]];
        if *writes_through {
            volume.flushed();
        }
        insert(in_flight, answer(volume, world.now.get(), slot, request));
    }
}

/// The completion of a request that is issued at `now`.
#[inline(always)]
fn answer(volume: &mut Volume, now: u64, slot: u32, request: &Request) -> PendingRequest {
    let asked = fathom_volume::VolumeRequest { op: request.op, offset: request.offset, bytes: request.len };
    let answer = volume.submit(now, &asked);
    let result = match answer.outcome {
        RequestOutcome::Done => i32::try_from(request.len).unwrap_or(i32::MAX),
        RequestOutcome::Failed(errno) => -errno,
        RequestOutcome::Never => 0,
    };
    PendingRequest { at: answer.at_ns, slot, result }
}

/// Inserts a request in the order of completion, behind those of the same instant.
#[inline(always)]
fn insert(in_flight: &mut VecDeque<PendingRequest>, pending: PendingRequest) {
    match in_flight.back() {
        Some(last) if last.at > pending.at => insert_before_the_end(in_flight, pending),
        _ => in_flight.push_back(pending),
    }
}

/// Inserts a request that is not the last to complete.
#[inline(never)]
fn insert_before_the_end(in_flight: &mut VecDeque<PendingRequest>, pending: PendingRequest) {
    /// A linear search of the last few is cheaper than a binary search of all.
    const NEAR: usize = 16;
    let mut place = in_flight.len() - 1;
    let near = place.saturating_sub(NEAR);
    while place > near && in_flight[place - 1].at > pending.at {
        place -= 1;
    }
    if place == near {
        place = in_flight.partition_point(|other| other.at <= pending.at);
    }
    in_flight.insert(place, pending);
}

impl Engine for SimEngine {
    fn queue(&mut self, slots: &[u32], requests: &[Request]) -> Queued {
        self.queued.extend(slots.iter().map(|&slot| (slot, requests[slot as usize])));
        Queued::Accepted(slots.len() as u32)
    }

    fn submit(&mut self) -> Result<u32, EngineError> {
        let count = self.queued.len() as u32;
        let SimEngine { world, volumes, writes_through, queued, in_flight } = self;
        let mut world_volumes = world.volumes.borrow_mut();
        for (slot, request) in queued.drain(..) {
            let volume = &mut world_volumes[volumes[request.file as usize]];
            if *writes_through {
                volume.flushed();
            }
            insert(in_flight, answer(volume, world.now.get(), slot, &request));
        }
        Ok(count)
    }

    fn reap(
        &mut self,
        _min: u32,
        max: u32,
        _wait: Option<Nanos>,
        done: &mut Vec<Completion>,
    ) -> Result<Reaped, EngineError> {
        let now = self.world.now.get();
        let mut count = 0;
        while count < max
            && let Some(first) = self.in_flight.front()
            && first.at <= now
        {
            done.push(Completion { slot: first.slot, result: i64::from(first.result) });
            self.in_flight.pop_front();
            count += 1;
        }
        if count > 0 {
            return Ok(Reaped::Some(count));
        }
        Ok(Reaped::NothingBefore(Nanos(self.in_flight.front().map_or(u64::MAX, |first| first.at))))
    }

    fn payload(&mut self, _slot: u32) -> &mut [u8] {
        &mut []
    }
}
