//! Response times of requests under a rate, from the due time of each.

use fathom_engine::Completion;
use fathom_stats::Offered;
use fathom_stats::live::LivePhase;

use crate::slots::Slots;

/// Whether a slot is free for another request.
#[derive(Clone, Copy, Debug)]
enum Room {
    /// A slot has been free since then, session ns.
    Since(u64),
    /// All slots are in flight.
    None,
}

/// The requests of a schedule that are in flight.
#[derive(Debug)]
pub(crate) struct Responses {
    /// Per slot: when its request was due, and when it was due and a slot was free; `None` for requests without a due
    /// time.
    awaited: Box<[Option<(u64, u64)>]>,
    room: Room,
}

impl Responses {
    pub fn new(depth: u32) -> Self {
        Responses { awaited: vec![None; depth as usize].into_boxed_slice(), room: Room::None }
    }

    /// The schedule begins at `now`, with nothing in flight.
    pub fn begin(&mut self, now: u64) {
        self.room = Room::Since(now);
    }

    /// Records at `now` whether another request could be issued.
    pub fn note_free_slots(&mut self, has_room: bool, now: u64) {
        self.room = match (has_room, self.room) {
            (false, _) => Room::None,
            (true, Room::None) => Room::Since(now),
            (true, since) => since,
        };
    }

    /// Awaits the request in `slot`, which was due at `due`.
    pub fn await_response(&mut self, slot: u32, due: u64) {
        let Room::Since(since) = self.room else { unreachable!("there was room for the request") };
        self.awaited[slot as usize] = Some((due, due.max(since)));
    }

    /// Records `slots.done` as completed at `now`. The remainder of a short request is still awaited.
    pub fn record(&mut self, slots: &Slots, now: u64, phase: &LivePhase) {
        for &Completion { slot, result } in &slots.done {
            let request = &slots.requests[slot as usize];
            if (1..i64::from(request.len)).contains(&result) {
                continue;
            }
            let Some((due, ready)) = self.awaited[slot as usize].take() else { continue };
            let counted = phase.ops.get(request.op as usize).and_then(|op| op.open_loop.as_ref());
            if let Some(counted) = counted.filter(|_| result == i64::from(request.len)) {
                let start = slots.stamps[slot as usize].start;
                counted.complete(&Offered { due, ready, start, completed: now });
            }
        }
    }
}
