//! The check of completed reads, and the change between writing and reading back.

use fathom_engine::Engine;
use fathom_model::{Op, Request};
use fathom_stats::WorkerFailure;

use super::Worker;
use crate::clock::Clock;
use crate::feed::Turned;
use crate::verifier::KnownSeed;

/// errno of wrong data (EILSEQ), as in fio.
const WRONG_DATA: i32 = 84;

impl<C: Clock, E: Engine + ?Sized> Worker<C, E> {
    /// Checks the reads among `slots.done` that are complete.
    #[inline(never)]
    pub(super) fn verify_done(&mut self) {
        if self.feed.reads_back() && !self.feed.is_reading_back() {
            return;
        }
        for index in 0..self.slots.done.len() {
            let done = self.slots.done[index];
            let request = self.slots.requests[done.slot as usize];
            if request.op == Op::Read && done.result == i64::from(request.len) {
                self.verify_read(done.slot, &request);
            }
        }
    }

    fn verify_read(&mut self, slot: u32, request: &Request) {
        let Worker { verifier, engine, feed, slots, .. } = self;
        let Some(verifier) = verifier else { return };
        let moved = slots.stamps[slot as usize].moved;
        let block = Request { offset: request.offset - u64::from(moved), ..*request };
        if feed.is_trimmed(&block) {
            if !verifier.check_trimmed(slot, request, engine.payload(slot)) {
                self.note_bad_block();
            }
            return;
        }
        let seed = match feed.seed_of(&block) {
            None => KnownSeed::None,
            Some(seed) if self.verifies_only => KnownSeed::OfEarlierRun(seed, feed.later_seed_of(&block)),
            Some(seed) => KnownSeed::OfThisRun(seed),
        };
        if !verifier.check(slot, request, engine.payload(slot), seed) {
            self.note_bad_block();
        }
    }

    /// Counts a bad block, and ends the worker unless it goes on after bad blocks.
    #[cold]
    fn note_bad_block(&mut self) {
        self.recorder.count_error(Op::Read, WRONG_DATA);
        let Some(verifier) = &self.verifier else { return };
        if !verifier.ends_at_first {
            return;
        }
        self.schedule.drain();
        if !self.recorder.goes_on_after_bad_blocks() {
            let message = verifier.first_problem();
            self.recorder.fail(|| WorkerFailure { errno: WRONG_DATA, message, ..WorkerFailure::default() });
        }
    }

    /// Goes on with writing or reading back. To be called when nothing is in flight.
    #[cold]
    pub(super) fn turn_round(&mut self) {
        let Some(verifier) = &self.verifier else { return };
        match self.feed.settle() {
            Turned::Nothing => {}
            Turned::ToReading => {
                self.recorder.phase().begin_read_back(self.now);
                verifier.settle_files();
                self.now = self.clock.now();
            }
            Turned::ToReadingEarlier { writes, bytes } => {
                // As in fio, which goes through the motions of writing.
                let counters = &self.recorder.phase().ops[Op::Write as usize];
                counters.issued.add(writes);
                counters.ios.add(writes);
                counters.bytes.add(bytes);
                self.recorder.phase().begin_read_back(self.now);
            }
            Turned::ToWriting => {
                self.recorder.phase().end_read_back(self.now);
                self.filler.begin_pass(self.feed.pass());
            }
        }
    }

    /// Finds what shows only when all blocks were read.
    pub(super) fn finish_verify(&mut self) {
        self.recorder.phase().end_read_back(self.now);
        let Some(verifier) = &mut self.verifier else { return };
        let writes = self.recorder.writes_done();
        // Slots beyond the depth, and those that had no request, have none of the last writes.
        let used = u64::from(self.batching.plan.iodepth).min(writes) as usize;
        let last = &self.slots.requests[..used.min(self.slots.requests.len())];
        verifier.save_state(writes, last);
        if verifier.finish() {
            self.note_bad_block();
        }
    }
}
