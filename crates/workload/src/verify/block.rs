//! Writing blocks and checking them.

use fathom_model::plan::{Compressible, VerifyMethod, VerifyPlan};

use super::header::number_of;
use super::seeded::{fill_seeded, is_changed};
use super::{Digest, Finding, Header, HeaderError, Mismatch, PatternFiller, WrongChecksum, pattern_differs};
use crate::shaped::compress;

/// Tells the writes of one worker apart: by file, offset and generation, which is the pass, or the number of the write
/// where one pass may write a block more than once.
#[derive(Clone, Copy, Debug)]
pub struct Generation {
    base: u64,
}

impl Generation {
    /// Of the worker with this seed.
    pub fn new(seed: u64) -> Self {
        Generation { base: mix(seed ^ 0x7645_7269_6679) }
    }

    /// The seed of the data of a write.
    #[inline]
    pub fn seed(&self, file: u32, offset: u64, generation: u64) -> u64 {
        let place = mix(self.base ^ offset ^ u64::from(file) << 48);
        mix(place ^ generation.wrapping_mul(0x9e37_79b9_7f4a_7c15)) | 1
    }
}

#[inline]
fn mix(value: u64) -> u64 {
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

/// Bytes between two headers of a block of `len` bytes: one header, unless the interval divides the block.
fn interval_of(plan: &VerifyPlan, len: usize) -> usize {
    let interval = plan.interval as usize;
    if interval == 0 || interval > len || !len.is_multiple_of(interval) { len.max(1) } else { interval }
}

/// Exchanges the header at the start of `part` with the bytes at its place.
fn exchange(part: &mut [u8], header: usize, place: usize) {
    if place >= header
        && let Some((before, after)) = part.split_at_mut_checked(place)
        && after.len() >= header
    {
        before[..header].swap_with_slice(&mut after[..header]);
    }
}

/// Fills blocks that can be checked.
#[derive(Clone, Debug)]
pub struct BlockWriter {
    plan: VerifyPlan,
    pattern: Option<PatternFiller>,
    compressible: Option<Compressible>,
    worker: u16,
    written: u64,
}

impl BlockWriter {
    /// The writer of worker number `worker`.
    pub fn new(plan: &VerifyPlan, compressible: Option<&Compressible>, worker: u16) -> Self {
        BlockWriter {
            pattern: plan.pattern.as_ref().map(PatternFiller::new),
            plan: plan.clone(),
            compressible: compressible.cloned(),
            worker,
            written: 0,
        }
    }

    /// Number of the next write.
    #[inline]
    pub fn number(&self) -> u64 {
        self.written
    }

    /// Fills `block`, which is written at `offset`, with the data of `seed` and headers.
    #[inline]
    pub fn write(&mut self, block: &mut [u8], offset: u64, seed: u64) {
        let number = self.written as u16;
        self.written += 1;
        self.fill(block, offset, seed, number);
    }

    fn fill(&mut self, block: &mut [u8], offset: u64, seed: u64, number: u16) {
        match &mut self.pattern {
            Some(pattern) => pattern.fill(block, offset),
            None => fill_seeded(block, seed),
        }
        if let Some(compressible) =
            self.compressible.as_ref().filter(|_| !self.plan.method.compares_pattern())
        {
            compress(block, compressible);
        }
        if !self.plan.method.has_header() {
            return;
        }
        let header = Header {
            method: number_of(self.plan.method),
            len: 0,
            seed,
            offset: 0,
            seconds: 0,
            nanoseconds: 0,
            worker: self.worker,
            number,
        };
        let mut at = offset;
        for part in block.chunks_mut(interval_of(&self.plan, block.len())) {
            let header = Header { len: part.len() as u32, offset: at, ..header };
            at += part.len() as u64;
            self.stamp(part, header);
        }
    }

    #[inline]
    fn stamp(&self, part: &mut [u8], header: Header) {
        let len = self.plan.method.header_len();
        let Some((head, data)) = part.split_at_mut_checked(len) else { return };
        let digest = Digest::new(self.plan.method, data);
        head[..Header::LEN].copy_from_slice(&header.to_bytes());
        head[Header::LEN..].copy_from_slice(digest.bytes());
        exchange(part, len, self.plan.offset as usize);
    }

    /// What a block read at `offset` should contain: the data of `seed`, or of the seed in the header of `received`.
    pub fn expected(&mut self, received: &[u8], offset: u64, seed: Option<u64>) -> Vec<u8> {
        let place = self.plan.offset as usize;
        let stored = received.get(place..).and_then(|bytes| Header::fields(bytes).ok());
        let (seed, number) = match (seed, stored) {
            (Some(seed), Some(header)) => (seed, header.number),
            (Some(seed), None) => (seed, 0),
            (None, Some(header)) => (header.seed, header.number),
            (None, None) => (0, 0),
        };
        let mut block = vec![0; received.len()];
        self.fill(&mut block, offset, seed, number);
        block
    }
}

/// Checks blocks.
#[derive(Clone, Debug)]
pub struct BlockCheck {
    plan: VerifyPlan,
    pattern: Option<PatternFiller>,
    /// The pattern of the block under test.
    wanted: Vec<u8>,
    /// Data without a pattern is that of the header's seed, unless it compresses.
    is_seeded: bool,
}

impl BlockCheck {
    /// The check of blocks of up to `largest` bytes; `shaped` if a part of their data may not be that of their seed.
    pub fn new(plan: &VerifyPlan, largest: usize, shaped: bool) -> Self {
        let pattern = plan.pattern.as_ref().filter(|_| plan.method.compares_pattern());
        BlockCheck {
            pattern: pattern.map(PatternFiller::new),
            wanted: vec![0; if pattern.is_some() { largest } else { 0 }],
            is_seeded: plan.pattern.is_none() && !shaped,
            plan: plan.clone(),
        }
    }

    /// Checks `block`, which was read at `offset` and should have the data of `seed`, if that is known, and adds what is
    /// wrong to `findings`. The block is the same afterwards.
    #[inline]
    pub fn check(&mut self, block: &mut [u8], offset: u64, seed: Option<u64>, findings: &mut Vec<Finding>) {
        if self.plan.method == VerifyMethod::Null {
            return;
        }
        let interval = interval_of(&self.plan, block.len());
        if let Some(pattern) = &mut self.pattern
            && let Some(wanted) = self.wanted.get_mut(..block.len())
        {
            pattern.fill(wanted, offset);
        }
        if !self.plan.method.has_header() {
            let (at, len) = (0, block.len() as u32);
            findings.extend(self.compare_pattern(block, 0).map(|mismatch| Finding { at, len, mismatch }));
            return;
        }
        let (header, place) = (self.plan.method.header_len(), self.plan.offset as usize);
        let mut at = 0;
        for part in block.chunks_mut(interval) {
            exchange(part, header, place);
            let mismatch = self.check_part(part, at, offset + at as u64, seed);
            exchange(part, header, place);
            if let Some(mismatch) = mismatch {
                findings.push(Finding { at: at as u32, len: part.len() as u32, mismatch });
                if self.plan.fatal {
                    return;
                }
            }
            at += part.len();
        }
    }

    #[inline]
    fn check_part(&self, part: &[u8], at: usize, offset: u64, seed: Option<u64>) -> Option<Mismatch> {
        let header = match Header::fields(part) {
            Ok(header) => header,
            Err(HeaderError::Magic(found)) => return Some(Mismatch::Magic { found }),
            Err(_) => return Some(Mismatch::Length { found: 0, wanted: part.len() as u32 }),
        };
        if header.len as usize != part.len() {
            return Some(Mismatch::Length { found: header.len, wanted: part.len() as u32 });
        }
        if header.offset != offset {
            return Some(Mismatch::Offset { found: header.offset, wanted: offset });
        }
        if let Err(HeaderError::Checksum { stored, calculated }) = Header::check(part) {
            if let Some(found) = Header::later_version(part) {
                return Some(Mismatch::Version { found });
            }
            return Some(Mismatch::HeaderChecksum { found: stored, calculated });
        }
        if let Some(wanted) = seed.filter(|&wanted| wanted != header.seed) {
            return Some(Mismatch::Seed { found: header.seed, wanted });
        }
        self.check_data(part, at, &header)
    }

    #[inline]
    fn check_data(&self, part: &[u8], at: usize, header: &Header) -> Option<Mismatch> {
        let method = self.plan.method;
        let (head, data) = part.split_at_checked(method.header_len())?;
        let received = Digest::new(method, data);
        if *received.bytes() != head[Header::LEN..] {
            let other_method = (header.method != number_of(method)).then_some(header.method);
            let expected = Digest::stored(method, &head[Header::LEN..]);
            return Some(Mismatch::Checksum(Box::new(WrongChecksum { expected, received, other_method })));
        }
        let from = at + head.len();
        // fio's form of SHA-512 covers the first and the last bytes alone.
        if method == VerifyMethod::Sha512 && self.is_seeded && is_changed(data, from, header.seed) {
            return Some(Mismatch::Data);
        }
        self.compare_pattern(data, from)
    }

    /// Compares `data`, which begins at `from` of the block, with the pattern.
    fn compare_pattern(&self, data: &[u8], from: usize) -> Option<Mismatch> {
        let wanted = self.wanted.get(from..from + data.len())?;
        let at = pattern_differs(data, wanted)?;
        Some(Mismatch::Pattern { at: at as u32, found: data[at], wanted: wanted[at] })
    }
}

#[cfg(test)]
#[path = "block_tests.rs"]
mod tests;
