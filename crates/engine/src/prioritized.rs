//! Priorities of single requests, for the engines whose requests can have one.

use fathom_model::plan::RequestPriorities;
use fathom_model::{Nanos, Op, Request};

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

/// Numbers below 100, each as likely as the others, and the same in every run.
#[derive(Debug, Default)]
struct Draws {
    /// Numbers drawn.
    count: u64,
}

impl Draws {
    /// The next number: bits of the count, mixed by multiplications and shifts.
    fn next(&mut self) -> u8 {
        self.count += 1;
        let mut bits = self.count.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for _ in 0..2 {
            bits = (bits ^ bits >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
        }
        ((u128::from(bits ^ bits >> 32) * 100) >> 64) as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_below_a_hundred_and_equally_likely() {
        let mut draws = Draws::default();
        let mut counts = [0_u32; 100];
        (0..100_000).for_each(|_| counts[draws.next() as usize] += 1);
        // A thousand each, within five standard deviations.
        assert!(counts.iter().all(|count| count.abs_diff(1_000) < 160), "{counts:?}");
    }
}
