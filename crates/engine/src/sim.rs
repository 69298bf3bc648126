//! A device of fixed latency on virtual time.
//!
//! All workers of a run share one [`SimDevice`]: it serves `parallelism` requests at once, each for a fixed time, first
//! come first served. It shows that the seam carries an engine on virtual time, and makes golden outputs exact.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::rc::Rc;

use fathom_model::{Nanos, Op, Request};

use crate::{Completion, Engine, EngineError, Queued, Reaped};

/// The latency and width of the modelled device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedLatency {
    /// Service time of a read.
    pub read: Nanos,
    /// Service time of a write or trim.
    pub write: Nanos,
    /// Service time of a flush.
    pub flush: Nanos,
    /// Requests served at once.
    pub parallelism: u32,
}

/// The device that all workers of a simulated run share, with its clock.
#[derive(Debug)]
pub struct SimDevice {
    model: FixedLatency,
    /// Virtual now; only the session's executor moves it.
    now: Nanos,
    /// When each server is free again.
    free: BinaryHeap<Reverse<Nanos>>,
}

impl SimDevice {
    /// A device that is idle at time zero.
    pub fn new(model: FixedLatency) -> Rc<RefCell<Self>> {
        let free = (0..model.parallelism.max(1)).map(|_| Reverse(Nanos::ZERO)).collect();
        Rc::new(RefCell::new(SimDevice { model, now: Nanos::ZERO, free }))
    }

    /// Virtual now.
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// Moves virtual time on; never back.
    pub fn advance_to(&mut self, time: Nanos) {
        debug_assert!(time >= self.now, "virtual time never goes back");
        self.now = self.now.max(time);
    }

    fn admit(&mut self, op: Op) -> Nanos {
        let service = match op {
            Op::Read => self.model.read,
            Op::Write | Op::Trim => self.model.write,
            Op::Sync | Op::Datasync => self.model.flush,
        };
        let Reverse(free) = self.free.pop().expect("a device has at least one server");
        let done = free.max(self.now).plus(service);
        self.free.push(Reverse(done));
        done
    }
}

/// One worker's connection to the shared device.
pub struct SimEngine {
    device: Rc<RefCell<SimDevice>>,
    queued: Vec<(u32, Op, u32)>,
    in_flight: BinaryHeap<Reverse<(Nanos, u32, u32)>>,
}

impl SimEngine {
    /// Connects a worker to `device`.
    pub fn new(device: Rc<RefCell<SimDevice>>) -> Self {
        SimEngine { device, queued: Vec::new(), in_flight: BinaryHeap::new() }
    }
}

impl Engine for SimEngine {
    fn queue(&mut self, slots: &[u32], requests: &[Request]) -> Queued {
        self.queued.extend(slots.iter().map(|&slot| {
            let request = &requests[slot as usize];
            (slot, request.op, request.len)
        }));
        Queued::Accepted(slots.len() as u32)
    }

    fn submit(&mut self) -> Result<u32, EngineError> {
        let mut device = self.device.borrow_mut();
        let count = self.queued.len() as u32;
        for (slot, op, len) in self.queued.drain(..) {
            let done = device.admit(op);
            self.in_flight.push(Reverse((done, slot, len)));
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
        let now = self.device.borrow().now();
        let mut count = 0;
        while count < max {
            match self.in_flight.peek() {
                Some(&Reverse((at, slot, len))) if at <= now => {
                    self.in_flight.pop();
                    done.push(Completion { slot, result: i64::from(len) });
                    count += 1;
                }
                _ => break,
            }
        }
        if count > 0 {
            return Ok(Reaped::Some(count));
        }
        let next = self.in_flight.peek().map_or(Nanos::MAX, |&Reverse((at, ..))| at);
        Ok(Reaped::NothingBefore(next))
    }

    fn payload(&mut self, _slot: u32) -> &mut [u8] {
        &mut []
    }
}
