//! Patterns that fill blocks.

use fathom_model::plan::FillPattern;

/// Fills buffers with a pattern.
#[derive(Clone, Debug)]
pub struct PatternFiller {
    pattern: FillPattern,
    /// One repetition, with the offset of the place that is being filled.
    once: Vec<u8>,
}

impl PatternFiller {
    /// A filler of `pattern`.
    pub fn new(pattern: &FillPattern) -> Self {
        PatternFiller { once: pattern.bytes.clone(), pattern: pattern.clone() }
    }

    /// Fills `buffer`, the block at `offset` of its file.
    pub fn fill(&mut self, buffer: &mut [u8], offset: u64) {
        let interval = match self.pattern.interval as usize {
            0 => buffer.len().max(1),
            bytes => bytes,
        };
        let mut at = offset;
        for part in buffer.chunks_mut(interval) {
            self.place(at);
            repeat(part, &self.once);
            at += part.len() as u64;
        }
    }

    /// Puts `offset` where the pattern has it.
    fn place(&mut self, offset: u64) {
        for &position in &self.pattern.offsets {
            if let Some(bytes) = self.once.get_mut(position..position + 8) {
                bytes.copy_from_slice(&offset.to_le_bytes());
            }
        }
    }
}

/// Fills `buffer` with copies of `once`.
fn repeat(buffer: &mut [u8], once: &[u8]) {
    let mut filled = once.len().min(buffer.len());
    buffer[..filled].copy_from_slice(&once[..filled]);
    while filled > 0 && filled < buffer.len() {
        let more = filled.min(buffer.len() - filled);
        buffer.copy_within(..more, filled);
        filled += more;
    }
}

/// The first position at which `found` and `wanted` differ.
pub fn pattern_differs(found: &[u8], wanted: &[u8]) -> Option<usize> {
    if found == wanted {
        return None;
    }
    found.iter().zip(wanted).position(|(found, wanted)| found != wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(pattern: FillPattern, len: usize, offset: u64) -> Vec<u8> {
        let mut buffer = vec![0xee; len];
        PatternFiller::new(&pattern).fill(&mut buffer, offset);
        buffer
    }

    #[test]
    fn a_pattern_repeats_from_the_start_of_the_block() {
        let pattern = FillPattern { bytes: b"abc".to_vec(), ..FillPattern::default() };
        assert_eq!(filled(pattern.clone(), 8, 4096), b"abcabcab");
        assert_eq!(filled(pattern.clone(), 2, 0), b"ab");
        assert_eq!(filled(pattern, 0, 0), b"");
    }

    #[test]
    fn offsets_are_those_of_the_block_or_of_the_interval() {
        let pattern = FillPattern { bytes: b"x\0\0\0\0\0\0\0\0".to_vec(), offsets: vec![1], interval: 0 };
        let block = filled(pattern.clone(), 18, 0x1000);
        assert_eq!(block, *b"x\0\x10\0\0\0\0\0\0x\0\x10\0\0\0\0\0\0");
        let block = filled(FillPattern { interval: 512, ..pattern }, 1024, 0x1000);
        assert_eq!((&block[..3], &block[512..515]), (&b"x\0\x10"[..], &b"x\0\x12"[..]));
    }

    #[test]
    fn the_first_difference_is_found() {
        assert_eq!(pattern_differs(b"abc", b"abc"), None);
        assert_eq!(pattern_differs(b"abc", b"axx"), Some(1));
    }
}
