//! Block sizes of an operation: one size, a range of sizes, or a mix of sizes in fixed shares.
//!
//! `fathom-workload` decides which request gets which size; this module only states the shares.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Bytes per request of one operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BlockSize {
    /// The same size for every request.
    #[serde(rename = "bytes")]
    Fixed(u64),
    /// A mix of at least two sizes.
    #[serde(rename = "bssplit")]
    Split(BlockSplit),
    /// Any size of a range, each with the same probability.
    #[serde(rename = "bsrange")]
    Range(BlockRange),
}

/// The sizes between two bounds that are multiples of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "(u64, u64, u64)", into = "(u64, u64, u64)")]
pub struct BlockRange {
    min: u64,
    max: u64,
    step: u64,
}

impl TryFrom<(u64, u64, u64)> for BlockRange {
    type Error = &'static str;

    fn try_from((min, max, step): (u64, u64, u64)) -> Result<Self, Self::Error> {
        if step == 0 || min < step || max <= min || max > u64::MAX / 2 {
            return Err("a range of block sizes needs two sizes and a step within them");
        }
        Ok(BlockRange { min, max, step })
    }
}

impl From<BlockRange> for (u64, u64, u64) {
    fn from(range: BlockRange) -> Self {
        (range.min, range.max, range.step)
    }
}

impl BlockRange {
    /// Sizes per sample of a range.
    const SAMPLE: u64 = 1024;

    /// The bounds, in bytes.
    pub fn bounds(&self) -> (u64, u64) {
        (self.min, self.max)
    }

    /// Sizes are multiples of this; 1 = any.
    pub fn step(&self) -> u64 {
        self.step
    }

    /// The size below which a share of the requests lies, given in parts of 2^64. As in fio, the largest size is as
    /// likely as any other only if it is a multiple of the smallest.
    pub fn quantile(&self, share: u64) -> u64 {
        let drawn = self.min + ((u128::from(share) * u128::from(self.max)) >> 64) as u64;
        (drawn - drawn % self.step).min(self.max)
    }

    /// Sizes that represent the range, ascending, all with the same share.
    pub fn sample(&self) -> impl Iterator<Item = u64> + '_ {
        let part = u64::MAX / Self::SAMPLE;
        (0..Self::SAMPLE).map(move |index| self.quantile(part * index + part / 2))
    }
}

/// Several sizes, and the percentage of requests that have each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<(u64, u8)>", into = "Vec<(u64, u8)>")]
pub struct BlockSplit {
    /// Bytes and percent: ascending, each size once and a multiple of the first, no share 0, 100 in total.
    shares: Vec<(u64, u8)>,
}

impl Default for BlockSize {
    fn default() -> Self {
        BlockSize::Fixed(0)
    }
}

impl TryFrom<Vec<(u64, u8)>> for BlockSplit {
    type Error = &'static str;

    fn try_from(shares: Vec<(u64, u8)>) -> Result<Self, Self::Error> {
        match BlockSize::of_shares(&shares) {
            Some(BlockSize::Split(split)) => Ok(split),
            _ => Err("a mix of block sizes needs at least two sizes, and shares that add up to 100 %"),
        }
    }
}

impl From<BlockSplit> for Vec<(u64, u8)> {
    fn from(split: BlockSplit) -> Self {
        split.shares
    }
}

impl From<u64> for BlockSize {
    fn from(bytes: u64) -> Self {
        BlockSize::Fixed(bytes)
    }
}

impl BlockSize {
    /// The mix of these sizes and percentages, or a fixed size if there is only one. `None` if the percentages do not
    /// add up to 100, if one is 0, or if a size is not a multiple of the smallest.
    pub fn of_shares(shares: &[(u64, u8)]) -> Option<BlockSize> {
        let mut sorted: Vec<(u64, u8)> = Vec::with_capacity(shares.len());
        let mut ascending = shares.to_vec();
        ascending.sort_unstable();
        for (size, percent) in ascending {
            match sorted.last_mut() {
                Some((last, share)) if *last == size => *share = share.checked_add(percent)?,
                _ => sorted.push((size, percent)),
            }
        }
        let &(smallest, _) = sorted.first()?;
        let total: u32 = sorted.iter().map(|&(_, percent)| u32::from(percent)).sum();
        let is_whole = |&(size, percent): &(u64, u8)| percent > 0 && size.is_multiple_of(smallest);
        if smallest == 0 || total != 100 || !sorted.iter().all(is_whole) {
            return None;
        }
        Some(match sorted.len() {
            1 => BlockSize::Fixed(smallest),
            _ => BlockSize::Split(BlockSplit { shares: sorted }),
        })
    }

    /// The sizes from `min` to `max`, multiples of `min` unless `unaligned`; a fixed size if both are equal. `None` if the
    /// bounds make no range.
    pub fn of_range(min: u64, max: u64, unaligned: bool) -> Option<BlockSize> {
        if min == max && min > 0 {
            return Some(BlockSize::Fixed(min));
        }
        BlockRange::try_from((min, max, if unaligned { 1 } else { min })).ok().map(BlockSize::Range)
    }

    /// Sizes in bytes with their shares of the requests, 1 in total.
    pub fn shares(&self) -> Vec<(u64, f64)> {
        match self {
            BlockSize::Fixed(size) => vec![(*size, 1.0)],
            BlockSize::Split(split) => {
                split.shares.iter().map(|&(size, percent)| (size, f64::from(percent) / 100.0)).collect()
            }
            BlockSize::Range(range) => {
                let mut shares: Vec<(u64, f64)> = Vec::new();
                for size in range.sample() {
                    match shares.last_mut() {
                        Some((last, share)) if *last == size => *share += 1.0 / BlockRange::SAMPLE as f64,
                        _ => shares.push((size, 1.0 / BlockRange::SAMPLE as f64)),
                    }
                }
                shares
            }
        }
    }

    /// The smallest block; offsets are multiples of it from the start of the range.
    pub fn smallest(&self) -> u64 {
        match self {
            BlockSize::Fixed(size) => *size,
            BlockSize::Split(split) => split.shares.first().map_or(0, |&(size, _)| size),
            BlockSize::Range(range) => range.min,
        }
    }

    /// The largest block.
    pub fn largest(&self) -> u64 {
        match self {
            BlockSize::Fixed(size) => *size,
            BlockSize::Split(split) => split.shares.last().map_or(0, |&(size, _)| size),
            BlockSize::Range(range) => range.max,
        }
    }

    /// Bytes that 100 requests move.
    pub fn bytes_of_hundred(&self) -> u64 {
        match self {
            BlockSize::Fixed(size) => size.saturating_mul(100),
            BlockSize::Split(split) => {
                split.shares.iter().map(|&(size, share)| size * u64::from(share)).sum()
            }
            BlockSize::Range(range) => {
                let sum: u128 = range.sample().map(u128::from).sum();
                u64::try_from(sum * 100 / u128::from(BlockRange::SAMPLE)).unwrap_or(u64::MAX)
            }
        }
    }
}

impl BlockSplit {
    /// Bytes and percent, ascending.
    pub fn shares(&self) -> &[(u64, u8)] {
        &self.shares
    }
}

/// As the values of fio's `bs`, `bssplit` and `bsrange` are written, in bytes.
impl fmt::Display for BlockSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BlockSize::Fixed(size) => write!(f, "{size}"),
            BlockSize::Split(split) => write!(f, "{split}"),
            BlockSize::Range(range) => write!(f, "{}-{}", range.min, range.max),
        }
    }
}

/// As fio's `bssplit` is written, sizes in bytes: `4096/60:8192/40`.
impl fmt::Display for BlockSplit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (size, percent)) in self.shares.iter().enumerate() {
            write!(f, "{}{size}/{percent}", if i > 0 { ":" } else { "" })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_make_a_size_or_a_mix() {
        let check = |shares: &[(u64, u8)], expected: Option<&str>| {
            let text = BlockSize::of_shares(shares).map(|size| size.to_string());
            assert_eq!(text.as_deref(), expected, "{shares:?}");
        };
        check(&[(4096, 100)], Some("4096"));
        check(&[(4096, 50), (4096, 50)], Some("4096"));
        check(&[(8192, 40), (4096, 60)], Some("4096/60:8192/40"));
        check(&[(8192, 40), (4096, 30), (4096, 30)], Some("4096/60:8192/40"));
        check(&[], None);
        check(&[(0, 100)], None);
        check(&[(4096, 60), (8192, 41)], None);
        check(&[(4096, 100), (8192, 0)], None);
        check(&[(4096, 50), (6144, 50)], None);
        check(&[(4096, 200), (4096, 156)], None);
    }

    #[test]
    fn a_range_has_every_multiple_of_its_smallest_size() {
        let check = |bounds: (u64, u64), unaligned, expected: &[(u64, f64)]| {
            let shares = BlockSize::of_range(bounds.0, bounds.1, unaligned).unwrap().shares();
            assert_eq!(shares, expected, "{bounds:?}");
        };
        check((4096, 16384), false, &[(4096, 0.25), (8192, 0.25), (12288, 0.25), (16384, 0.25)]);
        // Drawn from 4 to below 10 KiB and rounded down; a size above the largest becomes the largest.
        let shares = BlockSize::of_range(4096, 6144, false).unwrap().shares();
        assert!(shares.len() == 2 && shares[1].0 == 6144 && (shares[1].1 - 1.0 / 3.0).abs() < 0.001);
        check((4096, 4096), false, &[(4096, 1.0)]);
        let any = BlockSize::of_range(4096, 8192, true).unwrap();
        assert!(any.shares().iter().any(|(size, _)| size % 4096 != 0));
        assert_eq!((any.smallest(), any.largest()), (4096, 8192));
        assert_eq!(BlockSize::of_range(4096, 16384, false).unwrap().bytes_of_hundred(), 100 * 10240);
        for bounds in [(0, 0), (8192, 4096), (0, 4096)] {
            assert_eq!(BlockSize::of_range(bounds.0, bounds.1, false), None);
        }
    }

    #[test]
    fn a_mix_reports_its_range_and_its_bytes_per_hundred() {
        let mix = BlockSize::of_shares(&[(4096, 60), (8192, 40)]).unwrap();
        assert_eq!((mix.smallest(), mix.largest(), mix.bytes_of_hundred()), (4096, 8192, 100 * 5734 + 40));
        let fixed = BlockSize::from(512);
        assert_eq!((fixed.smallest(), fixed.largest(), fixed.bytes_of_hundred()), (512, 512, 51_200));
    }
}
