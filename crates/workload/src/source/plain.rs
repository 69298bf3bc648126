//! Requests drawn in batches, for sources whose requests all have one size, draw from one entry of one file, and have
//! no syncs or other operations between them.

use fathom_model::plan::Mix;
use fathom_model::{BlockSize, Op, Request};

use super::SourcePlan;
use super::stream::Stream;
use super::uniform::Uniform;

impl Stream<Uniform> {
    /// Draws requests of a plain source, up to the end of its loop or of its last pass.
    #[inline(always)]
    pub(super) fn next_plain(&mut self, most: u64, each: &mut impl FnMut(Request)) -> u64 {
        let op = self.plain_op();
        let size = self.placement.block_size[op as usize];
        let whole = size.saturating_mul(most) <= self.bytes_left;
        let most = if whole { most } else { self.bytes_left.div_ceil(size) };
        let mut made = self.draw_plain(op, most, each);
        if made < most && self.wraps {
            made += self.wrap_plain(op, most - made, each);
        }
        self.bytes_left = self.bytes_left.saturating_sub(made * size);
        made
    }

    /// Draws requests of a plain source from the current pass.
    #[inline(always)]
    fn draw_plain(&mut self, op: Op, most: u64, each: &mut impl FnMut(Request)) -> u64 {
        let size = self.placement.block_size[op as usize];
        let Some(file) = self.placement.files.first_mut() else { return 0 };
        let Some(offsets) = &mut file.offsets[self.placement.shared[op as usize]] else { return 0 };
        let (base, len) = (file.base, size as u32);
        let at = |op, block| Request { op, file: 0, len, offset: base + block * size };
        let rng = &mut self.placement.offset_rng;
        if let Mix::ReadWrite { .. } = self.mix {
            return offsets.next_blocks(most, rng, |block| {
                let op = if self.share.next_is_read(&mut self.op_rng) { Op::Read } else { Op::Write };
                each(at(op, block));
            });
        }
        offsets.next_blocks(most, rng, |block| each(at(op, block)))
    }

    /// Draws requests of a plain source from new passes.
    #[cold]
    fn wrap_plain(&mut self, op: Op, most: u64, each: &mut impl FnMut(Request)) -> u64 {
        let entry = self.placement.shared[op as usize];
        let mut made = 0;
        while made < most {
            self.placement.wrap(entry);
            let drawn = self.draw_plain(op, most - made, each);
            if drawn == 0 {
                break;
            }
            made += drawn;
        }
        made
    }

    /// The operation whose size and offsets a plain source uses.
    #[inline(always)]
    fn plain_op(&self) -> Op {
        match self.mix {
            Mix::Read => Op::Read,
            Mix::Trim => Op::Trim,
            _ => Op::Write,
        }
    }
}

/// True if every request draws from the same entry of the only file, and none makes another one due.
pub(super) fn is_plain(plan: &SourcePlan, shared: [usize; 3]) -> bool {
    let one_entry = match plan.pattern.mix {
        Mix::Read | Mix::Write | Mix::Trim => true,
        Mix::ReadWrite { .. } => shared[0] == shared[1],
        Mix::TrimWrite | Mix::ReadWriteTrim => false,
    };
    let one_size = plan.block_size.iter().all(|(_, size)| matches!(size, BlockSize::Fixed(_)));
    one_entry && one_size && plan.extents.len() == 1 && plan.fsync_every == 0 && plan.fdatasync_every == 0
}
