//! Priorities of single requests, for the engines whose requests can have one.

use fathom_model::plan::RequestPriorities;
use fathom_model::{Nanos, Op, Request};

use crate::draws::Draws;
use crate::{Completion, Engine, EngineError, EngineSetup, Queued, Reaped};

/// An engine whose requests can have a priority of their own.
pub(crate) trait TakesPriority: Engine {
    /// Prepares a request with this priority, as Linux packs it; 0 = that of the thread. False if the request needs a plain
    /// system call, or is invalid.
    fn prepare(&mut self, slot: u32, request: &Request, priority: u16) -> bool;

    /// Executes a request that could not be prepared.
    fn execute(&self, request: &Request) -> i64;
}

/// An engine that gives some requests a priority of their own.
pub(crate) struct Prioritized<E> {
    engine: E,
    plan: RequestPriorities,
    draws: Draws,
    /// The priority of the request in each slot; `None` = that of the job.
    of_slots: Box<[Option<u16>]>,
}

impl<E: TakesPriority + 'static> Prioritized<E> {
    /// `engine` itself, or with the priorities that `setup` plans.
    pub fn over(engine: E, setup: &EngineSetup) -> Box<dyn Engine> {
        if setup.priorities.is_empty() {
            return Box::new(engine);
        }
        Box::new(Prioritized {
            engine,
            plan: setup.priorities.clone(),
            draws: Draws::default(),
            of_slots: vec![None; setup.depth as usize].into_boxed_slice(),
        })
    }
}

impl<E: TakesPriority> Prioritized<E> {
    fn prepare(&mut self, slot: u32, request: &Request) -> bool {
        let priority = match request.op {
            Op::Read | Op::Write => self.plan.pick(request.op, request.len, self.draws.next()),
            Op::Trim | Op::Sync | Op::Datasync => None,
        };
        self.of_slots[slot as usize] = priority;
        self.engine.prepare(slot, request, priority.unwrap_or(0))
    }
}

impl<E: TakesPriority> Engine for Prioritized<E> {
    fn queue(&mut self, slots: &[u32], requests: &[Request]) -> Queued {
        let prepared = slots.iter().take_while(|&&slot| self.prepare(slot, &requests[slot as usize])).count();
        match slots.first() {
            Some(&first) if prepared == 0 => Queued::Done(self.engine.execute(&requests[first as usize])),
            _ => Queued::Accepted(prepared as u32),
        }
    }

    fn submit(&mut self) -> Result<u32, EngineError> {
        self.engine.submit()
    }

    fn reap(
        &mut self,
        min: u32,
        max: u32,
        wait: Option<Nanos>,
        done: &mut Vec<Completion>,
    ) -> Result<Reaped, EngineError> {
        self.engine.reap(min, max, wait, done)
    }

    fn payload(&mut self, slot: u32) -> &mut [u8] {
        self.engine.payload(slot)
    }

    fn priority(&self, slot: u32) -> Option<u16> {
        self.of_slots[slot as usize]
    }
}
