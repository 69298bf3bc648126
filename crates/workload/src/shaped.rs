//! Payloads that compress or repeat.

use std::ops::Range;

use fathom_model::plan::{Compressible, Dedupe, DedupeMode, ShapedPayload};

use crate::verify::PatternFiller;
use crate::{Rng, payload};

/// Replaces the compressible part of each chunk of `buffer`, its end, by the pattern or zeroes.
pub fn compress(buffer: &mut [u8], how: &Compressible) {
    let chunk = (how.chunk as usize).clamp(1, buffer.len().max(1));
    let mut pattern = how.pattern.as_ref().map(PatternFiller::new);
    for part in buffer.chunks_mut(chunk) {
        let random = part.len() * usize::from(100 - how.percent.min(100)) / 100;
        match &mut pattern {
            Some(pattern) => pattern.fill(&mut part[random..], 0),
            None => part[random..].fill(0),
        }
    }
}

/// Fills writes with random data of which parts compress or repeat.
#[derive(Clone, Debug)]
pub struct ShapedFiller {
    shape: ShapedPayload,
    /// Decides which writes repeat, and which block of the working set they repeat.
    choices: Rng,
    /// Seeds of new data.
    seeds: Rng,
    /// Seed of the last write.
    last: u64,
    /// Seeds of the working set.
    set: Range<u64>,
}

/// Start of the seeds of a working set that all workers share.
const GLOBAL_SET: u64 = 0x6469_7370;

impl ShapedFiller {
    /// The filler of the worker with this seed, over a range of `blocks` blocks.
    pub fn new(shape: &ShapedPayload, seed: u64, blocks: u64) -> Self {
        let set = match shape.dedupe {
            Some(Dedupe { mode: DedupeMode::WorkingSet { percent, is_global }, .. }) => {
                let count = (u128::from(blocks) * u128::from(percent) / 100).max(1) as u64;
                let first = if is_global { GLOBAL_SET } else { Rng::stream(seed, 9).next_u64() >> 1 };
                first..first.saturating_add(count)
            }
            _ => 0..0,
        };
        ShapedFiller {
            shape: shape.clone(),
            choices: Rng::stream(seed, 7),
            seeds: Rng::stream(seed, 8),
            last: 0,
            set,
        }
    }

    /// Fills `buffer`.
    pub fn fill(&mut self, buffer: &mut [u8]) {
        let repeats =
            self.shape.dedupe.is_some_and(|dedupe| self.choices.below(100) < u64::from(dedupe.percent));
        let seed = match () {
            () if repeats && !self.set.is_empty() => {
                self.set.start + self.choices.below(self.set.end - self.set.start)
            }
            () if repeats && self.last != 0 => self.last,
            () => self.seeds.next_u64() | 1 << 63,
        };
        self.last = seed;
        payload::fill_random(buffer, &mut Rng::new(seed));
        if let Some(how) = &self.shape.compressible {
            compress(buffer, how);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn blocks(shape: ShapedPayload, count: usize) -> Vec<Vec<u8>> {
        let mut filler = ShapedFiller::new(&shape, 5, 1000);
        (0..count)
            .map(|_| {
                let mut block = vec![1; 4096];
                filler.fill(&mut block);
                block
            })
            .collect()
    }

    #[test]
    fn the_given_share_of_each_chunk_is_zero() {
        for (percent, chunk, zeroes) in
            [(25, 512, 1024), (50, 4096, 2048), (100, 512, 4096), (60, 1000, 2460)]
        {
            let compressible = Some(Compressible { percent, chunk, pattern: None });
            for block in blocks(ShapedPayload { compressible, dedupe: None }, 20) {
                let found = block.iter().filter(|&&byte| byte == 0).count();
                assert!(found.abs_diff(zeroes) < 40, "{percent} % of {chunk}: {found} of 4096");
            }
        }
    }

    #[test]
    fn the_given_share_of_writes_repeats() {
        let dedupe = |mode| ShapedPayload { compressible: None, dedupe: Some(Dedupe { percent: 40, mode }) };
        let all = blocks(dedupe(DedupeMode::Repeat), 2000);
        let repeated = all.windows(2).filter(|pair| pair[0] == pair[1]).count();
        assert!((700..900).contains(&repeated), "{repeated} of 2000");
        let set = DedupeMode::WorkingSet { percent: 5, is_global: false };
        let mut counts: HashMap<Vec<u8>, usize> = HashMap::new();
        for block in blocks(dedupe(set), 2000) {
            *counts.entry(block).or_default() += 1;
        }
        let shared = counts.values().filter(|&&count| count > 1).sum::<usize>();
        assert!((650..950).contains(&shared), "{shared} of 2000 are in the set");
        assert!(counts.len() >= 1000 && counts.len() <= 1300, "{}", counts.len());
    }
}
