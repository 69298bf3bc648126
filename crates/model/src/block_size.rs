//! Block sizes of an operation: one size, or a mix of sizes in fixed shares.
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

    /// The smallest block; offsets are multiples of it from the start of the range.
    pub fn smallest(&self) -> u64 {
        match self {
            BlockSize::Fixed(size) => *size,
            BlockSize::Split(split) => split.shares.first().map_or(0, |&(size, _)| size),
        }
    }

    /// The largest block.
    pub fn largest(&self) -> u64 {
        match self {
            BlockSize::Fixed(size) => *size,
            BlockSize::Split(split) => split.shares.last().map_or(0, |&(size, _)| size),
        }
    }

    /// Bytes that 100 requests move.
    pub fn bytes_of_hundred(&self) -> u64 {
        match self {
            BlockSize::Fixed(size) => size.saturating_mul(100),
            BlockSize::Split(split) => {
                split.shares.iter().map(|&(size, share)| size * u64::from(share)).sum()
            }
        }
    }

    /// The mix; `None` for a fixed size.
    pub fn split(&self) -> Option<&BlockSplit> {
        match self {
            BlockSize::Fixed(_) => None,
            BlockSize::Split(split) => Some(split),
        }
    }
}

impl BlockSplit {
    /// Bytes and percent, ascending.
    pub fn shares(&self) -> &[(u64, u8)] {
        &self.shares
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
            let text = BlockSize::of_shares(shares).map(|size| match size {
                BlockSize::Fixed(size) => size.to_string(),
                BlockSize::Split(split) => split.to_string(),
            });
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
    fn a_mix_reports_its_range_and_its_bytes_per_hundred() {
        let mix = BlockSize::of_shares(&[(4096, 60), (8192, 40)]).unwrap();
        assert_eq!((mix.smallest(), mix.largest(), mix.bytes_of_hundred()), (4096, 8192, 100 * 5734 + 40));
        let fixed = BlockSize::from(512);
        assert_eq!((fixed.smallest(), fixed.largest(), fixed.bytes_of_hundred()), (512, 512, 51_200));
    }
}
