//! Audit of every request and every completion: 10^8 requests in optimised builds, as in the gate, and fewer otherwise.

use super::*;

/// Requests of an audit: as many as in a long run in optimised builds.
const AUDITED: u64 = if cfg!(debug_assertions) { 200_000 } else { 100_000_000 };

/// The counts of an audit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    offered: u64,
    whole: u64,
    failed: u64,
    short: u64,
    in_flight: u64,
}

/// Checks that each block is offered once, and each slot from its request to its completion.
struct Audit {
    engine: Box<dyn Engine>,
    /// A bit for each block of the target.
    offered: Vec<u64>,
    /// A bit for each slot.
    in_flight: u64,
    /// The request of each slot.
    asked: [i64; 64],
    tally: Tally,
    shared_tally: Rc<Cell<Tally>>,
}

impl Audit {
    fn begin(&mut self, slot: u32, request: &Request) {
        assert_eq!(self.in_flight & 1 << slot, 0, "slot {slot} was offered while it was in flight");
        self.in_flight |= 1 << slot;
        self.asked[slot as usize] = i64::from(request.len);
        if u64::from(request.len) == BLOCK {
            let block = request.offset / BLOCK;
            let (word, bit) = (&mut self.offered[(block / 64) as usize], 1 << (block % 64));
            assert_eq!(*word & bit, 0, "block {block} was offered twice");
            *word |= bit;
            self.tally.offered += 1;
        }
    }

    fn end(&mut self, slot: u32, result: i64) {
        assert_ne!(self.in_flight & 1 << slot, 0, "slot {slot} completed without being in flight");
        self.in_flight &= !(1 << slot);
        match result {
            result if result == self.asked[slot as usize] => self.tally.whole += 1,
            ..0 => self.tally.failed += 1,
            _ => self.tally.short += 1,
        }
    }
}

impl Engine for Audit {
    fn queue(&mut self, slots: &[u32], requests: &[Request]) -> Queued {
        let queued = self.engine.queue(slots, requests);
        let taken = if let Queued::Accepted(count) = queued { count as usize } else { 1 };
        for &slot in &slots[..taken] {
            self.begin(slot, &requests[slot as usize]);
        }
        if let Queued::Done(result) = queued {
            self.end(slots[0], result);
        }
        queued
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
        let before = done.len();
        let reaped = self.engine.reap(min, max, wait, done)?;
        for &Completion { slot, result } in &done[before..] {
            self.end(slot, result);
        }
        Ok(reaped)
    }

    fn payload(&mut self, _: u32) -> &mut [u8] {
        &mut []
    }
}

impl Drop for Audit {
    fn drop(&mut self) {
        self.shared_tally.set(Tally { in_flight: self.in_flight, ..self.tally });
    }
}

/// Accepts, submits and completes requests in random parts and random order; some requests are short and some fail.
struct RandomOrderEngine {
    rng: Rng,
    accepted: VecDeque<Completion>,
    sent: Vec<Completion>,
}

impl RandomOrderEngine {
    fn part(&mut self, of: usize) -> usize {
        self.rng.below(of as u64 + 1) as usize
    }
}

impl Engine for RandomOrderEngine {
    fn queue(&mut self, slots: &[u32], requests: &[Request]) -> Queued {
        let count = self.part(slots.len());
        for &slot in &slots[..count] {
            let len = i64::from(requests[slot as usize].len);
            // The remainder of a short request completes, so that short requests complete in full.
            let result = match self.rng.below(1000) {
                0 if len == BLOCK as i64 => -5,
                1..5 if len == BLOCK as i64 => 512,
                _ => len,
            };
            self.accepted.push_back(Completion { slot, result });
        }
        Queued::Accepted(count as u32)
    }

    fn submit(&mut self) -> Result<u32, EngineError> {
        let count = self.part(self.accepted.len());
        self.sent.extend(self.accepted.drain(..count));
        Ok(count as u32)
    }

    fn reap(
        &mut self,
        _: u32,
        max: u32,
        _: Option<Nanos>,
        done: &mut Vec<Completion>,
    ) -> Result<Reaped, EngineError> {
        let count = self.part(self.sent.len().min(max as usize));
        for _ in 0..count {
            let any = self.rng.below(self.sent.len() as u64) as usize;
            done.push(self.sent.swap_remove(any));
        }
        Ok(Reaped::Some(count as u32))
    }

    fn payload(&mut self, _: u32) -> &mut [u8] {
        &mut []
    }
}

/// Random reads over `blocks` blocks, each once: every request is offered, completed and counted once.
fn audit(depth: DepthPlan, blocks: u64, engine: Box<dyn Engine>) -> Tally {
    let mut spec = spec(Mix::Read, depth.iodepth, blocks);
    spec.depth = depth;
    spec.source.pattern.random = true;
    spec.on_error = OnError { continue_read: true, continue_write: true, continue_verify: true };
    let is_synchronous = depth.iodepth == 1;
    spec.recorded = Recorded {
        slat: !is_synchronous,
        clat: true,
        lat: true,
        is_synchronous,
        scheduled: false,
        syncs: true,
    };
    let shared_tally = Rc::new(Cell::new(Tally::default()));
    let audit = Audit {
        engine,
        offered: vec![0; blocks.div_ceil(64) as usize],
        in_flight: 0,
        asked: [0; 64],
        tally: Tally::default(),
        shared_tally: shared_tally.clone(),
    };
    let (live, worker) = drive(&spec, Box::new(audit), RealClock::start());
    let free: BTreeSet<u32> = worker.slots.free.iter().copied().collect();
    assert_eq!(free.len(), worker.slots.free.len(), "a slot is free twice: {depth:?}");
    assert_eq!(free.len(), depth.iodepth as usize, "slots are missing: {depth:?}");
    assert_eq!((worker.slots.in_flight, live.in_flight.get()), (0, 0));
    drop(worker);
    let tally = shared_tally.get();
    let Tally { whole, failed, short, .. } = tally;
    assert_eq!(tally, Tally { offered: blocks, whole, failed, short, in_flight: 0 }, "{depth:?}");
    let phase = live.measured.read(0);
    let read = &phase.read;
    assert_eq!((read.issued, read.ios, read.failed, read.short), (blocks, whole, failed, short), "{depth:?}");
    assert_eq!((read.ios + read.failed, read.bytes), (blocks, whole * BLOCK), "{depth:?}");
    for latency in [&read.clat, &read.lat].into_iter().chain((!is_synchronous).then_some(&read.slat)) {
        assert_eq!((latency.moments.count, latency.histogram.samples()), (whole, whole), "{depth:?}");
    }
    assert_eq!(phase.depth.0.iter().sum::<u64>(), blocks, "{depth:?}");
    tally
}

fn null(depth: DepthPlan) -> Box<dyn Engine> {
    let setup = spec(Mix::Read, depth.iodepth, 1).setup;
    (registry::find("null").expect("it is registered").open)(setup).expect("it needs nothing")
}

#[test]
fn every_request_is_counted_once_at_depth_1() {
    let depth = DepthPlan::new(1);
    let requests = AUDITED / 10;
    let tally = audit(depth, requests, null(depth));
    assert_eq!(tally.whole, requests);
}

#[test]
fn every_request_is_counted_once_at_depth_64() {
    let depth = DepthPlan::batched(64, true, BLOCK);
    let tally = audit(depth, AUDITED, null(depth));
    assert_eq!(tally.whole, AUDITED);
}

#[test]
fn every_request_is_counted_once_in_odd_batches() {
    for depth in depths().into_iter().skip(1) {
        // Not a multiple of any batch.
        let blocks = AUDITED / 20 + 1;
        assert_eq!(audit(depth, blocks, null(depth)).whole, blocks);
        let unruly = RandomOrderEngine { rng: Rng::new(7), accepted: VecDeque::new(), sent: Vec::new() };
        let tally = audit(depth, blocks, Box::new(unruly));
        assert!(tally.failed > 0 && tally.short > 0, "{tally:?}");
    }
}
