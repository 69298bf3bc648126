//! Contents of write buffers.

use fathom_engine::Engine;
use fathom_model::Request;
use fathom_model::plan::{Compressible, Payload};
use fathom_workload::shaped::ShapedFiller;
use fathom_workload::verify::{BlockWriter, Generation, PatternFiller};
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
    /// Other kinds of data.
    Other(Box<OtherFilling>),
}

/// Data that takes longer to make.
enum OtherFilling {
    Pattern(PatternFiller),
    Shaped(ShapedFiller),
    /// Blocks that can be checked.
    Checked(CheckedFilling),
}

/// Makes blocks that can be checked.
struct CheckedFilling {
    blocks: BlockWriter,
    generation: Generation,
    /// `None` where the number of a write tells it apart.
    pass: Option<u64>,
}

impl OtherFilling {
    fn of(spec: &WorkerSpec) -> Option<Self> {
        if let Some(verify) = &spec.verify {
            return Some(OtherFilling::Checked(CheckedFilling {
                blocks: BlockWriter::new(&verify.plan, compressible(spec), verify.worker),
                generation: Generation::new(spec.source.seed),
                pass: (!spec.numbers_writes()).then_some(0),
            }));
        }
        match &spec.payload {
            Payload::Pattern(pattern) => Some(OtherFilling::Pattern(PatternFiller::new(pattern))),
            Payload::Shaped(shape) => {
                let blocks = spec.source.extents.iter().map(|extent| extent.len).sum::<u64>();
                let blocks = blocks / (spec.setup.max_block as u64).max(1);
                Some(OtherFilling::Shaped(ShapedFiller::new(shape, spec.source.seed, blocks)))
            }
            Payload::Stamped | Payload::Fixed | Payload::Refill | Payload::Zero => None,
        }
    }

    fn fill(&mut self, buffer: &mut [u8], write: &Request) {
        match self {
            OtherFilling::Pattern(pattern) => pattern.fill(buffer, write.offset),
            OtherFilling::Shaped(shaped) => shaped.fill(buffer),
            OtherFilling::Checked(CheckedFilling { blocks, generation, pass }) => {
                let number = pass.unwrap_or(blocks.number());
                blocks.write(buffer, write.offset, generation.seed(write.file, write.offset, number));
            }
        }
    }
}

/// The compressible part of the data of a job.
pub(crate) fn compressible(spec: &WorkerSpec) -> Option<&Compressible> {
    match &spec.payload {
        Payload::Shaped(shape) => shape.compressible.as_ref(),
        _ => None,
    }
}

impl Filler {
    pub fn new(spec: &WorkerSpec) -> Self {
        let (pattern, seed) = (spec.source.pattern, spec.source.seed);
        let way = match (OtherFilling::of(spec), &spec.payload) {
            (Some(other), _) => Filling::Other(Box::new(other)),
            (None, Payload::Stamped) => Filling::Stamp(payload::BlockStamp::new(seed)),
            (None, Payload::Refill) => Filling::Refill(Rng::stream(seed, 4)),
            (None, _) => Filling::Keep,
        };
        let is_kept = matches!(way, Filling::Stamp(_) | Filling::Keep);
        let spoilt = pattern.reads() && pattern.writes() && is_kept;
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
        if let Filling::Other(other) = &mut self.way {
            return other.fill(&mut payload[..len], write);
        }
        self.fill(&mut payload[..len], was_read);
    }

    /// Begins pass `pass` of a job whose blocks are read back.
    pub fn begin_pass(&mut self, pass: u64) {
        if let Filling::Other(other) = &mut self.way
            && let OtherFilling::Checked(CheckedFilling { pass: current @ Some(_), .. }) = other.as_mut()
        {
            *current = Some(pass);
        }
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
            Filling::Keep | Filling::Other(_) => {}
        }
    }
}
