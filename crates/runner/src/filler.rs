//! Contents of write buffers.

use fathom_engine::Engine;
use fathom_model::Request;
use fathom_model::plan::Payload;
use fathom_workload::{Rng, payload};

use crate::worker::WorkerSpec;

/// Fills write buffers.
pub(crate) struct Filler {
    way: Filling,
    /// Prepared data to restore a buffer after a read; empty if no read uses the buffers.
    prepared: Vec<u8>,
}

enum Filling {
    /// Prepared bytes with a stamp per sector.
    Stamp(payload::BlockStamp),
    /// Fresh random bytes.
    Refill(Rng),
    /// The data that the buffer contains already.
    Keep,
}

impl Filler {
    pub fn new(spec: &WorkerSpec) -> Self {
        let (pattern, seed) = (spec.source.pattern, spec.source.seed);
        let way = match spec.payload {
            Payload::Stamped => Filling::Stamp(payload::BlockStamp::new(seed)),
            Payload::Refill => Filling::Refill(Rng::stream(seed, 4)),
            Payload::Fixed | Payload::Zero => Filling::Keep,
        };
        let spoilt = pattern.reads() && pattern.writes() && spec.payload != Payload::Refill;
        let mut prepared = vec![0; if spoilt { spec.setup.max_block } else { 0 }];
        if spec.payload != Payload::Zero {
            payload::fill_random(&mut prepared, &mut Rng::stream(seed, 6));
        }
        Filler { way, prepared }
    }

    /// Fills the buffers of all slots before the first request.
    pub fn fill_buffers<E: Engine + ?Sized>(spec: &WorkerSpec, engine: &mut E) {
        if spec.source.pattern.writes() && spec.payload != Payload::Zero {
            let mut rng = Rng::stream(spec.source.seed, 5);
            (0..spec.depth.iodepth).for_each(|slot| payload::fill_random(engine.payload(slot), &mut rng));
        }
    }

    /// Fills the buffer of a write; `was_read` if the previous request of the slot was a read.
    #[inline]
    pub fn prepare<E>(&mut self, engine: &mut E, slot: u32, write: &Request, was_read: bool)
    where
        E: Engine + ?Sized,
    {
        let payload = engine.payload(slot);
        let len = payload.len().min(write.len as usize);
        self.fill(&mut payload[..len], was_read);
    }

    /// Fills a buffer; `was_read` if a read may have replaced its prepared data.
    #[inline]
    fn fill(&mut self, buffer: &mut [u8], was_read: bool) {
        if was_read && let Some(prepared) = self.prepared.get(..buffer.len()) {
            buffer.copy_from_slice(prepared);
        }
        match &mut self.way {
            Filling::Stamp(stamp) => stamp.apply(buffer),
            Filling::Refill(rng) => payload::fill_random(buffer, rng),
            Filling::Keep => {}
        }
    }
}
